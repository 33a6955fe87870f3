//! What a picture shows is where the observation says that it is.

use shoal::environments::{Action, ObservationOptions, Picture, delayed, make, names};

use crate::support::{Played, Undrawn};

const INK: [u8; 3] = [38, 50, 66];
const RED: [u8; 3] = [217, 83, 60];
const ORANGE: [u8; 3] = [240, 162, 58];
const BLUE: [u8; 3] = [58, 124, 196];

/// Mean column and row of the pixels of a colour.
fn centre(picture: &Picture, colour: [u8; 3]) -> [f64; 2] {
    let places = (0..picture.height).flat_map(|row| (0..picture.width).map(move |column| (column, row)));
    let found: Vec<_> = places.filter(|&(column, row)| picture.pixel(column, row) == colour).collect();
    assert!(!found.is_empty(), "nothing has the colour {colour:?}");
    let mean = |part: fn(&(usize, usize)) -> usize| found.iter().map(part).sum::<usize>() as f64 / found.len() as f64 + 0.5;
    [mean(|place| place.0), mean(|place| place.1)]
}

fn assert_near([column, row]: [f64; 2], [expected_column, expected_row]: [f64; 2], pixels: f64) {
    let near = (column - expected_column).abs() <= pixels && (row - expected_row).abs() <= pixels;
    assert!(near, "it is at {column:.1}, {row:.1} and should be within {pixels} of {expected_column:.1}, {expected_row:.1}");
}

/// Look at 100 steps with random actions.
fn look(id: &str, mut check: impl FnMut(&Picture, &[f64])) {
    let mut played = Played::new(make(id).expect("it is native"), 1);
    for _ in 0..100 {
        check(&played.picture(), &played.observed());
        if played.step_at_random().ended() {
            // The state in which an episode ended is drawn, too.
            check(&played.picture(), &played.observed());
            played.reset(None);
        }
    }
}

#[test]
fn every_native_environment_is_drawn_in_the_size_that_it_has_elsewhere_and_pictures_follow_the_state() {
    for id in names() {
        let mut played = Played::new(make(id).expect("it is native"), 3);
        let first = played.picture();
        let size = match id {
            "CartPole-v1" | "MountainCar-v0" | "MountainCarContinuous-v0" => (600, 400),
            "Acrobot-v1" | "Pendulum-v1" => (500, 500),
            "Catch-v0" => (200, 400),
            "Rally-v0" => (420, 420),
            _ => (480, 480),
        };
        assert_eq!((first.width, first.height), size, "{id}");
        assert_eq!(played.picture(), first, "{id} is drawn otherwise the second time");
        let mut different = 0;
        for _ in 0..200 {
            let before = played.picture();
            if played.step_at_random().ended() {
                played.reset(None);
            }
            let after = played.picture();
            assert_eq!((after.width, after.height), size, "{id}");
            different += usize::from(before != after);
        }
        // A slow car may stay within the same pixels.
        assert!(different >= 100, "{id} looked different after {different} of 200 steps");
        played.reset(Some(3));
        assert_eq!(played.picture(), first, "{id} is drawn otherwise after another reset");
    }
}

#[test]
fn the_cart_is_where_its_position_says_and_the_pole_leans_as_its_angle_says() {
    look("CartPole-v1", |picture, observed| {
        let x = 300.0 + 125.0 * observed[0];
        let [column, _] = centre(picture, INK);
        // The pole hides a part of the cart.
        assert!((column - x).abs() < 4.0, "the cart is at {column}, its position at {x}");
        let middle_of_pole = [x + 62.5 * observed[2].sin(), 300.0 - 7.5 - 62.5 * observed[2].cos()];
        assert_near(centre(picture, ORANGE), middle_of_pole, 6.0);
    });
}

#[test]
fn the_car_is_on_the_hill_at_its_position() {
    for id in ["MountainCar-v0", "MountainCarContinuous-v0"] {
        look(id, |picture, observed| {
            let height = 0.45 * (3.0 * observed[0]).sin() + 0.55;
            let [column, row] = [(observed[0] + 1.2) / 1.8 * 600.0, 400.0 - height / 1.8 * 600.0];
            assert_near(centre(picture, ORANGE), [column, row], 25.0);
        });
    }
}

#[test]
fn the_pendulum_points_where_its_angle_says() {
    look("Pendulum-v1", |picture, observed| {
        let (cosine, sine) = (observed[0], observed[1]);
        let half = 500.0 / 4.4 / 2.0;
        assert_near(centre(picture, RED), [250.0 - half * sine, 250.0 - half * cosine], 6.0);
    });
}

#[test]
fn the_links_of_the_acrobot_hang_as_their_angles_say() {
    look("Acrobot-v1", |picture, observed| {
        let (first, second) = (observed[1].atan2(observed[0]), observed[3].atan2(observed[2]));
        let link = 500.0 / 4.4;
        let joint = [250.0 + link * first.sin(), 250.0 + link * first.cos()];
        let middle = [joint[0] + link / 2.0 * (first + second).sin(), joint[1] + link / 2.0 * (first + second).cos()];
        assert_near(centre(picture, ORANGE), middle, 8.0);
    });
}

#[test]
fn the_board_of_catch_shows_what_is_observed() {
    look("Catch-v0", |picture, observed| {
        let lit = |row: usize, column: usize| observed[row * 5 + column] == 255.0;
        for (row, column) in (0..9).flat_map(|row| (0..5).map(move |column| (row, column))) {
            let colour = picture.pixel(column * 40 + 20, row * 40 + 20);
            assert_eq!(colour == ORANGE, lit(row, column), "row {row}, column {column}");
        }
        for column in 0..5 {
            // The paddle lies at the bottom of its cell, and the ball may be above it.
            let is_paddle = picture.pixel(column * 40 + 4, 390) == BLUE;
            let is_ball = picture.pixel(column * 40 + 20, 374) == ORANGE;
            assert_eq!(is_paddle || is_ball, lit(9, column), "column {column}");
        }
    });
}

#[test]
fn the_court_of_rally_shows_what_is_observed() {
    look("Rally-v0", |picture, observed| {
        let lit = |column: usize, row: usize| observed[row * 42 + column] == 255.0;
        let middle = |columns: std::ops::Range<usize>| -> [f64; 2] {
            let places = (2..42).flat_map(|row| columns.clone().map(move |column| (column, row)));
            let found: Vec<_> = places.filter(|&(column, row)| lit(column, row)).collect();
            let mean = |part: fn(&(usize, usize)) -> usize| found.iter().map(part).sum::<usize>() as f64 / found.len() as f64;
            [10.0 * mean(|place| place.0) + 5.0, 10.0 * mean(|place| place.1) + 5.0]
        };
        // The screen shows whole rows, and the picture what is between them.
        assert_near(centre(picture, ORANGE), middle(4..38), 5.5);
        // Paddles and points have one colour: the paddle alone is above a point in its lower part.
        for row in (2..42).filter(|&row| lit(38, row) && lit(38, row - 1) && row < 41 && lit(38, row + 1)) {
            assert_eq!(picture.pixel(390, row * 10 + 5), BLUE);
        }
        for row in (3..41).filter(|&row| lit(2, row) && lit(2, row - 1) && lit(2, row + 1)) {
            assert_eq!(picture.pixel(30, row * 10 + 5), RED);
        }
        for point in 0..5 {
            assert_eq!(picture.pixel((39 - 2 * point) * 10 + 5, 10) == BLUE, lit(39 - 2 * point, 0));
            assert_eq!(picture.pixel((2 + 2 * point) * 10 + 5, 10) == RED, lit(2 + 2 * point, 0));
        }
    });
}

#[test]
#[cfg(feature = "mujoco")]
fn a_simulated_body_stays_in_the_picture_and_its_legs_move() {
    for id in names().filter(|id| id.starts_with("mujoco:")) {
        let mut played = Played::new(make(id).expect("it is native"), 1);
        let mut legs = Vec::new();
        for _ in 0..100 {
            let picture = played.picture();
            let [column, row] = centre(&picture, BLUE);
            assert!((80.0..400.0).contains(&column) && (80.0..400.0).contains(&row), "{id}: the trunk is at {column}, {row}");
            legs.push(centre(&picture, ORANGE).map(|place| place as i64));
            if played.step_at_random().ended() {
                played.reset(None);
            }
        }
        legs.sort_unstable();
        legs.dedup();
        assert!(legs.len() >= 5, "{id}: {legs:?}");
    }
}

#[test]
fn what_is_put_around_an_environment_looks_like_it() {
    let mut played = Played::new(make("Rally-v0").expect("it is native"), 5);
    played.step(Action::Discrete(1));
    let picture = played.picture();
    for (frames, as_floats) in [(1, false), (4, false), (2, true)] {
        let options = ObservationOptions { frames_per_observation: 1, frame_stack: Some(frames), as_floats };
        let environment = options.of(delayed(make("Rally-v0").expect("it is native"), 1)).expect("frames divide");
        let mut around = Played::new(environment, 5);
        around.step(Action::Discrete(1));
        assert_eq!(around.picture(), picture);
    }
    let options = ObservationOptions { frames_per_observation: 2, frame_stack: Some(1), as_floats: false };
    let mut around = Played::new(options.of(make("Rally-v0").expect("it is native")).expect("2 divides 42"), 5);
    around.step(Action::Discrete(1));
    assert_eq!(around.picture(), picture);
}

#[test]
fn an_environment_that_nobody_drew_says_so() {
    let undrawn: Box<dyn shoal::environments::Environment> = Box::new(Undrawn(make("CartPole-v1").expect("it is native")));
    let refusal = undrawn.picture().expect_err("nothing was drawn").to_string();
    assert!(refusal.contains("`CartPole-v1`") && refusal.contains("Environment::picture"), "{refusal}");
}
