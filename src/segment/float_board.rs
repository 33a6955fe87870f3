//! Boards of 32-bit floats: parameters, the learners' state, and statistics of what was seen.
//!
//! The protocol is that of every `Board`. A version is four notes and the values, which begin on a cache line.

use super::board::{Board, board_words};
use super::shared_words::{load_f32, store_f32, words_for};
use crate::sync::{AtomicU64, Ordering};

/// Words that travel with each version.
pub const NOTES: usize = 4;
/// Where the values begin: behind the mark and the notes, at the next cache line.
const VALUES_AT: usize = 7;

/// A board of `values` 32-bit floats.
#[derive(Clone, Copy)]
pub struct FloatBoard<'a> {
    board: Board<'a>,
    values: usize,
}

impl<'a> FloatBoard<'a> {
    /// A board on `words`, which hold zeros before the first publication.
    pub fn new(words: &'a [AtomicU64], values: usize) -> Self {
        Self { board: Board::new(words, VALUES_AT + words_for(values)), values }
    }

    /// Words that a board of `values` takes.
    pub fn words_needed(values: usize) -> usize {
        board_words(VALUES_AT + words_for(values))
    }

    /// Version published last; 0 before the first.
    pub fn version(self) -> u64 {
        self.board.version()
    }

    /// Values per version.
    pub fn len(self) -> usize {
        self.values
    }

    /// Whether it holds no values.
    pub fn is_empty(self) -> bool {
        self.values == 0
    }

    /// Publish `parts`, one after the other and each from an even index on, as the next version, and return its
    /// number. Only for the one writer of the board: on the learners' boards, the learner that leads.
    pub fn publish(self, parts: &[&[f32]], notes: [u64; NOTES]) -> u64 {
        self.board.publish(|content| {
            for (word, note) in content.iter().zip(notes) {
                word.store(note, Ordering::Relaxed);
            }
            let mut at = VALUES_AT;
            for part in parts {
                store_f32(&content[at..], part);
                at += words_for(part.len());
            }
            assert_eq!(at - VALUES_AT, words_for(self.values), "a version holds {} values", self.values);
        })
    }

    /// Put back what was once published as `version`. Only on a board that nobody uses yet.
    pub fn restore(self, version: u64, values: &[f32], notes: [u64; NOTES]) {
        self.board.set_next_version(version);
        self.publish(&[values], notes);
    }

    /// Copy the newest version into `values` and return its number and its notes; `None` before the first
    /// publication, and if a damaged segment has no whole version.
    pub fn read(self, values: &mut [f32]) -> Option<(u64, [u64; NOTES])> {
        assert_eq!(values.len(), self.values, "a version holds {} values", self.values);
        self.board.read(|content| {
            load_f32(&content[VALUES_AT..], values);
            std::array::from_fn(|index| content[index].load(Ordering::Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_a_mixture_of_versions() {
        let values = if cfg!(miri) { 5 } else { 501 };
        let words: Vec<AtomicU64> = (0..FloatBoard::words_needed(values)).map(|_| AtomicU64::new(0)).collect();
        let board = FloatBoard::new(&words, values);
        assert_eq!(board.read(&mut vec![0.0; values]), None);
        let publications = if cfg!(miri) { 12u16 } else { 20_000 };
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
