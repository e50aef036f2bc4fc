//! Applications in processes and threads of their own, over shared memory with NICs that run.

use std::path::Path;
use std::thread;

use rocemu::host::{CompletionOpcode, Device, Error, QueuePairConfig, Status, WorkRequest};
use rocemu::{Run, Scenario};

const PAIR: &str = "[[applications]]\nname = 'client'\nnode = 'a'\n[[applications]]\nname = 'server'\nnode = 'b'";

fn octet(n: u64) -> u8 {
    (n.wrapping_mul(n) >> 3) as u8
}

/// Runs two applications, each on a thread of its own, and what becomes of the NICs between them.
fn run<C, S>(
    more: &str,
    client: impl FnOnce(&Path) -> Result<C, Error> + Send + 'static,
    server: impl FnOnce(&Path) -> Result<S, Error> + Send + 'static,
) -> (C, S, Run)
where
    C: Send + 'static,
    S: Send + 'static,
{
    let nics = Scenario::pair().with(PAIR).with(more).serve_in_memory().unwrap();
    let sockets = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let [client_socket, server_socket] = sockets;
    let client = thread::spawn(move || client(&client_socket));
    let server = thread::spawn(move || server(&server_socket));
    let client = client.join().unwrap().unwrap();
    let server = server.join().unwrap().unwrap();
    (client, server, nics.finish().unwrap())
}

#[test]
fn a_write_takes_as_long_as_one_that_the_scenario_posts() {
    const MIB: u64 = 1 << 20;
    let (completed_ps, received, run) = run(
        "",
        |socket| {
            let device = Device::open(socket, "client")?;
            let cq = device.create_cq(16)?;
            let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
            let source = device.reg_mr(MIB)?;
            let octets: Vec<u8> = (0..MIB).map(octet).collect();
            source.write(0, &octets);
            let peer = qp.connect("a place", &[])?;
            let address = u64::from_le_bytes(peer.private_data[..8].try_into().unwrap());
            let rkey = u32::from_le_bytes(peer.private_data[8..].try_into().unwrap());
            qp.post_send(&WorkRequest::write(5, address, rkey).gather(&[source.sge(0..MIB)])?)?;
            qp.ring_doorbell()?;
            let completion = cq.wait()?;
            assert_eq!((completion.wr_id, completion.status), (5, Status::Success));
            assert_eq!((completion.opcode, completion.length), (CompletionOpcode::Write, 1 << 20));
            let now = device.now_ps();
            // The server reads what was written only after this.
            qp.post_send(&WorkRequest::send(6))?;
            qp.ring_doorbell()?;
            cq.wait()?;
            Ok(now)
        },
        |socket| {
            let device = Device::open(socket, "server")?;
            let cq = device.create_cq(16)?;
            let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
            let target = device.reg_mr_remote(MIB)?;
            let mut place = target.address().to_le_bytes().to_vec();
            place.extend(target.rkey().to_le_bytes());
            qp.post_recv(1, &[])?;
            qp.connect("a place", &place)?;
            cq.wait()?;
            let mut received = vec![0; MIB as usize];
            target.read(0, &mut received);
            Ok(received)
        },
    );
    run.assert_all_well();
    // The published time of a 1 MiB WRITE at defaults.
    assert_eq!(completed_ps, 21_621_844);
    assert!((0..).zip(&received).all(|(n, received)| *received == octet(n)));
}
