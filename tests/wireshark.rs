//! What Wireshark makes of the captures: nothing to complain about, and every field as it was meant.

mod common;

use common::{Ran, mixed, pair, post, queue_pair, run_well, tshark, tshark_fields};

/// Malformed, or a warning or worse of its expert.
const COMPLAINTS: &str = "_ws.malformed || _ws.expert.severity >= 0x400000";

/// Writes of these sizes, one after the other on one queue pair.
fn writes(sizes: &[&str]) -> String {
    let posts: String = sizes.iter().map(|size| post("q1", "a", "write", size, 1)).collect();
    pair(&format!("{}{posts}", queue_pair("q1")))
}

#[track_caller]
fn assert_no_complaint(ran: &Ran, more: &[&str]) {
    let arguments = [&["-Y", COMPLAINTS], more].concat();
    if let Some(complaints) = tshark(&ran.path("capture.pcapng"), &arguments) {
        let first: Vec<_> = complaints.lines().take(5).collect();
        assert!(first.is_empty(), "{first:#?}");
    }
}

#[test]
fn writes_of_all_sizes_draw_no_complaint() {
    let sizes =
        ["0B", "1B", "2B", "3B", "4B", "15B", "16B", "511B", "512B", "4095B", "4096B", "4097B", "8193B", "100001B"];
    assert_no_complaint(&run_well(&writes(&sizes), &[]), &[]);
}

/// But for a payload of a single octet: Wireshark takes it, with its padding, for a raw header of another protocol if the
/// octet is the upper half of a known ethertype (06, 08, 81 …), as in the last packet of message 3 if that has 4,097 B.
#[test]
fn writes_at_every_packet_size_draw_no_complaint() {
    for mss in ["2B", "7B", "256B", "1024B", "9216B"] {
        let text = writes(&["300B", "20001B"])
            .replace("[nodes.a]", &format!("[nic]\nmtu = \"9400B\"\nmss = \"{mss}\"\n[nodes.a]"));
        assert_no_complaint(&run_well(&text, &[]), &[]);
    }
}

#[test]
fn several_queue_pairs_in_both_directions_draw_no_complaint() {
    let queue_pairs: String = (1..=4).map(|n| queue_pair(&format!("q{n}"))).collect();
    let posts: String = (1..=4)
        .flat_map(|n| ["a", "b"].map(|from| post(&format!("q{n}"), from, "write", &format!("{}B", 5_000 * n), 3)))
        .collect();
    assert_no_complaint(&run_well(&pair(&(queue_pairs + &posts)), &[]), &[]);
}

#[test]
fn a_capture_of_headers_or_of_one_port_draws_no_complaint() {
    let text = writes(&["1B", "20001B"]);
    assert_no_complaint(&run_well(&text, &["--capture-ports", "b:a"]), &[]);
    let headers = run_well(&text, &["--capture", "headers"]);
    let Some(rows) = tshark_fields(&headers.path("capture.pcapng"), "", ["frame.len", "frame.cap_len"]) else { return };
    assert!(rows.iter().any(|[length, kept]| length == "4170" && kept == "96"), "{rows:?}");
}

/// Wireshark guesses protocols inside of SENDs; without the guesses they are as good as WRITEs.
#[test]
fn sends_draw_no_complaint_without_guesses() {
    assert_no_complaint(&run_well(&mixed(), &[]), &["--disable-protocol", "rpcordma"]);
    let posts: String =
        ["0B", "1B", "12B", "13B", "4096B", "20001B"].map(|size| post("q1", "a", "send", size, 1)).concat();
    let sends = run_well(&pair(&format!("{}{posts}", queue_pair("q1"))), &[]);
    assert_no_complaint(&sends, &["--disable-protocol", "rpcordma"]);
}

#[test]
fn a_write_of_three_packets_reads_as_intended() {
    let text = writes(&["8195B"])
        .replace("ends = [\"a\", \"b\"]\n[[posts]]", "ends = [\"a\", \"b\"]\ninitial_psn = 0xffffff\n[[posts]]");
    let ran = run_well(&text, &["--capture-ports", "a:b"]);
    let capture = ran.path("capture.pcapng");
    let fields = [
        "infiniband.bth.opcode",
        "infiniband.bth.psn",
        "infiniband.bth.padcnt",
        "infiniband.bth.a",
        "infiniband.bth.destqp",
        "infiniband.bth.p_key",
        "infiniband.reth.va",
        "infiniband.reth.r_key",
        "infiniband.reth.dmalen",
        "frame.len",
    ];
    let Some(rows) = tshark_fields(&capture, "!infiniband.aeth", fields) else { return };
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(String::as_str)).collect();
    assert_eq!(
        rows,
        [
            // WRITE FIRST with RETH: message 0 is at 0x100000000 with rkey 1. 4,096 + 58 + 16 octets.
            ["6", "16777215", "0", "0", "0x000002", "65535", "0x0000000100000000", "0x00000001", "8195", "4170"],
            // The PSN wraps at 24 bits.
            ["7", "0", "0", "0", "0x000002", "65535", "", "", "", "4154"],
            // WRITE LAST asks for an ACK. Three octets and one of padding.
            ["8", "1", "1", "1", "0x000002", "65535", "", "", "", "62"],
        ]
    );
    let fields =
        ["infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.aeth.syndrome.opcode", "infiniband.aeth.msn"];
    let acks = tshark_fields(&capture, "infiniband.aeth", fields).expect("tshark was there a moment ago");
    assert_eq!(acks, [["17", "1", "0", "1"]]);
}

#[test]
fn the_message_sequence_number_counts_completed_messages() {
    let ran = run_well(&writes(&["1B", "5000B", "0B", "4096B"]), &["--capture-ports", "b:a"]);
    let fields = ["infiniband.bth.psn", "infiniband.aeth.msn"];
    let Some(acks) = tshark_fields(&ran.path("capture.pcapng"), "infiniband.aeth", fields) else { return };
    assert_eq!(acks, [["0", "1"], ["2", "2"], ["3", "3"], ["4", "4"]]);
}

#[test]
fn pad_counts_follow_the_payload() {
    let ran = run_well(&writes(&["0B", "1B", "2B", "3B", "4B", "5B"]), &["--capture-ports", "a:b"]);
    let fields = ["infiniband.bth.padcnt", "frame.len"];
    let Some(rows) = tshark_fields(&ran.path("capture.pcapng"), "infiniband.bth.opcode == 10", fields) else { return };
    // WRITE ONLY: 74 octets of headers and ICRC, and the payload up to a multiple of four.
    assert_eq!(rows, [["0", "74"], ["3", "78"], ["2", "78"], ["1", "78"], ["0", "78"], ["3", "82"]]);
}

#[test]
fn classes_and_ecn_stand_in_the_ip_header() {
    let classes = "data_class = 0\ncontrol_class = 1\n[[posts]]";
    let text = writes(&["5000B"]).replace("[[posts]]", classes);
    let ran = run_well(&text, &[]);
    let capture = ran.path("capture.pcapng");
    let fields = ["ip.dsfield.dscp", "ip.dsfield.ecn"];
    let Some(data) = tshark_fields(&capture, "!infiniband.aeth", fields) else { return };
    // Class 0 is DSCP 0, and data is ECT(0); class 1 is DSCP 8, and an ACK is not ECN-capable.
    assert!(!data.is_empty() && data.iter().all(|row| row == &["0", "2"]), "{data:?}");
    let acks = tshark_fields(&capture, "infiniband.aeth", fields).expect("tshark was there a moment ago");
    assert!(!acks.is_empty() && acks.iter().all(|row| row == &["8", "0"]), "{acks:?}");

    let no_ecn = run_well(&text.replace("[nodes.a]", "[nic]\nenable_ecn = false\n[nodes.a]"), &[]);
    let data = tshark_fields(&no_ecn.path("capture.pcapng"), "!infiniband.aeth", fields).expect("tshark");
    assert!(!data.is_empty() && data.iter().all(|row| row == &["0", "0"]), "{data:?}");
}

#[test]
fn every_frame_is_seen_at_both_ports_with_what_was_decided() {
    let ran = run_well(&writes(&["4096B"]), &[]);
    let fields = [
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.time_epoch",
        "infiniband.bth.opcode",
        "frame.comment",
    ];
    let Some(rows) = tshark_fields(&ran.path("capture.pcapng"), "", fields) else { return };
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(String::as_str)).collect();
    // The stamp is the nanosecond in which the last bit leaves or arrives; the comment has the exact time.
    assert_eq!(
        rows,
        [
            ["a:b", "0x00000002", "0.000000233", "10", "wire_len=4154 t_ps=233924 transmission=1"],
            ["b:a", "0x00000001", "0.000000333", "10", "wire_len=4154 t_ps=333924 occupancy=4136; accepted"],
            ["b:a", "0x00000002", "0.000000336", "17", "wire_len=126 t_ps=336444"],
            ["a:b", "0x00000001", "0.000000436", "17", "wire_len=126 t_ps=436444 occupancy=108; processed"],
        ]
    );
}

#[test]
fn addresses_and_ports_are_the_documented_ones() {
    let ran = run_well(&writes(&["1B"]), &["--capture-ports", "a:b"]);
    let fields =
        ["eth.src", "eth.dst", "ip.src", "ip.dst", "ip.ttl", "ip.id", "ip.flags.df", "udp.dstport", "udp.checksum"];
    let Some(rows) = tshark_fields(&ran.path("capture.pcapng"), "!infiniband.aeth", fields) else { return };
    let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
    assert_eq!(rows, [[macs[0], macs[1], "10.0.0.1", "10.0.0.2", "64", "0x0000", "1", "4791", "0x0000"]]);
    // Both ends use the source port that both queue pair numbers give.
    let ports = tshark_fields(&ran.path("capture.pcapng"), "", ["udp.srcport"]).expect("tshark was there a moment ago");
    assert!(ports.len() == 2 && ports[0] == ports[1], "{ports:?}");
    assert!(ports[0][0].parse::<u16>().unwrap() >= 0xc000, "{ports:?}");
}
