//! Scenario files: what they say, and what is refused where.

use rocemu::base::{Instant, Octets, Span};
use rocemu::nic;
use rocemu::scenario::{self, Plan};
use rocemu::wire::Verb;

fn plan(text: &str) -> Plan {
    match scenario::parse("test.toml", text) {
        Ok(parsed) => parsed.plan,
        Err(refused) => panic!("{refused}"),
    }
}

#[test]
fn the_pair_that_people_run_first_is_at_its_defaults() {
    let text = include_str!("../netns/pair.toml");
    let parsed = scenario::parse("netns/pair.toml", text).unwrap_or_else(|refused| panic!("{refused}"));
    assert!(parsed.warnings.is_empty(), "{}", parsed.warnings);
    let plan = parsed.plan;
    assert_eq!((plan.name.as_str(), plan.seed), ("pair", 1));
    assert_eq!(plan.until, Instant::ZERO + Span::from_secs(10));
    assert!(plan.nics.iter().all(|nic| nic.config == nic::Config::default()));
    assert_eq!(plan.posts.len(), 1);
    assert_eq!((plan.posts[0].verb, plan.posts[0].size), (Verb::Write, Octets::new(1 << 20)));
}
