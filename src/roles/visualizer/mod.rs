//! The visualizer: plays the newest parameters for people to watch, some steps a second, and records a video of an episode now and then.
//!
//! It has the lowest priority of ordinary processes (`nice` 19), and nobody waits for it. What it shows lies on the board of pictures,
//! where the dashboard finds it; videos go to the folder `videos` of the run.

mod videos;

use std::time::{Duration, Instant};

use rand::SeedableRng;

use self::videos::Videos;
pub(super) use self::videos::remove_unfinished;
use super::configured_environment::{self, Look};
use super::evaluator::exploration;
use super::newest_parameters::NewestParameters;
use super::run::{RoleError, Run};
use crate::algorithms::{ActionBatch, Policy, Random};
use crate::environments::video::VideoError;
use crate::environments::{Action, Actions, Environment, EnvironmentError, Picture, Purpose, Step, behind_floats, observed_as_bars};
use crate::segment::pictures::{DRAWN_AS_BARS, PictureBoard};
use crate::segment::processes::Phase;
use crate::telemetry::RunFolder;
use crate::values::ValueBuffer;

/// Begins the last words of a visualizer that goes on without a video; a colon and the reason follow.
pub(super) const VIDEO_IS_MISSING: &str = "a video is missing";
/// Begins the last words of a visualizer whose environment draws nothing; a colon and the reason follow.
pub(super) const BARS_ARE_SHOWN: &str = "bars of what is observed are shown instead of a picture";

/// Time between two looks whether the run is over, in every wait.
const PAUSE: Duration = Duration::from_millis(20);
/// The lowest priority: it runs where a core is free.
const LOWEST_PRIORITY: i32 = 19;

/// What the visualizer keeps from step to step.
struct Visualizer<'a> {
    run: &'a Run<'a>,
    environment: Box<dyn Environment>,
    observation: ValueBuffer,
    policy: Box<dyn Policy>,
    outputs: Vec<f32>,
    actions: ActionBatch,
    random: Random,
    parameters: NewestParameters<'a>,
    board: PictureBoard<'a>,
    /// The last words about the bars that are shown because the environment draws nothing; `None` if it draws.
    bars: Option<String>,
    interval: Duration,
}

/// Play and show until the run ends; videos go to the `folder` of the run, wherever somebody moves that.
pub(super) fn run(run: &Run<'_>, folder: RunFolder) -> Result<(), RoleError> {
    // With another priority it takes more of the cores than it should, and shows the same.
    let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
    let mut videos = Videos::new(folder, &run.config.visualizer);
    let mut visualizer = Visualizer::new(run)?;
    let mut seed = Some(run.seed());
    while visualizer.wait_for_parameters() && visualizer.episode(seed.take(), &mut videos)? {}
    Ok(())
}

impl<'a> Visualizer<'a> {
    fn new(run: &'a Run<'a>) -> Result<Self, RoleError> {
        let environment = configured_environment::make(run.catalogue, run.config, Purpose::Evaluation, Look::Drawn)?;
        configured_environment::check_unchanged(environment.spec(), &run.environment.spaces_in_words())?;
        let mut policy = run.algorithm.policy()?;
        let board = run.segment.picture_board().expect("a run with a visualizer has a board of pictures");
        Ok(Self {
            observation: environment.spec().observation.zeros(),
            outputs: vec![0.0; policy.outputs()],
            actions: ActionBatch::new(&run.environment.action, 1),
            random: Random::seed_from_u64(run.seed()),
            parameters: NewestParameters::of(run),
            bars: None,
            interval: Duration::from_secs_f64(1.0 / run.config.visualizer.pictures_per_s),
            environment,
            policy,
            board,
            run,
        })
    }

    /// Wait for the first parameters. `false` if the run ended first.
    fn wait_for_parameters(&mut self) -> bool {
        while !self.run.is_over() {
            self.run.process.enter(Phase::ParameterWait);
            self.parameters.refresh(&mut *self.policy);
            if self.parameters.version > 0 {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }

    /// Play one episode; `false` when the run ended before it did.
    fn episode(&mut self, seed: Option<u64>, videos: &mut Videos) -> Result<bool, RoleError> {
        self.environment.reset(seed, self.observation.values_mut())?;
        let mut video = self.or_none(videos.begin_if_due()).flatten();
        let mut episode_return = 0.0;
        let mut steps = 0;
        let mut ended = false;
        loop {
            let next = Instant::now() + self.interval;
            let picture = self.picture(steps == 0)?.within(self.board.picture_bytes());
            self.show(&picture, episode_return, steps);
            if video.as_mut().is_some_and(|video| video.add(picture, ended))
                && let Some(video) = video.take()
                && self.or_none(videos.finish(video, self.run.env_steps(), episode_return)).is_some()
            {
                // A video that was missing before has been told of.
                self.run.process.set_last_words(self.bars.as_deref().unwrap_or_default());
            }
            if ended {
                return Ok(true);
            }
            if !self.wait_until(next) {
                return Ok(false);
            }
            self.parameters.refresh(&mut *self.policy);
            let step = self.step()?;
            episode_return += step.reward;
            steps += 1;
            ended = step.ended();
        }
    }

    /// What came of a `video`. If it cannot be written, that is told and it is given up: the next video may succeed, and pictures need
    /// no disk.
    fn or_none<T>(&self, video: Result<T, VideoError>) -> Option<T> {
        video.map_err(|error| self.run.process.set_last_words(&format!("{VIDEO_IS_MISSING}: {error}"))).ok()
    }

    fn step(&mut self) -> Result<Step, EnvironmentError> {
        self.run.process.enter(Phase::Inference);
        self.policy.infer(self.observation.values(), 1, &mut self.outputs);
        let exploration = exploration(self.run.config, self.run.algorithm, self.run.env_steps());
        self.policy.choose(&self.outputs, exploration, &mut self.random, self.actions.row_mut(0));
        self.run.process.enter(Phase::Environment);
        let action = match self.actions.for_environments() {
            Actions::Discrete(indices) => Action::Discrete(indices[0] as usize),
            Actions::Continuous(values) => Action::Continuous(values),
        };
        self.environment.step(action, self.observation.values_mut())
    }

    /// What there is to see. An environment that draws nothing in its first state is not asked again.
    fn picture(&mut self, is_first: bool) -> Result<Picture, EnvironmentError> {
        if self.bars.is_none() {
            match self.environment.picture() {
                Err(error) if is_first => {
                    let error = error.to_string();
                    let words = format!("{BARS_ARE_SHOWN}: {}", error.lines().next().unwrap_or_default());
                    self.run.process.set_last_words(&words);
                    self.bars = Some(words);
                }
                result => return result,
            }
        }
        Ok(observed_as_bars(behind_floats(&*self.environment), self.observation.values()))
    }

    fn show(&self, picture: &Picture, episode_return: f64, steps: u64) {
        let drawn = if self.bars.is_some() { DRAWN_AS_BARS } else { 0 };
        let notes = [self.run.env_steps(), self.parameters.updates, episode_return.to_bits(), steps | drawn];
        self.board.show([picture.width, picture.height], notes, &picture.bytes);
    }

    /// Wait until `moment`. `false` if the run ended first.
    fn wait_until(&self, moment: Instant) -> bool {
        loop {
            if self.run.is_over() {
                return false;
            }
            self.run.process.enter(Phase::Idle);
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(PAUSE));
        }
    }
}
