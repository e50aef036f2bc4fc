//! Frames confirmed by an implementation that shares nothing with this one: scapy takes each apart, computes its ICRC and
//! puts it together again, and the payload is compared with the documented pattern (`scripts/check-icrc`).

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Ran, has, mixed, pair, post, queue_pair, run_well, skip};

/// `None` where there is no Python with scapy.
fn check(captures: &[PathBuf]) -> Option<Output> {
    let has_scapy = has("python3")
        && Command::new("python3")
            .args(["-c", "import scapy.contrib.roce"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
    if !has_scapy {
        skip("needs python3 with scapy");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check-icrc");
    Some(Command::new("python3").arg(script).args(captures).output().unwrap())
}

/// What the script says after the name of the file.
#[track_caller]
fn assert_confirmed(ran: &Ran, expected: &str) {
    let Some(output) = check(&[ran.path("capture.pcapng")]) else { return };
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.trim_end().ends_with(expected), "{said}");
}

#[test]
fn every_frame_of_a_1_mib_write_is_confirmed() {
    // 256 data packets and 16 ACKs, each at both ends.
    let expected = "544 frames confirmed, 512 of them with payload; 0 wrong; 0 not RoCEv2";
    assert_confirmed(&run_well(&common::one_write("1MiB"), &[]), expected);
}

#[test]
fn padded_frames_are_confirmed() {
    let sizes = ["0B", "1B", "2B", "3B", "4B", "5B", "4095B", "4097B", "4098B", "4099B"];
    let posts: String =
        sizes.iter().flat_map(|size| ["write", "send"].map(|verb| post("q1", "a", verb, size, 1))).collect();
    let ran = run_well(&pair(&format!("{}{posts}", queue_pair("q1"))), &[]);
    // 7 messages of one packet and 3 of two, of both verbs, at both ends, each with one ACK; two are empty.
    assert_confirmed(&ran, "92 frames confirmed, 48 of them with payload; 0 wrong; 0 not RoCEv2");
}

#[test]
fn several_queue_pairs_in_both_directions_are_confirmed() {
    let ran = run_well(&mixed(), &[]);
    assert_confirmed(&ran, "0 wrong; 0 not RoCEv2");
}

#[test]
fn messages_far_apart_have_different_octets() {
    // The pattern starts with 3 + message number, modulo 256: the 300th starts like the 44th.
    let ran = run_well(&pair(&format!("{}{}", queue_pair("q1"), post("q1", "a", "write", "64B", 301))), &[]);
    assert_confirmed(&ran, "1204 frames confirmed, 602 of them with payload; 0 wrong; 0 not RoCEv2");
}

#[test]
fn frames_of_applications_are_confirmed_without_their_payload() {
    let player = Path::new(common::PROGRAM).parent().unwrap().join("examples/ping_pong");
    let exec = ["client", "server"].map(|name| format!("--exec={name}={}", player.display()));
    let ran = run_well(include_str!("../examples/ping-pong.toml"), &[&exec[0], &exec[1]]);
    // 10 SENDs and 10 WRITEs with immediate, one packet each, and their ACKs, at both ends.
    assert_confirmed(
        &ran,
        "80 frames confirmed, 0 of them with payload, 40 with that of applications; 0 wrong; 0 not RoCEv2",
    );
}

#[test]
fn a_number_like_those_of_applications_hides_no_payload() {
    let queue_pair = "[[queue_pairs]]\nname = \"q1\"\nends = [\"a\", \"b\"]\nqpn = 70000\n";
    let ran = run_well(&pair(&format!("{queue_pair}{}", post("q1", "a", "write", "10KiB", 1))), &[]);
    // Three packets and an ACK, at both ends.
    assert_confirmed(&ran, "8 frames confirmed, 6 of them with payload; 0 wrong; 0 not RoCEv2");
}

/// Otherwise "confirmed" would mean nothing.
#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let ran = run_well(&common::one_write("64B"), &["--capture-ports", "a:b"]);
    let capture = ran.path("capture.pcapng");
    let octets = fs::read(&capture).unwrap();
    // The data frame, at its MAC addresses.
    let frame = octets.windows(12).position(|w| w == [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]).expect("the frame");
    let captures: Vec<_> = ["ip_id", "udp_port", "p_key", "psn", "address", "payload", "icrc"]
        .into_iter()
        .zip([18, 34, 44, 53, 60, 100, 136])
        .map(|(what, place)| {
            let mut damaged = octets.clone();
            damaged[frame + place] ^= 0x10;
            let path = ran.path(&format!("{what}.pcapng"));
            fs::write(&path, damaged).unwrap();
            path
        })
        .collect();
    let Some(output) = check(&captures) else { return };
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for capture in captures {
        let mut ends = said.lines().filter(|line| line.starts_with(&format!("{}: ", capture.display())));
        assert!(ends.next_back().is_some_and(|end| end.contains(" 1 wrong")), "{}: {said}", capture.display());
    }
}
