//! How a post hands its work queue element (WQE) to the NIC.

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table};
use super::values;
use crate::base::Octets;
use crate::ring::{MAX_SLOT, max_inline};

/// What `inline` and `blue_flame` say. Neither changes anything where doorbells are free.
#[derive(Clone, Copy)]
pub(super) struct Handover {
    pub inline: bool,
    pub blue_flame: bool,
}

impl Handover {
    /// * `size`: of the message, if it could be read.
    pub(super) fn read(table: &mut Table<'_>, size: Option<Octets>, report: &mut Report) -> Option<Self> {
        let (inline, blue_flame) = (table.take("inline"), table.take("blue_flame"));
        let flag = |entry: &Option<Entry<'_>>, report: &mut Report| {
            entry.as_ref().map_or(Some(false), |entry| values::boolean(entry, report))
        };
        let read = Self { inline: flag(&inline, report)?, blue_flame: flag(&blue_flame, report)? };
        let most = Octets::new(max_inline(MAX_SLOT) as u64);
        if let (Some(entry), true, Some(size)) = (inline, read.inline, size.filter(|size| *size > most)) {
            report.push(
                Diagnostic::error(entry.value.span(), format!("{size} do not fit into a work queue element"))
                    .label("too long to be inline")
                    .help(format!("inline data has at most {most}; leave `inline` out, or send less")),
            );
            return None;
        }
        Some(read)
    }
}
