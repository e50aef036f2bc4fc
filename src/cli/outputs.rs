//! The files of a run: whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use tempfile::{NamedTempFile, TempPath};

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
    finished: Vec<(&'static str, Hidden)>,
    // Behind the files, which are dropped first.
    _made: MadeDirs,
}

/// Directories that this run has made, the deepest last. They go with it if nothing has come into them.
#[derive(Debug, Default)]
struct MadeDirs(Vec<PathBuf>);

/// A single file beside the outputs of runs, whole or not at all.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    file: Hidden,
}

/// A file that is being written and is not there yet.
#[derive(Debug)]
pub struct Output {
    name: &'static str,
    file: Hidden,
}

#[derive(Debug)]
enum Hidden {
    /// Without a name: whatever ends the process, the kernel takes the file away.
    Unnamed(File),
    /// Where the file system has no files without a name.
    Named(NamedTempFile),
}

impl Write for Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Write for Hidden {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unnamed(file) => file.write(octets),
            Self::Named(file) => file.as_file_mut().write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unnamed(file) => file.flush(),
            Self::Named(file) => file.as_file_mut().flush(),
        }
    }
}

impl Outputs {
    /// Creates the directory.
    pub fn create(dir: &Path) -> Result<Self, Failure> {
        if dir.exists() && !dir.is_dir() {
            let message = "it is not a directory, and the outputs are several files; name another with --out DIR";
            return Err(Failure::environment(format!("cannot write {}: {message}", dir.display())));
        }
        let made = MadeDirs::create(dir).map_err(|error| Failure::unwritable(dir, &error))?;
        Ok(Self { dir: dir.to_owned(), finished: Vec::new(), _made: made })
    }

    /// Opens a file that is not there before [`Outputs::publish`].
    pub fn open(&self, name: &'static str) -> Result<Output, Failure> {
        let file = Hidden::create(&self.dir).map_err(|error| Failure::unwritable(&self.dir.join(name), &error))?;
        Ok(Output { name, file })
    }

    /// The file is complete.
    pub fn finish(&mut self, output: Output) {
        self.finished.push((output.name, output.file));
    }

    /// Lets all complete files appear, and takes away what an earlier run has left in the directory.
    pub fn publish(self) -> Result<(), Failure> {
        let Self { dir, finished, _made } = self;
        let failed = |name: &str, error: &io::Error| Failure::unwritable(&dir.join(name), error);
        // All that needs room in the directory comes first; to rename needs none.
        let mut ready = Vec::new();
        for (name, file) in finished {
            ready.push((name, file.give_name(&dir, name).map_err(|error| failed(name, &error))?));
        }
        let kept: Vec<_> = ready.iter().map(|(name, _)| *name).collect();
        for (name, path) in ready {
            path.persist(dir.join(name)).map_err(|error| failed(name, &error.error))?;
        }
        for name in ALL.into_iter().filter(|name| !kept.contains(name)) {
            match fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(name, &error)),
                _ => {}
            }
        }
        Ok(())
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl MadeDirs {
    fn create(dir: &Path) -> io::Result<Self> {
        let mut made = Self::default();
        let missing: Vec<_> =
            dir.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists()).collect();
        for above in missing.into_iter().rev() {
            match fs::create_dir(above) {
                Ok(()) => made.0.push(above.to_owned()),
                // Somebody else was faster, or it is `dir/..`.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }
}

impl Drop for MadeDirs {
    fn drop(&mut self) {
        for dir in self.0.iter().rev() {
            // Fails where something is in it.
            let _ = fs::remove_dir(dir);
        }
    }
}

impl WholeFile {
    /// Finds out whether a file can be written there, before there is anything to write.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() {
            return Err(Failure::environment(format!("cannot write {}: it is a directory", path.display())));
        }
        let file = Hidden::create(dir_of(path)).map_err(|error| Failure::unwritable_at(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Lets the file appear, with this in it.
    pub fn publish(self, content: &[u8]) -> Result<(), Failure> {
        let Self { path, mut file } = self;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let written = file.write_all(content).and_then(|()| file.give_name(dir_of(&path), &name));
        let published = written.and_then(|hidden| hidden.persist(&path).map_err(|refused| refused.error));
        published.map_err(|error| Failure::unwritable_at(&path, &error))
    }
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Hidden {
    /// As any program creates files; the umask takes its part.
    const MODE: u32 = 0o666;

    fn create(dir: &Path) -> io::Result<Self> {
        let unnamed = OpenOptions::new().write(true).mode(Self::MODE).custom_flags(libc::O_TMPFILE).open(dir);
        match unnamed {
            Ok(file) => Ok(Self::Unnamed(file)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => {
                let mut builder = tempfile::Builder::new();
                builder.prefix(".rocemu-").suffix(".tmp").permissions(Permissions::from_mode(Self::MODE));
                // Its error names the hidden file, which is nobody's business.
                builder.tempfile_in(dir).map(Self::Named).map_err(|error| error.kind().into())
            }
            Err(error) => Err(error),
        }
    }

    /// A path under which the file stands until it is renamed; dropped before that, it is removed.
    fn give_name(self, dir: &Path, name: &str) -> io::Result<TempPath> {
        match self {
            Self::Named(file) => Ok(file.into_temp_path()),
            Self::Unnamed(file) => {
                let path = dir.join(format!(".rocemu-{}-{name}.tmp", std::process::id()));
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
                linkat(AT_FDCWD, descriptor.as_str(), AT_FDCWD, &path, AtFlags::AT_SYMLINK_FOLLOW)?;
                TempPath::try_from_path(path)
            }
        }
    }
}
