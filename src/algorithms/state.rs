//! A learner's state as a flat row of `f32`: the form in which it lies in the segment.

use crate::networks::{Adam, AdamSettings};

/// Values that one count takes in a state.
pub(super) const COUNT_VALUES: usize = 2;

/// Both halves of a count stay below this, so an `f32` holds them exactly.
const HALF: u64 = 1 << 24;

/// Writes parts one after the other.
pub struct StateWriter<'a> {
    rest: &'a mut [f32],
}

impl<'a> StateWriter<'a> {
    /// A writer at the beginning of `state`.
    pub fn new(state: &'a mut [f32]) -> Self {
        Self { rest: state }
    }

    /// Write the next values.
    ///
    /// # Panics
    /// When there is no room for them.
    pub fn values(&mut self, values: &[f32]) {
        check_room(values.len(), self.rest.len());
        let (part, rest) = std::mem::take(&mut self.rest).split_at_mut(values.len());
        part.copy_from_slice(values);
        self.rest = rest;
    }

    /// Write a count below 2^48, which takes two values.
    // Both halves have 24 bits.
    pub fn count(&mut self, count: u64) {
        self.values(&[(count / HALF) as f32, (count % HALF) as f32]);
    }

    /// Write an optimizer's moments and its number of steps.
    pub fn adam(&mut self, adam: &Adam) {
        self.values(adam.first_moment());
        self.values(adam.second_moment());
        self.count(adam.steps());
    }
}

/// Reads parts in the order in which they were written.
pub struct StateReader<'a> {
    rest: &'a [f32],
}

impl<'a> StateReader<'a> {
    /// A reader at the beginning of `state`.
    pub fn new(state: &'a [f32]) -> Self {
        Self { rest: state }
    }

    /// Read the next `length` values.
    ///
    /// # Panics
    /// When fewer values are left.
    pub fn values(&mut self, length: usize) -> &'a [f32] {
        check_room(length, self.rest.len());
        let (part, rest) = self.rest.split_at(length);
        self.rest = rest;
        part
    }

    /// Read the next count.
    // Both halves are whole and have 24 bits.
    pub fn count(&mut self) -> u64 {
        let halves = self.values(COUNT_VALUES);
        halves[0] as u64 * HALF + halves[1] as u64
    }

    /// Read the next optimizer, of `length` parameters.
    pub fn adam(&mut self, settings: AdamSettings, length: usize) -> Adam {
        let [first, second] = [(); 2].map(|()| self.values(length).to_vec());
        Adam::from_state(settings, first, second, self.count())
    }
}

/// Refuses to go beyond a state of which so many values are `left`: how long it is, an algorithm of one's own says itself.
fn check_room(wanted: usize, left: usize) {
    assert!(wanted <= left, "{left} values are left of a learner's state, and {wanted} more are wanted: raise Sizes::state");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "1 values are left of a learner's state, and 2 more are wanted: raise Sizes::state")]
    fn whoever_writes_more_than_a_state_has_is_told_which_size_to_raise() {
        let mut state = [0.0; 3];
        let mut writer = StateWriter::new(&mut state);
        writer.values(&[1.0, 2.0]);
        writer.count(7);
    }

    #[test]
    #[should_panic(expected = "0 values are left of a learner's state, and 1 more are wanted: raise Sizes::state")]
    fn whoever_reads_more_than_a_state_has_is_told_which_size_to_raise() {
        let mut reader = StateReader::new(&[1.0, 2.0]);
        reader.values(2);
        reader.values(1);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut state = vec![0.0; 2 + 3 + 2];
        let count = (1 << 47) + 12_345_678_901;
        let mut writer = StateWriter::new(&mut state);
        writer.count(count);
        writer.values(&[1.0, 2.0, 3.0]);
        writer.count(7);
        let mut reader = StateReader::new(&state);
        assert_eq!((reader.count(), reader.values(3), reader.count()), (count, [1.0, 2.0, 3.0].as_slice(), 7));
    }
}
