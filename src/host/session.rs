//! The connection to a NIC: requests and answers, doorbells, and the turn.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use socket2::{Domain, SockAddr, Socket, Type};

use super::Error;
use crate::memfd::SharedMemory;
use crate::ring::control::{self, Event, MESSAGE_MAX, Reply, Request};
use crate::ring::{DoorbellWriter, Geometry, RingError};

/// A part of shared memory, in words.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    shared: Rc<SharedMemory>,
    first: usize,
}

impl Memory {
    pub(super) fn octets(&self) -> usize {
        size_of_val(self.as_ref())
    }

    /// What begins at an octet, a multiple of eight.
    pub(super) fn from(&self, offset: u64) -> Result<Self, Error> {
        let first = usize::try_from(offset / 8).unwrap_or(usize::MAX);
        let is_inside = offset.is_multiple_of(8) && first < self.as_ref().len();
        let inside = || Self { shared: Rc::clone(&self.shared), first: self.first + first };
        is_inside.then(inside).ok_or_else(|| Error::Protocol(format!("memory that begins at octet {offset}")))
    }
}

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &(*self.shared).as_ref()[self.first..]
    }
}

/// What all objects of one device share.
#[derive(Debug)]
pub(super) struct Session {
    socket: Rc<Socket>,
    doorbells: Option<DoorbellWriter<Memory>>,
    pub node: String,
    pub now_ps: u64,
    /// What the NIC has told and nobody has asked for yet.
    pub events: VecDeque<Event>,
    /// Waits that have begun.
    waits: u64,
    /// The number of the wait whose end has not been heard.
    waiting: Option<u64>,
}

impl Session {
    pub(super) fn open(path: &Path, application: &str) -> Result<Self, Error> {
        let failed = |source| Error::System { action: format!("opening {}", path.display()), source };
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).map_err(failed)?;
        socket.connect(&SockAddr::unix(path).map_err(failed)?).map_err(failed)?;
        let mut session = Self {
            socket: Rc::new(socket),
            doorbells: None,
            node: String::new(),
            now_ps: 0,
            events: VecDeque::new(),
            waits: 0,
            waiting: None,
        };
        let open = Request::Open { version: control::VERSION, application: application.to_owned() };
        match session.call(&open)? {
            (Reply::Opened { node, now_ps, .. }, Some(page)) => {
                let shape = Geometry::read(page.as_ref())?;
                session.doorbells = Some(DoorbellWriter::new(page, shape)?);
                (session.node, session.now_ps) = (node, now_ps);
                Ok(session)
            }
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    /// Asks, and waits for the answer; before that, for the end of a wait that has begun.
    pub(super) fn call(&mut self, request: &Request) -> Result<(Reply, Option<Memory>), Error> {
        self.abandon_wait()?;
        self.say(request)?;
        self.hear()
    }

    fn say(&self, request: &Request) -> Result<(), Error> {
        let octets = serde_json::to_vec(request).map_err(|error| Error::Protocol(error.to_string()))?;
        if octets.len() > MESSAGE_MAX {
            return Err(Error::Refused(format!("a request has at most {MESSAGE_MAX} octets")));
        }
        loop {
            match self.socket.send_with_flags(&octets, libc::MSG_NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(gone_or(error)),
            }
        }
    }

    fn hear(&self) -> Result<(Reply, Option<Memory>), Error> {
        let (reply, memory) = receive(&self.socket)?;
        match reply {
            Reply::Refused { reason } => Err(Error::Refused(reason)),
            reply => Ok((reply, memory)),
        }
    }

    /// Lets emulated time pass.
    pub(super) fn wait(&mut self, cqs: Vec<u32>, until_ps: Option<u64>) -> Result<(), Error> {
        let wait = self.begin_wait(cqs, false, until_ps)?;
        self.finish_wait(wait)
    }

    /// Ends the turn. Returns the number of the wait.
    pub(super) fn begin_wait(
        &mut self,
        cqs: Vec<u32>,
        solicited_only: bool,
        until_ps: Option<u64>,
    ) -> Result<u64, Error> {
        self.abandon_wait()?;
        self.say(&Request::Wait { cqs, solicited_only, until_ps })?;
        self.waits += 1;
        self.waiting = Some(self.waits);
        Ok(self.waits)
    }

    /// What is readable when the turn is back.
    pub(super) fn socket(&self) -> Rc<Socket> {
        Rc::clone(&self.socket)
    }

    /// Waits until the turn is back, for whatever reason.
    fn abandon_wait(&mut self) -> Result<(), Error> {
        match self.waiting.map_or(Ok(()), |wait| self.finish_wait(wait)) {
            Ok(()) | Err(Error::Stalled) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the turn is back, unless this wait is over already.
    pub(super) fn finish_wait(&mut self, wait: u64) -> Result<(), Error> {
        if self.waiting.take_if(|waiting| *waiting == wait).is_none() {
            return Ok(());
        }
        match self.hear()? {
            (Reply::Woken { now_ps, events }, _) => {
                self.now_ps = now_ps;
                let has_stalled = events.contains(&Event::Stalled);
                self.events.extend(events.into_iter().filter(|event| *event != Event::Stalled));
                if has_stalled { Err(Error::Stalled) } else { Ok(()) }
            }
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    /// Rings a doorbell, with the octets of the newest WQE if there are any.
    pub(super) fn ring(&mut self, qpn: u32, producer_index: u32, wqe: &[u8]) -> Result<(), Error> {
        let mut has_asked = false;
        loop {
            let doorbells = self.doorbells.as_mut().ok_or(Error::Gone)?;
            let rung = match wqe {
                [] => doorbells.ring(qpn, producer_index),
                wqe => doorbells.blue_flame(qpn, producer_index, wqe),
            };
            match rung {
                // The page is as full as it can be: the NIC hears it now.
                Err(RingError::Full) if !has_asked => {
                    self.call(&Request::Hear {})?;
                    has_asked = true;
                }
                rung => return Ok(rung?),
            }
        }
    }
}

/// The next answer, and the memory that came with it.
fn receive(socket: &Socket) -> Result<(Reply, Option<Memory>), Error> {
    let mut octets = vec![0; MESSAGE_MAX + 1];
    let mut space = cmsg_space!([RawFd; 1]);
    let (length, file) = loop {
        let mut parts = [IoSliceMut::new(&mut octets)];
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
            Ok(received) => {
                let mut file = None;
                for message in received.cmsgs().map_err(|errno| gone_or(errno.into()))? {
                    if let ControlMessageOwned::ScmRights(fds) = message {
                        // SAFETY: the kernel has just put these descriptors into this process, and nobody else knows them.
                        file = fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).next();
                    }
                }
                break (received.bytes, file);
            }
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(gone_or(errno.into())),
        }
    };
    if length == 0 {
        return Err(Error::Gone);
    }
    let reply = serde_json::from_slice(&octets[..length]).map_err(|error| Error::Protocol(error.to_string()))?;
    let map = |file| SharedMemory::map(&file).map(|shared| Memory { shared: Rc::new(shared), first: 0 });
    let memory = file.map(map).transpose();
    let memory = memory.map_err(|source| Error::System { action: "mapping shared memory".into(), source })?;
    Ok((reply, memory))
}

pub(super) fn unexpected(reply: &Reply) -> Error {
    Error::Protocol(format!("{reply:?}"))
}

fn gone_or(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected => Error::Gone,
        _ => Error::System { action: "talking to the device".into(), source },
    }
}
