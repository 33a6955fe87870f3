//! The native environments equal Gymnasium's bit for bit, from the seed alone.
//!
//! The recordings in `tests/data/environments` were made by `tests/record_environments.py` from Gymnasium 1.4.0 and NumPy 2.4.6 on
//! x86-64 with FMA and glibc 2.36. Equality in the last bit presumes that the C library's `sin`, `cos` and `pow` round as those did.

mod support {
    pub(crate) mod recording;
}

use std::error::Error;
use std::path::PathBuf;

use safetensors::{Dtype, SafeTensors};
use shoal::environments::{Action, ActionSpace, Generator, ObservationSpace, SeedSequence, Step, derive_seed, make, names, spec};
use support::recording::{RESET, SEEDED, TERMINATED, TRUNCATED, column};

type TestResult = Result<(), Box<dyn Error>>;

fn read(name: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "environments", &format!("{name}.safetensors")].iter().collect();
    std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}

fn f32_column(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    column(file, name, Dtype::F32, f32::from_le_bytes)
}

fn f64_column(file: &SafeTensors<'_>, name: &str) -> Vec<f64> {
    column(file, name, Dtype::F64, f64::from_le_bytes)
}

fn u64_column(file: &SafeTensors<'_>, name: &str) -> Vec<u64> {
    column(file, name, Dtype::U64, u64::from_le_bytes)
}

fn u32_column(file: &SafeTensors<'_>, name: &str) -> Vec<u32> {
    column(file, name, Dtype::U32, u32::from_le_bytes)
}

/// The recorded action space.
fn action_space(file: &SafeTensors<'_>) -> ActionSpace {
    if file.tensor("action_n").is_ok() {
        return ActionSpace::Discrete { n: u32_column(file, "action_n")[0] as usize };
    }
    ActionSpace::Box { low: f32_column(file, "action_low"), high: f32_column(file, "action_high") }
}

/// Discrete or continuous actions of a recording, one per row.
enum RecordedActions {
    Discrete(Vec<u8>),
    Continuous(Vec<f32>),
}

impl RecordedActions {
    fn read(file: &SafeTensors<'_>) -> Self {
        match action_space(file) {
            ActionSpace::Discrete { .. } => Self::Discrete(column(file, "action", Dtype::U8, |[index]| index)),
            ActionSpace::Box { .. } => Self::Continuous(f32_column(file, "action")),
        }
    }

    fn row(&self, row: usize) -> Action<'_> {
        match self {
            Self::Discrete(indices) => Action::Discrete(indices[row].into()),
            Self::Continuous(values) => Action::Continuous(&values[row..=row]),
        }
    }
}

/// What the recordings contain, so that a test cannot pass on too little.
#[derive(Default)]
struct Coverage {
    steps: usize,
    terminated: usize,
    truncated: usize,
    both: usize,
    unseeded_resets: usize,
}

/// Replay a recording and compare every value of every row.
fn replay(name: &str) -> Result<Coverage, Box<dyn Error>> {
    let bytes = read(name)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let flags: Vec<u8> = column(&file, "flags", Dtype::U8, |[flags]| flags);
    let actions = RecordedActions::read(&file);
    let rewards = f64_column(&file, "reward");
    let observations = f32_column(&file, "observation");
    let mut seeds = u64_column(&file, "seeds").into_iter();

    let mut environment = make(name)?;
    let width = environment.spec().observation.len();
    assert_eq!(observations.len(), flags.len() * width);
    let mut observation = vec![f32::NAN; width];
    let mut coverage = Coverage::default();
    for (row, &flags) in flags.iter().enumerate() {
        if flags & RESET != 0 {
            let seed = (flags & SEEDED != 0).then(|| seeds.next().expect("a seed for each seeded reset"));
            environment.reset(seed, (&mut observation).into())?;
            coverage.unseeded_resets += usize::from(seed.is_none());
        } else {
            let step = environment.step(actions.row(row), (&mut observation).into())?;
            let (terminated, truncated) = (flags & TERMINATED != 0, flags & TRUNCATED != 0);
            let recorded = Step { reward: rewards[row], terminated, truncated };
            assert_eq!(step, recorded, "`{name}`, row {row}");
            assert_eq!(step.reward.to_bits(), rewards[row].to_bits(), "reward of `{name}`, row {row}");
            coverage.steps += 1;
            coverage.terminated += usize::from(terminated && !truncated);
            coverage.truncated += usize::from(truncated && !terminated);
            coverage.both += usize::from(truncated && terminated);
        }
        let recorded = &observations[row * width..][..width];
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&observation), bits(recorded), "`{name}`, row {row}: {observation:?} but recorded {recorded:?}");
    }
    assert!(seeds.next().is_none(), "seeds are left over");
    assert!(coverage.steps >= 2_000, "{} steps of `{name}` are too few", coverage.steps);
    assert!(coverage.unseeded_resets >= 3, "`{name}` has too few resets that continue the generator");
    Ok(coverage)
}

#[test]
fn cart_pole_equals_gymnasium() -> TestResult {
    let coverage = replay("CartPole-v1")?;
    assert!(coverage.terminated >= 50 && coverage.truncated >= 1);
    Ok(())
}

#[test]
fn mountain_car_equals_gymnasium() -> TestResult {
    let coverage = replay("MountainCar-v0")?;
    assert!(coverage.terminated >= 1 && coverage.truncated >= 5);
    assert!(coverage.both >= 1, "no episode reached the goal in the very step of the time limit");
    Ok(())
}

#[test]
fn mountain_car_continuous_equals_gymnasium() -> TestResult {
    let coverage = replay("MountainCarContinuous-v0")?;
    assert!(coverage.terminated >= 3 && coverage.truncated >= 1);
    Ok(())
}

#[test]
fn pendulum_equals_gymnasium() -> TestResult {
    let coverage = replay("Pendulum-v1")?;
    assert!(coverage.terminated == 0 && coverage.truncated >= 10);
    Ok(())
}

#[test]
fn acrobot_equals_gymnasium() -> TestResult {
    let coverage = replay("Acrobot-v1")?;
    assert!(coverage.terminated >= 8 && coverage.truncated >= 1);
    Ok(())
}

#[test]
fn spaces_and_limits_equal_gymnasium() -> TestResult {
    // Environments with a prefix, and the games, are compared in tests of their own.
    for name in names().filter(|name| !name.contains(':')) {
        let spec = spec(name)?;
        if spec.observation.is_image() {
            continue;
        }
        let bytes = read(name)?;
        let file = SafeTensors::deserialize(&bytes)?;
        let (low, high) = (f32_column(&file, "observation_low"), f32_column(&file, "observation_high"));
        let shape = file.tensor("observation_low")?.shape().to_vec();
        assert_eq!(spec.observation, ObservationSpace { shape, low, high, ..ObservationSpace::unbounded(0) });
        assert_eq!(spec.action, action_space(&file), "{name}");
        assert_eq!(spec.time_limit_steps, Some(u32_column(&file, "time_limit_steps")[0]), "{name}");
        let threshold = f64_column(&file, "reward_threshold")[0];
        assert_eq!(spec.reward_threshold, (!threshold.is_nan()).then_some(threshold), "{name}");
    }
    Ok(())
}

#[test]
fn seeding_and_random_numbers_equal_numpy() -> TestResult {
    let bytes = read("numpy_random")?;
    let file = SafeTensors::deserialize(&bytes)?;
    let (states, uniforms) = (u64_column(&file, "state"), f64_column(&file, "uniform"));
    let (children, child_seeds) = (u32_column(&file, "children"), u64_column(&file, "child_seed"));
    let seeds = u64_column(&file, "seeds");
    assert!(seeds.contains(&0) && seeds.contains(&u64::MAX) && seeds.contains(&(1 << 32)));

    let rows = states.chunks_exact(4).zip(uniforms.chunks_exact(16)).zip(child_seeds.chunks_exact(children.len()));
    assert_eq!(rows.len(), seeds.len());
    for (seed, ((state, uniform), child_seeds)) in seeds.into_iter().zip(rows) {
        assert_eq!(SeedSequence::new(seed).generate_state::<4>(), state, "seed {seed}");
        let mut generator = Generator::from_seed(seed);
        for (index, value) in uniform.iter().enumerate() {
            assert_eq!(generator.uniform(-0.05, 0.05).to_bits(), value.to_bits(), "seed {seed}, number {index}");
        }
        let derived: Vec<u64> = children.iter().map(|child| derive_seed(seed, *child)).collect();
        assert_eq!(derived, child_seeds, "children of seed {seed}");
    }
    Ok(())
}

#[test]
fn normal_numbers_equal_numpy() -> TestResult {
    const CHECKED: usize = 1 << 20;
    let bytes = read("numpy_random")?;
    let file = SafeTensors::deserialize(&bytes)?;
    let (seeds, normals) = (u64_column(&file, "seeds"), f64_column(&file, "normal"));
    for (seed, normals) in seeds.iter().zip(normals.chunks_exact(16)) {
        let mut generator = Generator::from_seed(*seed);
        for (index, value) in normals.iter().enumerate() {
            assert_eq!(generator.standard_normal().to_bits(), value.to_bits(), "seed {seed}, number {index}");
        }
    }
    let checksums = u32_column(&file, "normal_checksum");
    assert_eq!(checksums.len(), 4);
    for (seed, checksum) in seeds.into_iter().zip(checksums) {
        let mut generator = Generator::from_seed(seed);
        let mut hasher = crc32fast::Hasher::new();
        let mut largest = 0.0_f64;
        for _ in 0..CHECKED {
            let value = generator.standard_normal();
            largest = largest.max(value.abs());
            hasher.update(&value.to_le_bytes());
        }
        hasher.update(&generator.uniform(0.0, 1.0).to_le_bytes());
        assert_eq!(hasher.finalize(), checksum, "seed {seed}");
        assert!(largest > 4.0, "the tail was never drawn from");
    }
    Ok(())
}
