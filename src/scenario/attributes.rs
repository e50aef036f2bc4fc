//! What an attribute is, and the settings that all attributes together make.
//!
//! The rows themselves are in `catalogue.rs`, the tables they stand in in `components.rs`. They drive the reading of
//! files, the lists of known keys, and what is printed as documentation.

use crate::base::{Class, Octets, Rate, Share, Span};
use crate::nic::{self, CongestionControl, DoorbellCost, RateApplication};
use crate::port::{PerClass, Scheduling};
use crate::switch;

use super::components::{ECN, EGRESS, INGRESS, MARKING, NIC, NVIDIA, PAPER, PCIE, RUN, SWITCH};
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
    /// "auto" stands for none.
    AutoSize(fn(&mut Settings) -> &mut Option<Octets>),
    Rate(fn(&mut Settings) -> &mut Rate),
    /// "auto" stands for none.
    AutoRate(fn(&mut Settings) -> &mut Option<Rate>),
    /// Zero stands for none.
    ZeroRate(fn(&mut Settings) -> &mut Option<Rate>),
    Span(fn(&mut Settings) -> &mut Span),
    /// Seconds without a unit.
    Seconds(fn(&mut Settings) -> &mut Span),
    /// Nanoseconds without a unit.
    Nanoseconds(fn(&mut Settings) -> &mut Span),
    Flag(fn(&mut Settings) -> &mut bool),
    Count(fn(&mut Settings) -> &mut u32),
    Short(fn(&mut Settings) -> &mut u16),
    Byte(fn(&mut Settings) -> &mut u8),
    /// "auto" stands for none.
    AutoNumber(fn(&mut Settings) -> &mut Option<u64>),
    Share(fn(&mut Settings) -> &mut Share),
    Percent(fn(&mut Settings) -> &mut Share),
    Class(fn(&mut Settings) -> &mut Class),
    Scheduling(fn(&mut Settings) -> &mut Scheduling),
    Control(fn(&mut Settings) -> &mut CongestionControl),
    Application(fn(&mut Settings) -> &mut RateApplication),
    Doorbell(fn(&mut Settings) -> &mut DoorbellCost),
    /// A power of two.
    SlotSize(fn(&mut Settings) -> &mut Octets),
    Pools(fn(&mut Settings) -> &mut PerClass<Share>),
    Shares(fn(&mut Settings) -> &mut PerClass<Share>),
    Switches(fn(&mut Settings) -> &mut PerClass<bool>),
    Weights(fn(&mut Settings) -> &mut PerClass<u32>),
    Quanta(fn(&mut Settings) -> &mut PerClass<u16>),
    Sizes(fn(&mut Settings) -> &mut PerClass<Octets>),
    /// Can be written, but only with its one value.
    Fixed,
}

/// The value of every attribute, for one NIC, for one switch or for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub nic: nic::Config,
    pub switch: SwitchSettings,
    pub data_class: Class,
    pub buffer_stats: bool,
    pub records: Records,
}

/// What a switch is before it has ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SwitchSettings {
    /// Without ports and seeds.
    pub config: switch::Config,
    /// Of every port whose link does not say otherwise.
    pub data_rate: Rate,
    /// Of the links to other switches.
    pub delay: Span,
    /// Without one, the scenario's.
    pub marking_seed: Option<u64>,
    /// Without one, it follows from the scenario's seed and the switch's name.
    pub ecmp_salt: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nic: nic::Config::default(),
            switch: SwitchSettings::default(),
            data_class: Class::DATA,
            buffer_stats: false,
            records: Records::default(),
        }
    }
}

impl Default for SwitchSettings {
    /// * Source: congestion.md §4.3: 500 ns to uplinks.
    fn default() -> Self {
        Self {
            config: switch::Config::default(),
            data_rate: Rate::from_gbps(400),
            delay: Span::from_ns(500),
            marking_seed: None,
            ecmp_salt: None,
        }
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
            Self::AutoSize(_) => "size or \"auto\"",
            Self::Rate(_) => "rate",
            Self::AutoRate(_) => "rate or \"auto\"",
            Self::ZeroRate(_) => "rate or 0",
            Self::Span(_) => "time",
            Self::Seconds(_) => "seconds",
            Self::Nanoseconds(_) => "nanoseconds",
            Self::Flag(_) => "true or false",
            Self::Count(_) | Self::Short(_) | Self::Byte(_) | Self::Fixed => "whole number",
            Self::AutoNumber(_) => "whole number or \"auto\"",
            Self::Share(_) => "fraction",
            Self::Percent(_) => "whole per cent",
            Self::Class(_) => "class 0 to 7",
            Self::Scheduling(_) => "StrictPriority, RoundRobin or WeightedRoundRobin",
            Self::Control(_) => "ecn_loop, dcqcn_paper, dcqcn_nvidia or none",
            Self::Application(_) => "serialize or pace",
            Self::Doorbell(_) => "free or modelled",
            Self::SlotSize(_) => "size, a power of two",
            Self::Pools(_) | Self::Shares(_) => "eight fractions",
            Self::Switches(_) => "eight times 1 or 0",
            Self::Weights(_) | Self::Quanta(_) => "eight whole numbers",
            Self::Sizes(_) => "eight sizes",
        }
    }
}

/// Whose attributes a table holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner<'a> {
    /// Nobody's: the scenario as a whole, or the run.
    Scenario,
    /// Every NIC.
    Nics,
    Nic(&'a str),
    /// Every switch.
    Switches,
    Switch(&'a str),
}

/// Every attribute a scenario file can set, in the order in which a reader wants to meet them.
///
/// The attributes of a PCIe side are listed once, in `nic.pcie`, where they hold for both sides.
pub fn attributes() -> impl Iterator<Item = &'static Attribute> {
    let components = [&NIC, &ECN, &PAPER, &NVIDIA, &EGRESS, &INGRESS, &PCIE, &SWITCH, &MARKING, &RUN];
    // EnableECN stands in [nic] as well as among its kin.
    let twice = |at: usize, attribute: &Attribute| at > 0 && attribute.name == "enable_ecn";
    components.into_iter().enumerate().flat_map(move |(at, component)| {
        component.attributes.iter().copied().filter(move |attribute| !twice(at, attribute))
    })
}

/// The header of the table in which `name` is an attribute: one of the same owner's, if there is one.
pub(super) fn table_of(name: &str, owner: Owner<'_>) -> Option<String> {
    let named = || attributes().filter(|attribute| attribute.name == name || attribute.seed_name == Some(name));
    let table = named().find(|attribute| owner.owns(attribute.table)).or_else(|| named().next())?.table;
    Some(match (owner, table.strip_prefix("switch")) {
        (Owner::Nic(node), None) if table.starts_with("nic") => format!("[nodes.{node}.{table}]"),
        (Owner::Switch(switch), Some(part)) => format!("[switches.{switch}{part}]"),
        _ => format!("[{table}]"),
    })
}

impl Owner<'_> {
    fn owns(self, table: &str) -> bool {
        match self {
            Self::Scenario => false,
            Self::Nics | Self::Nic(_) => table.starts_with("nic"),
            Self::Switches | Self::Switch(_) => table.starts_with("switch"),
        }
    }
}
