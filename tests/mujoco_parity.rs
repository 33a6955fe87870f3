//! The MuJoCo environments equal Gymnasium's bit for bit, from the seed alone.
//!
//! Gymnasium plays beside them, in `tests/play_mujoco.py`, because the last bits of a simulation depend on the processor. It
//! needs the Python that `cargo xtask setup` makes.

#![cfg(feature = "mujoco")]

mod support {
    pub(crate) mod recording;
}

use std::error::Error;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use shoal::environments::{Action, ActionSpace, ObservationSpace, Step, make, names};
use support::recording::{RESET, SEEDED, TERMINATED, TRUNCATED};

type TestResult = Result<(), Box<dyn Error>>;

const VERSIONS: &str = "gymnasium 1.4.0, mujoco 3.17.0";
const STEPS: usize = 6_000;

/// What Gymnasium says about a task.
#[derive(Deserialize)]
struct Facts {
    versions: String,
    observation_len: usize,
    action_low: Vec<f32>,
    action_high: Vec<f32>,
    time_limit_steps: u32,
    reward_threshold: Option<f64>,
}

/// One call and its answer.
struct Row {
    flags: u8,
    seed: u64,
    action: Vec<f32>,
    reward: f64,
    observation: Vec<f32>,
}

/// Takes little-endian values from the front of some bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const BYTES: usize>(&mut self) -> [u8; BYTES] {
        let (value, rest) = self.0.split_first_chunk().expect("the player writes whole rows");
        self.0 = rest;
        *value
    }

    fn row(&mut self, facts: &Facts) -> Row {
        let [flags] = self.take();
        let seed = u64::from_le_bytes(self.take());
        let mut singles = |count: usize| (0..count).map(|_| f32::from_le_bytes(self.take())).collect();
        let action = singles(facts.action_low.len());
        let reward = f64::from_le_bytes(self.take());
        let mut singles = |count: usize| (0..count).map(|_| f32::from_le_bytes(self.take())).collect();
        Row { flags, seed, action, reward, observation: singles(facts.observation_len) }
    }
}

/// What Gymnasium does in the task of that name.
fn played(task: &str) -> Result<(Facts, Vec<u8>), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".venv/bin/python");
    let output = Command::new(&python)
        .arg(root.join("tests/play_mujoco.py"))
        .args([task, &STEPS.to_string()])
        .output()
        .map_err(|error| format!("cannot start {}: {error}; `cargo xtask setup` makes it", python.display()))?;
    assert!(output.status.success(), "tests/play_mujoco.py {task}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    let end = output.stdout.iter().position(|byte| *byte == b'\n').ok_or("the player wrote no facts")?;
    Ok((serde_json::from_slice(&output.stdout[..end])?, output.stdout[end + 1..].to_vec()))
}

/// What was compared, so that a test cannot pass on too little.
#[derive(Debug, Default)]
struct Coverage {
    steps: usize,
    terminated: usize,
    truncated: usize,
    unseeded_resets: usize,
    outside_bounds: usize,
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Make every call that Gymnasium was given and compare every value of every answer.
fn compare(task: &str) -> Result<Coverage, Box<dyn Error>> {
    let (facts, rows) = played(task)?;
    assert_eq!(facts.versions, VERSIONS, "install these versions with `cargo xtask setup`");
    let id = format!("mujoco:{task}");
    let mut environment = make(&id)?;
    let spec = environment.spec().clone();
    let (low, high) = (vec![f32::NEG_INFINITY; facts.observation_len], vec![f32::INFINITY; facts.observation_len]);
    assert_eq!(spec.observation, ObservationSpace { low, high, ..ObservationSpace::unbounded(facts.observation_len) });
    assert_eq!(spec.action, ActionSpace::Box { low: facts.action_low.clone(), high: facts.action_high.clone() });
    assert_eq!(spec.time_limit_steps, Some(facts.time_limit_steps));
    assert_eq!(spec.reward_threshold, facts.reward_threshold);

    let mut coverage = Coverage::default();
    let mut observation = vec![f32::NAN; facts.observation_len];
    let mut reader = Reader(&rows);
    for number in 0.. {
        if reader.0.is_empty() {
            break;
        }
        let row = reader.row(&facts);
        if row.flags & RESET != 0 {
            let seed = (row.flags & SEEDED != 0).then_some(row.seed);
            environment.reset(seed, (&mut observation).into())?;
            coverage.unseeded_resets += usize::from(seed.is_none());
        } else {
            let step = environment.step(Action::Continuous(&row.action), (&mut observation).into())?;
            let (terminated, truncated) = (row.flags & TERMINATED != 0, row.flags & TRUNCATED != 0);
            assert_eq!(step, Step { reward: row.reward, terminated, truncated }, "`{id}`, row {number}");
            assert_eq!(step.reward.to_bits(), row.reward.to_bits(), "reward of `{id}`, row {number}");
            coverage.steps += 1;
            coverage.terminated += usize::from(terminated);
            coverage.truncated += usize::from(truncated);
            coverage.outside_bounds += usize::from(row.action.iter().zip(&facts.action_high).any(|(value, bound)| value.abs() > *bound));
        }
        assert_eq!(bits(&observation), bits(&row.observation), "`{id}`, row {number}: {observation:?} but Gymnasium {:?}", row.observation);
    }
    assert!(coverage.steps >= STEPS && coverage.unseeded_resets >= 5 && coverage.outside_bounds >= 500, "{coverage:?}");
    Ok(coverage)
}

/// Which endings the episodes of a task have to show: one that Gymnasium never ends inside the problem, for instance, must
/// not end so here either.
#[derive(Clone, Copy, PartialEq)]
enum Endings {
    TimeLimit,
    Termination,
    Both,
}

impl Endings {
    fn assert_in(self, coverage: &Coverage) {
        assert_eq!(coverage.terminated > 0, self != Self::TimeLimit, "{coverage:?}");
        assert_eq!(coverage.truncated > 0, self != Self::Termination, "{coverage:?}");
    }
}

macro_rules! equals_gymnasium {
    ($($test:ident: $task:literal, $endings:ident;)+) => {
        $(#[test]
        fn $test() -> TestResult {
            Endings::$endings.assert_in(&compare($task)?);
            Ok(())
        })+

        #[test]
        fn every_task_is_compared() {
            let mut compared = vec![$(format!("mujoco:{}", $task)),+];
            compared.sort();
            assert_eq!(names().filter(|name| name.starts_with("mujoco:")).collect::<Vec<_>>(), compared);
        }
    };
}

equals_gymnasium! {
    ant_equals_gymnasium: "Ant-v5", Both;
    half_cheetah_equals_gymnasium: "HalfCheetah-v5", TimeLimit;
    hopper_equals_gymnasium: "Hopper-v5", Termination;
    humanoid_equals_gymnasium: "Humanoid-v5", Termination;
    humanoid_standup_equals_gymnasium: "HumanoidStandup-v5", TimeLimit;
    inverted_double_pendulum_equals_gymnasium: "InvertedDoublePendulum-v5", Termination;
    inverted_pendulum_equals_gymnasium: "InvertedPendulum-v5", Both;
    swimmer_equals_gymnasium: "Swimmer-v5", TimeLimit;
    walker2d_equals_gymnasium: "Walker2d-v5", Termination;
}
