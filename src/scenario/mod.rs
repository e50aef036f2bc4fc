//! Scenario files: text in, a validated and complete [`Plan`] out.

mod plan;

pub use plan::{FaultKind, FaultPlan, LinkEnd, LinkPlan, NicPlan, Plan, PostPlan, QueuePairEnd, QueuePairPlan};
