//! Forking a process of the plan into its slot.

use ipc_channel::ipc::{self, IpcSender};

use super::super::SupervisorError;
use super::super::child::Child;
use super::super::hang::StackFile;
use super::super::slots::{ActorSetting, PlannedProcess};
use super::super::watch::work_counted;
use super::Session;
use crate::roles::evaluator::EvaluationReport;
use crate::roles::{Run, configured_environment};
use crate::segment::membership::{Membership, View};
use crate::segment::processes::Role;
use crate::segment::system::{self, AfterParent};

impl Session {
    /// Fork the process number `index` of the plan.
    pub(super) fn fork(&mut self, index: usize) -> Result<(), SupervisorError> {
        let planned = self.watched[index].planned.clone();
        let slot = self.segment.processes().slot(planned.slot);
        let Some(generation) = slot.reserve(planned.role, planned.number) else { return Ok(()) };
        let forked = self.fork_into_slot(index, &planned, generation);
        if forked.is_err() {
            // A child that nobody could watch over may have left something. Without the release no process could be
            // started in its slot any more.
            self.repair(planned.slot);
            self.segment.processes().slot(planned.slot).release();
            if planned.role.learns() {
                // So that nobody waits for a learner that is not there.
                self.change_view(|membership| membership.remove(planned.number));
            }
        }
        forked
    }

    fn fork_into_slot(&mut self, index: usize, planned: &PlannedProcess, generation: u64) -> Result<(), SupervisorError> {
        let work_before = work_counted(self.segment.processes().slot(planned.slot), planned.role);
        let reports = self.open_channel(planned.role)?;
        if planned.role.learns() {
            self.change_view(|membership| membership.enter(planned.number));
        }
        let stack_file = self.stack_file(planned.role)?;
        let system = |action| move |source| SupervisorError::System { action, source };
        let stack_descriptor = stack_file.as_ref().map(StackFile::for_process).transpose().map_err(system("duplicating a descriptor"))?;
        // An environment may change the current folder of its process.
        let folder = self.folder().absolute();
        let config = self.config().with_actors_of(self.wanted());
        let run = Run {
            segment: &self.segment,
            config: &config,
            algorithm: match planned.role {
                Role::Learner => self.prepared.algorithm_of_learner(planned.number),
                _ => self.prepared.algorithm(),
            },
            environment: &self.prepared.environment,
            catalogue: &self.prepared.catalogue,
            process: self.segment.processes().slot(planned.slot),
            role: planned.role,
            number: planned.number,
            incarnation: generation,
            supervisor_alive: &|| true,
        };
        let child = Child { run, folder, unconfirmed: self.sinks.unconfirmed(), stack_file: stack_descriptor, reports };
        // The sentinel saves what was there, and wants to have all of it.
        let after = if self.checkpoints.is_enabled() { AfterParent::IsAskedToLeave } else { AfterParent::Dies };
        let pid = system::fork_follower(after, || child.run(&planned.cores))?;
        let setting = ActorSetting { actors: config.actor.count, environments: config.actor.environments };
        let started = self.watched[index].started(pid, stack_file, setting, work_before);
        started.map_err(|error| system("opening a pidfd")(error.into()))
    }

    /// A file for the Python stack of a process that will step environments, if Python does that in this run.
    fn stack_file(&self, role: Role) -> Result<Option<StackFile>, SupervisorError> {
        if role == Role::Learner || !configured_environment::request(self.config()).needs_python() {
            return Ok(None);
        }
        StackFile::create().map(Some).map_err(|source| SupervisorError::System { action: "creating a file in memory", source })
    }

    /// A new channel for a process that evaluates. What the process before it had sent by its death is taken in
    /// first, and its channel closed.
    fn open_channel(&mut self, role: Role) -> Result<Option<IpcSender<EvaluationReport>>, SupervisorError> {
        if !role.evaluates() {
            return Ok(None);
        }
        self.receive_evaluations();
        let (sender, receiver) = ipc::channel().map_err(|error| SupervisorError::System { action: "opening a channel", source: error })?;
        self.reports = Some(receiver);
        Ok(Some(sender))
    }

    /// Change the learners' view as `change` does, and tell them.
    pub(super) fn change_view(&mut self, change: impl FnOnce(&mut Membership) -> View) {
        change(&mut self.membership).store(self.segment.control().membership());
        self.segment.control().signal_progress();
    }
}
