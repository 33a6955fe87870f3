//! Games as environments: what a learner is shown of them, and what is played to tell how good it is.
//!
//! In training a learner may see less than the game: rewards within -1 and 1, and episodes that end with a life. What the game then
//! came to is told by [`outcome`](Environment::outcome). An evaluation plays whole games for their points.

use super::emulator::{Emulator, Input};
use super::game::Game;
use super::options::Options;
use super::spec;
use crate::environments::drawing;
use crate::environments::progress::Progress;
use crate::environments::request::Purpose;
use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, Moment, Outcome, Picture, Step};
use crate::values::{Value, ValuesMut};

/// How many rows and columns of a picture a pixel of the screen has: on a television it was wider than high.
const PICTURE_SCALE: [usize; 2] = [2, 3];

/// A game of the Atari 2600.
pub(super) struct Atari<E> {
    spec: EnvironmentSpec,
    game: Game<E>,
    clips_rewards: bool,
    ends_with_a_life: bool,
    progress: Progress,
    /// Whether the last episode ended with a life, and the game goes on.
    goes_on: bool,
    lives: u32,
    /// Points and steps of the game so far.
    score: f64,
    length_steps: u32,
    outcome: Outcome,
}

impl<E: Emulator> Atari<E> {
    pub(super) fn new(id: &str, emulator: E, options: &Options, purpose: Purpose) -> Self {
        let training = purpose == Purpose::Training;
        Self {
            spec: spec(id, emulator.actions(), options),
            game: Game::new(emulator, options),
            clips_rewards: training && options.clip_rewards,
            ends_with_a_life: training && options.terminal_on_life_loss,
            progress: Progress::BeforeFirstReset,
            goes_on: false,
            lives: 0,
            score: 0.0,
            length_steps: 0,
            outcome: Outcome::Unfinished,
        }
    }

    /// The next life of the same game, after a step without an action as with Stable-Baselines3. `false` if the game ended in it.
    fn next_life(&mut self, frame: &mut [u8]) -> Result<bool, E::Fault> {
        let played = self.game.step(Input::Nothing, frame)?;
        self.score += played.points;
        Ok(!played.ending.is_over())
    }

    fn next_game(&mut self, seed: Option<u64>, frame: &mut [u8]) -> Result<(), E::Fault> {
        self.score = 0.0;
        self.length_steps = 0;
        self.game.reset(seed, frame)
    }

    fn start(&mut self, seed: Option<u64>, frame: &mut [u8]) -> Result<(), E::Fault> {
        let goes_on = std::mem::take(&mut self.goes_on) && seed.is_none();
        if !(goes_on && self.next_life(frame)?) {
            self.next_game(seed, frame)?;
        }
        self.lives = self.game.lives()?;
        Ok(())
    }

    fn play(&mut self, action: usize, frame: &mut [u8]) -> Result<Step, E::Fault> {
        let played = self.game.step(Input::Action(action), frame)?;
        self.score += played.points;
        self.length_steps += 1;
        let over = played.ending.is_over();
        let lost_a_life = self.ends_with_a_life && {
            let before = std::mem::replace(&mut self.lives, self.game.lives()?);
            // Some games have no life left for a while before they are over; that is their end, not this.
            (1..before).contains(&self.lives)
        };
        self.goes_on = lost_a_life && !over;
        self.outcome = if over { Outcome::Finished { score: self.score, length_steps: self.length_steps } } else { Outcome::Unfinished };
        Ok(Step {
            reward: if self.clips_rewards { played.points.clamp(-1.0, 1.0) } else { played.points },
            terminated: played.ending.terminated || lost_a_life,
            truncated: played.ending.truncated,
        })
    }
}

impl<E: Emulator> Environment for Atari<E> {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        // Only a reset that succeeds makes the environment usable again.
        self.progress = Progress::BeforeFirstReset;
        self.start(seed, u8::of(observation)).map_err(|fault| E::error(fault, &self.spec.id, Moment::Reset))?;
        self.progress = Progress::Running { elapsed_steps: 0 };
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let elapsed_steps = self.progress.next_step(&self.spec)?;
        let index = match action {
            Action::Discrete(index) if self.spec.action.accepts(action) => index,
            _ => return Err(self.spec.invalid_action(action)),
        };
        self.progress = Progress::Ended;
        let step = self.play(index, u8::of(observation)).map_err(|fault| E::error(fault, &self.spec.id, Moment::Step(elapsed_steps)))?;
        self.progress = Progress::after_step(elapsed_steps, step.ended());
        Ok(step)
    }

    /// The screen from which the last frame was made, before it was shrunk.
    fn picture(&self) -> Result<Picture, EnvironmentError> {
        let (shades, [rows, columns]) = self.game.screen();
        Ok(drawing::screen(shades, [rows, columns], PICTURE_SCALE))
    }

    fn outcome(&self) -> Outcome {
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Call, LIVES, Scripted};
    use super::*;
    use crate::environments::vector::Actions;
    use crate::environments::{ObservationOptions, VectorEnvironment, delayed};
    use crate::values::ValueBuffer;

    /// Games of three lives that end with frame 40, of 3 points per frame, without a wait at their start.
    fn emulator() -> Scripted {
        Scripted { costs_a_life: vec![10, 21], terminates_at: 40, points_per_frame: 3.0, ..Scripted::default() }
    }

    fn options() -> Options {
        Options { noop_max: 0, fire_reset: false, terminal_on_life_loss: true, ..Options::default() }
    }

    fn atari(options: &Options, purpose: Purpose) -> Atari<Scripted> {
        Atari::new("atari:Scripted", emulator(), options, purpose)
    }

    /// Steps until the end of the first game, resets included, and what each returned.
    fn episodes(environment: &mut dyn Environment) -> Vec<Vec<Step>> {
        let mut observation = environment.spec().observation.zeros();
        let mut episodes = Vec::new();
        environment.reset(Some(1), observation.values_mut()).unwrap();
        loop {
            let mut steps = Vec::new();
            while steps.last().is_none_or(|step: &Step| !step.ended()) {
                steps.push(environment.step(Action::Discrete(1), observation.values_mut()).unwrap());
            }
            episodes.push(steps);
            assert!(episodes.len() < 100, "no game was told to be over");
            if matches!(environment.outcome(), Outcome::Finished { .. }) {
                return episodes;
            }
            environment.reset(None, observation.values_mut()).unwrap();
        }
    }

    #[test]
    fn an_evaluation_plays_whole_games_for_their_points() {
        let mut environment = atari(&options(), Purpose::Evaluation);
        let played = episodes(&mut environment);
        assert_eq!(played.len(), 1, "lives end no episode");
        assert_eq!(played[0].len(), 10);
        assert!(played[0].iter().all(|step| step.reward == 12.0));
        assert_eq!(environment.outcome(), Outcome::Finished { score: 120.0, length_steps: 10 });
    }

    #[test]
    fn in_training_rewards_are_clipped_and_an_episode_ends_with_a_life_while_the_game_goes_on() {
        let mut environment = atari(&options(), Purpose::Training);
        let played = episodes(&mut environment);
        // The life is lost in frames 10 and 21; a step without an action begins the next one.
        assert_eq!(played.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 3]);
        for steps in &played {
            assert!(steps.iter().all(|step| step.reward == 1.0 && !step.truncated));
            assert!(steps.iter().rev().skip(1).all(|step| !step.terminated) && steps.last().unwrap().terminated);
        }
        assert_eq!(environment.outcome(), Outcome::Finished { score: 120.0, length_steps: 8 }, "all points, and all steps of the learner");
    }

    #[test]
    fn what_training_changes_can_be_switched_off() {
        let options = Options { clip_rewards: false, terminal_on_life_loss: false, ..options() };
        let training = episodes(&mut atari(&options, Purpose::Training));
        assert_eq!(training, episodes(&mut atari(&options, Purpose::Evaluation)));
    }

    #[test]
    fn a_seed_starts_a_new_game_even_after_a_lost_life() {
        let mut environment = atari(&options(), Purpose::Training);
        let mut observation = environment.spec().observation.zeros();
        environment.reset(Some(1), observation.values_mut()).unwrap();
        while !environment.step(Action::Discrete(0), observation.values_mut()).unwrap().ended() {}
        assert_eq!(environment.game.lives(), Ok(LIVES - 1));
        environment.reset(Some(2), observation.values_mut()).unwrap();
        assert_eq!(environment.game.lives(), Ok(LIVES));
        assert_eq!((environment.score, environment.length_steps), (0.0, 0));
    }

    #[test]
    fn a_reset_in_the_midst_of_a_life_starts_a_new_game() {
        let emulator = emulator();
        let calls = emulator.calls.clone();
        let mut environment = Atari::new("atari:Scripted", emulator, &options(), Purpose::Training);
        let mut observation = environment.spec().observation.zeros();
        environment.reset(Some(1), observation.values_mut()).unwrap();
        environment.step(Action::Discrete(0), observation.values_mut()).unwrap();
        environment.reset(None, observation.values_mut()).unwrap();
        assert_eq!(calls.borrow().last(), Some(&Call::Start));
    }

    #[test]
    fn a_truncated_game_is_no_terminated_one() {
        let emulator = Scripted { truncates_at: 9, ..Scripted::default() };
        let played = episodes(&mut Atari::new("atari:Scripted", emulator, &options(), Purpose::Training));
        let last = *played[0].last().unwrap();
        assert_eq!((played[0].len(), last.terminated, last.truncated), (3, false, true));
    }

    #[test]
    fn whatever_is_wrapped_around_a_game_passes_on_what_it_came_to() {
        let frames = ObservationOptions { frames_per_observation: 84, frame_stack: None, as_floats: true };
        let mut wrapped = frames.of(delayed(Box::new(atari(&options(), Purpose::Training)), 1)).unwrap();
        episodes(&mut *wrapped);
        assert_eq!(wrapped.outcome(), Outcome::Finished { score: 120.0, length_steps: 8 });
    }

    #[test]
    fn a_vector_reports_whole_games_with_their_points_although_each_life_is_an_episode() {
        let mut vector = VectorEnvironment::new(vec![Box::new(atari(&options(), Purpose::Training))]).unwrap();
        vector.reset(1).unwrap();
        let (mut ends, mut games) = (0, Vec::new());
        for _ in 0..16 {
            vector.step(Actions::Discrete(&[1])).unwrap();
            ends += u32::from(vector.terminated()[0]);
            games.extend(vector.finished_episodes().iter().map(|game| (game.episode_return, game.length_steps)));
        }
        assert_eq!((ends, games), (6, vec![(120.0, 8); 2]));
    }

    #[test]
    fn a_picture_is_the_screen_of_which_the_frame_was_made() {
        let mut environment = atari(&options(), Purpose::Evaluation);
        let mut frame = environment.spec().observation.zeros();
        environment.reset(Some(1), frame.values_mut()).unwrap();
        for _ in 0..3 {
            let step = environment.step(Action::Discrete(0), frame.values_mut()).unwrap();
            assert!(!step.ended());
            let picture = environment.picture().unwrap();
            assert_eq!((picture.width, picture.height), (480, 420));
            // All pixels of this screen have one shade, and so has the frame.
            let ValueBuffer::U8(frame) = &frame else { panic!("frames are bytes") };
            assert!(picture.bytes.iter().all(|&byte| byte == frame[0]), "{} in a picture of {}", picture.bytes[0], frame[0]);
        }
    }
}
