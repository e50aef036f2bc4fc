//! However a run ends, it leaves no process, namespace, interface or half a file.

#![expect(clippy::disallowed_methods, reason = "a signal is sent at moments of real time")]

mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{
    PROGRAM, copy_program, eventually, files_in, has, is_root, namespaces_of_sockets, one_write, pair, post,
    queue_pair, scratch, skip, unnamed_files,
};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

fn interfaces() -> BTreeSet<String> {
    pnet::datalink::interfaces().into_iter().map(|interface| interface.name).collect()
}

/// More than anybody waits for.
fn endless() -> String {
    pair(&format!("{}{}", queue_pair("q1"), post("q1", "a", "write", "64KiB", 1_000_000)))
}

/// A run in a directory of its own that goes on until it is stopped, killed when this is dropped.
struct Endless {
    dir: TempDir,
    child: Child,
}

impl Endless {
    /// * `prefix`: a command that runs what follows it in a directory.
    fn start(prefix: impl FnOnce(&Path) -> Vec<String>, options: &[&str]) -> Self {
        let dir = scratch();
        fs::write(dir.path().join("endless.toml"), endless()).unwrap();
        let mut words = prefix(dir.path());
        let run = [PROGRAM, "run", "endless.toml", "--out", "out", "--capture", "headers"];
        words.extend(run.iter().chain(options).map(|&word| word.to_owned()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut this = Self { dir, child };
        eventually("frames are captured", || {
            assert!(this.child.try_wait().unwrap().is_none(), "it ended by itself");
            unnamed_files(this.pid()).any(|octets| octets > 1_000_000)
        });
        this
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// * Returns: the exit code, if it was not killed.
    fn end(&mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
        let mut status = None;
        eventually("it has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    fn outputs(&self) -> Vec<String> {
        files_in(&self.dir.path().join("out")).into_keys().collect()
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn children(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default()
}

/// The interfaces of a network namespace.
fn interfaces_of(namespace: &File) -> BTreeSet<String> {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("may enter the namespace");
            interfaces()
        });
        inside.join().expect("no panic inside")
    })
}

#[test]
fn kill_dash_nine_leaves_no_interface_process_or_output() {
    let before = interfaces();
    let mut run = Endless::start(|_| Vec::new(), &[]);
    assert_eq!(children(run.pid()), "", "the helper process is gone while the run lasts");
    // Held open is one end's namespace. That of the other end, and the pair with it, must go by themselves.
    let namespace = if is_root() { namespaces_of_sockets(run.pid()).into_iter().next() } else { None };
    let has_pair = |namespace| interfaces_of(namespace).iter().any(|name| name == "a" || name == "b");
    assert!(namespace.as_ref().is_none_or(has_pair));
    run.end(Signal::SIGKILL);
    if let Some(namespace) = &namespace {
        eventually("the pair is gone", || !has_pair(namespace));
    }
    assert_eq!(interfaces(), before);
    assert_eq!(run.outputs(), [""; 0], "no file, under whatever name");
}

#[test]
fn nothing_of_a_run_is_visible_to_others() {
    let before = (interfaces(), names(Path::new("/var/run/netns")));
    let run = Endless::start(|_| Vec::new(), &[]);
    let during = (interfaces(), names(Path::new("/var/run/netns")));
    assert_eq!(during.0, before.0);
    let ours = during.1.difference(&before.1).filter(|name| name.contains(&format!("-{}-", run.pid())));
    assert_eq!(ours.count(), 0);
}

// --- with names: in a mount namespace of their own, so that they are not mixed up with those of others ---

fn names(dir: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A mount namespace with an empty /run, for as long as this lives.
struct EmptyRun(Child);

impl EmptyRun {
    /// `None` where that is not possible.
    fn new() -> Option<Self> {
        if !is_root() || !has("unshare") || !has("nsenter") {
            skip("needs root, unshare and nsenter");
            return None;
        }
        let script = "mount -t tmpfs none /run && touch /run/ready && exec sleep 600";
        let holder =
            Command::new("unshare").args(["--mount", "sh", "-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let this = Self(holder);
        eventually("/run is empty", || this.path("ready").exists());
        fs::remove_file(this.path("ready")).unwrap();
        Some(this)
    }

    /// A path below /run, as it is inside.
    fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/run/{path}", self.0.id()))
    }

    /// Namespaces that have names, and records of the runs that gave them.
    fn left(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        (names(&self.path("netns")), names(&self.path("rocemu")))
    }

    /// A command that runs what follows in `dir`, which must be looked up anew inside.
    fn enter(&self, dir: &Path) -> Vec<String> {
        let holder = self.0.id().to_string();
        let dir = dir.to_str().expect("a plain name");
        let words = ["nsenter", "--mount", "--target", &holder, "sh", "-c", "cd \"$0\" && exec \"$@\"", dir];
        words.map(str::to_owned).into()
    }

    fn start_named(&self) -> Endless {
        Endless::start(|dir| self.enter(dir), &["--named"])
    }

    /// Runs the program to its end.
    fn program(&self, arguments: &[&str], dir: &Path) -> (Option<i32>, String) {
        let enter = self.enter(dir);
        let output = Command::new(&enter[0])
            .args(&enter[1..])
            .arg(PROGRAM)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }
}

impl Drop for EmptyRun {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nothing() -> (BTreeSet<String>, BTreeSet<String>) {
    (BTreeSet::new(), BTreeSet::new())
}

#[test]
fn names_are_gone_after_a_run() {
    let Some(inside) = EmptyRun::new() else { return };
    let dir = scratch();
    fs::write(dir.path().join("scenario.toml"), one_write("1MiB")).unwrap();
    for (options, expected) in [(&[][..], 0), (&["--until", "1us"], 1)] {
        let arguments = [&["run", "scenario.toml", "--named"], options].concat();
        let (code, said) = inside.program(&arguments, dir.path());
        assert_eq!(code, Some(expected), "{said}");
        assert!(said.contains("namespace rocemu-") && said.contains("-a\n") && said.contains("-b\n"), "{said}");
        assert_eq!(inside.left(), nothing());
    }
    // Refused before anything is made, and refused after the namespaces were made.
    for arguments in [
        &["run", "scenario.toml", "--named", "--until", "x"][..],
        &["run", "scenario.toml", "--named", "--out", "/proc/x"],
    ] {
        let (code, said) = inside.program(arguments, dir.path());
        assert!(matches!(code, Some(2 | 3)), "{code:?} {said}");
        assert_eq!(inside.left(), nothing());
    }
}

#[test]
fn names_are_gone_after_ctrl_c() {
    let Some(inside) = EmptyRun::new() else { return };
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut run = inside.start_named();
        let (names, records) = inside.left();
        assert_eq!((names.len(), records.len()), (2, 1), "{names:?} {records:?}");
        assert_eq!(run.end(signal), Some(130));
        assert_eq!(inside.left(), nothing());
        assert_eq!(files_in(&run.dir.path().join("out")).len(), 0);
    }
}

#[test]
fn regression_a_signal_at_any_moment_of_the_start_leaves_nothing() {
    let Some(inside) = EmptyRun::new() else { return };
    let dir = scratch();
    fs::write(dir.path().join("endless.toml"), endless()).unwrap();
    let enter = inside.enter(dir.path());
    for (n, signal) in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().cycle().take(24).enumerate() {
        let mut command = Command::new(&enter[0]);
        command.args(&enter[1..]).args([PROGRAM, "run", "endless.toml", "--named", "--out", "out"]);
        let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // From before there is a program to the middle of its run.
        thread::sleep(Duration::from_millis(4 * n as u64));
        kill(Pid::from_raw(run.id() as i32), signal).unwrap();
        eventually("it has ended", || run.try_wait().unwrap().is_some());
        assert_eq!(inside.left(), nothing(), "{signal} after {} ms", 4 * n);
        assert_eq!(files_in(&dir.path().join("out")).len(), 0, "{signal} after {} ms", 4 * n);
    }
}

#[test]
fn names_that_a_killed_run_left_are_found_and_removed() {
    let Some(inside) = EmptyRun::new() else { return };
    let mut killed = inside.start_named();
    let living = inside.start_named();
    assert_eq!(killed.end(Signal::SIGKILL), None);
    let (names, records) = inside.left();
    assert_eq!((names.len(), records.len()), (4, 2), "{names:?} {records:?}");

    let dir = scratch();
    let (code, said) = inside.program(&["doctor"], dir.path());
    let (killed, living) = (killed.pid().to_string(), living.pid().to_string());
    assert!(code == Some(0) && said.contains(&killed) && said.contains("--remove-leftovers"), "{said}");

    if has("setpriv") {
        // The build directory may be closed to others.
        let copy = dir.path().join("rocemu");
        copy_program(Path::new(PROGRAM), &copy);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let enter = inside.enter(dir.path());
        let mut command = Command::new(&enter[0]);
        command.args(&enter[1..]).args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        let output = command.arg(copy).args(["doctor", "--remove-leftovers"]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(3) && said.contains("only root can remove"), "{said}");
    }

    let (code, said) = inside.program(&["doctor", "--remove-leftovers"], dir.path());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("removed what run {killed} left: rocemu-{killed}-a, rocemu-{killed}-b")), "{said}");
    // The run that lives keeps its own.
    let (names, records) = inside.left();
    let expected: BTreeSet<_> = ["a", "b"].map(|node| format!("rocemu-{living}-{node}")).into();
    assert_eq!((names, records), (expected, [living].into()));

    let (code, said) = inside.program(&["doctor", "--remove-leftovers"], dir.path());
    assert_eq!((code, said.as_str()), (Some(0), "nothing is left behind\n"));
}
