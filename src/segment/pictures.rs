//! A board of pictures: one writer shows what an agent does, any number of readers copy the newest.
//!
//! Three buffers and the protocol of the board of parameters (see `parameters`): the writer fills the one that is two
//! versions old, never waits, and a mark before and after the copy tells a reader a whole picture from a mixture. The
//! writer is the visualizer, and another takes its place only once the kernel has confirmed its death.
//!
//! ```text
//! | newest version | buffer 0: version, width, height, note, note, ... bytes | buffer 1 | buffer 2 |
//! ```

use super::view::{load_bytes, store_bytes};
use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

const BUFFERS: usize = 3;
const HEADER_WORDS: usize = 8;
/// Numbers that travel with each picture: environment steps of the run, updates of the parameters that act, return of the
/// episode so far as bits, steps of the episode so far.
pub const PICTURE_NOTES: usize = 4;
/// In the last of them, set where a picture is made of what is observed, because the environment draws none.
pub const DRAWN_AS_BARS: u64 = 1 << 63;
/// Copies that a reader takes before it gives up: whoever writes does so some times a second.
const ATTEMPTS: usize = 100;

pub(super) fn board_words(picture_bytes: usize) -> usize {
    if picture_bytes == 0 { 0 } else { HEADER_WORDS + BUFFERS * buffer_words(picture_bytes) }
}

fn buffer_words(picture_bytes: usize) -> usize {
    (HEADER_WORDS + picture_bytes.div_ceil(8)).next_multiple_of(8)
}

/// A board of pictures of at most so many bytes.
#[derive(Clone, Copy)]
pub struct PictureBoard<'a> {
    words: &'a [AtomicU64],
    picture_bytes: usize,
}

/// What is said of a picture that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caption {
    /// How many were shown before it, and it.
    pub version: u64,
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// What whoever showed it said of it.
    pub notes: [u64; PICTURE_NOTES],
}

/// Where the bytes of a picture lie, while they may change.
struct PictureWords<'a> {
    words: &'a [AtomicU64],
    length_bytes: usize,
}

impl PictureWords<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length_bytes];
        load_bytes(self.words, &mut bytes);
        bytes
    }
}

impl<'a> PictureBoard<'a> {
    /// A board on `words`, which hold zeros before the first picture.
    ///
    /// # Panics
    /// When there are too few words.
    pub fn new(words: &'a [AtomicU64], picture_bytes: usize) -> Self {
        assert!(words.len() >= board_words(picture_bytes), "too few words for pictures of {picture_bytes} bytes");
        Self { words, picture_bytes }
    }

    /// Words that a board of such pictures takes.
    pub fn words_needed(picture_bytes: usize) -> usize {
        board_words(picture_bytes)
    }

    /// Pictures that have been shown.
    pub fn version(self) -> u64 {
        // Acquire: pairs with the Release in `show`, so that the buffer named by the version is filled.
        self.words[0].load(Ordering::Acquire)
    }

    /// Bytes of the largest picture.
    pub fn picture_bytes(self) -> usize {
        self.picture_bytes
    }

    fn buffer(self, version: u64) -> &'a [AtomicU64] {
        let length = buffer_words(self.picture_bytes);
        let index = usize::try_from(version % BUFFERS as u64).unwrap_or(0);
        &self.words[HEADER_WORDS + index * length..][..length]
    }

    /// Show a picture. Only for the one writer.
    ///
    /// # Panics
    /// When it is not `width` x `height` x 3 bytes, or larger than the board.
    pub fn show(self, [width, height]: [usize; 2], notes: [u64; PICTURE_NOTES], bytes: &[u8]) -> u64 {
        assert!(bytes.len() == width * height * 3 && bytes.len() <= self.picture_bytes, "a picture of {width} x {height} does not fit");
        let version = self.version() + 1;
        let buffer = self.buffer(version);
        // As in `parameters`: zero marks the buffer as being written, and the fence keeps what follows behind the mark.
        buffer[0].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        buffer[1].store(width as u64, Ordering::Relaxed);
        buffer[2].store(height as u64, Ordering::Relaxed);
        for (word, note) in buffer[3..].iter().zip(notes) {
            word.store(note, Ordering::Relaxed);
        }
        store_bytes(&buffer[HEADER_WORDS..], bytes);
        // Release: whoever sees the mark, or the version, sees the picture.
        buffer[0].store(version, Ordering::Release);
        self.words[0].store(version, Ordering::Release);
        version
    }

    /// What is said of the newest picture; `None` before the first, and when what is there is none.
    pub fn caption(self) -> Option<Caption> {
        self.look(|_| {})
    }

    /// The newest picture: `height` x `width` x 3 bytes, rows from the top, red, green and blue. `None` as for [`Self::caption`]: whatever the
    /// words hold, what comes back is a picture.
    pub fn read(self) -> Option<(Caption, Vec<u8>)> {
        let mut bytes = Vec::new();
        let caption = self.look(|words| bytes = words.to_bytes())?;
        Some((caption, bytes))
    }

    /// Look until the newest picture did not change meanwhile.
    fn look(self, mut copy: impl FnMut(PictureWords<'_>)) -> Option<Caption> {
        for _ in 0..ATTEMPTS {
            match self.version() {
                0 => return None,
                version => match self.try_look(version, &mut copy) {
                    Some(caption) => return Some(caption),
                    None => spin_loop(),
                },
            }
        }
        None
    }

    fn try_look(self, version: u64, copy: &mut impl FnMut(PictureWords<'_>)) -> Option<Caption> {
        let buffer = self.buffer(version);
        if buffer[0].load(Ordering::Acquire) != version {
            return None;
        }
        let [width, height] = [1, 2].map(|index| usize::try_from(buffer[index].load(Ordering::Relaxed)).unwrap_or(usize::MAX));
        let length_bytes = width.checked_mul(height)?.checked_mul(3).filter(|&length| length > 0 && length <= self.picture_bytes)?;
        let notes = std::array::from_fn(|index| buffer[3 + index].load(Ordering::Relaxed));
        copy(PictureWords { words: &buffer[HEADER_WORDS..], length_bytes });
        // Acquire fence: the mark is read again only after all bytes have been, so an unchanged mark proves that no store
        // of a later picture was among them.
        fence(Ordering::Acquire);
        (buffer[0].load(Ordering::Relaxed) == version).then_some(Caption { version, width, height, notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_a_mixture_of_pictures() {
        const SIDE: usize = 20;
        let words: Vec<AtomicU64> = (0..board_words(SIDE * SIDE * 3)).map(|_| AtomicU64::new(0)).collect();
        let board = PictureBoard::new(&words, SIDE * SIDE * 3);
        assert_eq!(board.read(), None);
        let pictures = 20_000u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for version in 1..=pictures {
                    // Of changing size, all bytes alike.
                    let height = 1 + version as usize % SIDE;
                    board.show([SIDE, height], [version; PICTURE_NOTES], &vec![version as u8; SIDE * height * 3]);
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < pictures {
                        let Some((seen, bytes)) = board.read() else { continue };
                        assert!(seen.version >= last, "version {} after {last}", seen.version);
                        assert_eq!((seen.notes, seen.height), ([seen.version; PICTURE_NOTES], 1 + seen.version as usize % SIDE));
                        assert!(bytes.iter().all(|&byte| byte == seen.version as u8), "a mixture in version {}", seen.version);
                        last = seen.version;
                    }
                });
            }
        });
    }

    #[test]
    fn garbage_is_no_picture() {
        let words: Vec<AtomicU64> = (0..board_words(300)).map(|_| AtomicU64::new(u64::MAX)).collect();
        assert_eq!(PictureBoard::new(&words, 300).read(), None);
        for (size, expected) in [([10, 10], true), ([10, 11], false), ([0, 10], false), ([u64::MAX, 2], false)] {
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            words[0].store(3, Ordering::Relaxed);
            for (word, value) in words[HEADER_WORDS..].iter().zip([3, size[0], size[1]]) {
                word.store(value, Ordering::Relaxed);
            }
            assert_eq!(PictureBoard::new(&words, 300).read().is_some(), expected, "{size:?}");
        }
    }
}
