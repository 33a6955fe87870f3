//! A board: one writer publishes versions, any number of readers copy the newest.
//!
//! Three buffers: the writer fills the one that is two versions old, so a reader has the time of two publications to
//! copy before it must start again, never blocks, and never sees a mixture. The writer never waits.
//!
//! **One writer at a time**, or two could fill one buffer and both mark it as whole. On the boards of the learners
//! the writer is the leader, or, if two learners learn a half of the algorithm each, the learner of that half.
//! Another learner becomes the writer only once the kernel has confirmed the death of the one before, even if that
//! one stands still in the middle of a publication (see `membership`). On a board of statistics, and on the board of
//! pictures, the writer is the process in the slot, which is given away only once its owner is dead.
//!
//! **A writer that dies in the middle** leaves the version word where it was, or moves it after the whole buffer. In
//! the first case no reader looks at the buffer, whatever its mark says, and the next writer fills it again under the
//! same number.
//!
//! ```text
//! | newest version | buffer 0: version, content | buffer 1 | buffer 2 |
//! ```

use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

const BUFFERS: usize = 3;
/// Words before the first buffer: a cache line, which the version has for itself.
const HEADER_WORDS: usize = 8;
/// Copies that a reader tries before it gives up. A copy fails only if two publications came meanwhile. If all copies
/// fail, the segment is damaged, and a process that saves what is left of a run must not wait for that to change.
const ATTEMPTS: usize = 1_000;

/// A board whose versions have `content_words` words each.
#[derive(Clone, Copy)]
pub(super) struct Board<'a> {
    words: &'a [AtomicU64],
    content_words: usize,
}

/// Words that a board of `content_words` takes.
pub(super) const fn board_words(content_words: usize) -> usize {
    HEADER_WORDS + BUFFERS * buffer_words(content_words)
}

const fn buffer_words(content_words: usize) -> usize {
    (1 + content_words).next_multiple_of(8)
}

impl<'a> Board<'a> {
    /// A board on `words`, which hold zeros before the first publication.
    ///
    /// # Panics
    /// If there are too few words.
    pub(super) fn new(words: &'a [AtomicU64], content_words: usize) -> Self {
        let needed = board_words(content_words);
        assert!(words.len() >= needed, "a board of {content_words} words takes {needed}, and there are {}", words.len());
        Self { words, content_words }
    }

    /// Version published last; 0 before the first.
    pub(super) fn version(self) -> u64 {
        // Acquire: pairs with the Release in `publish`, so that the buffer named by the version is filled.
        self.words[0].load(Ordering::Acquire)
    }

    fn buffer(self, version: u64) -> &'a [AtomicU64] {
        let length = buffer_words(self.content_words);
        let index = usize::try_from(version % BUFFERS as u64).unwrap_or(0);
        &self.words[HEADER_WORDS + index * length..][..length]
    }

    /// Publish the content that `write` writes as the next version, and return its number. Only for the one writer.
    pub(super) fn publish(self, write: impl FnOnce(&[AtomicU64])) -> u64 {
        // What a dead writer stored last is seen here: its death was confirmed before this process became the writer.
        let version = self.version() + 1;
        let buffer = self.buffer(version);
        // Zero marks the buffer as being written. The Release fence keeps the stores below from becoming visible
        // before the mark: a reader that saw any of them reads a mark that is not its version afterwards.
        buffer[0].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        write(&buffer[1..]);
        // Release: a reader that sees the mark, or the version, sees the content.
        buffer[0].store(version, Ordering::Release);
        self.words[0].store(version, Ordering::Release);
        version
    }

    /// Let the next publication be `version`. Only on a board that nobody uses yet.
    pub(super) fn set_next_version(self, version: u64) {
        self.words[0].store(version.saturating_sub(1), Ordering::Relaxed);
    }

    /// The newest version, and what `copy` makes of its content; `None` before the first, and if none is ever whole.
    pub(super) fn read<T>(self, mut copy: impl FnMut(&[AtomicU64]) -> T) -> Option<(u64, T)> {
        for _ in 0..ATTEMPTS {
            let version = self.version();
            if version == 0 {
                return None;
            }
            if let Some(copied) = self.try_read(version, &mut copy) {
                return Some((version, copied));
            }
            spin_loop();
        }
        None
    }

    /// What `copy` makes of the content of `version`; `None` if that is no longer there, or was overwritten meanwhile.
    fn try_read<T>(self, version: u64, copy: impl FnOnce(&[AtomicU64]) -> T) -> Option<T> {
        let buffer = self.buffer(version);
        if buffer[0].load(Ordering::Acquire) != version {
            return None;
        }
        let copied = copy(&buffer[1..]);
        // Acquire fence: the mark is read again only after all of the content has been, so an unchanged mark proves
        // that no store of a later version was among it.
        fence(Ordering::Acquire);
        (buffer[0].load(Ordering::Relaxed) == version).then_some(copied)
    }
}
