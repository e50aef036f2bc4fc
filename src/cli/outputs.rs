//! The files of a run: whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Failure;

pub const CAPTURE: &str = "capture.pcapng";
pub const MESSAGES: &str = "messages.csv";
pub const RATES: &str = "rates.csv";
pub const QUEUES: &str = "queues.csv";
pub const EVENTS: &str = "events.jsonl";
pub const SUMMARY: &str = "summary.json";
pub const LADDER: &str = "ladder.txt";
/// Every name that a run may write: what an earlier run left under one of them is replaced or removed.
const ALL: [&str; 7] = [CAPTURE, MESSAGES, RATES, QUEUES, EVENTS, SUMMARY, LADDER];

/// The output directory of a run, and the files that will appear in it.
#[derive(Debug)]
pub struct Outputs {
    dir: PathBuf,
    finished: Vec<(&'static str, NamedTempFile)>,
}

/// A file that is being written under another name, which the kernel or [`NamedTempFile`] removes if the run fails.
#[derive(Debug)]
pub struct Output {
    name: &'static str,
    file: NamedTempFile,
}

impl Write for Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Outputs {
    /// Creates the directory.
    pub fn create(dir: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(dir).map_err(|error| Failure::unwritable(dir, &error))?;
        Ok(Self { dir: dir.to_owned(), finished: Vec::new() })
    }

    /// Opens a file that is not there before [`Outputs::publish`].
    pub fn open(&self, name: &'static str) -> Result<Output, Failure> {
        let file = tempfile::Builder::new()
            .prefix(".rocemu-")
            .suffix(".tmp")
            // As any program creates files; the umask takes its part.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&self.dir)
            .map_err(|error| Failure::unwritable(&self.dir.join(name), &error))?;
        Ok(Output { name, file })
    }

    /// The file is complete.
    pub fn finish(&mut self, output: Output) {
        self.finished.push((output.name, output.file));
    }

    /// Lets all complete files appear, and takes away what an earlier run has left in the directory.
    pub fn publish(self) -> Result<(), Failure> {
        for name in ALL.into_iter().filter(|name| self.finished.iter().all(|(finished, _)| finished != name)) {
            match fs::remove_file(self.dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::unwritable(&self.dir.join(name), &error));
                }
                _ => {}
            }
        }
        for (name, file) in self.finished {
            let path = self.dir.join(name);
            let persisted: Result<File, _> = file.persist(&path);
            persisted.map_err(|error| Failure::unwritable(&path, &error.error))?;
        }
        Ok(())
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
