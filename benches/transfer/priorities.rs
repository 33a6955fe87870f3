//! Priorities: one learner sets the priorities of a batch, and another one finds the sums by which it draws changed.

use shoal::replay::{Element, Field, Priority, Replay, Schema, StagingArea};
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, Segment, SegmentSizes};

use crate::experience::enter;
use crate::measure::{Path, Receiver, Sender};

const CAPACITY: usize = 1 << 17;
const STAGED: usize = 64;
const SETS: usize = 0;
const DRAWS: usize = 1;
/// Bytes of a priority in a message: slot, generation, value.
pub(crate) const PRIORITY_BYTES: usize = 8 + 8 + 4;

/// A tree whose leaves are all one, and a batch of so many of them.
pub(crate) struct Priorities {
    segment: Segment,
    named: Vec<(usize, u64)>,
}

fn schema() -> Schema {
    Schema::new(vec![Field::new("reward", Element::F32, 1)])
}

impl Priorities {
    pub(crate) fn new(count: usize) -> Self {
        let sizes = SegmentSizes { processes: 2, stagers: 2, staged_rows: STAGED, ..SegmentSizes::of_rows(schema().words(), CAPACITY) };
        let layout = Layout::new(sizes).expect("sizes within their limits");
        let segment = Segment::create(layout, &Description::default(), false).expect("room in /dev/shm");
        let mut all = Vec::new();
        {
            let mut replay = Replay::new(&segment, schema(), enter(&segment, Role::Learner, SETS));
            let area = StagingArea::of(&segment, SETS);
            while all.len() < CAPACITY {
                while !area.is_full() {
                    let schema = schema();
                    area.write(&schema).commit(Some(Priority::ONE));
                }
                replay.flush_with(area, |moved| all.extend_from_slice(moved));
            }
        }
        // A stratified batch: spread over all of them.
        let named = (0..count).map(|index| all[index * CAPACITY / count]).collect();
        Self { segment, named }
    }
}

impl Path for Priorities {
    fn sender(&self) -> Box<dyn Sender + '_> {
        let replay = Replay::new(&self.segment, schema(), enter(&self.segment, Role::Learner, SETS));
        let (slots, generations) = self.named.iter().copied().unzip();
        Box::new(Setting { replay, slots, generations })
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        let replay = Replay::new(&self.segment, schema(), enter(&self.segment, Role::Learner, DRAWS));
        let sums = [CAPACITY, CAPACITY + self.named.len()].map(|sum| Priority::sum_from_f64(sum as f64));
        Box::new(Drawing { replay, named: &self.named, sums, found: 0, priorities: Vec::new() })
    }
}

fn two() -> Priority {
    Priority::from_f32(2.0).expect("finite")
}

struct Setting<'a> {
    replay: Replay<'a>,
    slots: Vec<usize>,
    generations: Vec<u64>,
}

impl Sender for Setting<'_> {
    fn send(&mut self, number: u64) {
        let priority = if number % 2 == 1 { two() } else { Priority::ONE };
        self.replay.update_named(&self.slots, &self.generations, self.slots.iter().map(|_| Some(priority)));
    }
}

struct Drawing<'a> {
    replay: Replay<'a>,
    named: &'a [(usize, u64)],
    /// Sum of the whole tree after an even message, and after an odd one.
    sums: [u64; 2],
    found: usize,
    priorities: Vec<Priority>,
}

impl Receiver for Drawing<'_> {
    fn look(&mut self) -> usize {
        let tree = self.replay.tree().expect("a tree");
        if tree.total() != self.sums[(self.found + 1) % 2] {
            return 0;
        }
        self.priorities.clear();
        self.priorities.extend(self.named.iter().map(|&(slot, _)| tree.raw_priority(slot)));
        self.found += 1;
        1
    }
}
