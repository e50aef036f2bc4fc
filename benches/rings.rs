//! What it costs to hand over a work request and hear of its end: `cargo bench --bench rings`.
//!
//! * `bare`: both ends of a send queue and of a completion queue in one thread, nothing between them;
//! * `nic`: an application and a NIC in two threads, as two processes would do it: a turn for each completion, and the
//!   emulation of the packet, its ACK and all in between;
//! * `nic, 32 to a doorbell`: the same, with a turn for 32 of them.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rocemu::Scenario;
use rocemu::base::Qpn;
use rocemu::host::{CompletionQueue, Device, Error, QueuePair, QueuePairConfig, WorkRequest};
use rocemu::ring::{CompletionOpcode, Consumer, Cqe, Geometry, MAX_SLOT, Operation, Payload, Producer, Status, Wqe};

const SLOTS: u32 = 64;
const BATCH: u64 = 32;

fn memory(shape: Geometry) -> Vec<AtomicU64> {
    let memory: Vec<_> = (0..shape.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect();
    shape.format(&memory).unwrap();
    memory
}

fn bare(criterion: &mut Criterion) {
    let shape = Geometry::new(SLOTS, 64).unwrap();
    let (sends, completions) = (memory(shape), memory(shape));
    let mut application = Producer::new(&sends[..], shape).unwrap();
    let mut device = Consumer::new(&sends[..], shape).unwrap();
    let mut ended = Producer::new(&completions[..], shape).unwrap();
    let mut polled = Consumer::new(&completions[..], shape).unwrap();
    let operation = Operation::Write { remote_address: 0, rkey: 1, immediate: None };
    let payload = Payload::Inline(b"8 octets".iter().copied().collect());
    let wqe = Wqe { wr_id: 1, operation, signaled: true, solicited: false, payload };
    let mut buffer = [0; MAX_SLOT];
    criterion.bench_function("bare", |bencher| {
        bencher.iter(|| {
            let producer_index = application.post(wqe.encode(&mut [0; 64]).unwrap()).unwrap();
            device.announce(producer_index).unwrap();
            let fetched = Wqe::decode(device.fetch(&mut buffer).unwrap()).unwrap();
            device.complete().unwrap();
            let cqe = Cqe {
                wr_id: fetched.wr_id,
                status: Status::Success,
                opcode: CompletionOpcode::Write,
                length: 8,
                immediate: None,
                qpn: Qpn::new(2).unwrap(),
                solicited: false,
            };
            ended.post(cqe.encode(&mut [0; Cqe::SLOT]).unwrap()).unwrap();
            black_box(Cqe::decode(polled.poll(&mut buffer).unwrap().unwrap()).unwrap())
        });
    });
}

struct Client {
    cq: CompletionQueue,
    qp: QueuePair,
    work: WorkRequest,
}

/// A client that WRITEs to a server, and what is to be kept while it does.
fn with_client(measure: impl FnOnce(&mut Client)) {
    let applications = "[[applications]]\nname = 'client'\nnode = 'a'\n[[applications]]\nname = 'server'\nnode = 'b'";
    let nics = Scenario::pair().with(applications).with("[run]\nuntil = '1000s'").serve_in_memory().unwrap();
    let socket = nics.socket("server").to_owned();
    let server = std::thread::spawn(move || -> Result<(), Error> {
        let device = Device::open(socket, "server")?;
        let cq = device.create_cq(1)?;
        let target = device.reg_mr_remote(8)?;
        let mut place = target.address().to_le_bytes().to_vec();
        place.extend(target.rkey().to_le_bytes());
        let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
        qp.connect("bench", &place)?;
        device.wait(&[], None)
    });
    let device = Device::open(nics.socket("client"), "client").unwrap();
    let cq = device.create_cq(SLOTS).unwrap();
    let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig { send_slots: SLOTS, ..Default::default() }).unwrap();
    let place = qp.connect("bench", &[]).unwrap().private_data;
    let (address, rkey) = place.split_at(8);
    let address = u64::from_le_bytes(address.try_into().unwrap());
    let rkey = u32::from_le_bytes(rkey.try_into().unwrap());
    let work = WorkRequest::write(1, address, rkey).inline(b"8 octets").unwrap();
    let mut client = Client { cq, qp, work };
    measure(&mut client);
    drop((client, device));
    server.join().unwrap().unwrap();
    nics.finish().unwrap().assert_all_well();
}

fn nic(criterion: &mut Criterion) {
    with_client(|client| {
        criterion.bench_function("nic", |bencher| {
            bencher.iter(|| {
                client.qp.post_send(&client.work).unwrap();
                client.qp.ring_doorbell().unwrap();
                black_box(client.cq.wait().unwrap())
            });
        });
    });
    with_client(|client| {
        let mut group = criterion.benchmark_group("nic, 32 to a doorbell");
        group.throughput(Throughput::Elements(BATCH));
        group.bench_function("all", |bencher| {
            bencher.iter(|| {
                for _ in 0..BATCH {
                    client.qp.post_send(&client.work).unwrap();
                }
                client.qp.ring_doorbell().unwrap();
                for _ in 0..BATCH {
                    black_box(client.cq.wait().unwrap());
                }
            });
        });
        group.finish();
    });
}

criterion_group! {
    name = rings;
    // What happened in the NIC is kept until the end, so it is not measured for long.
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = bare, nic
}
criterion_main!(rings);
