//! The recordings of `tests/record_games.py`, screen by screen.

use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use shoal::environments::Step;

use crate::play::Game;
use crate::support::recording::{RESET, SEEDED, TERMINATED, TRUNCATED, column};

/// Play what was recorded and compare every row. The result says how many steps terminated and how many were truncated.
fn replay(id: &str) -> [usize; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/environments/{id}.safetensors"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&bytes).expect("a recording");
    let flags = column(&file, "flags", Dtype::U8, |[flags]| flags);
    let actions = column(&file, "action", Dtype::U8, |[action]| usize::from(action));
    let rewards = column(&file, "reward", Dtype::I8, |bytes| f64::from(i8::from_le_bytes(bytes)));
    let screens = column(&file, "screen_crc32", Dtype::U32, u32::from_le_bytes);
    let mut seeds = column(&file, "seeds", Dtype::U64, u64::from_le_bytes).into_iter();

    let mut game = Game::new(id);
    let mut ends = [0; 2];
    for (row, &flags) in flags.iter().enumerate() {
        if flags & RESET != 0 {
            game.reset((flags & SEEDED != 0).then(|| seeds.next().expect("a seed for each seeded reset")));
        } else {
            let (terminated, truncated) = (flags & TERMINATED != 0, flags & TRUNCATED != 0);
            assert_eq!(game.step(actions[row]), Step { reward: rewards[row], terminated, truncated }, "`{id}`, row {row}");
            ends[0] += usize::from(terminated);
            ends[1] += usize::from(truncated);
        }
        assert_eq!(crc32fast::hash(&game.screen), screens[row], "screen of `{id}`, row {row}: {:?}", game.screen);
    }
    assert!(seeds.next().is_none(), "seeds are left over");
    ends
}

#[test]
fn catch_is_the_game_of_bsuite() {
    assert_eq!(replay("Catch-v0"), [67, 0]);
}

#[test]
fn rally_is_the_game_that_its_rules_describe() {
    assert_eq!(replay("Rally-v0"), [21, 1]);
}
