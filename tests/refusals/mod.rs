//! Refusals of scenario files, and the places they point at.
//!
//! In the texts, guillemets mark the place that the diagnostic has to point at.

#![allow(dead_code, reason = "every test file takes what it needs")]

use rocemu::scenario::{self, Diagnostics, Parsed, Severity};

pub fn parsed(text: &str) -> Parsed {
    scenario::parse("test.toml", text).unwrap_or_else(|refused| panic!("{refused}\n{text}"))
}

pub fn refused(text: &str) -> Diagnostics {
    match scenario::parse("test.toml", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(refused) => refused,
    }
}

/// Takes the guillemets out of `marked`: the text, and the octets between them.
pub fn unmark(marked: &str) -> (String, std::ops::Range<usize>) {
    let start = marked.find('«').expect("a place is marked");
    let end = marked.find('»').expect("the place ends") - '«'.len_utf8();
    (marked.replace(['«', '»'], ""), start..end)
}

/// `diagnostics` are one remark about the marked place, with `message` and `help` in it.
pub fn assert_one(diagnostics: &Diagnostics, severity: Severity, marked: &str, message: &str, help: &str) {
    let [one] = &diagnostics[..] else { panic!("not one remark for:\n{marked}\n{diagnostics}") };
    let place = unmark(marked).1;
    assert_eq!(one.severity, severity, "{diagnostics}");
    assert_eq!(one.span, place, "{marked}\n{diagnostics}");
    let before = &unmark(marked).0[..place.start];
    assert_eq!(one.line(), before.split('\n').count(), "{diagnostics}");
    assert_eq!(one.column(), 1 + before.rsplit('\n').next().unwrap().chars().count(), "{diagnostics}");
    assert!(one.message.contains(message), "`{message}` is not in:\n{diagnostics}");
    assert!(one.help.contains(help) && !one.help.is_empty(), "`{help}` is not in:\n{diagnostics}");
    assert!(!one.label.is_empty(), "{diagnostics}");
    let shown = diagnostics.render(false);
    assert!(shown.contains(&format!("--> test.toml:{}:{}", one.line(), one.column())), "{shown}");
}

/// The whole file is refused for one reason at the marked place.
pub fn assert_refused(marked: &str, message: &str, help: &str) {
    assert_one(&refused(&unmark(marked).0), Severity::Error, marked, message, help);
}

/// The whole file runs, with one warning at the marked place.
pub fn assert_warned(marked: &str, message: &str, help: &str) {
    assert_one(&parsed(&unmark(marked).0).warnings, Severity::Warning, marked, message, help);
}
