//! Ctrl-C, SIGTERM and a closed terminal: each ends a run in order, whenever it comes.

use std::task::Poll;

use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::{SignalKind, signal as listen};

/// The signals that end a run. Until somebody listens they are held back, so that none of them kills a process that has
/// names or files to take away.
#[derive(Clone, Debug)]
pub struct Signals(Vec<Signal>);

impl Signals {
    /// Holds the signals back in this thread and in those it will start.
    ///
    /// * Order: before the process has a second thread.
    pub fn hold() -> Self {
        let mut signals = vec![Signal::SIGINT, Signal::SIGTERM];
        // Under nohup a closed terminal is meant to end nothing.
        if !is_ignored(Signal::SIGHUP) {
            signals.push(Signal::SIGHUP);
        }
        let held = Self(signals);
        if let Err(error) = held.set().thread_block() {
            tracing::warn!("signals cannot be held back, and end the run at once: {error}");
        }
        held
    }

    /// Lets the signals through to this thread, to do what they do by themselves.
    pub fn let_through(&self) {
        if let Err(error) = self.set().thread_unblock() {
            tracing::warn!("signals stay held back: {error}");
        }
    }

    /// Waits for one of the signals, those that were held back included.
    ///
    /// * Order: in a tokio runtime. Call it once and keep the future: what comes between two calls is lost.
    pub async fn arrive(self) {
        // Listeners first, so that a signal that was held back finds them.
        let mut listeners: Vec<_> =
            self.0.iter().filter_map(|&name| listen(SignalKind::from_raw(name as i32)).ok()).collect();
        self.let_through();
        std::future::poll_fn(|context| {
            let arrived = listeners.iter_mut().any(|listener| listener.poll_recv(context).is_ready());
            if arrived { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn set(&self) -> SigSet {
        self.0.iter().copied().collect()
    }
}

/// Whether whoever started this process told it to ignore a signal.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal as i32 - 1) & 1 == 1
}
