//! `shoal evaluate`: plays a saved policy.

use std::path::PathBuf;

use anyhow::bail;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

use super::end::{Code, SUCCESS};
use super::print::KeptOutput;
use crate::catalogue::Catalogue;
use crate::environments::python;
use crate::environments::video::RecordVideo;
use crate::roles::player::{self, PlayError, Which};
use crate::roles::supervisor::RunOutcome;
use crate::segment::system;

/// Play a saved policy as its run evaluated it, and print the mean return with its standard deviation and 95 %
/// confidence interval.
#[derive(Args)]
pub(crate) struct Evaluate {
    /// A run folder (`runs/latest`) or a weights file.
    #[arg(default_value = "runs/latest")]
    path: PathBuf,
    /// Episodes to play.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000_000))]
    episodes: usize,
    /// Seed of the environments.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Which weights of a run: `best`, or the last ones if it has no best ones yet. `last` of a run under way plays
    /// its newest checkpoint, once the run has best weights [default: best].
    #[arg(long, value_enum)]
    weights: Option<Weights>,
    /// The environment to play a weights file in; what else the configuration of its run says stays as it is, but
    /// arguments go to Python alone. Where the file is not in its run's folder, code that the id of its environment
    /// names, a Python module or file, runs only if you name it here.
    #[arg(long, value_name = "ID")]
    environment: Option<String>,
    /// Make a video of the first episode: `--video first.gif`, or `first.mp4` in a program built with `--features
    /// mp4`. Native environments, games of the Atari 2600, and Python environments that render can be shown.
    #[arg(long, value_name = "FILE")]
    video: Option<PathBuf>,
    /// Environment steps that the video shows per second, from 1 to 50: 30 suits most environments, 5 Catch-v0, 15
    /// games of the Atari 2600.
    #[arg(long, value_name = "STEPS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=50), requires = "video")]
    video_speed: u16,
    /// As JSON, with every return: the first is that of the first episode, also where that ended late.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Weights {
    Best,
    Last,
}

impl Evaluate {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
        if self.weights.is_some() && self.path.is_file() {
            let file = self.path.display();
            bail!("--weights chooses among the weights of a run, and {file} is a file; leave --weights out, or name the folder of the run");
        }
        if self.environment.is_some() && self.path.is_dir() {
            let folder = self.path.display();
            bail!("--environment is for a file of weights, and {folder} is a folder, whose run has its own; leave --environment out");
        }
        let which = match self.weights {
            None | Some(Weights::Best) => Which::Best,
            Some(Weights::Last) => Which::Last,
        };
        let named = self.environment.as_deref();
        player::become_ready(&self.path, named)?;
        let output = KeptOutput::keep()?;
        if self.video.is_some() {
            // A signal would leave half a video behind, so the first one only asks for the end. The second one ends
            // an environment that hangs.
            system::handle_first_stop_signals()?;
        }
        let video = self.video.as_deref().map(|path| RecordVideo::prepare(path, self.video_speed)).transpose()?;
        let played = player::play(catalogue, &self.path, which, named, self.episodes, self.seed, video.as_ref());
        python::end_helpers();
        match played {
            Err(PlayError::Interrupted { signal }) => Ok(RunOutcome::Interrupted { signal }.exit_code()),
            played => {
                let mut played = played?;
                let recorded = video.map(RecordVideo::finish).transpose().map(|video| played.video = video);
                // Without a video, too: the episodes may have taken hours.
                output.print(&played, self.json)?;
                recorded?;
                Ok(SUCCESS)
            }
        }
    }
}
