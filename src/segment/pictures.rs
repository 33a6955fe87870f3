//! The board of pictures: the visualizer shows what an agent does, any number of readers copy the newest.
//!
//! The protocol is that of every `Board`. A version is the picture's width and height, four notes, and its bytes.

use super::board::{Board, board_words};
use super::shared_words::{load_bytes, store_bytes};
use crate::sync::{AtomicU64, Ordering};

/// Numbers that travel with each picture: environment steps of the run, updates of the parameters that act, return of
/// the episode so far as bits, steps of the episode so far.
pub const PICTURE_NOTES: usize = 4;
/// Bit of the last note, set if the picture was made from the observation, because the environment draws none.
pub const DRAWN_AS_BARS: u64 = 1 << 63;
/// Where the notes begin, behind width and height, and the bytes: on the next cache line.
const NOTES_AT: usize = 2;
const BYTES_AT: usize = 7;

fn content_words(picture_bytes: usize) -> usize {
    BYTES_AT + picture_bytes.div_ceil(8)
}

/// A board of pictures of at most `picture_bytes` bytes.
#[derive(Clone, Copy)]
pub struct PictureBoard<'a> {
    board: Board<'a>,
    picture_bytes: usize,
}

/// What is known of a picture that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caption {
    /// Number of the picture, from 1 on.
    pub version: u64,
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The numbers that were shown with it, see [`PICTURE_NOTES`].
    pub notes: [u64; PICTURE_NOTES],
}

impl<'a> PictureBoard<'a> {
    /// A board on `words`, which hold zeros before the first picture.
    ///
    /// # Panics
    /// If there are too few words.
    pub fn new(words: &'a [AtomicU64], picture_bytes: usize) -> Self {
        Self { board: Board::new(words, content_words(picture_bytes)), picture_bytes }
    }

    /// Words that a board of such pictures takes; 0 without pictures.
    pub fn words_needed(picture_bytes: usize) -> usize {
        if picture_bytes == 0 { 0 } else { board_words(content_words(picture_bytes)) }
    }

    /// Pictures that have been shown.
    pub fn version(self) -> u64 {
        self.board.version()
    }

    /// Bytes of the largest picture.
    pub fn picture_bytes(self) -> usize {
        self.picture_bytes
    }

    /// Show a picture. Only for the one writer.
    ///
    /// # Panics
    /// If it is not `width` x `height` x 3 bytes, or is larger than the board.
    pub fn show(self, [width, height]: [usize; 2], notes: [u64; PICTURE_NOTES], bytes: &[u8]) -> u64 {
        assert!(bytes.len() == width * height * 3 && bytes.len() <= self.picture_bytes, "a picture of {width} x {height} does not fit");
        self.board.publish(|content| {
            for (word, value) in content.iter().zip([width as u64, height as u64].into_iter().chain(notes)) {
                word.store(value, Ordering::Relaxed);
            }
            store_bytes(&content[BYTES_AT..], bytes);
        })
    }

    /// What is known of the newest picture; `None` before the first, and if the words hold no picture.
    pub fn caption(self) -> Option<Caption> {
        self.look(|_, _| {})
    }

    /// The newest picture: `height` x `width` x 3 bytes, rows from the top, red, green and blue; `None` as for
    /// [`Self::caption`]. Whatever the words hold, what is returned has the size that its caption says.
    pub fn read(self) -> Option<(Caption, Vec<u8>)> {
        let mut bytes = Vec::new();
        let caption = self.look(|words, length_bytes| {
            bytes.resize(length_bytes, 0);
            load_bytes(words, &mut bytes);
        })?;
        Some((caption, bytes))
    }

    /// Read the newest picture, again if it changed meanwhile: `copy` gets the words with its bytes, and the number
    /// of bytes.
    fn look(self, mut copy: impl FnMut(&[AtomicU64], usize)) -> Option<Caption> {
        let (version, looked) = self.board.read(|content| {
            let [width, height] = [0, 1].map(|index| usize::try_from(content[index].load(Ordering::Relaxed)).unwrap_or(usize::MAX));
            let length_bytes = width.checked_mul(height)?.checked_mul(3).filter(|length| (1..=self.picture_bytes).contains(length))?;
            copy(&content[BYTES_AT..], length_bytes);
            let notes = std::array::from_fn(|index| content[NOTES_AT + index].load(Ordering::Relaxed));
            Some((width, height, notes))
        })?;
        let (width, height, notes) = looked?;
        Some(Caption { version, width, height, notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_a_mixture_of_pictures() {
        const SIDE: usize = if cfg!(miri) { 3 } else { 20 };
        let words: Vec<AtomicU64> = (0..PictureBoard::words_needed(SIDE * SIDE * 3)).map(|_| AtomicU64::new(0)).collect();
        let board = PictureBoard::new(&words, SIDE * SIDE * 3);
        assert_eq!(board.read(), None);
        let pictures = if cfg!(miri) { 12u64 } else { 20_000 };
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
        const FIRST_BUFFER: usize = 8;
        let words: Vec<AtomicU64> = (0..PictureBoard::words_needed(300)).map(|_| AtomicU64::new(u64::MAX)).collect();
        assert_eq!(PictureBoard::new(&words, 300).read(), None);
        for (size, expected) in [([10, 10], true), ([10, 11], false), ([0, 10], false), ([u64::MAX, 2], false)] {
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            words[0].store(3, Ordering::Relaxed);
            for (word, value) in words[FIRST_BUFFER..].iter().zip([3, size[0], size[1]]) {
                word.store(value, Ordering::Relaxed);
            }
            assert_eq!(PictureBoard::new(&words, 300).read().is_some(), expected, "{size:?}");
        }
    }
}
