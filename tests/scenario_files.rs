//! Scenario files: what they say, and what is refused where.
//!
//! In the texts of refusals, guillemets mark the place that the diagnostic has to point at.

mod refusals;

use proptest::prelude::*;
use rocemu::base::{Class, Instant, NodeId, Octets, Psn, Rate, Share, Span};
use rocemu::nic;
use rocemu::port::Scheduling;
use rocemu::scenario::{self, Plan, Severity};
use rocemu::wire::{MacAddr, Verb};

use refusals::{assert_refused, assert_warned, parsed, refused, unmark};

const PAIR: &str = include_str!("../netns/pair.toml");
const SWITCHED: &str = include_str!("../netns/victim-flow.toml");
const RICH: &str = include_str!("data/scenarios/rich.toml");
/// The rest of a file whose beginning is tried.
const REST: &str = r#"
[nodes.a]
[nodes.b]
[[links]]
ends = ["a", "b"]
[[posts]]
from = "a"
to = "b"
size = "1MiB"
"#;

fn plan(text: &str) -> Plan {
    parsed(text).plan
}

fn plan_with(beginning: &str) -> Plan {
    plan(&format!("{beginning}\n{REST}"))
}

/// Two switches between the same two nodes.
const REST_WITH_SWITCH: &str = r#"
[nodes.a]
[nodes.b]
[switches.s]
[switches.t]
[[links]]
ends = ["a", "s"]
[[links]]
ends = ["s", "t"]
[[links]]
ends = ["t", "b"]
[[posts]]
from = "a"
to = "b"
size = "1MiB"
"#;

/// What the attributes of the table are tried in.
fn rest_for(table: &str) -> &'static str {
    if table.starts_with("switch") { REST_WITH_SWITCH } else { REST }
}

fn assert_all_refused(cases: &[(&str, &str, &str)]) {
    for (beginning, message, help) in cases {
        assert_refused(&format!("{beginning}\n{REST}"), message, help);
    }
}

#[test]
fn the_pair_that_people_run_first_is_at_its_defaults() {
    let parsed = scenario::parse("netns/pair.toml", PAIR).unwrap_or_else(|refused| panic!("{refused}"));
    assert!(parsed.warnings.is_empty(), "{}", parsed.warnings);
    let plan = parsed.plan;
    assert_eq!((plan.name.as_str(), plan.seed), ("pair", 1));
    assert_eq!(plan.until, Instant::ZERO + Span::from_secs(10));
    assert!(plan.nics.iter().all(|nic| nic.config == nic::Config::default()));
    assert_eq!(plan.posts.len(), 1);
    assert_eq!((plan.posts[0].verb, plan.posts[0].size), (Verb::Write, Octets::new(1 << 20)));
}

#[test]
fn a_minimal_file_is_complete() {
    let plan = scenario::parse("dir/my first.toml", REST).unwrap().plan;
    assert_eq!(plan.name, "my-first");
    assert_eq!(plan.until, Instant::ZERO + Span::from_secs(10));
    let names: Vec<_> = plan.nics.iter().map(|nic| nic.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(plan.nics[1].address.mac, MacAddr([2, 0, 0, 0, 0, 2]));
    assert_eq!(plan.nics[1].address.ip.octets(), [10, 0, 0, 2]);
    assert_eq!(
        plan.links[0].ends.map(|end| (end.node, end.port.0, end.delay)),
        [(NodeId(0), 0, Span::from_ns(100)), (NodeId(1), 0, Span::from_ns(100)),]
    );
    let queue_pair = &plan.queue_pairs[0];
    assert!(queue_pair.implicit);
    assert_eq!(queue_pair.ends.map(|end| end.qpn.get()), [0x80_0000; 2]);
    assert_eq!(queue_pair.ends.map(|end| (end.data_class.get(), end.control_class.get())), [(0, 1); 2]);
    let post = plan.posts[0];
    assert_eq!((post.at, post.from_end, post.count, post.every), (Instant::ZERO, 0, 1, Span::ZERO));
    assert_eq!((post.verb, post.size), (Verb::Write, Octets::new(1_048_576)));
}

#[test]
fn a_rich_file_says_what_its_author_meant() {
    let parsed = parsed(RICH);
    let warnings: Vec<_> = parsed.warnings.iter().map(|warning| warning.line()).collect();
    // Only the unequal rates of the first link, at its `ends`.
    assert_eq!(warnings, [1 + RICH.lines().position(|line| line.starts_with("ends")).unwrap()], "{}", parsed.warnings);
    let plan = parsed.plan;
    assert_eq!((plan.seed, plan.until), (42, Instant::from_ps(1_500_000_000)));
    assert_eq!(plan.records.nd_stats_interval, Span::from_us(500));
    assert!(!plan.records.roce_transport_stats);
    assert_eq!(plan.records.net_buff_stats_nics, [NodeId(1)]);

    let [a, b, c, d] = [0, 1, 2, 3].map(|node: usize| &plan.nics[node].config);
    assert_eq!([a, b, c, d].map(|nic| nic.mss.get()), [4_096, 1_024, 4_096, 4_096]);
    assert!(plan.nics.iter().all(|nic| nic.config.mtu == Octets::new(9_000)));
    assert_eq!([a, b, c, d].map(|nic| nic.data_rate.bps() / 1_000_000_000), [100, 100, 400, 400]);
    assert_eq!([a, b, c, d].map(|nic| nic.delay.ps()), [100_000, 250_000, 1_000_000, 1_000_000]);
    assert_eq!(a.retransmit_timeout, Span::from_us(500));
    assert_eq!((a.egress.scheduling, a.egress.weights), (Scheduling::WeightedRoundRobin, [1, 3, 2, 0, 0, 0, 0, 0]));
    assert_eq!(a.ingress.total, Octets::new(8_000_000));
    assert_eq!(a.ingress.shares[0], Share::from_percent(70));
    // Both sides have 8 lanes, and only the NIC's are slow.
    assert_eq!((c.pcie.nic_side.lane_count, c.pcie.host_side.lane_count), (8, 8));
    assert_eq!(c.pcie.nic_side.lane_bps, Rate::from_bps(7_880_000_000).unwrap());
    assert_eq!(c.pcie.host_side.lane_bps, Rate::from_bps(31_520_000_000).unwrap());
    assert_eq!(d.pcie, nic::PcieConfig::default());

    let [bulk, small, implicit] = &plan.queue_pairs[..] else { panic!("{:?}", plan.queue_pairs) };
    assert_eq!(bulk.ends.map(|end| end.qpn.get()), [17, 18]);
    assert_eq!(bulk.ends.map(|end| end.initial_psn), [Psn::new(0xff_fff0), Psn::new(0)]);
    assert_eq!(bulk.ends.map(|end| end.data_class.get()), [2, 2]);
    assert_eq!(small.ends.map(|end| (end.node.0, end.qpn.get())), [(1, 2), (0, 2)]);
    assert_eq!(implicit.ends.map(|end| (end.node.0, end.qpn.get())), [(3, 0x80_0000), (2, 0x80_0000)]);
    let posts: Vec<_> = plan.posts.iter().map(|post| (post.queue_pair, post.from_end, post.verb, post.count)).collect();
    assert_eq!(posts, [(0, 1, Verb::Send, 1), (1, 1, Verb::Write, 20), (2, 0, Verb::Write, 1)]);
    assert_eq!(plan.posts[1].every, Span::from_ps(12_500_000));
    assert_eq!(plan.message_count(), 22);
}

/// A value other than the default that no check objects to.
fn another_value(name: &str, unit: &str) -> &'static str {
    match (name, unit) {
        ("mss", _) => "\"1024B\"",
        ("read_request_size", _) => "\"128B\"",
        ("total_buffer_size", _) => "\"5MB\"",
        ("pfc_xon_resume_threshold", _) => "[0.3, 0.3, 0, 0, 0, 0, 0, 0]",
        ("pfc_static_xoff_threshold" | "pool_allocation_vector", _) => "\"[0.7, 0.2, 0, 0, 0, 0, 0, 0]\"",
        ("num_down_links", _) => "1",
        ("rdma_control_packet_tc", _) => "0",
        ("quanta_value", _) => "[7, 65534, 1, 2, 3, 4, 5, 6]",
        ("max_threshold", _) => "\"2MB\"",
        ("pfc_xon_threshold", _) => "\"400KB\"",
        ("pfc_xoff_threshold" | "pfc_headroom", _) => {
            "[\"600KB\", \"500KB\", \"1MB\", \"500KB\", \"500KB\", \"500KB\", \"500KB\", \"500KB\"]"
        }
        ("blue_flame_max", _) | (_, "size, a power of two") => "\"128B\"",
        (_, "free or modelled") => "\"modelled\"",
        (_, "size" | "size or \"auto\"") => "\"20KiB\"",
        (_, "rate or \"auto\"" | "rate or 0") => "\"7Gbps\"",
        (_, "whole number or \"auto\"") => "77",
        (_, "fraction") => "0.375",
        (_, "whole per cent") => "40",
        (_, "nanoseconds") => "50000",
        (_, "serialize or pace") => "\"pace\"",
        (_, "ecn_loop, dcqcn_paper, dcqcn_nvidia or none") => "\"dcqcn_paper\"",
        (_, "rate") => "\"10.25Gbps\"",
        (_, "time") => "\"2.5us\"",
        (_, "seconds") => "0.25",
        (
            "enable_ecn"
            | "ack_coalescing_enabled"
            | "enable_roce_transport_stats"
            | "cnp_generation"
            | "cnp_reaction"
            | "clamp_tgt_rate_after_time_inc",
            _,
        ) => "false",
        (_, "true or false") => "true",
        ("fast_recovery_attempt", _) => "4",
        (_, "whole number") => "3",
        (_, "class 0 to 7") => "1",
        (_, "StrictPriority, RoundRobin or WeightedRoundRobin") => "\"WeightedRoundRobin\"",
        (_, "eight times 1 or 0") => "[1, 0, 1, 0, 0, 0, 0, 0]",
        (_, "eight whole numbers") => "[7, 65534, 1, 0, 0, 0, 0, 0]",
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_attribute_means_the_same_under_both_names() {
    let mut count = 0;
    for attribute in scenario::attributes() {
        let default = plan(rest_for(attribute.table));
        let value = another_value(attribute.name, attribute.unit());
        // PFC for a class needs a pause time, whatever else is tried.
        let rest = if attribute.name == "pfc_enable_vector" { "quanta_value = [9, 9, 9, 9, 9, 9, 9, 9]" } else { "" };
        let rest = format!("{rest}\n{}", rest_for(attribute.table));
        let with = |name: &str| plan(&format!("[{}]\n{name} = {value}\n{rest}", attribute.table));
        let changed = with(attribute.name);
        assert!((changed != default) != (attribute.name == "num_down_links"), "{} changes nothing", attribute.name);
        if let Some(seed_name) = attribute.seed_name {
            assert_eq!(changed, with(seed_name), "{seed_name}");
        }
        if attribute.table == "nic.pcie" && attribute.name != "read_request_size" {
            let side = |side: &str, name: &str| plan_with(&format!("[nic.pcie.{side}]\n{name} = {value}"));
            let [nic, host] = ["nic_side", "host_side"].map(|table| side(table, attribute.name));
            assert_eq!(
                [&nic, &host],
                [&side("NICSide", attribute.seed_name.unwrap()), &side("HostSide", attribute.name)]
            );
            // Each changes its own side, and both together what the attribute of both changes.
            assert!(nic != host && nic != default && host != default && nic != changed && host != changed);
        }
        assert!(!attribute.meaning.is_empty());
        count += 1;
    }
    // model.md §2.1 in full, 13 of switches and 5 of their marking, 15 + 9 of both DCQCNs, 4 of send queues, and 9 of our own.
    assert_eq!(count, 38 + 6 + 9 + 9 + 15 + 13 + 5 + 4);
}

#[test]
fn every_documented_default_is_the_default() {
    for attribute in scenario::attributes() {
        let rest = rest_for(attribute.table);
        let text = format!("[{}]\n{} = {}\n{rest}", attribute.table, attribute.name, attribute.default);
        assert_eq!(plan(&text), plan(rest), "{text}");
    }
}

#[test]
fn the_specifications_component_names_are_tables_too() {
    let ours = r#"
        [nic]
        mss = "2048B"
        ack_threshold = 4
        data_rate = "200Gbps"
        delay = "1us"
        enable_ecn = false
        ecn.fast_recovery_attempt = 7
        rdma_control_packet_tc = 0
        [nic.pcie]
        read_request_size = "32B"
        lane_count = 8
        [nic.pcie.nic_side]
        lane_bps = "7.88Gbps"
        rx_header_buffer_size = "8KB"
        [nic.pcie.host_side]
        tx_data_buffer_size = "128KB"
    "#;
    let theirs = r#"
        [nic]
        ScalaRoceQpManager.MSS = "2048B"
        RoceTransportLayer.AckThreshold = 4
        ECNHandler.EnableECN = false
        ECNHandler.FastRecoveryAttempt = 7
        RdmaApplication.RdmaControlPacketTC = 0
        [nic.NetworkInterface]
        UplinkNetworkInterface.DataRate = "200Gbps"
        TransmissionMedium.Delay = "1us"
        [nic.HostInterface]
        "PCIeGen3.0".LaneCount = 8
        [nic.HostInterface.NICSide]
        NICPCIeHandler.ReadRequestSize = "32B"
        TransactionLayer.RXHeaderBufferSize = "8KB"
        LaneBps = "7.88Gbps"
        [nic.HostInterface.HostSide.TransactionLayer]
        TXDataBufferSize = "128KB"
    "#;
    assert_eq!(plan_with(ours), plan_with(theirs));
}

#[test]
fn a_node_comes_before_the_defaults_and_a_side_before_both_sides() {
    let text = format!(
        "{REST}\n[nic.pcie.nic_side]\nlane_count = 4\n[nic.pcie]\nlane_count = 8\n[nic]\nmss = \"1000B\"\n\
         [nodes.b.nic]\nmss = \"2000B\"\n"
    );
    // TOML takes each header once: the node's header moves to its attributes.
    let plan = plan(&text.replace("[nodes.b]\n", ""));
    let sides = |node: usize| {
        let pcie = &plan.nics[node].config.pcie;
        (pcie.nic_side.lane_count, pcie.host_side.lane_count)
    };
    assert_eq!((sides(0), sides(1)), ((4, 8), (4, 8)));
    assert_eq!([0, 1].map(|node: usize| plan.nics[node].config.mss.get()), [1_000, 2_000]);
}

#[test]
fn decimals_keep_their_digits() {
    let plan = plan_with(
        "[nic]\ndelay = \"83.08ns\"\n[nic.pcie]\nlane_bps = \"31.520000001Gbps\"\n\
         [nic.ingress_buffer]\npfc_static_xoff_threshold = [0.9, 0.7000000000001e0, 1e-1, 0.3, 0, 0, 0, 0]\n"
            .replace("0.7000000000001e0", "0.700000000001")
            .as_str(),
    );
    let nic = &plan.nics[0].config;
    assert_eq!(nic.delay.ps(), 83_080);
    assert_eq!(nic.pcie.nic_side.lane_bps.bps(), 31_520_000_001);
    let xoff = nic.ingress.xoff.map(Share::parts);
    assert_eq!(xoff[..4], [900_000_000_000, 700_000_000_001, 100_000_000_000, 300_000_000_000]);
}

#[test]
fn implicit_connections_are_numbered_by_sender_and_receiver_in_the_order_of_the_posts() {
    let plan = plan(
        r#"
        [nodes.a]
        nic.rdma_data_packet_tc = 1
        [nodes.b]
        [[links]]
        ends = ["a", "b"]
        [[queue_pairs]]
        name = "q"
        ends = ["a", "b"]
        [[posts]]
        from = "b"
        to = "a"
        size = "1B"
        [[posts]]
        from = "a"
        to = "b"
        size = "2B"
        [[posts]]
        from = "b"
        to = "a"
        size = "3B"
    "#,
    );
    let pairs: Vec<_> = plan.queue_pairs.iter().map(|pair| (pair.name.as_str(), pair.implicit)).collect();
    assert_eq!(pairs, [("q", false), ("b->a", true), ("a->b", true)]);
    let ends = |pair: usize| plan.queue_pairs[pair].ends.map(|end| (end.qpn.get(), end.data_class.get()));
    assert_eq!(ends(0), [(2, 1), (2, 0)]);
    // The receiver learns the class from the first packet: it is the sender's.
    assert_eq!(ends(1), [(0x80_0000, 0); 2]);
    assert_eq!(ends(2), [(0x80_0001, 1); 2]);
    assert_eq!(plan.posts.iter().map(|post| post.queue_pair).collect::<Vec<_>>(), [1, 2, 1]);
}

#[test]
fn queue_pair_numbers_go_upward_per_node_around_those_that_are_given() {
    let pair = |more: &str| format!("[[queue_pairs]]\nname = \"q{}\"\nends = [\"a\", \"b\"]\n{more}\n", more.len());
    let text = format!("{}{}{}{REST}", pair(""), pair("qpn = { b = 2 }"), pair("qpn = [3, 7]"));
    let numbers: Vec<_> = plan(&text).queue_pairs.iter().map(|pair| pair.ends.map(|end| end.qpn.get())).collect();
    assert_eq!(numbers, [[2, 3], [4, 2], [3, 7], [0x80_0000, 0x80_0000]]);
}

#[test]
fn values_per_end_follow_the_order_of_ends_or_the_names() {
    let text = |values: &str| format!("{REST}[[queue_pairs]]\nname = \"q\"\nends = [\"b\", \"a\"]\n{values}");
    let array = plan(&text("data_class = [0, 1]\ncontrol_class = 0\ninitial_psn = [5, 6]"));
    let table = plan(&text("data_class = { a = 1, b = 0 }\ncontrol_class = [0, 0]\ninitial_psn = { b = 5, a = 6 }"));
    assert_eq!(array, table);
    let ends = array.queue_pairs[0].ends;
    assert_eq!(ends.map(|end| end.node.0), [1, 0]);
    assert_eq!(
        ends.map(|end| (end.data_class, end.initial_psn.get())),
        [(Class::new(0).unwrap(), 5), (Class::new(1).unwrap(), 6),]
    );
}

#[test]
fn several_errors_are_reported_together() {
    let text = r#"
[scenario]
name = "../up"
[nic]
mss = "9000"
dely = "1ns"
[nodes.a]
[nodes.far-too-long-a-name]
[[links]]
ends = ["a", "c"]
[[posts]]
from = "a"
to = "b"
count = 0
"#;
    let all = refused(text);
    let places: Vec<_> = all.iter().map(|one| (one.line(), one.column())).collect();
    let expected = [(3, 8), (5, 7), (6, 1), (8, 8), (10, 14), (11, 1), (13, 6), (14, 9)];
    assert_eq!(places, expected, "{all}");
    assert!(all.iter().all(|one| !one.help.is_empty()));
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_its_place() {
    let all = refused("[nodes.a]\nx = = 1\ny = \"open\n[nodes.a]\n");
    assert!(all.iter().all(|one| one.severity == Severity::Error));
    let lines: Vec<_> = all.iter().map(|one| one.line()).collect();
    assert!(lines.contains(&2) && lines.contains(&3) && lines.contains(&4), "{all}");
    assert_refused("[nodes.a]\n[nodes.«a»]\n", "duplicate key", "once");
}

#[test]
fn quantities_that_cannot_be_meant_are_refused() {
    assert_all_refused(&[
        ("[nic]\nmss = «4096»", "a size needs a unit", "4096B"),
        ("[nic]\nmss = «\"4096\"»", "a size needs a unit", "4096B"),
        ("[nic]\nmss = «-1»", "cannot be negative", "whole number of octets"),
        ("[nic]\nmss = «\"1.5B\"»", "not finer than an octet", "whole number of octets"),
        ("[nic]\nmss = «\"4 kb\"»", "did you mean `KB`", "KB = 1,000 B"),
        ("[nic]\nmss = «true»", "is a boolean, not a size", "4096B"),
        ("[nic]\ndelay = «\"0.5ps\"»", "not finer than a picosecond", "100ns"),
        ("[nic]\ndelay = «\"-3ns\"»", "cannot be negative", "100ns"),
        ("[nic]\ndelay = «100.5»", "a time needs a unit", "100ns"),
        ("[nic]\ndelay = «\"1year\"»", "not a unit of a time", "ps, ns, us, ms, s"),
        ("[nic]\ndelay = «\"1e9s\"»", "cannot be counted", "213 days"),
        ("[nic]\ndata_rate = «\"0Gbps\"»", "cannot be zero", "above zero"),
        ("[nic]\ndata_rate = «\"400gbps\"»", "did you mean `Gbps`", "400Gbps"),
        ("[nic]\ndata_rate = «\"fast\"»", "starts with a number", "400Gbps"),
        ("[nic.pcie]\nlane_bps = «31520000000»", "a rate needs a unit", "31.52Gbps"),
        ("[nic]\nack_threshold = «-1»", "cannot be -1", "from 0 to 4294967295"),
        ("[nic]\nack_threshold = «16.0»", "not a whole number", "from 0"),
        ("[nic]\nack_coalescing_enabled = «\"true\"»", "not a boolean", "true or false"),
        ("[nic]\n«mss» = { B = 4096 }", "is a table, not a size", "4096B"),
        ("[run]\nNDStatsReportInterval = «0.0000000000001»", "not finer than a picosecond", ""),
        ("[run]\nNDStatsReportInterval = «0»", "cannot be 0 ps", "1 ps or more"),
        ("[run]\nuntil = «\"0s\"»", "does nothing", "10s"),
        ("[scenario]\nseed = «-1»", "cannot be -1", "from 0 up"),
        ("[scenario]\nseed = «18446744073709551616»", "cannot be 18446744073709551616", "from 0 up"),
        ("[scenario]\ndescription = «1»", "not a string", "quotation marks"),
        ("[scenario]\nname = «\"a/b\"»", "cannot be the name of a scenario", "letters, digits"),
        ("[scenario]\nname = «\"..\"»", "cannot be the name of a scenario", "letters, digits"),
        ("[scenario]\nname = «\"\"»", "cannot be the name of a scenario", "letters, digits"),
    ]);
}

#[test]
fn attributes_outside_their_range_are_refused() {
    assert_all_refused(&[
        ("[nic]\nmtu = \"10KB\"\nmss = «\"9217B\"»", "cannot be 9217 B", "1 B to 9216 B"),
        ("[nic]\nmss = «\"0B\"»", "cannot be 0 B", "1 B to 9216 B"),
        ("[nic]\nmss = «\"4126B\"»", "MSS 4126 B + 58 B does not stay below the Mtu of 4184 B", "larger than 4184 B"),
        ("[nic]\nmtu = «\"4154B\"»", "does not stay below", "`mss` smaller than 4096 B"),
        ("[nic]\nwqe_size = «\"96B\"»", "cannot be 96 B", "write 64 B or 128 B"),
        ("[nic]\nwqe_size = «\"1KiB\"»", "cannot be 1024 B", "64 B to 512 B"),
        ("[nic]\nwqe_prefetch = «65»", "cannot be 65", "from 0 to 64"),
        ("[nic]\nblue_flame_max = «\"513B\"»", "cannot be 513 B", "0 B to 512 B"),
        ("[nic]\ndoorbell = «\"modeled\"»", "not a cost of doorbells", "\"free\", \"modelled\""),
        ("[nic]\nretransmit_timeout = «\"0ms\"»", "cannot be 0 ps", "expire as it starts"),
        ("[nic.pcie]\nlane_count = «0»", "cannot be 0", "from 1 to 16"),
        ("[nic.pcie.host_side]\nlane_count = «17»", "cannot be 17", "from 1 to 16"),
        ("[nic]\nrdma_data_packet_tc = «8»", "cannot be 8", "from 0 to 7"),
        ("[nic]\nnum_down_links = «2»", "cannot be 2", "from 1 to 1"),
        ("[nic.egress_buffer]\ntotal_buffer_size = «\"2000GB\"»", "cannot be 2000000000000 B", "0 B to"),
        ("[nic.egress_buffer]\nqueue_scheduling_type = «\"Fair\"»", "not a way to take turns", "RoundRobin"),
    ]);
    // The largest MSS that the default Mtu allows.
    assert_eq!(plan_with("[nic]\nmss = \"4125B\"").nics[0].config.mss.get(), 4_125);
    // The most that can be inline.
    let posts =
        plan_with("[[posts]]\nfrom = \"a\"\nto = \"b\"\nsize = \"480B\"\ninline = true\nblue_flame = true").posts;
    assert!(posts[0].inline && posts[0].blue_flame && !posts[1].inline && !posts[1].blue_flame);
}

#[test]
fn one_node_can_pay_for_its_doorbells_and_another_not() {
    let nics = plan(&REST.replace("[nodes.a]", "[nodes.a]\nnic = { doorbell = \"modelled\", wqe_prefetch = 0 }")).nics;
    let costs = |nic: usize| (nics[nic].config.send_queue.is_modelled(), nics[nic].config.send_queue.wqe_prefetch);
    assert_eq!((costs(0), costs(1)), ((true, 0), (false, 1)));
}

#[test]
fn lists_per_class_are_refused_entry_by_entry() {
    assert_all_refused(&[
        ("[nic.egress_buffer]\npool_allocation_vector = [0.9, «-0.1», 0, 0, 0, 0, 0, 0]", "negative", "[0.9, 0.1"),
        ("[nic.egress_buffer]\npool_allocation_vector = [0.9, «\"x\"», 0, 0, 0, 0, 0, 0]", "a number", "[0.9, 0.1"),
        ("[nic.egress_buffer]\npool_allocation_vector = [0.9, «nan», 0, 0, 0, 0, 0, 0]", "a number", "[0.9, 0.1"),
        ("[nic.egress_buffer]\npool_allocation_vector = «\"[0.9, x, 0, 0, 0, 0, 0, 0]\"»", "entry 1", "[0.9, 0.1"),
        ("[nic.egress_buffer]\npool_allocation_vector = «[0, 0, 0, 0, 0, 0, 0, 0]»", "no class a pool", "non-zero"),
        ("[nic.ingress_buffer]\npool_allocation_vector = [«0», 0.5, 0.5, 0, 0, 0, 0, 0]", "class 0 without", "class 0"),
        (
            "[nic.ingress_buffer]\npool_allocation_vector = [0.9, 0.1, «0», 0.1, 0, 0, 0, 0]",
            "class 2 without",
            "0 between",
        ),
        ("[nic.ingress_buffer]\npool_allocation_vector = «[0.9, 0.1]»", "has 2 entries", "[0.9, 0.1"),
        ("[nic.ingress_buffer]\npool_allocation_vector = «\"1,0,0,0,0,0,0,0,0\"»", "more than eight", "[0.9, 0.1"),
        ("[nic.ingress_buffer]\npool_allocation_vector = «0.9»", "not a list of eight", "[0.9, 0.1"),
        ("[nic.egress_buffer]\nwrr_queue_weights = [1, «3.5», 0, 0, 0, 0, 0, 0]", "not a whole number", "[1, 3"),
        ("[nic.ingress_buffer]\nquanta_value = [«65536», 1, 0, 0, 0, 0, 0, 0]", "from 0 to 65535", "[65535"),
        ("[nic.ingress_buffer]\nquanta_value = [«1.0», 1, 0, 0, 0, 0, 0, 0]", "not a whole number", "[65535"),
        ("[nic.ingress_buffer]\npfc_enable_vector = [1, «2», 0, 0, 0, 0, 0, 0]", "neither 1 nor 0", "1 or 0"),
        ("[nic.ingress_buffer]\npfc_static_xoff_threshold = [0.8, «\"high\"», 0, 0, 0, 0, 0, 0]", "a number", "[0.8"),
        ("[nic.ingress_buffer]\npfc_xon_resume_threshold = [«-0.4», 0, 0, 0, 0, 0, 0, 0]", "negative", "[0.8"),
    ]);
}

#[test]
fn attributes_that_contradict_each_other_are_refused() {
    let cases = [
        (
            "[nic.egress_buffer]\nqueue_scheduling_type = \"WeightedRoundRobin\"\nwrr_queue_weights = «[1, 0, 0, 0, 0, 0, 0, 0]»",
            "class 1 has a pool in `egress_buffer` but weight 0",
            "at least 1",
        ),
        (
            "[nic.ingress_buffer]\nqueue_scheduling_type = «\"WeightedRoundRobin\"»\npool_allocation_vector = [0.5, 0.3, 0.2, 0, 0, 0, 0, 0]",
            "class 2 has a pool in `ingress_buffer` but weight 0",
            "at least 1",
        ),
        ("[nic.ingress_buffer]\nquanta_value = «[65535, 0, 0, 0, 0, 0, 0, 0]»", "class 1", "disable PFC"),
        ("[nic.ingress_buffer]\npfc_enable_vector = «[1, 1, 1, 0, 0, 0, 0, 0]»", "class 2", "disable PFC"),
        ("[nic.pcie.nic_side]\ntx_header_buffer_size = «\"271B\"»", "holds 271 B, but one packet needs 272 B", "272B"),
        ("[nic.pcie.nic_side]\ntx_data_buffer_size = «\"4095B\"»", "needs 4096 B", "4096B"),
        (
            "[nic.pcie.host_side]\nrx_data_buffer_size = «\"4095B\"»",
            "the host side's PCIe receive buffer for data",
            "4096B",
        ),
        ("[nic.pcie.host_side]\ntx_header_buffer_size = «\"0B\"»", "the host side's PCIe transmit buffer", "272B"),
        ("[nic.egress_buffer]\ntotal_buffer_size = «\"4615B\"»", "only 4153 B in the egress_buffer of `a`", "class 0"),
        (
            "[nic.egress_buffer]\npool_allocation_vector = «[1, 0, 0, 0, 0, 0, 0, 0]»",
            "no pool in the egress_buffer of `b`",
            "class 1",
        ),
        (
            "[nic.ingress_buffer]\npool_allocation_vector = «[1, 0, 0, 0, 0, 0, 0, 0]»",
            "no pool in the ingress_buffer of `a`",
            "class 1",
        ),
        ("[nic]\nrdma_data_packet_tc = «2»", "no pool in the egress_buffer of `a`", "class 2"),
    ];
    for (beginning, message, help) in cases {
        let marked = format!("{beginning}\n{REST}");
        let all = refused(&unmark(&marked).0);
        // The same fault may show at the other node, or in the other buffer.
        let first = all.iter().find(|one| one.message.contains(message)).unwrap_or_else(|| panic!("{message}\n{all}"));
        assert_eq!(first.span, unmark(&marked).1, "{all}");
        assert!(first.help.contains(help), "{all}");
        assert!(all.iter().all(|one| one.severity == Severity::Error && one.span == first.span), "{all}");
    }
    // Smaller packets from the peer need less of the receiving side.
    plan_with("[nic]\nmss = \"512B\"\n[nic.pcie]\ntx_header_buffer_size = \"34B\"\ntx_data_buffer_size = \"512B\"");
}

#[test]
fn keys_that_nobody_knows_are_refused_with_the_nearest_one() {
    assert_all_refused(&[
        (
            "«colour» = 1",
            "the scenario has no key `colour`",
            "known keys: scenario, run, nic, switch, topology, nodes, switches, links",
        ),
        ("[scenario]\n«nam» = \"x\"", "[scenario] has no key `nam`", "name, description, seed"),
        ("[nic]\n«max_segment» = 1", "[nic] has no key `max_segment`", "data_rate, delay, mtu, mss"),
        ("[nic.egress_buffer]\n«quanta_value» = 1", "[nic.egress_buffer] has no key", "wrr_queue_weights"),
        ("[nic.pcie.nic_side]\n«width» = 1", "[nic.pcie.nic_side] has no key `width`", "lane_bps, lane_count"),
        ("[run]\n«utnil» = \"1s\"", "[run] has no key `utnil`", "until"),
    ]);
    let label = |beginning: &str| refused(&format!("{beginning}\n{REST}"))[0].label.clone();
    assert_eq!(label("[nic]\ndely = \"1ns\""), "did you mean `delay`?");
    assert_eq!(label("[nic]\nDatarate = \"1Gbps\""), "did you mean `data_rate`?");
    assert_eq!(label("[nic.egress_buffer]\nquanta_value = 1"), "this belongs in [nic.ingress_buffer]");
    assert_eq!(label("mss = \"1B\""), "this belongs in [nic]");
    assert_eq!(label("[run]\nutnil = 1"), "did you mean `until`?");
    assert_eq!(label("[nic]\nminimum_rate_percentage = 1"), "this belongs in [nic.ecn]");
    assert_eq!(label("[nic]\newma_weight = 1"), "this belongs in [switch.ecn]");
    assert_eq!(label("[switch]\nmss = \"1B\""), "this belongs in [nic]");
    let unlinked = refused(&format!("[switches.s]\newma_weight = 1\n{REST}"));
    assert!(unlinked.iter().any(|one| one.label == "this belongs in [switches.s.ecn]"), "{unlinked}");
    let all = refused(&REST.replace("[nodes.b]", "[nodes.b]\nmss = \"1KB\"\nnic.lane_count = 2"));
    let labels: Vec<_> = all.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(labels, ["this belongs in [nodes.b.nic]", "this belongs in [nodes.b.nic.pcie]"]);
}

#[test]
fn an_attribute_given_twice_is_refused() {
    assert_all_refused(&[
        ("[nic]\nmss = \"4096B\"\n«MSS» = \"4096B\"", "`mss` and `MSS` are the same attribute", "one of the two"),
        ("[nic]\nRoceTransportLayer.AckDelay = \"1ms\"\n«ack_delay» = \"1ms\"", "same attribute", "one of the two"),
        (
            "[nic.egress_buffer]\ntotal_buffer_size = \"1MB\"\n[nic.EgressBufferManager]\n«total_buffer_size» = \"1MB\"",
            "same attribute",
            "one of the two",
        ),
        ("[run]\nNDStatsReportInterval = 1\n«nd_stats_report_interval» = 1", "same attribute", "one of the two"),
    ]);
    let twice = refused(&format!("[nic]\nmss = \"1KB\"\nMSS = \"1KB\"\n{REST}"));
    assert_eq!(twice[0].related.len(), 1, "the first place is shown as well");
}

#[test]
fn tables_of_the_wrong_shape_are_refused() {
    for (marked, message, help) in [
        ("«»", "the scenario has no `nodes`", "[nodes.a]"),
        ("«nodes» = {}", "the scenario has no node", "[nodes.a]"),
        ("nodes = «3»", "`nodes` is a whole number, not a table", "[nodes.NAME]"),
        ("nodes.a = «true»\n", "`a` is a boolean, not a table", "[nodes.a]"),
        ("nic = «\"fast\"»\n[nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]", "not a table", "[nic]"),
        ("links = «[1]»".replace("«[1]»", "[«1»]").as_str(), "not a list of tables", "[[links]]"),
        ("[«posts»]\nsize = \"1B\"\n", "`posts` is a table, not a list of tables", "[[posts]]"),
    ] {
        let marked = match marked {
            "«»" => marked.to_owned(),
            _ if marked.contains("nodes") => marked.to_owned(),
            _ => format!("{marked}\n[nodes.a]\n[nodes.b]\n[[queue_pairs]]\nname = \"q\"\nends = [\"a\", \"b\"]"),
        };
        let all = refused(&unmark(&marked).0);
        let one = all.iter().find(|one| one.message.contains(message)).unwrap_or_else(|| panic!("{message}\n{all}"));
        assert_eq!(one.span, unmark(&marked).1, "{all}");
        assert!(one.help.contains(help), "{all}");
    }
}

#[test]
fn nodes_and_links_that_cannot_be_are_refused() {
    let two = "[nodes.a]\n[nodes.b]\n";
    let three = "[nodes.a]\n[nodes.b]\n[nodes.c]\n";
    for (nodes, marked, message, help) in [
        ("", "[nodes.«\"a b\"»]\n", "`a b` cannot be the name of a node", "1 to 15 letters, digits"),
        ("", "[nodes.«\"..\"»]\n", "`..` cannot be the name", "letters, digits"),
        ("", "[nodes.«abcdefghijklmnop»]\n", "cannot be the name of a node", "1 to 15"),
        ("", "[nodes.«-a»]\n", "cannot be the name of a node", "the first one a letter or a digit"),
        ("", "[nodes.«\"\"»]\n", "cannot be the name of a node", "1 to 15"),
        (two, "[[links]]\nends = [\"a\", «\"bb\"»]", "there is no node `bb`", "known nodes: a, b"),
        (two, "[[links]]\nends = «[\"a\", \"a\"]»", "both ends are `a`", "ends = [\"a\", \"b\"]"),
        (two, "[[links]]\nends = «[\"a\"]»", "`ends` names 1 nodes", "ends = [\"a\", \"b\"]"),
        (two, "[[links]]\nends = «\"ab\"»", "is a string, not an array", "ends = [\"a\", \"b\"]"),
        (two, "[[links]]\nends = [\"a\", «2»]", "not a string", "quotation marks"),
        (two, "«[[links]]»\ndelay = \"1ns\"", "[[links]] has no `ends`", "ends = [\"a\", \"b\"]"),
        (
            two,
            "[[links]]\nends = [\"a\", \"b\"]\n«speed» = 1",
            "[[links]] has no key `speed`",
            "ends, delay, data_rate",
        ),
        (two, "[[links]]\nends = [\"a\", \"b\"]\ndelay = «5»", "a time needs a unit", "100ns"),
        (
            two,
            "[[links]]\nends = [\"a\", \"b\"]\ndelay = «[\"5ns\"]»",
            "has 1 values",
            "{ a = \u{2026}, b = \u{2026} }",
        ),
        (two, "[[links]]\nends = [\"a\", \"b\"]\ndelay = { «c» = \"5ns\" }", "`c` is at neither end", "{ a ="),
        (
            three,
            "[[links]]\nends = [\"a\", \"b\"]\n[[links]]\nends = [«\"b\"», \"c\"]",
            "`b` already has a link",
            "switch",
        ),
        (
            three,
            "[[links]]\nends = [\"a\", \"b\"]\n[[queue_pairs]]\nname = \"q\"\nends = «[\"a\", \"c\"]»",
            "no way between `a` and `c`",
            "[[links]]",
        ),
        (
            three,
            "[[links]]\nends = [\"a\", \"b\"]\n[[posts]]\nfrom = \"a\"\nto = «\"c\"»\nsize = \"1B\"",
            "no way",
            "[[links]]",
        ),
    ] {
        let marked = format!("{nodes}{marked}");
        let all = refused(&unmark(&marked).0);
        let errors: Vec<_> = all.iter().filter(|one| one.severity == Severity::Error).collect();
        assert_eq!(errors.len(), 1, "{all}");
        assert_eq!(errors[0].span, unmark(&marked).1, "{all}");
        assert!(errors[0].message.contains(message) && errors[0].help.contains(help), "{all}");
    }
}

#[test]
fn queue_pairs_and_posts_that_cannot_work_are_refused() {
    let pair = "[[queue_pairs]]\nname = \"q\"\nends = [\"a\", \"b\"]\n";
    let post = "[[posts]]\nqueue_pair = \"q\"\nfrom = \"a\"\n";
    for (marked, message, help) in [
        ("[[queue_pairs]]\nname = «\"a b\"»\nends = [\"a\", \"b\"]".to_owned(), "name of a queue pair", "letters"),
        ("«[[queue_pairs]]»\nends = [\"a\", \"b\"]".to_owned(), "[[queue_pairs]] has no `name`", "name = \"q1\""),
        (
            format!("{pair}[[queue_pairs]]\nname = «\"q\"»\nends = [\"a\", \"b\"]"),
            "two queue pairs named `q`",
            "its own",
        ),
        (format!("{pair}qpn = «1»"), "management queue pair", "from 2 to 8388607"),
        (format!("{pair}qpn = [5, «0»]"), "management queue pair", "from 2"),
        (format!("{pair}qpn = «0xffffff»"), "multicast", "from 2"),
        (format!("{pair}qpn = «0x800000»"), "implicit connections", "from 2"),
        (format!("{pair}qpn = «0x1000000»"), "cannot be 0x1000000", "from 0 to 16777215"),
        (
            format!("{pair}qpn = 7\n[[queue_pairs]]\nname = \"p\"\nends = [\"b\", \"a\"]\nqpn = {{ a = «7» }}"),
            "number 7 is taken at this node",
            "leave `qpn` out",
        ),
        (format!("{pair}initial_psn = «0x1000000»"), "cannot be 0x1000000", "from 0 to 16777215"),
        (format!("{pair}data_class = {{ b = «8» }}"), "cannot be 8", "from 0 to 7"),
        (format!("{pair}{post}size = «\"2147483649B\"»"), "cannot have 2147483649 B", "2GiB"),
        (format!("{pair}{post}size = «4096»"), "a size needs a unit", "4096B"),
        (format!("{pair}«[[posts]]»\nqueue_pair = \"q\"\nfrom = \"a\""), "has no `size`", "size = \"1MiB\""),
        (format!("{pair}{post}size = \"1B\"\nverb = «\"read\"»"), "`read` is not a verb", "\"send\""),
        (format!("{pair}{post}size = \"1B\"\ncount = «0»"), "cannot be 0", "from 1 to 4000000"),
        (format!("{pair}{post}size = \"1B\"\nat = «\"10s\"»"), "the run ends at 10 s", "until"),
        (format!("{pair}{post}size = \"1B\"\ncount = 3\nevery = «\"5s\"»"), "the run ends at 10 s", "until"),
        (format!("{pair}{post}size = \"1B\"\nat = «0»"), "a time needs a unit", "100ns"),
        (
            "[[posts]]\nqueue_pair = «\"q\"»\nfrom = \"a\"\nsize = \"1B\"".to_owned(),
            "no queue pair `q`",
            "[[queue_pairs]]",
        ),
        (
            format!("{pair}[[posts]]\nqueue_pair = «\"qq\"»\nfrom = \"a\"\nsize = \"1B\""),
            "no queue pair `qq`",
            "known queue pairs: q",
        ),
        (format!("{pair}«[[posts]]»\nqueue_pair = \"q\"\nsize = \"1B\""), "has no `from`", "from = \"a\""),
        ("«[[posts]]»\nfrom = \"a\"\nsize = \"1B\"".to_owned(), "neither `queue_pair` nor `to`", "to = \"b\""),
        ("[[posts]]\nfrom = \"a\"\nto = «\"a\"»\nsize = \"1B\"".to_owned(), "cannot post to itself", "another node"),
        ("[[posts]]\nfrom = \"a\"\nto = «\"x\"»\nsize = \"1B\"".to_owned(), "no node `x`", "known nodes: a, b"),
        (format!("{pair}{post}size = \"1B\"\nto = «\"a\"»"), "cannot post to itself", "another node"),
        (format!("{pair}{post}size = \"481B\"\ninline = «true»"), "481 B do not fit", "at most 480 B"),
        (format!("{pair}{post}size = \"1B\"\nblue_flame = «1»"), "a boolean", "true or false"),
        (format!("{pair}{post}size = \"1B\"\n«tag» = 1"), "[[posts]] has no key `tag`", "at, queue_pair, from, to"),
        (
            format!(
                "{pair}{post}size = \"1B\"\ncount = 4000000\n«[[posts]]»\nqueue_pair = \"q\"\nfrom = \"a\"\nsize = \"1B\""
            ),
            "more than 4000000 messages",
            "count",
        ),
    ] {
        let nodes = "[nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]\n";
        assert_refused(&format!("{nodes}{marked}"), message, help);
    }
    let others = "[nodes.a]\n[nodes.b]\n[nodes.c]\n[nodes.d]\n[[links]]\nends = [\"a\", \"b\"]\n[[links]]\nends = [\"c\", \"d\"]\n";
    let marked = format!("{others}{pair}[[posts]]\nqueue_pair = \"q\"\nfrom = «\"c\"»\nsize = \"1B\"");
    assert_refused(&marked, "`c` is at neither end of queue pair `q`", "its ends are `a` and `b`");
}

#[test]
fn classes_without_the_pools_they_need_are_refused_at_both_ends() {
    let pair = "[[queue_pairs]]\nname = \"q\"\nends = [\"a\", \"b\"]\n";
    for (classes, expected) in [
        // What b sends leaves through its egress buffer and enters the ingress buffer of a.
        (
            "data_class = { b = «2» }",
            [("data", "no pool in the egress_buffer of `b`"), ("data", "ingress_buffer of `a`")],
        ),
        // What answers b leaves a and enters b.
        ("control_class = [«5», 1]", [("control", "no pool in the egress_buffer of `a`"), ("control", "of `b`")]),
    ] {
        let marked = format!("{pair}{classes}\n{REST}");
        let all = refused(&unmark(&marked).0);
        assert_eq!(all.len(), 2, "{all}");
        for (one, (kind, place)) in all.iter().zip(expected) {
            assert_eq!(one.span, unmark(&marked).1, "{all}");
            assert!(one.message.starts_with(kind) && one.message.contains(place), "{all}");
            assert!(one.help.contains("pool_allocation_vector"), "{all}");
        }
    }
}

#[test]
fn what_runs_but_surprises_is_warned_about() {
    for (beginning, message, help) in [
        // Headroom: 3,600,000 - 3,585,600 = 14,400 B; 2 x 400 Gb/s x 100 ns / 8 + 2 x 4,184 B = 18,368 B.
        (
            "[nic.ingress_buffer]\npfc_static_xoff_threshold = «[0.996, 0.8, 0, 0, 0, 0, 0, 0]»",
            "class 0 has 14400 B of headroom above Xoff, less than 18368 B",
            "2 x DataRate x Delay / 8 + 2 x Mtu",
        ),
        // Class 1: 400,000 x 0.2 = 80,000 B, against 2 x 400 Gb/s x 1 us / 8 + 2 x 4,184 B = 108,368 B.
        ("[nic]\ndelay = «\"1us\"»", "class 1 has 80000 B of headroom above Xoff, less than 108368 B", "larger pool"),
        (
            "[nic.ingress_buffer]\npfc_xon_resume_threshold = «[0.4, 0.8, 0, 0, 0, 0, 0, 0]»",
            "class 1 resumes at 0.8 of its pool but pauses only at 0.8",
            "can start it again",
        ),
    ] {
        assert_warned(&format!("{beginning}\n{REST}"), message, help);
    }
    let slow = REST.replace("[nodes.b]", "[nodes.b]\nnic.data_rate = \"25Gbps\"");
    let slow = slow.replace("[\"a\", \"b\"]", "«[\"a\", \"b\"]»");
    assert_warned(&slow, "`a` has a data rate of 400 Gb/s and `b` one of 25 Gb/s", "the lower rate holds at both ends");
    assert_warned(&REST.replace("[nodes.b]", "[nodes.b]\n[nodes.«c»]"), "`c` has no link", "[[links]]");
    // Without PFC nothing promises that nothing is lost.
    let off = "[nic]\ndelay = \"1ms\"\n[nic.ingress_buffer]\npfc_enable_vector = [0, 0, 0, 0, 0, 0, 0, 0]";
    assert!(parsed(&format!("{off}\n{REST}")).warnings.is_empty());
}

#[test]
fn files_without_bounds_are_refused() {
    let long = format!("{REST}#{}", " ".repeat(4 << 20));
    assert!(refused(&long)[0].message.contains("more than 4194304"));
    let many: String = (0..65_535).map(|node| format!("[nodes.{node}]\n")).collect();
    let all = refused(&many);
    assert!(all.iter().any(|one| one.message.contains("more than 65534 nodes") && one.line() == 65_535), "{all}");
}

#[test]
fn people_see_the_place_and_what_would_be_right() {
    let text = "[nodes.a]\n[nodes.b]\n\n[nic]\nmss = \"4096\"\n";
    let shown = scenario::parse("netns/mine.toml", text).unwrap_err().render(false);
    insta::assert_snapshot!(shown.split("\n\n").find(|one| one.contains("mss")).unwrap(), @r#"
    error: `mss`: a size needs a unit
     --> netns/mine.toml:5:7
      |
    5 | mss = "4096"
      |       ^^^^^^ no unit
      |
      = help: write a whole number of octets with a unit (B, KB = 1,000 B, KiB = 1,024 B, MB, MiB, GB, GiB), for example "4096B" or "1MiB"
    "#);
}

/// Pieces that mean something in a scenario file, for texts that get past the first check.
const PIECES: &[&str] = &[
    "\n",
    " ",
    "=",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    ".",
    "\"",
    "'",
    "#",
    "-",
    "_",
    "0",
    "1",
    "9e99",
    "0x",
    "nan",
    "inf",
    "true",
    "1979-05-27",
    "\"\"\"",
    "\u{e4}",
    "\u{1f980}",
    "\t",
    "\r\n",
    "nodes",
    "a",
    "b",
    "nic",
    "links",
    "posts",
    "ends",
    "queue_pairs",
    "name",
    "\"a\"",
    "\"b\"",
    "\"1MiB\"",
    "\"1ns\"",
    "\"400Gbps\"",
    "size",
    "from",
    "to",
    "delay",
    "qpn",
    "mss",
    "pcie",
    "nic_side",
    "[0.9, 0.1, 0, 0, 0, 0, 0, 0]",
    "pool_allocation_vector",
    "egress_buffer",
    "topology",
    "star",
    "nics",
    "switches",
    "switch",
    "ecn",
    "shift",
    "\"n*\"",
    "data_rate",
    "\"auto\"",
];

/// Replaces the octets between two places of `text` by `piece`.
fn mutate(text: &str, (from, length, piece): (prop::sample::Index, usize, usize)) -> String {
    let from = text.floor_char_boundary(from.index(text.len() + 1));
    let to = text.ceil_char_boundary((from + length).min(text.len()));
    format!("{}{}{}", &text[..from], PIECES[piece], &text[to..])
}

/// Whatever the text says: an answer that can be shown, and a plan only if nothing is wrong.
fn answer(text: &str) {
    match scenario::parse("any.toml", text) {
        Ok(parsed) => assert!(!parsed.warnings.has_errors(), "{}", parsed.warnings),
        Err(refused) => {
            assert!(refused.has_errors());
            assert!(!refused.render(true).is_empty() && refused.iter().all(|one| !one.help.is_empty()));
        }
    }
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        answer(&text);
    }

    #[test]
    fn any_pieces_have_an_answer(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        answer(&pieces.into_iter().map(|piece| PIECES[piece]).collect::<String>());
    }

    #[test]
    fn a_broken_file_has_an_answer(
        text in prop::sample::select(&[PAIR, RICH, SWITCHED][..]),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, 0..PIECES.len()), 1..6),
    ) {
        answer(&mutations.into_iter().fold(text.to_owned(), |text, mutation| mutate(&text, mutation)));
    }
}
