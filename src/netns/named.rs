//! Namespaces with names, as `ip netns` shows them: `/var/run/netns/rocemu-<run>-<node>`.
//!
//! A run that was killed cannot remove its names. So each run keeps a record, `/var/run/rocemu/<run>`, which lists what
//! it has created, and holds a lock on it. The kernel lets go of the lock when the run's process ends, however it ends:
//! unlike a process number it can be neither reused nor faked. A record that nobody holds is a leftover, and only what it
//! lists is ever removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::Error;

/// Where iproute2 looks for names.
pub(super) const NAMES: &str = "/var/run/netns";
const RECORDS: &str = "/var/run/rocemu";
const PREFIX: &str = "rocemu-";

/// The names of one run; removed when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct NamedRun {
    run: String,
    /// Locked for as long as this process lives.
    record: File,
    pins: Vec<PathBuf>,
}

/// What a run that ended without cleaning up has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub run: String,
    /// Names as `ip netns` shows them.
    pub namespaces: Vec<String>,
}

impl NamedRun {
    /// Reserves one name per node. The files are empty until the child mounts its namespaces on them.
    ///
    /// * Errors: `BadName`, `RunTaken`, `NameTaken`, `File`. Nothing is left of a run that could not be reserved.
    pub(super) fn reserve(run: &str, nodes: &[String]) -> Result<Self, Error> {
        for name in nodes.iter().map(String::as_str).chain([run]) {
            if !is_good_name(name) {
                return Err(Error::BadName { name: name.to_owned() });
            }
        }
        share_names_directory()?;
        let record = new_record(run)?;
        let mut this = Self { run: run.to_owned(), record, pins: Vec::with_capacity(nodes.len()) };
        for node in nodes {
            let name = format!("{PREFIX}{run}-{node}");
            let path = Path::new(NAMES).join(&name);
            // No right to anything: it is a place to mount on, not a file to read.
            match OpenOptions::new().write(true).create_new(true).mode(0o000).open(&path) {
                Ok(_) => this.pins.push(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(Error::NameTaken { path: path.display().to_string() });
                }
                Err(error) => return Err(file("create", &path)(error)),
            }
            writeln!(this.record, "{name}").map_err(file("write", &record_path(run)))?;
        }
        Ok(this)
    }

    /// Where each node's namespace is, in the order of the nodes.
    pub fn paths(&self) -> &[PathBuf] {
        &self.pins
    }
}

impl Drop for NamedRun {
    fn drop(&mut self) {
        let removed = self.pins.iter().try_for_each(|path| remove_name(path));
        match removed {
            // The record stays if a name does, so that it can be found as a leftover.
            Ok(()) => drop(fs::remove_file(record_path(&self.run))),
            Err(error) => tracing::warn!(run = self.run, %error, "a named network namespace could not be removed"),
        }
        // Only if it is empty.
        let _ = fs::remove_dir(RECORDS);
    }
}

/// Runs that ended without removing their names.
///
/// * Errors: `File` if the records cannot be read. No records at all are no error.
pub fn leftovers() -> Result<Vec<Leftover>, Error> {
    let entries = match fs::read_dir(RECORDS) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file("read", Path::new(RECORDS))(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(file("read", Path::new(RECORDS)))?.file_name();
        let Some(run) = name.to_str().filter(|name| is_good_name(name)) else { continue };
        // Shared, so that two who look at once do not take each other for the run.
        if let Ok(record) = File::open(record_path(run))
            && record.try_lock_shared().is_ok()
        {
            found.push(Leftover { run: run.to_owned(), namespaces: names_in(&record, run)? });
        }
    }
    found.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(found)
}

/// Removes what `leftover`'s run has created, if that run still does not live.
///
/// * Errors: `RunTaken` if somebody holds its record by now; `File` if a name cannot be removed (needs root).
pub fn remove_leftover(leftover: &Leftover) -> Result<(), Error> {
    let path = record_path(&leftover.run);
    let record = match File::open(&path) {
        Ok(record) => record,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(file("open", &path)(error)),
    };
    record.try_lock().map_err(|_| Error::RunTaken { run: leftover.run.clone() })?;
    for name in names_in(&record, &leftover.run)? {
        let name = Path::new(NAMES).join(name);
        remove_name(&name).map_err(file("remove", &name))?;
    }
    fs::remove_file(&path).map_err(file("remove", &path))?;
    let _ = fs::remove_dir(RECORDS);
    Ok(())
}

/// The names in a record that can be that run's.
fn names_in(record: &File, run: &str) -> Result<Vec<String>, Error> {
    let text = io::read_to_string(record).map_err(file("read", &record_path(run)))?;
    let ours = format!("{PREFIX}{run}-");
    let is_ours = |name: &&str| name.strip_prefix(&ours).is_some_and(is_good_name);
    Ok(text.lines().filter(is_ours).map(str::to_owned).collect())
}

/// A record appears under its name whole and locked, so that nobody can take it for a leftover in between.
fn new_record(run: &str) -> Result<File, Error> {
    let path = record_path(run);
    let draft = Path::new(RECORDS).join(format!(".{run}.{}", process::id()));
    // Another run that ends right now may remove the directory, which it found empty.
    for _ in 0..100 {
        match DirBuilder::new().mode(0o755).recursive(true).create(RECORDS) {
            Ok(()) => {}
            Err(error) => return Err(file("create", Path::new(RECORDS))(error)),
        }
        let mut record = match OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&draft) {
            Ok(record) => record,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(file("create", &draft)(error)),
        };
        let linked = record
            .try_lock()
            .map_err(io::Error::from)
            .and_then(|()| writeln!(record, "process {}", process::id()))
            .and_then(|()| fs::hard_link(&draft, &path));
        let _ = fs::remove_file(&draft);
        return match linked {
            Ok(()) => Ok(record),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::RunTaken { run: run.to_owned() }),
            Err(error) => Err(file("create", &path)(error)),
        };
    }
    Err(file("create", &path)(ErrorKind::NotFound.into()))
}

/// Makes the names visible in every mount namespace, present and future, as iproute2 does.
///
/// * Source: iproute2, ip/ipnetns.c `netns_add`.
fn share_names_directory() -> Result<(), Error> {
    let directory = Path::new(NAMES);
    DirBuilder::new().mode(0o755).recursive(true).create(directory).map_err(file("create", directory))?;
    // iproute2 takes the same lock, so that two do not mount the directory on itself at once.
    let lock = File::open(directory).map_err(file("open", directory))?;
    lock.lock().map_err(file("lock", directory))?;
    let share = || mount(None::<&str>, directory, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    let shared = match share() {
        // Not a mount point yet.
        Err(Errno::EINVAL) => {
            mount(Some(directory), directory, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
                .and_then(|()| share())
        }
        result => result,
    };
    shared.map_err(|errno| file("share", directory)(errno.into()))
}

/// Takes the namespace off its name, then removes the name. Gone already is as good.
fn remove_name(path: &Path) -> io::Result<()> {
    match umount2(path, MntFlags::MNT_DETACH) {
        // Nothing was mounted: the run ended before the child came to it.
        Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn record_path(run: &str) -> PathBuf {
    Path::new(RECORDS).join(run)
}

fn is_good_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |source| Error::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_its_directory() {
        for bad in ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ä"] {
            assert!(!is_good_name(bad), "{bad:?}");
        }
        assert!(is_good_name("1234-5.a_b"));
    }

    #[test]
    fn a_record_vouches_for_names_of_its_own_run_only() {
        let mut record = tempfile::NamedTempFile::new().expect("a file");
        let lines = "process 1\nrocemu-r1-a\nrocemu-r2-a\nother\nrocemu-r1-\nrocemu-r1-../../etc\nrocemu-r1-b.c\n";
        record.write_all(lines.as_bytes()).expect("written");
        let names = names_in(&record.reopen().expect("reopened"), "r1").expect("read");
        assert_eq!(names, ["rocemu-r1-a", "rocemu-r1-b.c"]);
    }
}
