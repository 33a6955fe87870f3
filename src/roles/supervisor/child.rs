//! What runs in a forked process, from its first instruction to its exit code.

use std::os::fd::OwnedFd;

use ipc_channel::ipc::IpcSender;

use crate::environments::python;
use crate::machine::affinity;
use crate::roles::evaluator::EvaluationReport;
use crate::roles::run::catch_panic;
use crate::roles::{RoleError, Run, actor, evaluator, learner, synchronous, visualizer};
use crate::segment::processes::{Phase, Role};
use crate::segment::system;
use crate::telemetry::RunFolder;

/// Exit code of a process that could not go on and said why in its last words.
pub(super) const ERROR_EXIT_CODE: i32 = 1;

/// As [`ERROR_EXIT_CODE`], of a process that learns, once training has diverged: what it learned last is nothing to go on
/// from. An environment that ends the trainer of a synchronous run itself is unlikely to use this code.
pub(super) const DIVERGED_EXIT_CODE: i32 = 102;

/// What a child is given by the supervisor's memory.
pub(super) struct Child<'a> {
    /// The run, and which part in it the child plays.
    pub(super) run: Run<'a>,
    /// The folder of the run, for the best policy and for videos.
    pub(super) folder: RunFolder,
    /// Evaluations that reached the goal and were not confirmed.
    pub(super) unconfirmed: u64,
    /// Where its Python stack goes when it is asked for it; nothing if it runs no Python.
    pub(super) stack_file: Option<OwnedFd>,
    /// Where evaluations are reported.
    pub(super) reports: Option<IpcSender<EvaluationReport>>,
}

impl Child<'_> {
    /// Play its part on these `cores`, on any if there are none, and return the exit code.
    pub(super) fn run(mut self, cores: &[usize]) -> i32 {
        if let Some(file) = self.stack_file.take() {
            python::write_stacks_to(file);
        }
        self.run.segment.disown();
        let slot = self.run.process;
        let code = catch_panic(slot, || {
            if system::ignore_signals_of_the_run().is_err() || system::handle_stop_signals_of_child().is_err() {
                slot.set_last_words("could not set its signal handlers");
                return ERROR_EXIT_CODE;
            }
            // Without its cores a process is slower, not wrong.
            let _ = cores.is_empty() || affinity::bind_current_process(cores).is_ok();
            if !slot.occupy(std::process::id(), self.run.incarnation) {
                // The slot may be another's by now, who has not failed: no last words there.
                return ERROR_EXIT_CODE;
            }
            self.play()
        });
        python::end_helpers();
        code.unwrap_or(system::PANIC_EXIT_CODE)
    }

    fn play(self) -> i32 {
        let Self { mut run, folder, unconfirmed, reports, .. } = self;
        let reports = || reports.as_ref().expect("the supervisor opens a channel for whoever evaluates");
        let result = match run.role {
            Role::Actor | Role::AttachedActor => actor::run(&run),
            Role::Learner => learner::run(&run),
            Role::Evaluator => evaluator::run(&run, folder, unconfirmed, reports()),
            Role::Visualizer => visualizer::run(&run, folder),
            Role::Synchronous => synchronous::run(&mut run, &folder, unconfirmed, reports()),
            Role::Participant | Role::Guest => unreachable!("a plan has nobody who only uses a replay"),
        };
        match result {
            Ok(()) => {
                // A process may also exit with this code without coming here: then what it ran has ended it.
                run.process.enter(Phase::Leaving);
                0
            }
            Err(error) => {
                run.process.set_last_words(&error.to_string());
                if matches!(error, RoleError::Diverged { .. }) { DIVERGED_EXIT_CODE } else { ERROR_EXIT_CODE }
            }
        }
    }
}
