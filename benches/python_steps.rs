//! Steps per second of environments in Python: inside of an actor's process, and in the loop that one would write in Python.
//!
//!     cargo bench --no-default-features --features python --bench python_steps [-- ID ...]
//!
//! Both are measured in turn, several times, in processor time, which is steady on a machine that others use. Episodes are
//! reset where they end; the environments, their seeds and the number of steps are the same, actions are drawn beforehand.

use std::io::Write;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shoal::environments::{ActionSpace, Actions, EnvironmentRequest, VectorEnvironment, python};
use shoal::machine::Python;

const DEFAULT_IDS: [&str; 4] = ["gymnasium:CartPole-v1", "gymnasium:Pendulum-v1", "gymnasium:LunarLander-v3", "gymnasium:HalfCheetah-v5"];
const ROUNDS: usize = 7;
/// Actions that are drawn beforehand and then used in turn.
const ACTIONS: usize = 512;
/// Processor time that one measurement takes, about.
const MEASURED_TIME: Duration = Duration::from_millis(400);

/// The loop without Shoal. It also leaves out the check that `disable_env_checker` leaves out for Shoal.
const PLAIN_LOOP: &str = "
import sys, time
import gymnasium
environment = gymnasium.make(sys.argv[1], disable_env_checker=True)
environment.action_space.seed(0)
actions = [environment.action_space.sample() for _ in range(512)]
steps = int(sys.argv[2])
environment.reset(seed=1)
start = time.process_time()
for index in range(steps):
    _, _, terminated, truncated, _ = environment.step(actions[index % 512])
    if terminated or truncated:
        environment.reset()
print(steps / (time.process_time() - start))
";

enum Batches {
    Discrete(Vec<[i32; 1]>),
    Continuous(Vec<Vec<f32>>),
}

fn batches(space: &ActionSpace) -> Batches {
    let mut random = Pcg64::seed_from_u64(0);
    match space {
        ActionSpace::Discrete { n } => Batches::Discrete((0..ACTIONS).map(|_| [random.random_range(0..*n as i32)]).collect()),
        ActionSpace::Box { low, high } => {
            let mut batch = || low.iter().zip(high).map(|(low, high)| random.random_range(*low..=*high)).collect();
            Batches::Continuous((0..ACTIONS).map(|_| batch()).collect())
        }
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has a clock of processor time").into()
}

fn steps_per_second(environment: &mut VectorEnvironment, batches: &Batches, steps: usize) -> anyhow::Result<f64> {
    environment.reset(1)?;
    let start = processor_time();
    for index in 0..steps {
        environment.step(match batches {
            Batches::Discrete(all) => Actions::Discrete(&all[index % ACTIONS]),
            Batches::Continuous(all) => Actions::Continuous(&all[index % ACTIONS]),
        })?;
    }
    Ok(steps as f64 / (processor_time() - start).as_secs_f64())
}

fn in_plain_python(python: &Python, id: &str, steps: usize) -> anyhow::Result<f64> {
    let name = id.trim_start_matches("gymnasium:");
    let output = python.command().env("OMP_NUM_THREADS", "1").args(["-c", PLAIN_LOOP, name, &steps.to_string()]).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> anyhow::Result<()> {
    python::become_ready(&EnvironmentRequest::new(DEFAULT_IDS[0]))?;
    let interpreter = Python::of_this_process()?.ok_or_else(|| anyhow::anyhow!("the process is not prepared"))?;
    // `cargo bench` adds an argument of its own, and `cargo test` runs benchmarks only to see that they work.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let ids = if chosen.is_empty() { DEFAULT_IDS.map(str::to_owned).to_vec() } else { chosen };
    let mut out = std::io::stdout();
    writeln!(out, "{:<28} {:>16} {:>16} {:>8}", "steps per processor-second", "in an actor", "plain Python", "ratio")?;
    for id in ids {
        let mut environment = VectorEnvironment::new(vec![EnvironmentRequest::new(&id).make()?])?;
        let batches = batches(&environment.spec().action);
        let trial = steps_per_second(&mut environment, &batches, 200)?;
        let (rounds, steps) = if is_test { (1, 200) } else { (ROUNDS, (trial * MEASURED_TIME.as_secs_f64()) as usize) };
        let (mut inside, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            inside.push(steps_per_second(&mut environment, &batches, steps)?);
            plain.push(in_plain_python(&interpreter, &id, steps)?);
        }
        let (inside, plain) = (median(inside), median(plain));
        writeln!(out, "{id:<28} {inside:>16.0} {plain:>16.0} {:>8.2}", inside / plain)?;
    }
    Ok(())
}
