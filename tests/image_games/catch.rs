//! Catch, move by move and by its properties.

use proptest::prelude::*;

use crate::play::Game;

const LEFT: usize = 0;
const STAY: usize = 1;
const RIGHT: usize = 2;

/// The board as text, a line for each row.
fn board(screen: &[u8]) -> String {
    let cell = |&byte: &u8| if byte == 255 { '#' } else { '.' };
    screen.chunks(5).map(|row| row.iter().map(cell).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// A game whose ball falls in `column`.
fn game_with_ball_in(column: usize) -> Game {
    let mut game = Game::new("Catch-v0");
    let seed = (0..1_000).find(|&seed| {
        game.reset(Some(seed));
        game.screen[column] == 255
    });
    assert!(seed.is_some(), "the ball never falls in column {column}");
    game
}

#[test]
fn a_ball_is_caught_move_by_move() {
    let mut game = game_with_ball_in(4);
    assert_eq!(board(&game.screen), "....#\n.....\n.....\n.....\n.....\n.....\n.....\n.....\n.....\n..#..");
    for (action, expected) in [
        (LEFT, ".....\n....#\n.....\n.....\n.....\n.....\n.....\n.....\n.....\n.#..."),
        (LEFT, ".....\n.....\n....#\n.....\n.....\n.....\n.....\n.....\n.....\n#...."),
        // The wall stops it.
        (LEFT, ".....\n.....\n.....\n....#\n.....\n.....\n.....\n.....\n.....\n#...."),
        (RIGHT, ".....\n.....\n.....\n.....\n....#\n.....\n.....\n.....\n.....\n.#..."),
        (STAY, ".....\n.....\n.....\n.....\n.....\n....#\n.....\n.....\n.....\n.#..."),
        (RIGHT, ".....\n.....\n.....\n.....\n.....\n.....\n....#\n.....\n.....\n..#.."),
        (RIGHT, ".....\n.....\n.....\n.....\n.....\n.....\n.....\n....#\n.....\n...#."),
        (RIGHT, ".....\n.....\n.....\n.....\n.....\n.....\n.....\n.....\n....#\n....#"),
    ] {
        let step = game.step(action);
        assert_eq!(board(&game.screen), expected);
        assert_eq!((step.reward, step.ended()), (0.0, false));
    }
    // Into the other wall, and the ball arrives.
    let step = game.step(RIGHT);
    assert_eq!(board(&game.screen), format!("{}....#", ".....\n".repeat(9)));
    assert_eq!((step.reward, step.terminated, step.truncated), (1.0, true, false));
}

#[test]
fn a_ball_that_is_missed_costs_one() {
    let mut game = game_with_ball_in(1);
    (0..8).for_each(|_| assert_eq!(game.step(STAY).reward, 0.0));
    let step = game.step(STAY);
    assert_eq!(board(&game.screen), format!("{}.##..", ".....\n".repeat(9)));
    assert_eq!((step.reward, step.terminated), (-1.0, true));
}

#[test]
fn every_column_is_as_likely() {
    const GAMES: usize = 5_000;
    let mut game = Game::new("Catch-v0");
    let mut balls = [0; 5];
    for index in 0..GAMES {
        game.reset((index == 0).then_some(0));
        balls[game.screen[..5].iter().position(|&byte| byte == 255).expect("the ball is in the first row")] += 1;
    }
    // Four standard deviations of a fifth.
    assert!(balls.iter().all(|count| (887..=1_113).contains(count)), "{balls:?}");
}

#[test]
fn a_game_has_nine_steps_and_one_reward() {
    proptest!(|(seed: u64, actions in prop::array::uniform9(0usize..3))| {
        let mut game = Game::new("Catch-v0");
        game.reset(Some(seed));
        let ball = game.screen[..5].iter().position(|&byte| byte == 255).expect("the ball is in the first row");
        let mut paddle = 2_usize;
        for (index, action) in actions.into_iter().enumerate() {
            let step = game.step(action);
            paddle = match action {
                LEFT => paddle.saturating_sub(1),
                RIGHT => (paddle + 1).min(4),
                _ => paddle,
            };
            let mut expected = [0; 50];
            expected[(index + 1) * 5 + ball] = 255;
            expected[45 + paddle] = 255;
            prop_assert_eq!(&game.screen, &expected);
            prop_assert_eq!(step.terminated, index == 8);
            let outcome = if paddle == ball { 1.0 } else { -1.0 };
            prop_assert_eq!(step.reward, if index == 8 { outcome } else { 0.0 });
        }
    });
}
