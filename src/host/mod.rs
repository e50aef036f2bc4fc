//! The library of applications: verbs over memory that is shared with a NIC of a run.
//!
//! An application is a process of its own. It opens the device of a NIC, makes queues and regions, and from then on posts
//! and polls in shared memory, with no lock and no call of the kernel in between; only waiting, polling in vain and making
//! things are messages to the NIC (see [`ring::control`](crate::ring::control) for what crosses the socket, and for the turns
//! by which emulated time stands still while an application runs).
//!
//! ```
//! use rocemu::Scenario;
//! use rocemu::host::{Device, QueuePairConfig, WorkRequest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let applications = "[[applications]]\nname = 'client'\nnode = 'a'\n[[applications]]\nname = 'server'\nnode = 'b'";
//! let nics = Scenario::pair().with(applications).serve_in_memory()?;
//!
//! let socket = nics.socket("server").to_owned();
//! let server = std::thread::spawn(move || -> Result<String, rocemu::host::Error> {
//!     let device = Device::open(&socket, "server")?;
//!     let cq = device.create_cq(16)?;
//!     let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
//!     let buffer = device.reg_mr(64)?;
//!     qp.post_recv(1, &[buffer.sge(0..64)])?;
//!     qp.connect("greetings", &[])?;
//!     let received = cq.wait()?;
//!     let mut text = vec![0; received.length as usize];
//!     buffer.read(0, &mut text);
//!     Ok(String::from_utf8_lossy(&text).into_owned())
//! });
//!
//! let device = Device::open(nics.socket("client"), "client")?;
//! let cq = device.create_cq(16)?;
//! let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
//! qp.connect("greetings", &[])?;
//! qp.post_send(&WorkRequest::send(7).inline(b"hello")?)?;
//! qp.ring_doorbell()?;
//! assert_eq!(cq.wait()?.wr_id, 7);
//! drop((qp, cq, device));
//!
//! assert_eq!(server.join().unwrap()?, "hello");
//! nics.finish()?.assert_all_well();
//! # Ok(())
//! # }
//! ```
//!
//! A device and all that it makes belong to one thread, as the turn does. Dropping an object destroys it; dropping all of
//! them, or the end of the process, ends the application's part in the run.
//!
//! Not here: READ and atomics, which the emulator does not carry out; shared receive queues; events of devices other than
//! those that concern a queue pair.

mod error;
mod objects;
mod session;
mod waiting;
mod work_request;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

pub use crate::ring::control::Event;
pub use crate::ring::{CompletionOpcode, Cqe as Completion, Sge, Status};
pub use error::Error;
pub use objects::{BLUE_FLAME_MAX, CompletionQueue, MemoryRegion, Peer, QueuePair, QueuePairConfig};
pub use waiting::{Notify, Waiting};
pub use work_request::WorkRequest;

use objects::Shared;
use session::Session;

/// A NIC of a run, opened by one of the scenario's applications.
#[derive(Clone, Debug)]
pub struct Device(Shared);

impl Device {
    /// Opens the device behind a socket, and waits for the application's first turn.
    ///
    /// * Shape: `application` is its name in the scenario.
    /// * Errors: nobody listens; the scenario has no such application at this NIC, or it has come already.
    pub fn open(socket: impl AsRef<Path>, application: &str) -> Result<Self, Error> {
        let session = Session::open(socket.as_ref(), application)?;
        Ok(Self(Rc::new(RefCell::new(session))))
    }

    /// The name of the NIC's node in the scenario.
    pub fn node(&self) -> String {
        self.0.borrow().node.clone()
    }

    /// Emulated time, in picoseconds since the start of the run. It stands still while this application has its turn.
    pub fn now_ps(&self) -> u64 {
        self.0.borrow().now_ps
    }

    /// A completion queue for so many entries, at least.
    ///
    /// * Range: up to 65,535.
    pub fn create_cq(&self, entries: u32) -> Result<CompletionQueue, Error> {
        CompletionQueue::create(&self.0, entries)
    }

    /// A queue pair that is not connected yet. Both of its queues may use one completion queue.
    pub fn create_qp(
        &self,
        send_cq: &CompletionQueue,
        receive_cq: &CompletionQueue,
        config: &QueuePairConfig,
    ) -> Result<QueuePair, Error> {
        QueuePair::create(&self.0, send_cq, receive_cq, config)
    }

    /// Memory for the NIC to read from and to receive into, filled with zeros.
    pub fn reg_mr(&self, octets: u64) -> Result<MemoryRegion, Error> {
        MemoryRegion::register(&self.0, octets, false)
    }

    /// The same, and peers that are told its key may WRITE to it.
    pub fn reg_mr_remote(&self, octets: u64) -> Result<MemoryRegion, Error> {
        MemoryRegion::register(&self.0, octets, true)
    }

    /// Lets emulated time pass until one of the queues holds a completion, or until `until_ps`, or until there is an
    /// [`Event`]. Returns at once if one does.
    pub fn wait(&self, cqs: &[&CompletionQueue], until_ps: Option<u64>) -> Result<(), Error> {
        let cqs = cqs.iter().map(|cq| cq.number()).collect();
        self.0.borrow_mut().wait(cqs, until_ps)
    }

    /// Begins a wait as of [`Device::wait`], for which the application may sleep in a loop of its own:
    /// [`Waiting`] has a file descriptor that `poll` and `epoll` take.
    ///
    /// * Units: `until_ps` in picoseconds of emulated time since the start of the run.
    /// * Errors: the device is gone.
    pub fn begin_wait(
        &self,
        cqs: &[&CompletionQueue],
        notify: Notify,
        until_ps: Option<u64>,
    ) -> Result<Waiting, Error> {
        Waiting::begin(&self.0, cqs, notify, until_ps)
    }

    /// What the NIC has told of queue pairs and completion queues, the oldest first; no time passes.
    pub fn next_event(&self) -> Option<Event> {
        self.0.borrow_mut().events.pop_front()
    }
}
