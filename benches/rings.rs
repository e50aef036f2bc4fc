//! What it costs to hand over a work request and hear of its end: `cargo bench --bench rings`.
//!
//! * `bare`: both ends of a send queue and of a completion queue in one thread, nothing between them;
//! * `shared`: the two ends in two threads, each with mappings of its own, and a doorbell page between them: what two
//!   processes on two processors pay, without an emulation;
//! * `nic`: an application and a NIC in two threads, as two processes would do it: a turn for each completion, and the
//!   emulation of the packet, its ACK and all in between;
//! * `nic, 32 to a doorbell`: the same, with one doorbell for 32 of them.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rocemu::Scenario;
use rocemu::base::Qpn;
use rocemu::host::{CompletionQueue, Device, Error, QueuePair, QueuePairConfig, WorkRequest};
use rocemu::memfd::SharedMemory;
use rocemu::ring::{
    CompletionOpcode, Consumer, Cqe, DoorbellWriter, Doorbells, Geometry, MAX_SLOT, Operation, Payload, Producer,
    Status, Wqe, doorbell_page,
};

const SLOTS: u32 = 64;
const BATCH: u64 = 32;

/// The application's ends of a send queue and a completion queue.
struct Host<M> {
    send: Producer<M>,
    completions: Consumer<M>,
    wqe: Wqe,
}

/// The device's ends.
struct Nic<M> {
    send: Consumer<M>,
    completions: Producer<M>,
}

impl<M: AsRef<[AtomicU64]>> Host<M> {
    fn new(send: M, completions: M, shape: Geometry) -> Self {
        let operation = Operation::Write { remote_address: 0, rkey: 1, immediate: None };
        let payload = Payload::Inline(b"8 octets".iter().copied().collect());
        let wqe = Wqe { wr_id: 1, operation, signaled: true, solicited: false, payload };
        let (send, completions) = (Producer::new(send, shape).unwrap(), Consumer::new(completions, shape).unwrap());
        Self { send, completions, wqe }
    }

    /// Returns the producer index.
    fn post(&mut self) -> u32 {
        self.send.post(self.wqe.encode(&mut [0; 64]).unwrap()).unwrap()
    }

    fn poll(&mut self) -> Option<Cqe> {
        let mut buffer = [0; MAX_SLOT];
        self.completions.poll(&mut buffer).unwrap().map(|slot| Cqe::decode(slot).unwrap())
    }
}

impl<M: AsRef<[AtomicU64]>> Nic<M> {
    fn new(send: M, completions: M, shape: Geometry) -> Self {
        let (send, completions) = (Consumer::new(send, shape).unwrap(), Producer::new(completions, shape).unwrap());
        Self { send, completions }
    }

    /// The doorbell rang: fetches and completes what is new.
    fn carry_out(&mut self, producer_index: u32) {
        self.send.announce(producer_index).unwrap();
        let mut buffer = [0; MAX_SLOT];
        while let Some(slot) = self.send.fetch(&mut buffer) {
            let wr_id = Wqe::decode(slot).unwrap().wr_id;
            self.send.complete().unwrap();
            let (status, opcode, qpn) = (Status::Success, CompletionOpcode::Write, Qpn::new(2).unwrap());
            let cqe = Cqe { wr_id, status, opcode, length: 8, immediate: None, qpn, solicited: false };
            self.completions.post(cqe.encode(&mut [0; Cqe::SLOT]).unwrap()).unwrap();
        }
    }
}

fn bare(criterion: &mut Criterion) {
    let shape = Geometry::new(SLOTS, 64).unwrap();
    let [send, completions] = [(); 2].map(|()| {
        let memory: Vec<_> = (0..shape.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect();
        shape.format(&memory).unwrap();
        memory
    });
    let mut host = Host::new(&send, &completions, shape);
    let mut nic = Nic::new(&send, &completions, shape);
    criterion.bench_function("bare", |bencher| {
        bencher.iter(|| {
            nic.carry_out(host.post());
            black_box(host.poll().unwrap())
        });
    });
}

fn shared(criterion: &mut Criterion) {
    let (shape, page) = (Geometry::new(SLOTS, 64).unwrap(), doorbell_page(SLOTS).unwrap());
    // Each side maps it for itself.
    let memory = |shape: Geometry| {
        let (own, file) = SharedMemory::create("rings", shape.memory_octets()).unwrap();
        shape.format(own.as_ref()).unwrap();
        (own, SharedMemory::map(&file).unwrap())
    };
    let [(send, nic_send), (completions, nic_completions), (doorbells, nic_doorbells)] =
        [shape, shape, page].map(memory);
    let mut host = Host::new(send, completions, shape);
    let mut nic = Nic::new(nic_send, nic_completions, shape);
    let mut doorbells = DoorbellWriter::new(doorbells, page).unwrap();
    let mut heard = Doorbells::new(nic_doorbells, page).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                match heard.poll().unwrap() {
                    Some(doorbell) => nic.carry_out(doorbell.producer_index),
                    None => spin_loop(),
                }
            }
        });
        criterion.bench_function("shared", |bencher| {
            bencher.iter(|| {
                let producer_index = host.post();
                doorbells.ring(1, producer_index).unwrap();
                loop {
                    match host.poll() {
                        Some(cqe) => break black_box(cqe),
                        None => spin_loop(),
                    }
                }
            });
        });
        is_over.store(true, Ordering::Relaxed);
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
    let server = thread::spawn(move || -> Result<(), Error> {
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
    targets = bare, shared, nic
}
criterion_main!(rings);
