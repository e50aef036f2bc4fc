//! Units, ids, sequence numbers, the event calendar and the random streams: what every other room speaks in.
//!
//! Nothing here knows about RDMA, frames or files. All of it is plain integers with a name, so that a span cannot be
//! added to a size, and no `f64` ever meets the time path.
//!
//! Read first: `units::tests::the_worked_examples_of_the_specification`, `calendar::tests::one_instant_is_ordered_by_phase`.

mod calendar;
mod ids;
mod origin;
mod psn;
mod rng;
mod units;

pub use calendar::{Calendar, Phase, Ticket, Wake};
pub use ids::{Class, MessageId, NodeId, PortId, Qpn, RuleId};
pub use origin::Origin;
pub use psn::Psn;
pub use rng::Rng;
pub use units::{Instant, Octets, Rate, Share, Span};
