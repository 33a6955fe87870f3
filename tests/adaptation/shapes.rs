//! The machines and runs that a search is proved on.

use shoal::adaptation::{Hold, Objective, Range, Ranges, Rules, Setting};

use super::machine::{Between, Machine};

/// Environments of an actor as the configuration begins with.
const USUAL_ENVIRONMENTS: usize = 8;
/// Cores of the machines whose runs have an error band.
const CORES_WITH_BANDS: [usize; 2] = [2, 8];
/// The widths of those error bands, in seconds of what the automatic choice does: none, a few, and as many as several legs of a probe.
const BANDS_S: [f64; 3] = [0.0, 3.0, 30.0];
/// Cores of the machines whose runs learn in bursts. With five cores, environments that compute make about two batches a second, so that a
/// second has one, two or three.
const CORES_IN_BURSTS: [usize; 3] = [2, 5, 8];
/// Fragments of a batch there, and steps of each.
const FRAGMENTS: usize = 64;
const FRAGMENT_STEPS: usize = 32;

/// A machine, and what runs on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) environment: &'static str,
    pub(crate) machine: Machine,
}

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    /// From what `auto` chooses for one learner of DQN: the same numbers as in `src/config/automatic.rs`.
    Auto,
    /// From the lowest value of every range, far from any good setting.
    Lowest,
}

/// From 2 to 32 cores; environments that are cheap, compute for 1 ms, or sleep for 1 ms; rate-limited and free.
pub(crate) fn all() -> Vec<Shape> {
    let environments = [("cheap", 5e-6, 0.0, 2.0), ("computes 1 ms", 1e-3, 0.0, 16.0), ("sleeps 1 ms", 5e-6, 1e-3, 16.0)];
    let mut shapes = Vec::new();
    for (environment, environment_s, environment_sleep_s, ratio) in environments {
        for samples_per_insert in [Some(ratio), None] {
            for cores in [2, 4, 8, 32] {
                let (hold, between) = (Hold::SamplesPerInsert, Between::Nothing);
                let machine = Machine { cores, environment_s, environment_sleep_s, samples_per_insert, hold, between };
                shapes.push(Shape { environment, machine });
            }
        }
    }
    shapes
}

/// The rate-limited shapes, with sides that may be ahead of each other by an error band.
pub(crate) fn with_bands() -> Vec<Shape> {
    let with = |shape: Shape, band_s: f64| {
        let steps_per_s = shape.machine.window(shape.start(Start::Auto)).env_steps_per_s;
        Shape { machine: Machine { between: Between::Band(band_s * steps_per_s), ..shape.machine }, ..shape }
    };
    CORES_WITH_BANDS.into_iter().flat_map(limited).flat_map(|shape| BANDS_S.map(|band_s| with(shape, band_s))).collect()
}

/// The shapes that learn in bursts: the learner goes over each batch several times while actors make the next one.
pub(crate) fn in_bursts() -> Vec<Shape> {
    let between = Between::Batches { epochs: 10, minibatches: 8 };
    let with = |shape: Shape| Shape { machine: Machine { samples_per_insert: Some(1.0), between, ..shape.machine }, ..shape };
    CORES_IN_BURSTS.into_iter().flat_map(limited).map(with).collect()
}

/// A rate-limited shape with each kind of environment, on `cores` cores.
fn limited(cores: usize) -> impl Iterator<Item = Shape> {
    let on = move |shape: Shape| Shape { machine: Machine { cores, ..shape.machine }, ..shape };
    all().into_iter().filter(|shape| shape.machine.samples_per_insert.is_some() && shape.machine.cores == 2).map(on)
}

impl Shape {
    pub(crate) fn objective(&self) -> Objective {
        Objective::of_run(self.machine.samples_per_insert, self.machine.hold)
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules::new(self.ranges(), self.objective())
    }

    pub(crate) fn ranges(&self) -> Ranges {
        // As in a run whose configuration does not say how many.
        let per_core = if self.machine.environment_sleep_s > 0.0 { 8 } else { 2 };
        let most_actors = (per_core * self.machine.cores).max(4);
        if let Between::Batches { .. } = self.machine.between {
            // As many as complete a batch at once, so that none learns from old fragments.
            let most_actors = most_actors.min(FRAGMENTS / USUAL_ENVIRONMENTS);
            return Ranges {
                actors: Range { low: 1, high: most_actors },
                environments: Range { low: 1, high: FRAGMENTS / most_actors },
                batch_size: Range::fixed(FRAGMENTS * FRAGMENT_STEPS),
            };
        }
        Ranges {
            actors: Range { low: 1, high: most_actors },
            environments: Range { low: 1, high: 128 },
            batch_size: Range { low: 32, high: 4_096 },
        }
    }

    pub(crate) fn start(&self, start: Start) -> Setting {
        let ranges = self.ranges();
        match start {
            Start::Auto => Setting {
                actors: self.machine.cores.saturating_sub(1).max(1),
                environments: USUAL_ENVIRONMENTS,
                batch_size: 64_usize.clamp(ranges.batch_size.low, ranges.batch_size.high),
            },
            Start::Lowest => {
                Setting { actors: ranges.actors.low, environments: ranges.environments.low, batch_size: ranges.batch_size.low }
            }
        }
    }

    pub(crate) fn name(&self) -> String {
        let limit = self.machine.samples_per_insert.map_or("free".into(), |ratio| format!("{ratio} samples per insert"));
        let between = match self.machine.between {
            Between::Nothing => limit,
            Between::Band(band) => format!("{limit}, a band of {band:.0}"),
            Between::Batches { epochs, minibatches } => format!("bursts of {} updates", epochs * minibatches),
        };
        format!("{} cores, {}, {between}", self.machine.cores, self.environment)
    }
}
