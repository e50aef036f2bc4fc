//! Applications as they really are: processes of their own, in namespaces of their own, that end when they like.

#![expect(clippy::disallowed_methods, reason = "processes are killed at moments of real time")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, PROGRAM, assert_same_files, eventually, files_in, has, scratch, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rocemu::host::{Device, Error};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

const SCENARIO: &str = include_str!("../examples/ping-pong.toml");

/// The example, as cargo has built it beside this program.
fn ping_pong() -> PathBuf {
    Path::new(PROGRAM).parent().unwrap().join("examples/ping_pong")
}

/// NICs that wait for their applications.
struct Nics {
    dir: TempDir,
    child: Option<Child>,
}

impl Nics {
    fn start(options: &[&str]) -> Self {
        Self::start_in(scratch(), options)
    }

    fn start_in(dir: TempDir, options: &[&str]) -> Self {
        fs::write(dir.path().join("ping-pong.toml"), SCENARIO).unwrap();
        let file = |node: &str| {
            fs::metadata(dir.path().join(format!("out/{node}.sock"))).and_then(|file| file.modified()).ok()
        };
        // Of a run that was killed.
        let old = ["a", "b"].map(file);
        let mut command = Command::new(PROGRAM);
        command.args(["run", "ping-pong.toml", "--out", "out", "--events"]).args(options).current_dir(dir.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut nics = Self { dir, child: Some(child) };
        eventually("the sockets are there", || {
            assert!(nics.child.as_mut().unwrap().try_wait().unwrap().is_none(), "it ended by itself");
            let file = |node: &str| fs::metadata(nics.socket(node)).and_then(|file| file.modified()).ok();
            let now = ["a", "b"].map(file);
            now.iter().zip(&old).all(|(now, old)| now.is_some() && now != old)
        });
        nics
    }

    fn socket(&self, node: &str) -> PathBuf {
        self.dir.path().join(format!("out/{node}.sock"))
    }

    fn application(&self, node: &str, role: &str) -> Command {
        let mut command = Command::new(ping_pong());
        command
            .env("ROCEMU_SOCKET", self.socket(node))
            .env("ROCEMU_APPLICATION", role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn play(&self) -> [Child; 2] {
        [self.application("b", "server").spawn().unwrap(), self.application("a", "client").spawn().unwrap()]
    }

    fn kill(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.as_ref().unwrap().id() as i32), signal).unwrap();
    }

    fn end(&mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }

    /// Those who wait for it are free, and the run says why it failed.
    fn assert_gave_up_the_client(&mut self, server: Child) {
        let (status, said) = end(server);
        assert!(!status.success() && said.contains("nothing is under way"), "{said}");
        let output = self.end();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let why = "FAILED: application `client` kept its turn for 3s, and was given up";
        assert!(text(&output.stdout).contains(why), "{}", text(&output.stdout));
    }

    fn assert_no_sockets(&self) {
        let left: Vec<_> = ["a", "b"].into_iter().filter(|node| self.socket(node).exists()).collect();
        assert!(left.is_empty(), "sockets of {left:?} are left");
    }
}

impl Drop for Nics {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// An application ends by itself, whatever becomes of the NICs, and says what it thinks of it.
fn end(child: Child) -> (ExitStatus, String) {
    let output = child.wait_with_output().unwrap();
    (output.status, text(&output.stderr))
}

#[test]
fn two_processes_play_the_same_game_every_time() {
    let play = || {
        let mut nics = Nics::start(&[]);
        let players = nics.play().map(|child| child.wait_with_output().unwrap());
        players.iter().for_each(assert_success);
        assert_success(&nics.end());
        nics.assert_no_sockets();
        (players.map(|output| text(&output.stdout)), files_in(&nics.dir.path().join("out")))
    };
    let (said, files) = play();
    assert!(said[1].contains("round 9: back after 806426 ps"), "{}", said[1]);
    let (said_again, files_again) = play();
    assert_eq!(said, said_again);
    assert_same_files("two games", &files, &files_again);
}

#[test]
fn they_can_live_in_namespaces_of_their_own() {
    if !has("unshare") || !Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|status| status.success()) {
        return skip("no unshare, or namespaces are forbidden");
    }
    let mut nics = Nics::start(&[]);
    let players = [("b", "server"), ("a", "client")].map(|(node, role)| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]).arg(ping_pong());
        command.env("ROCEMU_SOCKET", nics.socket(node)).env("ROCEMU_APPLICATION", role);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    players.map(|child| child.wait_with_output().unwrap()).iter().for_each(assert_success);
    assert_success(&nics.end());
}

#[test]
fn an_application_that_is_killed_takes_its_part_out_of_the_run() {
    for delay_us in [0, 300, 1_000, 3_000, 10_000, 30_000] {
        let mut nics = Nics::start(&["--wires", "memory"]);
        let [server, mut client] = nics.play();
        thread::sleep(Duration::from_micros(delay_us));
        client.kill().unwrap();
        client.wait().unwrap();
        // If it had not come, another one may; if it had, there is no place for another one.
        let second = nics.application("a", "client").output().unwrap();
        let (server, said) = end(server);
        let known = ["ended with WorkRequestFlushed", "nothing is under way", "the device is gone"];
        assert!(server.success() || known.iter().any(|word| said.contains(word)), "{said}");
        assert!(server.success() || !second.status.success());
        let output = nics.end();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{}", text(&output.stderr));
        nics.assert_no_sockets();
    }
}

#[test]
fn applications_survive_the_end_of_their_nics_and_nothing_stands_in_the_way_of_the_next_run() {
    let mut dir = scratch();
    for delay_us in [0, 500, 2_000, 8_000, 20_000] {
        let nics = Nics::start_in(dir, &["--wires", "memory"]);
        let players = nics.play();
        thread::sleep(Duration::from_micros(delay_us));
        nics.kill(Signal::SIGKILL);
        for player in players {
            let (status, said) = end(player);
            let is_told =
                ["the device is gone", "opening", "nothing is under way"].iter().any(|word| said.contains(word));
            assert!(status.success() || is_told, "{said}");
        }
        let mut nics = nics;
        nics.end();
        // What a killed run cannot take away is a socket that nobody listens to.
        dir = std::mem::replace(&mut nics.dir, scratch());
    }
    let mut nics = Nics::start_in(dir, &["--wires", "memory"]);
    nics.play().map(|child| child.wait_with_output().unwrap()).iter().for_each(assert_success);
    assert_success(&nics.end());
    nics.assert_no_sockets();
}

#[test]
fn ctrl_c_ends_the_wait_for_applications() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut nics = Nics::start(&[]);
        nics.kill(signal);
        let output = nics.end();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        nics.assert_no_sockets();
    }
}

#[test]
fn who_does_not_come_or_does_not_end_its_turn_is_given_up() {
    let mut nics = Nics::start(&["--patience", "1", "--wires", "memory"]);
    let output = nics.end();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("application `client` has not opened"), "{said}");
    nics.assert_no_sockets();

    let mut nics = Nics::start(&["--patience", "1", "--wires", "memory"]);
    let client = nics.application("a", "client").spawn().unwrap();
    let server = nics.application("b", "server").spawn().unwrap();
    // Somewhere in its turn, or waiting for it; either way it does not go on.
    kill(Pid::from_raw(client.id() as i32), Signal::SIGSTOP).unwrap();
    end(server);
    let output = nics.end();
    assert!(output.status.code().is_some(), "{}", text(&output.stderr));
    kill(Pid::from_raw(client.id() as i32), Signal::SIGCONT).unwrap();
    end(client);
}

#[test]
fn two_runs_do_not_share_a_socket() {
    let mut nics = Nics::start(&["--wires", "memory"]);
    let second = Command::new(PROGRAM)
        .args(["run", "ping-pong.toml", "--out", "out", "--wires", "memory"])
        .current_dir(nics.dir.path())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(3), "{}", text(&second.stderr));
    nics.play().map(|child| child.wait_with_output().unwrap()).iter().for_each(assert_success);
    assert_success(&nics.end());
}

/// NICs and the processes of their applications, by one command in `dir`.
fn run_with(dir: &Path, client: &str, server: &str, options: &[&str]) -> Output {
    fs::write(dir.join("ping-pong.toml"), SCENARIO).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "ping-pong.toml", "--out", "out", "--wires", "memory"]).args(options).current_dir(dir);
    command.args(["--exec", &format!("client={client}"), "--exec", &format!("server={server}")]).output().unwrap()
}

/// A process that has ended may stay a zombie where nobody reaps orphans.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|fields| !fields.is_empty() && !fields.starts_with('Z'))
}

/// What a command has written to a file, once it has.
fn pid_in(file: &Path) -> String {
    let mut text = String::new();
    eventually("a process has said its number", || {
        text = fs::read_to_string(file).unwrap_or_default();
        text.ends_with('\n')
    });
    text.trim().to_owned()
}

#[test]
fn one_command_starts_the_processes_too() {
    let dir = scratch();
    let program = ping_pong().display().to_string();
    let output = run_with(dir.path(), &program, &program, &[]);
    assert_success(&output);
    assert!(text(&output.stdout).contains("round 9: back after 806426 ps"), "{}", text(&output.stdout));
    // Only one process can be an application.
    let output = run_with(dir.path(), "true", "true", &["--exec", "client=false"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    // One that ends badly fails the run; here its peer gives up as well.
    let output = run_with(dir.path(), &format!("timeout 0.01 sleep 5; {program} | head -n 1; exit 7"), &program, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("application client ended with exit status: 7"), "{}", text(&output.stdout));
}

#[test]
fn a_process_that_ends_before_it_opens_its_device_is_not_waited_for() {
    let program = ping_pong().display().to_string();
    for (client, server, said) in [
        ("./nonsuch", &*program, "`client` ended with exit status: 127 before it opened out/a.sock"),
        ("true", &program, "`client` ended with exit status: 0 before"),
        // What holds signals back in the run is nothing to the processes.
        ("kill -TERM $$; sleep 1000", &program, "`client` ended with signal: 15 (SIGTERM) before"),
        // What it has left in the background could still come.
        ("sleep 0.2 & exit 9", &program, "`client` ended with exit status: 9 before"),
        // It is not the one whose turn it is.
        ("sleep 1000", "exit 4", "`server` ended with exit status: 4 before it opened out/b.sock"),
    ] {
        let dir = scratch();
        let output = run_with(dir.path(), client, server, &["--patience", "1000"]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
        assert_eq!(files_in(&dir.path().join("out")).len(), 0, "sockets and outputs are gone");
    }
}

#[test]
fn what_a_shell_leaves_in_the_background_can_be_the_application() {
    let dir = scratch();
    let program = ping_pong().display().to_string();
    assert_success(&run_with(dir.path(), &format!("(sleep 0.3; exec {program}) &"), &program, &[]));
}

#[test]
fn processes_do_not_outlive_the_run_and_neither_does_what_they_have_started() {
    let program = ping_pong().display().to_string();
    let background = "sleep 1000 & echo $! > pid";
    for (client, failure) in [
        // The leader ends by itself, at the end of the game or before it.
        (format!("{background}; {program}"), ""),
        (format!("{program} & {background}"), ""),
        (
            format!("{background}; {program}; wait"),
            "application client did not end when its device did, and was killed",
        ),
    ] {
        let dir = scratch();
        let output = run_with(dir.path(), &client, &program, &[]);
        assert_eq!(output.status.success(), failure.is_empty(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(failure), "{}", text(&output.stdout));
        let pid = pid_in(&dir.path().join("pid"));
        eventually("what was started in the background has ended", || !is_alive(&pid));
    }
    // Nobody is killed who ends soon.
    let dir = scratch();
    assert_success(&run_with(dir.path(), &format!("{program}; (sleep 0.3; touch done) &"), &program, &[]));
    assert!(dir.path().join("done").exists());
}

#[test]
fn the_process_of_an_application_ends_with_nics_that_are_killed() {
    let nics = Nics::start(&["--wires", "memory", "--exec", "client=echo $$ > pid; exec sleep 1000"]);
    let pid = pid_in(&nics.dir.path().join("pid"));
    assert!(is_alive(&pid));
    nics.kill(Signal::SIGKILL);
    eventually("it has ended", || !is_alive(&pid));
}

#[test]
fn the_end_of_emulated_time_ends_a_run_whose_applications_would_go_on() {
    let dir = scratch();
    let program = ping_pong().display().to_string();
    // Whoever looks sees the end of its device; whoever does not is killed.
    let output = run_with(dir.path(), &program, &format!("{program}; echo $$ > pid; sleep 1000"), &["--until", "5us"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("round 5: back") && !said.contains("round 6: back"), "{said}");
    for reason in [
        "FAILED: still attached at 5 us: client, server",
        "FAILED: 1 message unfinished at 5 us: 12",
        "FAILED: application client ended with exit status: 1",
        "FAILED: application server did not end when its device did, and was killed",
    ] {
        assert!(said.contains(reason), "{reason} is not in\n{said}");
    }
    assert!(text(&output.stderr).contains("the device is gone"), "{}", text(&output.stderr));
    let left = files_in(&dir.path().join("out"));
    assert!(left.keys().all(|name| !name.ends_with(".sock")) && left.contains_key("summary.json"), "{:?}", left.keys());
    assert!(!is_alive(&pid_in(&dir.path().join("pid"))));
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_refused_before_anything_is_made() {
    let dir = scratch();
    let program = ping_pong().display().to_string();
    // With `/a.sock`, 107 octets: the last that the system takes.
    assert_success(&run_with(dir.path(), &program, &program, &["--sockets", &"x".repeat(100)]));
    let dir = scratch();
    let output = run_with(dir.path(), &program, &program, &["--sockets", &"x".repeat(101)]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("x/a.sock has 108 octets") && said.contains("--sockets DIR"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the scenario is there");
}

#[test]
fn regression_waits_that_end_at_once_do_not_make_a_turn_longer() {
    let mut nics = Nics::start(&["--patience", "3", "--wires", "memory"]);
    let server = nics.application("b", "server").spawn().unwrap();
    let began = Instant::now();
    let device = Device::open(nics.socket("a"), "client").unwrap();
    // Each of these is over as soon as it begins: they are all one turn.
    let error = loop {
        assert!(began.elapsed() < PATIENCE, "it goes on and on");
        if let Err(error) = device.wait(&[], Some(0)) {
            break error;
        }
    };
    assert!(matches!(error, Error::Gone), "{error}");
    assert!(began.elapsed() >= Duration::from_secs(3));
    nics.assert_gave_up_the_client(server);
}

#[test]
fn regression_an_application_that_talks_without_a_pause_does_not_make_its_turn_longer() {
    let mut nics = Nics::start(&["--patience", "3", "--wires", "memory"]);
    let server = nics.application("b", "server").spawn().unwrap();
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
    socket.connect(&SockAddr::unix(nics.socket("a")).unwrap()).unwrap();
    let say = |request: &str| (&socket).write(request.as_bytes()).is_ok();
    let began = Instant::now();
    assert!(say(r#"{"request":"open","version":1,"application":"client"}"#));
    // Long to read for the NIC, and always one more is there already.
    let numbers = vec!["0"; 3_900].join(",");
    let request = format!(r#"{{"request":"wait","cqs":[{numbers}],"solicited_only":false,"until_ps":0}}"#);
    thread::scope(|scope| {
        scope.spawn(|| while matches!((&socket).read(&mut [0; 9_000]), Ok(1..)) {});
        while say(&request) {
            assert!(began.elapsed() < PATIENCE / 3, "it goes on and on");
        }
    });
    assert!(began.elapsed() >= Duration::from_secs(3));
    nics.assert_gave_up_the_client(server);
}

#[test]
fn regression_a_leader_that_has_left_its_group_is_ended_as_well() {
    if !has("python3") {
        return skip("needs python3");
    }
    let program = ping_pong().display().to_string();
    let leave = "import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(50)";
    let began = Instant::now();
    let output = run_with(scratch().path(), &format!("{program} && exec python3 -c '{leave}'"), &program, &[]);
    let said = text(&output.stdout);
    assert!(said.contains("application client did not end when its device did, and was killed"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(40), "it slept to its end");
}
