//! What can be typed after `cargo xtask`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use crate::processor::Processor;
use crate::{fuzz, test};

/// Set up, train and test in one command each.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Set up what is missing, build in release mode, and train
    Train {
        /// The configuration to train with [default: configs/cartpole_dqn.toml]
        config: Option<PathBuf>,
        /// Further arguments of `shoal train`, handed on as they are
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Set up what is missing, then check formatting, lints, tests and documentation
    Test {
        /// Leave out libtorch, Python and everything that needs them: minutes less on a fresh checkout
        #[arg(long)]
        fast: bool,
        /// Run only this stage
        #[arg(long, value_name = "STAGE", conflicts_with = "fast", value_parser = PossibleValuesParser::new(test::stage_names()))]
        only: Option<String>,
    },
    /// Fetch libtorch and make the virtual environment for environments in Python, if they are missing
    Setup {
        /// Remove what the set-up has fetched, and stop
        #[arg(long)]
        clean: bool,
        /// Fetch a libtorch that also computes on GPUs: a download of 2.5 GB instead of 0.5
        #[arg(long, conflicts_with = "clean")]
        cuda: bool,
    },
    /// Kill and stop processes of a run at random, and check that it goes on
    Chaos {
        /// Number of kills
        #[arg(long, default_value_t = 1_000)]
        kills: u64,
        /// Seed of the choice of victims
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Feed random input to the readers of files, memory and messages, and report what makes them panic
    Fuzz {
        /// Readers to test [default: all]
        #[arg(value_parser = PossibleValuesParser::new(fuzz::TARGETS))]
        targets: Vec<String>,
        /// Inputs for each reader
        #[arg(long, default_value_t = 1_000_000)]
        runs: u64,
    },
    /// Test the shared-memory protocol on a 64-bit Arm that qemu emulates
    Emulate,
    /// Test the shared-memory protocol in Miri, which switches threads anywhere and lets loads return old values
    Interpret {
        /// Thread schedules to try
        #[arg(long, default_value_t = 16)]
        seeds: u32,
    },
    /// Build the Python package as one file that `pip install` takes
    Wheel {
        /// Processor to build for
        #[arg(long, value_enum, default_value_t = Processor::HOST)]
        processor: Processor,
    },
    /// Say what is missing on this machine, and the command that installs it
    Doctor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_chosen_in_one_way() {
        let is_understood = |words: &[&str]| Arguments::try_parse_from([&["xtask", "test"], words].concat()).is_ok();
        assert!(is_understood(&["--fast"]) && is_understood(&["--only", "lints"]));
        assert!(!is_understood(&["--fast", "--only", "lints"]));
    }
}
