//! Frames across real veth pairs: what comes out, what is noticed, what is left behind.
//!
//! All traffic stays in namespaces made here. Tests that need a process of their own (another user, a kill) run this
//! file's executable again, filtered to [`plays_a_role`].

#![expect(clippy::disallowed_methods, reason = "processes and kernels are waited for in real time")]

mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::copy_program;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rocemu::engine::{Hop, Wires, WiresError};
use rocemu::io::VethWires;
use rocemu::netns::{End, Error, Options, Status, Step, Topology, leftovers, probe, remove_leftover};

const A_TO_B: Hop = Hop::new(0, 0);
const B_TO_A: Hop = Hop::new(0, 1);
const ROLE: &str = "ROCEMU_TEST_ROLE";
const RUN: &str = "ROCEMU_TEST_RUN";

fn topology(nodes: &[&str], cables: &[[(usize, usize); 2]]) -> Topology {
    let end = |(node, port)| End { node, port };
    Topology {
        nodes: nodes.iter().map(|&n| n.to_owned()).collect(),
        cables: cables.iter().map(|ends| ends.map(end)).collect(),
    }
}

fn pair() -> Topology {
    topology(&["a", "b"], &[[(0, 0), (1, 0)]])
}

fn create(topology: &Topology) -> VethWires {
    VethWires::create(topology, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Untagged IPv4 between the model's MACs; everything behind the Ethernet header depends on `seed`.
fn frame(octets: usize, seed: u8) -> Bytes {
    let mut frame: Vec<u8> = (0..octets).map(|n| (n as u8).wrapping_mul(7).wrapping_add(seed)).collect();
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    frame.into()
}

fn send_foreign(port: BorrowedFd<'_>, frame: &[u8]) {
    assert_eq!(send(port.as_raw_fd(), frame, MsgFlags::empty()), Ok(frame.len()));
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    root
}

/// Runs `work` in another thread, inside a network namespace.
fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        scope
            .spawn(|| {
                setns(namespace, CloneFlags::CLONE_NEWNET).expect("may enter the namespace");
                work()
            })
            .join()
            .expect("no panic inside")
    })
}

fn interfaces() -> BTreeSet<String> {
    pnet::datalink::interfaces().into_iter().map(|interface| interface.name).collect()
}

/// The namespace that a packet socket lives in. Holding it keeps the namespace, but not its sockets.
fn namespace_of(socket: BorrowedFd<'_>) -> File {
    const SIOCGSKNS: libc::c_ulong = 0x894c;
    // SAFETY: this ioctl takes no argument, and returns a new descriptor or -1.
    let fd = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) };
    assert!(fd >= 0, "{}", Errno::last());
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    unsafe { File::from_raw_fd(fd) }
}

/// The kernel takes namespaces down in the background.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "not so after 10 s: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Makes the socket drop every frame before it is queued: a cable cut that no counter sees.
fn deafen(socket: BorrowedFd<'_>) {
    let mut drop_all = [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: drop_all.as_mut_ptr() };
    // SAFETY: `program` and the instruction it points to outlive the call, which copies them.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "{}", Errno::last());
}

#[test]
fn frames_of_every_size_come_out_as_they_went_in() {
    let mut wires = create(&pair());
    for octets in [60, 62, 84, 4_154, 4_170, 9_290] {
        for hop in [A_TO_B, B_TO_A] {
            let frame = frame(octets, hop.index() as u8);
            assert_eq!(wires.carry(hop, &frame).unwrap(), frame);
        }
    }
    wires.finish().unwrap();
    assert_eq!(wires.foreign().count, 0);
}

#[test]
fn a_pause_frame_passes() {
    let mut pause = vec![0; 60];
    pause[..18].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 1, 1, 0, 8]);
    let pause = Bytes::from(pause);
    let mut wires = create(&pair());
    assert_eq!(wires.carry(A_TO_B, &pause).unwrap(), pause);
    assert_eq!(wires.carry(B_TO_A, &pause).unwrap(), pause);
}

#[test]
fn a_thousand_frames_back_and_forth_stay_in_step() {
    let mut wires = create(&pair());
    for n in 0..1_000_u32 {
        let frame = frame(60 + n as usize * 9, n as u8);
        assert_eq!(wires.carry(Hop::new(0, n % 2), &frame).unwrap(), frame);
    }
    wires.finish().unwrap();
    assert_eq!(wires.foreign().count, 0);
}

#[test]
fn what_was_received_can_be_sent_on_over_the_next_hop() {
    let mut wires = create(&topology(&["a", "s", "b"], &[[(0, 0), (1, 0)], [(1, 1), (2, 0)]]));
    let sent = frame(4_154, 3);
    let at_switch = wires.carry(Hop::new(0, 0), &sent).unwrap();
    let at_b = wires.carry(Hop::new(1, 0), &at_switch).unwrap();
    let back = wires.carry(Hop::new(1, 1), &at_b).unwrap();
    assert_eq!(wires.carry(Hop::new(0, 1), &back).unwrap(), sent);
}

#[test]
fn seventy_nodes_around_a_switch_are_wired_up() {
    let leaves = 1..70;
    let star = Topology {
        nodes: (0..70).map(|n| format!("n{n}")).collect(),
        cables: leaves.map(|n| [End { node: 0, port: n - 1 }, End { node: n, port: 0 }]).collect(),
    };
    let start = Instant::now();
    let mut wires = create(&star);
    println!("70 nodes were wired up in {:?}", start.elapsed());
    for cable in 0..69 {
        let frame = frame(84, cable as u8);
        assert_eq!(wires.carry(Hop::new(cable, 0), &frame).unwrap(), frame);
        assert_eq!(wires.carry(Hop::new(cable, 1), &frame).unwrap(), frame);
    }
    let start = Instant::now();
    drop(wires);
    println!("and taken down in {:?}", start.elapsed());
}

/// Measured on 2 virtual CPUs with Linux 6.18, release build: 0.9 µs for 60 octets, 1.2 for 4,154; 1.3 and 1.6 in noise.
#[test]
fn a_hop_costs_microseconds() {
    let mut wires = create(&pair());
    for octets in [60, 4_154, 9_290] {
        let frame = frame(octets, 0);
        let start = Instant::now();
        for n in 0..10_000 {
            wires.carry(Hop::new(0, n % 2), &frame).unwrap();
        }
        let per_hop = start.elapsed() / 10_000;
        println!("{octets} octets: {per_hop:?} per hop");
        assert!(per_hop < Duration::from_micros(200), "{per_hop:?}");
    }
}

#[test]
fn a_frame_of_somebody_else_is_counted_and_kept_from_the_model() {
    let mut wires = create(&pair());
    let foreign = frame(100, 99);
    for _ in 0..10 {
        send_foreign(wires.sender(A_TO_B), &foreign);
    }
    let sent = frame(4_154, 1);
    assert_eq!(wires.carry(A_TO_B, &sent).unwrap(), sent);
    let seen = wires.foreign();
    assert_eq!((seen.count, seen.first.len()), (10, 8));
    assert_eq!((seen.first[0].port.as_str(), seen.first[0].octets), ("b:a", 100));
    assert_eq!(seen.first[0].head, foreign[..64]);
}

#[test]
fn a_foreign_frame_longer_than_the_expected_one_is_told_with_its_whole_length() {
    let mut wires = create(&pair());
    send_foreign(wires.sender(A_TO_B), &frame(9_000, 5));
    let sent = frame(60, 1);
    assert_eq!(wires.carry(A_TO_B, &sent).unwrap(), sent);
    assert_eq!((wires.foreign().first[0].octets, wires.foreign().first[0].head.len()), (9_000, 60));
}

#[test]
fn late_foreign_frames_are_found_at_the_end() {
    let mut wires = create(&pair());
    send_foreign(wires.sender(B_TO_A), &frame(4_154, 5));
    wires.finish().unwrap();
    let seen = wires.foreign();
    assert_eq!((seen.count, seen.first[0].port.as_str(), seen.first[0].octets), (1, "a:b", 4_154));
    assert_eq!(seen.first[0].head.len(), 64);
}

#[test]
fn a_foreign_frame_that_resembles_the_sent_one_is_told_apart_once_that_arrives() {
    let mut wires = create(&pair());
    send_foreign(wires.sender(A_TO_B), &frame(200, 98));
    send_foreign(wires.sender(A_TO_B), &frame(200, 99));
    let sent = frame(200, 1);
    assert_eq!(wires.carry(A_TO_B, &sent).unwrap(), sent);
    assert_eq!(wires.foreign().count, 2);
}

#[test]
fn a_frame_that_comes_back_different_is_called_altered() {
    let mut wires = create(&pair());
    let sent = frame(200, 1);
    let mut altered = sent.to_vec();
    altered[77] ^= 1;
    // To the far end this is the same as one frame in which a bit flipped on the way.
    send_foreign(wires.sender(A_TO_B), &altered);
    deafen(wires.sender(B_TO_A));
    let error = wires.carry(A_TO_B, &sent).unwrap_err();
    assert!(matches!(&error, WiresError::Altered { port, octets: 200, offset: 77 } if port == "b:a"), "{error}");
}

#[test]
fn a_frame_that_never_arrives_is_called_lost() {
    let mut wires = create(&pair());
    deafen(wires.sender(B_TO_A));
    let error = wires.carry(A_TO_B, &frame(4_154, 1)).unwrap_err();
    assert!(matches!(&error, WiresError::Lost { port, octets: 4_154, waited_ms: 2_000.. } if port == "b:a"), "{error}");
}

#[test]
fn a_full_receive_buffer_is_reported_loudly_and_at_once() {
    let options = Options { receive_buffer: 8_192, ..Options::default() };
    for at_the_end in [false, true] {
        let mut wires = VethWires::create(&pair(), &options).unwrap();
        for _ in 0..100 {
            send_foreign(wires.sender(A_TO_B), &frame(4_154, 99));
        }
        let start = Instant::now();
        let error = if at_the_end { wires.finish() } else { wires.carry(A_TO_B, &frame(60, 1)).map(drop) }.unwrap_err();
        assert!(matches!(&error, WiresError::KernelDrops { port, frames: 1.. } if port == "b:a"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(1), "no waiting for what the kernel has dropped");
    }
}

#[test]
fn a_frame_too_long_for_the_wire_is_an_error_of_the_sending_port() {
    let mut wires = create(&pair());
    assert!(wires.carry(A_TO_B, &frame(9_314, 1)).is_ok());
    let error = wires.carry(A_TO_B, &frame(9_315, 1)).unwrap_err();
    let WiresError::Socket { port, action, source } = &error else { panic!("{error}") };
    assert_eq!((port.as_str(), *action), ("a:b", "sending a frame"));
    assert_eq!(source.raw_os_error(), Some(libc::EMSGSIZE));
}

#[test]
fn threads_can_create_wires_at_the_same_time() {
    thread::scope(|scope| {
        for thread in 0..8_u8 {
            scope.spawn(move || {
                let mut wires = create(&topology(&["a", "s", "b"], &[[(0, 0), (1, 0)], [(1, 1), (2, 0)]]));
                for n in 0..50 {
                    let frame = frame(1_000, thread.wrapping_mul(50).wrapping_add(n));
                    assert_eq!(wires.carry(Hop::new(u32::from(n % 2), 0), &frame).unwrap(), frame);
                }
                wires.finish().unwrap();
                assert_eq!(wires.foreign().count, 0, "nobody hears anybody else's frames");
            });
        }
    });
}

#[test]
fn an_impossible_topology_is_refused_before_anything_is_made() {
    let error = VethWires::create(&topology(&["a"], &[[(0, 0), (7, 0)]]), &Options::default()).unwrap_err();
    assert!(matches!(error, Error::NoSuchNode { cable: 0, node: 7 }), "{error}");
}

#[test]
fn dropped_wires_take_their_interfaces_with_them() {
    let before = interfaces();
    let wires = create(&pair());
    assert_eq!(interfaces(), before, "nothing shows up where the caller is");
    if !is_root() {
        return;
    }
    let a = namespace_of(wires.sender(A_TO_B));
    assert!(inside(&a, interfaces).contains("b"), "the interface is called after the far end");
    drop(wires);
    // Namespace b is gone, and with it its end of the pair, and with that the end in the one namespace that is held.
    eventually("the pair is gone", || !inside(&a, interfaces).contains("b"));
}

// --- with processes of their own ---

/// This executable again, as another process that plays `role`.
fn role(program: &mut Command, role: &str) -> Command {
    let mut command = Command::new(program.get_program());
    command.args(program.get_args()).args(["plays_a_role", "--exact", "--nocapture"]);
    command.env(ROLE, role).env_remove("RUST_TEST_THREADS").stdin(Stdio::null());
    command
}

fn this_executable() -> std::path::PathBuf {
    std::env::current_exe().expect("known")
}

fn succeeded(output: &Output) {
    let text = |octets| String::from_utf8_lossy(octets).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("the role is played"), "{}\n{out}\n{err}", output.status);
}

#[test]
fn plays_a_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.as_str() {
        "ordinary user" => an_ordinary_user(),
        "tidy" => a_tidy_process(),
        "hold" => hold(),
        "silent" => {
            assert!(fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0").is_err(), "read-only");
            let mut wires = create(&pair());
            thread::sleep(Duration::from_millis(1_500));
            wires.finish().unwrap();
            assert_eq!(wires.foreign().first, []);
        }
        "poor" => {
            setrlimit(Resource::RLIMIT_NOFILE, 20, 20).unwrap();
            let error = VethWires::create(&pair(), &Options::default()).unwrap_err();
            assert!(matches!(error, Error::TooFewDescriptors { hard: 20, .. }), "{error}");
            assert!(error.to_string().contains("ulimit"), "{error}");
        }
        "modest" => {
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
            setrlimit(Resource::RLIMIT_NOFILE, 20, hard).unwrap();
            drop(create(&pair()));
        }
        "refused" => refused(Step::UserNamespace, "user.max_user_namespaces = 0"),
        "filtered" => {
            forbid_unshare();
            refused(Step::UserNamespace, "seccomp");
        }
        other => panic!("no role {other}"),
    }
    println!("the role is played");
}

fn an_ordinary_user() {
    assert!(!nix::unistd::geteuid().is_root());
    let mut wires = create(&topology(&["a", "s", "b"], &[[(0, 0), (1, 0)], [(1, 1), (2, 0)]]));
    for octets in [60, 4_154, 9_290] {
        for hop in [A_TO_B, B_TO_A, Hop::new(1, 0), Hop::new(1, 1)] {
            let frame = frame(octets, 1);
            assert_eq!(wires.carry(hop, &frame).unwrap(), frame);
        }
    }
    thread::sleep(Duration::from_millis(200));
    wires.finish().unwrap();
    assert_eq!(wires.foreign().count, 0);
    let named = Options { named: Some("x".to_owned()), ..Options::default() };
    let error = VethWires::create(&pair(), &named).unwrap_err();
    assert!(matches!(error, Error::NamedNeedsRoot) && error.to_string().contains("root"), "{error}");
    assert!(probe().iter().all(|check| check.status != Status::Fail), "{:#?}", probe());
}

fn a_tidy_process() {
    let descriptors = || fs::read_dir("/proc/self/fd").expect("readable").count();
    let before = descriptors();
    for _ in 0..5 {
        let mut wires = create(&pair());
        wires.carry(A_TO_B, &frame(60, 1)).unwrap();
        assert_eq!(descriptors(), before + 2, "two sockets, and nothing else");
    }
    probe();
    assert!(VethWires::create(&topology(&["a"], &[[(0, 0), (7, 0)]]), &Options::default()).is_err());
    assert_eq!(descriptors(), before);
    assert_eq!(waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)), Err(Errno::ECHILD), "no child, no zombie");
}

/// Holds wires until it is killed; tells where one of the namespaces can be found.
fn hold() {
    let named = std::env::var(RUN).ok();
    let wires = VethWires::create(&pair(), &Options { named, ..Options::default() }).unwrap();
    let namespace = namespace_of(wires.sender(A_TO_B));
    println!("\nheld {}", namespace.as_raw_fd());
    std::io::stdout().flush().unwrap();
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

fn refused(at: Step, because: &str) {
    let error = VethWires::create(&pair(), &Options::default()).unwrap_err();
    let Error::Refused { step, .. } = &error else { panic!("{error}") };
    assert_eq!(*step, at, "{error}");
    let text = error.to_string();
    assert!(text.contains(because) && text.contains("fix:") && text.contains("--wires memory"), "{text}");
    assert!(
        probe().iter().any(|check| check.status == Status::Fail && check.found.contains(because)),
        "{:#?}",
        probe()
    );
}

/// As a container's filter does.
fn forbid_unshare() {
    let op = |code, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_unshare as u32),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    nix::sys::prctl::set_no_new_privs().unwrap();
    // SAFETY: `program` and the instructions it points to outlive the call, which copies them.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(done, 0, "{}", Errno::last());
}

#[test]
fn an_ordinary_user_needs_no_rights() {
    if !nix::unistd::geteuid().is_root() {
        return an_ordinary_user();
    }
    // Where any user may run it: the build directory may be root's own.
    let directory = tempfile::Builder::new().prefix("rocemu-test-").tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.path().join("wires");
    copy_program(&this_executable(), &copy);
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    succeeded(&role(&mut as_nobody, "ordinary user").current_dir("/").output().unwrap());
}

#[test]
fn no_child_and_no_descriptor_is_left() {
    succeeded(&role(&mut Command::new(this_executable()), "tidy").output().unwrap());
}

#[test]
fn a_limit_of_open_files_is_raised_or_else_told_before_anything_is_made() {
    succeeded(&role(&mut Command::new(this_executable()), "modest").output().unwrap());
    succeeded(&role(&mut Command::new(this_executable()), "poor").output().unwrap());
}

/// There, IPv6 cannot be switched off, only kept from taking an address.
#[test]
fn interfaces_are_silent_in_a_container_with_read_only_settings_too() {
    if !is_root() {
        return;
    }
    let script = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"";
    let mut container = Command::new("unshare");
    container.args(["--mount", "sh", "-c", script, "sh"]).arg(this_executable());
    succeeded(&role(&mut container, "silent").output().unwrap());
}

#[test]
fn a_machine_without_user_namespaces_is_told_so() {
    if !is_root() {
        return;
    }
    // The limit counts per user namespace, so it can be tried in one without touching the machine.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all \"$@\"";
    let mut without = Command::new("unshare");
    without.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]).arg(this_executable());
    succeeded(&role(&mut without, "refused").output().unwrap());
}

#[test]
fn a_container_that_forbids_namespaces_is_told_so() {
    succeeded(&role(&mut Command::new(this_executable()), "filtered").output().unwrap());
}

/// A process that holds wires, and one of its two namespaces.
fn holder(run: Option<&str>) -> (Child, File) {
    let mut command = role(&mut Command::new(this_executable()), "hold");
    if let Some(run) = run {
        command.env(RUN, run);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let fd = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("held ").map(str::to_owned));
    let namespace = File::open(format!("/proc/{}/fd/{}", child.id(), fd.expect("it came up"))).unwrap();
    (child, namespace)
}

#[test]
fn kill_dash_nine_leaves_nothing() {
    if !is_root() {
        return;
    }
    let before = interfaces();
    let (mut child, a) = holder(None);
    assert!(inside(&a, interfaces).contains("b"));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the pair is gone", || !inside(&a, interfaces).contains("b"));
    assert_eq!(interfaces(), before);
}

// --- with names ---

fn names_of(run: &str) -> Vec<String> {
    let prefix = format!("rocemu-{run}-");
    let Ok(entries) = fs::read_dir("/var/run/netns") else { return Vec::new() };
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&prefix))
        .collect();
    names.sort();
    names
}

fn run_id(what: &str) -> String {
    format!("test{}{what}", std::process::id())
}

fn named(run: &str) -> Options {
    Options { named: Some(run.to_owned()), ..Options::default() }
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn named_namespaces_are_there_while_the_run_lives_and_gone_after() {
    if !is_root() {
        return;
    }
    let run = run_id("life");
    let mut wires = VethWires::create(&pair(), &named(&run)).unwrap();
    let [a, b] = ["a", "b"].map(|node| format!("rocemu-{run}-{node}"));
    assert_eq!(names_of(&run), [a.as_str(), b.as_str()]);
    assert!(ip(&["netns", "list"]).contains(&a));
    // Whatever a person runs in there sees the interface, called after its far end.
    let seen = ip(&["netns", "exec", &a, "ip", "-o", "link", "show", "up"]);
    assert!(seen.contains("b@") && seen.contains("mtu 9300"), "{seen}");
    assert_eq!(ip(&["-n", &a, "address", "show", "dev", "b"]).matches("inet").count(), 0, "no address");
    assert_eq!(wires.carry(A_TO_B, &frame(4_154, 1)).unwrap(), frame(4_154, 1));
    assert!(leftovers().unwrap().iter().all(|leftover| leftover.run != run), "a living run is no leftover");
    drop(wires);
    assert_eq!(names_of(&run), [""; 0]);
    assert!(!Path::new("/var/run/rocemu").join(&run).exists());
}

/// pnet opens, binds and sends with code of its own.
#[test]
fn a_frame_from_another_program_is_foreign() {
    if !is_root() {
        return;
    }
    let mut wires = VethWires::create(&pair(), &named(&run_id("foreign"))).unwrap();
    let a = File::open(&wires.names()[0]).unwrap();
    let foreign = frame(300, 9);
    inside(&a, || {
        let b = pnet::datalink::interfaces().into_iter().find(|interface| interface.name == "b").unwrap();
        let Ok(pnet::datalink::Channel::Ethernet(mut sender, _)) = pnet::datalink::channel(&b, Default::default())
        else {
            panic!("no channel")
        };
        sender.send_to(&foreign, None).unwrap().unwrap();
    });
    assert_eq!(wires.carry(A_TO_B, &frame(60, 1)).unwrap(), frame(60, 1));
    assert_eq!((wires.foreign().count, wires.foreign().first[0].octets), (1, 300));
}

#[test]
fn an_interface_that_somebody_takes_away_is_an_error() {
    if !is_root() {
        return;
    }
    for (what, last_words, errno) in
        [("down", &["set", "dev", "b", "down"][..], libc::ENETDOWN), ("gone", &["delete", "dev", "b"], libc::ENXIO)]
    {
        let run = run_id(what);
        let mut wires = VethWires::create(&pair(), &named(&run)).unwrap();
        ip(&[&["-n", &format!("rocemu-{run}-a"), "link"], last_words].concat());
        let error = wires.carry(A_TO_B, &frame(60, 1)).unwrap_err();
        let WiresError::Socket { port, source, .. } = &error else { panic!("{error}") };
        assert_eq!(port, "a:b");
        assert!([Some(errno), Some(libc::ENETDOWN)].contains(&source.raw_os_error()), "{error}");
    }
}

#[test]
fn names_are_removed_when_the_run_panics() {
    if !is_root() {
        return;
    }
    let run = run_id("panic");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _wires = VethWires::create(&pair(), &named(&run)).unwrap();
        assert_eq!(names_of(&run).len(), 2);
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(outcome.is_err());
    assert_eq!(names_of(&run), [""; 0]);
}

#[test]
fn a_run_takes_neither_another_runs_id_nor_another_ones_namespace() {
    if !is_root() {
        return;
    }
    let run = run_id("taken");
    let wires = VethWires::create(&pair(), &named(&run)).unwrap();
    assert!(matches!(VethWires::create(&pair(), &named(&run)), Err(Error::RunTaken { .. })));
    assert_eq!(names_of(&run).len(), 2, "the refused one has removed nothing");
    drop(wires);

    let theirs = format!("rocemu-{run}-b");
    ip(&["netns", "add", &theirs]);
    let refused = VethWires::create(&pair(), &named(&run));
    assert_eq!(names_of(&run), [theirs.as_str()], "only what was not ours is left");
    ip(&["netns", "delete", &theirs]);
    assert!(matches!(refused, Err(Error::NameTaken { .. })));
    for bad in ["", "../x", "a/b", ".x"] {
        assert!(matches!(VethWires::create(&pair(), &named(bad)), Err(Error::BadName { .. })), "{bad:?}");
    }
}

#[test]
fn what_a_killed_run_left_is_found_and_removed() {
    if !is_root() {
        return;
    }
    let run = run_id("killed");
    let (mut child, _) = holder(Some(&run));
    let ours = || leftovers().unwrap().into_iter().find(|leftover| leftover.run == run);
    assert_eq!(ours(), None, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    let leftover = ours().expect("found");
    assert_eq!(leftover.namespaces, names_of(&run));
    assert_eq!(leftover.namespaces.len(), 2);
    let found = probe().into_iter().find(|check| check.name == "leftovers").unwrap();
    assert!(found.status == Status::Warn && found.found.contains(&run), "{found:?}");
    remove_leftover(&leftover).unwrap();
    assert_eq!(names_of(&run), [""; 0]);
    assert_eq!(ours(), None);
    remove_leftover(&leftover).unwrap();
}

#[test]
fn the_doctor_finds_this_machine_fit_and_leaves_no_trace() {
    let before = interfaces();
    let checks = probe();
    for check in &checks {
        println!("{:?} {}: {}{}", check.status, check.name, check.found, check.advice.as_deref().unwrap_or(""));
    }
    assert!(checks.iter().all(|check| check.status != Status::Fail), "{checks:#?}");
    assert!(checks.iter().any(|check| check.name == "delivery"));
    assert_eq!(interfaces(), before);
}
