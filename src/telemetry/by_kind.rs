//! What each kind of process has of something, such as processor time: the kinds are few, processes may be many.

use std::ops::{Div, Sub};

use serde::Serialize;

use super::share;

/// What each kind of process has of something; a number is of seconds of processor time, or of cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ByKind<T = f64> {
    /// Of all learners.
    pub learners: T,
    /// Of all actors, attached ones included.
    pub actors: T,
    /// Of the synchronous trainer, which does everything in turn and cannot be divided.
    pub trainer: T,
    /// Of the evaluator.
    pub evaluator: T,
    /// Of the visualizer.
    pub visualizer: T,
    /// Of the supervisor, which is no part of what a run uses.
    pub supervisor: T,
}

impl<T> ByKind<T> {
    /// What `of` makes of each.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> ByKind<U> {
        ByKind {
            learners: of(self.learners),
            actors: of(self.actors),
            trainer: of(self.trainer),
            evaluator: of(self.evaluator),
            visualizer: of(self.visualizer),
            supervisor: of(self.supervisor),
        }
    }
}

impl ByKind {
    /// With the names of the kinds, the supervisor last.
    pub fn named(self) -> [(&'static str, f64); 6] {
        [
            ("learners", self.learners),
            ("actors", self.actors),
            ("trainer", self.trainer),
            ("evaluator", self.evaluator),
            ("visualizer", self.visualizer),
            ("supervisor", self.supervisor),
        ]
    }

    /// The sum over all processes of the run but the supervisor.
    pub fn of_run(self) -> f64 {
        self.learners + self.actors + self.trainer + self.evaluator + self.visualizer
    }

    /// For instance ` (learners 1.00, actors 0.07; supervisor 0.01)`, behind the sum of those before the semicolon. Who
    /// would be shown with nothing is left out.
    pub(super) fn in_parentheses(self, decimals: usize) -> String {
        let least = 0.5 * 0.1_f64.powi(decimals as i32);
        let told = |kinds: &[(&str, f64)]| {
            let shown = kinds.iter().filter(|(_, amount)| *amount >= least).map(|(kind, amount)| format!("{kind} {amount:.decimals$}"));
            shown.collect::<Vec<_>>().join(", ")
        };
        let [of_run @ .., supervisor] = self.named();
        let parts: Vec<String> = [told(&of_run), told(&[supervisor])].into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
    }
}

impl Sub for ByKind {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            learners: self.learners - before.learners,
            actors: self.actors - before.actors,
            trainer: self.trainer - before.trainer,
            evaluator: self.evaluator - before.evaluator,
            visualizer: self.visualizer - before.visualizer,
            supervisor: self.supervisor - before.supervisor,
        }
    }
}

impl Div<f64> for ByKind {
    type Output = Self;

    /// Every amount as a share of `whole`; 0 if there is no whole.
    fn div(self, whole: f64) -> Self {
        self.map(|amount| share(amount, whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_stands_apart_and_who_used_nothing_is_not_named() {
        let cores = ByKind { learners: 1.0, actors: 0.07, evaluator: 0.004, supervisor: 0.012, ..ByKind::default() };
        assert_eq!(cores.in_parentheses(2), " (learners 1.00, actors 0.07; supervisor 0.01)");
        assert_eq!(cores.in_parentheses(1), " (learners 1.0, actors 0.1)");
        assert_eq!(ByKind::default().in_parentheses(2), "");
    }
}
