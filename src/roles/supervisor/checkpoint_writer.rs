//! Writes checkpoints while training goes on: a forked process reads the segment beside everybody else, and nobody
//! waits for it.
//!
//! What it reads may change under it. Each row, each board and each count is whole all the same, and whatever is a
//! little out of step is so after a kill too. A process that dies in the middle leaves a folder that nobody takes
//! for a checkpoint.

use std::fmt;
use std::time::{Duration, Instant};

use indicatif::BinaryBytes;
use nix::unistd::Pid;
use rustix::event::PollFd;
use serde::{Deserialize, Serialize};

use super::helper::Helper;
use super::watch::wait_for;
use crate::checkpoint::{CheckpointError, Checkpoints, Content, Retention};
use crate::config::Config;
use crate::config::schema::CheckpointConfig;
use crate::segment::control::Control;
use crate::segment::system;
use crate::sync::Ordering;
use crate::telemetry::RunFolder;

/// How long the synchronous trainer, or the end of a run, waits for a checkpoint before that is said, and the least time
/// until it is said of one that follows a late one.
const WAITING_PATIENCE: Duration = Duration::from_secs(60);

/// The longest that the writer rests in all. What changes while rows are read is not in the checkpoint, so reading
/// them must not take too long.
const LONGEST_REST: Duration = Duration::from_mins(1);

/// Who writes the checkpoints of a run, and when.
pub(super) struct CheckpointWriter {
    checkpoints: Checkpoints,
    retention: Retention,
    interval: Option<Duration>,
    next: Instant,
    writing: Option<Writing>,
    /// Whether the last one was late, and has said so or comes after others that were.
    was_late: bool,
}

/// A checkpoint under way.
struct Writing {
    helper: Helper<Result<Written, Failed>>,
    began: Instant,
    is_said_to_be_late: bool,
}

/// For whom a checkpoint is due; by default for the end of the run, which waits for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Due {
    /// The incarnation of the synchronous trainer, if that waits for the checkpoint.
    pub(super) incarnation: Option<u64>,
    /// The longest that the writer may rest, so that the checkpoint is complete before the next is due; zero if somebody waits for it.
    pub(super) longest_rest: Duration,
}

/// A complete checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Written {
    /// Name of the folder.
    pub(super) name: String,
    /// Bytes on the disk.
    pub(super) bytes: u64,
    /// Seconds that it took.
    pub(super) seconds: f64,
}

/// Why there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Failed {
    /// What went wrong: the same words whenever the same trouble comes again.
    pub(super) cause: String,
    /// For people.
    pub(super) message: String,
    /// Whether the disk may take it later.
    pub(super) is_of_disk: bool,
}

impl Failed {
    /// Trouble that is not the disk's, with a cause that is its message.
    fn of(message: &str) -> Self {
        Self { cause: message.into(), message: message.into(), is_of_disk: false }
    }
}

impl From<CheckpointError> for Failed {
    fn from(error: CheckpointError) -> Self {
        Self { cause: error.cause(), message: error.to_string(), is_of_disk: error.is_of_disk() }
    }
}

impl From<&CheckpointConfig> for Retention {
    fn from(table: &CheckpointConfig) -> Self {
        Self { last: table.keep_last, best: table.keep_best, every_steps: table.keep_every_steps }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, seconds } = self;
        write!(out, "checkpoint {name} is complete: {} in {seconds:.1} s", BinaryBytes(*bytes))
    }
}

impl CheckpointWriter {
    /// The writer of a run with this configuration and folder.
    pub(super) fn new(config: &Config, folder: &RunFolder) -> Self {
        let table = &config.checkpoint;
        let retention = Retention::from(table);
        let interval = table.interval_s.filter(|_| !config.is_synchronous()).map(Duration::from_secs_f64);
        let next = Instant::now() + interval.unwrap_or_default();
        Self { checkpoints: Checkpoints::new(folder.checkpoints()), retention, interval, next, writing: None, was_late: false }
    }

    /// Write later checkpoints to `folder`, to which that of the run was moved.
    pub(super) fn follow(&mut self, folder: &RunFolder) {
        self.checkpoints = Checkpoints::new(folder.checkpoints());
    }

    /// Whether checkpoints are written as time passes, at the end of the run, and by its sentinel.
    pub(super) fn is_enabled(&self) -> bool {
        self.interval.is_some()
    }

    /// For whom another checkpoint is due; `None` if none is.
    pub(super) fn is_due(&self, control: Control<'_>) -> Option<Due> {
        if self.writing.is_some() {
            return None;
        }
        // Acquire: pairs with the Release of the trainer.
        match control.checkpoint_wanted().load(Ordering::Acquire) {
            0 => self
                .interval
                .filter(|_| Instant::now() >= self.next)
                .map(|interval| Due { longest_rest: (interval / 4).min(LONGEST_REST), ..Due::default() }),
            incarnation => Some(Due { incarnation: Some(incarnation), ..Due::default() }),
        }
    }

    /// The process that writes the checkpoint under way.
    pub(super) fn process(&self) -> Option<Pid> {
        self.writing.as_ref().map(|writing| writing.helper.pid())
    }

    /// The descriptor of the checkpoint under way: readable once that has ended.
    pub(super) fn descriptor(&self) -> Option<PollFd<'_>> {
        self.writing.as_ref().map(|writing| writing.helper.descriptor())
    }

    /// Begin to write `content`. Once that is complete, the `last` newest checkpoints are kept, or as many as
    /// usual. A failure costs no more than this one checkpoint.
    pub(super) fn begin(&mut self, content: Content<'_>, last: Option<usize>) -> Result<(), Failed> {
        self.next = Instant::now() + self.interval.unwrap_or_default();
        let checkpoints = &self.checkpoints;
        let began = Instant::now();
        let retention = Retention { last: last.unwrap_or(self.retention.last), ..self.retention };
        let started = Helper::start(|| {
            content.segment.disown();
            let written = checkpoints.write(content, retention).map_err(Failed::from).map(|(path, bytes)| Written {
                name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                bytes,
                seconds: began.elapsed().as_secs_f64(),
            });
            if written.is_ok() {
                checkpoints.prune(retention);
            }
            written
        });
        let failed = |cause: String| Failed { message: format!("no checkpoint could be written, because {cause}"), ..Failed::of(&cause) };
        self.writing = Some(Writing { helper: started.map_err(failed)?, began, is_said_to_be_late: false });
        Ok(())
    }

    /// What is to be said of the checkpoint under way if it is late: it is time for the next, or the trainer has waited
    /// long. Of each that is said once. After one that was late the interval may be too short: another one is late after
    /// a minute at least.
    pub(super) fn late(&mut self) -> Option<String> {
        let who_waits = "training goes on, and the next one waits for it; if they always take so long, raise checkpoint.interval_s";
        match self.interval {
            Some(interval) if self.was_late => self.late_after(interval.max(WAITING_PATIENCE), who_waits),
            Some(interval) => self.late_after(interval, who_waits),
            None => self.late_after(WAITING_PATIENCE, "the trainer waits for it"),
        }
    }

    fn late_after(&mut self, patience: Duration, who_waits: &str) -> Option<String> {
        let writing = self.writing.as_mut().filter(|writing| !writing.is_said_to_be_late && writing.began.elapsed() >= patience)?;
        writing.is_said_to_be_late = true;
        let (seconds, writer) = (writing.began.elapsed().as_secs(), writing.helper.pid());
        Some(format!(
            "warning: a checkpoint that was begun {seconds} s ago is not complete: its disk is slow, or process {writer}, which writes it, \
             does not get on; {who_waits}"
        ))
    }

    /// What became of the checkpoint under way, once that has ended.
    pub(super) fn ended(&mut self) -> Option<Result<Written, Failed>> {
        let writing = self.writing.take_if(|writing| writing.helper.has_ended())?;
        let takes_longer = self.interval.is_some_and(|interval| writing.began.elapsed() >= interval);
        self.was_late = writing.is_said_to_be_late || self.was_late && takes_longer;
        let silent = || Err(Failed::of("whoever wrote a checkpoint ended without a word: it was killed, or met a fault of its own"));
        Some(writing.helper.answer().unwrap_or_else(silent))
    }

    /// Give up the checkpoint under way: a later one is about to have everything that is in it, or nobody may go on
    /// from what is there.
    pub(super) fn abandon(&mut self) {
        // A writer that still waits for its disk may leave something: the next checkpoint that is written removes
        // it.
        if self.writing.take().is_some_and(|writing| writing.helper.end()) {
            self.checkpoints.remove_partial();
        }
    }

    /// Wait for the end of the checkpoint under way, and `say` when that takes long. One more request to stop than
    /// `requests` gives the checkpoint up. Of one before that, beyond those that were `heard`, it is said that it does not.
    pub(super) fn wait(&mut self, requests: u32, heard: &mut u32, mut say: impl FnMut(&str)) -> Option<Result<Written, Failed>> {
        while self.writing.is_some() {
            if let Some(ended) = self.ended() {
                return Some(ended);
            }
            let now = system::stop_requests();
            if now > requests {
                self.abandon();
                return Some(Err(Failed::of("the last checkpoint was given up after another stop signal; the one before stays")));
            }
            if now > *heard {
                *heard = now;
                say("the last checkpoint is still being written; another request to stop, a second or more from now, gives it up");
            }
            let who_waits = "the end of the run waits for it, and a second request to stop, as by Ctrl+C, gives it up";
            if let Some(late) = self.late_after(WAITING_PATIENCE, who_waits) {
                say(&late);
            }
            wait_for(&mut self.descriptor().into_iter().collect::<Vec<_>>(), Duration::from_millis(100));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkpoints_that_are_kept_are_those_that_the_configuration_names() {
        let table = CheckpointConfig { keep_last: 5, keep_best: true, keep_every_steps: Some(7), ..CheckpointConfig::default() };
        assert_eq!(Retention::from(&table), Retention { last: 5, best: true, every_steps: Some(7) });
    }
}
