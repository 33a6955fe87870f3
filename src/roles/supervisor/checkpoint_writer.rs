//! Writes checkpoints while training goes on: a forked process reads the segment beside everybody else, and nobody waits for it.
//!
//! What it reads may change under it. Each row, each board and each count is whole all the same, and whatever is a little out of step
//! is so after a kill too. A process that dies in the middle leaves a folder that nobody takes for a checkpoint.

use std::fmt;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ipc_channel::ipc::{self, IpcReceiver};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, nice, pidfd_open};
use serde::{Deserialize, Serialize};

use super::SupervisorError;
use super::watch::has_ended;
use crate::checkpoint::{CheckpointError, Checkpoints, Content, Retention};
use crate::config::Config;
use crate::config::schema::CheckpointConfig;
use crate::machine::readable_bytes;
use crate::segment::control::Control;
use crate::segment::system;
use crate::sync::Ordering;
use crate::telemetry::RunFolder;

/// Steps on the scale of `nice` by which training goes before writing.
const POLITENESS: i32 = 10;

/// Who writes the checkpoints of a run, and when.
pub(super) struct CheckpointWriter {
    checkpoints: Checkpoints,
    retention: Retention,
    interval: Option<Duration>,
    next: Instant,
    writing: Option<Writing>,
}

/// A checkpoint under way.
struct Writing {
    pid: Pid,
    /// Readable once the process has ended.
    descriptor: OwnedFd,
    outcome: IpcReceiver<Result<Written, Failed>>,
}

/// A complete checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Written {
    /// Its folder's name.
    pub(super) name: String,
    /// Bytes on the disk.
    pub(super) bytes: u64,
    /// Seconds that it took.
    pub(super) seconds: f64,
}

/// Why there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Failed {
    /// The same words whenever the same trouble comes again.
    pub(super) cause: String,
    /// For people.
    pub(super) message: String,
}

impl From<&CheckpointConfig> for Retention {
    fn from(table: &CheckpointConfig) -> Self {
        Self { last: table.keep_last, best: table.keep_best, every_steps: table.keep_every_steps }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, seconds } = self;
        write!(out, "checkpoint {name} is complete: {} in {seconds:.1} s", readable_bytes(*bytes))
    }
}

impl CheckpointWriter {
    /// The writer of a run with this configuration and folder.
    pub(super) fn new(config: &Config, folder: &RunFolder) -> Self {
        let table = &config.checkpoint;
        let retention = Retention::from(table);
        let interval = table.interval_s.filter(|_| config.actor.count > 0).map(Duration::from_secs_f64);
        let next = Instant::now() + interval.unwrap_or_default();
        Self { checkpoints: Checkpoints::new(folder.checkpoints()), retention, interval, next, writing: None }
    }

    /// Whether a run without a trainer of its own clock has checkpoints.
    pub(super) fn is_enabled(&self) -> bool {
        self.interval.is_some()
    }

    /// Whether it is time for another, and the incarnation of the synchronous trainer if that waits for it.
    pub(super) fn is_due(&self, control: Control<'_>) -> Option<Option<u64>> {
        // Acquire: pairs with the Release of the trainer.
        let wanted = control.checkpoint_wanted().load(Ordering::Acquire);
        let is_time = wanted != 0 || self.interval.is_some() && Instant::now() >= self.next;
        (is_time && self.writing.is_none()).then_some((wanted != 0).then_some(wanted))
    }

    /// To be polled for reading while one is under way.
    pub(super) fn descriptor(&self) -> Option<PollFd<'_>> {
        self.writing.as_ref().map(|writing| PollFd::new(&writing.descriptor, PollFlags::IN))
    }

    /// Begin to write `content`.
    pub(super) fn begin(&mut self, content: Content<'_>) -> Result<(), SupervisorError> {
        let failed = |action| move |source| SupervisorError::System { action, source };
        let (sender, outcome) = ipc::channel().map_err(failed("opening a channel"))?;
        let (checkpoints, began) = (&self.checkpoints, Instant::now());
        let pid = system::fork_child(|| {
            content.segment.disown();
            // Whoever ends the run waits for its last checkpoint, and the terminal's Ctrl+C is for the supervisor.
            let _ = system::ignore_signals_of_the_run();
            let _ = nice(POLITENESS);
            let failed = |error: CheckpointError| Failed { cause: error.cause(), message: error.to_string() };
            let written = checkpoints.write(content).map_err(failed).map(|(path, bytes)| Written {
                name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                bytes,
                seconds: began.elapsed().as_secs_f64(),
            });
            i32::from(sender.send(written).is_err())
        })?;
        let raw = rustix::process::Pid::from_raw(pid.as_raw()).expect("a child has an id");
        let descriptor = pidfd_open(raw, PidfdFlags::empty()).map_err(|error| failed("opening a pidfd")(error.into()))?;
        self.writing = Some(Writing { pid, descriptor, outcome });
        Ok(())
    }

    /// What became of the one under way, once that is known: it is complete, or why it is not.
    pub(super) fn ended(&mut self) -> Option<Result<Written, Failed>> {
        let Writing { pid, outcome, .. } = self.writing.take_if(|writing| has_ended(&writing.descriptor))?;
        let _ = waitpid(pid, None);
        self.next = Instant::now() + self.interval.unwrap_or_default();
        let message = "whoever wrote a checkpoint was killed".to_owned();
        let killed = || Err(Failed { cause: message.clone(), message });
        let written = outcome.try_recv().unwrap_or_else(|_| killed());
        if written.is_ok() {
            self.checkpoints.prune(self.retention);
        }
        Some(written)
    }

    /// Keep the newest alone, but for what is kept for another reason.
    pub(super) fn keep_one(&self) {
        self.checkpoints.prune(Retention { last: 1, ..self.retention });
    }

    /// Wait for the end of the one under way.
    pub(super) fn wait(&mut self) -> Option<Result<Written, Failed>> {
        while self.writing.is_some() {
            if let Some(ended) = self.ended() {
                return Some(ended);
            }
            let _ = poll(&mut self.descriptor().into_iter().collect::<Vec<_>>(), None);
        }
        None
    }
}
