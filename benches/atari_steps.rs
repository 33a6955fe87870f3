//! Steps per processor-second of a game of the Atari 2600 as an actor sees it: frames shrunk, four of them stacked.
//!
//!     cargo bench --no-default-features --features python --bench atari_steps [-- GAME SIZE SECONDS]
//!
//! Prints one number. `benches/peers/atari_steps.py` compares it with other programs.

use std::io::Write;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use shoal::environments::{Actions, EnvironmentRequest, ObservationOptions, Purpose, VectorEnvironment, python};

/// Steps between two looks at the clock.
const STRETCH: usize = 100;

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has a clock of processor time").into()
}

fn main() -> anyhow::Result<()> {
    // `cargo bench` adds an argument of its own, and `cargo test` runs benchmarks only to see that they work.
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let argument = |index: usize, default: &str| given.get(index).map_or(default, String::as_str).to_owned();
    let (game, size) = (argument(0, "Pong"), argument(1, "84"));
    let seconds: f64 = argument(2, if is_test { "0.1" } else { "10" }).parse()?;

    let request = EnvironmentRequest {
        purpose: Purpose::Training,
        keyword_arguments: format!("{{\"screen_size\": {size}, \"repeat_action_probability\": 0}}"),
        ..EnvironmentRequest::new(format!("atari:{game}"))
    };
    python::become_ready(&request)?;
    let seen = ObservationOptions { frames_per_observation: 1, frame_stack: None, as_floats: false };
    let mut environment = VectorEnvironment::new(vec![seen.of(request.make()?)?])?;
    environment.reset(0)?;
    let (mut steps, start) = (0, processor_time());
    while (processor_time() - start).as_secs_f64() < seconds {
        for step in steps..steps + STRETCH {
            // Up, down and nothing in turn, as the other loops do.
            environment.step(Actions::Discrete(&[[0, 2, 3][step / 8 % 3]]))?;
        }
        steps += STRETCH;
    }
    writeln!(std::io::stdout(), "{:.1}", steps as f64 / (processor_time() - start).as_secs_f64())?;
    Ok(())
}
