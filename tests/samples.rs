//! What lies in the repository to be looked at is what the program makes of it, and is explained.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::run_well;

fn samples(extension: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("pcaps");
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|of_path| of_path == extension));
    paths.sort();
    paths
}

#[test]
fn samples_are_made_again_to_the_last_octet() {
    let scenarios = samples("toml");
    assert!(!scenarios.is_empty());
    for scenario in scenarios {
        let sample = scenario.with_extension("pcapng");
        let made = run_well(&fs::read_to_string(&scenario).unwrap(), &[]);
        let (old, new) = (fs::read(&sample).unwrap(), fs::read(made.path("capture.pcapng")).unwrap());
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        // After a change that is meant, the commands in pcaps/README.md make it anew.
        assert!(old == new, "{} differs from octet {same} on", sample.display());
    }
}

#[test]
fn samples_are_small_and_explained() {
    let explained = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("pcaps/README.md")).unwrap();
    for sample in samples("pcapng") {
        assert!(sample.with_extension("toml").exists(), "{} has no scenario", sample.display());
        assert!(fs::metadata(&sample).unwrap().len() < 100_000, "{} is large", sample.display());
        let name = sample.file_name().and_then(|name| name.to_str()).unwrap();
        assert!(explained.contains(name), "pcaps/README.md does not say what {name} shows");
    }
}

#[test]
fn every_scenario_is_in_the_list() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("netns");
    let list = fs::read_to_string(dir.join("README.md")).unwrap();
    for entry in fs::read_dir(&dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".toml") || list.contains(&format!("]({name})")), "netns/README.md lacks {name}");
    }
}
