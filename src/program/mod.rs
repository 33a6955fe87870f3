//! The command line: the programs of this package, and programs with algorithms or environments of their own.
//!
//! A program with names of its own is `shoal` that knows more names:
//!
//! ```no_run
//! # use shoal::prelude::{Action, Environment, EnvironmentError, EnvironmentSpec, Step, ValuesMut};
//! # struct Corridor;
//! # impl Corridor {
//! #     fn new() -> Self { Self }
//! # }
//! # impl Environment for Corridor {
//! #     fn spec(&self) -> &EnvironmentSpec { unimplemented!() }
//! #     fn reset(&mut self, _: Option<u64>, _: ValuesMut<'_>) -> Result<(), EnvironmentError> { unimplemented!() }
//! #     fn step(&mut self, _: Action<'_>, _: ValuesMut<'_>) -> Result<Step, EnvironmentError> { unimplemented!() }
//! # }
//! fn main() -> std::process::ExitCode {
//!     shoal::program::main(|catalogue| catalogue.add_environment("Corridor-v0", || Ok(Corridor::new())))
//! }
//! ```
//!
//! No other room parses arguments, and nothing in the library uses this one.

mod adopt;
mod attach;
mod completions;
mod dashboard;
mod doctor;
mod end;
mod evaluate;
mod inspect;
mod parse;
mod print;
mod resume;
mod seeds;
mod single;
mod single_threaded;
mod train;
mod training;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::end::{Code, SUCCESS};
use crate::catalogue::{Catalogue, CatalogueError};
use crate::machine::software::VERSION;
use crate::networks::NetworkError;
use crate::presets::Listing;

pub use single::{attach, dashboard, evaluate, inspect, supervisor};

/// Deep reinforcement learning that uses a whole Linux machine.
#[derive(Parser)]
#[command(version = VERSION, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// What a command does is said by the documentation of its arguments; a doc comment here would replace it in the help.
#[derive(Subcommand)]
enum Command {
    Train(train::TrainCommand),
    Resume(resume::ResumeRun),
    Adopt(adopt::Adopt),
    Attach(attach::Attach),
    Inspect(inspect::Inspect),
    Dashboard(dashboard::ShowDashboard),
    Evaluate(evaluate::Evaluate),
    Doctor(doctor::Doctor),
    /// List the presets: environment, algorithm, goal, and what was measured.
    Presets {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    Completions(completions::Completions),
}

/// The program `shoal` with what `add` adds to its catalogue: all commands, from the arguments of this process to its
/// exit code.
///
/// Call it first in `main`, before threads are started: it forks, and for environments in Python it may start the
/// program anew. Beside other threads than the first, training and attaching begin with a warning.
pub fn main(add: impl FnOnce(&mut Catalogue) -> Result<(), CatalogueError>) -> ExitCode {
    end::end(|| {
        let mut catalogue = Catalogue::default();
        add(&mut catalogue)?;
        run(&parse::typed(), &catalogue)
    })
    .into()
}

/// The program `shoal` in an interpreter that has loaded this library and called
/// [`Host::settle`](crate::machine::Host::settle): from the arguments `typed`, of which the first is the name of the
/// program, to its exit code. `None` if it asks for libtorch and this build lacks it: then nothing has been done, and
/// a build that has libtorch may do it.
///
/// Call it once, before threads are started, without the interpreter's lock; afterwards the process should end.
pub fn main_in_interpreter(typed: &[OsString]) -> Option<u8> {
    let mut lacks_libtorch = false;
    let code = end::end(|| {
        let ended = run(typed, &Catalogue::default());
        lacks_libtorch = matches!(&ended, Err(error) if matches!(error.downcast_ref(), Some(NetworkError::TorchNotCompiled { .. })));
        if lacks_libtorch { Ok(end::FAILURE) } else { ended }
    });
    (!lacks_libtorch).then_some(code)
}

fn run(typed: &[OsString], catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
    match parse::parse::<Arguments>(typed).command {
        Command::Train(command) => command.run(catalogue),
        Command::Resume(command) => command.run(catalogue),
        Command::Adopt(command) => command.run(catalogue),
        Command::Attach(command) => command.run(catalogue),
        Command::Inspect(command) => command.run(),
        Command::Dashboard(command) => command.run(),
        Command::Evaluate(command) => command.run(catalogue),
        Command::Doctor(command) => command.run(),
        Command::Presets { json } => print::print(&Listing::of_all(), json).map(|()| SUCCESS),
        Command::Completions(command) => command.run::<Arguments>(typed.first().map(OsString::as_os_str)),
    }
}
