//! Games of the Atari 2600 equal what Gymnasium shows of them behind `AtariPreprocessing` and `FrameStackObservation`, byte for byte, with
//! and without sticky actions, from the seed alone.
//!
//! The checksums in `tests/data/atari` were made by `tests/record_atari.py` from Gymnasium 1.4.0, ALE 0.12.1 and OpenCV 5.0.0.

use std::path::PathBuf;

use safetensors::{Dtype, SafeTensors};
use shoal::environments::{Action, ActionSpace, EnvironmentRequest, ObservationOptions, Step};
use shoal::values::{ValueBuffer, Values};

use crate::support::python::in_prepared_process;
use crate::support::recording::{self, RESET, TERMINATED, TRUNCATED};

// As in the script that recorded: which seed begins which steps, and which action is taken in which step.
const SEEDS: [u64; 4] = [7, (1 << 40) + 1, 3, (1 << 63) + 5];
const STEPS_PER_SEED: usize = 2_500;
const HELD_STEPS: usize = 3;

fn action(step: usize, actions: usize) -> usize {
    let hash = ((step / HELD_STEPS) as u32).wrapping_mul(2_654_435_761);
    (hash >> 16) as usize % actions
}

/// The checksums that were recorded of one way of playing a game.
fn recorded(file: &str, column: &str) -> Vec<u32> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "atari", &format!("{file}.safetensors")].iter().collect();
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    recording::column(&file, column, Dtype::U32, u32::from_le_bytes)
}

fn checksum(observation: Values<'_>, reward: f64, flags: u8) -> u32 {
    let Values::U8(bytes) = observation else { panic!("a screen is bytes") };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes);
    hasher.update(&reward.to_le_bytes());
    hasher.update(&[flags]);
    hasher.finalize()
}

/// What a replay of a recording has come across.
#[derive(Debug, Default, PartialEq)]
struct Ends {
    terminated: usize,
    truncated: usize,
}

/// Play `steps` steps of `game` as recorded in `column` of `file`, and compare every row.
fn replay(game: &str, keyword_arguments: &str, steps: usize, file: &str, column: &str) -> Ends {
    let request = EnvironmentRequest { keyword_arguments: keyword_arguments.into(), ..EnvironmentRequest::new(format!("atari:{game}")) };
    let seen = ObservationOptions { frames_per_observation: 1, frame_stack: None, as_floats: false };
    let mut environment = seen.of(request.make().unwrap()).unwrap();
    let ActionSpace::Discrete { n: actions } = environment.spec().action else { panic!("a joystick has no real numbers") };
    let mut observation: ValueBuffer = environment.spec().observation.zeros();
    let mut rows = recorded(file, column).into_iter().enumerate();
    let mut compare = |found: u32| {
        let (row, expected) = rows.next().expect("the recording has a row for each call");
        assert_eq!(found, expected, "{game} {keyword_arguments}, row {row}");
    };
    let mut ends = Ends::default();
    for step in 0..steps {
        if step % STEPS_PER_SEED == 0 {
            environment.reset(Some(SEEDS[step / STEPS_PER_SEED]), observation.values_mut()).unwrap();
            compare(checksum(observation.values(), 0.0, RESET));
        }
        let played = environment.step(Action::Discrete(action(step, actions)), observation.values_mut()).unwrap();
        let Step { reward, terminated, truncated } = played;
        compare(checksum(observation.values(), reward, TERMINATED * u8::from(terminated) + TRUNCATED * u8::from(truncated)));
        ends.terminated += usize::from(terminated);
        ends.truncated += usize::from(truncated);
        if played.ended() {
            environment.reset(None, observation.values_mut()).unwrap();
            compare(checksum(observation.values(), 0.0, RESET));
        }
    }
    assert!(rows.next().is_none(), "the recording goes on");
    ends
}

/// Ten thousand steps of `game`, with and without sticky actions. The button is not pressed first: Gymnasium does not either.
fn equals_gymnasium(test: &str, game: &str) {
    in_prepared_process(test, || {
        for (column, probability) in [("always", 0.0), ("sticky", 0.25)] {
            let arguments = format!("{{\"fire_reset\": false, \"repeat_action_probability\": {probability}}}");
            let ends = replay(game, &arguments, 10_000, game, column);
            assert!(ends.terminated >= 8 && ends.truncated == 0, "{ends:?}");
        }
    });
}

#[test]
fn pong_equals_gymnasium() {
    equals_gymnasium("atari_parity::pong_equals_gymnasium", "Pong");
}

#[test]
fn breakout_equals_gymnasium() {
    equals_gymnasium("atari_parity::breakout_equals_gymnasium", "Breakout");
}

#[test]
fn space_invaders_equals_gymnasium() {
    equals_gymnasium("atari_parity::space_invaders_equals_gymnasium", "SpaceInvaders");
}

#[test]
fn small_frames_short_waits_and_truncated_games_equal_gymnasium() {
    in_prepared_process("atari_parity::small_frames_short_waits_and_truncated_games_equal_gymnasium", || {
        let arguments = r#"{"fire_reset": false, "screen_size": 42, "noop_max": 7, "max_num_frames_per_episode": 1000}"#;
        let ends = replay("Breakout", arguments, 2_500, "Breakout-42", "sticky");
        assert_eq!(ends, Ends { terminated: 10, truncated: 2 });
    });
}
