//! Facts about the kernel that the wires rest on. Should one of these fail on some machine, look here first.
//!
//! All traffic stays in namespaces made here.

#![expect(clippy::disallowed_methods, reason = "what the kernel does by itself only shows in real time")]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{MsgFlags, recv, send};
use rocemu::engine::{Hop, Wires, WiresError};
use rocemu::io::VethWires;
use rocemu::netns::{End, Options, Topology};

const A_TO_B: Hop = Hop::new(0, 0);
const B_TO_A: Hop = Hop::new(0, 1);

fn pair(options: &Options) -> VethWires {
    let topology = Topology {
        nodes: vec!["a".to_owned(), "b".to_owned()],
        cables: vec![[End { node: 0, port: 0 }, End { node: 1, port: 0 }]],
    };
    VethWires::create(&topology, options).unwrap_or_else(|error| panic!("{error}"))
}

fn frame(octets: usize, start: &[u8]) -> Bytes {
    let mut frame: Vec<u8> = (0..octets).map(|n| n as u8).collect();
    frame[..start.len()].copy_from_slice(start);
    frame.into()
}

fn ipv4(octets: usize) -> Bytes {
    frame(octets, &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00])
}

fn crosses_unchanged(frame: &Bytes) {
    let mut wires = pair(&Options::default());
    assert_eq!(wires.carry(A_TO_B, frame).unwrap(), frame);
    assert_eq!(wires.carry(B_TO_A, frame).unwrap(), frame);
}

#[test]
fn a_frame_can_be_read_as_soon_as_it_has_been_sent() {
    let mut wires = pair(&Options::default());
    for octets in [62, 1_082, 4_170] {
        let frame = ipv4(octets);
        for n in 0..10_000 {
            wires.carry(Hop::new(0, n % 2), &frame).unwrap();
        }
    }
    // Never late where measured. Receive packet steering to another CPU, or threaded NAPI, makes nearly all frames late.
    println!("{} of 30000 were late", wires.late_count());
    assert!(wires.late_count() < 3_000, "runs are right all the same, but slow: {} late", wires.late_count());
}

#[test]
fn a_pause_frame_crosses_unchanged() {
    crosses_unchanged(&frame(60, &[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 1, 1]));
    crosses_unchanged(&frame(80, &[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 1, 1]));
}

#[test]
fn a_short_frame_is_neither_padded_nor_given_a_checksum() {
    crosses_unchanged(&ipv4(20));
    crosses_unchanged(&ipv4(14));
}

#[test]
fn a_frame_to_a_foreign_mac_arrives() {
    crosses_unchanged(&frame(100, &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 2, 0, 0, 0, 0, 1, 0x08, 0x00]));
    crosses_unchanged(&frame(100, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x00]));
}

#[test]
fn the_longest_frame_is_mtu_plus_ethernet_header() {
    crosses_unchanged(&ipv4(9_314));
    let mut wires = pair(&Options::default());
    assert!(matches!(
        wires.carry(A_TO_B, &ipv4(9_315)),
        Err(WiresError::Socket { source, .. }) if source.raw_os_error() == Some(libc::EMSGSIZE)
    ));
}

/// So the model sends none.
#[test]
fn a_vlan_tag_is_taken_off() {
    let wires = pair(&Options::default());
    let tagged = frame(100, &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0x00, 0x60, 0x01, 0x08, 0x00]);
    assert_eq!(send(wires.sender(A_TO_B).as_raw_fd(), &tagged, MsgFlags::empty()), Ok(100));
    let mut arrived = [0; 200];
    let octets = recv(wires.sender(B_TO_A).as_raw_fd(), &mut arrived, MsgFlags::empty()).unwrap();
    assert_eq!(octets, 96);
    assert_eq!((&arrived[..12], &arrived[12..96]), (&tagged[..12], &tagged[16..]));
}

#[test]
fn an_interface_without_addresses_and_ipv6_is_silent() {
    let mut wires = pair(&Options::default());
    thread::sleep(Duration::from_millis(1_500));
    // Nobody answers a datagram either.
    let to_4791 = ipv4(200);
    assert_eq!(wires.carry(A_TO_B, &to_4791).unwrap(), to_4791);
    thread::sleep(Duration::from_millis(100));
    wires.finish().unwrap();
    assert_eq!(wires.foreign().first, []);
}

/// 32 frames of 4,170 octets overflow the default of 212,992, and only the statistic tells.
#[test]
fn a_burst_overflows_the_default_receive_buffer_silently() {
    // The kernel doubles what is asked for.
    let mut wires = pair(&Options { receive_buffer: 212_992 / 2, ..Options::default() });
    for _ in 0..32 {
        assert_eq!(send(wires.sender(A_TO_B).as_raw_fd(), &ipv4(4_170), MsgFlags::empty()), Ok(4_170));
    }
    let error = wires.finish().unwrap_err();
    assert!(matches!(error, WiresError::KernelDrops { frames: 1..32, .. }), "{error}");
    println!("{error}");
}

#[test]
fn a_socket_keeps_its_namespace_and_its_interface_in_being() {
    // The process that made both has ended before the wires are there.
    let mut wires = pair(&Options::default());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(wires.carry(A_TO_B, &ipv4(60)).unwrap(), ipv4(60));
    if !nix::unistd::geteuid().is_root() {
        println!("the rest is skipped: needs root");
        return;
    }
    let namespace = namespace_of(wires.sender(A_TO_B));
    let interfaces = thread::spawn(move || {
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
        pnet::datalink::interfaces()
    });
    let interfaces = interfaces.join().unwrap();
    let b = interfaces.iter().find(|interface| interface.name == "b").expect("the veth called after its far end");
    assert!(b.is_up() && b.is_running() && b.ips.is_empty(), "{b:?}");
}

fn namespace_of(socket: BorrowedFd<'_>) -> File {
    const SIOCGSKNS: libc::c_ulong = 0x894c;
    // SAFETY: this ioctl takes no argument, and returns a new descriptor or -1.
    let fd = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) };
    assert!(fd >= 0, "{}", Errno::last());
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    unsafe { File::from_raw_fd(fd) }
}
