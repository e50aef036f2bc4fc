//! `rocemu explain`: what can stand in a scenario file.

use super::{Failure, Status, say};
use crate::scenario::reference::{Topic, topics};

/// Explain the keys of scenario files, one line each: where it stands, its default or an example, and what it means.
///
/// Without a topic, all of them. Any other word is looked for in all lines.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A topic such as nic, faults or events; or a word, such as xoff.
    topic: Option<String>,
}

pub fn explain(arguments: &Arguments) -> Result<Status, Failure> {
    let topics = topics();
    let names: Vec<_> = topics.iter().map(|topic| topic.name).collect();
    let word = arguments.topic.as_deref().unwrap_or_default();
    let shown: Vec<_> = match topics.iter().find(|topic| topic.name == word) {
        Some(topic) => vec![topic.clone()],
        None => topics.into_iter().filter_map(|topic| only(topic, word)).collect(),
    };
    if shown.is_empty() {
        return Err(Failure::input(format!("nothing is called `{word}`; the topics are {}", names.join(", "))));
    }
    for topic in shown {
        let lines: String = topic.lines.iter().flat_map(|line| [line.trim_end_matches("  # "), "\n"]).collect();
        say(&format!("# {}: {}\n{lines}\n", topic.name, topic.about));
    }
    Ok(Status::AllWell)
}

/// The lines of a topic that have a word in them, if there are any.
fn only(topic: Topic, word: &str) -> Option<Topic> {
    let word = word.to_lowercase();
    let lines: Vec<_> = topic.lines.into_iter().filter(|line| line.to_lowercase().contains(&word)).collect();
    (!lines.is_empty()).then_some(Topic { lines, ..topic })
}
