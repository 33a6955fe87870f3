//! The commands a person types in this checkout: `cargo xtask train`, `test`, `setup`, `doctor`.
//!
//! They exist because training needs libtorch, a C++ library that cargo cannot fetch: each command first makes sure that
//! the right one is there, and only then builds.

mod arguments;
mod distribution;
mod libtorch;
mod prerequisites;
mod report;
mod stages;
mod test;
mod train;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use arguments::{Arguments, Task};
use report::say;

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Train { config, arguments } => train::train(config, arguments),
        Task::Test { fast, only } => test::test(fast, only.as_deref()),
        Task::Setup { clean: true } => libtorch::remove(),
        Task::Setup { clean: false } => libtorch::provide().map(|found| say(format!("libtorch is ready: {found}."))),
        Task::Doctor => prerequisites::doctor(),
    }
}
