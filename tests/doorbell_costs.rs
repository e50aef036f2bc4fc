//! What applications pay for their doorbells, where these are modelled: the same as posts of a scenario.
//!
//! A SEND of 8 octets inline, from the instant in which it is posted: 80,000 ps to start, 1,320 for its frame, 202,520 until
//! the ACK is there. 98 B on the PCIe link take 1,555 ps, two lines of 98 B 3,109.

use std::path::Path;
use std::thread;

use rocemu::host::{Device, Error, QueuePairConfig, WorkRequest};
use rocemu::{Run, Scenario};

const APPLICATIONS: &str =
    "[[applications]]\nname = 'client'\nnode = 'a'\n[[applications]]\nname = 'server'\nnode = 'b'";
const SEND: u64 = 80_000 + 1_320 + 202_520;
/// Where doorbells are free, the inline data are fetched like any other: a request, and 42 B.
const FREE_SEND: u64 = SEND + 1_555 + 666;

/// Sends in turn, each when the one before is done: how long each took.
fn client(socket: &Path, slot: u32) -> Result<Vec<u64>, Error> {
    let device = Device::open(socket, "client")?;
    let cq = device.create_cq(16)?;
    let config = QueuePairConfig { send_slot_octets: slot, ..QueuePairConfig::default() };
    let mut qp = device.create_qp(&cq, &cq, &config)?;
    qp.connect("a place", &[])?;
    let mut took = Vec::new();
    for blue_flame in [false, true] {
        let posted = device.now_ps();
        let work = WorkRequest::send(1).inline(&[7; 8])?;
        if blue_flame {
            qp.post_blue_flame(&work)?;
        } else {
            qp.post_send(&work)?;
            qp.ring_doorbell()?;
        }
        cq.wait()?;
        took.push(device.now_ps() - posted);
    }
    Ok(took)
}

fn server(socket: &Path) -> Result<(), Error> {
    let device = Device::open(socket, "server")?;
    let cq = device.create_cq(16)?;
    let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
    let place = device.reg_mr(64)?;
    for wr_id in 0..2 {
        qp.post_recv(wr_id, &[place.sge(0..8)])?;
    }
    qp.connect("a place", &[])?;
    cq.wait()?;
    cq.wait()?;
    Ok(())
}

fn run(more: &str, slot: u32) -> (Vec<u64>, Run) {
    let nics = Scenario::pair().with(APPLICATIONS).with(more).serve_in_memory().unwrap();
    let [at_client, at_server] = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let client = thread::spawn(move || client(&at_client, slot));
    let server = thread::spawn(move || server(&at_server));
    let took = client.join().unwrap().unwrap();
    server.join().unwrap().unwrap();
    (took, nics.finish().unwrap())
}

#[test]
fn an_application_pays_for_its_doorbell_and_its_slot_or_for_its_lines() {
    let (took, run) = run("[nic]\ndoorbell = 'modelled'", 64);
    assert_eq!(took, [3 * 1_555 + SEND, 3_109 + SEND]);
    let a = run.counters("a");
    assert_eq!((a.num_doorbells, a.num_blue_flame_posts, a.num_wqe_fetches), (2, 1, 1));
    assert_eq!((a.pcie_to_host_octets, a.pcie_from_host_octets), (98, 98 + 98 + 196));
}

#[test]
fn a_larger_slot_costs_a_longer_fetch() {
    // 512 + 34 B: 8,661 ps. BlueFlame takes the entry's 40 octets and not the slot.
    let (took, run) = run("[nic]\ndoorbell = 'modelled'", 512);
    assert_eq!(took, [2 * 1_555 + 8_661 + SEND, 3_109 + SEND]);
    assert_eq!(run.counters("a").pcie_wqe_octets, 546);
}

#[test]
fn an_entry_above_blue_flame_max_is_fetched_all_the_same() {
    let (took, run) = run("[nic]\ndoorbell = 'modelled'\nblue_flame_max = '32B'", 64);
    assert_eq!(took, [3 * 1_555 + SEND; 2]);
    let a = run.counters("a");
    assert_eq!((a.num_blue_flame_posts, a.num_blue_flame_fallbacks), (0, 1));
}

#[test]
fn free_doorbells_take_no_time_however_they_are_rung() {
    let (took, run) = run("", 64);
    assert_eq!(took, [FREE_SEND; 2]);
    assert_eq!(run.counters("a").num_doorbells, 0);
}
