//! Applications in processes and threads of their own, over shared memory with NICs that run.

#![expect(clippy::disallowed_methods, reason = "an application takes its time, which is real")]

use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rocemu::host::{
    Completion, CompletionOpcode, CompletionQueue, Device, Error, Event, MemoryRegion, Notify, QueuePair,
    QueuePairConfig, Sge, Status, WorkRequest,
};
use rocemu::ring::RingError;
use rocemu::{Run, Scenario};
use socket2::{Domain, SockAddr, Socket, Type};

const PAIR: &str = "[[applications]]\nname = 'client'\nnode = 'a'\n[[applications]]\nname = 'server'\nnode = 'b'";

/// The model's last packets are all solicited; as the InfiniBand specification has it, the sender decides.
const STRICT: &str = "[nic]\nstrict_ib_flags = true";

/// What most of these applications have.
struct Desk {
    device: Device,
    cq: CompletionQueue,
    qp: QueuePair,
    memory: MemoryRegion,
}

impl Desk {
    /// With some memory that the peer may write to, not connected yet.
    fn new(socket: &Path, name: &str, config: QueuePairConfig) -> Result<Self, Error> {
        let device = Device::open(socket, name)?;
        let cq = device.create_cq(256)?;
        let qp = device.create_qp(&cq, &cq, &config)?;
        let memory = device.reg_mr_remote(64 << 10)?;
        Ok(Self { device, cq, qp, memory })
    }

    /// Connects, and learns where the peer's memory is.
    fn meet(&mut self) -> Result<(u64, u32), Error> {
        let mut place = self.memory.address().to_le_bytes().to_vec();
        place.extend(self.memory.rkey().to_le_bytes());
        let place = self.qp.connect("meeting", &place)?.private_data;
        Ok((u64::from_le_bytes(place[..8].try_into().unwrap()), u32::from_le_bytes(place[8..].try_into().unwrap())))
    }

    fn post(&mut self, work: WorkRequest) -> Result<(), Error> {
        self.qp.post_send(&work)?;
        self.qp.ring_doorbell()
    }

    fn completions(&self, count: usize) -> Result<Vec<Completion>, Error> {
        (0..count).map(|_| self.cq.wait()).collect()
    }

    fn text(&self, offset: u64, length: usize) -> String {
        let mut octets = vec![0; length];
        self.memory.read(offset, &mut octets);
        String::from_utf8(octets).unwrap()
    }
}

/// What a completion says besides its queue pair.
fn in_short(completion: &Completion) -> (u64, Status) {
    (completion.wr_id, completion.status)
}

/// The name of a client or server of a test in which it does nothing but stay until the other has gone.
fn stays(socket: &Path, name: &str) -> Result<Vec<Event>, Error> {
    let mut desk = Desk::new(socket, name, QueuePairConfig::default())?;
    desk.meet()?;
    desk.device.wait(&[], None)?;
    Ok(std::iter::from_fn(|| desk.device.next_event()).collect())
}

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
    run_on(Scenario::pair().with(more), client, server)
}

/// The same on NICs of another scenario, which are `a` and `b`.
fn run_on<C, S>(
    scenario: Scenario,
    client: impl FnOnce(&Path) -> Result<C, Error> + Send + 'static,
    server: impl FnOnce(&Path) -> Result<S, Error> + Send + 'static,
) -> (C, S, Run)
where
    C: Send + 'static,
    S: Send + 'static,
{
    let nics = scenario.with(PAIR).serve_in_memory().unwrap();
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

#[test]
fn sends_land_where_receives_were_posted_in_order_and_piece_by_piece() {
    let ((), texts, run) = run(
        "",
        |socket| {
            let mut desk =
                Desk::new(socket, "client", QueuePairConfig { send_slot_octets: 256, ..Default::default() })?;
            desk.meet()?;
            desk.memory.write(100, b"gathered from two places");
            desk.post(
                WorkRequest::send(1).gather(&[desk.memory.sge(100..109), desk.memory.sge(109..124)])?.immediate(77),
            )?;
            desk.post(WorkRequest::send(2).inline(b"in the entry itself")?.solicited().unsignaled())?;
            desk.post(WorkRequest::send(3))?;
            let ended = desk.completions(2)?;
            assert_eq!(ended.iter().map(in_short).collect::<Vec<_>>(), [(1, Status::Success), (3, Status::Success)]);
            Ok(())
        },
        |socket| {
            let config = QueuePairConfig { receive_slot_octets: 128, ..Default::default() };
            let mut desk = Desk::new(socket, "server", config)?;
            desk.qp.post_recv(11, &[desk.memory.sge(0..8), desk.memory.sge(1_000..1_100)])?;
            desk.qp.post_recv(12, &[desk.memory.sge(2_000..2_100)])?;
            desk.qp.post_recv(13, &[])?;
            desk.meet()?;
            let ended = desk.completions(3)?;
            let lengths: Vec<_> = ended.iter().map(|c| (c.wr_id, c.length, c.immediate)).collect();
            assert_eq!(lengths, [(11, 24, Some(77)), (12, 19, None), (13, 0, None)]);
            assert!(ended.iter().all(|c| c.opcode == CompletionOpcode::Receive && c.status == Status::Success));
            Ok([desk.text(0, 8), desk.text(1_000, 16), desk.text(2_000, 19)])
        },
    );
    run.assert_all_well();
    assert_eq!(texts, ["gathered", " from two places", "in the entry itself"]);
}

#[test]
fn a_send_without_a_receive_waits_until_one_is_posted() {
    let (completed_ps, (), run) = run(
        "",
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            desk.meet()?;
            desk.post(WorkRequest::send(1).gather(&[desk.memory.sge(0..4_096)])?)?;
            desk.cq.wait()?;
            Ok(desk.device.now_ps())
        },
        |socket| {
            // Code 1 is 10 us.
            let mut desk = Desk::new(socket, "server", QueuePairConfig { min_rnr_timer: 1, ..Default::default() })?;
            desk.meet()?;
            desk.device.wait(&[], Some(5_000_000))?;
            desk.qp.post_recv(1, &[desk.memory.sge(0..4_096)])?;
            desk.cq.wait()?;
            // Its ACK is still on its way: who leaves now takes nothing back.
            Ok(())
        },
    );
    run.assert_all_well();
    assert_eq!(run.counters("b").num_rnr_naks_sent, 1);
    // Sent in vain, NAKed as fast as it would have been acknowledged, 10 us of waiting, sent again.
    assert_eq!(completed_ps, 436_444 + 10_000_000 + 436_444);
}

#[test]
fn a_write_to_memory_that_is_not_the_peers_to_write_ends_both_queue_pairs() {
    for case in 0..3 {
        let (ended, events, run) = run(
            "",
            move |socket| {
                let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
                let (address, rkey) = desk.meet()?;
                let (address, rkey) = match case {
                    0 => (address, rkey + 1),
                    1 => (address + (64 << 10) - 99, rkey),
                    _ => (address - 1, rkey),
                };
                for wr_id in 1..=3 {
                    desk.qp.post_send(&WorkRequest::write(wr_id, address, rkey).gather(&[desk.memory.sge(0..100)])?)?;
                }
                desk.qp.ring_doorbell()?;
                let ended: Vec<_> = desk.completions(3)?.iter().map(in_short).collect();
                // What comes later is flushed too.
                desk.post(WorkRequest::send(4))?;
                assert_eq!(in_short(&desk.cq.wait()?), (4, Status::WorkRequestFlushed));
                assert!(matches!(desk.device.next_event(), Some(Event::QpFailed { .. })));
                Ok(ended)
            },
            |socket| {
                let mut desk = Desk::new(socket, "server", QueuePairConfig::default())?;
                desk.qp.post_recv(9, &[])?;
                desk.meet()?;
                assert_eq!(in_short(&desk.cq.wait()?), (9, Status::WorkRequestFlushed));
                Ok(std::iter::from_fn(|| desk.device.next_event()).collect::<Vec<_>>())
            },
        );
        run.assert_all_well();
        assert_eq!(
            ended,
            [(1, Status::RemoteAccessError), (2, Status::WorkRequestFlushed), (3, Status::WorkRequestFlushed)]
        );
        assert!(matches!(&events[..], [Event::QpFailed { cause, .. }] if cause.contains("access")), "{events:?}");
    }
}

#[test]
fn what_the_sender_does_not_own_is_not_sent() {
    let (ended, _, run) = run(
        "",
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            desk.meet()?;
            let mut sge = desk.memory.sge(0..100);
            sge.lkey += 7;
            desk.post(WorkRequest::send(1).gather(&[sge])?)?;
            Ok(desk.cq.wait()?.status)
        },
        |socket| stays(socket, "server"),
    );
    run.assert_all_well();
    assert_eq!(ended, Status::LocalProtectionError);
    assert_eq!(run.counters("a").num_verb_pkts_sent, 0);
}

#[test]
fn a_ring_takes_one_entry_less_than_it_has_slots_until_completions_free_them() {
    let (taken, (), run) = run(
        "",
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig { send_slots: 8, ..Default::default() })?;
            let (address, rkey) = desk.meet()?;
            let mut taken = 0;
            loop {
                match desk.qp.post_send(&WorkRequest::write(taken, address, rkey).unsignaled()) {
                    Ok(()) => taken += 1,
                    Err(Error::Ring(RingError::Full)) => break,
                    Err(error) => return Err(error),
                }
            }
            desk.qp.ring_doorbell()?;
            // Unsignaled entries free their slots as well.
            desk.device.wait(&[], Some(10_000_000))?;
            desk.post(WorkRequest::write(99, address, rkey))?;
            assert_eq!(desk.cq.wait()?.wr_id, 99);
            Ok(taken)
        },
        |socket| stays(socket, "server").map(drop),
    );
    run.assert_all_well();
    assert_eq!(taken, 7);
}

#[test]
fn who_polls_in_vain_lets_time_pass() {
    let (polls, _, run) = run(
        "",
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            let (address, rkey) = desk.meet()?;
            desk.post(WorkRequest::write(1, address, rkey).gather(&[desk.memory.sge(0..65_536)])?)?;
            let mut polls = 1;
            while desk.cq.poll_cq()?.is_none() {
                polls += 1;
            }
            Ok(polls)
        },
        |socket| stays(socket, "server"),
    );
    run.assert_all_well();
    // 64 KiB take 1.68 us; the second poll waits for the rest of it.
    assert_eq!(polls, 2);
}

#[test]
fn the_peer_of_one_who_goes_is_told() {
    let ((), events, run) = run(
        "",
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            desk.meet().map(drop)
        },
        |socket| stays(socket, "server"),
    );
    run.assert_all_well();
    let [Event::QpFailed { cause, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(cause, "the peer is gone");
}

#[test]
fn who_waits_for_what_never_comes_is_told_so() {
    let (error, (), run) = run(
        "",
        |socket| {
            let device = Device::open(socket, "client")?;
            let cq = device.create_cq(1)?;
            let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
            Ok(qp.connect("nobody else calls this", &[]).unwrap_err().to_string())
        },
        |socket| Device::open(socket, "server").map(drop),
    );
    run.assert_all_well();
    assert_eq!(error, "nothing is under way that could end this wait");
}

#[test]
fn two_runs_of_well_behaved_applications_are_the_same_run() {
    let play = || {
        let client = |socket: &Path| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            let (address, rkey) = desk.meet()?;
            for round in 0..20 {
                // Real time, which has no part in it.
                thread::sleep(std::time::Duration::from_micros(37 * round));
                desk.post(WorkRequest::write(round, address, rkey).gather(&[desk.memory.sge(0..1_000 * round)])?)?;
                if round % 3 == 0 {
                    while desk.cq.poll_cq()?.is_none() {}
                } else {
                    desk.cq.wait()?;
                }
            }
            Ok(())
        };
        let loss = "[[faults]]\nfrom = 'a'\nto = 'b'\nmatch = { kind = 'data', nth = 9 }\naction = 'drop'";
        let ((), (), run) = run(loss, client, |socket| stays(socket, "server").map(drop));
        run.assert_all_well();
        run.events().iter().map(|event| format!("{event:?}\n")).collect::<String>()
    };
    assert_eq!(play(), play());
}

#[test]
fn the_same_over_real_veth_pairs() {
    let nics = Scenario::pair().with(PAIR).serve();
    let nics = match nics {
        Err(rocemu::Error::Namespaces(error)) => return eprintln!("skipped: {error}"),
        nics => nics.unwrap(),
    };
    let [client, server] = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let server = thread::spawn(move || {
        let mut desk = Desk::new(&server, "server", QueuePairConfig::default())?;
        desk.qp.post_recv(1, &[desk.memory.sge(0..100)])?;
        desk.meet()?;
        desk.cq.wait()?;
        Ok::<_, Error>(desk.text(0, 20))
    });
    let mut desk = Desk::new(&client, "client", QueuePairConfig::default()).unwrap();
    desk.meet().unwrap();
    desk.post(WorkRequest::send(1).inline(b"over a veth pair, ok").unwrap()).unwrap();
    desk.cq.wait().unwrap();
    drop(desk);
    assert_eq!(server.join().unwrap().unwrap(), "over a veth pair, ok");
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn strangers_are_shown_out() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let socket = nics.socket("client").to_owned();
    let refused = |name: &str| Device::open(&socket, name).unwrap_err().to_string();
    assert_eq!(refused("nobody"), "refused: the scenario has no application `nobody`");
    let device = Device::open(&socket, "client").unwrap();
    // Everybody is there: the socket has gone.
    assert!(!socket.exists());
    drop(device);
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn news_of_many_queue_pairs_comes_whole() {
    const MANY: usize = 60;
    let connect_all = |socket: &Path, name: &str| {
        let device = Device::open(socket, name)?;
        let cq = device.create_cq(1)?;
        let mut pairs = Vec::new();
        for _ in 0..MANY {
            pairs.push(device.create_qp(
                &cq,
                &cq,
                &QueuePairConfig { send_slots: 2, receive_slots: 2, ..Default::default() },
            )?);
        }
        let mut told = 0;
        for (n, pair) in pairs.iter_mut().enumerate() {
            told += pair.connect(&format!("pair {n}"), &[255; 92])?.private_data.len();
        }
        Ok(told)
    };
    let (client, server, run) =
        run("", move |socket| connect_all(socket, "client"), move |socket| connect_all(socket, "server"));
    run.assert_all_well();
    assert_eq!((client, server), (92 * MANY, 92 * MANY));
}

#[test]
fn what_is_destroyed_gives_its_memory_back() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let device = Device::open(nics.socket("client"), "client").unwrap();
    // Each takes 4 MiB, and all together more than the 4 GiB that an application can have.
    for _ in 0..1_100 {
        device.create_cq(65_535).unwrap();
    }
    drop(device);
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn who_stays_silent_at_the_door_makes_room_for_who_speaks() {
    let nics = Scenario::pair().with(PAIR).serve_in_memory().unwrap();
    let silent = |name: &str| {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        socket.connect(&SockAddr::unix(nics.socket(name)).unwrap()).unwrap();
        socket
    };
    let strangers: Vec<_> = (0..100).map(|n| silent(if n % 4 == 0 { "client" } else { "server" })).collect();
    let [client, server] = ["client", "server"].map(|name| nics.socket(name).to_owned());
    let server = thread::spawn(move || Device::open(server, "server").map(drop));
    Device::open(client, "client").map(drop).unwrap();
    server.join().unwrap().unwrap();
    nics.finish().unwrap().assert_all_well();
    drop(strangers);
}

#[test]
fn a_wait_for_solicited_completions_sleeps_through_the_others() {
    let (_, woken, run) = run(
        STRICT,
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            desk.meet()?;
            for wr_id in 0..3 {
                desk.post(WorkRequest::send(wr_id))?;
                desk.cq.wait()?;
            }
            desk.post(WorkRequest::send(3).solicited())?;
            desk.cq.wait()
        },
        |socket| {
            let mut desk = Desk::new(socket, "server", QueuePairConfig::default())?;
            for wr_id in 10..16 {
                desk.qp.post_recv(wr_id, &[])?;
            }
            desk.meet()?;
            let mut woken = Vec::new();
            for notify in [Notify::Any, Notify::Solicited, Notify::Solicited] {
                let waiting = desk.device.begin_wait(&[&desk.cq], notify, None)?;
                // A loop of the application's own, over whatever files it has.
                let mut files = [PollFd::new(waiting.as_fd(), PollFlags::POLLIN)];
                poll(&mut files, PollTimeout::NONE).unwrap();
                assert_eq!(files[0].revents(), Some(PollFlags::POLLIN));
                waiting.finish()?;
                let mut found = Vec::new();
                while found.len() < 6
                    && let Some(completion) = desk.cq.peek()?
                {
                    found.push((completion.wr_id, completion.solicited, completion.status));
                }
                woken.push(found);
            }
            Ok(woken)
        },
    );
    let success = |wr_id, solicited| (wr_id, solicited, Status::Success);
    // The first one ends the first wait, the second and third none, the fourth the second.
    assert_eq!(woken[0], [success(10, false)]);
    assert_eq!(woken[1], [success(11, false), success(12, false), success(13, true)]);
    // The client leaves: what is flushed is not solicited, but wrong.
    assert_eq!(woken[2], [14, 15].map(|wr_id| (wr_id, false, Status::WorkRequestFlushed)));
    run.assert_all_well();
}

#[test]
fn solicited_completions_that_wait_to_be_polled_end_a_wait_at_once() {
    let (_, held, _) = run(
        STRICT,
        |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            desk.meet()?;
            desk.post(WorkRequest::send(0).solicited())?;
            desk.post(WorkRequest::send(1))?;
            desk.completions(2)?;
            Ok(())
        },
        |socket| {
            let mut desk = Desk::new(socket, "server", QueuePairConfig::default())?;
            (0..2).try_for_each(|wr_id| desk.qp.post_recv(wr_id, &[]))?;
            desk.meet()?;
            let later = desk.device.now_ps() + 100_000_000;
            desk.device.wait(&[], Some(later))?;
            let mut held = Vec::new();
            // Both are there; then the one that is not solicited; then none.
            for _ in 0..3 {
                let began = desk.device.now_ps();
                desk.device.begin_wait(&[&desk.cq], Notify::Solicited, Some(began + 1_000))?.finish()?;
                held.push(desk.device.now_ps() - began);
                desk.cq.peek()?;
            }
            Ok(held)
        },
    );
    assert_eq!(held, [0, 1_000, 1_000]);
}

#[test]
fn whatever_is_asked_during_a_wait_waits_for_its_end() {
    let (_, times, run) = run(
        "",
        |socket| stays(socket, "client"),
        |socket| {
            let mut desk = Desk::new(socket, "server", QueuePairConfig::default())?;
            desk.meet()?;
            let began = desk.device.now_ps();
            let waiting = desk.device.begin_wait(&[], Notify::Any, Some(began + 5_000))?;
            let _cq = desk.device.create_cq(1)?;
            let asked = desk.device.now_ps() - began;
            waiting.finish()?;
            // One that is forgotten ends as well.
            let _ = desk.device.begin_wait(&[], Notify::Any, Some(began + 9_000))?;
            desk.device.wait(&[], Some(began + 12_000))?;
            Ok([asked, desk.device.now_ps() - began])
        },
    );
    assert_eq!(times, [5_000, 12_000]);
    run.assert_all_well();
}

#[test]
fn regression_a_finished_wait_does_not_end_a_later_one() {
    let nics = Scenario::pair().with("[[applications]]\nname = 'client'\nnode = 'a'").serve_in_memory().unwrap();
    let device = Device::open(nics.socket("client"), "client").unwrap();
    let first = device.begin_wait(&[], Notify::Any, Some(1_000)).unwrap();
    // Its end is heard here.
    let second = device.begin_wait(&[], Notify::Any, Some(5_000)).unwrap();
    first.finish().unwrap();
    assert_eq!(device.now_ps(), 1_000);
    second.finish().unwrap();
    assert_eq!(device.now_ps(), 5_000);
    drop(device);
    nics.finish().unwrap().assert_all_well();
}

#[test]
fn regression_news_of_the_end_does_not_overtake_the_last_acknowledgement() {
    let delayed =
        "[[faults]]\nfrom = 'a'\nto = 'b'\nmatch = { kind = 'ack' }\naction = 'delay'\nby = '10ms'\n".repeat(3);
    // An acknowledgement is longer on its way than the 1 ms after which the peer is told otherwise.
    for more in ["delay = '2ms'", "\n[nic]\ndata_rate = '1Mbps'", &format!("\n{delayed}")] {
        let (_, ended, run) = run_on(
            Scenario::from_toml(format!("[nodes.a]\n[nodes.b]\n[[links]]\nends = ['a', 'b']\n{more}")),
            |socket| {
                let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
                desk.qp.post_recv(1, &[])?;
                desk.meet()?;
                desk.cq.wait()
            },
            |socket| {
                let mut desk = Desk::new(socket, "server", QueuePairConfig::default())?;
                let (address, rkey) = desk.meet()?;
                desk.post(WorkRequest::write(2, address, rkey).immediate(3))?;
                desk.cq.wait()
            },
        );
        assert_eq!(in_short(&ended), (2, Status::Success), "{more}");
        run.assert_all_well();
    }
}

#[test]
fn regression_scatter_elements_of_no_octets_need_no_region() {
    let nowhere = Sge { address: 7, lkey: 7, length: 0 };
    let (sent, received, run) = run(
        "",
        move |socket| {
            let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
            desk.meet()?;
            desk.memory.write(0, b"octets");
            desk.post(WorkRequest::send(1).gather(&[nowhere, desk.memory.sge(0..6)])?)?;
            desk.cq.wait()
        },
        move |socket| {
            let mut desk = Desk::new(socket, "server", QueuePairConfig::default())?;
            desk.qp.post_recv(2, &[desk.memory.sge(0..3), nowhere, desk.memory.sge(3..9)])?;
            desk.meet()?;
            let received = desk.cq.wait()?;
            assert_eq!(desk.text(0, 6), "octets");
            Ok(received)
        },
    );
    assert_eq!((in_short(&sent), in_short(&received)), ((1, Status::Success), (2, Status::Success)));
    run.assert_all_well();
}

#[test]
fn a_scenario_may_expect_something_of_what_applications_send() {
    let play = |expectations: &str| {
        let (_, _, run) = run(
            expectations,
            |socket| {
                let mut desk = Desk::new(socket, "client", QueuePairConfig::default())?;
                let (address, _) = desk.meet()?;
                desk.post(WorkRequest::write(1, address, 0).gather(&[desk.memory.sge(0..9)])?)?;
                desk.cq.wait()
            },
            |socket| stays(socket, "server"),
        );
        run.shortcomings().iter().map(|shortcoming| shortcoming.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(play("[[expect]]\nmessage = 0\nstatus = 'failed'"), [""; 0]);
    let found =
        play("[[expect]]\nmessage = '0..1'\nstatus = 'failed'\n[[expect]]\nmessage = 'all'\nstatus = 'completed'");
    assert_eq!(play("[[expect]]\nmessage = [0, 7]\nstatus = 'failed'").len(), 1, "nobody posts the latter");
    assert!(found.len() == 2 && found[0].contains("only 1") && found[1].contains("message 0 failed"), "{found:?}");
}

#[test]
fn of_no_messages_at_all_nothing_is_true() {
    let (_, _, run) = run(
        "[[expect]]\nmessage = 'all'\nstatus = 'completed'",
        |socket| stays(socket, "client"),
        |socket| Desk::new(socket, "server", QueuePairConfig::default())?.meet(),
    );
    let found: Vec<_> = run.shortcomings().iter().map(|shortcoming| shortcoming.to_string()).collect();
    assert!(found.len() == 1 && found[0].contains("no message was posted"), "{found:?}");
}
