//! A run under way: the supervisor's loop.

mod checkpoints;
mod deaths;
mod fitting;
mod upkeep;
mod words;

pub(super) use checkpoints::checkpoint_content;

use std::time::{Duration, Instant};

use ipc_channel::TryRecvError;
use ipc_channel::ipc::{self, IpcReceiver, IpcSender};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::upkeep::Upkeep;
use self::words::{loss, with_details, work_done};
use super::attachments::Attachments;
use super::checkpoint_writer::CheckpointWriter;
use super::child::Child;
use super::contention::Contention;
use super::fitting::Fitting;
use super::hang::{StackFile, Vigil};
use super::leaving::Leaving;
use super::limit::Limit;
use super::observe::Observer;
use super::plan::Plan;
use super::resumption::{Resumption, run_name};
use super::salvage::Salvage;
use super::sentinel::Sentinel;
use super::slots::PlannedProcess;
use super::standstill::Standstill;
use super::watch::{Cast, Watched};
use super::{Outcome, Prepared, SupervisorError, weights};
use crate::config::Config;
use crate::machine::cores::usable_now;
use crate::rendezvous::{Announcement, Listener, RegisteredRun, Registry, Visitor};
use crate::roles::evaluator::EvaluationReport;
use crate::roles::fitted::{Found, start, with};
use crate::roles::{environments, visualizer};
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::segment::membership::{Membership, View};
use crate::segment::processes::Role;
use crate::segment::system::{self, AfterParent};
use crate::segment::{Description, Segment};
use crate::telemetry::bottleneck::Context;
use crate::telemetry::{self, Console, Evaluation, RunFolder, Settings, Sinks, Snapshot, StopReason};

/// Longest sleep of the loop.
const TICK: Duration = Duration::from_millis(50);
/// Time between two snapshots.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);
/// A process that fails this often in a row right after its start will not get better.
const HOPELESS_FAILURES: u32 = 3;

/// A run under way.
pub struct Session {
    prepared: Prepared,
    segment: Segment,
    watched: Vec<Watched>,
    sinks: Sinks,
    observer: Observer,
    checkpoints: CheckpointWriter,
    /// How much the machine could compute, while that is being measured.
    limit: Option<Limit>,
    reports: Option<IpcReceiver<EvaluationReport>>,
    membership: Membership,
    earlier_restarts: u64,
    vigil: Vigil,
    standstill: Standstill,
    /// The newest version of the best parameters that could not be saved at once.
    unsaved_best: Option<u64>,
    reason: Option<StopReason>,
    next_snapshot: Instant,
    attachments: Attachments,
    contention: Contention,
    fitting: Option<Fitting>,
    /// Sums were made again beside guests that stood still inside an operation: once more when they are out of it.
    provisional: bool,
    announcement: Announcement,
    /// Nothing for a moment after somebody has killed it.
    sentinel: Option<Sentinel>,
    upkeep: Upkeep,
}

impl Session {
    /// Allocate everything and fork every process of the plan.
    ///
    /// A run that goes on has everything put back before its folder is touched.
    pub fn start(
        mut prepared: Prepared,
        mut plan: Plan,
        console: Console,
        mut resumption: Option<Resumption>,
    ) -> Result<Self, SupervisorError> {
        system::handle_stop_signals()?;
        system::keep_freed_memory();
        if let Some(resumption) = &mut resumption {
            resumption.claim(prepared.algorithm.schema())?;
            prepared.started = prepared.started.checked_sub(resumption.elapsed()).unwrap_or(prepared.started);
        }
        let kept = resumption.as_mut().and_then(Resumption::take_kept);
        let (resumption, is_adopted) = (resumption.as_ref(), kept.is_some());
        let config = &prepared.loaded.config;
        let registry = Registry::open()?;
        let swept = registry.sweep();
        registry.check_free(std::process::id())?;
        let mut folder = match resumption {
            None => RunFolder::create(config.run.folder.as_ref(), &run_name(config), &config.to_toml())?,
            Some(resumption) => resumption.folder().clone(),
        };
        let found = resumption.and_then(|_| Found::from(start(config), telemetry::jsonl::read(&folder.adaptation())));
        let fitting = Fitting::new(&prepared, found)?;
        if let Some(fitting) = &fitting {
            plan.begin_with_actors(fitting.wanted().actors);
        }
        plan.set_run_folder(folder.path());
        console.print(plan.to_string().trim_end());
        let description = describe(&prepared, folder.path());
        let segment = match kept {
            None => Segment::create(plan.layout.clone(), &description, config.machine.huge_pages)?,
            Some(kept) => kept.take_over(&description, config.machine.huge_pages)?,
        };
        if let Some(resumption) = resumption {
            resumption.restore(&segment, &*prepared.algorithm, &plan)?;
            folder.go_on(&config.to_toml())?;
            resumption.restore_best_weights(config)?;
        }
        let record = record(&registry, &segment, &description);
        let announcement = registry.reserve(&record)?;
        let checkpoints = CheckpointWriter::new(config, &folder);
        let salvage = checkpoints.is_enabled().then_some(Salvage { prepared: &prepared, folder: &folder });
        let sentinel = Sentinel::fork(&segment, &announcement, &folder, salvage, || ())?;
        let listener = Listener::bind(&record.socket)?;
        announcement.publish()?;
        let settings = Settings {
            metrics_interval_s: config.run.metrics_interval_s,
            plain_interval_s: 10.0,
            adapts: fitting.is_some(),
            context: Context { config: config.clone(), cores: prepared.machine.cores.usable.len().min(usable_now()) },
            goal: config.run.stop_eval_return,
        };
        let mut observer = Observer::new(prepared.started, plan.layout.sizes().processes, prepared.algorithm.metrics());
        let sinks = match resumption {
            None => Sinks::create(folder, console, settings)?,
            Some(resumption) => {
                let (memory, remembered) = (resumption.memory(), resumption.remembered(config));
                observer.resume(memory.training_s, &remembered, &segment);
                Sinks::resume(folder, console, settings, &remembered)?
            }
        };
        let mut session = Self {
            sinks,
            observer,
            checkpoints,
            limit: None,
            watched: plan.processes.into_iter().map(Watched::new).collect(),
            segment,
            reports: None,
            membership: Membership::default(),
            earlier_restarts: resumption.map_or(0, |resumption| resumption.memory().restarts),
            vigil: Vigil::new(Instant::now()),
            standstill: Standstill::new(Duration::from_secs_f64(config.machine.hang_timeout_s), Instant::now()),
            unsaved_best: None,
            reason: None,
            next_snapshot: Instant::now(),
            attachments: Attachments::new(listener, plan.attach_slots.clone(), plan.attach_slots.start),
            contention: Contention::default(),
            fitting,
            provisional: false,
            announcement,
            sentinel: Some(sentinel),
            upkeep: Upkeep::new(),
            prepared,
        };
        session.tell_beginnings(resumption.map(|resumption| resumption.describe(&description)), &swept);
        session.limit = Limit::begin(&session.segment, session.config());
        session.segment.control().set_run_state(RunState::Running);
        if is_adopted {
            session.answer_for_memory();
        }
        session.take_batches_as_found();
        session.begin_all()?;
        Ok(session)
    }

    /// From here on the memory of an adopted run is this process's, and that of its sentinel: whoever kept it need not wait any longer.
    fn answer_for_memory(&self) {
        self.segment.own();
        self.segment.control().keeping().let_keeper_go();
        self.segment.control().signal_progress();
        self.sinks.folder().forget_kept();
    }

    /// Events of before the first process: what environments run on, from where the run goes on, and what was cleared away.
    fn tell_beginnings(&mut self, resumed: Option<String>, swept: &[String]) {
        if !self.prepared.software.is_empty() {
            let versions: Vec<String> = self.prepared.software.iter().map(|(name, version)| format!("{name} {version}")).collect();
            // Only environments in Python have an interpreter.
            let python = &self.config().environment.python;
            let interpreter = if python.is_empty() { String::new() } else { format!(" ({python})") };
            self.sinks.event(&format!("environments run on {}{interpreter}", versions.join(", ")));
        }
        if let Some(resumed) = resumed {
            self.sinks.event(&resumed);
        }
        for name in swept {
            self.sinks.event(&format!("removed the segment {name} that a dead run had left"));
        }
    }

    /// Fork every process of the plan, of the actors as many as are wanted now.
    fn begin_all(&mut self) -> Result<(), SupervisorError> {
        let actors = self.wanted().actors;
        for index in 0..self.watched.len() {
            let planned = &self.watched[index].planned;
            if planned.role != Role::Actor || planned.number < actors {
                self.begin(index)?;
            }
        }
        Ok(())
    }

    fn config(&self) -> &Config {
        &self.prepared.loaded.config
    }

    /// The loop: sleep until something happens, see to it, record.
    pub fn run(mut self) -> Result<Outcome, SupervisorError> {
        while self.reason.is_none() {
            self.sleep();
            // Before any death is looked at: a signal to the whole group ends the others, too.
            self.check_whether_to_stop();
            if self.reason.is_some() {
                break;
            }
            self.reap_children()?;
            self.start_replacements()?;
            self.serve_attachments();
            self.make_provisional_sums_exact();
            self.receive_evaluations();
            self.watch_for_silence();
            self.observe()?;
            self.keep_checkpoints();
            self.keep_up();
            self.check_whether_to_stop();
        }
        self.end()
    }

    /// Fork the process number `index` of the plan.
    fn fork(&mut self, index: usize) -> Result<(), SupervisorError> {
        let planned = self.watched[index].planned.clone();
        let slot = self.segment.processes().slot(planned.slot);
        let Some(generation) = slot.reserve(planned.role, planned.number) else { return Ok(()) };
        let forked = self.fork_into_slot(index, &planned, generation);
        if forked.is_err() {
            // Of a child that nobody could watch over something may be left. Without the release nobody could be started in it any more.
            self.repair(planned.slot);
            self.segment.processes().slot(planned.slot).release();
            if matches!(planned.role, Role::Learner | Role::Synchronous) {
                // Nobody waits for a learner that is not there.
                let view = self.membership.bury(planned.number);
                self.change_view(view);
            }
        }
        forked
    }

    fn fork_into_slot(&mut self, index: usize, planned: &PlannedProcess, generation: u64) -> Result<(), SupervisorError> {
        let steps_before = self.segment.processes().slot(planned.slot).counters().get(Counter::EnvSteps);
        let reports = self.open_channel(planned.role)?;
        if matches!(planned.role, Role::Learner | Role::Synchronous) {
            let view = self.membership.enter(planned.number);
            self.change_view(view);
        }
        let stack_file = self.stack_file(planned.role)?;
        let system = |action| move |source| SupervisorError::System { action, source };
        let stack_descriptor = stack_file.as_ref().map(StackFile::for_process).transpose().map_err(system("duplicating a descriptor"))?;
        let config = with(self.config(), self.wanted());
        let child = Child {
            segment: &self.segment,
            config: &config,
            algorithm: match planned.role {
                Role::Learner => self.prepared.algorithm_of_learner(planned.number),
                _ => &*self.prepared.algorithm,
            },
            environment: &self.prepared.environment,
            catalogue: &self.prepared.catalogue,
            best_weights: self.sinks.folder().best_weights(),
            videos: self.sinks.folder().videos(),
            attempts: self.sinks.unconfirmed(),
            stack_file: stack_descriptor,
            generation,
            reports,
        };
        // Whoever salvages what was there wants to have all of it.
        let after = if self.checkpoints.is_enabled() { AfterParent::IsAskedToLeave } else { AfterParent::Dies };
        let pid = system::fork_follower(after, || child.run(planned))?;
        let cast = Cast { actors: config.actor.count, environments: config.actor.environments };
        let started = self.watched[index].started(pid, stack_file, cast, steps_before);
        started.map_err(|error| system("opening a pidfd")(error.into()))
    }

    /// A file for the Python stack of a process that will step environments, if Python does that in this run.
    fn stack_file(&self, role: Role) -> Result<Option<StackFile>, SupervisorError> {
        if role == Role::Learner || !environments::request(self.config()).needs_python() {
            return Ok(None);
        }
        StackFile::create().map(Some).map_err(|source| SupervisorError::System { action: "creating a file in memory", source })
    }

    /// A fresh channel for whoever evaluates. What the one before had said by its death is taken in first, and its end closed.
    fn open_channel(&mut self, role: Role) -> Result<Option<IpcSender<EvaluationReport>>, SupervisorError> {
        if !matches!(role, Role::Evaluator | Role::Synchronous) {
            return Ok(None);
        }
        self.receive_evaluations();
        let (sender, receiver) = ipc::channel().map_err(|error| SupervisorError::System { action: "opening a channel", source: error })?;
        self.reports = Some(receiver);
        Ok(Some(sender))
    }

    fn change_view(&self, view: View) {
        view.store(self.segment.control().membership());
        self.segment.control().signal_progress();
    }

    fn sleep(&self) {
        let tick = if self.attachments.has_connections() { Duration::from_millis(5) } else { TICK };
        let timeout = tick.min(self.next_snapshot.saturating_duration_since(Instant::now())).max(Duration::from_millis(1));
        let living = self.watched.iter().filter_map(|watched| watched.living.as_ref());
        let mut descriptors: Vec<PollFd<'_>> = living.map(|living| PollFd::new(&living.descriptor, PollFlags::IN)).collect();
        descriptors.extend(self.attachments.descriptors());
        descriptors.extend(self.checkpoints.descriptor());
        // An interruption by a signal is one more reason to look around.
        let _ = poll(&mut descriptors, Timespec::try_from(timeout).ok().as_ref());
    }

    fn reap_children(&mut self) -> Result<(), SupervisorError> {
        for index in 0..self.watched.len() {
            if let Some(death) = self.watched[index].reap() {
                self.handle_exit(index, &death)?;
            }
        }
        Ok(())
    }

    /// See off who left, and let in who knocks: what a visitor had staged is kept like anybody's.
    fn serve_attachments(&mut self) {
        // One at a time: a guest that said goodbye in the middle of an operation is one still while another is repaired after.
        while let Some(left) = self.attachments.take_left(&self.segment) {
            self.disturb();
            let repaired = self.repair(left.slot);
            let slot = self.segment.processes().slot(left.slot);
            let after = match left.visitor {
                Visitor::Actor => format!(" after {}", work_done(slot, Role::AttachedActor)),
                Visitor::Guest => String::new(),
            };
            let saved = loss(&repaired, left.visitor.role(), None);
            let last_words = slot.last_words();
            let (headline, details) = last_words.split_once('\n').unwrap_or((&last_words, ""));
            let why = if headline.is_empty() { String::new() } else { format!(" ({headline})") };
            slot.release();
            let event = format!("{} left{why}{after}; {saved}", self.attachments.name(&left));
            self.sinks.event(&with_details(event, details));
        }
        for line in self.attachments.serve(&self.segment) {
            self.disturb();
            self.sinks.event(&line);
        }
    }

    fn start_replacements(&mut self) -> Result<(), SupervisorError> {
        for index in 0..self.watched.len() {
            if self.watched[index].is_due() {
                self.begin(index)?;
            }
        }
        Ok(())
    }

    fn receive_evaluations(&mut self) {
        while let Some(receiver) = &self.reports {
            match receiver.try_recv() {
                Ok(report) => self.evaluated(report),
                Err(TryRecvError::Empty) => break,
                // The evaluator is gone; its replacement gets a channel of its own.
                Err(TryRecvError::IpcError(_)) => self.reports = None,
            }
        }
    }

    fn evaluated(&mut self, report: EvaluationReport) {
        if let Some(unsaved) = &report.unsaved {
            self.unsaved_best = Some(report.version);
            self.sinks.trouble(unsaved.cause.clone(), &unsaved.message);
        }
        let evaluation = Evaluation {
            wall_s: self.observer.wall_s(),
            env_steps: report.env_steps,
            updates: report.updates,
            version: report.version,
            kind: report.kind,
            is_best: report.is_best,
            confirms_goal: report.confirms_goal,
            returns: report.returns,
            lengths: report.lengths,
        };
        self.observer.evaluated(&evaluation);
        self.sinks.evaluation(&evaluation);
        if evaluation.confirms_goal {
            self.reason.get_or_insert(StopReason::Solved);
        }
    }

    /// A process without a heartbeat for too long is suspected, said so, and killed; only then is it dead. A run in which
    /// nothing advances although all have heartbeats is said to stand still.
    fn watch_for_silence(&mut self) {
        let vigil = self.vigil.look(Instant::now());
        let limit = Duration::from_secs_f64(self.config().machine.hang_timeout_s);
        for watched in &mut self.watched {
            let slot = self.segment.processes().slot(watched.planned.slot);
            if let Some(event) = watched.kill_if_hung(slot, limit, vigil) {
                self.sinks.event(&event);
            }
        }
        if let Some((event, details)) = self.standstill.look(&self.segment, &self.watched, vigil) {
            self.sinks.event(&with_details(event, &details));
        }
    }

    fn observe(&mut self) -> Result<(), SupervisorError> {
        if Instant::now() < self.next_snapshot {
            return Ok(());
        }
        self.next_snapshot = Instant::now() + SNAPSHOT_INTERVAL;
        self.limit = self.limit.take().and_then(|limit| limit.look(&self.segment));
        let snapshot = self.snapshot();
        self.sinks.record(&snapshot);
        let usable = &self.prepared.machine.cores.usable;
        if let Some(event) = self.contention.leave_contended_cores(&mut self.watched, self.observer.core_times(), usable) {
            self.sinks.event(&event);
        }
        self.fit(&snapshot)
    }

    fn snapshot(&mut self) -> Snapshot {
        let restarts = self.restarts();
        self.observer.snapshot(&self.segment, &self.prepared.loaded.config, restarts)
    }

    /// Processes that were replaced, in earlier lives of the run too.
    fn restarts(&self) -> u64 {
        // Training lost nothing by a visualizer that died.
        let trains = self.watched.iter().filter(|watched| watched.planned.role != Role::Visualizer);
        self.earlier_restarts + trains.map(|watched| u64::from(watched.restarts)).sum::<u64>()
    }

    fn check_whether_to_stop(&mut self) {
        let run = &self.prepared.loaded.config.run;
        let synchronous = self.prepared.loaded.config.actor.count == 0;
        let env_steps = self.segment.control().env_steps().load(crate::sync::Ordering::Relaxed);
        let found = if system::stop_requested() {
            Some(StopReason::Interrupted)
        } else if !synchronous && env_steps >= run.stop_env_steps {
            Some(StopReason::StepLimit)
        } else if run.stop_wall_s.is_some_and(|limit| self.observer.wall_s() >= limit) {
            Some(StopReason::TimeLimit)
        } else {
            None
        };
        if let Some(reason) = found {
            self.reason.get_or_insert(reason);
        }
    }

    /// Let everybody leave, keep what was learned, report.
    fn end(mut self) -> Result<Outcome, SupervisorError> {
        let reason = self.reason.clone().unwrap_or(StopReason::Interrupted);
        // The last moment of training: what follows is leaving.
        self.snapshot();
        if self.segment.control().run_state() != RunState::Poisoned {
            self.segment.control().set_run_state(RunState::Stopping);
        }
        let mut leaving = Leaving::new(&reason, Instant::now());
        while self.watched.iter().any(|watched| watched.living.is_some()) || self.attachments.has_actors() {
            let now = Instant::now();
            if system::stop_requested() {
                leaving.interrupt(now);
            }
            for watched in &self.watched {
                if let Some(signal) = leaving.signal(watched.planned.role, now) {
                    watched.signal(signal);
                }
            }
            if leaving.is_late(now) {
                self.attachments.kill_actors(&self.segment, None);
            }
            self.sleep();
            self.reap_children()?;
            self.serve_attachments();
            self.receive_evaluations();
            self.notice_checkpoint();
            self.keep_up();
            self.observe()?;
        }
        // A death on the way out may have cost the tree.
        let reason = self.reason.clone().unwrap_or(StopReason::Interrupted);
        self.receive_evaluations();
        visualizer::remove_unfinished(&self.sinks.folder().videos());
        let saved = weights::save_last(&self.prepared, &self.segment, &mut self.sinks);
        if let Some(version) = self.unsaved_best {
            weights::look_for_best(version, &mut self.sinks);
        }
        self.write_last_checkpoint(&reason);
        let snapshot = self.snapshot();
        let outcome = match reason {
            StopReason::GaveUp(_) | StopReason::Failed(_) => Outcome::Failed,
            _ if !saved => Outcome::Failed,
            StopReason::Interrupted => Outcome::Interrupted { signal: system::stop_signal().unwrap_or(Signal::SIGINT as u32) },
            _ => Outcome::Completed,
        };
        let folder = self.sinks.folder().clone();
        if let Some((setting, config)) = self.fitted() {
            self.sinks.fitted_to(setting, config);
        }
        self.sinks.finish(reason, &snapshot);
        drop((self.segment, self.announcement));
        if let Some(sentinel) = self.sentinel {
            sentinel.dismiss();
        }
        // Whoever goes on with the run need not wait for what environments may have started and left behind.
        folder.give_back();
        Ok(outcome)
    }
}

fn describe(prepared: &Prepared, folder: &std::path::Path) -> Description {
    Description {
        program_version: env!("CARGO_PKG_VERSION").into(),
        config_toml: prepared.loaded.config.to_toml(),
        // Whoever reads it may stand elsewhere.
        run_folder: std::path::absolute(folder).unwrap_or_else(|_| folder.into()).display().to_string(),
        environment: prepared.environment.id.clone(),
        algorithm: prepared.algorithm.name().into(),
        fields: prepared.algorithm.schema().describe(),
        metrics: prepared.algorithm.metrics().iter().map(Into::into).collect(),
    }
}

/// What the registry has of the run in `segment`.
fn record(registry: &Registry, segment: &Segment, description: &Description) -> RegisteredRun {
    RegisteredRun {
        identity: segment.identity().clone(),
        segment: segment.name().into(),
        socket: registry.socket_path(segment.identity().supervisor_pid),
        run_folder: description.run_folder.clone(),
        environment: description.environment.clone(),
        algorithm: description.algorithm.clone(),
        program_version: description.program_version.clone(),
    }
}
