//! The command line: what it says, how it ends, and what it leaves in every way of ending.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{
    PROGRAM, eventually, files_in, has, is_root, mixed, one_write, pair, program, run, run_well, scratch, skip,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

/// The exit code and everything said, of a command that must not panic.
#[track_caller]
fn ended(command: &mut assert_cmd::Command) -> (i32, String) {
    let output = command.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    assert!(!said.contains('\u{1b}'), "colours where there is no terminal: {said:?}");
    (output.status.code().expect("not killed"), said)
}

// --- help ---

#[test]
fn help_names_every_command_and_where_to_start() {
    let (code, said) = ended(&mut program(["--help"]));
    assert_eq!(code, 0);
    for word in ["run", "check", "explain", "doctor", "completions", "netns/pair.toml", "Exit codes"] {
        assert!(said.contains(word), "no `{word}` in\n{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn help_of_run_names_every_option() {
    let (code, said) = ended(&mut program(["run", "--help"]));
    assert_eq!(code, 0);
    for option in [
        "--out",
        "--wires",
        "--named",
        "--events",
        "--ladder",
        "--capture",
        "--capture-ports",
        "--seed",
        "--until",
        "--allow-foreign",
        "--quiet",
    ] {
        assert!(said.contains(option), "no `{option}` in\n{said}");
    }
}

#[test]
fn without_arguments_there_is_help_and_exit_code_2() {
    let (code, said) = ended(&mut program([""; 0]));
    assert_eq!(code, 2);
    assert!(said.contains("Usage: rocemu"), "{said}");
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(ended(&mut program(["--version"])), (0, format!("rocemu {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, said) = ended(&mut program(["completions", shell]));
        assert!(code == 0 && said.contains("rocemu") && said.contains("capture-ports"), "{shell}: {said}");
    }
}

// --- 0: all well ---

#[test]
fn the_summary_says_how_it_went() {
    let ran = run_well(&one_write("1MiB"), &[]);
    for words in ["21.621844 us", "WRITE 1 MiB", "all well", "outputs: out/"] {
        assert!(ran.stdout.contains(words), "no `{words}` in\n{}", ran.stdout);
    }
    assert_eq!(ran.stderr, "");
}

#[test]
fn quiet_says_nothing_on_success() {
    let ran = run_well(&one_write("1MiB"), &["--quiet"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(ran.files().len(), 5);
}

#[test]
fn names_with_spaces_and_umlauts_are_names() {
    let dir = scratch();
    let scenario = dir.path().join("my  scenario ü.toml");
    fs::write(&scenario, one_write("1B")).unwrap();
    let out = dir.path().join("where it  goes/ö");
    let (code, said) = ended(program(["run"]).arg(&scenario).arg("--out").arg(&out));
    assert_eq!(code, 0, "{said}");
    assert!(out.join("capture.pcapng").exists());
    // Without --out, the place is made from the file's name.
    let (code, said) = ended(program(["run"]).arg(&scenario).current_dir(dir.path()));
    assert_eq!(code, 0, "{said}");
    let made: Vec<_> = fs::read_dir(dir.path().join("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(made.len() == 1 && made[0].join("summary.json").exists(), "{made:?}");
}

#[test]
fn outputs_have_the_rights_that_the_umask_leaves() {
    let ran = run_well(&one_write("1B"), &["--events"]);
    let probe = ran.dir.path().join("probe");
    fs::write(&probe, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for name in ran.files().keys() {
        assert_eq!(mode(&ran.path(name)), mode(&probe), "{name}");
    }
}

#[test]
fn an_earlier_run_leaves_nothing_in_the_outputs_of_the_next() {
    let ran = run_well(&mixed(), &["--events", "--queues"]);
    fs::write(ran.path("notes.txt"), "mine").unwrap();
    let first = ran.files();
    let scenario = ran.dir.path().join("scenario.toml");
    fs::write(&scenario, one_write("1B")).unwrap();
    let (code, said) =
        ended(program(["run"]).arg(&scenario).arg("--out").arg(ran.dir.path().join("out")).args(["--capture", "off"]));
    assert_eq!(code, 0, "{said}");
    let second = ran.files();
    let names: Vec<_> = second.keys().map(String::as_str).collect();
    // No capture, no events, no queues; but what is not ours stays.
    assert_eq!(names, ["messages.csv", "notes.txt", "rates.csv", "summary.json"]);
    assert!(second["summary.json"] != first["summary.json"]);
}

#[test]
fn check_says_what_a_scenario_holds() {
    let ran = run_well(&mixed(), &["--capture", "off"]);
    let (code, said) = ended(program(["check", "scenario.toml"]).current_dir(ran.dir.path()));
    assert_eq!((code, said.as_str()), (0, "scenario.toml: ok: 2 nodes, 1 link, 3 queue pairs, 11 messages\n"));
    assert!(!ran.dir.path().join("out/capture.pcapng").exists());
}

// --- 1: work unfinished ---

#[test]
fn unfinished_work_is_exit_code_1_and_leaves_all_outputs() {
    let ran = run(&one_write("1MiB"), &["--until", "5us"]);
    ran.assert_code(1);
    assert!(ran.stdout.contains("FAILED") && ran.stdout.contains("unfinished"), "{}", ran.stdout);
    assert_eq!(ran.files().len(), 5);
    let message = ran.message();
    assert_eq!((message.completed_ps, message.status.as_str()), (None, "unfinished"));
    let summary = ran.summary();
    assert_eq!(summary["verdict"], "failed");
    assert_eq!(summary["reasons"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_message_that_is_never_posted_is_unfinished() {
    let text = one_write("1B").replace("[[posts]]", "[[posts]]\nat = \"1ms\"");
    run(&text, &["--until", "1us"]).assert_code(1);
}

// --- 2: bad input ---

#[track_caller]
fn assert_refused(scenario: &str, options: &[&str], words: &str) {
    let ran = run(scenario, options);
    ran.assert_code(2);
    assert!(ran.stderr.contains(words), "no `{words}` in\n{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    assert!(!ran.dir.path().join("out").exists(), "nothing is written for a run that does not start");
}

#[test]
fn bad_options_are_refused_before_anything_is_written() {
    let good = one_write("1B");
    assert_refused(&good, &["--capture-ports", "a:c"], "a:b, b:a");
    assert_refused(&good, &["--until", "5 parsecs"], "--until");
    assert_refused(&good, &["--seed", "one"], "--seed");
    assert_refused(&good, &["--wires", "copper"], "memory");
    assert_refused(&good, &["--wires", "memory", "--named"], "--named");
    assert_refused(&good, &["--no-such-option"], "--no-such-option");
}

#[test]
fn a_bad_scenario_is_refused_with_line_and_column() {
    assert_refused(&one_write("1B").replace("delay", "dealy"), &[], "scenario.toml:5:1");
    assert_refused("[nodes.a", &[], "scenario.toml:1:");
    assert_refused("", &[], "error");
}

#[test]
fn all_errors_of_all_files_are_shown_at_once() {
    let dir = scratch();
    fs::write(dir.path().join("one.toml"), pair("[[posts]]\nfrom = \"x\"\nto = \"b\"\nsize = \"1 lump\"\n")).unwrap();
    fs::write(dir.path().join("two.toml"), one_write("1B")).unwrap();
    fs::write(dir.path().join("three.toml"), "nodes = 3").unwrap();
    let (code, said) =
        ended(program(["check", "one.toml", "two.toml", "three.toml", "four.toml"]).current_dir(dir.path()));
    assert_eq!(code, 2);
    for words in ["one.toml:7:8", "one.toml:9:8", "two.toml: ok", "three.toml:1:", "four.toml: No such file"] {
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
}

#[test]
fn what_is_no_scenario_file_is_bad_input() {
    let dir = scratch();
    fs::write(dir.path().join("latin1.toml"), b"# \xfc").unwrap();
    for (file, words) in [("missing.toml", "No such file"), (".", "directory"), ("latin1.toml", "UTF-8")] {
        for command in ["run", "check"] {
            let (code, said) = ended(program([command, file]).current_dir(dir.path()));
            assert!(code == 2 && said.contains(words), "{command} {file}: {code} {said}");
        }
    }
}

// --- 3: the environment ---

#[test]
fn a_place_that_cannot_be_written_to_is_exit_code_3() {
    let dir = scratch();
    let scenario = dir.path().join("scenario.toml");
    fs::write(&scenario, one_write("1B")).unwrap();
    // A file stands where a directory is needed; a file system that takes none.
    for out in [scenario.join("out"), "/proc/rocemu".into(), "/dev/null".into()] {
        let (code, said) = ended(program(["run", "--wires", "memory"]).arg(&scenario).arg("--out").arg(&out));
        assert!(code == 3 && said.contains(&format!("cannot write {}", out.display())), "{code} {said}");
    }
}

#[test]
fn a_directory_without_permission_is_exit_code_3() {
    let closed = scratch();
    let out = closed.path().join("out");
    let Some(ran) = common::run_as_ordinary_user_to(&one_write("1B"), out.to_str().unwrap(), &[]) else { return };
    ran.assert_code(3);
    assert!(ran.stderr.contains("--out DIR"), "{}", ran.stderr);
}

/// Runs `script` where it is root in namespaces of its own. `$1` is an empty directory, `$2` the program, `$3` a scenario.
fn in_namespaces(script: &str, scenario: &str) -> Option<(Option<i32>, String)> {
    if !has("unshare") {
        skip("needs unshare");
        return None;
    }
    let dir = scratch();
    let (empty, file) = (dir.path().join("empty"), dir.path().join("scenario.toml"));
    fs::create_dir(&empty).unwrap();
    fs::write(&file, scenario).unwrap();
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-euc", script, "sh"]);
    let output = command.arg(&empty).arg(PROGRAM).arg(&file).timeout(common::PATIENCE).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    Some((output.status.code(), said))
}

#[test]
fn a_full_disk_is_exit_code_3_and_leaves_nothing() {
    // 1 MiB of payload fills it in the middle of the capture; one page already when the files are opened or closed.
    for size in ["4k", "8k", "16k", "64k", "1m"] {
        let script = format!(
            "mount -t tmpfs -o size={size} none \"$1\"; set +e; \
             \"$2\" run \"$3\" --events --wires memory --out \"$1/out\"; code=$?; \
             find \"$1/out\" -mindepth 1; exit $code"
        );
        let Some((code, said)) = in_namespaces(&script, &one_write("1MiB")) else { return };
        assert_eq!(code, Some(3), "{size}: {said}");
        assert!(said.contains("No space left on device") && said.contains("--out"), "{size}: {said}");
        let left: Vec<_> = said.lines().filter(|line| line.contains("/empty/out/")).collect();
        assert!(left.iter().all(|line| line.contains("cannot write")), "{size}: {said}");
    }
}

#[test]
fn a_full_disk_keeps_what_an_earlier_run_has_left() {
    let script = "mount -t tmpfs -o size=64k none \"$1\"; set +e; \
                  \"$2\" run \"$3\" --capture off --quiet --wires memory --out \"$1/out\" || exit 99; \
                  cp -r \"$1/out\" \"$1/before\"; \
                  \"$2\" run \"$3\" --wires memory --out \"$1/out\"; code=$?; \
                  diff -r \"$1/before\" \"$1/out\" || exit 98; exit $code";
    let Some((code, said)) = in_namespaces(script, &one_write("1MiB")) else { return };
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn forbidden_namespaces_are_exit_code_3_with_a_way_out() {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_net_namespaces; \
                  set +e; \"$2\" run \"$3\" --out \"$1/out\"; code=$?; \
                  [ -e \"$1/out\" ] && exit 99; \
                  \"$2\" run \"$3\" --quiet --wires memory --out \"$1/out\" || exit 98; exit $code";
    let Some((code, said)) = in_namespaces(script, &one_write("1B")) else { return };
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("namespaces") && said.contains("--wires memory"), "{said}");
}

#[test]
fn the_doctor_says_what_is_forbidden() {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_net_namespaces; \
                  exec \"$2\" doctor";
    let Some((code, said)) = in_namespaces(script, "") else { return };
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("FAIL") && said.contains("user.max_") && said.contains("--wires memory"), "{said}");
}

#[test]
fn the_doctor_finds_this_machine_well() {
    let (code, said) = ended(&mut program(["doctor"]));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("All that `rocemu run` needs is here."), "{said}");
}

// --- 130: interrupted ---

/// More than anybody waits for.
fn endless() -> String {
    pair(&format!("{}{}", common::queue_pair("q1"), common::post("q1", "a", "write", "64KiB", 1_000_000)))
}

/// A run that goes on until it is stopped, and has begun to listen for that.
fn endless_run(dir: &Path, options: &[&str]) -> Child {
    fs::write(dir.join("endless.toml"), endless()).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "endless.toml", "--out", "out"]).args(options).current_dir(dir).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    eventually("both signals are caught", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        let caught = fs::read_to_string(&status).unwrap();
        let mask = caught.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask of signals");
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        [Signal::SIGINT, Signal::SIGTERM].iter().all(|&signal| mask & (1 << (signal as u32 - 1)) != 0)
    });
    child
}

#[test]
fn interrupted_runs_end_with_130_and_write_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        for options in [&["--capture", "headers"][..], &["--wires", "memory", "--capture", "off", "--events"]] {
            let dir = scratch();
            let earlier = dir.path().join("out");
            fs::create_dir(&earlier).unwrap();
            fs::write(earlier.join("summary.json"), "an earlier run").unwrap();
            let mut child = endless_run(dir.path(), options);
            kill(Pid::from_raw(child.id() as i32), signal).unwrap();
            eventually("it has ended", || child.try_wait().unwrap().is_some());
            let output = child.wait_with_output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(130), "{signal}: {said}");
            assert!(said.contains("interrupted at"), "{signal}: {said}");
            assert_eq!(text(&output.stdout), "", "{signal}");
            let left = files_in(&earlier);
            assert!(left.len() == 1 && left["summary.json"] == b"an earlier run", "{signal}: {:?}", left.keys());
        }
    }
}

// --- readers who leave ---

#[test]
fn a_reader_who_leaves_is_no_failure() {
    let dir = scratch();
    fs::write(dir.path().join("scenario.toml"), one_write("1MiB")).unwrap();
    let commands: &[&[&str]] = &[
        &["run", "scenario.toml", "--ladder"],
        &["run", "scenario.toml"],
        &["check", "scenario.toml"],
        &["test", "scenario.toml"],
        &["show", "out/scenario"],
        &["doctor"],
        &["completions", "bash"],
        &["--help"],
    ];
    for arguments in commands {
        let mut command = Command::new(PROGRAM);
        command.args(*arguments).current_dir(dir.path()).env_remove("RUST_LOG").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {} {said}", output.status);
    }
    assert!(dir.path().join("out/scenario/capture.pcapng").exists());
}

// --- without rights ---

#[test]
fn an_ordinary_user_may_do_everything_but_name_namespaces() {
    let Some(ran) = common::run_as_ordinary_user(&one_write("1B"), &["--events"]) else { return };
    ran.assert_code(0);
    assert!(is_root());
    let Some(refused) = common::run_as_ordinary_user(&one_write("1B"), &["--named"]) else { return };
    refused.assert_code(3);
    assert!(refused.stderr.contains("root"), "{}", refused.stderr);
    assert!(!refused.path("summary.json").exists());
}
