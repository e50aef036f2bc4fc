//! Processes that are started for a run.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid};

/// What `command` starts is killed when the thread that starts it ends, however that ends, and holds no signal back, even if
/// that thread does. Of what it starts in turn, only the latter holds: the kernel does not pass the former on.
pub fn settle_child(command: &mut Command) {
    let parent = Pid::this();
    let settle = move || {
        SigSet::empty().thread_set_mask()?;
        set_pdeathsig(Signal::SIGKILL)?;
        // It may have ended before the kernel was asked.
        if getppid() == parent { Ok(()) } else { Err(io::Error::from(Errno::ESRCH)) }
    };
    // SAFETY: between fork and exec this makes three system calls, and neither allocates nor locks anything.
    unsafe { command.pre_exec(settle) };
}
