//! How far each knob may be turned, and where a turn leads.

use std::fmt;

use super::setting::{Knob, Setting};

/// From this many actors on, a near stride is a quarter instead of one: of 32 actors, one more or less cannot be
/// measured.
const ACTORS_BY_QUARTERS_FROM: usize = 8;

/// The way in which a knob is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To a higher value.
    Up,
    /// To a lower value.
    Down,
}

impl Direction {
    /// Both, up first: most settings begin too low.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];
}

/// How far a knob is turned at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stride {
    /// By one actor, or a quarter of many; to twice or half the environments or the batch.
    Near,
    /// To twice or half the actors; to four times or a quarter of the environments or the batch.
    Far,
}

/// One knob turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which knob is turned.
    pub knob: Knob,
    /// Which way it is turned.
    pub direction: Direction,
    /// How far it is turned.
    pub stride: Stride,
}

/// The values that a knob may take, both ends included. With equal ends it is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The lowest value.
    pub low: usize,
    /// The highest value.
    pub high: usize,
}

impl Range {
    /// A range of one value, which is never changed.
    pub const fn fixed(value: usize) -> Self {
        Self { low: value, high: value }
    }

    /// Whether the range has one value.
    pub const fn is_fixed(self) -> bool {
        self.low == self.high
    }
}

/// The range of every knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranges {
    /// Range of the number of actors.
    pub actors: Range,
    /// Range of the environments of each actor.
    pub environments: Range,
    /// Range of the transitions per update.
    pub batch_size: Range,
}

impl fmt::Display for Ranges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = Knob::ALL.map(|knob| match self.of(knob) {
            range if range.is_fixed() => format!("{} {}", knob.key(), range.low),
            Range { low, high } => format!("{} {low} to {high}", knob.key()),
        });
        out.write_str(&ranges.join(", "))
    }
}

impl Ranges {
    /// The range of `knob`.
    pub fn of(&self, knob: Knob) -> Range {
        match knob {
            Knob::Actors => self.actors,
            Knob::Environments => self.environments,
            Knob::BatchSize => self.batch_size,
        }
    }

    /// `setting` with every value moved into its range.
    pub fn clamped(&self, setting: Setting) -> Setting {
        Knob::ALL.into_iter().fold(setting, |setting, knob| {
            let Range { low, high } = self.of(knob);
            setting.with(knob, setting.value(knob).clamp(low, high))
        })
    }

    /// The setting to which `turn` leads from `setting`; `None` at the end of the knob's range.
    ///
    /// Environments and batches are multiplied, since equal steps would be large at first and too small to measure
    /// later. Small numbers of actors are counted, since twice as many may be far beyond the cores.
    pub fn turned(&self, setting: Setting, turn: Turn) -> Option<Setting> {
        use Direction::{Down, Up};
        use Stride::{Far, Near};

        let value = setting.value(turn.knob);
        let turned = match (turn.knob, turn.stride, turn.direction) {
            (Knob::Actors, Near, Up) if value < ACTORS_BY_QUARTERS_FROM => value + 1,
            (Knob::Actors, Near, Up) => value.saturating_add((value + 2) / 4),
            (Knob::Actors, Near, Down) if value <= ACTORS_BY_QUARTERS_FROM => value - 1,
            // A fifth less is the way back from a quarter more.
            (Knob::Actors, Near, Down) => value - (value + 2) / 5,
            (Knob::Actors, Far, Up) | (_, Near, Up) => value.saturating_mul(2),
            (Knob::Actors, Far, Down) | (_, Near, Down) => value / 2,
            (_, Far, Up) => value.saturating_mul(4),
            (_, Far, Down) => value / 4,
        };
        let Range { low, high } = self.of(turn.knob);
        let turned = turned.clamp(low, high);
        (turned != value).then(|| setting.with(turn.knob, turned))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANGES: Ranges =
        Ranges { actors: Range { low: 1, high: 40 }, environments: Range { low: 1, high: 48 }, batch_size: Range { low: 32, high: 4_096 } };
    const START: Setting = Setting { actors: 4, environments: 8, batch_size: 64 };

    fn along(knob: Knob, direction: Direction, stride: Stride, from: usize) -> Vec<usize> {
        let next = |setting: &Setting| RANGES.turned(*setting, Turn { knob, direction, stride });
        std::iter::successors(Some(START.with(knob, from)), next).map(|setting| setting.value(knob)).collect()
    }

    #[test]
    fn actors_are_counted_one_by_one_and_then_by_quarters() {
        assert_eq!(along(Knob::Actors, Direction::Up, Stride::Near, 1), [1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 16, 20, 25, 31, 39, 40]);
        assert_eq!(along(Knob::Actors, Direction::Down, Stride::Near, 39), [39, 31, 25, 20, 16, 13, 10, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(along(Knob::Actors, Direction::Up, Stride::Far, 3), [3, 6, 12, 24, 40]);
    }

    #[test]
    fn environments_and_batches_are_multiplied_up_to_the_ends() {
        assert_eq!(along(Knob::Environments, Direction::Up, Stride::Near, 3), [3, 6, 12, 24, 48]);
        assert_eq!(along(Knob::Environments, Direction::Up, Stride::Near, 32), [32, 48]);
        assert_eq!(along(Knob::BatchSize, Direction::Down, Stride::Near, 100), [100, 50, 32]);
        assert_eq!(along(Knob::Environments, Direction::Down, Stride::Far, 33), [33, 8, 2, 1]);
    }

    #[test]
    fn a_setting_outside_of_a_range_is_moved_to_its_end_alone() {
        let found = Setting { actors: 50, environments: 7, batch_size: 16 };
        assert_eq!(RANGES.clamped(found), Setting { actors: 40, environments: 7, batch_size: 32 });
    }

    proptest! {
        #[test]
        fn a_turn_leads_to_another_value_of_its_knob_alone_on_the_side_that_was_asked_for(
            low in 1usize..100, width in 0usize..2_000, place in 0.0f64..1.0, knob in prop::sample::select(Knob::ALL.to_vec()),
            is_up: bool, is_far: bool,
        ) {
            let range = Range { low, high: low + width };
            let ranges = Ranges { actors: range, environments: range, batch_size: range };
            let value = low + (place * width as f64) as usize;
            let setting = Setting { actors: value, environments: value, batch_size: value };
            let direction = if is_up { Direction::Up } else { Direction::Down };
            let turned = ranges.turned(setting, Turn { knob, direction, stride: if is_far { Stride::Far } else { Stride::Near } });
            prop_assert_eq!(turned.is_none(), value == if is_up { range.high } else { range.low });
            if let Some(turned) = turned {
                prop_assert!((range.low..=range.high).contains(&turned.value(knob)));
                prop_assert_eq!(turned.value(knob) > value, is_up);
                prop_assert_eq!(turned.with(knob, value), setting);
            }
        }
    }
}
