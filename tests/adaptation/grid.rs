//! Every setting of a machine, compared without noise: what a search should find.

use shoal::adaptation::{Direction, Knob, Objective, Range, Ranges, Setting, Stride, Turn};

use super::machine::Machine;

/// Settings that differ by less than this cannot be told apart, and need not be.
const ALIKE: f64 = 0.05;
/// All settings that a search could end in, with their objective.
pub(crate) struct Grid {
    values: Vec<(Setting, f64)>,
    machine: Machine,
    ranges: Ranges,
    objective: Objective,
}

impl Grid {
    /// Every number of actors, with every power of two of the rest.
    pub(crate) fn new(machine: Machine, ranges: Ranges, objective: Objective) -> Self {
        let powers = |range: Range| (0..usize::BITS).map(|power| 1 << power).filter(move |value| (range.low..=range.high).contains(value));
        let mut values = Vec::new();
        for actors in ranges.actors.low..=ranges.actors.high {
            for environments in powers(ranges.environments) {
                for batch_size in powers(ranges.batch_size) {
                    let setting = Setting { actors, environments, batch_size };
                    values.push((setting, objective.value(&machine.window(setting))));
                }
            }
        }
        Self { values, machine, ranges, objective }
    }

    /// The best setting and its objective.
    pub(crate) fn best(&self) -> (Setting, f64) {
        *self.values.iter().max_by(|(_, one), (_, other)| one.total_cmp(other)).expect("a grid has at least its start")
    }

    /// The objective of `setting`, as a share of the best.
    pub(crate) fn share_of_best(&self, setting: Setting) -> f64 {
        self.objective.value(&self.machine.window(setting)) / self.best().1
    }

    /// Whether `setting` is the best, or one turn of one knob away from it.
    pub(crate) fn is_near_best(&self, setting: Setting) -> bool {
        is_near(self.ranges, setting, self.best().0)
    }

    /// Whether `setting` is one turn of one knob away from a setting that is as good as the best for all that can be measured.
    pub(crate) fn is_near_alike(&self, setting: Setting) -> bool {
        let least = (1.0 - ALIKE) * self.best().1;
        self.values.iter().any(|&(other, value)| value >= least && is_near(self.ranges, setting, other))
    }
}

/// Whether two settings differ in one knob at most, and in that by a turn or less.
fn is_near(ranges: Ranges, one: Setting, other: Setting) -> bool {
    let differing: Vec<Knob> = Knob::ALL.into_iter().filter(|&knob| one.value(knob) != other.value(knob)).collect();
    let [knob] = differing[..] else { return differing.is_empty() };
    let (low, high) = if one.value(knob) < other.value(knob) { (one, other) } else { (other, one) };
    let next = |setting, direction| ranges.turned(setting, Turn { knob, direction, stride: Stride::Near });
    let reaches_up = next(low, Direction::Up).is_some_and(|next| next.value(knob) >= high.value(knob));
    let reaches_down = next(high, Direction::Down).is_some_and(|next| next.value(knob) <= low.value(knob));
    reaches_up || reaches_down
}
