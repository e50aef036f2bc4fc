//! Applications over Unix sockets: one socket per NIC, one connection per application.
//!
//! ```text
//!  <dir>/a.sock   SOCK_SEQPACKET   one JSON object per datagram, descriptors of shared memory with the replies
//! ```
//!
//! The file of a socket is there until every application of its NIC has come, and no longer. A run that is killed leaves
//! it, and the next one takes it away: the kernel removes no socket's file, and an abstract address, which has none, could
//! not be reached from other network namespaces.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::base::NodeId;
use crate::engine::{Applications, ApplicationsError, MemoryTicket, SharedWords};
use crate::memfd::SharedMemory;
use crate::ring::control::{MESSAGE_MAX, Reply, Request};
use crate::scenario::Plan;

/// How long a wait goes on between two looks at whether the run is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Octets of the path of a Unix socket: `sun_path` without the zero at its end.
const PATH_MAX: usize = 107;
/// Connections that have not yet said whose they are.
const STRANGERS_MAX: usize = 64;
/// Characters of the reason of a refusal.
const REASON_MAX: usize = 500;

/// How the application of this name ended, if it will never come.
type Lost = Box<dyn Fn(&str) -> Option<String> + Send>;

/// The applications of a plan, each in a process of its own.
pub struct ApplicationSockets {
    applications: Vec<Application>,
    devices: Vec<Device>,
    /// Connections that have not said anything yet, with the device they came to.
    strangers: Vec<(usize, Socket)>,
    /// Descriptors on their way to an application.
    memories: BTreeMap<MemoryTicket, OwnedFd>,
    tickets: u64,
    limits: Limits,
    given_up: Vec<String>,
    stop: Arc<AtomicBool>,
    lost: Lost,
}

/// How long, in real time, a run waits for its applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until an application opens its device.
    pub come: Duration,
    /// For one turn. An application that takes longer is given up, as if it had died.
    pub turn: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { come: Duration::from_secs(60), turn: Duration::from_secs(60) }
    }
}

#[derive(Debug)]
struct Application {
    name: String,
    device: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Expected,
    /// It has connected and said this, which the engine has not heard yet.
    Came(Socket, Request),
    Here(Socket, Instant),
    Gone,
}

#[derive(Debug)]
struct Device {
    path: PathBuf,
    /// `None` when everybody has come.
    listener: Option<Socket>,
    expected: usize,
}

impl ApplicationSockets {
    /// Whether [`ApplicationSockets::open`] could succeed; nothing is made.
    ///
    /// * Errors: the path of a socket is too long.
    pub fn check(dir: &Path, plan: &Plan) -> Result<(), ApplicationsError> {
        for application in &plan.applications {
            let path = socket_path(dir, plan, application.node);
            let octets = path.as_os_str().len();
            if octets > PATH_MAX {
                let path = path.display().to_string();
                return Err(ApplicationsError::PathTooLong { path, octets, octets_max: PATH_MAX });
            }
        }
        Ok(())
    }

    /// Opens `<dir>/<node>.sock` for every node of the plan that has applications. A socket of that name that nobody
    /// listens to any more is taken away first. Once `stop` is set, whoever waits for an application gives up.
    ///
    /// * Errors: as of [`ApplicationSockets::check`]; the directory or a socket cannot be made; somebody listens there
    ///   already.
    pub fn open(dir: &Path, plan: &Plan, limits: Limits, stop: Arc<AtomicBool>) -> Result<Self, ApplicationsError> {
        Self::check(dir, plan)?;
        let mut sockets = Self {
            applications: Vec::new(),
            devices: Vec::new(),
            strangers: Vec::new(),
            memories: BTreeMap::new(),
            tickets: 0,
            limits,
            given_up: Vec::new(),
            stop,
            lost: Box::new(|_| None),
        };
        let mut device_of = BTreeMap::new();
        for application in &plan.applications {
            let device = match device_of.get(&application.node) {
                Some(&device) => device,
                None => {
                    let path = socket_path(dir, plan, application.node);
                    let failed = |source| ApplicationsError::System {
                        action: format!("making the socket {}", path.display()),
                        source,
                    };
                    let listener = std::fs::create_dir_all(dir).and_then(|()| listen(&path)).map_err(failed)?;
                    sockets.devices.push(Device { path, listener: Some(listener), expected: 0 });
                    let device = sockets.devices.len() - 1;
                    device_of.insert(application.node, device);
                    device
                }
            };
            sockets.devices[device].expected += 1;
            sockets.applications.push(Application { name: application.name.clone(), device, state: State::Expected });
        }
        Ok(sockets)
    }

    /// Which application is to open which socket, in the order of the plan.
    pub fn invitations(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.applications
            .iter()
            .map(|application| (application.name.as_str(), self.devices[application.device].path.as_path()))
    }

    /// Applications of which `lost` says how they ended, such as "ended with exit status: 1", are not waited for.
    pub fn give_up_on(&mut self, lost: impl Fn(&str) -> Option<String> + Send + 'static) {
        self.lost = Box::new(lost);
    }

    /// Waits until the application has come, and lets others in meanwhile.
    fn wait_for(&mut self, index: usize) -> Result<(), ApplicationsError> {
        let began = now();
        while self.is_expected(index) {
            self.stop_if_told(index)?;
            if began.elapsed() > self.limits.come {
                let (application, device) = self.names(index);
                return Err(ApplicationsError::NeverCame { application, device, seconds: self.limits.come.as_secs() });
            }
            // Before the look at who has come: whoever is lost has said all that it ever will.
            let lost = self.find_lost();
            let listeners = self.devices.iter().filter_map(|device| device.listener.as_ref());
            let sockets: Vec<_> = listeners.chain(self.strangers.iter().map(|(_, socket)| socket)).collect();
            wait_readable(&sockets, LOOK).map_err(|source| system("waiting for applications", source))?;
            self.let_in();
            self.introduce();
            if let Some((index, end)) = lost
                && self.is_expected(index)
            {
                let (application, device) = self.names(index);
                return Err(ApplicationsError::Lost { application, device, end });
            }
        }
        Ok(())
    }

    /// The first application that will never come, and why.
    fn find_lost(&self) -> Option<(usize, String)> {
        let mut expected = (0..self.applications.len()).filter(|&index| self.is_expected(index));
        expected.find_map(|index| Some((index, (self.lost)(&self.applications[index].name)?)))
    }

    fn is_expected(&self, index: usize) -> bool {
        matches!(self.applications[index].state, State::Expected)
    }

    /// An application and its device, for messages.
    fn names(&self, index: usize) -> (String, String) {
        let Application { name, device, .. } = &self.applications[index];
        (name.clone(), self.devices[*device].path.display().to_string())
    }

    /// Accepts whoever knocks.
    fn let_in(&mut self) {
        for device in 0..self.devices.len() {
            while let Some(Ok((socket, _))) = self.devices[device].listener.as_ref().map(Socket::accept) {
                if socket.set_nonblocking(true).is_ok() {
                    self.strangers.push((device, socket));
                }
                if self.strangers.len() > STRANGERS_MAX {
                    // Those who have been silent for longest make room.
                    self.introduce();
                    let too_many = self.strangers.len().saturating_sub(STRANGERS_MAX);
                    self.strangers.drain(..too_many);
                }
            }
        }
    }

    /// Finds out who the strangers are.
    fn introduce(&mut self) {
        for (device, socket) in std::mem::take(&mut self.strangers) {
            match receive(&socket) {
                Ok(None) => self.strangers.push((device, socket)),
                Ok(Some(Request::Open { version, application })) => self.seat(device, socket, version, application),
                Ok(Some(_)) => refuse(&socket, "the first request must be `open`"),
                Err(Heard::Nonsense(reason)) => refuse(&socket, &reason),
                Err(Heard::Gone) => {}
            }
        }
    }

    fn seat(&mut self, device: usize, socket: Socket, version: u32, name: String) {
        let found = self.applications.iter_mut().find(|application| application.name == name);
        let reason = match found {
            Some(application) if application.device != device => {
                format!("application `{name}` belongs to {}", self.devices[application.device].path.display())
            }
            Some(application) if matches!(application.state, State::Expected) => {
                application.state = State::Came(socket, Request::Open { version, application: name });
                self.devices[device].expected -= 1;
                if self.devices[device].expected == 0 {
                    self.devices[device].close();
                }
                return;
            }
            Some(_) => format!("application `{name}` has come already"),
            None => format!("the scenario has no application `{name}`"),
        };
        refuse(&socket, &reason);
    }

    fn stop_if_told(&self, index: usize) -> Result<(), ApplicationsError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(ApplicationsError::Stopped { application: self.applications[index].name.clone() }),
            false => Ok(()),
        }
    }
}

impl Applications for ApplicationSockets {
    fn make_memory(&mut self, octets: usize) -> io::Result<(Arc<dyn SharedWords>, MemoryTicket)> {
        let (memory, file) = SharedMemory::create("rocemu", octets)?;
        let ticket = MemoryTicket(self.tickets);
        self.tickets += 1;
        self.memories.insert(ticket, file);
        Ok((Arc::new(memory), ticket))
    }

    fn begin_turn(&mut self, index: usize) {
        if let State::Here(_, began) = &mut self.applications[index].state {
            *began = now();
        }
    }

    fn request(&mut self, index: usize) -> Result<Option<Request>, ApplicationsError> {
        self.wait_for(index)?;
        loop {
            self.stop_if_told(index)?;
            let application = &mut self.applications[index];
            let (socket, began) = match std::mem::replace(&mut application.state, State::Gone) {
                State::Came(socket, request) => {
                    application.state = State::Here(socket, now());
                    return Ok(Some(request));
                }
                State::Here(socket, began) => (socket, began),
                State::Gone | State::Expected => return Ok(None),
            };
            // Even if it has more to say: there would be no end to it.
            if began.elapsed() > self.limits.turn {
                let (name, limit) = (&application.name, self.limits.turn);
                self.given_up.push(format!("application `{name}` kept its turn for {limit:?}, and was given up"));
                return Ok(None);
            }
            match receive(&socket) {
                Ok(Some(request)) => {
                    application.state = State::Here(socket, began);
                    return Ok(Some(request));
                }
                Ok(None) => {
                    wait_readable(&[&socket], LOOK).map_err(|source| system("waiting for an application", source))?;
                    application.state = State::Here(socket, began);
                }
                Err(Heard::Nonsense(reason)) => {
                    refuse(&socket, &reason);
                    application.state = State::Here(socket, began);
                }
                Err(Heard::Gone) => return Ok(None),
            }
        }
    }

    fn departed(&mut self) -> Option<usize> {
        let here = self.applications.iter().enumerate().filter_map(|(index, application)| match &application.state {
            State::Here(socket, _) => Some((index, socket)),
            _ => None,
        });
        // Of nothing but its end: what it says is heard in its turn.
        let (indices, mut ends): (Vec<_>, Vec<_>) =
            here.map(|(index, socket)| (index, PollFd::new(socket.as_fd(), PollFlags::empty()))).unzip();
        let count = poll(&mut ends, PollTimeout::ZERO);
        let closed = ends.iter().position(|end| end.any() == Some(true)).filter(|_| count.is_ok());
        let gone = indices[closed?];
        self.applications[gone].state = State::Gone;
        Some(gone)
    }

    fn given_up(&self) -> &[String] {
        &self.given_up
    }

    fn reply(&mut self, index: usize, reply: &Reply, memory: Option<MemoryTicket>) -> Result<(), ApplicationsError> {
        let file = memory.and_then(|ticket| self.memories.remove(&ticket));
        let application = &mut self.applications[index];
        let State::Here(socket, _) = &application.state else { return Ok(()) };
        if let Err(error) = send(socket, reply, file.as_ref()) {
            // One that has gone is heard of soon enough.
            if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
                let name = &application.name;
                let what = match error.raw_os_error() {
                    // So many descriptors as this user may have are on their way already; whose fault that is, nobody knows.
                    Some(libc::ETOOMANYREFS) => "could not be handed its memory",
                    _ => "did not read its answers",
                };
                self.given_up.push(format!("application `{name}` {what} ({error}), and was given up"));
            }
            application.state = State::Gone;
        }
        Ok(())
    }
}

impl std::fmt::Debug for ApplicationSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { applications, devices, strangers, limits, .. } = self;
        let mut debug = f.debug_struct("ApplicationSockets");
        debug.field("applications", applications).field("devices", devices).field("strangers", strangers);
        debug.field("limits", limits).finish_non_exhaustive()
    }
}

impl Device {
    /// Nobody else is expected: the file goes.
    fn close(&mut self) {
        if self.listener.take().is_some() {
            // Somebody may have taken it away already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.close();
    }
}

/// What was heard instead of a request.
enum Heard {
    Nonsense(String),
    Gone,
}

fn socket_path(dir: &Path, plan: &Plan, node: NodeId) -> PathBuf {
    dir.join(format!("{}.sock", plan.nics[node.index()].name))
}

fn listen(path: &Path) -> io::Result<Socket> {
    let address = SockAddr::unix(path)?;
    let listener = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    if let Err(error) = listener.bind(&address) {
        if error.kind() != ErrorKind::AddrInUse || !is_abandoned(path, &address)? {
            return Err(error);
        }
        std::fs::remove_file(path)?;
        listener.bind(&address)?;
    }
    listener.listen(128)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A socket to which nobody listens: what a process that was killed left behind.
fn is_abandoned(path: &Path, address: &SockAddr) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt;
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    let probe = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    Ok(matches!(probe.connect(address), Err(error) if error.kind() == ErrorKind::ConnectionRefused))
}

/// The next request; `None` if there is none yet.
fn receive(mut socket: &Socket) -> Result<Option<Request>, Heard> {
    let mut octets = [0; MESSAGE_MAX + 1];
    match io::Read::read(&mut socket, &mut octets) {
        Ok(0) => Err(Heard::Gone),
        Ok(length) if length > MESSAGE_MAX => {
            Err(Heard::Nonsense(format!("a request has at most {MESSAGE_MAX} octets")))
        }
        Ok(length) => serde_json::from_slice(&octets[..length])
            .map(Some)
            .map_err(|error| Heard::Nonsense(format!("this is no request: {error}"))),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(_) => Err(Heard::Gone),
    }
}

fn refuse(socket: &Socket, reason: &str) {
    // It may quote what it refuses.
    let reason = reason.chars().take(REASON_MAX).collect();
    // Whoever does not listen need not know.
    let _ = send(socket, &Reply::Refused { reason }, None);
}

/// Sends a reply. It never waits: whoever does not read its replies has given up.
fn send(socket: &Socket, reply: &Reply, file: Option<&OwnedFd>) -> io::Result<()> {
    let octets = serde_json::to_vec(reply).map_err(io::Error::other)?;
    let descriptors: Vec<_> = file.iter().map(|file| file.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&octets)], rights, flags, None)?;
    Ok(())
}

/// Waits until one of the sockets has something to say, or `limit` has passed.
fn wait_readable(sockets: &[&Socket], limit: Duration) -> io::Result<()> {
    let mut polled: Vec<_> = sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    match poll(&mut polled, PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn system(action: &str, source: io::Error) -> ApplicationsError {
    ApplicationsError::System { action: action.to_owned(), source }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long an application is waited for is real time; no result depends on it"
)]
fn now() -> Instant {
    Instant::now()
}
