//! The house and its rooms, held by a test: who may import whom, and who may touch the world outside.
//!
//! ```text
//! base < { wire, ring } < trace < { port, link, record } < { nic, switch } < workload < scenario
//!      < { engine, netns*, memfd* } < { io*, host* } < cli*                          * edge rooms
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms in the order of the house; rooms of one storey never import each other.
const STOREYS: [&[&str]; 10] = [
    &["base"],
    &["wire", "ring"],
    &["trace"],
    &["port", "link", "record"],
    &["nic", "switch"],
    &["workload"],
    &["scenario"],
    &["engine", "netns", "memfd"],
    &["io", "host"],
    &["cli"],
];
/// Rooms that may touch sockets, clocks, files and processes.
const EDGE: [&str; 5] = ["netns", "memfd", "io", "host", "cli"];
/// What a pure room may not name.
const OUTSIDE: [&str; 9] =
    ["std::net", "std::fs", "std::thread", "std::process", "std::env", "time::Instant", "SystemTime", "tokio", "libc"];
/// Rooms that may contain `unsafe`.
const UNSAFE: [&str; 4] = ["netns", "memfd", "io", "host"];

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Every source file of a room: room, file, text.
fn rooms() -> Vec<(String, PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files
        .into_iter()
        .filter_map(|path| {
            let inside = path.strip_prefix(&src).unwrap();
            let room = inside.components().next()?.as_os_str().to_str()?.to_owned();
            (inside.components().count() > 1).then(|| (room, inside.to_owned(), fs::read_to_string(&path).unwrap()))
        })
        .collect()
}

fn storeys() -> BTreeMap<&'static str, usize> {
    STOREYS.iter().enumerate().flat_map(|(storey, rooms)| rooms.iter().map(move |&room| (room, storey))).collect()
}

/// Code without comments, so that prose may name what it likes.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(n, line)| (n + 1, line.split("//").next().unwrap_or("")))
}

/// The rooms that a line names after `crate::`, braces included.
fn imported(line: &str) -> Vec<&str> {
    let ident = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    line.match_indices("crate::")
        .flat_map(|(at, found)| {
            let rest = &line[at + found.len()..];
            match rest.strip_prefix('{') {
                Some(list) => list.split(',').map(|item| item.trim()).map(|item| &item[..ident(item)]).collect(),
                None => vec![&rest[..ident(rest)]],
            }
        })
        .filter(|name| name.chars().next().is_some_and(char::is_lowercase))
        .collect()
}

#[test]
fn imports_run_towards_the_foundation() {
    let storeys = storeys();
    let mut wrong = Vec::new();
    for (room, path, text) in rooms() {
        let Some(own) = storeys.get(room.as_str()) else {
            wrong.push(format!("{}: no such room in the house", path.display()));
            continue;
        };
        for (line_number, line) in code(&text) {
            for other in imported(line).into_iter().filter(|&other| other != room) {
                if storeys.get(other).is_none_or(|storey| storey >= own) {
                    wrong.push(format!("{}:{line_number}: {room} imports {other}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_do_not_touch_the_world_outside() {
    let mut wrong = Vec::new();
    for (room, path, text) in rooms().into_iter().filter(|(room, ..)| !EDGE.contains(&room.as_str())) {
        for (line_number, line) in code(&text) {
            for name in OUTSIDE.iter().filter(|&&name| line.contains(name)) {
                wrong.push(format!("{}:{line_number}: {room} names {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_stays_at_the_edge() {
    let mut wrong = Vec::new();
    for (room, path, text) in rooms().into_iter().filter(|(room, ..)| !UNSAFE.contains(&room.as_str())) {
        for (line_number, _) in code(&text).filter(|(_, line)| line.contains("unsafe ")) {
            wrong.push(format!("{}:{line_number}: unsafe in {room}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_holds_one_thing() {
    let long: Vec<_> = rooms()
        .into_iter()
        .map(|(_, path, text)| (path, text.split("#[cfg(test)]").next().unwrap_or("").lines().count()))
        .filter(|(_, lines)| *lines > 600)
        .map(|(path, lines)| format!("{}: {lines} lines without tests", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The checks themselves can fail.
#[test]
fn the_checks_see_what_they_look_for() {
    assert_eq!(imported("use crate::port::Pool;"), ["port"]);
    assert_eq!(imported("let x = crate::nic::Nic::new(crate::io::now());"), ["nic", "io"]);
    assert_eq!(imported("use crate::{base::Psn, wire};"), ["base", "wire"]);
    assert_eq!(code("a // std::fs").next(), Some((1, "a ")));
}
