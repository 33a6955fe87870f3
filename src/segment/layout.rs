//! Where everything lies: pure arithmetic from the sizes of a run to the offsets of its regions.
//!
//! ```text
//! | header | control | processes | description | tree | store | staging | parameters | learner state |
//! | gradients | metrics | statistics | frames | pictures | halves |
//! ```
//!
//! Every region starts on a page. All offsets are from the start of the segment.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::control::CONTROL_BYTES;
use super::float_board::FloatBoard;
use super::gradients::GradientExchange;
use super::membership::MOST_LEARNERS;
use super::metrics::RING_WORDS;
use super::named_enum::named_enum;
use super::pictures::PictureBoard;
use super::processes::SLOT_WORDS;

/// Bytes of a page; regions start on one.
pub const PAGE_BYTES: usize = 4096;
/// Children per node that the sum tree can be built with.
pub const FANOUTS: [usize; 5] = [4, 8, 16, 32, 64];
/// Most rows a replay can hold: with leaves of 39 bits their sum stays below 2^63, so that a sum which is
/// negative for a moment (a subtraction that overtook its addition) can be told from a large one.
pub const MAX_CAPACITY: usize = 1 << 24;
/// Most words of one row: 8 MiB.
pub const MAX_ROW_WORDS: usize = 1 << 20;
/// Most bytes of a frame.
pub const MAX_FRAME_BYTES: usize = 1 << 24;
/// Halves of an algorithm that two learners share.
pub const HALVES: usize = 2;
/// Fewer frames than this could not hold what is staged and not yet inserted.
pub const LEAST_FRAMES: usize = 4_096;
/// Most processes of a run: more than the limits of all roles add up to.
pub const MAX_PROCESSES: usize = 2048;
/// Most rows in one staging area: as many as fit the largest store, and one more that may be under way.
const MAX_STAGED_ROWS: usize = MAX_CAPACITY + 1;
const MAX_PARAMETERS: usize = 1 << 31;

named_enum! {
    /// The parts of the segment, in the order in which they lie. The words of a name are joined by `_`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Region {
        /// Run-wide words.
        Control = "control",
        /// One slot per process.
        Processes = "processes",
        /// What the run says of itself.
        Description = "description",
        /// Sum tree: leaves first, root last.
        Tree = "tree",
        /// Store of rows.
        Store = "store",
        /// Staging areas.
        Staging = "staging",
        /// Parameter board.
        Parameters = "parameters",
        /// The learners' state.
        LearnerState = "learner_state",
        /// Gradient exchange.
        Gradients = "gradients",
        /// Metric rings.
        Metrics = "metrics",
        /// Statistics of what each staging process has seen.
        Statistics = "statistics",
        /// Frames of stacked observations, each once.
        Frames = "frames",
        /// Board of pictures.
        Pictures = "pictures",
        /// What the halves of an algorithm hand over to each other.
        Halves = "halves",
    }
}

impl Region {
    /// Its name as people read it.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }
}

/// Declares the struct of all sizes, and its list for the header, which has them in the order of the declaration.
macro_rules! sizes {
    (
        $(#[$of_struct:meta])*
        pub struct $name:ident { $( $(#[$of_size:meta])* pub $size:ident: usize, )+ }
    ) => {
        $(#[$of_struct])*
        pub struct $name { $( $(#[$of_size])* pub $size: usize, )+ }

        impl $name {
            pub(super) const COUNT: usize = [$(stringify!($size)),+].len();

            pub(super) fn to_list(self) -> [usize; Self::COUNT] {
                [$(self.$size),+]
            }

            pub(super) fn from_list([$($size),+]: [usize; Self::COUNT]) -> Self {
                Self { $($size),+ }
            }
        }
    };
}

sizes! {
    /// The sizes from which a layout follows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct SegmentSizes {
        /// Slots of the process table.
        pub processes: usize,
        /// Processes that stage rows; they have the first slots of the table.
        pub stagers: usize,
        /// Rows in one staging area.
        // Under this name, and the one below, they are in manifests and in what `inspect` writes as JSON.
        #[serde(rename = "staged_transitions")]
        pub staged_rows: usize,
        /// Rows in the store.
        pub capacity: usize,
        /// Children per node of the sum tree; 0 when sampling is uniform and there is no tree.
        pub fanout: usize,
        /// Words of one row, without the store's own slot word.
        #[serde(rename = "transition_words")]
        pub row_words: usize,
        /// Values that learners publish for those who act.
        pub published_values: usize,
        /// Parameters that learners compute gradients of.
        pub learned_parameters: usize,
        /// Values of the learners' whole state: parameters, target parameters, moments of the optimizer.
        pub learner_state_values: usize,
        /// Values that each staging process publishes about what it has seen; 0 when nothing is normalised.
        pub statistics_values: usize,
        /// Learners.
        pub learners: usize,
        /// Bytes reserved for the description.
        pub description_bytes: usize,
        /// Frames that fit the frame store; 0 when no field is made of frames.
        pub frames: usize,
        /// Bytes of a frame.
        pub frame_bytes: usize,
        /// Bytes of the largest picture that the visualizer shows; 0 without a visualizer.
        pub picture_bytes: usize,
        /// Most values that one half of the algorithm hands over to the other; 0 if learners share the algorithm
        /// otherwise. Each half has a learner state of its own.
        pub handed_over_values: usize,
    }
}

/// One region's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Which region.
    pub region: Region,
    /// Bytes from the start of the segment.
    pub offset_bytes: usize,
    /// Bytes, a multiple of the page.
    pub length_bytes: usize,
}

/// A size that no segment can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} is {found}, but must be from {least} to {most}")]
pub struct LayoutError {
    /// What the size is of, as an error message names it.
    pub what: &'static str,
    /// The size asked for.
    pub found: usize,
    /// The smallest possible.
    pub least: usize,
    /// The largest possible.
    pub most: usize,
}

/// The place of every region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    sizes: SegmentSizes,
    sections: [Section; Region::ALL.len()],
}

impl Layout {
    /// Lay out a segment, or say which size is out of range.
    ///
    /// # Errors
    /// The first size that is out of range, and its limits.
    pub fn new(sizes: SegmentSizes) -> Result<Self, LayoutError> {
        sizes.check()?;
        let mut offset_bytes = PAGE_BYTES;
        let sections = Region::ALL.map(|region| {
            let length_bytes = sizes.region_bytes(region).next_multiple_of(PAGE_BYTES);
            let section = Section { region, offset_bytes, length_bytes };
            offset_bytes += length_bytes;
            section
        });
        Ok(Self { sizes, sections })
    }

    /// The sizes it was made from.
    pub fn sizes(&self) -> &SegmentSizes {
        &self.sizes
    }

    /// The place of a region.
    pub fn section(&self, region: Region) -> Section {
        self.sections[region as usize]
    }

    /// The places of all regions, in order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Bytes of the whole segment.
    pub fn total_bytes(&self) -> usize {
        let last = self.sections[Region::ALL.len() - 1];
        last.offset_bytes + last.length_bytes
    }
}

impl SegmentSizes {
    fn check(&self) -> Result<(), LayoutError> {
        let within = |what, found: usize, least: usize, most: usize| {
            if (least..=most).contains(&found) { Ok(()) } else { Err(LayoutError { what, found, least, most }) }
        };
        within("the number of process slots", self.processes, 1, MAX_PROCESSES)?;
        within("the number of staging areas", self.stagers, 0, self.processes)?;
        within("the number of staged rows", self.staged_rows, 1, MAX_STAGED_ROWS)?;
        // One slot more than there are writers, or writers that hold a slot each could wait for each other.
        within("the capacity of the replay", self.capacity, self.least_capacity(), MAX_CAPACITY)?;
        within("the number of words in a row", self.row_words, 1, MAX_ROW_WORDS)?;
        within("the number of published values", self.published_values, 1, MAX_PARAMETERS)?;
        within("the number of learned parameters", self.learned_parameters, 1, MAX_PARAMETERS)?;
        within("the number of values of the learners' state", self.learner_state_values, 1, 4 * MAX_PARAMETERS)?;
        within("the number of statistics", self.statistics_values, 0, 1 << 24)?;
        within("the number of learners", self.learners, 1, MOST_LEARNERS)?;
        // The same for frames: a writer holds one slot of theirs at a time.
        within("the number of frames", self.frames, if self.frames > 0 { self.least_capacity() } else { 0 }, MAX_CAPACITY)?;
        within("the number of bytes in a frame", self.frame_bytes, usize::from(self.frames > 0), MAX_FRAME_BYTES)?;
        within("the number of bytes in a picture", self.picture_bytes, 0, 1 << 26)?;
        within("the number of values that halves hand over", self.handed_over_values, 0, MAX_PARAMETERS)?;
        within("the room for the description", self.description_bytes, 16, 1 << 24)?;
        if self.fanout != 0 && !FANOUTS.contains(&self.fanout) {
            let (least, most) = (FANOUTS[0], FANOUTS[FANOUTS.len() - 1]);
            return Err(LayoutError { what: "the fan-out of the sum tree, a power of two,", found: self.fanout, least, most });
        }
        Ok(())
    }

    fn region_bytes(&self, region: Region) -> usize {
        let words = match region {
            Region::Control => CONTROL_BYTES / 8,
            Region::Processes => self.processes * SLOT_WORDS,
            Region::Description => self.description_bytes.div_ceil(8),
            Region::Tree => tree_level_lengths(self.capacity, self.fanout).iter().sum(),
            Region::Store => self.capacity * self.slot_words(),
            Region::Staging => self.stagers * self.staging_area_words(),
            Region::Parameters => FloatBoard::words_needed(self.published_values),
            Region::LearnerState => self.learner_states() * FloatBoard::words_needed(self.learner_state_values),
            Region::Gradients => GradientExchange::words_needed(self.learners, self.learned_parameters),
            Region::Metrics => self.processes * RING_WORDS,
            // One board for each process that stages, and one for the settled statistics.
            Region::Statistics => (self.stagers + 1) * self.statistics_words(),
            Region::Frames => self.frames * self.frame_slot_words(),
            Region::Pictures => PictureBoard::words_needed(self.picture_bytes),
            Region::Halves => self.halves() * FloatBoard::words_needed(self.handed_over_values),
        };
        words * 8
    }

    /// Halves into which learners divide the algorithm; 0 if they share it otherwise.
    pub fn halves(&self) -> usize {
        if self.handed_over_values == 0 { 0 } else { HALVES }
    }

    /// Learner states: one if all learners share the algorithm, or one for each half.
    pub fn learner_states(&self) -> usize {
        self.halves().max(1)
    }

    /// The smallest capacity with which writers can never run out of slots to claim.
    fn least_capacity(&self) -> usize {
        self.stagers.saturating_add(1)
    }

    /// The sizes for rows alone: one process that stages them one at a time, and learners that share next to nothing.
    pub fn of_rows(row_words: usize, capacity: usize) -> Self {
        Self {
            processes: 1,
            stagers: 1,
            staged_rows: 1,
            capacity,
            fanout: 16,
            row_words,
            published_values: 1,
            learned_parameters: 1,
            learner_state_values: 1,
            statistics_values: 0,
            learners: 1,
            frames: 0,
            frame_bytes: 0,
            picture_bytes: 0,
            handed_over_values: 0,
            description_bytes: 4_096,
        }
    }

    /// Most rows that one operation may move: so few that all writers together cannot hold every slot, and so
    /// few, in number and in bytes, that a repair does not wait long for the operation.
    pub fn chunk(&self) -> usize {
        const MOST_ROWS: usize = 64;
        const MOST_BYTES: usize = 1 << 20;
        let most_rows = (MOST_BYTES / (8 * self.row_words.max(1))).clamp(1, MOST_ROWS);
        (self.capacity.saturating_sub(1) / self.stagers.max(1)).clamp(1, most_rows)
    }

    /// Words between two rows in the store: slot word and row, a whole number of cache lines.
    pub fn slot_words(&self) -> usize {
        (1 + self.row_words).next_multiple_of(8)
    }

    /// Words between two frames in the frame store: slot word and pixels, a whole number of cache lines.
    pub fn frame_slot_words(&self) -> usize {
        (1 + self.frame_bytes.div_ceil(8)).next_multiple_of(8)
    }

    /// Words between two staged rows: destination, priority and row.
    pub fn staged_words(&self) -> usize {
        2 + self.row_words
    }

    /// Words of one board of statistics.
    pub fn statistics_words(&self) -> usize {
        if self.statistics_values == 0 { 0 } else { FloatBoard::words_needed(self.statistics_values) }
    }

    /// Words of one staging area: a line of its own words, then the rows.
    pub fn staging_area_words(&self) -> usize {
        (8 + self.staged_rows * self.staged_words()).next_multiple_of(16)
    }

    /// The largest capacity with which the segment, with as many frames as `frames` has for it, takes at most
    /// `budget_bytes`; `None` when nothing fits.
    pub fn largest_capacity(&self, budget_bytes: usize, frames: impl Fn(usize) -> usize) -> Option<usize> {
        let fits = |capacity| {
            let layout = Layout::new(Self { capacity, frames: frames(capacity), ..*self });
            layout.is_ok_and(|layout| layout.total_bytes() <= budget_bytes)
        };
        let least = self.least_capacity();
        if !fits(least) {
            return None;
        }
        let (mut good, mut bad) = (least, MAX_CAPACITY + 1);
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            if fits(middle) { good = middle } else { bad = middle }
        }
        Some(good)
    }
}

/// Words of each level of the sum tree, leaves first. Every level but the root is padded to whole sibling groups, so
/// that a group of eight or more starts on a cache line; the capacity itself is not rounded up.
pub fn tree_level_lengths(capacity: usize, fanout: usize) -> Vec<usize> {
    if fanout == 0 {
        return Vec::new();
    }
    let mut lengths = Vec::new();
    let mut nodes = capacity;
    while nodes > 1 {
        let padded = nodes.next_multiple_of(fanout);
        lengths.push(padded.next_multiple_of(8));
        nodes = padded / fanout;
    }
    if lengths.is_empty() {
        lengths.push(fanout.next_multiple_of(8));
    }
    lengths.push(8);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cartpole() -> SegmentSizes {
        SegmentSizes {
            processes: 12,
            stagers: 9,
            staged_rows: 64,
            capacity: 100_000,
            fanout: 8,
            row_words: 8,
            published_values: 4_610,
            learned_parameters: 4_610,
            learner_state_values: 4 * 4_610,
            statistics_values: 8,
            learners: 1,
            frames: 0,
            frame_bytes: 0,
            picture_bytes: 0,
            handed_over_values: 0,
            description_bytes: 16_384,
        }
    }

    #[test]
    fn regions_start_on_pages_and_do_not_overlap() {
        let layout = Layout::new(cartpole()).unwrap();
        let mut end = PAGE_BYTES;
        for section in layout.sections() {
            assert_eq!(section.offset_bytes, end);
            assert!(section.offset_bytes.is_multiple_of(PAGE_BYTES));
            end += section.length_bytes;
        }
        assert_eq!(layout.total_bytes(), end);
    }

    #[test]
    fn an_operation_moves_few_rows_few_bytes_and_never_so_many_that_writers_hold_every_slot() {
        let chunk = |row_words, capacity| SegmentSizes { row_words, capacity, ..cartpole() }.chunk();
        assert_eq!([8, 2_000, 13_000, 1 << 20].map(|words| chunk(words, 100_000)), [64, 64, 10, 1]);
        assert_eq!([10, 91, 1_000].map(|capacity| chunk(8, capacity)), [1, 10, 64]);
    }

    #[test]
    fn the_largest_capacity_fits_and_one_more_does_not() {
        let budget_bytes = 5_000_000;
        let capacity = cartpole().largest_capacity(budget_bytes, |_| 0).unwrap();
        let bytes = |capacity| Layout::new(SegmentSizes { capacity, ..cartpole() }).unwrap().total_bytes();
        assert!(bytes(capacity) <= budget_bytes && bytes(capacity + 1) > budget_bytes);
        assert_eq!(cartpole().largest_capacity(1_000, |_| 0), None);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for wrong in [
            SegmentSizes { capacity: MAX_CAPACITY + 1, ..cartpole() },
            SegmentSizes { fanout: 5, ..cartpole() },
            SegmentSizes { learners: 0, ..cartpole() },
            SegmentSizes { stagers: 13, ..cartpole() },
            SegmentSizes { frames: 9, frame_bytes: 7, ..cartpole() },
            SegmentSizes { published_values: usize::MAX / 2, ..cartpole() },
        ] {
            let error = Layout::new(wrong).unwrap_err();
            assert!(!(error.least..=error.most).contains(&error.found) || error.found == 5, "{error}");
        }
    }

    #[test]
    fn tree_levels_shrink_by_the_fanout_up_to_one_root() {
        assert_eq!(tree_level_lengths(100, 8), vec![104, 16, 8, 8]);
        assert_eq!(tree_level_lengths(1, 8), vec![8, 8]);
        assert_eq!(tree_level_lengths(8, 8), vec![8, 8]);
        assert!(tree_level_lengths(100, 0).is_empty());
    }
}
