//! What happened: the one stream of events that counters, captures, records and reports listen to.
//!
//! Models say what happened, in the past tense and with a reason for every drop, and do not know who listens. No number
//! is counted in two places: [`Counters`] and [`Ledger`] are sinks like any other.

mod counters;
mod event;
mod failure;
mod ledger;
mod limits;
mod link_fate;
mod names;
mod until_end;

pub use counters::{Counters, NodeCounters};
pub use event::{DropReason, Event, EventKind, Headline, PacketKind, PcieDirection, Queue, RateCause, Verdict};
pub use failure::{FailureCause, WorkStatus};
pub use ledger::{Account, Balance, Imbalance, Ledger};
pub use limits::{EgressLimits, IngressLimit, Limits, MarkLimit, NodeLimits};
pub use link_fate::{Effect, LinkFate, RuleEffect};
pub use names::{Names, NodeNames, PortNames};
pub use until_end::UntilEnd;

/// Something that listens to events.
pub trait Sink {
    /// * Errors: the sink writes somewhere and could not; the run stops there.
    fn record(&mut self, event: &Event) -> std::io::Result<()>;
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        (**self).record(event)
    }
}

/// Every sink of the list hears every event, in list order.
impl Sink for Vec<Box<dyn Sink + '_>> {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        self.iter_mut().try_for_each(|sink| sink.record(event))
    }
}
