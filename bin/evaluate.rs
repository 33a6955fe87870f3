//! `evaluate RUN`: play a saved policy for some episodes and say how well it did.

use std::process::ExitCode;

use clap::Parser;

#[path = "command/end.rs"]
mod end;
#[path = "command/evaluate.rs"]
mod evaluate;
#[path = "command/print.rs"]
mod print;

/// Play a saved policy, greedily, and print the mean return with its standard deviation and 95 % confidence interval.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    command: evaluate::Evaluate,
}

fn main() -> ExitCode {
    end::end(Arguments::parse().command.run())
}
