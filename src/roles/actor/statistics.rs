//! What an actor tells the learners of all that it has seen, if observations or rewards are normalised.

use super::super::run::Run;
use crate::algorithms::RunningStatistics;
use crate::environments::VectorEnvironment;
use crate::segment::float_board::FloatBoard;
use crate::values::Values;

/// Statistics of what this actor has seen, and the board that it publishes them on.
pub(super) struct OwnStatistics<'a> {
    running: RunningStatistics,
    board: FloatBoard<'a>,
    values: Vec<f32>,
}

impl<'a> OwnStatistics<'a> {
    /// The statistics of a process that starts; `None` if nothing is normalised. A replacement goes on from what its
    /// predecessor published.
    pub(super) fn new(run: &Run<'a>, environments: usize) -> Option<Self> {
        let board = run.segment.statistics_board(run.process.index())?;
        let mut running = RunningStatistics::new(run.environment.observation.len(), environments, run.config.algorithm.gamma);
        let mut values = vec![0.0; board.len()];
        if let Some((_, [observations, returns, ..])) = board.read(&mut values) {
            running.resume(&values, [observations, returns]);
        }
        Some(Self { running, board, values })
    }

    /// Take in the last step of the `environments`, which began at `observations`.
    pub(super) fn observe(&mut self, observations: Values<'_>, environments: &VectorEnvironment) {
        // Statistics are kept of floats: bytes that are normalised are seen as floats.
        if let Some(observations) = observations.as_f32() {
            self.running.observe(observations);
        }
        for (index, &reward) in environments.rewards().iter().enumerate() {
            self.running.reward(index, reward, environments.terminated()[index] || environments.truncated()[index]);
        }
    }

    /// Publish them as they are now.
    pub(super) fn publish(&mut self) {
        let [observations, returns] = self.running.publish(&mut self.values);
        self.board.publish(&[&self.values], [observations, returns, 0, 0]);
    }
}
