//! NICs that applications can use, for test authors: a scenario runs on a thread of its own while the test is the application.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::engine::{ApplicationsError, MemoryWires, RunError, Wires};
use crate::facade::{Error, Run, Scenario};
use crate::io::{ApplicationSockets, Limits, VethWires};
use crate::netns;
use crate::scenario::Plan;

/// A run that waits for its applications; see [`host`](crate::host) for how they come.
///
/// Dropping it stops the run.
#[derive(Debug)]
pub struct Serving {
    sockets: BTreeMap<String, PathBuf>,
    stop: Arc<AtomicBool>,
    run: Option<JoinHandle<Result<Run, Error>>>,
    /// Goes last: the sockets are in it.
    _dir: tempfile::TempDir,
}

impl Scenario {
    /// Runs on real veth pairs, like [`Scenario::run`], and serves the applications of the scenario.
    ///
    /// * Errors: as of [`Scenario::run`]; the sockets cannot be made.
    pub fn serve(&self) -> Result<Serving, Error> {
        let plan = self.plan()?;
        let wires = VethWires::for_plan(&plan, &netns::Options::default())?;
        Serving::start(plan, wires)
    }

    /// Runs without sockets between the NICs, like [`Scenario::run_in_memory`], and serves the applications of the scenario.
    ///
    /// * Errors: as of [`Scenario::serve`], but for namespaces.
    pub fn serve_in_memory(&self) -> Result<Serving, Error> {
        Serving::start(self.plan()?, MemoryWires::default())
    }
}

impl Serving {
    fn start(plan: Plan, mut wires: impl Wires + Send + 'static) -> Result<Self, Error> {
        let dir = tempfile::tempdir()?;
        let stop = Arc::new(AtomicBool::new(false));
        let applications = ApplicationSockets::open(dir.path(), &plan, Limits::default(), Arc::clone(&stop));
        let mut applications = applications.map_err(RunError::Applications)?;
        let sockets = applications.invitations().map(|(name, path)| (name.to_owned(), path.to_owned())).collect();
        let run = std::thread::spawn(move || Run::serving(plan, &mut wires, &mut applications));
        Ok(Self { sockets, stop, run: Some(run), _dir: dir })
    }

    /// The socket of the NIC that an application uses.
    ///
    /// * Panics: if the scenario has no such application.
    #[track_caller]
    pub fn socket(&self, application: &str) -> &Path {
        let socket = self.sockets.get(application);
        socket.unwrap_or_else(|| panic!("the scenario has no application `{application}`"))
    }

    /// Waits for the end of the run, which comes when all applications have gone and nothing is under way.
    ///
    /// * Errors: as of [`Scenario::run`]; an application never came.
    pub fn finish(mut self) -> Result<Run, Error> {
        self.join()
    }

    fn join(&mut self) -> Result<Run, Error> {
        let stopped = || Error::Run(RunError::Applications(ApplicationsError::Stopped { application: String::new() }));
        match self.run.take().map(JoinHandle::join) {
            Some(Ok(run)) => run,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(stopped()),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(run) = self.run.take() {
            // Whoever drops it does not want to know.
            let _ = run.join();
        }
    }
}
