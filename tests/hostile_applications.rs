//! Applications that lie: every word of shared memory, every field of every request, at any time. The NIC neither panics nor
//! loses a message nor reads what is not the application's.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{IoSliceMut, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use rocemu::Scenario;
use rocemu::host::{Device, Error, QueuePairConfig, Status, WorkRequest};
use rocemu::memfd::SharedMemory;
use rocemu::ring::control::{Event, MESSAGE_MAX, QueuePairRequest, Reply, Request, VERSION};
use rocemu::ring::{
    Consumer, DoorbellWriter, Geometry, LINE, MAX_SLOT, Operation, Payload, Producer, ReceiveEntry, ScatterList, Sge,
    Wqe,
};
use rocemu::trace::EventKind;
use socket2::{Domain, SockAddr, Socket, Type};

const SMALL: QueuePairRequest = QueuePairRequest {
    send_cq: 0,
    receive_cq: 0,
    send_slots: 2,
    send_slot_octets: 64,
    receive_slots: 2,
    receive_slot_octets: 64,
    min_rnr_timer: 1,
    rnr_retry: 1,
    retry: 1,
};
/// As long as the names of nodes can be.
const NODE_NAME_MAX: usize = 15;
const PAIR: &str = "[[applications]]\nname = 'client'\nnode = 'a'\n[[applications]]\nname = 'server'\nnode = 'b'";

/// The protocol without the library, and without its manners.
struct Raw {
    socket: Socket,
    memories: Vec<Arc<SharedMemory>>,
    /// Octets of the longest reply.
    longest: usize,
}

impl Raw {
    fn connect(path: &Path) -> Self {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        socket.connect(&SockAddr::unix(path).unwrap()).unwrap();
        Self { socket, memories: Vec::new(), longest: 0 }
    }

    fn say(&self, octets: &[u8]) -> bool {
        (&self.socket).write(octets).is_ok()
    }

    fn hear(&mut self) -> Option<Reply> {
        let mut octets = vec![0; 16 << 10];
        let mut space = nix::cmsg_space!([RawFd; 4]);
        let mut parts = [IoSliceMut::new(&mut octets)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut space), flags).ok()?;
        for message in received.cmsgs().ok()? {
            if let ControlMessageOwned::ScmRights(files) = message {
                for file in files {
                    // SAFETY: the kernel has just put it into this process, and nobody else knows it.
                    let file = unsafe { OwnedFd::from_raw_fd(file) };
                    self.memories.push(Arc::new(SharedMemory::map(&file).unwrap()));
                }
            }
        }
        let length = received.bytes;
        self.longest = self.longest.max(length);
        (length > 0).then(|| serde_json::from_slice(&octets[..length]).unwrap())
    }

    fn ask(&mut self, request: &Request) -> Option<Reply> {
        self.say(&serde_json::to_vec(request).unwrap()).then(|| self.hear())?
    }

    fn open(&mut self, name: &str) {
        let reply = self.ask(&Request::Open { version: VERSION, application: name.into() });
        assert!(matches!(reply, Some(Reply::Opened { .. })), "{reply:?}");
    }
}

/// What an application does next, good or bad.
#[derive(Clone, Debug)]
enum Step {
    Ask(Request),
    Say(Vec<u8>),
    /// Post a work request and ring for it, with BlueFlame or without; nearly all of it may be true.
    Post(Wqe, bool),
    Receive(ReceiveEntry),
    /// Poll all completions, and let so much time pass.
    Sleep(u64),
    /// Write a word of some memory: which, where, what.
    Scribble(usize, usize, u64),
    /// Flip bits of a word, so that it stays nearly right.
    Flip(usize, usize, u32),
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..4_u32, 2 => 0x1_0000..0x1_0003_u32, 1 => any::<u32>(), 1 => Just(64), 1 => Just(0x8000_0000)]
}

fn queue_pair() -> impl Strategy<Value = QueuePairRequest> {
    let shape = || prop_oneof![6 => Just((4, 64)), 2 => Just((2, 128)), 1 => (small(), small())];
    (small(), small(), shape(), shape(), prop_oneof![3 => Just((1, 1, 1)), 1 => any::<(u8, u8, u8)>()]).prop_map(
        |(send_cq, receive_cq, send, receive, (min_rnr_timer, rnr_retry, retry))| QueuePairRequest {
            send_cq,
            receive_cq,
            send_slots: send.0,
            send_slot_octets: send.1,
            receive_slots: receive.0,
            receive_slot_octets: receive.1,
            min_rnr_timer,
            rnr_retry,
            retry,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        1 => (any::<u32>(), "[a-z]{0,8}").prop_map(|(version, application)| Request::Open { version, application }),
        2 => small().prop_map(|entries| Request::CreateCq { entries }),
        3 => queue_pair().prop_map(Request::CreateQp),
        2 => (prop_oneof![Just(4_096_u64), any::<u64>(), 0..9_u64], any::<bool>())
            .prop_map(|(octets, remote_write)| Request::RegMr { octets, remote_write }),
        4 => (small(), "[ab]?", prop::collection::vec(any::<u8>(), 0..100))
            .prop_map(|(qpn, service, private_data)| Request::Connect { qpn, service, private_data }),
        1 => small().prop_map(|qpn| Request::DestroyQp { qpn }),
        1 => small().prop_map(|lkey| Request::DeregMr { lkey }),
        1 => small().prop_map(|cq| Request::DestroyCq { cq }),
        4 => Just(Request::Hear {}),
        6 => (prop::collection::vec(small(), 0..3), any::<bool>(), prop_oneof![any::<u64>(), 0..90_000_000_u64])
            .prop_map(|(cqs, solicited_only, until_ps)| {
                Request::Wait { cqs, solicited_only, until_ps: Some(until_ps) }
            }),
    ]
}

/// Of so many values, one is a lie.
const LIES: u32 = 60;

/// Where the client's and the server's memory is, mostly.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![LIES => (0..4_000_u64).prop_map(|offset| 0x7f00_0000_0000_0000 + offset), 1 => any::<u64>()]
}

fn key() -> impl Strategy<Value = u32> {
    prop_oneof![LIES => Just(0x8000_0000), 1 => any::<u32>()]
}

fn sges() -> impl Strategy<Value = ScatterList> {
    let sge = (address(), key(), prop_oneof![LIES => 0..90_u32, 1 => any::<u32>()])
        .prop_map(|(address, lkey, length)| Sge { address, lkey, length });
    prop::collection::vec(sge, 0..3).prop_map(|list| list.into_iter().collect())
}

fn work() -> impl Strategy<Value = Wqe> {
    let immediate = || prop::option::of(1..9_u32);
    let operation = prop_oneof![
        immediate().prop_map(|immediate| Operation::Send { immediate }),
        (address(), key(), immediate()).prop_map(|(remote_address, rkey, immediate)| Operation::Write {
            remote_address,
            rkey,
            immediate
        }),
    ];
    let payload = prop_oneof![
        sges().prop_map(Payload::Scatter),
        prop::collection::vec(any::<u8>(), 0..30).prop_map(|octets| Payload::Inline(octets.into_iter().collect())),
    ];
    (any::<u64>(), operation, any::<bool>(), any::<bool>(), payload).prop_map(
        |(wr_id, operation, signaled, solicited, payload)| Wqe { wr_id, operation, signaled, solicited, payload },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let word = || prop_oneof![8 => 0..64_usize, 1 => any::<usize>()];
    let value = prop_oneof![3 => 0..9_u64, 1 => any::<u64>(), 1 => any::<u32>().prop_map(u64::from)];
    let some_time = (0..9_000_000_u64).prop_map(Step::Sleep);
    prop_oneof![
        40 => (work(), any::<bool>()).prop_map(|(wqe, blue_flame)| Step::Post(wqe, blue_flame)),
        40 => (any::<u64>(), sges()).prop_map(|(wr_id, scatter)| Step::Receive(ReceiveEntry { wr_id, scatter })),
        40 => some_time,
        4 => request().prop_map(Step::Ask),
        1 => prop::collection::vec(any::<u8>(), 1..200).prop_map(Step::Say),
        1 => (any::<usize>(), word(), value).prop_map(|(memory, word, value)| Step::Scribble(memory, word, value)),
        1 => (any::<usize>(), word(), 0..64_u32).prop_map(|(memory, word, bit)| Step::Flip(memory, word, bit)),
    ]
}

/// Plays the steps on top of a beginning that leads somewhere.
fn play(path: &Path, name: &str, steps: &[Step]) {
    let mut raw = Raw::connect(path);
    raw.open(name);
    let asked = QueuePairRequest {
        send_cq: 0,
        receive_cq: 0,
        send_slots: 4,
        send_slot_octets: 64,
        receive_slots: 4,
        receive_slot_octets: 64,
        min_rnr_timer: 1,
        rnr_retry: 1,
        retry: 1,
    };
    raw.ask(&Request::CreateCq { entries: 60 });
    raw.ask(&Request::CreateQp(asked));
    raw.ask(&Request::RegMr { octets: 4_096, remote_write: true });
    // In the order in which they came: doorbells, completions, queue pair, region.
    let shape = Geometry::new(4, 64).unwrap();
    let [page, completions, queues] = [0, 1, 2].map(|number: usize| Arc::clone(&raw.memories[number]));
    let (send, receive) = (*queues).as_ref().split_at(shape.memory_octets() / 8);
    let (mut send, mut receive) = (Producer::new(send, shape).unwrap(), Producer::new(receive, shape).unwrap());
    let (page, completions) = ((*page).as_ref(), (*completions).as_ref());
    let mut completions = Consumer::new(completions, Geometry::read(completions).unwrap()).unwrap();
    let mut now_ps = 0;
    let mut doorbells = DoorbellWriter::new(page, Geometry::read(page).unwrap()).unwrap();
    raw.ask(&Request::Connect { qpn: 0x1_0000, service: "a".into(), private_data: Vec::new() });
    for step in steps {
        let memory = |raw: &Raw, number: usize| number % raw.memories.len();
        let heard = match step {
            Step::Ask(request) => raw.ask(request).is_some(),
            Step::Sleep(time) => {
                let mut buffer = [0; MAX_SLOT];
                while let Ok(Some(_)) = completions.poll(&mut buffer) {}
                let woken =
                    raw.ask(&Request::Wait { cqs: Vec::new(), solicited_only: false, until_ps: Some(now_ps + time) });
                if let Some(Reply::Woken { now_ps: now, .. }) = woken {
                    now_ps = now;
                }
                woken.is_some()
            }
            Step::Say(octets) => raw.say(octets) && raw.hear().is_some(),
            Step::Post(wqe, blue_flame) => {
                let mut slot = [0; MAX_SLOT];
                let Ok(octets) = wqe.encode(&mut slot[..64]) else { continue };
                // Full, or scribbled over by ourselves.
                let Ok(producer_index) = send.post(octets) else { continue };
                let _ = match blue_flame {
                    true => doorbells.blue_flame(0x1_0000, producer_index, octets),
                    false => doorbells.ring(0x1_0000, producer_index),
                };
                true
            }
            Step::Receive(entry) => {
                let mut slot = [0; MAX_SLOT];
                let _ = entry.encode(&mut slot[..64]).map(|octets| receive.post(octets));
                true
            }
            Step::Scribble(number, word, value) => {
                let words: &[AtomicU64] = (*raw.memories[memory(&raw, *number)]).as_ref();
                words[word % words.len()].store(*value, Ordering::Relaxed);
                true
            }
            Step::Flip(number, word, bit) => {
                let words: &[AtomicU64] = (*raw.memories[memory(&raw, *number)]).as_ref();
                words[word % words.len()].fetch_xor(1 << bit, Ordering::Relaxed);
                true
            }
        };
        if !heard {
            return;
        }
    }
}

fn suffer(client: Vec<Step>, server: Vec<Step>, seen: &mut BTreeMap<&str, u64>) {
    let nics = Scenario::pair().with(PAIR).with("[run]\nuntil = '100ms'").serve_in_memory().unwrap();
    let [client_socket, server_socket] = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let client = thread::spawn(move || play(&client_socket, "client", &client));
    let server = thread::spawn(move || play(&server_socket, "server", &server));
    client.join().unwrap();
    server.join().unwrap();
    // The books balance, or this is an error.
    let run = nics.finish().unwrap();
    for event in run.events() {
        *seen.entry(<&str>::from(&event.kind)).or_default() += 1;
    }
    assert!(
        run.outcome().unfinished.is_empty() || run.outcome().end.ps() == 100_000_000_000,
        "{:?}",
        run.shortcomings()
    );
}

#[test]
fn no_application_harms_its_nic() {
    let steps = || prop::collection::vec(step(), 0..60);
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let seen = RefCell::new(BTreeMap::new());
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner
        .run(&(steps(), steps()), |(client, server)| {
            suffer(client, server, &mut seen.borrow_mut());
            Ok(())
        })
        .unwrap();
    // It went far enough to mean something.
    let seen = seen.into_inner();
    let often = [
        "message_completed",
        "message_failed",
        "receive_completed",
        "receive_failed",
        "rnr_nak_made",
        "error_nak_made",
    ];
    for event in often {
        assert!(seen.get(event).is_some_and(|count| *count > 20), "{event}: {seen:?}");
    }
}

#[test]
fn regression_news_of_all_queue_pairs_at_once_comes_in_replies_that_fit() {
    const MANY: u32 = 60;
    let ends = ["a".repeat(NODE_NAME_MAX), "b".repeat(NODE_NAME_MAX)];
    let [a, b] = &ends;
    let text = format!(
        "[nodes.{a}]\n[nodes.{b}]\n[[links]]\nends = ['{a}', '{b}']\n\
         [[applications]]\nname = 'client'\nnode = '{a}'\n[[applications]]\nname = 'server'\nnode = '{b}'"
    );
    let nics = Scenario::from_toml(text).serve_in_memory().unwrap();
    let play = |name: &'static str| {
        let socket = nics.socket(name).to_owned();
        thread::spawn(move || {
            let mut raw = Raw::connect(&socket);
            raw.open(name);
            raw.ask(&Request::CreateCq { entries: 1 });
            for n in 0..MANY {
                let Some(Reply::QpCreated { qpn, .. }) = raw.ask(&Request::CreateQp(SMALL)) else { panic!("{n}") };
                let connect = Request::Connect { qpn, service: format!("{n}"), private_data: vec![255; 92] };
                assert_eq!(raw.ask(&connect), Some(Reply::Done));
            }
            let mut told = 0;
            while told < MANY as usize {
                match raw.ask(&Request::Wait { cqs: Vec::new(), solicited_only: false, until_ps: None }) {
                    Some(Reply::Woken { events, .. }) => told += events.len(),
                    reply => panic!("{reply:?}"),
                }
            }
            raw.longest
        })
    };
    let longest = [play("client"), play("server")].map(|thread| thread.join().unwrap());
    // Nearly as much as fits, and no more.
    assert!(longest.iter().all(|octets| (MESSAGE_MAX / 2..=MESSAGE_MAX).contains(octets)), "{longest:?}");
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn regression_doorbells_that_never_stop_do_not_hold_up_their_nic() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let mut raw = Raw::connect(nics.socket("client"));
    raw.open("client");
    raw.ask(&Request::CreateCq { entries: 1 });
    let Some(Reply::QpCreated { qpn, .. }) = raw.ask(&Request::CreateQp(SMALL)) else { panic!() };
    let page = Arc::clone(&raw.memories[0]);
    let page = (*page).as_ref();
    let shape = Geometry::read(page).unwrap();
    let mut doorbells = DoorbellWriter::new(page, shape).unwrap();
    while doorbells.ring(qpn, 0).is_ok() {}
    raw.ask(&Request::Hear {});
    // The last line is free in a page that is full.
    doorbells.ring(qpn, 0).unwrap();
    let lines = u64::from(shape.capacity()) + 1;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // All lines are true, and its producer index is always as far ahead as it can be.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let heard = page[2 * LINE / 8].load(Ordering::Relaxed);
                page[LINE / 8].store(heard.wrapping_sub(1) % lines, Ordering::Relaxed);
            }
        });
        for _ in 0..20 {
            assert_eq!(raw.ask(&Request::Hear {}), Some(Reply::Done));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    drop(raw);
    let run = nics.finish().unwrap();
    run.assert_all_well();
    // No more than a page of them with each request.
    let heard = run.events().iter().filter(|event| matches!(event.kind, EventKind::DoorbellRung { .. })).count() as u64;
    assert!((lines..=25 * lines).contains(&heard), "{heard}");
}

fn wait(cqs: Vec<u32>, until_ps: Option<u64>) -> Request {
    Request::Wait { cqs, solicited_only: false, until_ps }
}

#[test]
fn regression_one_application_does_not_use_up_the_memory_maps_of_all() {
    let nics = Scenario::pair().with(PAIR).serve_in_memory().unwrap();
    let mut greedy = Raw::connect(nics.socket("client"));
    greedy.open("client");
    let mut regions = 0;
    let reason = loop {
        match greedy.ask(&Request::RegMr { octets: 1, remote_write: false }) {
            Some(Reply::MrRegistered { .. }) => regions += 1,
            reply => break format!("{reply:?}"),
        }
        // Its own maps are its own affair.
        greedy.memories.clear();
    };
    // Half of 32,768 for either application; one piece is the doorbell page.
    assert_eq!(regions, 16_383, "{reason}");
    assert!(reason.contains("at most 16384 pieces of shared memory"), "{reason}");
    let socket = nics.socket("server").to_owned();
    let other = thread::spawn(move || {
        let mut other = Raw::connect(&socket);
        other.open("server");
        assert!(matches!(other.ask(&Request::CreateCq { entries: 1 }), Some(Reply::CqCreated { .. })));
    });
    greedy.ask(&wait(Vec::new(), Some(1)));
    drop(greedy);
    other.join().unwrap();
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn regression_an_application_that_dies_while_it_waits_is_missed() {
    let nics = Scenario::pair().with(PAIR).with("[run]\nuntil = '10s'").serve_in_memory().unwrap();
    let [client, server] = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let (dies, is_dead) = mpsc::channel();
    let mortal = thread::spawn(move || {
        let mut raw = Raw::connect(&server);
        raw.open("server");
        raw.ask(&Request::CreateCq { entries: 1 });
        raw.ask(&Request::CreateQp(SMALL));
        raw.ask(&Request::Connect { qpn: 0x1_0000, service: "life".into(), private_data: Vec::new() });
        raw.ask(&wait(Vec::new(), None));
        raw.say(&serde_json::to_vec(&wait(Vec::new(), None)).unwrap());
        drop(raw);
        dies.send(()).unwrap();
    });
    let device = Device::open(client, "client").unwrap();
    let cq = device.create_cq(4).unwrap();
    let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default()).unwrap();
    qp.connect("life", &[]).unwrap();
    is_dead.recv().unwrap();
    let now_ps = device.now_ps();
    // A receive would be waited for without end: the one who could post it is dead.
    qp.post_send(&WorkRequest::send(1)).unwrap();
    qp.ring_doorbell().unwrap();
    assert_eq!(cq.wait().unwrap().status, Status::WorkRequestFlushed);
    assert_eq!(device.now_ps() - now_ps, 1_000_000_000);
    drop((qp, cq, device));
    mortal.join().unwrap();
    nics.finish().unwrap();
}

#[test]
fn regression_a_queue_pair_in_error_is_not_connected() {
    let nics = Scenario::pair().with(PAIR).serve_in_memory().unwrap();
    let [client, server] = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let broken = thread::spawn(move || {
        let mut raw = Raw::connect(&server);
        raw.open("server");
        raw.ask(&Request::CreateCq { entries: 1 });
        let page = Arc::clone(&raw.memories[0]);
        let page = (*page).as_ref();
        let mut doorbells = DoorbellWriter::new(page, Geometry::read(page).unwrap()).unwrap();
        let connect = |qpn, service: &str| Request::Connect { qpn, service: service.into(), private_data: Vec::new() };
        for qpn in [0x1_0000, 0x1_0001] {
            raw.ask(&Request::CreateQp(SMALL));
            if qpn == 0x1_0001 {
                // This one is called for when it breaks.
                assert_eq!(raw.ask(&connect(qpn, "second")), Some(Reply::Done));
            }
            doorbells.ring(qpn, 1_000).unwrap();
            raw.ask(&Request::Hear {});
            let refused = raw.ask(&connect(qpn, "first"));
            assert!(matches!(&refused, Some(Reply::Refused { reason }) if reason.contains("in error")), "{refused:?}");
        }
        let told = raw.ask(&wait(Vec::new(), None));
        let Some(Reply::Woken { events, .. }) = told else { panic!("{told:?}") };
        let failed = events.iter().filter(|event| matches!(event, Event::QpFailed { .. })).count();
        assert_eq!((failed, events.len()), (2, 2), "{events:?}");
    });
    let device = Device::open(client, "client").unwrap();
    let cq = device.create_cq(4).unwrap();
    for service in ["first", "second"] {
        let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default()).unwrap();
        assert!(matches!(qp.connect(service, &[]), Err(Error::Stalled)), "nobody is there");
    }
    drop((cq, device));
    broken.join().unwrap();
    nics.finish().unwrap();
}

#[test]
fn regression_a_refusal_that_quotes_what_it_refuses_is_no_longer_than_a_reply_may_be() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let mut raw = Raw::connect(nics.socket("client"));
    raw.open("client");
    for quoted in ["x".repeat(8_100), "\u{1}".repeat(1_300), "\"".repeat(4_000)] {
        let request = serde_json::json!({ "request": quoted }).to_string();
        assert!(raw.say(request.as_bytes()) && matches!(raw.hear(), Some(Reply::Refused { .. })));
    }
    assert!(raw.longest <= MESSAGE_MAX, "{}", raw.longest);
    drop(raw);
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn queue_pairs_that_are_gone_count_for_the_number_that_an_application_can_ever_have() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let mut raw = Raw::connect(nics.socket("client"));
    raw.open("client");
    raw.ask(&Request::CreateCq { entries: 1 });
    let mut lives = 0;
    let reason = loop {
        match raw.ask(&Request::CreateQp(SMALL)) {
            Some(Reply::QpCreated { qpn, .. }) => raw.ask(&Request::DestroyQp { qpn }),
            reply => break format!("{reply:?}"),
        };
        raw.memories.clear();
        lives += 1;
    };
    assert_eq!(lives, 65_536, "{reason}");
    drop(raw);
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn an_application_is_told_what_is_wrong_with_an_entry() {
    let nics = Scenario::pair().with(PAIR).serve_in_memory().unwrap();
    let meet = |name: &str| {
        let mut raw = Raw::connect(nics.socket(name));
        raw.open(name);
        raw.ask(&Request::CreateCq { entries: 4 });
        raw.ask(&Request::CreateQp(SMALL));
        raw.ask(&Request::Connect { qpn: 0x1_0000, service: "meeting".into(), private_data: Vec::new() });
        raw
    };
    thread::scope(|scope| {
        scope.spawn(|| meet("server").ask(&wait(Vec::new(), Some(9))));
        let mut raw = meet("client");
        assert!(matches!(raw.ask(&wait(Vec::new(), None)), Some(Reply::Woken { events, .. }) if events.len() == 1));
        let [page, queues] = [0, 2].map(|number: usize| Arc::clone(&raw.memories[number]));
        let mut doorbells = DoorbellWriter::new((*page).as_ref(), Geometry::read((*page).as_ref()).unwrap()).unwrap();
        let mut send = Producer::new((*queues).as_ref(), Geometry::read((*queues).as_ref()).unwrap()).unwrap();
        // Version 1, opcode 99, flags, ..., wr_id 7.
        let mut entry = [0; 64];
        (entry[0], entry[1], entry[8]) = (1, 99, 7);
        let producer_index = send.post(&entry).unwrap();
        doorbells.ring(0x1_0000, producer_index).unwrap();
        let told = raw.ask(&wait(Vec::new(), None));
        let Some(Reply::Woken { events, .. }) = told else { panic!("{told:?}") };
        let [Event::EntryRefused { wr_id: 7, why, .. }, ..] = &events[..] else { panic!("{events:?}") };
        assert!(why.contains("99"), "{why}");
    });
    nics.finish().unwrap();
}

#[test]
fn a_doorbell_for_a_queue_pair_that_is_not_there_leaves_a_trace() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let mut raw = Raw::connect(nics.socket("client"));
    raw.open("client");
    let page = Arc::clone(&raw.memories[0]);
    let mut doorbells = DoorbellWriter::new((*page).as_ref(), Geometry::read((*page).as_ref()).unwrap()).unwrap();
    for queue_pair in [2, 0x1_0000, u32::MAX] {
        doorbells.ring(queue_pair, 1).unwrap();
    }
    raw.ask(&Request::Hear {});
    drop(raw);
    let run = nics.finish().unwrap();
    let unheard = run.events().iter().filter_map(|event| match event.kind {
        EventKind::DoorbellUnheard { queue_pair, application: 0 } => Some(queue_pair),
        _ => None,
    });
    assert_eq!(unheard.collect::<Vec<_>>(), [2, 0x1_0000, u32::MAX]);
}
