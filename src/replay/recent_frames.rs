//! Knows the frames that this process wrote lately, so that each is stored once.
//!
//! Whoever adds stacked observations hands over every frame up to eight times. A frame is recognised by a 128-bit hash
//! of its content, whatever stream it came from and wherever an episode begins: what a transition shows is exactly what
//! was handed over, with repeated or blank frames at the start of an episode as the environment has them.

use std::collections::{HashMap, VecDeque};

use twox_hash::XxHash3_128;

use super::{Replay, Target};
use crate::segment::layout::{LEAST_FRAMES, MAX_CAPACITY};

/// Most frames remembered: those of a few hundred environments.
const REMEMBERED: usize = 8_192;

/// A frame store has one frame for each transition, and one more for so many of them.
const TRANSITIONS_PER_SPARE_FRAME: usize = 16;

/// Frames for a replay of so many transitions, of so many environments that show `stack` frames at once: one for each transition, and some
/// for the first ones of episodes and for those that stay in use longer because they are shown again. A frame has to be known for as
/// long as it is shown, or it is stored again.
pub fn frames_for(capacity: usize, environments: usize, stack: usize, n_step: usize) -> usize {
    // The first frame of a transition is as many steps old as it has, when its row is written.
    let known = RecentFrames::YOUNG_PART * environments * (stack + n_step - 1);
    (capacity + capacity / TRANSITIONS_PER_SPARE_FRAME).max(known).clamp(LEAST_FRAMES, MAX_CAPACITY)
}

#[derive(Debug, Clone, Copy)]
struct Known {
    name: Target,
    /// Frames written before it.
    number: u64,
}

/// The frames written lately.
pub struct RecentFrames {
    known: HashMap<u128, Known>,
    order: VecDeque<u128>,
    copy: Vec<u8>,
}

impl Default for RecentFrames {
    /// Nothing yet, with room for all that will be remembered.
    fn default() -> Self {
        Self { known: HashMap::with_capacity(REMEMBERED + 1), order: VecDeque::with_capacity(REMEMBERED + 1), copy: Vec::new() }
    }
}

impl RecentFrames {
    /// A frame may be shown again while it is within the newest one part in so many of the frame store's ring: one found near the ring's
    /// end would soon be lost, and the transition with it.
    const YOUNG_PART: usize = 16;

    /// The name of a frame with this content: of one written lately, or of a new one.
    ///
    /// # Panics
    /// When `replay` has no field that is made of frames, or the frame has not their size.
    pub fn name(&mut self, replay: &Replay<'_>, frame: &[u8]) -> Target {
        let frames = replay.frames().expect("a schema with frames has a frame store");
        let hash = XxHash3_128::oneshot(frame);
        let now = frames.written();
        let young = (frames.capacity() / Self::YOUNG_PART) as u64;
        if let Some(known) = self.known.get(&hash)
            && now.saturating_sub(known.number) <= young
            && frames.holds(known.name)
        {
            return known.name;
        }
        // It may change while it is copied, and what is remembered must be what is stored.
        self.copy.clear();
        self.copy.extend_from_slice(frame);
        let hash = XxHash3_128::oneshot(&self.copy);
        let name = replay.write_frame(&self.copy);
        if self.known.insert(hash, Known { name, number: now }).is_none() {
            self.order.push_back(hash);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        name
    }

    /// Forget everything: the replay was cleared.
    pub fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_environments_have_frames_enough_to_store_each_once() {
        assert_eq!(frames_for(1_000_000, 72, 4, 1), 1_062_500);
        // Each of 320 environments shows its newest four frames: all of them have to be young.
        let frames = frames_for(10_000, 320, 4, 3);
        assert!(frames / RecentFrames::YOUNG_PART >= 320 * (4 + 2), "{frames}");
        assert_eq!((frames_for(100, 1, 1, 1), frames_for(MAX_CAPACITY, 1, 1, 1)), (LEAST_FRAMES, MAX_CAPACITY));
    }
}
