//! A whole run on a game of the Atari 2600: it trains from screens, and both actors and evaluator tell what games came to in points.

use nix::sys::signal::Signal;

use crate::support::programs::{self, start};

/// More than the hits of a thousand frames, less than their points: an invader gives 5 to 30.
const MORE_THAN_HITS: f64 = 20.0;

#[test]
fn a_run_trains_from_screens_and_tells_the_points_of_whole_games() {
    let mut run = start(&[
        "environment.id=atari:SpaceInvaders",
        r#"environment.keyword_arguments={"screen_size": 42, "max_num_frames_per_episode": 1000, "terminal_on_life_loss": true}"#,
        "network.convolutions=[[4, 8, 4], [4, 4, 2]]",
        "actor.count=1",
        "actor.environments=2",
        "evaluator.episodes=2",
        "evaluator.interval_ms=100",
    ]);
    run.wait_for_updates(20);
    let told = run.wait_for("a game of an actor", |line| line["train_return_mean"].is_number());
    assert!(told["train_return_mean"].as_f64() > Some(MORE_THAN_HITS), "actors tell points, not what a learner is rewarded with: {told}");
    run.wait_for("an evaluation", |line| line["eval_return_mean"].is_number());
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
    assert!(run.log().contains("ale-py 0.12.1"), "the emulator must be on record: {}", run.log());

    let played = run.program("evaluate").args(["--episodes", "2"]).arg(run.run_folder()).output().unwrap();
    let text = programs::told(&played) + &programs::said(&played);
    assert!(text.contains("on atari:SpaceInvaders"), "{text}");
}
