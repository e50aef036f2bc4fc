//! What an attribute is, and the settings that all attributes together make.
//!
//! The rows themselves are in `catalogue.rs`, the tables they stand in in `components.rs`. They drive the reading of
//! files, the lists of known keys, and what is printed as documentation.

use crate::base::{Class, Octets, Rate, Share, Span};
use crate::nic;
use crate::port::{PerClass, Scheduling};

use super::components::{EGRESS, INGRESS, NIC, PCIE, RUN};
use super::plan::Records;

/// One attribute of a scenario.
#[derive(Debug)]
pub struct Attribute {
    /// Table of the scenario file, for example `nic.egress_buffer`.
    pub table: &'static str,
    pub name: &'static str,
    /// The name in the specification's model; an alias in the same table. `None` for attributes of our own.
    pub seed_name: Option<&'static str>,
    /// As it would be written in a scenario file.
    pub default: &'static str,
    /// One line.
    pub meaning: &'static str,
    /// Where it is kept; more than one place if it stands for several attributes.
    pub(super) slots: &'static [Slot],
    /// Least and most, in the unit in which the model counts.
    pub(super) range: (u64, u64),
}

/// Where an attribute is kept, and under which name its origin is remembered.
#[derive(Debug)]
pub(super) struct Slot(pub &'static str, pub Place);

/// A field of [`Settings`]; its type says how the attribute is read.
#[derive(Debug)]
pub(super) enum Place {
    Size(fn(&mut Settings) -> &mut Octets),
    Rate(fn(&mut Settings) -> &mut Rate),
    Span(fn(&mut Settings) -> &mut Span),
    /// Seconds without a unit.
    Seconds(fn(&mut Settings) -> &mut Span),
    Flag(fn(&mut Settings) -> &mut bool),
    Count(fn(&mut Settings) -> &mut u32),
    Lanes(fn(&mut Settings) -> &mut u8),
    Class(fn(&mut Settings) -> &mut Class),
    Scheduling(fn(&mut Settings) -> &mut Scheduling),
    Pools(fn(&mut Settings) -> &mut PerClass<Share>),
    Shares(fn(&mut Settings) -> &mut PerClass<Share>),
    Switches(fn(&mut Settings) -> &mut PerClass<bool>),
    Weights(fn(&mut Settings) -> &mut PerClass<u32>),
    Quanta(fn(&mut Settings) -> &mut PerClass<u16>),
    /// Can be written, but only with its one value.
    Fixed,
}

/// The value of every attribute, for one NIC or for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub nic: nic::Config,
    pub data_class: Class,
    pub buffer_stats: bool,
    pub records: Records,
}

impl Default for Settings {
    fn default() -> Self {
        Self { nic: nic::Config::default(), data_class: Class::DATA, buffer_stats: false, records: Records::default() }
    }
}

impl Attribute {
    /// What is written: a size, a rate, a list of eight fractions …
    pub fn unit(&self) -> &'static str {
        match self.slots.first() {
            Some(Slot(_, place)) => place.unit(),
            None => "",
        }
    }
}

impl Place {
    const fn unit(&self) -> &'static str {
        match self {
            Self::Size(_) => "size",
            Self::Rate(_) => "rate",
            Self::Span(_) => "time",
            Self::Seconds(_) => "seconds",
            Self::Flag(_) => "true or false",
            Self::Count(_) | Self::Lanes(_) | Self::Fixed => "whole number",
            Self::Class(_) => "class 0 to 7",
            Self::Scheduling(_) => "StrictPriority, RoundRobin or WeightedRoundRobin",
            Self::Pools(_) | Self::Shares(_) => "eight fractions",
            Self::Switches(_) => "eight times 1 or 0",
            Self::Weights(_) | Self::Quanta(_) => "eight whole numbers",
        }
    }
}

/// Every attribute a scenario file can set, in the order in which a reader wants to meet them.
///
/// The attributes of a PCIe side are listed once, in `nic.pcie`, where they hold for both sides.
pub fn attributes() -> impl Iterator<Item = &'static Attribute> {
    [&NIC, &EGRESS, &INGRESS, &PCIE, &RUN].into_iter().flat_map(|component| component.attributes.iter().copied())
}

/// The header of the table in which `name` is an attribute; `node` is `nodes.NAME.` where a node is described.
pub(super) fn table_of(name: &str, node: &str) -> Option<String> {
    let is_named = |attribute: &&Attribute| attribute.name == name || attribute.seed_name == Some(name);
    let table = attributes().find(is_named)?.table;
    Some(if table.starts_with("nic") { format!("[{node}{table}]") } else { format!("[{table}]") })
}
