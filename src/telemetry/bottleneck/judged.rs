//! The part of a run that its closing report judges, found moment by moment.

use super::super::Snapshot;
use super::{Clock, Context, Diagnosis, verdict_since};
use crate::config::Config;

/// What is remembered of a run for the verdict on it.
#[derive(Debug)]
pub(crate) struct Judged {
    context: Context,
    /// The first moment of this life of the run. If the run goes on, it counts what earlier lives did.
    first: Option<Snapshot>,
    /// Whether a moment with more updates than `first` has been recorded.
    has_learned: bool,
    /// The moment after the first one with more updates. An activity is counted when it ends, so whatever began
    /// before the first update has been counted by then, such as filling the replay again when a run goes on.
    learning_started: Option<Snapshot>,
    /// The last moment of training, once it has ended.
    trained: Option<Snapshot>,
}

impl Judged {
    /// A run with this context that has not begun.
    pub(crate) fn new(context: Context) -> Self {
        Self { context, first: None, has_learned: false, learning_started: None, trained: None }
    }

    /// The configuration that advice starts from.
    pub(crate) fn config(&self) -> &Config {
        &self.context.config
    }

    /// Takes note of what the run was fitted to: advice starts from it.
    pub(crate) fn fitted_to(&mut self, config: Config) {
        self.context.config = config;
    }

    /// Takes in a moment. Those after the end of training change nothing.
    pub(crate) fn record(&mut self, snapshot: &Snapshot) {
        if self.trained.is_some() {
            return;
        }
        if self.learning_started.is_none() && self.has_learned {
            self.learning_started = Some(snapshot.clone());
        }
        self.has_learned |= snapshot.updates > self.first.get_or_insert_with(|| snapshot.clone()).updates;
    }

    /// Takes note of the last moment of training: the verdict leaves out the time after it. Advice is for the `cores`
    /// that the run may use by then.
    pub(crate) fn training_ended(&mut self, trained: &Snapshot, cores: f64) {
        self.trained = Some(trained.clone());
        self.context.cores = cores;
    }

    /// What held the run back while it trained, known from its `last` moment.
    pub(crate) fn verdict(&self, last: &Snapshot) -> Diagnosis {
        let now = as_training_ended(last.clone(), self.trained.as_ref().unwrap_or(last));
        verdict_since(self.first.as_ref().unwrap_or(&now), self.learning_started.as_ref(), &now, Clock::Wall, &self.context)
    }
}

/// `newest` as training ended, of which `trained` is the last moment. Actors and learners count an activity when it
/// ends, so what they did in training is known from the newest moment alone. The clocks and the evaluator go on with
/// something else then, so their seconds are those of `trained`.
pub(crate) fn as_training_ended(newest: Snapshot, trained: &Snapshot) -> Snapshot {
    Snapshot { wall_s: trained.wall_s, training_s: trained.training_s, evaluator_processor_s: trained.evaluator_processor_s, ..newest }
}
