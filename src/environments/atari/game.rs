//! Games as a learner is shown them: frames that are skipped, what is left of two screens, a start that differs from game to game.
//!
//! Equal to Gymnasium's `AtariPreprocessing` byte for byte where the button is not pressed at the start, its last frames included:
//! when a game ends in the midst of a step, the screens of that step are not looked at.

use super::area::AreaResize;
use super::emulator::{Emulator, Ending, Input};
use super::options::{FRAME_SKIP, Options};
use super::starts::Starts;

/// A step of a game.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Played {
    /// Points made in it.
    pub(super) points: f64,
    /// Whether it was the last.
    pub(super) ending: Ending,
}

/// Games on one emulator, one after the other.
pub(super) struct Game<E> {
    emulator: E,
    noop_max: u32,
    /// Whether the button is pressed first.
    fires: bool,
    /// None before the first start.
    starts: Option<Starts>,
    /// The brighter pixels of the last two screens: games that show more sprites than fit show some only in every other frame.
    brighter: Vec<u8>,
    /// The screen before the last one.
    earlier: Vec<u8>,
    resize: AreaResize,
}

impl<E: Emulator> Game<E> {
    pub(super) fn new(emulator: E, options: &Options) -> Self {
        let [rows, columns] = emulator.screen_size();
        Self {
            noop_max: options.noop_max,
            fires: options.fire_reset && emulator.has_fire(),
            starts: None,
            brighter: vec![0; rows * columns],
            earlier: vec![0; rows * columns],
            resize: AreaResize::new(rows, columns, options.screen_size),
            emulator,
        }
    }

    /// Start a game and show its first frame. A seed restarts all random numbers; without one they go on.
    pub(super) fn reset(&mut self, seed: Option<u64>, frame: &mut [u8]) -> Result<(), E::Fault> {
        self.begin(seed)?;
        let waits = self.starts.as_mut().map_or(0, |starts| starts.draw(self.noop_max));
        for _ in 0..waits {
            self.emulator.frame(Input::Nothing)?;
            if self.emulator.ending()?.is_over() {
                self.begin(seed)?;
            }
        }
        self.look()?;
        if self.fires && self.play(Input::Fire)?.ending.is_over() {
            self.begin(None)?;
            self.look()?;
        }
        self.show(frame);
        Ok(())
    }

    /// Hold `input` for as many frames as a step has, or until the game ends, and show what follows.
    pub(super) fn step(&mut self, input: Input, frame: &mut [u8]) -> Result<Played, E::Fault> {
        let played = self.play(input)?;
        self.show(frame);
        Ok(played)
    }

    /// Lives that are left.
    pub(super) fn lives(&self) -> Result<u32, E::Fault> {
        self.emulator.lives()
    }

    /// What the last frame was made of: rows x columns in shades of grey.
    pub(super) fn screen(&self) -> (&[u8], [usize; 2]) {
        (&self.brighter, self.emulator.screen_size())
    }

    /// A fresh machine for a seed, and a fresh game.
    fn begin(&mut self, seed: Option<u64>) -> Result<(), E::Fault> {
        if let Some(seed) = seed.or_else(|| self.starts.is_none().then(rand::random)) {
            let (starts, of_the_emulator) = Starts::from_seed(seed);
            self.emulator.load(of_the_emulator)?;
            self.starts = Some(starts);
        }
        self.emulator.start()
    }

    fn play(&mut self, input: Input) -> Result<Played, E::Fault> {
        let mut played = Played { points: 0.0, ending: Ending::default() };
        for frame in 1..=FRAME_SKIP {
            played.points += self.emulator.frame(input)?;
            played.ending = self.emulator.ending()?;
            if played.ending.is_over() {
                break;
            }
            if frame == FRAME_SKIP - 1 {
                self.emulator.show(&mut self.earlier)?;
            } else if frame == FRAME_SKIP {
                self.emulator.show(&mut self.brighter)?;
            }
        }
        Ok(played)
    }

    /// Take the screen as it is, without one before it.
    fn look(&mut self) -> Result<(), E::Fault> {
        self.earlier.fill(0);
        self.emulator.show(&mut self.brighter)
    }

    fn show(&mut self, frame: &mut [u8]) {
        for (brighter, earlier) in self.brighter.iter_mut().zip(&self.earlier) {
            *brighter = (*brighter).max(*earlier);
        }
        self.resize.shrink(&self.brighter, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Call, Scripted};
    use super::*;

    const FRAME: usize = 84 * 84;

    /// Starts without waiting and without the button.
    fn plain() -> Options {
        Options { noop_max: 0, fire_reset: false, ..Options::default() }
    }

    fn started(emulator: Scripted, options: &Options) -> (Game<Scripted>, Vec<u8>) {
        let mut game = Game::new(emulator, options);
        let mut frame = vec![0; FRAME];
        let Ok(()) = game.reset(Some(1), &mut frame);
        (game, frame)
    }

    fn frames(calls: &[Call], input: Input) -> usize {
        calls.iter().filter(|call| **call == Call::Frame(input)).count()
    }

    #[test]
    fn a_step_holds_its_action_for_four_frames_and_adds_their_points() {
        let emulator = Scripted::default();
        let calls = emulator.calls.clone();
        let (mut game, mut frame) = started(emulator, &plain());
        calls.borrow_mut().clear();
        let Ok(played) = game.step(Input::Action(2), &mut frame);
        assert_eq!(played, Played { points: 4.0, ending: Ending::default() });
        assert_eq!(*calls.borrow(), [Call::Frame(Input::Action(2)); 4]);
    }

    #[test]
    fn a_frame_is_the_brighter_of_the_last_two_screens() {
        let (mut game, mut frame) = started(Scripted::default(), &plain());
        assert_eq!(frame, [Scripted::shade(0); FRAME]);
        let Ok(_) = game.step(Input::Nothing, &mut frame);
        assert!(Scripted::shade(4) > Scripted::shade(3));
        assert_eq!(frame, [Scripted::shade(4); FRAME]);
    }

    #[test]
    fn a_game_that_ends_in_the_midst_of_a_step_shows_what_was_seen_before() {
        for ends_after in 5..=8 {
            let (mut game, mut frame) = started(Scripted { terminates_at: ends_after, ..Scripted::default() }, &plain());
            let Ok(_) = game.step(Input::Nothing, &mut frame);
            let Ok(played) = game.step(Input::Nothing, &mut frame);
            assert_eq!(played, Played { points: f64::from(ends_after) - 4.0, ending: Ending { terminated: true, truncated: false } });
            // The third screen of a step is looked at if the game goes on after it; it is darker here than the one before.
            assert_eq!(frame, [Scripted::shade(4); FRAME], "after {ends_after} frames");
        }
    }

    #[test]
    fn a_game_waits_as_many_frames_as_numpy_draws_and_then_presses_the_button() {
        let emulator = Scripted::default();
        let calls = emulator.calls.clone();
        let (mut game, mut frame) = started(emulator, &Options::default());
        let (mut starts, of_the_emulator) = Starts::from_seed(1);
        let waited = starts.draw(30) as usize;
        assert_eq!(calls.borrow()[..2], [Call::Load(of_the_emulator), Call::Start]);
        assert_eq!(calls.borrow()[2..2 + waited], vec![Call::Frame(Input::Nothing); waited]);
        assert_eq!(calls.borrow()[2 + waited..], [Call::Frame(Input::Fire); FRAME_SKIP as usize]);

        calls.borrow_mut().clear();
        let Ok(()) = game.reset(None, &mut frame);
        assert_eq!(calls.borrow()[0], Call::Start, "without a seed the same machine goes on");
        assert_eq!(frames(&calls.borrow(), Input::Nothing), starts.draw(30) as usize, "and so do the random numbers");
    }

    #[test]
    fn a_game_that_ends_while_it_waits_or_fires_is_started_again() {
        // Half a second of frames does not fit into a game of three.
        let emulator = Scripted { truncates_at: 3, ..Scripted::default() };
        let calls = emulator.calls.clone();
        let (mut game, mut frame) = started(emulator, &Options { fire_reset: false, ..Options::default() });
        let waited = Starts::from_seed(1).0.draw(30);
        let seeded = calls.borrow().iter().filter(|call| matches!(call, Call::Load(_))).count();
        assert_eq!(seeded as u32, 1 + waited / 3, "a start that was asked for with a seed is repeated with it, as in Gymnasium");
        assert_eq!(frames(&calls.borrow(), Input::Nothing) as u32, waited);

        let (fired, first) = started(Scripted { terminates_at: 3, ..Scripted::default() }, &Options { noop_max: 0, ..Options::default() });
        assert_eq!(fired.emulator.calls.borrow().last(), Some(&Call::Start));
        assert_eq!(first, [Scripted::shade(0); FRAME]);
        let Ok(()) = game.reset(None, &mut frame);
    }

    #[test]
    fn a_game_that_was_never_seeded_takes_random_numbers_of_its_own() {
        let seeds: Vec<Call> = (0..2)
            .map(|_| {
                let mut game = Game::new(Scripted::default(), &plain());
                let Ok(()) = game.reset(None, &mut vec![0; FRAME]);
                game.emulator.calls.borrow()[0]
            })
            .collect();
        assert_ne!(seeds[0], seeds[1]);
    }
}
