//! What a long run shows while it runs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal;
use crate::base::Instant;
use crate::engine::Progress;
use crate::record::counted;

/// Figures that the run hands to whoever shows them, and the wish to stop that comes back.
///
/// All orderings are relaxed: each figure stands for itself, and a stop may be seen a moment late.
#[derive(Debug, Default)]
pub struct Shared {
    now_ps: AtomicU64,
    delivered: AtomicU64,
    total: AtomicU64,
    frames: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Shared {
    /// Called by the run; says whether it should go on.
    pub fn update(&self, progress: &Progress) -> ControlFlow<()> {
        self.now_ps.store(progress.now.ps(), Ordering::Relaxed);
        self.delivered.store(progress.delivered.get(), Ordering::Relaxed);
        self.total.store(progress.total.get(), Ordering::Relaxed);
        self.frames.store(progress.frames, Ordering::Relaxed);
        if self.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What says that the run should stop, for those who wait inside of it.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A bar on a terminal; elsewhere a line every ten seconds. Silent for runs that are over before anyone looks.
#[derive(Debug)]
pub struct Display {
    bar: Option<ProgressBar>,
    ticks: u64,
}

impl Display {
    pub const TICK: Duration = Duration::from_millis(250);
    const TICKS_PER_LINE: u64 = 40;

    pub fn new() -> Self {
        let bar = terminal::has_colours().then(|| {
            let style = "{elapsed} [{bar:32}] {bytes}/{total_bytes} delivered, {msg}, {eta} left";
            let bar = ProgressBar::no_length();
            ProgressStyle::with_template(style).map_or(bar.clone(), |style| bar.with_style(style))
        });
        Self { bar, ticks: 0 }
    }

    pub fn tick(&mut self, shared: &Shared) {
        self.ticks += 1;
        let now = Instant::from_ps(shared.now_ps.load(Ordering::Relaxed));
        let (delivered, total) = (shared.delivered.load(Ordering::Relaxed), shared.total.load(Ordering::Relaxed));
        let frames = shared.frames.load(Ordering::Relaxed);
        match &self.bar {
            // The first second belongs to runs that need no bar; and before the first look there is nothing to show.
            Some(bar) if self.ticks > 3 && total > 0 => {
                bar.set_length(total);
                bar.set_position(delivered);
                bar.set_message(format!("{}, {now} emulated", counted(frames, "frame")));
            }
            None if self.ticks.is_multiple_of(Self::TICKS_PER_LINE) => {
                let percent = (delivered * 100).checked_div(total).unwrap_or(0);
                eprintln!("{percent} % delivered, {}, {now} emulated", counted(frames, "frame"));
            }
            _ => {}
        }
    }

    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
