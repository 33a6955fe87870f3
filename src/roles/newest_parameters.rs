//! The newest parameters, as far as a process that acts has seen them.

use super::run::Run;
use crate::algorithms::Policy;
use crate::segment::float_board::FloatBoard;
use crate::segment::processes::ProcessSlot;

/// The parameters that a process acts by.
pub(super) struct NewestParameters<'a> {
    process: ProcessSlot<'a>,
    board: FloatBoard<'a>,
    /// Version on the board; 0 before there are any.
    pub(super) version: u64,
    /// Updates in them.
    pub(super) updates: u64,
    copy: Vec<f32>,
}

impl<'a> NewestParameters<'a> {
    /// No parameters have been read yet.
    pub(super) fn of(run: &Run<'a>) -> Self {
        let board = run.segment.parameter_board();
        Self { process: run.process, board, version: 0, updates: 0, copy: vec![0.0; board.len()] }
    }

    /// Give the policy the newest parameters, and say so in the process's slot. `false` when it has them already.
    pub(super) fn refresh(&mut self, policy: &mut dyn Policy) -> bool {
        if self.board.version() == self.version {
            return false;
        }
        let Some((version, [updates, ..])) = self.board.read(&mut self.copy) else { return false };
        policy.set_parameters(&self.copy);
        self.version = version;
        self.updates = updates;
        self.process.set_parameter_updates(updates);
        true
    }
}
