use serde_json::json;

use super::super::Attribution;
use super::super::story::{self, A, B, Full, Run, at, clean, on_line, qpn};
use super::*;
use crate::base::Psn;
use crate::trace::{EventKind, MarkLimit};

fn written(run: &Run, outcome: &Outcome) -> String {
    String::from_utf8(write_summary(Vec::new(), &run.input(outcome)).unwrap()).unwrap()
}

#[test]
fn the_summary_of_a_clean_run() {
    let mut run = Run::of(&clean());
    // The story does not tell when the payload came: it was waited for all the time.
    let mut attribution = Attribution::new(&run.names);
    story::play(&clean(), &mut attribution).unwrap();
    run.queue_pairs = attribution.at_end(run.end);
    // Nor when it went out and was written.
    let (psn, payload) = (Psn::new(0), Octets::new(8_192));
    let written_at_b = at(486_293, B, EventKind::PayloadWritten { qpn: qpn(2), psn, payload });
    story::play(&[on_line(150_844, A, 2), written_at_b], &mut run.congestion).unwrap();
    let text = written(&run, &Outcome::AllWell);
    insta::assert_snapshot!(text.split_once("\"num_pkts_sent\"").unwrap().0, @r#"
    {
      "scenario": "story",
      "seed": 1,
      "version": "0.1.0",
      "verdict": "all_well",
      "reasons": [],
      "end_ps": 519524,
      "compared_octets": 8192,
      "messages": {
        "posted": 1,
        "completed": 1,
        "delivered": 1,
        "bytes": 8192,
        "completed_bytes": 8192,
        "retransmissions": 0,
        "completion_ps": {
          "min": 519524,
          "median": 519524,
          "max": 519524
        },
        "goodput_bps": 126146241560,
        "each": [
          {
            "message": 0,
            "node": "a",
            "peer": "b",
            "verb": "write",
            "bytes": 8192,
            "posted_ps": 0,
            "completed_ps": 519524,
            "delivered_ps": 486293,
            "completion_ps": 519524,
            "goodput_bps": 126146241560,
            "retransmissions": 0,
            "status": "completed"
          }
        ]
      },
      "queue_pairs": [
        {
          "node": "a",
          "peer": "b",
          "qpn": 2,
          "delivered_octets": 8192,
          "active_ps": 519524,
          "goodput_bps": 126146241560,
          "cnps_received": 0,
          "congestion_episodes": 0,
          "in_episodes_ps": 0,
          "lowest_rate_bps": null,
          "time_ps": {
            "sending": 0,
            "timeout": 0,
            "pfc_pause": 0,
            "allowed_rate": 0,
            "line_busy": 0,
            "rnr_wait": 0,
            "wqe_fetch": 0,
            "egress_pool": 0,
            "pcie_read": 519524,
            "waiting_for_ack": 0,
            "idle": 0
          }
        }
      ],
      "fairness": [],
      "nodes": [
        {
          "node": "a",
          "counters": {
            "total_packets_tx": 2,
            "total_packets_rx": 1,
            "total_bytes_tx": 8308,
            "total_bytes_rx": 126,
            "rx_drops": 0,
            "rx_lossless_drops": 0,
    "#);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["nodes"][1]["node"], "b");
    let port = json!({
        "port": "b:a",
        "rate_bps": 400_000_000_000_u64,
        "ingress_peak_octets": { "0": 4_136 },
        "ingress_pool_octets": { "0": 3_600_000, "1": 400_000 },
        "xoff_octets": { "0": 2_880_000, "1": 320_000 },
        "xon_octets": { "0": 1_440_000, "1": 160_000 },
        "pauses_requested": {},
        "resumes_requested": {},
        "pauses_received": {},
        "resumes_received": {},
        "paused_ps": {},
        "queue_peak_octets": {},
        "average_peak_octets": {},
        "ce_marks": {},
    });
    assert_eq!(read["nodes"][1]["ports"][0], port);
    let time = read["queue_pairs"][0]["time_ps"].as_object().unwrap();
    assert_eq!(time.values().map(|ps| ps.as_u64().unwrap()).sum::<u64>(), 519_524);
    assert_eq!(read["ledger"]["messages"], json!({ "entered": 1, "left": 1, "dropped": 0, "held": 0 }));
}

#[test]
fn a_congested_run_says_where_and_how_far_it_went() {
    let started = EventKind::EpisodeStarted { qpn: qpn(2) };
    let events = [
        story::posted(0, A, 0, 8),
        story::depth(1, B, 8_272, 1_199.5),
        story::marked(1, B),
        at(100, A, started),
        story::rate_changed(100, A, 250),
        story::completed(1_000, A, 0),
    ];
    let mut run = Run::of(&events);
    let mut attribution = Attribution::new(&run.names);
    story::play(&events, &mut attribution).unwrap();
    run.queue_pairs = attribution.at_end(run.end);
    run.limits.nodes[1].egress = Default::default();
    run.limits.nodes[1].marking[0] = Some(MarkLimit { kmin: Octets::new(3), kmax: Octets::new(4) });
    let read: serde_json::Value = serde_json::from_str(&written(&run, &Outcome::AllWell)).unwrap();
    let queue_pair = &read["queue_pairs"][0];
    assert_eq!(queue_pair["lowest_rate_bps"], json!(250_000_000_000_u64));
    assert_eq!((&queue_pair["in_episodes_ps"], &queue_pair["congestion_episodes"]), (&json!(900), &json!(1)));
    let (nic, switch) = (&read["nodes"][0], &read["nodes"][1]);
    assert_eq!(nic["hw_counters"]["rx_prio1_pause"], 0);
    assert_eq!((&switch["hw_counters"], &switch["kmin_octets"]), (&json!(null), &json!({ "0": 3 })));
    let port = &switch["ports"][0];
    assert_eq!(port["queue_peak_octets"], json!({ "0": 8_272 }));
    assert_eq!((&port["average_peak_octets"], &port["ce_marks"]), (&json!({ "0": 1_200 }), &json!({ "0": 1 })));
}

#[test]
fn a_failed_run_says_why() {
    let outcome = Outcome::Failed(vec!["message 0 is unfinished".into()]);
    let read: serde_json::Value = serde_json::from_str(&written(&Run::of(&clean()[..7]), &outcome)).unwrap();
    assert_eq!(read["verdict"], "failed");
    assert_eq!(read["reasons"], json!(["message 0 is unfinished"]));
    assert_eq!(read["messages"]["each"][0]["status"], "unfinished");
    assert!(read["messages"]["each"][0]["goodput_bps"].is_null() && read["messages"]["completion_ps"].is_null());
}

#[test]
fn an_empty_run_has_a_summary() {
    let read: serde_json::Value = serde_json::from_str(&written(&Run::of(&[]), &Outcome::AllWell)).unwrap();
    assert_eq!(read["messages"]["each"], json!([]));
    assert_eq!(read["end_ps"], 0);
}

#[test]
fn a_full_disk_is_an_error() {
    let run = Run::of(&clean());
    let written = write_summary(Full(10), &run.input(&Outcome::AllWell));
    assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
}
