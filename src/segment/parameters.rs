//! A board of parameters: one writer publishes versions, any number of readers copy the newest.
//!
//! Three buffers: the writer fills the one that is two versions old, so a reader has the time of two publications to
//! copy before it must start again, never blocks, and never sees a mixture. The writer never waits.
//!
//! **One writer at a time**, or two could fill one buffer and both mark it as whole. On the boards of the learners it
//! is the leader, and another learner becomes the leader only once the kernel has confirmed the death of the one
//! before, even if that one stands still in the middle of a publication (see `membership`). On a board of statistics it
//! is the process in the slot, which is given away only once its owner is dead.
//!
//! **A writer that dies in the middle** leaves the version word where it was, or moves it after the whole buffer. In
//! the first case no reader looks at the buffer, whatever its mark says, and the next writer fills it again under the
//! same number.
//!
//! ```text
//! | newest version | buffer 0: version, note, note, ... values | buffer 1 | buffer 2 |
//! ```

use super::view::{load_f32, store_f32, words_for};
use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

const BUFFERS: usize = 3;
const HEADER_WORDS: usize = 8;
/// Words that travel with each version.
pub const NOTES: usize = 4;

pub(super) fn board_words(values: usize) -> usize {
    HEADER_WORDS + BUFFERS * buffer_words(values)
}

fn buffer_words(values: usize) -> usize {
    (HEADER_WORDS + words_for(values)).next_multiple_of(8)
}

/// A board of `values` 32-bit floats.
#[derive(Clone, Copy)]
pub struct ParameterBoard<'a> {
    words: &'a [AtomicU64],
    values: usize,
}

impl<'a> ParameterBoard<'a> {
    /// A board on `words`, which hold zeros before the first publication.
    pub fn new(words: &'a [AtomicU64], values: usize) -> Self {
        assert!(words.len() >= board_words(values), "a board of {values} values takes {} words", board_words(values));
        Self { words, values }
    }

    /// Words that a board of `values` takes.
    pub fn words_needed(values: usize) -> usize {
        board_words(values)
    }

    /// Version published last; 0 before the first.
    pub fn version(self) -> u64 {
        // Acquire: pairs with the Release in `publish`, so that the buffer named by the version is filled.
        self.words[0].load(Ordering::Acquire)
    }

    /// Values per version.
    pub fn len(self) -> usize {
        self.values
    }

    /// Whether it holds no values.
    pub fn is_empty(self) -> bool {
        self.values == 0
    }

    fn buffer(self, version: u64) -> &'a [AtomicU64] {
        let length = buffer_words(self.values);
        let index = usize::try_from(version % BUFFERS as u64).unwrap_or(0);
        &self.words[HEADER_WORDS + index * length..][..length]
    }

    /// Publish `parts`, one after the other and each from an even index on, as the next version, and return it. Only
    /// for the one writer of the board: of the learners' boards, the learner that leads.
    pub fn publish(self, parts: &[&[f32]], notes: [u64; NOTES]) -> u64 {
        // What a dead writer stored last is seen here: its death was confirmed before this process became the writer.
        let version = self.version() + 1;
        let buffer = self.buffer(version);
        // Zero marks the buffer as being written. The Release fence keeps the stores below from becoming visible
        // before the mark: a reader that saw any of them reads a mark that is not its version afterwards.
        buffer[0].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, note) in buffer[1..].iter().zip(notes) {
            word.store(note, Ordering::Relaxed);
        }
        let mut at = HEADER_WORDS;
        for part in parts {
            store_f32(&buffer[at..], part);
            at += words_for(part.len());
        }
        assert_eq!(at - HEADER_WORDS, words_for(self.values), "a version holds {} values", self.values);
        // Release: whoever sees the mark, or the version, sees the values.
        buffer[0].store(version, Ordering::Release);
        self.words[0].store(version, Ordering::Release);
        version
    }

    /// Put back what was once published as `version`. Only on a board that nobody uses yet.
    pub fn restore(self, version: u64, values: &[f32], notes: [u64; NOTES]) {
        self.words[0].store(version.saturating_sub(1), Ordering::Relaxed);
        self.publish(&[values], notes);
    }

    /// Copy the newest version into `values` and return it with its notes; `None` before the first publication.
    pub fn read(self, values: &mut [f32]) -> Option<(u64, [u64; NOTES])> {
        assert_eq!(values.len(), self.values, "a version holds {} values", self.values);
        loop {
            let version = self.version();
            if version == 0 {
                return None;
            }
            if let Some(notes) = self.try_read(version, values) {
                return Some((version, notes));
            }
            spin_loop();
        }
    }

    fn try_read(self, version: u64, values: &mut [f32]) -> Option<[u64; NOTES]> {
        let buffer = self.buffer(version);
        if buffer[0].load(Ordering::Acquire) != version {
            return None;
        }
        let notes = std::array::from_fn(|index| buffer[1 + index].load(Ordering::Relaxed));
        load_f32(&buffer[HEADER_WORDS..], values);
        // Acquire fence: the mark is read again only after all values have been, so an unchanged mark proves that no
        // store of a later version was among them.
        fence(Ordering::Acquire);
        (buffer[0].load(Ordering::Relaxed) == version).then_some(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_a_mixture_of_versions() {
        let values = 501;
        let words: Vec<AtomicU64> = (0..board_words(values)).map(|_| AtomicU64::new(0)).collect();
        let board = ParameterBoard::new(&words, values);
        assert_eq!(board.read(&mut vec![0.0; values]), None);
        let publications = 20_000u16;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for version in 1..=publications {
                    let published = board.publish(&[&vec![f32::from(version); values]], [u64::from(version); NOTES]);
                    assert_eq!(published, u64::from(version));
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut copy = vec![0.0; values];
                    let mut last = 0;
                    while last < u64::from(publications) {
                        let Some((version, notes)) = board.read(&mut copy) else { continue };
                        assert!(version >= last, "version {version} after {last}");
                        assert_eq!(notes, [version; NOTES]);
                        assert!(copy.iter().all(|&value| value == version as f32), "a mixture in version {version}");
                        last = version;
                    }
                });
            }
        });
    }
}
