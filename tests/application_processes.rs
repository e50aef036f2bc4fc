//! Applications as they really are: processes of their own, in namespaces of their own, that end when they like.

#![expect(clippy::disallowed_methods, reason = "processes are killed at moments of real time")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{PROGRAM, assert_same_files, eventually, files_in, has, scratch, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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

#[test]
fn one_command_starts_the_processes_too() {
    let dir = scratch();
    fs::write(dir.path().join("ping-pong.toml"), SCENARIO).unwrap();
    let run = |commands: [&str; 2]| {
        let mut command = Command::new(PROGRAM);
        command.args(["run", "ping-pong.toml", "--wires", "memory"]).current_dir(dir.path());
        for (name, program) in ["client", "server"].into_iter().zip(commands) {
            command.arg("--exec").arg(format!("{name}={program}"));
        }
        command.output().unwrap()
    };
    let program = ping_pong().display().to_string();
    let output = run([&program, &program]);
    assert_success(&output);
    assert!(text(&output.stdout).contains("round 9: back after 806426 ps"), "{}", text(&output.stdout));
    // Only one process can be an application.
    let mut twice = Command::new(PROGRAM);
    twice.args(["run", "ping-pong.toml", "--exec", "client=true", "--exec", "client=false"]).current_dir(dir.path());
    let output = twice.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    // One that ends badly fails the run; here its peer gives up as well.
    let output = run([&format!("timeout 0.01 sleep 5; {program} | head -n 1; exit 7"), &program]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("application client ended with exit status: 7"), "{}", text(&output.stdout));
}
