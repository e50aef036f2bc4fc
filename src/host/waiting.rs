//! Sleeping until there is something to poll.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use socket2::Socket;

use super::objects::Shared;
use super::{CompletionQueue, Error};

/// Which completions end a wait, as `ibv_req_notify_cq` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    Any,
    /// Receives of messages that were sent with [`solicited`](super::WorkRequest::solicited), and whatever went wrong.
    /// Where the sender's NIC has `strict_ib_flags = false`, the default, that is every message.
    Solicited,
}

/// A wait that has begun: emulated time passes. Its file descriptor is readable when it is over.
///
/// Until then the application should leave its rings alone: what it writes or polls meanwhile comes at no particular
/// emulated time. Anything else that it asks of the device waits for the end of the wait.
#[derive(Debug)]
#[must_use = "the turn is not back before the wait is finished"]
pub struct Waiting {
    session: Shared,
    socket: Rc<Socket>,
    wait: u64,
}

impl Waiting {
    pub(super) fn begin(
        session: &Shared,
        cqs: &[&CompletionQueue],
        notify: Notify,
        until_ps: Option<u64>,
    ) -> Result<Self, Error> {
        let cqs = cqs.iter().map(|cq| cq.number()).collect();
        let wait = session.borrow_mut().begin_wait(cqs, notify == Notify::Solicited, until_ps)?;
        Ok(Self { session: Rc::clone(session), socket: session.borrow().socket(), wait })
    }

    /// Takes the turn back; blocks if the wait is not over.
    ///
    /// * Errors: as of [`Device::wait`](super::Device::wait).
    pub fn finish(self) -> Result<(), Error> {
        self.session.borrow_mut().finish_wait(self.wait)
    }
}

impl AsFd for Waiting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
