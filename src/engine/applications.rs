//! The applications of a run, as the engine sees them: whoever has the turn speaks, and is answered.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::ring::control::{Reply, Request};

/// Memory that the engine shares with an application.
pub trait SharedWords: AsRef<[AtomicU64]> + fmt::Debug + Send + Sync {}

impl<T: AsRef<[AtomicU64]> + fmt::Debug + Send + Sync> SharedWords for T {}

/// Names memory between [`Applications::make_memory`] and the reply that hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryTicket(pub u64);

/// Why a run with applications cannot go on. An application that misbehaves or dies is no such reason.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationsError {
    /// Somebody stopped the run while it waited for an application.
    #[error("stopped while waiting for application `{application}`")]
    Stopped { application: String },
    #[error("application `{application}` has not opened {device} within {seconds} s")]
    NeverCame { application: String, device: String, seconds: u64 },
    /// Its process is over, and nobody else comes in its place.
    #[error("application `{application}` {end} before it opened {device}")]
    Lost { application: String, device: String, end: String },
    #[error("the path of the socket {path} has {octets} octets, and a socket's can have {octets_max}")]
    PathTooLong { path: String, octets: usize, octets_max: usize },
    #[error("application `{application}` is expected, and only `rocemu run` serves applications")]
    Unserved { application: String },
    #[error("{action} failed: {source}")]
    System { action: String, source: std::io::Error },
}

/// The seam between the engine and processes that use its NICs. Applications go by their number in the plan.
pub trait Applications: fmt::Debug {
    /// Makes memory of so many octets, all zero.
    ///
    /// * Errors: the system has no more.
    fn make_memory(&mut self, octets: usize) -> std::io::Result<(Arc<dyn SharedWords>, MemoryTicket)>;

    /// A turn begins: from now on it counts how long the application takes.
    fn begin_turn(&mut self, application: usize);

    /// What the application says next; blocks while it thinks. `None`: it has gone, or is given up now.
    fn request(&mut self, application: usize) -> Result<Option<Request>, ApplicationsError>;

    /// An application that has gone without having its turn, each once.
    fn departed(&mut self) -> Option<usize>;

    /// Who was given up while it was still there, and why, such as "application `a` kept its turn for 60 s".
    fn given_up(&self) -> &[String];

    /// Answers, and hands memory over. That nobody is there to hear it shows at the next request.
    fn reply(
        &mut self,
        application: usize,
        reply: &Reply,
        memory: Option<MemoryTicket>,
    ) -> Result<(), ApplicationsError>;
}
