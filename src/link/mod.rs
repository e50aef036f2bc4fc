//! A cable: serialization has ended, propagation is ahead, and scripted faults act in between.
//!
//! Faults act at the end of serialization (timing rule 26): the sender has sent the frame and says so, and what a rule
//! does to it shows only at the receiver. Rules are asked in file order; each that matches acts, and a drop ends it.
//!
//! A link sees frames, not messages: what it needs to know beyond the octets comes along as [`Passing`].

mod direction;
mod rule;

pub use direction::{Direction, Journey, Leg, RuleReport};
pub use rule::{Action, Corruption, Field, Matcher, Passing, PsnMatch, Rule};
