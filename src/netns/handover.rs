//! What the child tells the parent while it works, and how sockets change hands: messages over a Unix socket pair.
//!
//! ```text
//! child ── At(step, subject) ── At … ── Sockets(≤ 64 descriptors) ── Sockets … ── Done ──► parent
//!              └── Failed(errno): of the step announced last        (end of stream: the child died there)
//! ```

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};

use super::Step;

/// Descriptors per message; the kernel's own limit is 253 (SCM_MAX_FD).
const BATCH: usize = 64;

/// Which part of the topology a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Run,
    Node(u32),
    Cable(u32),
    /// Cable × 2 + end.
    Port(u32),
}

#[derive(Debug)]
pub(super) enum Message {
    At(Step, Subject),
    Failed(Errno),
    Sockets(Vec<OwnedFd>),
    Done,
}

/// Both ends; the second is the child's.
pub(super) fn channel() -> Result<(Receiver, Sender), Errno> {
    let (parent, child) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    Ok((Receiver(parent), Sender(child)))
}

pub(super) struct Sender(OwnedFd);

impl Sender {
    /// Announces what is tried next, so that a failure needs no more than its errno.
    pub(super) fn at(&self, step: Step, subject: Subject) -> Result<(), Errno> {
        let (kind, number) = match subject {
            Subject::Run => (0, 0),
            Subject::Node(n) => (1, n),
            Subject::Cable(n) => (2, n),
            Subject::Port(n) => (3, n),
        };
        self.send(b'A', [step as u8, kind], number, &[])
    }

    pub(super) fn failed(&self, errno: Errno) -> Result<(), Errno> {
        self.send(b'F', [0; 2], (errno as i32).unsigned_abs(), &[])
    }

    pub(super) fn sockets(&self, sockets: &[RawFd]) -> Result<(), Errno> {
        sockets.chunks(BATCH).try_for_each(|batch| self.send(b'S', [0; 2], 0, batch))
    }

    pub(super) fn done(&self) -> Result<(), Errno> {
        self.send(b'D', [0; 2], 0, &[])
    }

    pub(super) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn send(&self, kind: u8, detail: [u8; 2], number: u32, descriptors: &[RawFd]) -> Result<(), Errno> {
        let [a, b, c, d] = number.to_be_bytes();
        let octets = [kind, detail[0], detail[1], a, b, c, d];
        let rights = [ControlMessage::ScmRights(descriptors)];
        let rights = if descriptors.is_empty() { &[][..] } else { &rights[..] };
        // No signal if the parent is gone: the child then ends with an error of its own.
        sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(&octets)], rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)
    }
}

pub(super) struct Receiver(OwnedFd);

impl Receiver {
    /// `Ok(None)` at the end of the stream.
    ///
    /// * Errors: `ETIMEDOUT` if nothing comes in time, `EMFILE` if descriptors got lost, `EBADMSG` if it is no message.
    pub(super) fn next(&self, timeout: PollTimeout) -> Result<Option<Message>, Errno> {
        wait_readable(self.0.as_fd(), timeout)?;
        let mut octets = [0; 7];
        let mut space = cmsg_space!([RawFd; BATCH]);
        let mut descriptors = Vec::new();
        let mut parts = [IoSliceMut::new(&mut octets)];
        let received = recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
        let lost = received.flags.contains(MsgFlags::MSG_CTRUNC);
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(fds) = message {
                // SAFETY: the kernel has just put these descriptors into this process, and nobody else knows them.
                descriptors.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        let length = received.bytes;
        if lost {
            return Err(Errno::EMFILE);
        }
        if length == 0 {
            return Ok(None);
        }
        let [kind, step, subject, number @ ..] = octets;
        let number = u32::from_be_bytes(number);
        match (kind, subject) {
            (b'A', _) => {
                let subject = match subject {
                    0 => Subject::Run,
                    1 => Subject::Node(number),
                    2 => Subject::Cable(number),
                    3 => Subject::Port(number),
                    _ => return Err(Errno::EBADMSG),
                };
                Ok(Some(Message::At(Step::from_code(step).ok_or(Errno::EBADMSG)?, subject)))
            }
            (b'F', _) => Ok(Some(Message::Failed(Errno::from_raw(number.cast_signed())))),
            (b'S', _) => Ok(Some(Message::Sockets(descriptors))),
            (b'D', _) => Ok(Some(Message::Done)),
            _ => Err(Errno::EBADMSG),
        }
    }
}

/// * Errors: `ETIMEDOUT` if nothing becomes readable in time.
pub(super) fn wait_readable(fd: BorrowedFd<'_>, timeout: PollTimeout) -> Result<(), Errno> {
    loop {
        match poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(0) => return Err(Errno::ETIMEDOUT),
            Ok(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_child_sends_is_what_the_parent_reads() {
        let (receiver, sender) = channel().expect("a socket pair");
        let next = || receiver.next(PollTimeout::from(1_000_u16)).expect("a message");
        sender.at(Step::CreateVeth, Subject::Cable(70_000)).unwrap();
        assert!(matches!(next(), Some(Message::At(Step::CreateVeth, Subject::Cable(70_000)))));
        sender.failed(Errno::EPERM).unwrap();
        assert!(matches!(next(), Some(Message::Failed(Errno::EPERM))));
        sender.done().unwrap();
        assert!(matches!(next(), Some(Message::Done)));
        drop(sender);
        assert!(next().is_none());
    }

    #[test]
    fn more_descriptors_than_one_message_holds_arrive_in_order() {
        let (receiver, sender) = channel().expect("a socket pair");
        let files: Vec<_> = (0..300).map(|_| tempfile::tempfile().expect("a file")).collect();
        let inodes: Vec<_> = files.iter().map(|file| nix::sys::stat::fstat(file).unwrap().st_ino).collect();
        let raw: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let sending = std::thread::spawn(move || sender.sockets(&raw));
        let mut arrived = Vec::new();
        while let Ok(Some(Message::Sockets(batch))) = receiver.next(PollTimeout::from(1_000_u16)) {
            arrived.extend(batch.iter().map(|file| nix::sys::stat::fstat(file).unwrap().st_ino));
        }
        sending.join().unwrap().unwrap();
        assert_eq!(arrived, inodes);
    }

    #[test]
    fn a_silent_child_is_not_waited_for_for_ever() {
        let (receiver, _sender) = channel().expect("a socket pair");
        assert_eq!(receiver.next(PollTimeout::from(1_u8)).unwrap_err(), Errno::ETIMEDOUT);
    }
}
