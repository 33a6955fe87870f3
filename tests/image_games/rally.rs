//! Rally, by what its screen shows, and by how well it can be played.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::play::Game;

const SIDE: usize = 42;
const STAY: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;

/// What is on the screen: places are those of the upper left corners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    ball: (usize, usize),
    agent_row: usize,
    opponent_row: usize,
    agent_points: usize,
    opponent_points: usize,
}

impl Seen {
    /// # Panics
    /// If anything else is on the screen, or not all of it.
    fn on(screen: &[u8]) -> Self {
        let lit = |column: usize, row: usize| screen[row * SIDE + column] == 255;
        let first_row = |column: usize| (2..SIDE).find(|&row| lit(column, row)).expect("something is in the column");
        let (agent_row, opponent_row) = (first_row(38), first_row(2));
        let in_play = (2..SIDE).flat_map(|row| (4..38).map(move |column| (column, row)));
        let ball = in_play.clone().find(|&(column, row)| lit(column, row)).expect("the ball is between the paddles");
        let agent_points = (0..5).take_while(|point| lit(39 - 2 * point, 0)).count();
        let opponent_points = (0..5).take_while(|point| lit(2 + 2 * point, 0)).count();
        let seen = Self { ball, agent_row, opponent_row, agent_points, opponent_points };
        assert_eq!(screen, seen.drawn(), "{seen:?}");
        seen
    }

    fn of(game: &Game) -> Self {
        Self::on(&game.screen)
    }

    /// The screen that shows this and nothing else.
    fn drawn(&self) -> Vec<u8> {
        let mut screen = vec![0; SIDE * SIDE];
        let mut block = |column: usize, row: usize, width: usize, height: usize| {
            (row..row + height).for_each(|row| screen[row * SIDE + column..][..width].fill(255));
        };
        block(self.ball.0, self.ball.1, 2, 2);
        block(38, self.agent_row, 2, 8);
        block(2, self.opponent_row, 2, 4);
        (0..self.agent_points).for_each(|point| block(39 - 2 * point, 0, 1, 1));
        (0..self.opponent_points).for_each(|point| block(2 + 2 * point, 0, 1, 1));
        screen
    }
}

/// What is seen when a point begins.
const SERVE: Seen = Seen { ball: (20, 21), agent_row: 18, opponent_row: 20, agent_points: 0, opponent_points: 0 };

#[test]
fn one_frame_does_not_show_where_the_ball_flies() {
    let mut game = Game::new("Rally-v0");
    let mut directions = Vec::new();
    for seed in 0..50 {
        game.reset(Some(seed));
        assert_eq!(Seen::of(&game), SERVE);
        game.step(STAY);
        let (column, row) = Seen::of(&game).ball;
        assert!([18, 22].contains(&column) && (20..=22).contains(&row));
        directions.push((column, row));
    }
    directions.sort_unstable();
    directions.dedup();
    assert_eq!(directions.len(), 6, "both sides, up, level and down: {directions:?}");
}

#[test]
fn the_walls_stop_the_paddle() {
    let mut game = Game::new("Rally-v0");
    let seed_that_serves_to_the_opponent = (0..100).find(|&seed| {
        game.reset(Some(seed));
        game.step(STAY);
        Seen::of(&game).ball.0 < 20
    });
    let mut rows = |action| -> Vec<usize> {
        game.reset(seed_that_serves_to_the_opponent);
        let play = |_| {
            game.step(action);
            Seen::of(&game).agent_row
        };
        (0..10).map(play).collect()
    };
    assert_eq!(rows(UP), [16, 14, 12, 10, 8, 6, 4, 2, 2, 2]);
    assert_eq!(rows(DOWN), [20, 22, 24, 26, 28, 30, 32, 34, 34, 34]);
}

#[test]
fn the_screen_and_the_rewards_tell_one_story() {
    proptest!(ProptestConfig::with_cases(40), |(seed: u64, actions in prop::collection::vec((0usize..3, 1usize..12), 100))| {
        let mut game = Game::new("Rally-v0");
        game.reset(Some(seed));
        let mut before = Seen::of(&game);
        for action in actions.into_iter().flat_map(|(action, times)| std::iter::repeat_n(action, times)) {
            let step = game.step(action);
            let seen = Seen::of(&game);
            let points = |seen: &Seen| seen.agent_points as f64 - seen.opponent_points as f64;
            prop_assert_eq!(points(&seen) - points(&before), step.reward);
            prop_assert!([-1.0, 0.0, 1.0].contains(&step.reward));
            prop_assert_eq!(step.terminated, seen.agent_points == 5 || seen.opponent_points == 5);
            if step.terminated {
                return Ok(());
            }
            if step.reward == 0.0 {
                let moved = [0, -2, 2][action];
                prop_assert_eq!(seen.agent_row as i32, (before.agent_row as i32 + moved).clamp(2, 34));
                prop_assert!(seen.opponent_row.abs_diff(before.opponent_row) <= 2);
                prop_assert_eq!(seen.ball.0.abs_diff(before.ball.0), 2);
                prop_assert!(seen.ball.1.abs_diff(before.ball.1) <= 2);
            } else {
                let Seen { agent_points, opponent_points, .. } = seen;
                prop_assert_eq!(seen, Seen { agent_points, opponent_points, ..SERVE });
            }
            before = seen;
        }
    });
}

/// Chooses an action by the last two frames.
type Player<'a> = dyn FnMut(&Seen, &Seen) -> usize + 'a;

/// Mean return of games, each with a seed of its own.
fn mean_return(player: &mut Player<'_>) -> f64 {
    const GAMES: u64 = 20;
    let mut game = Game::new("Rally-v0");
    let mut total = 0.0;
    for seed in 0..GAMES {
        game.reset(Some(seed));
        let mut frames = [Seen::of(&game); 2];
        loop {
            let step = game.step(player(&frames[0], &frames[1]));
            frames = [frames[1], Seen::of(&game)];
            total += step.reward;
            if step.ended() {
                break;
            }
        }
    }
    total / GAMES as f64
}

/// The action that brings the middle of the paddle towards that row.
fn towards(row: i32, seen: &Seen) -> usize {
    match row - (seen.agent_row as i32 + 4) {
        -1..=1 => STAY,
        lag if lag < 0 => UP,
        _ => DOWN,
    }
}

#[test]
fn two_frames_are_enough_to_win() {
    let mut aim = |before: &Seen, now: &Seen| {
        // The ball flies away: wait in the middle. Else meet it with the outer rows.
        let row = if now.ball.0 < before.ball.0 { 22 } else { now.ball.1 as i32 + 1 - 2 };
        towards(row, now)
    };
    let mean = mean_return(&mut aim);
    assert!(mean >= 4.5, "mean return {mean}");
}

#[test]
fn who_only_keeps_the_ball_does_not_win() {
    let mean = mean_return(&mut |_, now| towards(now.ball.1 as i32 + 1, now));
    assert!((0.0..1.0).contains(&mean), "mean return {mean}");
}

#[test]
fn chance_loses() {
    let mut random = Pcg64::seed_from_u64(0);
    let mean = mean_return(&mut |_, _| random.random_range(0..3));
    assert!((-5.0..=-3.0).contains(&mean), "mean return {mean}");
}
