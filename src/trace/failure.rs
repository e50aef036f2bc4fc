//! How work ends that is not carried out, and why queue pairs fail.

use serde::Serialize;

/// What a host is told of a message or a receive that was not carried out, under the names that verbs have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkStatus {
    /// A message is too long to be sent, or longer than the receive it came for.
    LocalLengthError,
    /// The host's own memory is not registered, or not for this.
    LocalProtectionError,
    /// The peer has no use for such a request.
    RemoteInvalidRequestError,
    /// The memory that was named is not the peer's to be written.
    RemoteAccessError,
    /// The peer could not carry it out.
    RemoteOperationalError,
    /// The peer did not answer, however often it was asked.
    RetryExceeded,
    /// The peer had no receive posted, however often it was asked.
    RnrRetryExceeded,
    /// Nothing was wrong with it, but its queue pair is in error.
    WorkRequestFlushed,
}

/// What put a queue pair in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// A message to be sent is longer than 2³¹ octets.
    MessageTooLong,
    /// A message to be sent does not lie in registered memory.
    SourceProtection,
    RetryExceeded,
    RnrRetryExceeded,
    /// The peer answered with a NAK.
    NakInvalidRequest,
    NakRemoteAccess,
    NakRemoteOperational,
    /// This end refused a request that it does not serve, or that cannot follow the one before it.
    RefusedRequest,
    /// This end refused a WRITE to memory that is not there, or not to be written.
    RefusedAccess,
    /// A SEND came that is longer than its receive.
    ReceiveTooShort,
    /// A SEND came, and its receive is not in registered memory.
    ReceiveProtection,
    /// Payload that had been accepted came to memory that was no longer registered.
    MemoryGone,
    /// A doorbell claimed what cannot be, or the page of doorbells was tampered with.
    BadDoorbell,
    /// A work request in a ring that cannot be carried out: an opcode, flag or length that there is not.
    BadWorkRequest,
    /// A work request was changed in its slot after it was handed over: it cannot be sent again.
    SlotChanged,
    /// A completion queue was full.
    CqOverrun,
    /// 2³² messages were posted, and there are no more numbers.
    MessagesUsedUp,
    /// The application closed it, or died.
    Closed,
    /// The peer's end is gone; this end was told so out of band.
    PeerGone,
}

impl WorkStatus {
    /// As people say it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::LocalLengthError => "local length error",
            Self::LocalProtectionError => "local protection error",
            Self::RemoteInvalidRequestError => "remote invalid request error",
            Self::RemoteAccessError => "remote access error",
            Self::RemoteOperationalError => "remote operational error",
            Self::RetryExceeded => "retries exceeded",
            Self::RnrRetryExceeded => "RNR retries exceeded",
            Self::WorkRequestFlushed => "flushed",
        }
    }
}

impl FailureCause {
    /// As people say it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::MessageTooLong => "a message is too long",
            Self::SourceProtection => "a message is not in registered memory",
            Self::RetryExceeded => "the peer does not answer",
            Self::RnrRetryExceeded => "the peer posts no receive",
            Self::NakInvalidRequest => "NAK invalid request",
            Self::NakRemoteAccess => "NAK remote access error",
            Self::NakRemoteOperational => "NAK remote operational error",
            Self::RefusedRequest => "a request is refused",
            Self::RefusedAccess => "access to memory is refused",
            Self::ReceiveTooShort => "a SEND is longer than its receive",
            Self::ReceiveProtection => "a receive is not in registered memory",
            Self::MemoryGone => "memory is gone that was to be written",
            Self::BadDoorbell => "a doorbell that cannot be",
            Self::BadWorkRequest => "a work request that cannot be carried out",
            Self::SlotChanged => "a work request was changed after it was posted",
            Self::CqOverrun => "a completion queue is full",
            Self::MessagesUsedUp => "no more messages can be numbered",
            Self::Closed => "closed",
            Self::PeerGone => "the peer is gone",
        }
    }

    /// How the oldest message ends; those behind it are flushed.
    pub const fn of_message(self) -> WorkStatus {
        match self {
            Self::MessageTooLong => WorkStatus::LocalLengthError,
            Self::SourceProtection => WorkStatus::LocalProtectionError,
            Self::RetryExceeded => WorkStatus::RetryExceeded,
            Self::RnrRetryExceeded => WorkStatus::RnrRetryExceeded,
            Self::NakInvalidRequest => WorkStatus::RemoteInvalidRequestError,
            Self::NakRemoteAccess => WorkStatus::RemoteAccessError,
            Self::NakRemoteOperational => WorkStatus::RemoteOperationalError,
            _ => WorkStatus::WorkRequestFlushed,
        }
    }

    /// How the receive ends that was in use or was to be used next; those behind it are flushed.
    pub const fn of_receive(self) -> WorkStatus {
        match self {
            Self::ReceiveTooShort => WorkStatus::LocalLengthError,
            Self::ReceiveProtection => WorkStatus::LocalProtectionError,
            _ => WorkStatus::WorkRequestFlushed,
        }
    }
}
