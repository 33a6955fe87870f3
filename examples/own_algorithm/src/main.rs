//! The program `shoal`, with one algorithm and one environment more: `own_algorithm train corridor.toml`.

mod algorithm;
mod environment;

use std::process::ExitCode;

use algorithm::ExpectedSarsa;
use environment::Corridor;
use shoal::prelude::Native;

fn main() -> ExitCode {
    shoal::program::main(|catalogue| {
        catalogue.add_environment(environment::ID, || Ok(Native::new(Corridor::default())))?;
        catalogue.add_algorithm(algorithm::DECLARATION, ExpectedSarsa::new)
    })
}
