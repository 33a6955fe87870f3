//! What runs in a forked process, from its first instruction to its exit code.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use ipc_channel::ipc::IpcSender;

use super::slots::PlannedProcess;
use crate::algorithms::Algorithm;
use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::environments::{EnvironmentSpec, python};
use crate::machine::affinity;
use crate::roles::evaluator::EvaluationReport;
use crate::roles::run::catch_panic;
use crate::roles::{Run, actor, evaluator, learner, synchronous, visualizer};
use crate::segment::processes::{Phase, ProcessSlot, Role};
use crate::segment::{Segment, system};

/// Exit code of a process that could not go on and said why in its last words.
pub(super) const ERROR_EXIT_CODE: i32 = 1;

/// What a child is given by the supervisor's memory.
pub(super) struct Child<'a> {
    /// The shared memory.
    pub(super) segment: &'a Segment,
    /// The resolved configuration.
    pub(super) config: &'a Config,
    /// The algorithm.
    pub(super) algorithm: &'a dyn Algorithm,
    /// The environment's facts.
    pub(super) environment: &'a EnvironmentSpec,
    /// What the program knows by name.
    pub(super) catalogue: &'a Catalogue,
    /// Where the best policy is kept.
    pub(super) best_weights: PathBuf,
    /// Where videos go.
    pub(super) videos: PathBuf,
    /// Evaluations that reached the goal and were not confirmed.
    pub(super) unconfirmed: u64,
    /// Where its Python stack goes when it is asked for it; nothing if it runs no Python.
    pub(super) stack_file: Option<OwnedFd>,
    /// Generation of its reservation in the process table.
    pub(super) generation: u64,
    /// Where evaluations are reported.
    pub(super) reports: Option<IpcSender<EvaluationReport>>,
}

impl Child<'_> {
    /// Play the part of `planned` and return the exit code.
    pub(super) fn run(mut self, planned: &PlannedProcess) -> i32 {
        if let Some(file) = self.stack_file.take() {
            python::write_stacks_to(file);
        }
        self.segment.disown();
        let slot = self.segment.processes().slot(planned.slot);
        let code = catch_panic(slot, || {
            if system::ignore_signals_of_the_run().is_err() || system::handle_stop_signals_of_child().is_err() {
                slot.set_last_words("could not set its signal handlers");
                return ERROR_EXIT_CODE;
            }
            // Without its cores a process is slower, not wrong.
            let _ = planned.cores.is_empty() || affinity::bind_current_process(&planned.cores).is_ok();
            if !slot.occupy(std::process::id(), self.generation) {
                // The slot may be another's by now, who has not failed: no last words there.
                return ERROR_EXIT_CODE;
            }
            self.play(slot, planned)
        });
        python::end_helpers();
        code.unwrap_or(system::PANIC_EXIT_CODE)
    }

    fn play(self, slot: ProcessSlot<'_>, planned: &PlannedProcess) -> i32 {
        let mut run = Run {
            segment: self.segment,
            config: self.config,
            algorithm: self.algorithm,
            environment: self.environment,
            catalogue: self.catalogue,
            process: slot,
            role: planned.role,
            number: planned.number,
            incarnation: self.generation,
            supervisor_alive: &|| true,
        };
        let reports = || self.reports.as_ref().expect("the supervisor opens a channel for whoever evaluates");
        let result = match planned.role {
            Role::Actor | Role::AttachedActor => actor::run(&run),
            Role::Learner => learner::run(&run),
            Role::Evaluator => evaluator::run(&run, self.best_weights.clone(), self.unconfirmed, reports()),
            Role::Visualizer => visualizer::run(&run, self.videos.clone()),
            Role::Synchronous => synchronous::run(&mut run, &self.best_weights, self.unconfirmed, reports()),
            Role::Participant | Role::Guest => unreachable!("a plan has nobody who only uses a replay"),
        };
        match result {
            Ok(()) => {
                // A process may also exit with this code without coming here: then what it ran has ended it.
                slot.enter(Phase::Leaving);
                0
            }
            Err(error) => {
                slot.set_last_words(&error.to_string());
                ERROR_EXIT_CODE
            }
        }
    }
}
