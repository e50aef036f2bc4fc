//! Any text as a Lumina event file: reading it and applying it to a scenario never panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rocemu::{Scenario, scenario::lumina};

fuzz_target!(|text: &str| {
    let Ok(script) = lumina::parse("events.yaml", text) else { return };
    let Ok(mut plan) = Scenario::pair().write("a", "b", "64KiB").plan() else { return };
    let _ = script.apply(&mut plan);
});
