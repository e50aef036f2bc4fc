//! What the program says, to whom, and how it ends when nobody can hear it.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{PROGRAM, eventually, has, one_write, pair, program, run, run_well, scratch, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rocemu::Scenario;

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

/// A run that fails in three ways at once.
fn failing() -> String {
    one_write("64KiB")
        + "[[expect]]\ncounter = \"num_nacks_sent\"\nat_least = 1\n\
           [[faults]]\nname = \"the loss\"\nfrom = \"a\"\nto = \"b\"\naction = \"drop\"\nmatch = { psn = 100 }\n"
}

/// Longer than anybody waits.
fn endless() -> String {
    pair(&format!("{}{}", common::queue_pair("q1"), common::post("q1", "a", "write", "64KiB", 1_000_000)))
}

// --- quiet and verbose ---

#[test]
fn quiet_runs_that_fail_say_why() {
    let ran = run(&failing(), &["-q", "--wires", "memory"]);
    ran.assert_code(1);
    assert_eq!(ran.stdout, "");
    let expected = "FAILED: expectation 1: expected num_nacks_sent: at least 1; got 0\n\
                    FAILED: fault `the loss` never happened: no frame matched\n";
    assert_eq!(ran.stderr, expected);
    let unfinished = run(&one_write("1MiB"), &["-q", "--wires", "memory", "--until", "1us"]);
    unfinished.assert_code(1);
    assert_eq!(unfinished.stderr, "FAILED: 1 message unfinished at 1 us: 0\n");
}

#[test]
fn quiet_runs_say_of_a_lossless_violation_what_was_full() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("netns/headroom-too-small.toml");
    let scenario = fs::read_to_string(scenario).unwrap().replace("allow_lossless_drops = true", "");
    let ran = run(&scenario, &["-q", "--wires", "memory", "--capture", "off"]);
    ran.assert_code(1);
    assert!(ran.stderr.starts_with("FAILED: LOSSLESS VIOLATION: "), "{}", ran.stderr);
    let allowed = run(&scenario, &["-q", "--wires", "memory", "--capture", "off", "--allow-lossless-drops"]);
    assert!(!allowed.stderr.contains("VIOLATION"), "{}", allowed.stderr);
}

#[test]
fn verbose_runs_and_tests_say_what_they_do() {
    let ran = run_well(&one_write("1B"), &["-v"]);
    for words in ["2 nodes, 1 link, over veth pairs", "the outputs are in out/"] {
        assert!(ran.stderr.contains(words), "no `{words}` in\n{}", ran.stderr);
    }
    let output = program(["test", "-v", "scenario.toml"]).current_dir(ran.dir.path()).output().unwrap();
    assert!(text(&output.stderr).contains("scenario.toml: over veth pairs"), "{}", text(&output.stderr));
}

// --- readers in trouble ---

#[test]
fn output_that_cannot_be_written_is_exit_code_3() {
    let dir = scratch();
    fs::write(dir.path().join("scenario.toml"), one_write("1B")).unwrap();
    let commands: &[&[&str]] = &[
        &["run", "scenario.toml"],
        &["run", "scenario.toml", "--ladder"],
        &["check", "scenario.toml"],
        &["test", "scenario.toml"],
        &["show", "out/scenario"],
        &["doctor"],
        &["explain"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    for arguments in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(*arguments).current_dir(dir.path()).env_remove("RUST_LOG").stdin(Stdio::null()).stdout(full);
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert_eq!(common::files_in(&dir.path().join("out/scenario")).len(), 5, "the files are safe all the same");
}

// --- colours ---

/// What the program says on a terminal, if there is `script` to make one.
fn on_a_terminal(variables: &[(&str, &str)]) -> Option<String> {
    if !has("script") {
        skip("needs script to make a terminal");
        return None;
    }
    let dir = scratch();
    fs::write(dir.path().join("wrong.toml"), "nodes = 3").unwrap();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{PROGRAM} check wrong.toml"), "/dev/null"]).current_dir(dir.path());
    command.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied()).stdin(Stdio::null());
    Some(text(&command.output().unwrap().stdout))
}

#[test]
fn diagnostics_have_colours_only_where_they_are_wanted() {
    let Some(coloured) = on_a_terminal(&[]) else { return };
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_a_terminal(&[variable]).unwrap();
        assert!(plain.contains("wrong.toml:1:") && !plain.contains('\u{1b}'), "{variable:?}: {plain:?}");
    }
    assert!(on_a_terminal(&[("NO_COLOR", "")]).unwrap().contains("\u{1b}["), "an empty NO_COLOR says nothing");
}

#[test]
fn remarks_say_themselves_what_they_are() {
    let dir = scratch();
    // The lonely node is a warning, and stands before the error.
    let scenario = format!("[nodes.lonely]\n{}wrong = 1\n", one_write("1B"));
    fs::write(dir.path().join("warned.toml"), scenario).unwrap();
    let output = program(["check", "warned.toml"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("warning: `lonely` has no link"), "{}", text(&output.stderr));
}

// --- arguments ---

#[test]
fn negative_values_are_refused_for_what_they_are() {
    let dir = scratch();
    let cases: [(&[&str], &str); 5] = [
        (&["run", "x.toml", "--until", "-5ms"], "a time cannot be negative"),
        (&["run", "x.toml", "--queues", "--queue-interval", "-5ms"], "a time cannot be negative"),
        (&["show", "out/x", "--from", "-1us"], "a time cannot be negative"),
        (&["show", "out/x", "--until", "-1us"], "a time cannot be negative"),
        (&["run", "x.toml", "--seed", "-1"], "invalid value '-1' for '--seed <SEED>'"),
    ];
    for (arguments, words) in cases {
        let output = program(arguments).current_dir(dir.path()).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn an_empty_span_of_a_ladder_is_refused() {
    let output = program(["show", "out/x", "--from", "20us", "--until", "1us"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("turn them around"), "{}", text(&output.stderr));
}

// --- what is left, and where ---

#[test]
fn a_file_is_no_place_for_outputs() {
    let dir = scratch();
    fs::write(dir.path().join("scenario.toml"), one_write("1B")).unwrap();
    let mut command = program(["run", "scenario.toml", "--wires", "memory", "-o", "scenario.toml"]);
    let output = command.current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("scenario.toml: it is not a directory"), "{}", text(&output.stderr));
}

#[test]
fn a_run_that_leaves_nothing_leaves_no_directory() {
    let dir = scratch();
    fs::write(dir.path().join("endless.toml"), endless()).unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$0\" run endless.toml --wires memory --out made/for/this", PROGRAM])
        .current_dir(dir.path())
        .output()
        .unwrap();
    // A limit on files is no signal that ends everything, but an error of the disk.
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("File too large"), "{}", text(&output.stderr));
    assert!(!dir.path().join("made").exists(), "directories that the run has made go with it");
    let kept = dir.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let mut child = started(dir.path(), &["run", "endless.toml", "--wires", "memory", "--out", "kept"]);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    eventually("it has ended", || child.try_wait().unwrap().is_some());
    assert!(kept.exists(), "what was there before stays");
}

#[test]
fn memory_that_the_machine_does_not_have_is_exit_code_3() {
    let dir = scratch();
    fs::write(dir.path().join("large.toml"), one_write("2GiB")).unwrap();
    let script = "ulimit -v \"$1\"; exec \"$0\" run large.toml --wires memory --capture off --until 30us";
    let with = |kib: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script, PROGRAM, kib]).current_dir(dir.path()).output().unwrap()
    };
    let refused = with("1500000");
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains("may take 2048 MiB of this machine's memory") && said.contains("too little memory"),
        "{said}"
    );
    // It is received into memory as it comes, and sent from none.
    let unfinished = with("3000000");
    assert_eq!(unfinished.status.code(), Some(1), "{}", text(&unfinished.stderr));
}

// --- test ---

#[test]
fn junit_is_written_as_all_outputs_are_and_its_place_is_tried_first() {
    let dir = scratch();
    fs::write(dir.path().join("scenario.toml"), one_write("1B")).unwrap();
    fs::write(dir.path().join("probe"), "").unwrap();
    let test = |junit: &str| {
        let mut command = program(["test", "scenario.toml", "--wires", "memory", "--junit", junit]);
        command.current_dir(dir.path()).output().unwrap()
    };
    assert_eq!(test("results.xml").status.code(), Some(0));
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("results.xml"), mode("probe"));
    assert!(fs::read_to_string(dir.path().join("results.xml")).unwrap().contains("name=\"scenario.toml\""));
    for place in ["nowhere/results.xml", "/proc/results.xml", "."] {
        let refused = test(place);
        let said = text(&refused.stderr);
        assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(3), ""), "nothing has run: {said}");
        assert!(said.contains(&format!("cannot write {place}: ")) && !said.contains("tmp"), "{said}");
    }
}

/// A process that listens to signals by now.
fn started(dir: &Path, arguments: &[&str]) -> Child {
    // As in the background of a shell, where SIGINT is ignored.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$0\" \"$@\"", PROGRAM]).args(arguments).current_dir(dir);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    eventually("both signals are caught", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask of signals");
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        [Signal::SIGINT, Signal::SIGTERM].iter().all(|&signal| caught & (1 << (signal as u32 - 1)) != 0)
    });
    child
}

#[test]
fn an_interrupted_test_says_so_and_keeps_what_was_done() {
    for (signal, wires) in [(Signal::SIGINT, "memory"), (Signal::SIGTERM, "veth")] {
        let dir = scratch();
        for (name, scenario) in [("a.toml", one_write("1B")), ("b.toml", endless()), ("c.toml", one_write("1B"))] {
            fs::write(dir.path().join(name), scenario).unwrap();
        }
        let arguments = ["test", "-v", "a.toml", "b.toml", "c.toml", "--wires", wires, "--junit", "junit.xml"];
        let mut child = started(dir.path(), &arguments);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        eventually("it has ended", || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(130), "{said}{}", text(&output.stderr));
        assert!(said.contains("interrupted") && !said.contains("c.toml"), "{said}");
        let junit = fs::read_to_string(dir.path().join("junit.xml")).unwrap();
        assert!(!junit.contains("c.toml"), "{junit}");
    }
}

// --- scripts ---

#[test]
fn scripts_say_what_they_lack() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if has("python3") {
        let dir = scratch();
        fs::create_dir(dir.path().join("scapy")).unwrap();
        fs::write(dir.path().join("scapy/__init__.py"), "raise ImportError('none here')").unwrap();
        let check = |path: &Path, file: &str| {
            let mut command = Command::new("python3");
            command.arg(root.join("scripts/check-icrc")).arg(file).env("PYTHONPATH", path).output().unwrap()
        };
        let missing = check(dir.path(), "any.pcapng");
        assert_eq!(missing.status.code(), Some(3), "{}", text(&missing.stderr));
        assert!(text(&missing.stderr).contains("this needs scapy"), "{}", text(&missing.stderr));
    } else {
        skip("needs python3");
    }
    if common::is_root() && has("setpriv") {
        let script = fs::read_to_string(root.join("netns/pair.sh")).unwrap();
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "bash",
            "-c",
            &script,
            "pair.sh",
            "up",
        ]);
        let refused = command.current_dir("/").output().unwrap();
        assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stderr));
        assert_eq!(text(&refused.stderr), "pair.sh: only root may give names to network namespaces: sudo pair.sh up\n");
    } else {
        skip("needs root and setpriv to become an ordinary user");
    }
}

// --- what can be written ---

#[test]
fn explain_has_a_line_for_every_key_and_finds_words() {
    let explain = |arguments: &[&str]| {
        let output = program(["explain"].iter().chain(arguments)).output().unwrap();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, all) = explain(&[]);
    assert_eq!(code, Some(0));
    for words in
        ["[nic]  mss = \"4096B\"  # size", "[[posts]]  size", "action  \"drop\"", "event  nak_made", "counter  num_rto"]
    {
        assert!(all.contains(words), "no `{words}` in\n{all}");
    }
    let (code, events) = explain(&["events"]);
    assert!(
        code == Some(0) && events.lines().skip(1).all(|line| line.is_empty() || line.starts_with("event  ")),
        "{events}"
    );
    let (code, found) = explain(&["XOFF"]);
    assert!(code == Some(0) && found.contains("kind  \"xoff\"") && !found.contains("mss"), "{found}");
    let (code, refused) = explain(&["parsecs"]);
    assert!(code == Some(2) && refused.contains("the topics are scenario, run"), "{refused}");
}

#[test]
fn long_lists_of_names_end_with_a_whole_name_and_where_the_rest_is() {
    let scenario =
        one_write("1B") + "[[expect]]\nevent = \"zzz\"\n[[expect]]\ncounter = \"zzz\"\nequals = 1\n[nic]\nzzz = 1\n";
    let refused = rocemu::scenario::parse("names.toml", &scenario).unwrap_err().to_string();
    for topic in ["events", "counters"] {
        let list = refused.lines().find(|line| line.ends_with(&format!(" more: rocemu explain {topic}")));
        let (names, _) = list.expect(&refused).split_once(" \u{2026} and ").expect("a count of the rest");
        assert!(names.ends_with('"'), "{names}");
    }
    assert!(refused.contains("`rocemu explain nic` explains them"), "{refused}");
}

// --- what was meant ---

#[test]
fn a_scenario_that_does_nothing_is_remarked_upon() {
    let plan = |text: &str| rocemu::scenario::parse("idle.toml", text).unwrap();
    let idle = plan(&pair(""));
    assert!(idle.warnings.to_string().contains("posts nothing and expects nothing"), "{}", idle.warnings);
    assert_eq!(plan(&one_write("1B")).warnings.len(), 0);
    assert_eq!(plan(&pair("[[expect]]\nno_drops = true\n")).warnings.len(), 0);
    // It runs all the same.
    Scenario::pair().run_in_memory().unwrap().assert_all_well();
}
