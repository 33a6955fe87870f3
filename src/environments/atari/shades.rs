//! Screens in shades of grey, from the numbers of their colours.
//!
//! ALE looks up the shade of every pixel, which takes a tenth of a step's time for its two screens. Most rows of a screen look like the
//! one above them, and need no such look. Which shade a colour has is asked of ALE itself, when the colour is first seen: it depends on
//! the television for which a game was made.

/// The shades of the colours that were seen.
pub(super) struct Shades {
    of: [Option<u8>; 256],
}

impl Shades {
    /// The shade of no colour is known yet.
    pub(super) fn new() -> Self {
        Self { of: [None; 256] }
    }

    /// Remember the shades of all colours on a screen, which is `grey` in shades.
    pub(super) fn learn(&mut self, colours: &[u8], grey: &[u8]) {
        for (&colour, &shade) in colours.iter().zip(grey) {
            self.of[usize::from(colour)] = Some(shade);
        }
    }

    /// Write a screen of `colours`, with so many `columns`, in shades of grey. `false` if a colour is not known yet; `grey` is then
    /// of no use.
    pub(super) fn write(&self, colours: &[u8], columns: usize, grey: &mut [u8]) -> bool {
        let mut above: Option<(&[u8], &mut [u8])> = None;
        for (colours, grey) in colours.chunks_exact(columns).zip(grey.chunks_exact_mut(columns)) {
            match above {
                Some((same, ref shades)) if same == colours => grey.copy_from_slice(shades),
                _ => {
                    for (shade, &colour) in grey.iter_mut().zip(colours) {
                        let Some(known) = self.of[usize::from(colour)] else { return false };
                        *shade = known;
                    }
                }
            }
            above = Some((colours, grey));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_has_the_shade_of_its_colour_in_rows_that_repeat_and_in_others() {
        let mut shades = Shades::new();
        shades.learn(&[0, 14, 200, 255], &[0, 77, 31, 9]);
        let colours = [0, 14, 200, 0, 14, 200, 0, 14, 255, 0, 14, 200];
        let mut grey = [1; 12];
        assert!(shades.write(&colours, 3, &mut grey));
        assert_eq!(grey, [0, 77, 31, 0, 77, 31, 0, 77, 9, 0, 77, 31]);
    }

    #[test]
    fn a_colour_that_was_never_seen_is_told_until_it_is_learned() {
        let mut shades = Shades::new();
        let (colours, mut grey) = ([4, 4, 4, 6], [0; 4]);
        shades.learn(&colours[..2], &[50, 50]);
        assert!(!shades.write(&colours, 2, &mut grey));
        shades.learn(&colours, &[50, 50, 50, 60]);
        assert!(shades.write(&colours, 2, &mut grey));
        assert_eq!(grey, [50, 50, 50, 60]);
    }
}
