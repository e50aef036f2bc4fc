//! A frame from somebody else on a wire: it never reaches the model, and it is never silent.

mod common;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use std::thread;

use common::{
    PROGRAM, assert_same_files, eventually, files_in, is_root, namespaces_of_sockets, pair, post, queue_pair, run_well,
    scratch, skip,
};
use nix::sched::{CloneFlags, setns};
use pnet::datalink::{self, Channel};

/// More than a pipe takes of its ladder.
fn long() -> String {
    pair(&format!("{}{}", queue_pair("q1"), post("q1", "a", "write", "64KiB", 200)))
}

/// Sends a broadcast on the pair from inside one of its namespaces.
fn disturb(namespace: &File) {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("may enter the namespace");
            let interfaces = datalink::interfaces();
            let veth = interfaces.iter().find(|one| one.name == "a" || one.name == "b").expect("an end of the pair");
            let Ok(Channel::Ethernet(mut sender, _)) = datalink::channel(veth, datalink::Config::default()) else {
                panic!("no packet socket");
            };
            let mut frame = [0; 60];
            frame[..14].copy_from_slice(&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 99, 0x88, 0xb5]);
            sender.send_to(&frame, None).expect("an answer").expect("it was sent");
        });
        inside.join().expect("no panic inside");
    });
}

/// A run that is disturbed in its middle: nobody reads the ladder that it prints, so it comes to a stand when the pipe is
/// full, and goes on when somebody does.
fn disturbed(options: &[&str]) -> (tempfile::TempDir, Output) {
    let dir = scratch();
    fs::write(dir.path().join("long.toml"), long()).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "long.toml", "--out", "out", "--capture", "headers", "--ladder"]).args(options);
    command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pipe = child.stdout.as_ref().expect("a pipe");
    eventually("the pipe is half full", || unread(pipe) > 32_768);
    disturb(&namespaces_of_sockets(child.id() as i32)[0]);
    (dir, child.wait_with_output().unwrap())
}

/// Octets in a pipe, of at most 65,536.
fn unread(pipe: &impl AsRawFd) -> i32 {
    let mut octets = 0;
    // SAFETY: the kernel writes one int to where this points.
    let done = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut octets) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    octets
}

#[test]
fn a_foreign_frame_fails_the_run_unless_it_is_allowed() {
    if !is_root() {
        skip("needs root to send on somebody else's wire");
        return;
    }
    let (dir, refused) = disturbed(&[]);
    let said = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("1 foreign frame arrived") && said.contains("--allow-foreign"), "{said}");
    // What it was, and where it came from.
    assert!(said.contains("60 octets, ffffffffffff020000000063"), "{said}");
    let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    assert!(summary.contains("\"failed\"") && summary.contains("foreign"), "{summary}");

    let (dir, allowed) = disturbed(&["--allow-foreign"]);
    let said = String::from_utf8([allowed.stdout, allowed.stderr].concat()).unwrap();
    assert_eq!(allowed.status.code(), Some(0), "{said}");
    assert!(said.contains("1 foreign frame arrived"), "{said}");
    // The model has not seen it.
    let undisturbed = run_well(&long(), &["--capture", "headers", "--wires", "memory"]);
    let mut files = files_in(&dir.path().join("out"));
    let mut expected = undisturbed.files();
    // The scenario has no name of its own: it is that of the file.
    files.remove("summary.json");
    expected.remove("summary.json");
    assert_same_files("disturbed", &expected, &files);
}
