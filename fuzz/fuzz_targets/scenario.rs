//! Any text as a scenario file: reading it never panics, every refusal has a place, and what is accepted is complete.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rocemu::scenario;

fuzz_target!(|text: &str| {
    match scenario::parse("fuzz.toml", text) {
        Ok(parsed) => {
            let _ = parsed.plan.names();
            let _ = parsed.warnings.render(false);
        }
        Err(diagnostics) => {
            assert!(diagnostics.has_errors());
            for diagnostic in &diagnostics {
                assert!(diagnostic.line() >= 1 && diagnostic.column() >= 1);
            }
            let _ = diagnostics.render(true);
        }
    }
});
