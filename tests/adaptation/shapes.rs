//! The machines and runs that a search is proved on.

use shoal::adaptation::initial::{self, BatchKind};
use shoal::adaptation::{Hold, Objective, Range, Ranges, Rules, Setting};

use super::machine::Machine;

/// Environments of an actor as the configuration begins with.
const USUAL_ENVIRONMENTS: usize = 8;

/// A machine, and what runs on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) environment: &'static str,
    pub(crate) machine: Machine,
}

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    /// With what `auto` chooses.
    Auto,
    /// With the lowest value of every range, far from any good setting.
    Lowest,
}

/// From 2 to 32 cores; environments that are cheap, compute for 1 ms, or sleep for 1 ms; rate-limited and free.
pub(crate) fn all() -> Vec<Shape> {
    let environments = [("cheap", 5e-6, 0.0, 2.0), ("computes 1 ms", 1e-3, 0.0, 16.0), ("sleeps 1 ms", 5e-6, 1e-3, 16.0)];
    let mut shapes = Vec::new();
    for (environment, environment_s, environment_sleep_s, ratio) in environments {
        for samples_per_insert in [Some(ratio), None] {
            for cores in [2, 4, 8, 32] {
                let machine = Machine { cores, environment_s, environment_sleep_s, samples_per_insert, hold: Hold::SamplesPerInsert };
                shapes.push(Shape { environment, machine });
            }
        }
    }
    shapes
}

impl Shape {
    pub(crate) fn objective(&self) -> Objective {
        Objective::of_run(self.machine.samples_per_insert, self.machine.hold)
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules::new(self.ranges(), self.objective())
    }

    pub(crate) fn ranges(&self) -> Ranges {
        let per_core = if self.machine.environment_sleep_s > 0.0 { 8 } else { 2 };
        Ranges {
            actors: Range { low: 1, high: (per_core * self.machine.cores).max(4) },
            environments: Range { low: 1, high: 128 },
            batch_size: Range { low: 32, high: 4_096 },
        }
    }

    pub(crate) fn start(&self, start: Start) -> Setting {
        let ranges = self.ranges();
        match start {
            Start::Auto => Setting {
                actors: initial::actors(self.machine.cores, 1, false),
                environments: USUAL_ENVIRONMENTS,
                batch_size: initial::batch_size(BatchKind::Values, 1, usize::MAX),
            },
            Start::Lowest => {
                Setting { actors: ranges.actors.low, environments: ranges.environments.low, batch_size: ranges.batch_size.low }
            }
        }
    }

    pub(crate) fn name(&self) -> String {
        let limit = self.machine.samples_per_insert.map_or("free".into(), |ratio| format!("{ratio} samples per insert"));
        format!("{} cores, {}, {limit}", self.machine.cores, self.environment)
    }
}
