//! `Rally-v0`: two paddles play a ball to and fro. A game of our own, in which it is not enough to keep the ball: a point takes aim,
//! and where the ball flies shows only across frames.
//!
//! - **Screen**: 42 rows of 42 pixels, each 0 or 255. Rows 2 to 41 are the court, 40 rows high; heights are counted downwards from its
//!   top. Row 0 shows the points: the opponent's in columns 2, 4, 6, 8 and 10, the agent's in columns 39, 37, 35, 33 and 31.
//! - **Ball**: 2 x 2 pixels. It flies 2 columns per step and at most 2 rows; the walls at the top and at the bottom reflect it.
//! - **Agent**: a paddle of 8 rows in columns 38 and 39. Action 0 leaves it, 1 moves it 2 rows up, 2 moves it 2 rows down; the walls
//!   stop it.
//! - **Opponent**: a paddle of 4 rows in columns 2 and 3. It moves its middle towards that of the ball, at most 1.2 rows per step:
//!   0.6 of the ball's speed.
//! - **Return**: a ball beside a paddle (its left column is 4 or 36) is returned if it touches, that is if the middles of ball and
//!   paddle are at most half of their heights together apart. It then flies 2 d / 3 rows per step, where d, from -3 to 3, is how far its
//!   middle is below the paddle's: the middle of a paddle returns it level, the outer rows return it steeply.
//! - **Point**: a ball that is not returned is a point, +1 for the agent or -1, and the next serve. With the fifth point of either side
//!   the episode terminates, the ball where it was missed; after 2,000 steps it is truncated.
//! - **Serve**: both paddles in the middle of the court, the ball in column 20 at height 19. Of two random numbers the first chooses
//!   where it flies (to the opponent below one half), the second the rows per step, from -1 to 1. A reset draws the serves of the nine
//!   points that a game can have.
//!
//! A step moves the agent, then the ball, then the opponent, then looks for a return or a point. The screen shows the nearest whole
//! rows; only the ball and the opponent have fractions. The opponent is slower than a steep ball, so whoever meets the ball with the
//! outer rows of the paddle scores, and whoever only keeps the ball does not. Two frames show where the ball flies.

use super::Dynamics;
use crate::environments::drawing::{Block, RallyScene};
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture};

/// Rows and columns of the screen.
const SCREEN: usize = 42;
const LIT: u8 = 255;
/// Rows above the court.
const COURT_TOP: usize = 2;
const COURT_HEIGHT: f64 = 40.0;
const PADDLE_WIDTH: usize = 2;
const BALL_SIZE: usize = 2;

const BALL_COLUMNS_PER_STEP: usize = 2;
const STEEPEST_ROWS_PER_STEP: f64 = 2.0;
/// Rows between the middles of paddle and ball from which a ball is returned at the steepest.
const STEEPEST_OFFSET: f64 = 3.0;
const STEEPEST_SERVE_ROWS_PER_STEP: f64 = 1.0;
const SERVE_COLUMN: usize = 20;
const SERVE_HEIGHT: f64 = (COURT_HEIGHT - BALL_SIZE as f64) / 2.0;
const AGENT_ROWS_PER_STEP: f64 = 2.0;
const OPPONENT_ROWS_PER_STEP: f64 = 0.6 * STEEPEST_ROWS_PER_STEP;

/// Points that end a game.
const WINNING_POINTS: usize = 5;
/// Points of a game at most, each with a serve.
const MOST_POINTS: usize = 2 * WINNING_POINTS - 1;
const TIME_LIMIT_STEPS: u32 = 2_000;

/// Where each paddle stands, and where the ball is when it is beside it.
const AGENT: Place = Place { column: 38, ball_column: 36 };
const OPPONENT: Place = Place { column: 2, ball_column: 4 };

struct Place {
    column: usize,
    ball_column: usize,
}

#[derive(Clone, Copy)]
struct Paddle {
    /// Its upper end, counted from the top of the court.
    top: f64,
    height: usize,
}

impl Paddle {
    /// In the middle of the court.
    fn new(height: usize) -> Self {
        Self { top: (COURT_HEIGHT - height as f64) / 2.0, height }
    }

    fn move_by(&mut self, rows: f64) {
        self.top = (self.top + rows).clamp(0.0, COURT_HEIGHT - self.height as f64);
    }

    /// How far the middle of the ball is below that of the paddle.
    fn offset_of(&self, ball: &Ball) -> f64 {
        (ball.top + BALL_SIZE as f64 / 2.0) - (self.top + self.height as f64 / 2.0)
    }

    /// Rows per step of the ball that this paddle returns; nothing if it misses it.
    fn returns(&self, ball: &Ball) -> Option<f64> {
        let offset = self.offset_of(ball);
        let touches = offset.abs() <= (self.height + BALL_SIZE) as f64 / 2.0;
        touches.then(|| STEEPEST_ROWS_PER_STEP * (offset / STEEPEST_OFFSET).clamp(-1.0, 1.0))
    }
}

#[derive(Clone, Copy)]
struct Ball {
    column: usize,
    /// Its upper side, counted from the top of the court.
    top: f64,
    flies_to_agent: bool,
    /// Downwards.
    rows_per_step: f64,
}

impl Ball {
    fn serve(random: &mut Generator) -> Self {
        let flies_to_agent = random.uniform(0.0, 1.0) >= 0.5;
        let rows_per_step = random.uniform(-STEEPEST_SERVE_ROWS_PER_STEP, STEEPEST_SERVE_ROWS_PER_STEP);
        Self { column: SERVE_COLUMN, top: SERVE_HEIGHT, flies_to_agent, rows_per_step }
    }

    fn fly(&mut self) {
        self.column = if self.flies_to_agent { self.column + BALL_COLUMNS_PER_STEP } else { self.column - BALL_COLUMNS_PER_STEP };
        self.top += self.rows_per_step;
        let inside = self.top.clamp(0.0, COURT_HEIGHT - BALL_SIZE as f64);
        if self.top != inside {
            self.top = 2.0 * inside - self.top;
            self.rows_per_step = -self.rows_per_step;
        }
    }
}

/// A game; the serves of its points are drawn when it starts.
struct Game {
    serves: [Ball; MOST_POINTS],
    ball: Ball,
    agent: Paddle,
    opponent: Paddle,
    agent_points: usize,
    opponent_points: usize,
}

impl Game {
    fn new(random: &mut Generator) -> Self {
        let serves = std::array::from_fn(|_| Ball::serve(random));
        let (agent, opponent) = (Paddle::new(8), Paddle::new(4));
        Self { serves, ball: serves[0], agent, opponent, agent_points: 0, opponent_points: 0 }
    }

    /// One step. The result is the point that it brought the agent, which is -1 for one of the opponent's.
    fn play(&mut self, agent_rows: f64) -> f64 {
        self.agent.move_by(agent_rows);
        self.ball.fly();
        self.opponent.move_by(self.opponent.offset_of(&self.ball).clamp(-OPPONENT_ROWS_PER_STEP, OPPONENT_ROWS_PER_STEP));

        let (paddle, point) = match self.ball.column {
            column if column == AGENT.ball_column => (self.agent, -1.0),
            column if column == OPPONENT.ball_column => (self.opponent, 1.0),
            _ => return 0.0,
        };
        if let Some(rows_per_step) = paddle.returns(&self.ball) {
            self.ball = Ball { flies_to_agent: !self.ball.flies_to_agent, rows_per_step, ..self.ball };
            return 0.0;
        }
        if point > 0.0 {
            self.agent_points += 1;
        } else {
            self.opponent_points += 1;
        }
        if !self.is_over() {
            self.ball = self.serves[self.agent_points + self.opponent_points];
            (self.agent, self.opponent) = (Paddle::new(self.agent.height), Paddle::new(self.opponent.height));
        }
        point
    }

    fn is_over(&self) -> bool {
        self.agent_points == WINNING_POINTS || self.opponent_points == WINNING_POINTS
    }
}

pub(super) struct Rally {
    game: Game,
    /// What is shown. A step erases and draws what can move, and no more.
    screen: [u8; SCREEN * SCREEN],
}

impl Default for Rally {
    fn default() -> Self {
        Self { game: Game::new(&mut Generator::from_seed(0)), screen: [0; SCREEN * SCREEN] }
    }
}

impl Rally {
    /// Draw what can move, or erase it.
    fn paint(&mut self, shade: u8) {
        let Game { ball, agent, opponent, .. } = self.game;
        self.paint_block(ball.column, ball.top, BALL_SIZE, BALL_SIZE, shade);
        self.paint_block(AGENT.column, agent.top, PADDLE_WIDTH, agent.height, shade);
        self.paint_block(OPPONENT.column, opponent.top, PADDLE_WIDTH, opponent.height, shade);
    }

    fn paint_block(&mut self, column: usize, top: f64, width: usize, height: usize, shade: u8) {
        // Nothing is above the court, so adding one half and cutting off the fraction gives the nearest row.
        let first = COURT_TOP + (top + 0.5) as usize;
        for row in first..first + height {
            self.screen[row * SCREEN + column..][..width].fill(shade);
        }
    }

    /// Points are never erased within a game.
    fn paint_points(&mut self) {
        for point in 0..self.game.agent_points {
            self.screen[agent_point_column(point)] = LIT;
        }
        for point in 0..self.game.opponent_points {
            self.screen[opponent_point_column(point)] = LIT;
        }
    }
}

/// Where that point of the agent is shown, counted from 0.
fn agent_point_column(point: usize) -> usize {
    AGENT.column + 1 - 2 * point
}

/// Where that point of the opponent is shown.
fn opponent_point_column(point: usize) -> usize {
    OPPONENT.column + 2 * point
}

impl Dynamics for Rally {
    type Action = usize;
    type Value = u8;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec {
            time_limit_steps: Some(TIME_LIMIT_STEPS),
            reward_threshold: Some(4.0),
            frame_stack: 2,
            ..EnvironmentSpec::new("Rally-v0", ObservationSpace::bytes(&[SCREEN, SCREEN]), ActionSpace::Discrete { n: 3 })
        }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [u8]) {
        self.game = Game::new(random);
        self.screen.fill(0);
        self.paint(LIT);
        observation.copy_from_slice(&self.screen);
    }

    fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [u8]) -> (f64, bool) {
        self.paint(0);
        let point = self.game.play([0.0, -AGENT_ROWS_PER_STEP, AGENT_ROWS_PER_STEP][action]);
        self.paint(LIT);
        if point != 0.0 {
            self.paint_points();
        }
        observation.copy_from_slice(&self.screen);
        (point, self.game.is_over())
    }

    fn picture(&self) -> Option<Picture> {
        let Game { ball, agent, opponent, .. } = self.game;
        let block = |column: usize, top: f64, width: usize, height: usize| Block {
            column: column as f64,
            row: COURT_TOP as f64 + top,
            width: width as f64,
            height: height as f64,
        };
        let points = |columns: &dyn Fn(usize) -> usize, count: usize| -> Vec<Block> {
            (0..count).map(|point| block(columns(point), 0.5 - COURT_TOP as f64, 1, 1)).collect()
        };
        let scene = RallyScene {
            screen: SCREEN as u32,
            court_top: COURT_TOP as f64,
            ball: block(ball.column, ball.top, BALL_SIZE, BALL_SIZE),
            agent: block(AGENT.column, agent.top, PADDLE_WIDTH, agent.height),
            opponent: block(OPPONENT.column, opponent.top, PADDLE_WIDTH, opponent.height),
            agent_points: points(&agent_point_column, self.game.agent_points),
            opponent_points: points(&opponent_point_column, self.game.opponent_points),
        };
        Some(scene.draw())
    }
}
