//! The commands a person types in this checkout; `cargo xtask --help` lists them.
//!
//! They exist because training needs what cargo cannot fetch: libtorch, a C++ library, and for environments in Python their
//! packages. Each command first makes sure that the right ones are there, and only then builds.

mod arguments;
mod chaos;
mod distribution;
mod fuzz;
mod libtorch;
mod lock;
mod package;
mod prerequisites;
mod processor;
mod protocol;
mod python;
mod report;
mod skipped;
mod stages;
mod test;
mod third_party;
mod train;
mod virtual_environment;
mod wheel;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use arguments::{Arguments, Task};
use libtorch::{Devices, Profile};
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

fn set_up(devices: Devices) -> Result<()> {
    let libtorch = libtorch::provide(devices)?;
    let environments = python::provide()?;
    say(format!("libtorch is ready: {}.", libtorch.loaded_on_demand(Profile::Release)));
    if environments.are_in_python() {
        say(environments.to_string());
    }
    Ok(())
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Train { config, arguments } => train::train(config, arguments),
        Task::Test { fast, only } => test::test(fast, only.as_deref()),
        Task::Setup { clean: true, .. } => libtorch::remove().and_then(|()| python::remove()).and_then(|()| package::remove()),
        Task::Setup { clean: false, cuda } => set_up(if cuda { Devices::CpuAndCuda } else { Devices::Cpu }),
        Task::Chaos { kills, seed } => chaos::chaos(kills, seed),
        Task::Fuzz { targets, runs } => fuzz::fuzz(&targets, runs),
        Task::Emulate => protocol::emulated(),
        Task::Interpret { seeds } => protocol::interpreted(seeds),
        Task::Wheel { processor } => wheel::wheel(processor),
        Task::Doctor => prerequisites::doctor(),
    }
}
