//! How a run begins: folder, memory, announcement, sentinel and records, then the processes of the plan.

use std::time::{Duration, Instant};

use ipc_channel::ipc;

use super::super::attachments::Attachments;
use super::super::binding::Binding;
use super::super::checkpoint_writer::CheckpointWriter;
use super::super::fitting::Fitting;
use super::super::hang::LookClock;
use super::super::observe::Observer;
use super::super::plan::Plan;
use super::super::products_peak::ProductsPeak;
use super::super::resumption::{KeptRun, Resumption, name_of_folders};
use super::super::salvage::Salvage;
use super::super::sentinel::Sentinel;
use super::super::standstill::Standstill;
use super::super::starting_point::StartingPoint;
use super::super::watch::Watched;
use super::super::{Prepared, SupervisorError};
use super::Session;
use super::upkeep::Upkeep;
use crate::checkpoint::Filled;
use crate::config::Config;
use crate::machine::cores;
use crate::rendezvous::{Announcement, Listener, RegisteredRun, Registry};
use crate::segment::control::RunState;
use crate::segment::membership::Membership;
use crate::segment::processes::Role;
use crate::segment::{Description, Segment, system};
use crate::telemetry::bottleneck::Context;
use crate::telemetry::{Console, RunFolder, Sinks};

impl Session {
    /// Allocate everything and fork every process of the plan.
    ///
    /// # Errors
    /// The registry cannot be used; the folder of the run, its files or its memory cannot be made; what it starts
    /// from does not fit; what it goes on from is damaged, or others have it; or a process cannot be started.
    pub fn start(
        mut prepared: Prepared,
        mut plan: Plan,
        console: Console,
        mut resumption: Option<Resumption>,
    ) -> Result<Self, SupervisorError> {
        system::handle_stop_signals()?;
        system::keep_freed_memory();
        settle_size_of_messages()?;
        let origin = Origin::claim(resumption.as_mut(), &mut prepared)?;
        let (from, is_adopted) = (origin.describe(&prepared.loaded.config), matches!(origin, Origin::Earlier(_, Some(_))));
        let registry = Registry::open()?;
        // Again, since a plan that found no registry has removed nothing.
        plan.swept.extend(registry.sweep());
        let removals = plan.removals();
        registry.check_free(std::process::id())?;
        let mut session = Self::allocate(prepared, plan, console, origin, &registry)?;
        session.tell_beginnings(from, &removals);
        session.peak = ProductsPeak::begin(&session.segment, session.config());
        session.segment.control().set_run_state(RunState::Running);
        if is_adopted {
            session.answer_for_segment();
        }
        // An earlier life of the run may have found another batch. Learners are to begin with it.
        if session.wanted().batch_size != session.config().learner.batch_size {
            session.take_wanted_batch();
        }
        match session.start_processes() {
            Ok(()) => Ok(session),
            Err(error) => {
                if is_adopted {
                    session.leave_to_sentinel();
                }
                Err(error)
            }
        }
    }

    /// A run without its processes: its folder, segment, place in the registry, sentinel and records. If one of them fails, those before it
    /// are dropped. That undoes all of a new run, and nothing of one that was adopted. Nobody dismisses the sentinel then: it sees to the
    /// rest after this process.
    ///
    /// A run that goes on has everything put back before its folder is touched. If it cannot go on, the folder stays as it was.
    fn allocate(
        prepared: Prepared,
        mut plan: Plan,
        console: Console,
        origin: Origin<'_>,
        registry: &Registry,
    ) -> Result<Self, SupervisorError> {
        let config = &prepared.loaded.config;
        let resumption = if let Origin::Earlier(resumption, _) = origin { Some(resumption) } else { None };
        let mut folder = match resumption {
            None => RunFolder::create(config.run.folder.as_ref(), &name_of_folders(config), &config.to_toml())?,
            Some(resumption) => resumption.folder().clone(),
        };
        let mut unused = Unused(resumption.is_none().then(|| folder.clone()));
        let fitting = Fitting::new(&prepared, prepared.found(resumption));
        plan.set_run_folder(folder.path());
        console.print(plan.to_string().trim_end());
        let description = describe(&prepared, &folder);
        let (segment, filled) = origin.segment(&prepared, &plan, &description)?;
        // How an earlier life ended, and by what it went.
        let before = resumption.and_then(|_| folder.settings().ok());
        let allocated = Allocated { prepared: &prepared, plan: &plan, resumption, segment: &segment, description: &description };
        let open = allocated.open(&mut folder, console, registry).inspect_err(|_| {
            // Why the run does not go on is what is told, even if this fails as well.
            let _ = before.as_ref().map(|before| folder.put_back(before));
        });
        let Open { checkpoints, announcement, sentinel, listener, observer, mut sinks } = open?;
        unused.0 = None;
        filled.loss().iter().for_each(|loss| sinks.event(loss));
        // Only now, since the link is to lead to a run that could begin.
        if let Err(warning) = folder.become_latest() {
            sinks.event(&format!("warning: {warning}"));
        }
        Ok(Self {
            sinks,
            observer,
            checkpoints,
            peak: None,
            watched: plan.processes.into_iter().map(Watched::new).collect(),
            segment,
            reports: None,
            membership: Membership::default(),
            earlier_restarts: resumption.map_or(0, |resumption| resumption.supervisor_record().restarts),
            look_clock: LookClock::new(Instant::now()),
            standstill: Standstill::new(Duration::from_secs_f64(config.machine.hang_timeout_s), Instant::now()),
            unsaved_best: None,
            reason: None,
            next_snapshot: Instant::now(),
            attachments: Attachments::new(listener, plan.attach_slots.clone(), plan.attach_slots.start),
            binding: Binding::planned_for(cores::affinity_mask()),
            fitting,
            provisional: false,
            announcement,
            sentinel: Some(sentinel),
            upkeep: Upkeep::new(),
            prepared,
        })
    }

    /// Take over the segment of an adopted run for this process and its sentinel: the keeper need not wait any
    /// longer.
    fn answer_for_segment(&mut self) {
        self.segment.own();
        self.segment.control().keeping().let_keeper_go();
        self.segment.control().signal_progress();
        self.folder().forget_kept();
    }

    /// Leave an adopted run in memory, announced as it is, when this process fails: the sentinel keeps it.
    fn leave_to_sentinel(self) {
        self.segment.disown();
        std::mem::forget(self.announcement);
    }

    /// Events of before the first process: what environments run on, from where the run goes on or starts, and what was cleared away.
    fn tell_beginnings(&mut self, from: Option<String>, removals: &[String]) {
        if !self.prepared.software.is_empty() {
            let versions: Vec<String> = self.prepared.software.iter().map(|(name, version)| format!("{name} {version}")).collect();
            // Only environments in Python have an interpreter.
            let python = &self.config().environment.python;
            let interpreter = if python.is_empty() { String::new() } else { format!(" ({python})") };
            self.sinks.event(&format!("environments run on {}{interpreter}", versions.join(", ")));
        }
        if let Some(from) = from {
            self.sinks.event(&from);
        }
        for removal in removals {
            self.sinks.event(removal);
        }
    }

    /// Fork every process of the plan, of the actors as many as are wanted now.
    fn start_processes(&mut self) -> Result<(), SupervisorError> {
        let actors = self.wanted().actors;
        for index in 0..self.watched.len() {
            let planned = &self.watched[index].planned;
            if planned.role != Role::Actor || planned.number < actors {
                self.start_process(index)?;
            }
        }
        Ok(())
    }
}

/// Have `ipc-channel` find out how large messages may be. It does so when it first receives one, through a channel that it opens for that,
/// and panics if it cannot: as long as the run lasts there may be a moment in which no more files can be opened.
fn settle_size_of_messages() -> Result<(), SupervisorError> {
    let (_sender, receiver) = ipc::channel::<()>().map_err(|source| SupervisorError::System { action: "opening a channel", source })?;
    // There is no message.
    let _ = receiver.try_recv();
    Ok(())
}

/// What a run begins from.
enum Origin<'a> {
    /// Nothing, or what another run has learned.
    New(Option<StartingPoint>),
    /// An earlier life of the run, and the memory in which it was kept if it is adopted.
    Earlier(&'a Resumption, Option<KeptRun>),
}

impl<'a> Origin<'a> {
    /// Claim the run that goes on, and count its seconds on; of a new one, read what it begins with.
    fn claim(resumption: Option<&'a mut Resumption>, prepared: &mut Prepared) -> Result<Self, SupervisorError> {
        let Some(resumption) = resumption else { return Ok(Self::New(prepared.starting_point()?)) };
        resumption.claim(prepared.algorithm().schema())?;
        // Its records say with what it began, whatever another run would begin with.
        prepared.loaded.config.run.start_from = resumption.started_from();
        prepared.started = prepared.started.checked_sub(resumption.elapsed()).unwrap_or(prepared.started);
        let kept = resumption.take_kept();
        Ok(Self::Earlier(resumption, kept))
    }

    /// For people: what it begins from, if that is something, and goes on as `config` says.
    fn describe(&self, config: &Config) -> Option<String> {
        match self {
            Self::New(point) => point.as_ref().map(StartingPoint::describe),
            Self::Earlier(resumption, _) => Some(resumption.describe(config)),
        }
    }

    /// The memory of the run that `description` describes, new or kept, and in it all that the run begins from.
    /// Returns also what became of rows that were read.
    fn segment(self, prepared: &Prepared, plan: &Plan, description: &Description) -> Result<(Segment, Filled), SupervisorError> {
        let huge_pages = prepared.loaded.config.machine.huge_pages;
        let create = || Segment::create(plan.layout.clone(), description, huge_pages);
        match self {
            Self::New(point) => {
                let segment = create()?;
                // Gone afterwards, or every process that is forked would have what was read.
                point.map_or(Ok(()), |point| point.put_into(&segment, &prepared.loaded))?;
                Ok((segment, Filled::default()))
            }
            Self::Earlier(resumption, kept) => {
                let segment = kept.map_or_else(create, |kept| kept.take_over(description, huge_pages))?;
                let filled = resumption.restore(&segment, prepared.algorithm(), plan)?;
                Ok((segment, filled))
            }
        }
    }
}

fn describe(prepared: &Prepared, folder: &RunFolder) -> Description {
    Description {
        program_version: env!("CARGO_PKG_VERSION").into(),
        config_toml: prepared.loaded.config.to_toml(),
        // A reader may have another working directory.
        run_folder: folder.absolute().path().display().to_string(),
        environment: prepared.environment.id.clone(),
        spaces: prepared.environment.spaces_in_words(),
        algorithm: prepared.algorithm().name().into(),
        fields: prepared.algorithm().schema().describe(),
        metrics: prepared.algorithm().metrics().iter().map(Into::into).collect(),
    }
}

/// The folder of a new run, which is removed unless all else that the run needs is there.
struct Unused(Option<RunFolder>);

impl Drop for Unused {
    fn drop(&mut self) {
        self.0.iter().for_each(RunFolder::remove);
    }
}

/// A run whose folder and memory are there, and which nobody can find yet.
#[derive(Clone, Copy)]
struct Allocated<'a> {
    prepared: &'a Prepared,
    plan: &'a Plan,
    resumption: Option<&'a Resumption>,
    segment: &'a Segment,
    description: &'a Description,
}

/// What a run has beside its memory before its first process is there.
struct Open {
    checkpoints: CheckpointWriter,
    announcement: Announcement,
    sentinel: Sentinel,
    listener: Listener,
    observer: Observer,
    sinks: Sinks,
}

impl Allocated<'_> {
    /// Announce the run, and open its records in its `folder`.
    fn open(self, folder: &mut RunFolder, console: Console, registry: &Registry) -> Result<Open, SupervisorError> {
        let config = &self.prepared.loaded.config;
        let checkpoints = CheckpointWriter::new(config, folder);
        if self.resumption.is_some() {
            folder.go_on(&config.to_toml())?;
        }
        let salvage = checkpoints.is_enabled().then_some(Salvage { prepared: self.prepared, folder });
        let (announcement, sentinel, listener) = announce(registry, self.segment, self.description, folder, salvage)?;
        let (observer, sinks) = self.records(folder.clone(), console)?;
        if let Some(resumption) = self.resumption {
            // Last, since nothing puts back those that this replaces.
            resumption.restore_best_weights(config).inspect_err(|_| {
                // The new event file has TensorBoard forget what came after the checkpoint, and the run goes back to having that.
                let _ = std::fs::remove_file(folder.events());
            })?;
        }
        Ok(Open { checkpoints, announcement, sentinel, listener, observer, sinks })
    }

    /// Who observes, and who writes it down: from the beginning, or from where the run goes on.
    fn records(self, folder: RunFolder, console: Console) -> Result<(Observer, Sinks), SupervisorError> {
        let config = &self.prepared.loaded.config;
        let context = Context::of_run(config.clone(), &folder.record()?);
        let processes = self.plan.layout.sizes().processes;
        let mut observer = Observer::new(self.prepared.started, processes, self.prepared.algorithm().metrics());
        let remembered = self.resumption.map(|resumption| {
            let remembered = resumption.remembered(config);
            observer.resume(resumption.supervisor_record().training_s, &remembered, self.segment);
            remembered
        });
        Ok((observer, Sinks::open(folder, console, context, remembered.as_ref())?))
    }
}

/// Announce the run in `segment`. Whoever finds it can knock at once, and its sentinel knows what to withdraw.
fn announce(
    registry: &Registry,
    segment: &Segment,
    description: &Description,
    folder: &RunFolder,
    salvage: Option<Salvage<'_>>,
) -> Result<(Announcement, Sentinel, Listener), SupervisorError> {
    let record = record(registry, segment, description);
    let announcement = registry.reserve(&record)?;
    let sentinel = Sentinel::fork(segment, &announcement, folder, salvage, || ())?;
    let listener = Listener::bind(&record.socket)?;
    announcement.publish()?;
    Ok((announcement, sentinel, listener))
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
