//! Walking a TOML document by hand, so that every error of a file is found at once and has its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostics::{Diagnostic, Report};
use super::reference::topic_of;

pub(super) type Value<'d> = Spanned<DeValue<'d>>;

/// A key and what stands behind it.
#[derive(Clone)]
pub(super) struct Entry<'d> {
    /// The key as the scenario's author wrote it.
    pub name: &'d str,
    pub key: Range<usize>,
    pub value: &'d Value<'d>,
}

/// A table being read: whoever asks for a key makes it a known one, and the rest is refused at the end.
pub(super) struct Table<'d> {
    entries: &'d DeTable<'d>,
    /// Where the table stands, for what is missing in it.
    pub span: Range<usize>,
    /// What the table is called in messages: `[nic]`, `[[links]]`.
    pub name: String,
    known: Vec<Known>,
}

struct Known {
    name: &'static str,
    /// Named in the list of known keys; other names for the same thing are not.
    listed: bool,
}

impl<'d> Table<'d> {
    pub(super) fn new(entries: &'d DeTable<'d>, span: Range<usize>, name: impl Into<String>) -> Self {
        Self { entries, span, name: name.into(), known: Vec::new() }
    }

    /// The table behind `entry`; anything else is refused.
    pub(super) fn read(entry: &Entry<'d>, name: impl Into<String>, report: &mut Report) -> Option<Self> {
        let name = name.into();
        match entry.value.get_ref() {
            DeValue::Table(entries) => Some(Self::new(entries, entry.key.clone(), name)),
            other => {
                let message = format!("`{}` is {}, not a table", entry.name, kind(other));
                report.push(
                    Diagnostic::error(entry.value.span(), message)
                        .label("not a table")
                        .help(format!("write its attributes under a header of their own: {name}")),
                );
                None
            }
        }
    }

    pub(super) fn take(&mut self, name: &'static str) -> Option<Entry<'d>> {
        self.known.push(Known { name, listed: true });
        self.find(name)
    }

    /// Like [`Table::take`], for another name of a key that is already listed.
    pub(super) fn take_alias(&mut self, name: &'static str) -> Option<Entry<'d>> {
        self.known.push(Known { name, listed: false });
        self.find(name)
    }

    /// The value of `name`, or an error that says it is missing.
    pub(super) fn require(&mut self, name: &'static str, help: &str, report: &mut Report) -> Option<Entry<'d>> {
        let found = self.take(name);
        if found.is_none() {
            let message = format!("{} has no `{name}`", self.name);
            report.push(
                Diagnostic::error(self.span.clone(), message)
                    .label(format!("`{name}` is missing"))
                    .help(help.to_owned()),
            );
        }
        found
    }

    /// All entries in the order of the file, for tables whose keys are names.
    pub(super) fn entries(&self) -> Vec<Entry<'d>> {
        let mut all: Vec<_> =
            self.entries.iter().map(|(key, value)| (first_mention(key.span(), value), key, value)).collect();
        all.sort_by_key(|(first, ..)| *first);
        all.into_iter().map(|(_, key, value)| Entry { name: key.get_ref(), key: key.span(), value }).collect()
    }

    /// Refuses every key that nobody has asked for.
    ///
    /// `elsewhere` may know the table in which a key would be right.
    pub(super) fn finish(self, elsewhere: impl Fn(&str) -> Option<String>, report: &mut Report) {
        for (key, _) in self.entries {
            let name: &str = key.get_ref();
            if report.is_full() || self.known.iter().any(|known| known.name == name) {
                continue;
            }
            let nearest = nearest(name, self.known.iter().map(|known| known.name));
            let label = match (nearest, elsewhere(name)) {
                (_, Some(table)) => format!("this belongs in {table}"),
                (Some(nearest), None) => format!("did you mean `{nearest}`?"),
                (None, None) => "unknown".to_owned(),
            };
            let topic = topic_of(&self.name);
            let known = self.known.iter().filter(|known| known.listed).map(|known| known.name);
            let known = listing(known, topic);
            let known =
                if topic.is_empty() { known } else { format!("{known}; `rocemu explain {topic}` explains them") };
            report.push(
                Diagnostic::error(key.span(), format!("{} has no key `{}`", self.name, shortened(name)))
                    .label(label)
                    .help(format!("known keys: {known}")),
            );
        }
    }

    fn find(&self, name: &str) -> Option<Entry<'d>> {
        let (key, value) = self.entries.get_key_value(name)?;
        Some(Entry { name: key.get_ref(), key: key.span(), value })
    }
}

/// Where a key is mentioned first: `[nodes.a.nic]` may stand before `[nodes.a]`.
fn first_mention(key: Range<usize>, value: &Value<'_>) -> usize {
    match value.get_ref() {
        DeValue::Table(table) => {
            table.iter().map(|(key, value)| first_mention(key.span(), value)).fold(key.start, usize::min)
        }
        _ => key.start,
    }
}

/// The tables of `[[name]]`; anything else is refused.
pub(super) fn tables<'d>(entry: &Entry<'d>, report: &mut Report) -> Vec<Table<'d>> {
    let name = format!("[[{}]]", entry.name);
    let mut refuse = |span: Range<usize>, what: &str| {
        report.push(
            Diagnostic::error(span, format!("`{}` is {what}, not a list of tables", entry.name))
                .label("not a list of tables")
                .help(format!("start each of them with the header {name}")),
        );
    };
    let DeValue::Array(list) = entry.value.get_ref() else {
        let span = match entry.value.get_ref() {
            DeValue::Table(_) => entry.key.clone(),
            _ => entry.value.span(),
        };
        refuse(span, kind(entry.value.get_ref()));
        return Vec::new();
    };
    let mut all = Vec::with_capacity(list.len());
    for element in list {
        match element.get_ref() {
            DeValue::Table(entries) => all.push(Table::new(entries, element.span(), name.clone())),
            _ => refuse(element.span(), "a list of other values"),
        }
    }
    all
}

/// What a value is, with its article.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// A text of the user's, short enough to repeat.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 40;
    if text.chars().count() <= MAX { text.to_owned() } else { text.chars().take(MAX).chain(['\u{2026}']).collect() }
}

/// Names in a row, as many as are worth reading; `topic` of the reference has all of them.
pub(super) fn listing<N: AsRef<str>>(names: impl IntoIterator<Item = N>, topic: &str) -> String {
    const LENGTH_MAX: usize = 540;
    let (mut list, mut more) = (String::new(), 0);
    for name in names {
        let name = name.as_ref();
        if more > 0 || list.len() + name.len() > LENGTH_MAX {
            more += 1;
        } else {
            list += if list.is_empty() { "" } else { ", " };
            list += name;
        }
    }
    match (more, topic) {
        (0, _) => list,
        (_, "") => format!("{list} \u{2026} and {more} more"),
        _ => format!("{list} \u{2026} and {more} more: rocemu explain {topic}"),
    }
}

/// The candidate that `name` was probably meant to be: the same but for case and `_`, or with few letters different and
/// at least one the same.
pub(super) fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const LENGTH_MAX: usize = 64;
    /// Of a scenario with more names, the first ones have to do.
    const CANDIDATES_MAX: usize = 1_000;
    if name.len() > LENGTH_MAX {
        return None;
    }
    let plain = |text: &str| -> Vec<char> { text.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect() };
    let name = plain(name);
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .map(|candidate| (plain(candidate), candidate))
        .map(|(plain, candidate)| (distance(&name, &plain), name.len().min(plain.len()), candidate))
        .filter(|(distance, least, _)| *distance <= (name.len() / 3).max(1) && *distance < (*least).max(1))
        .map(|(distance, _, candidate)| (distance, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove, replace or swap with their neighbour to make one out of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_forgives_case_underscores_and_few_letters() {
        let names = ["data_rate", "delay", "mss", "mtu"];
        assert_eq!(nearest("DataRate", names), Some("data_rate"));
        assert_eq!(nearest("datarates", names), Some("data_rate"));
        assert_eq!(nearest("dely", names), Some("delay"));
        assert_eq!(nearest("mssx", names), Some("mss"));
        assert_eq!(nearest("msst", names), Some("mss"));
        assert_eq!(nearest("edlay", names), Some("delay"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("x", ["a", "b"]), None, "one letter for another is no likeness");
        assert_eq!(nearest("A", ["a", "b"]), Some("a"));
        assert_eq!(nearest("q3", ["q1"]), Some("q1"));
        assert_eq!(distance(&['k', 'i', 't', 't', 'e', 'n'], &['s', 'i', 't', 't', 'i', 'n', 'g']), 3);
    }

    #[test]
    fn a_long_list_ends_with_a_whole_name() {
        let names: Vec<_> = (0..100).map(|n| format!("name_{n:02}")).collect();
        let list = listing(&names, "events");
        assert!(list.ends_with("name_59 \u{2026} and 40 more: rocemu explain events"), "{list}");
        assert_eq!(listing(["a", "b"], "events"), "a, b");
    }

    #[test]
    fn entries_come_in_the_order_in_which_the_file_mentions_them() {
        let text = "[n.c.x]\ny = 1\n[n.a]\n[n.b]\n[n.c]\n";
        let document = DeTable::parse(text).unwrap();
        let root = Table::new(document.get_ref(), 0..0, "the file");
        let mut report = Report::default();
        let n = Table::read(&root.entries()[0], "[n]", &mut report).unwrap();
        let order: Vec<_> = n.entries().iter().map(|entry| entry.name).collect();
        assert_eq!(order, ["c", "a", "b"]);
    }
}
