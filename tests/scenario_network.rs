//! Switches, links between any two nodes, topologies and posts of many: what files say about them, and what is refused.
//!
//! In the texts of refusals, guillemets mark the place that the diagnostic has to point at.

mod refusals;

use std::collections::BTreeMap;

use proptest::prelude::*;
use rocemu::base::{NodeId, Octets, PortId, Rate, Rng, Share, Span};
use rocemu::nic::{CongestionControl, RateApplication};
use rocemu::port::Scheduling;
use rocemu::scenario::{Plan, Severity};
use rocemu::switch::{self, PortConfig};
use rocemu::wire::MacAddr;

use refusals::{assert_refused, assert_warned, parsed, refused, unmark};

/// Two NICs with a switch between them.
const SWITCHED: &str = "
[nodes.a]
[nodes.b]
[switches.s]
[[links]]
ends = [\"a\", \"s\"]
[[links]]
ends = [\"s\", \"b\"]
[[posts]]
from = \"a\"
to = \"b\"
size = \"1MiB\"
";
const STAR: &str = "[topology]\nstar = { nics = 4 }\n";
const LEAF_SPINE: &str = "[topology]\nleaf_spine = { leaves = 2, spines = 2, nics_per_leaf = 2 }\n";

fn plan(text: &str) -> Plan {
    parsed(text).plan
}

fn gbps(rate: Rate) -> u64 {
    rate.bps() / 1_000_000_000
}

/// Where each port of a node leads: the neighbour's name.
fn neighbours(plan: &Plan, node: usize) -> Vec<String> {
    let names = plan.names();
    let mut ports: Vec<_> = plan
        .links
        .iter()
        .flat_map(|link| [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])])
        .filter(|(own, _)| own.node.index() == node)
        .map(|(own, peer)| (own.port, names.nodes[peer.node.index()].name.clone()))
        .collect();
    ports.sort();
    assert!(ports.iter().enumerate().all(|(index, (port, _))| port.index() == index), "{ports:?}");
    ports.into_iter().map(|(_, name)| name).collect()
}

/// From a switch to a NIC by its number: the neighbours that are next.
fn next(plan: &Plan, switch: usize, nic: usize) -> Vec<String> {
    let neighbours = neighbours(plan, plan.nics.len() + switch);
    let ports = &plan.switches[switch].routes[&plan.nics[nic].address.ip];
    ports.iter().map(|port| neighbours[port.index()].clone()).collect()
}

#[test]
fn a_switch_has_a_port_for_each_of_its_links_and_routes_to_every_nic() {
    let plan = plan(SWITCHED);
    assert_eq!((plan.nics.len(), plan.switches.len(), plan.node_count()), (2, 1, 3));
    let switch = &plan.switches[0];
    let port = |port| PortConfig {
        data_rate: Rate::from_gbps(400),
        delay: Span::from_ns(100),
        mac: MacAddr([2, 1, 0, 2, 0, port]),
    };
    let config = switch::Config { ports: vec![port(0), port(1)], ..switch::Config::default() };
    assert_eq!(switch.config, switch::Config { ecmp_salt: switch.config.ecmp_salt, ..config });
    assert_eq!((switch.name.as_str(), switch.config.seed), ("s", 1));
    assert_eq!((next(&plan, 0, 0), next(&plan, 0, 1)), (vec!["a".to_owned()], vec!["b".to_owned()]));
    let ends = plan.links[1].ends.map(|end| (end.node, end.port, end.delay));
    assert_eq!(ends, [(NodeId(2), PortId(1), Span::from_ns(100)), (NodeId(1), PortId(0), Span::from_ns(100))]);
    // NICs keep the numbers that they have without switches.
    assert_eq!(plan.nics[1].address.ip.octets(), [10, 0, 0, 2]);
}

#[test]
fn node_ids_are_nics_then_switches_each_in_file_order() {
    let plan = plan(
        "[switches.z]\n[switches.c]\n[nodes.b]\n[nodes.a]\n[[links]]\nends = [\"z\", \"c\"]\n[[links]]\n\
         ends = [\"a\", \"z\"]\n[[links]]\nends = [\"b\", \"c\"]",
    );
    let names: Vec<_> = plan.names().nodes.into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["b", "a", "z", "c"]);
    assert_eq!(plan.links[0].ends.map(|end| end.node), [NodeId(2), NodeId(3)]);
}

#[test]
fn a_star_is_made_in_one_line_and_changed_by_tables() {
    let text = format!(
        "{STAR}[nic]\ndata_rate = \"100Gbps\"\n[nodes.extra]\n[nodes.n2]\nnic.data_rate = \"25Gbps\"\n\
         [switches.s1]\necn.min_threshold = \"5KB\"\n[[links]]\nends = [\"extra\", \"s1\"]\n\
         [[expect]]\nno_drops = true"
    );
    let plan = plan(&text);
    let names: Vec<_> = plan.names().nodes.into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4", "extra", "s1"]);
    assert_eq!(neighbours(&plan, 5), ["n1", "n2", "n3", "n4", "extra"]);
    // The lower rate holds at both ends, and nobody is told of NICs that are slower than their switch.
    let rates: Vec<_> = plan.switches[0].config.ports.iter().map(|port| gbps(port.data_rate)).collect();
    assert_eq!(rates, [100, 25, 100, 100, 100]);
    assert_eq!(plan.nics.iter().map(|nic| gbps(nic.config.data_rate)).collect::<Vec<_>>(), rates);
    assert!(parsed(&text).warnings.is_empty());
    assert_eq!(plan.switches[0].config.marking.kmin, Octets::new(5_000));
    assert_eq!(next(&plan, 0, 4), ["extra"]);
}

#[test]
fn a_leaf_knows_every_spine() {
    let plan = plan(LEAF_SPINE);
    let names: Vec<_> = plan.names().nodes.into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4", "leaf1", "leaf2", "spine1", "spine2"]);
    assert_eq!(neighbours(&plan, 4), ["n1", "n2", "spine1", "spine2"]);
    assert_eq!(neighbours(&plan, 7), ["leaf1", "leaf2"]);
    assert_eq!((next(&plan, 0, 1), next(&plan, 0, 2)), (vec!["n2".into()], vec!["spine1".into(), "spine2".into()]));
    assert_eq!(next(&plan, 3, 0), ["leaf1"]);
    // 500 ns between switches, the NIC's 100 ns below.
    let delays: Vec<_> = plan.switches[0].config.ports.iter().map(|port| port.delay.ps() / 1_000).collect();
    assert_eq!(delays, [100, 100, 500, 500]);
}

#[test]
fn parallel_links_between_switches_are_equal_ways() {
    let text = "[nodes.a]\n[nodes.b]\n[switches.s]\n[switches.t]\n[[links]]\nends = [\"a\", \"s\"]\n[[links]]\n\
                ends = [\"s\", \"t\"]\n[[links]]\nends = [\"t\", \"s\"]\n[[links]]\nends = [\"t\", \"b\"]";
    let plan = plan(text);
    assert_eq!(plan.switches[0].routes[&plan.nics[1].address.ip], [PortId(1), PortId(2)]);
    assert_eq!(plan.switches[1].routes[&plan.nics[0].address.ip], [PortId(0), PortId(1)]);
    let ports: Vec<_> = plan.names().nodes[2].ports.iter().map(|port| port.name.clone()).collect();
    assert_eq!(ports, ["s:a", "s:t", "s:t#2"]);
}

#[test]
fn rates_and_delays_of_links_come_before_those_of_their_ends() {
    let plan = plan(
        "[switch]\ndelay = \"2us\"\n[nodes.a]\nnic.delay = \"7ns\"\n[nodes.b]\n[switches.s]\n[switches.t]\n\
         [[links]]\nends = [\"a\", \"s\"]\n\
         [[links]]\nends = [\"s\", \"t\"]\ndata_rate = \"800Gbps\"\ndelay = { t = \"3us\" }\n\
         [[links]]\nends = [\"b\", \"t\"]\ndata_rate = [\"100Gbps\", \"400Gbps\"]\ndelay = [\"1ns\", \"2ns\"]",
    );
    let ends: Vec<_> =
        plan.links.iter().map(|link| link.ends.map(|end| (end.delay.ps(), gbps(plan.data_rate(end))))).collect();
    assert_eq!(
        ends,
        [[(7_000, 400), (7_000, 400)], [(2_000_000, 800), (3_000_000, 800)], [(1_000, 100), (2_000, 100)],]
    );
}

#[test]
fn every_switch_can_differ_from_the_defaults_of_all() {
    let plan = plan(
        "[topology]\nleaf_spine = { leaves = 2, spines = 1, nics_per_leaf = 1 }\n[switch]\nTotalBufferSize = \"50MB\"\n\
         pfc_xoff_threshold = \"500KB\"\npfc_enable_vector = 0\necn = { MaxMarkProbability = 0.2, EwmaWeight = 0.5 }\n\
         marking_seed = 9\n[switches.leaf2]\nqueue_scheduling_type = \"RoundRobin\"\necmp_salt = 3\n\
         quanta_value = [1, 2, 3, 4, 5, 6, 7, 8]\necn.max_mark_probability = \"0.25\"\n",
    );
    let [leaf1, leaf2, spine1] = [0, 1, 2].map(|switch: usize| &plan.switches[switch].config);
    for switch in [leaf1, leaf2, spine1] {
        assert_eq!((switch.total_buffer, switch.seed), (Octets::new(50_000_000), 9));
        assert_eq!((switch.pfc.xoff, switch.pfc.enabled), ([Octets::new(500_000); 8], [false; 8]));
        assert_eq!(switch.marking.weight, Share::from_percent(50));
    }
    assert_eq!([leaf1, leaf2].map(|switch| switch.marking.pmax), [20, 25].map(Share::from_percent));
    assert_eq!([leaf1, leaf2].map(|switch| switch.scheduling), [Scheduling::StrictPriority, Scheduling::RoundRobin]);
    assert_eq!(leaf2.pfc.quanta, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(leaf2.ecmp_salt, 3);
    assert!(leaf1.ecmp_salt != spine1.ecmp_salt, "with one salt for all, the second choice follows the first");
}

#[test]
fn marks_and_ways_follow_the_seed_of_the_scenario() {
    let with = |seed: u64| plan(&format!("[scenario]\nseed = {seed}\n{LEAF_SPINE}[switches.leaf2]\nmarking_seed = 1"));
    let seeds = |plan: &Plan| plan.switches.iter().map(|switch| switch.config.seed).collect::<Vec<_>>();
    assert_eq!((seeds(&with(1)), seeds(&with(7))), (vec![1, 1, 1, 1], vec![7, 1, 7, 7]));
    // For ever: a recorded scenario takes the same ways in every later version.
    assert_eq!(with(1).switches[0].config.ecmp_salt, Rng::named(1, "switch/leaf1/ecmp").next_u64());
    let mut plan = with(1);
    plan.reseed(7);
    assert_eq!(plan, with(7));
    plan.reseed(1);
    assert_eq!(plan, with(1));
}

#[test]
fn congestion_control_is_what_the_file_says() {
    let congestion = |text: &str| plan(&format!("{text}\n{SWITCHED}")).nics[0].config.congestion.clone();
    let default = congestion("");
    assert_eq!(default, rocemu::nic::Config::default().congestion);
    let loops = congestion(
        "[nic.ECNHandler]\nMinimumRatePercentage = 0.05\nControlIntervalDurationNs = 30000\ninitial_estimate = 1",
    );
    assert_eq!(loops.ecn_loop.minimum_rate, Share::from_percent(5));
    assert_eq!(loops.ecn_loop.control_interval, Span::from_us(30));
    assert_eq!(loops.ecn_loop.initial_estimate, Share::from_percent(100));
    let paper = congestion(
        "[nic]\ncongestion_control = \"dcqcn_paper\"\nRateApplication = \"pace\"\nMinTimeBetweenCnps = \"50us\"\n\
         np_delay = \"55us\"\ndcqcn_paper = { byte_counter = \"0B\", minimum_rate = \"1Gbps\", hyper_increase = \"auto\" }",
    );
    assert_eq!((paper.control, paper.rate_application), (CongestionControl::DcqcnPaper, RateApplication::Pace));
    assert_eq!((paper.cnp_interval, paper.np_delay), (Span::from_us(50), Span::from_us(55)));
    assert_eq!(paper.dcqcn_paper.byte_counter, Some(Octets::ZERO), "zero is off, not the default");
    assert_eq!(paper.dcqcn_paper.minimum_rate, Some(Rate::from_gbps(1)));
    assert_eq!(paper.dcqcn_paper.hyper_increase, None);
    let nvidia = congestion(
        "[nic]\ncongestion_control = \"dcqcn_nvidia\"\n[nic.dcqcn_nvidia]\ndce_tcp_g = 1000\nrpg_min_dec_fac = 25\n\
         rate_to_set_on_first_cnp = \"10Gbps\"\nrpg_max_rate = \"0bps\"",
    );
    assert_eq!((nvidia.dcqcn_nvidia.alpha_kept, nvidia.dcqcn_nvidia.least_kept), (1_000, Share::from_percent(25)));
    assert_eq!(nvidia.dcqcn_nvidia.rate_on_first_cnp, Some(Rate::from_gbps(10)));
    assert_eq!(nvidia.dcqcn_nvidia.maximum_rate, None);
}

#[test]
fn posts_of_many_nodes_are_one_post_each() {
    let pairs = |posts: &str| {
        let plan = plan(&format!("{STAR}[[posts]]\nsize = \"1B\"\n{posts}"));
        let node = |post: &rocemu::scenario::PostPlan, end: usize| {
            plan.queue_pairs[post.queue_pair].ends[if end == 0 { post.from_end } else { 1 - post.from_end }].node.0 + 1
        };
        plan.posts.iter().map(|post| (node(post, 0), node(post, 1))).collect::<Vec<_>>()
    };
    let incast = [(2, 1), (3, 1), (4, 1)];
    assert_eq!(pairs("from = \"n*\"\nto = \"n1\""), incast);
    assert_eq!(pairs("from = \"*\"\nto = \"n1\""), incast);
    assert_eq!(pairs("from = [\"n2\", \"n3\", \"n4\"]\nto = \"n1\""), incast);
    assert_eq!(pairs("from = \"n1\"\nto = \"n*\""), [(1, 2), (1, 3), (1, 4)]);
    assert_eq!(pairs("from = [\"n1\", \"n2\"]\nto = [\"n3\", \"n1\"]"), [(1, 3), (2, 1)]);
    assert_eq!(pairs("from = \"n*\"\nshift = 1"), [(1, 2), (2, 3), (3, 4), (4, 1)]);
    assert_eq!(pairs("from = \"n*\"\nshift = 3"), [(1, 4), (2, 1), (3, 2), (4, 3)]);
    // Messages are counted for each.
    let many = plan(&format!("{STAR}[[posts]]\nfrom = \"n*\"\nto = \"n1\"\nsize = \"1B\"\ncount = 5"));
    assert_eq!((many.message_count(), many.queue_pairs.len()), (15, 3));
}

#[test]
fn a_queue_pair_joins_nics_behind_any_number_of_switches() {
    let pair = "[[queue_pairs]]\nname = \"q\"\nends = [\"n1\", \"n4\"]\n";
    assert_eq!(plan(&format!("{LEAF_SPINE}{pair}")).queue_pairs[0].ends.map(|end| end.node.0), [0, 3]);
    // Without the spines there is no way.
    let torn = "[nodes.n1]\n[nodes.n4]\n[switches.s]\n[switches.t]\n[[links]]\nends = [\"n1\", \"s\"]\n[[links]]\n\
                ends = [\"n4\", \"t\"]\n";
    assert_refused(
        &format!("{torn}{}", pair.replace("[\"n1\", \"n4\"]", "«[\"n1\", \"n4\"]»")),
        "there is no way between `n1` and `n4`",
        "link both to switches",
    );
}

#[test]
fn switches_links_and_topologies_that_cannot_be_are_refused() {
    for (marked, message, help) in [
        ("[switches.«\"s 1\"»]\n[nodes.a]", "`s 1` cannot be the name of a switch", "letters"),
        ("[nodes.a]\n[switches.«a»]", "there are a NIC and a switch named `a`", "a name of its own"),
        ("[nodes.a]\n[switches.s]\n«nic» = 1", "[switches.s] has no key `nic`", "data_rate, delay"),
        ("[nodes.a]\n[switches]\ns = «1»", "`s` is a whole number, not a table", "[switches.s]"),
        ("[topology]\nstar = { nics = «0» }", "cannot be 0", "from 1"),
        ("[topology]\nstar = { nics = 2, «spines» = 1 }", "has no key `spines`", "nics"),
        ("[topology]\n«star» = { }", "has no `nics`", "nics = 4"),
        ("[topology]\n«star» = 4\n[nodes.a]", "not a table", "[topology] star"),
        ("«[topology]»\n[nodes.a]", "names no topology", "star = { nics = 16 }"),
        (
            "[topology]\nstar = { nics = 2 }\n«leaf_spine» = { leaves = 1, spines = 1, nics_per_leaf = 1 }\n[nodes.a]",
            "has one topology",
            "keep one",
        ),
        (
            "[topology]\nstar = { nics = 2 }\n[[links]]\nends = [«\"n1\"», \"s1\"]",
            "`n1` already has a link",
            "[switches.s1]",
        ),
        (
            "[topology]\nstar = { nics = 2 }\n[[links]]\nends = [\"s1\", «\"s2\"»]",
            "there is no node `s2`",
            "n1, n2, s1",
        ),
        (
            "[topology]\nstar = { nics = 2 }\n[switches.t]\n[[links]]\nends = [\"s1\", \"t\"]\ndata_rate = «\"0Gbps\"»",
            "cannot be zero",
            "above zero",
        ),
        (
            "[topology]\nstar = { nics = 2 }\n[[queue_pairs]]\nname = \"q\"\nends = [\"n1\", «\"s1\"»]",
            "`s1` is a switch",
            "NICs",
        ),
        (
            "[topology]\n«star» = { nics = 2000 }\n[nodes.x]\n[[links]]\nends = [\"x\", \"s1\"]",
            "2001 NICs behind one switch have more ways to each other than can be found",
            "2000 NICs",
        ),
    ] {
        let all = refused(&unmark(marked).0);
        let errors: Vec<_> = all.iter().filter(|one| one.severity == Severity::Error).collect();
        let one = errors.iter().find(|one| one.message.contains(message)).unwrap_or_else(|| panic!("{message}\n{all}"));
        assert!(one.help.contains(help), "{all}");
        assert!(
            marked.contains("«star» = 4") || marked.contains("«[topology]»") || one.span == unmark(marked).1,
            "{marked}\n{all}"
        );
    }
}

#[test]
fn a_topology_that_is_too_large_is_refused_once_and_the_numbers_that_are_named_fit() {
    // Nobody is told that n1, which would have been made, is unknown.
    const USES: &str = "\n[nodes.n1]\n[[posts]]\nfrom = \"n1\"\nto = \"n*\"\nsize = \"1B\"\n\
        [[applications]]\nname = \"one\"\nnode = \"n2\"\n[[links]]\nends = [\"s1\", \"leaf1\"]\n";
    for (marked, message, help) in [
        ("star = { nics = «20000» }", "`nics` cannot be 20000", "from 1 to 2000"),
        ("star = { nics = «2001» }", "`nics` cannot be 2001", "from 1 to 2000"),
        ("leaf_spine = { leaves = «1415», spines = 1, nics_per_leaf = 1 }", "cannot be 1415", "from 1 to 1414"),
        ("leaf_spine = { leaves = 1, spines = «10001», nics_per_leaf = 1 }", "cannot be 10001", "from 1 to 10000"),
        ("leaf_spine = { leaves = 1, spines = 1, nics_per_leaf = «2000» }", "cannot be 2000", "from 1 to 1999"),
        (
            "leaf_spine = «{ leaves = 100, spines = 2, nics_per_leaf = 40 }»",
            "4000 NICs, 102 switches and 4200 links",
            "nics_per_leaf can be 19 at most",
        ),
        (
            "leaf_spine = «{ leaves = 1000, spines = 1000, nics_per_leaf = 1 }»",
            "1000 NICs, 2000 switches and 1001000 links",
            "have fewer",
        ),
    ] {
        assert_refused(&format!("[topology]\n{marked}{USES}"), message, help);
    }
    for largest in ["star = { nics = 2000 }", "leaf_spine = { leaves = 1, spines = 10000, nics_per_leaf = 1 }"] {
        parsed(&format!("[topology]\n{largest}\n"));
    }
}

#[test]
fn posts_to_nobody_are_refused() {
    for (marked, message, help) in [
        ("from = «\"x*\"»\nto = \"n1\"", "no NIC has a name that starts with `x`", "\"n*\""),
        ("from = \"n1\"\nto = «\"s1\"»", "`s1` is a switch", "NICs"),
        ("from = [\"n1\", «\"n9\"»]\nto = \"n2\"", "there is no node `n9`", "known nodes"),
        ("from = [\"n1\", \"n2\"]\nto = «\"n1\"»", "`n1` cannot post to itself", "another node"),
        ("from = [\"n1\", \"n2\"]\nto = «[\"n1\", \"n2\", \"n3\"]»", "2 nodes cannot post to 3 one by one", "as many"),
        ("from = «[]»\nto = \"n1\"", "is an empty list", "one value or several"),
        ("from = \"n*\"\n«to» = \"n1\"\nshift = 1", "either `to` or `shift`", "remove one"),
        ("from = \"n*\"\nshift = «4»", "cannot be 4", "from 1 to 3"),
        ("from = \"n*\"\nshift = «0»", "cannot be 0", "from 1 to 3"),
        ("from = «\"n1\"»\nshift = 1", "one node alone", "several senders"),
    ] {
        let marked = format!("{STAR}[[posts]]\nsize = \"1B\"\n{marked}");
        assert_refused(&marked, message, help);
    }
    let pair = "[[queue_pairs]]\nname = \"q\"\nends = [\"n1\", \"n2\"]\n";
    let marked = format!("{STAR}{pair}[[posts]]\nqueue_pair = \"q\"\nfrom = «[\"n1\", \"n2\"]»\nsize = \"1B\"");
    assert_refused(&marked, "is an array, not a string", "quotation marks");
    let endless =
        format!("{STAR}{}", "[[posts]]\nfrom = \"n*\"\nshift = 1\nsize = \"1B\"\ncount = 2000000\n".repeat(3));
    assert!(refused(&endless).to_string().contains("more than 4000000 messages"));
}

#[test]
fn attributes_of_switches_that_cannot_work_are_refused() {
    for (beginning, message, help) in [
        (
            "[switch]\nquanta_value = «[1, 1, 0, 1, 1, 1, 1, 1]»",
            "class 2 but its pauses would ask for 0 quanta",
            "disable PFC",
        ),
        (
            "[switch.ecn]\nmin_threshold = «\"2MB\"»",
            "`s` begins to mark at 2000000 B but marks everything at 1200000 B",
            "a step",
        ),
        ("[switch.ecn]\nmax_mark_probability = «1.5»", "cannot be 1.5", "0 to 1"),
        ("[switch.ecn]\newma_weight = «0»", "cannot be 0", "to 1"),
        ("[switch.ecn]\newma_weight = «\"-1\"»", "cannot be negative", "fraction"),
        ("[switch]\ntotal_buffer_size = «\"4KB\"»", "a buffer of 4000 B, but one packet needs 4136 B", "4136B"),
        ("[switch]\npfc_headroom = «700»", "a size needs a unit", "700KB"),
        (
            "[switch]\npfc_headroom = [\"1MB\", «2», \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\"]",
            "entry 1 of `pfc_headroom`",
            "list of eight",
        ),
        (
            "[switch]\nqueue_scheduling_type = \"WeightedRoundRobin\"\nwrr_queue_weights = «[1, 0, 1, 1, 1, 1, 1, 1]»",
            "class 1 is in use but has weight 0",
            "at least 1",
        ),
        ("[switch]\nmarking_seed = «-1»", "cannot be -1", "from 0 up"),
        ("[switch]\nmarking_seed = «\"random\"»", "not a whole number", "from 0 up"),
        ("[nic]\ncongestion_control = «\"dctcp\"»", "is not a congestion control", "\"dcqcn_paper\""),
        ("[nic]\nrate_application = «\"shape\"»", "is not a way to apply rates", "\"pace\""),
        ("[nic.ecn]\ncontrol_interval_duration_ns = «0»", "cannot be 0", "from 1"),
        ("[nic.ecn]\ncontrol_interval_duration_ns = «\"45us\"»", "not a whole number", "from 1"),
        ("[nic.ecn]\nminimum_rate_percentage = «0»", "cannot be 0", "to 1"),
        ("[nic.ecn]\ncongestion_probability_weight = «1.01»", "cannot be 1.01", "0 to 1"),
        ("[nic.ecn]\nnumber_active_increase_steps = «0»", "cannot be 0", "from 1"),
        ("[nic.dcqcn_paper]\nalpha_timer = «\"0us\"»", "cannot be 0 ps", "1 ps or more"),
        ("[nic.dcqcn_paper]\nincrease_timer = «\"0us\"»", "cannot be 0 ps", "1 ps or more"),
        ("[nic.dcqcn_paper]\nminimum_rate = «\"0bps\"»", "cannot be zero", "above zero"),
        ("[nic.dcqcn_nvidia]\ndce_tcp_g = «1025»", "cannot be 1025", "from 0 to 1024"),
        ("[nic.dcqcn_nvidia]\nrpg_gd = «64»", "cannot be 64", "from 0 to 63"),
        ("[nic.dcqcn_nvidia]\nrpg_min_dec_fac = «101»", "cannot be 101", "from 0 to 100"),
        ("[nic.dcqcn_nvidia]\ndce_tcp_rtt = «\"0us\"»", "cannot be 0 ps", "1 ps or more"),
        ("[nic.dcqcn_nvidia]\nrate_reduce_monitor_period = «\"0us\"»", "cannot be 0 ps", "1 ps or more"),
        ("[nic.dcqcn_nvidia]\nrpg_time_reset = «\"0us\"»", "cannot be 0 ps", "1 ps or more"),
    ] {
        assert_refused(&format!("{beginning}\n{SWITCHED}"), message, help);
    }
    for (beginning, message) in [
        ("[switch]\npfc_xon_threshold = «\"700KB\"»", "resumes at 700000 B but pauses only above 700000 B"),
        (
            "[switch]\npfc_enable_vector = 0\npfc_xoff_threshold = «\"1KB\"»\npfc_headroom = \"1KB\"",
            "holds 2000 B of class 0",
        ),
        (
            "[nic]\ncongestion_control = \"dcqcn_paper\"\ndcqcn_paper.minimum_rate = «\"401Gbps\"»",
            "is above the data rate of `a`",
        ),
        (
            "[nic]\ncongestion_control = \"dcqcn_nvidia\"\ndcqcn_nvidia.rpg_min_rate = «\"401Gbps\"»",
            "is above the data rate of `b`",
        ),
    ] {
        let marked = format!("{beginning}\n{SWITCHED}");
        let all = refused(&unmark(&marked).0);
        assert!(all.iter().any(|one| one.message.contains(message)), "{message}\n{all}");
        assert!(all.iter().all(|one| one.severity == Severity::Error && one.span == unmark(&marked).1), "{all}");
    }
    let small = SWITCHED.replace("[nodes.b]", "[nodes.b]\nnic = { mss = \"1024B\", mtu = «\"2000B\"» }");
    assert_refused(&small, "packets of `a` have 4154 B, but `b` has an Mtu of 2000 B", "a larger `mtu`");
}

#[test]
fn what_runs_but_surprises_is_warned_about() {
    // 400 Gb/s x 2 x 100 ns / 8 + 2 x 4,184 B = 18,368 B.
    for (beginning, message, help) in [
        (
            "[switch]\npfc_headroom = «[\"18367B\", \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\"]»",
            "class 0 has 18367 B of headroom at `s`, less than 18368 B for its links to `a` and `b`",
            "raise `pfc_headroom`",
        ),
        (
            "[switch]\ntotal_buffer_size = «\"3MB\"»",
            "the 2 ports of `s` may hold 3824000 B of paused classes",
            "raise `total_buffer_size`",
        ),
    ] {
        assert_warned(&format!("{beginning}\n{SWITCHED}"), message, help);
    }
    // 400 Gb/s x 2 x 1 us / 8 + 2 x 4,184 B = 108,368 B on one of the links; 20,000 B suffice for the other. Where they do
    // not suffice for either, each need has a warning of its own.
    let long = SWITCHED.replace("[\"s\", \"b\"]", "[\"s\", \"b\"]\ndelay = \"1us\"");
    let both = "\"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\", \"1MB\"";
    let long = long.replace("[nodes.a]", "[nic]\ningress_buffer.total_buffer_size = \"20MB\"\n[nodes.a]");
    let of = |headroom: &str| format!("[switch]\npfc_headroom = «[\"{headroom}\", {both}]»\n{long}");
    let at_b = "less than 108368 B for its link to `b`";
    assert_warned(&of("20000B"), &format!("class 0 has 20000 B of headroom at `s`, {at_b}"), "raise `pfc_headroom`");
    let warnings: Vec<_> = parsed(&unmark(&of("9000B")).0).warnings.iter().map(|one| one.message.clone()).collect();
    let at_a = "less than 18368 B for its link to `a`";
    assert_eq!(warnings, [at_b, at_a].map(|need| format!("class 0 has 9000 B of headroom at `s`, {need}")));
    assert_warned(&format!("{SWITCHED}[switches.«t»]"), "`t` has no link", "[[links]]");
    // A switch that slows a NIC down, which is less usual than the reverse.
    let fast = SWITCHED.replace("[nodes.b]", "[nodes.b]\nnic.data_rate = \"800Gbps\"");
    assert_warned(
        &fast.replace("[\"s\", \"b\"]", "«[\"s\", \"b\"]»"),
        "`s` has a data rate of 400 Gb/s and `b` one of 800 Gb/s",
        "both ends",
    );
}

/// A graph: NICs with the switch that each is linked to, and links between switches.
fn graph() -> impl Strategy<Value = (Vec<usize>, usize, Vec<(usize, usize)>)> {
    (1..7_usize).prop_flat_map(|switches| {
        let nics = prop::collection::vec(0..switches, 1..8);
        let links = prop::collection::vec((0..switches, 0..switches), 0..14);
        (nics, Just(switches), links)
    })
}

fn text_of((nics, switches, links): &(Vec<usize>, usize, Vec<(usize, usize)>)) -> String {
    let mut text: String = (0..nics.len()).map(|nic| format!("[nodes.n{nic}]\n")).collect();
    text.extend((0..*switches).map(|switch| format!("[switches.s{switch}]\n")));
    text.extend(nics.iter().enumerate().map(|(nic, s)| format!("[[links]]\nends = [\"n{nic}\", \"s{s}\"]\n")));
    let different = links.iter().filter(|(one, other)| one != other);
    text.extend(different.map(|(one, other)| format!("[[links]]\nends = [\"s{one}\", \"s{other}\"]\n")));
    text
}

proptest! {
    #[test]
    fn any_graph_has_routes_without_loops(graph in graph()) {
        let plan = plan(&text_of(&graph));
        let mut peers = BTreeMap::new();
        for (one, other) in plan.link_ends() {
            peers.insert(one, other.0);
            peers.insert(other, one.0);
        }
        for (nic, target) in plan.nics.iter().enumerate() {
            // From every switch, every way: it arrives, and it never takes more hops than there are switches.
            let mut open: Vec<_> = (0..plan.switches.len()).map(|switch| (switch, 0)).collect();
            while let Some((switch, hops)) = open.pop() {
                prop_assert!(hops < plan.switches.len(), "a loop at {switch} towards {nic}");
                let Some(ports) = plan.switches[switch].routes.get(&target.address.ip) else {
                    prop_assert!(hops == 0, "a way that leads nowhere");
                    continue;
                };
                prop_assert!(!ports.is_empty());
                for port in ports {
                    let peer = peers[&(NodeId((plan.nics.len() + switch) as u16), *port)].index();
                    match peer.checked_sub(plan.nics.len()) {
                        Some(next) => open.push((next, hops + 1)),
                        None => prop_assert_eq!(peer, nic),
                    }
                }
            }
        }
    }

    /// Posts are accepted between exactly those NICs that the routes join.
    #[test]
    fn a_post_is_refused_where_no_way_leads(graph in graph()) {
        let routes = plan(&text_of(&graph));
        for to in 1..graph.0.len() {
            let text = format!("{}[[posts]]\nfrom = \"n0\"\nto = \"n{to}\"\nsize = \"1B\"", text_of(&graph));
            let has_way = routes.switches[graph.0[0]].routes.contains_key(&routes.nics[to].address.ip);
            prop_assert_eq!(rocemu::scenario::parse("any.toml", &text).is_ok(), has_way, "{}", text);
        }
    }
}
