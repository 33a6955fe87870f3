//! Remembers the frames that this process wrote lately, so that each is stored once.
//!
//! A process that adds stacked observations hands over every frame up to eight times. A frame is recognised by a
//! 128-bit hash of its content, whatever stream it came from and wherever an episode begins: what a transition shows
//! is exactly what was handed over, with repeated or blank frames at the start of an episode as the environment has
//! them.

use std::collections::{HashMap, VecDeque};

use twox_hash::XxHash3_128;

use super::{Name, Replay};
use crate::segment::layout::{LEAST_FRAMES, MAX_CAPACITY};

/// Frames remembered if nothing is known of who shows them: those of a few hundred environments.
const REMEMBERED: usize = 8_192;

/// Transitions for which a frame store has one frame more than one for each.
const TRANSITIONS_PER_SPARE_FRAME: usize = 16;

/// Size of the frame store of a replay of `capacity` transitions, from `environments` environments that show `stack`
/// frames at once: one frame for each transition, and spare ones for the first frames of episodes and for frames that
/// stay in use longer because they are shown again. A frame has to be remembered for as long as it is shown, or it is
/// stored again.
pub fn frames_for(capacity: usize, environments: usize, stack: usize, n_step: usize) -> usize {
    // When its row is written, the first frame of a transition is `stack + n_step - 1` steps old.
    let known = RecentFrames::YOUNG_PART * environments * (stack + n_step - 1);
    (capacity + capacity / TRANSITIONS_PER_SPARE_FRAME).max(known).clamp(LEAST_FRAMES, MAX_CAPACITY)
}

#[derive(Debug, Clone, Copy)]
struct Known {
    name: Name,
    /// Frames that were written before this one.
    number: u64,
}

/// The frames written lately.
pub struct RecentFrames {
    known: HashMap<u128, Known>,
    order: VecDeque<u128>,
    /// The most frames that are remembered.
    most: usize,
    copy: Vec<u8>,
}

impl Default for RecentFrames {
    /// Nothing yet, with room for 8,192 frames.
    fn default() -> Self {
        Self::with_room(REMEMBERED)
    }
}

impl RecentFrames {
    /// A frame is named again only while it is in the newest of so many equal parts of the frame store's ring: a
    /// frame near the ring's end would soon be overwritten, and the transition would be lost with it.
    const YOUNG_PART: usize = 16;

    /// Nothing yet, with room for all frames that so many `environments` show, of which each shows `stack` at once.
    pub fn of(environments: usize, stack: usize) -> Self {
        // A frame is shown in `stack` more steps. There may be as many first frames of episodes meanwhile.
        Self::with_room(REMEMBERED.max(2 * environments * (stack + 1)))
    }

    fn with_room(most: usize) -> Self {
        Self { known: HashMap::with_capacity(most + 1), order: VecDeque::with_capacity(most + 1), most, copy: Vec::new() }
    }

    /// The name of a frame with this content: of one written lately, or of a new one.
    ///
    /// # Panics
    /// When `replay` has no field that is made of frames, or the frame has not their size.
    pub fn name(&mut self, replay: &Replay<'_>, frame: &[u8]) -> Name {
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
        // The caller's bytes may change meanwhile, and the hash that is remembered must be that of the bytes that are
        // stored.
        self.copy.clear();
        self.copy.extend_from_slice(frame);
        let hash = XxHash3_128::oneshot(&self.copy);
        let name = replay.write_frame(&self.copy);
        if self.known.insert(hash, Known { name, number: now }).is_none() {
            self.order.push_back(hash);
        }
        if self.order.len() > self.most
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
