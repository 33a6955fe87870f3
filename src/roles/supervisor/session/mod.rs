//! A run under way: the supervisor's loop.

mod attachments;
mod beginning;
mod checkpoints;
mod deaths;
mod ending;
mod evaluations;
mod fitting;
mod forking;
mod upkeep;
mod words;

use std::time::{Duration, Instant};

use ipc_channel::ipc::IpcReceiver;
use rustix::event::PollFd;

use self::upkeep::Upkeep;
use self::words::with_details;
use super::attachments::Attachments;
use super::binding::Binding;
use super::checkpoint_writer::CheckpointWriter;
use super::fitting::Fitting;
use super::hang::LookClock;
use super::observe::Observer;
use super::products_peak::ProductsPeak;
use super::sentinel::Sentinel;
use super::standstill::Standstill;
use super::watch::{Watched, wait_for};
use super::weights::UnsavedBest;
use super::{Prepared, RunOutcome, SupervisorError};
use crate::config::Config;
use crate::machine::cores;
use crate::rendezvous::Announcement;
use crate::roles::evaluator::EvaluationReport;
use crate::roles::visualizer::{BARS_ARE_SHOWN, VIDEO_IS_MISSING};
use crate::segment::Segment;
use crate::segment::membership::Membership;
use crate::segment::processes::{Phase, Role};
use crate::segment::system;
use crate::telemetry::{Sinks, Snapshot, StopReason};

/// Longest sleep of the loop.
const TICK: Duration = Duration::from_millis(50);
/// Time between two snapshots.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);

/// A run under way.
pub struct Session {
    prepared: Prepared,
    segment: Segment,
    watched: Vec<Watched>,
    sinks: Sinks,
    observer: Observer,
    checkpoints: CheckpointWriter,
    /// How much the cores could compute.
    peak: Option<ProductsPeak>,
    reports: Option<IpcReceiver<EvaluationReport>>,
    membership: Membership,
    earlier_restarts: u64,
    look_clock: LookClock,
    standstill: Standstill,
    /// The best parameters, if they could not be saved at once.
    unsaved_best: Option<UnsavedBest>,
    reason: Option<StopReason>,
    next_snapshot: Instant,
    attachments: Attachments,
    binding: Binding,
    fitting: Option<Fitting>,
    /// Whether sums were recomputed while somebody who was not waited for counted as inside an operation: then that is
    /// done once more when nobody does.
    provisional: bool,
    announcement: Announcement,
    /// `None` for a moment after somebody has killed it.
    sentinel: Option<Sentinel>,
    upkeep: Upkeep,
}

impl Session {
    fn config(&self) -> &Config {
        &self.prepared.loaded.config
    }

    /// The loop: sleep until something happens, see to it, record.
    ///
    /// # Errors
    /// A process cannot be started that replaces another, or that the adaptation asks for.
    pub fn run(mut self) -> Result<RunOutcome, SupervisorError> {
        while self.reason.is_none() {
            self.sleep();
            // Before any death is looked at: a signal to the whole process group ends the children as well.
            self.check_whether_to_stop();
            if self.reason.is_some() {
                break;
            }
            self.reap_children()?;
            self.start_replacements()?;
            self.serve_attachments();
            self.make_provisional_sums_exact();
            self.watch_for_silence();
            self.observe()?;
            self.keep_checkpoints();
            self.keep_up();
            self.check_whether_to_stop();
        }
        self.end()
    }

    fn sleep(&self) {
        let tick = if self.attachments.has_connections() { Duration::from_millis(5) } else { TICK };
        let timeout = tick.min(self.next_snapshot.saturating_duration_since(Instant::now())).max(Duration::from_millis(1));
        let living = self.watched.iter().filter_map(|watched| watched.living.as_ref());
        let mut descriptors: Vec<PollFd<'_>> = living.map(|living| living.process.for_poll()).collect();
        descriptors.extend(self.attachments.descriptors());
        descriptors.extend(self.checkpoints.descriptor());
        // An interruption by a signal is one more reason to look around.
        wait_for(&mut descriptors, timeout);
    }

    fn reap_children(&mut self) -> Result<(), SupervisorError> {
        for index in 0..self.watched.len() {
            if let Some(death) = self.watched[index].reap() {
                // What came before the death, such as the confirmation of the goal, may have ended the run already.
                self.check_whether_to_stop();
                self.handle_exit(index, &death)?;
            }
        }
        Ok(())
    }

    fn start_replacements(&mut self) -> Result<(), SupervisorError> {
        // What has just ended the run is not started anew.
        for index in 0..self.watched.len() {
            if self.reason.is_none() && self.watched[index].is_due() {
                self.start_process(index)?;
            }
        }
        Ok(())
    }

    /// Suspect a process that has had no heartbeat for too long, say so, and kill it. Say that the run stands still
    /// if nothing advances although all have heartbeats.
    fn watch_for_silence(&mut self) {
        let pause = self.look_clock.look(Instant::now());
        let limit = Duration::from_secs_f64(self.config().machine.hang_timeout_s);
        for watched in &mut self.watched {
            watched.put_off_dismissal(pause);
            let slot = self.segment.processes().slot(watched.planned.slot);
            if let Some(event) = watched.kill_if_hung(slot, limit, pause) {
                self.sinks.event(&event);
            }
        }
        if let Some((event, details)) = self.standstill.look(&self.segment, &self.watched, pause) {
            self.sinks.event(&with_details(event, &details));
        }
    }

    fn observe(&mut self) -> Result<(), SupervisorError> {
        if Instant::now() < self.next_snapshot {
            return Ok(());
        }
        self.next_snapshot = Instant::now() + SNAPSHOT_INTERVAL;
        if let Some(peak) = &mut self.peak {
            peak.look(&self.segment);
        }
        let snapshot = self.snapshot();
        self.sinks.record(&snapshot);
        self.pass_on_remarks();
        // A setting is on trial, its actors are still leaving, or the actors after them begin: all that is soon
        // over.
        let is_passing = self.fitting.as_ref().is_some_and(|fitting| {
            let comes_or_goes = |process: &Watched| process.is_dismissed() || self.is_starting(process);
            fitting.wanted() != fitting.home() || self.watched.iter().any(comes_or_goes)
        });
        let core_wait = |slot| self.observer.core_times().core_wait(slot);
        if let Some(event) = self.binding.look(&mut self.watched, core_wait, cores::affinity_mask(), is_passing) {
            self.sinks.event(&event);
        }
        self.fit(&snapshot)
    }

    /// Whether the process is an actor that is still being set up.
    fn is_starting(&self, process: &Watched) -> bool {
        let slot = self.segment.processes().slot(process.planned.slot);
        process.living.is_some() && process.planned.role == Role::Actor && slot.phase() == Some(Phase::Starting)
    }

    /// Tell what a visualizer that goes on says of itself: no death tells it.
    fn pass_on_remarks(&mut self) {
        let showing = |watched: &&Watched| watched.planned.role == Role::Visualizer && watched.living.is_some();
        for watched in self.watched.iter().filter(showing) {
            let words = self.segment.processes().slot(watched.planned.slot).last_words();
            if !words.starts_with(VIDEO_IS_MISSING) {
                // Videos are written again. The next that is missing may be so for another reason.
                self.sinks.forget(VIDEO_IS_MISSING);
            }
            // Of videos that are missing one after the other each says another name. What it says when it dies is
            // told with its death.
            if let Some((what, _)) = words.split_once(':').filter(|(what, _)| [VIDEO_IS_MISSING, BARS_ARE_SHOWN].contains(what)) {
                self.sinks.event_once(what.to_owned(), &format!("{}: {words}", watched.planned.name()));
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let restarts = self.restarts();
        self.observer.snapshot(&self.segment, &self.prepared.loaded.config, restarts)
    }

    /// Processes that died and served training, in all lives of the run.
    fn restarts(&self) -> u64 {
        let serving = self.watched.iter().filter(|watched| watched.planned.role.serves_training());
        self.earlier_restarts + serving.map(|watched| u64::from(watched.restarts)).sum::<u64>()
    }

    /// Take in what was evaluated, and end the run if it is solved, or else if anything else is to end it.
    fn check_whether_to_stop(&mut self) {
        let config = self.config();
        let env_steps = self.segment.control().env_steps().load(crate::sync::Ordering::Relaxed);
        let found = if let Some(signal) = system::stop_signal() {
            Some(StopReason::of_signal(signal))
        } else if !config.is_synchronous() && env_steps >= config.run.stop_env_steps {
            Some(StopReason::StepLimit)
        } else if config.run.stop_wall_s.is_some_and(|limit| self.observer.wall_s() >= limit) {
            Some(StopReason::TimeLimit)
        } else {
            None
        };
        // Last: a goal that was confirmed before another reason came is known by now, and wins over it.
        self.receive_evaluations();
        if let Some(reason) = found {
            self.reason.get_or_insert(reason);
        }
    }
}
