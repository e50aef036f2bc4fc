//! Congestion: where it was seen, what it did to rates, and how evenly the queue pairs got through it.

mod activity;
mod queues;
mod reactions;

use std::io;

pub use activity::{Activity, Together};
pub use queues::QueueUse;
pub use reactions::Reactions;

use crate::trace::{Event, Names, Sink};

/// What a summary says about congestion, added up from the events of a run.
///
/// * Memory: grows with ports and queue pairs, not with the length of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    pub queues: QueueUse,
    pub reactions: Reactions,
    pub activity: Activity,
}

impl Congestion {
    pub fn new(names: &Names) -> Self {
        Self { queues: QueueUse::new(names), reactions: Reactions::default(), activity: Activity::default() }
    }
}

impl Sink for Congestion {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        self.queues.record(event)?;
        self.reactions.record(event)?;
        self.activity.record(event)
    }
}
