//! What is wrong with a scenario file, where, and what would be right.

use std::fmt;
use std::ops::{Deref, Range};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

/// Errors after this many are only counted, and so are warnings: nobody reads more, and a hostile file must not make us write a book.
const SHOWN_MAX: usize = 100;
/// Longer texts are cut: they repeat what the file says, which may be anything.
const TEXT_MAX: usize = 700;
/// Longer lines are cut around what is wrong: a generated file may be one line.
const LINE_MAX: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The scenario cannot run.
    Error,
    /// It runs, but perhaps not as its author meant.
    Warning,
}

/// One remark about a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    /// Octets of the file that it is about.
    pub span: Range<usize>,
    /// What is said about those octets.
    pub label: String,
    /// What would be right.
    pub help: String,
    /// Other places of the file that play a part, each with its reason.
    pub related: Vec<(Range<usize>, String)>,
    line: usize,
    column: usize,
}

/// Every remark about one scenario file, in the order of the file, with the text they point into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    file_name: String,
    text: String,
    list: Vec<Diagnostic>,
    omitted: usize,
}

impl Diagnostic {
    pub(super) fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            help: String::new(),
            related: Vec::new(),
            line: 1,
            column: 1,
        }
    }

    pub(super) fn warning(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    pub(super) fn related(mut self, span: Range<usize>, why: impl Into<String>) -> Self {
        self.related.push((span, why.into()));
        self
    }

    /// Line of the first octet, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column of the first octet, from 1, in characters.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl Diagnostics {
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// How many more there were than are kept.
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// For people: message, `file:line:column`, the source line with the place marked, and what would be right.
    ///
    /// * Shape: one paragraph per diagnostic; ANSI colours only if `colour`.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for diagnostic in &self.list {
            out.push_str(&renderer.render(&[self.group(diagnostic)]));
            out.push_str("\n\n");
        }
        if self.omitted > 0 {
            out.push_str(&format!("{}: {} more not shown\n", self.file_name, self.omitted));
        }
        out
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level.primary_title(diagnostic.message.as_str()).element(self.snippet(
            &diagnostic.span,
            AnnotationKind::Primary,
            &diagnostic.label,
        ));
        for (span, why) in &diagnostic.related {
            group = group.element(self.snippet(span, AnnotationKind::Context, why));
        }
        if !diagnostic.help.is_empty() {
            group = group.element(Level::HELP.message(annotate_snippets::normalize_untrusted_str(&diagnostic.help)));
        }
        group
    }

    /// The line of `span` and no more, so that the cost of one diagnostic does not grow with the file.
    fn snippet<'a>(&'a self, span: &Range<usize>, kind: AnnotationKind, label: &'a str) -> Snippet<'a, Annotation<'a>> {
        let start = floor_char(&self.text, span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let end = floor_char(&self.text, span.end.clamp(start, line_end));
        let from = floor_char(&self.text, line_start.max(start.saturating_sub(LINE_MAX)));
        let to = floor_char(&self.text, line_end.min(start + LINE_MAX));
        let marked = start - from..end.min(to) - from;
        Snippet::source(&self.text[from..to])
            .path(self.file_name.as_str())
            .line_start(1 + self.text[..start].matches('\n').count())
            .annotation(kind.span(marked).label((!label.is_empty()).then_some(label)))
    }
}

impl Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

/// Collects remarks while a file is read.
#[derive(Debug, Default)]
pub(super) struct Report {
    list: Vec<Diagnostic>,
    /// Kept ones of each severity: many warnings leave room for the error that stops the run.
    errors: usize,
    warnings: usize,
    omitted: usize,
}

impl Report {
    /// Says it once: defaults that many nodes share are checked for each of them.
    pub(super) fn push(&mut self, mut diagnostic: Diagnostic) {
        for text in [&mut diagnostic.message, &mut diagnostic.label, &mut diagnostic.help] {
            if text.len() > TEXT_MAX {
                let end = floor_char(text, TEXT_MAX);
                text.truncate(text[..end].rfind(' ').unwrap_or(end));
                text.push('\u{2026}');
            }
        }
        let same = |other: &Diagnostic| other.span == diagnostic.span && other.message == diagnostic.message;
        if self.list.iter().any(same) {
            return;
        }
        let kept = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *kept < SHOWN_MAX {
            *kept += 1;
            self.list.push(diagnostic);
        } else {
            self.omitted += 1;
        }
    }

    /// Counts errors that are not worth saying once [`Report::is_full`].
    pub(super) fn omit(&mut self, errors: usize) {
        self.omitted += errors;
    }

    /// Whether a further error would only be counted: its suggestions are not worth working out.
    pub(super) fn is_full(&self) -> bool {
        self.errors >= SHOWN_MAX
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Puts the remarks in the order of the file and finds their lines and columns.
    pub(super) fn finish(mut self, file_name: &str, text: &str) -> Diagnostics {
        self.list.sort_by_key(|diagnostic| diagnostic.span.start);
        let (mut line, mut line_start, mut seen) = (1, 0, 0);
        for diagnostic in &mut self.list {
            let start = floor_char(text, diagnostic.span.start);
            let passed = &text[seen..start];
            if let Some(newline) = passed.rfind('\n') {
                line += passed.matches('\n').count();
                line_start = seen + newline + 1;
            }
            seen = start;
            diagnostic.line = line;
            diagnostic.column = 1 + text[line_start..start].chars().count();
        }
        Diagnostics { file_name: file_name.to_owned(), text: text.to_owned(), list: self.list, omitted: self.omitted }
    }
}

/// The nearest edge of a character at or before `at`, inside `text`.
fn floor_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, diagnostics: impl IntoIterator<Item = Diagnostic>) -> Diagnostics {
        let mut report = Report::default();
        diagnostics.into_iter().for_each(|diagnostic| report.push(diagnostic));
        report.finish("pair.toml", text)
    }

    #[test]
    fn a_place_is_named_by_line_and_column_in_characters() {
        let text = "a = 1\n\u{e4}\u{f6} = 2\n";
        let at = text.find('2').unwrap();
        let all = report(text, [Diagnostic::error(at..at + 1, "two"), Diagnostic::error(0..1, "one")]);
        let places: Vec<_> = all.iter().map(|d| (d.message.as_str(), d.line(), d.column())).collect();
        assert_eq!(places, [("one", 1, 1), ("two", 2, 6)]);
    }

    #[test]
    fn people_see_the_line_and_what_would_be_right() {
        let text = "[nic]\nmss = \"4096\"\n";
        let all =
            report(text, [Diagnostic::error(12..18, "a size needs a unit").label("no unit").help("write \"4096B\"")]);
        let expected = "error: a size needs a unit\n \
                        --> pair.toml:2:7\n  \
                        |\n\
                        2 | mss = \"4096\"\n  \
                        |       ^^^^^^ no unit\n  \
                        |\n  \
                        = help: write \"4096B\"\n\n";
        assert_eq!(all.render(false), expected);
        assert!(all.render(true).contains("\u{1b}["), "colours on request");
        assert_eq!(all.to_string(), expected.trim_end());
    }

    #[test]
    fn the_same_remark_is_made_once_and_many_are_counted() {
        let text = " ".repeat(1_000);
        let all = report(&text, (0..300).map(|at| Diagnostic::error(at..at + 1, "no")));
        assert_eq!((all.len(), all.omitted()), (SHOWN_MAX, 300 - SHOWN_MAX));
        assert!(all.render(false).ends_with("200 more not shown\n"));
        let warned = (0..300).map(|at| Diagnostic::warning(at..at + 1, "hm")).chain([Diagnostic::error(0..1, "no")]);
        assert!(report(&text, warned).has_errors(), "warnings do not crowd an error out");
        let once = report(&text, (0..300).map(|_| Diagnostic::error(3..4, "no")));
        assert_eq!((once.len(), once.omitted()), (1, 0));
    }

    #[test]
    fn any_span_of_any_text_can_be_shown() {
        for text in ["", "\n", "\r\n", "\u{1f980}", "a\tb", "x\n\n", "\u{202e}\u{0}"] {
            for start in 0..text.len() + 2 {
                for end in start..text.len() + 3 {
                    let one = Diagnostic::error(start..end, "m").label("l").related(end..end, "r").help("h");
                    report(text, [one]).render(false);
                }
            }
        }
        let long = "\u{e4}".repeat(10_000);
        let all = report(&long, [Diagnostic::error(9_999..20_000, "long")]);
        assert!(all.render(false).len() < 2_000);
    }
}
