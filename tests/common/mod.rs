//! Shared by the integration tests: scenario texts, runs of the program, and what they leave.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "processes and kernels are waited for in real time")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rocemu");
/// No run of these tests takes a fraction of it on a machine that works.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// nobody:nogroup
const ORDINARY_USER: &str = "65534";

/// Two NICs joined by a link, every attribute at its default, and `rest`.
pub fn pair(rest: &str) -> String {
    format!("[nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]\ndelay = \"100ns\"\n{rest}\n")
}

/// A queue pair between the nodes of [`pair`].
pub fn queue_pair(name: &str) -> String {
    format!("[[queue_pairs]]\nname = \"{name}\"\nends = [\"a\", \"b\"]\n")
}

/// Messages posted at time 0.
pub fn post(queue_pair: &str, from: &str, verb: &str, size: &str, count: u32) -> String {
    format!(
        "[[posts]]\nqueue_pair = \"{queue_pair}\"\nfrom = \"{from}\"\nverb = \"{verb}\"\nsize = \"{size}\"\n\
         count = {count}\n"
    )
}

/// One WRITE from a to b over a queue pair of its own, on a [`pair`].
pub fn one_write(size: &str) -> String {
    pair(&format!("{}{}", queue_pair("q1"), post("q1", "a", "write", size, 1)))
}

/// The program with `arguments`, for tests that only look at what it says.
pub fn program<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(PROGRAM);
    command.args(arguments).env_remove("RUST_LOG").env_remove("RUST_BACKTRACE").timeout(PATIENCE);
    command
}

/// What a run of the program said and left.
pub struct Ran {
    /// Removed when this is dropped.
    pub dir: TempDir,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a scenario with the program, in a directory of its own.
pub fn run(scenario: &str, options: &[&str]) -> Ran {
    run_in(scratch(), scenario, "out", options, |command| command)
}

/// [`run`], and all must be well.
pub fn run_well(scenario: &str, options: &[&str]) -> Ran {
    let ran = run(scenario, options);
    ran.assert_code(0);
    ran
}

/// [`run`] as a user without any rights; `None` where that cannot be tried.
pub fn run_as_ordinary_user(scenario: &str, options: &[&str]) -> Option<Ran> {
    run_as_ordinary_user_to(scenario, "out", options)
}

pub fn run_as_ordinary_user_to(scenario: &str, out: &str, options: &[&str]) -> Option<Ran> {
    if !is_root() || !has("setpriv") {
        skip("needs root and setpriv to become an ordinary user");
        return None;
    }
    let dir = scratch();
    // The build directory may be closed to others.
    let copy = dir.path().join("rocemu");
    copy_program(Path::new(PROGRAM), &copy);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let ran = run_in(dir, scenario, out, options, |_| {
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(["--reuid", ORDINARY_USER, "--regid", ORDINARY_USER, "--clear-groups"]).arg(copy);
        command
    });
    Some(ran)
}

/// Copies a program for everybody to run. Another process does it: a file that this one had open for writing would stay so
/// in whatever another test starts in the same moment, and as long as it does, nobody can run it.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap();
    assert!(status.success(), "install: {status}");
}

fn run_in(
    dir: TempDir,
    scenario: &str,
    out: &str,
    options: &[&str],
    wrap: impl FnOnce(assert_cmd::Command) -> assert_cmd::Command,
) -> Ran {
    let file = dir.path().join("scenario.toml");
    fs::write(&file, scenario).unwrap();
    let mut command = wrap(assert_cmd::Command::new(PROGRAM));
    command.current_dir(dir.path()).env_remove("RUST_LOG").timeout(PATIENCE);
    let output = command.args(["run", "scenario.toml", "--out", out]).args(options).output().unwrap();
    Ran {
        dir,
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A row of messages.csv.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Message {
    pub message: u32,
    pub node: String,
    pub peer: String,
    pub qpn: u32,
    pub verb: String,
    pub bytes: u64,
    pub posted_ps: u64,
    pub completed_ps: Option<u64>,
    pub delivered_ps: Option<u64>,
    pub packets: Option<u32>,
    pub retransmissions: u64,
    pub status: String,
}

impl Ran {
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "\n{}{}", self.stdout, self.stderr);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("out").join(name)
    }

    pub fn messages(&self) -> Vec<Message> {
        let mut reader = csv::Reader::from_path(self.path("messages.csv")).unwrap();
        reader.deserialize().map(|row| row.unwrap()).collect()
    }

    /// The only message there is.
    pub fn message(&self) -> Message {
        let [message] = self.messages().try_into().expect("one message");
        message
    }

    /// The lines of events.jsonl.
    pub fn events(&self) -> Vec<Event> {
        let text = fs::read_to_string(self.path("events.jsonl")).unwrap();
        text.lines().map(|line| Event(serde_json::from_str(line).unwrap())).collect()
    }

    pub fn summary(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("summary.json")).unwrap()).unwrap()
    }

    /// A counter of the summary.
    pub fn counter(&self, node: &str, name: &str) -> u64 {
        let summary = self.summary();
        let nodes = summary["nodes"].as_array().unwrap();
        let of_node = nodes.iter().find(|one| one["node"] == node).expect("a node of that name");
        of_node["counters"][name].as_u64().unwrap_or_else(|| panic!("a counter called {name}"))
    }

    /// Every file of the output directory with its content.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files_in(&self.dir.path().join("out"))
    }
}

/// A line of events.jsonl.
#[derive(Clone, Debug)]
pub struct Event(pub Value);

impl Event {
    pub fn is(&self, node: &str, event: &str) -> bool {
        self.0["node"] == node && self.0["event"] == event
    }

    pub fn t_ps(&self) -> u64 {
        self.number("t_ps")
    }

    pub fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_else(|| panic!("no number `{key}` in {}", self.0))
    }

    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {}", self.0))
    }
}

/// The sizes of the files without a name that a process has open: its outputs, while it runs. A file with a name
/// may be a library that the loader reads, before there is a program at all.
pub fn unnamed_files(pid: i32) -> impl Iterator<Item = u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = descriptors.filter_map(|descriptor| fs::metadata(descriptor.path()).ok());
    files.filter(|file| file.is_file() && file.nlink() == 0).map(|file| file.len())
}

/// Every file of a directory with its content.
pub fn files_in(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeMap::new() };
    let entries = entries.map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Says which files differ, and where, instead of printing megabytes.
#[track_caller]
pub fn assert_same_files(what: &str, one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{what}");
    for (name, octets) in one {
        let same = octets.iter().zip(&other[name]).take_while(|(a, b)| a == b).count();
        let lengths = (octets.len(), other[name].len());
        assert!(octets == &other[name], "{what}: {name} differs from octet {same} on, lengths {lengths:?}");
    }
}

pub fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("rocemu-test-").tempdir().unwrap()
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Whether this machine has a command.
pub fn has(command: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|dir| dir.join(command).is_file())
}

/// Says that a test, or its rest, does not run here. Where all tools are promised, that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var_os("ROCEMU_TEST_NO_SKIP").is_none(), "nothing may be skipped here: {why}");
    println!("skipped: {why}");
}

/// Waits for something that other processes or the kernel do in the background.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not so in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// tshark on a capture; `None` where it is not installed.
pub fn tshark(capture: &Path, arguments: &[&str]) -> Option<String> {
    if !has("tshark") {
        skip("needs tshark");
        return None;
    }
    let output = Command::new("tshark").arg("-r").arg(capture).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "tshark {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The values of `fields` for every frame that passes `filter`, as tshark sees them.
pub fn tshark_fields<const N: usize>(capture: &Path, filter: &str, fields: [&str; N]) -> Option<Vec<[String; N]>> {
    let mut arguments = vec!["-Y", filter, "-T", "fields"];
    for field in fields {
        arguments.extend(["-e", field]);
    }
    let text = tshark(capture, &arguments)?;
    let rows = text.lines().map(|line| {
        let values: Vec<_> = line.split('\t').map(str::to_owned).collect();
        values.try_into().unwrap_or_else(|_| panic!("{N} fields in `{line}`"))
    });
    Some(rows.collect())
}

/// A scenario with a bit of everything a loss-free run can do: both directions, both verbs, several queue pairs, sizes
/// that need padding, an implicit connection, PSNs that wrap, posts at intervals, unequal nodes.
pub fn mixed() -> String {
    pair(
        r#"
[scenario]
name = "mixed"
seed = 7

[nodes.b.nic]
mss = "1000B"
pcie.lane_bps = "7.88Gbps"

[[queue_pairs]]
name = "q1"
ends = ["a", "b"]
initial_psn = [0xfffffe, 77]

[[queue_pairs]]
name = "q2"
ends = ["b", "a"]

[[posts]]
queue_pair = "q1"
from = "a"
size = "200001B"
count = 3

[[posts]]
queue_pair = "q1"
from = "b"
verb = "send"
size = "40002B"
count = 2
every = "5us"

[[posts]]
at = "1us"
queue_pair = "q2"
from = "a"
size = "0B"

[[posts]]
at = "1500ns"
queue_pair = "q2"
from = "b"
size = "4097B"
count = 4

[[posts]]
at = "2us"
from = "b"
to = "a"
verb = "send"
size = "100KB"
"#,
    )
}

/// The network namespaces of a process's sockets, other than our own, held open; root only.
pub fn namespaces_of_sockets(pid: i32) -> Vec<File> {
    const SIOCGSKNS: libc::c_ulong = 0x894c;
    // SAFETY: these calls take numbers only, and return a new descriptor or -1.
    let owned = |fd: libc::c_long| (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) });
    // SAFETY: as above.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) });
    let process = process.unwrap_or_else(|| panic!("pidfd_open: {}", Errno::last()));
    let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let path = entry.unwrap().path();
        let is_socket = fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|_| is_socket) else { continue };
        // SAFETY: as above; the copy of the socket is closed again before the process is killed.
        let copy = owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) });
        let copy = copy.unwrap_or_else(|| panic!("pidfd_getfd: {}", Errno::last()));
        // SAFETY: this ioctl takes no argument, and returns a new descriptor or -1.
        let namespace = owned(unsafe { libc::ioctl(copy.as_raw_fd(), SIOCGSKNS) }.into()).map(File::from);
        found.extend(namespace.filter(|file| file.metadata().unwrap().ino() != own));
    }
    found
}
