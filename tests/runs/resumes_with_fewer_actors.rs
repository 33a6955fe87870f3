//! A run that goes on with fewer actors keeps what the others have seen. Driven as real binaries.

use nix::sys::signal::Signal;
use shoal::segment::Segment;
use shoal::sync::Ordering;

use crate::support::programs::{Supervised, number, start_preset};

/// The memory of the run, which stays mapped here when its name is gone.
fn memory(run: &Supervised) -> Segment {
    run.wait_for_process("actor");
    run.segment_read_only()
}

/// How many observations and returns the actor in `slot` has seen.
fn seen(memory: &Segment, slot: usize) -> [u64; 2] {
    let board = memory.statistics_board(slot).unwrap();
    board.read(&mut vec![0.0; board.len()]).map_or([0; 2], |(_, [observations, returns, ..])| [observations, returns])
}

#[test]
fn inputs_are_normalised_with_what_the_actors_that_are_gone_have_seen_as_well() {
    let mut run = start_preset(
        "cartpole_ppo",
        &[
            "actor.count=2",
            "actor.attach_slots=0",
            "algorithm.normalise_observations=true",
            "run.stop_eval_return=\"none\"",
            "run.stop_env_steps=1000000000",
            "checkpoint.interval_s=600",
        ],
    );
    let before = memory(&run);
    run.wait_until("what both have seen", || (0..2).all(|slot| seen(&before, slot)[0] > 1_000));
    run.end_by(Signal::SIGTERM);
    let (of_other, saved) = (seen(&before, 1), before.control().env_steps().load(Ordering::Relaxed));
    run.resume(&["--set", "actor.count=1"]);
    let after = memory(&run);
    run.wait_for("more steps", |line| number(line, "env_steps") > saved + 1_000);
    run.end_by(Signal::SIGTERM);
    let (now, steps) = (seen(&after, 0), after.control().env_steps().load(Ordering::Relaxed));
    for (now, of_other) in now.into_iter().zip(of_other) {
        assert!(now > steps - of_other / 2, "{now} of {steps} steps, of which {of_other} were the other actor's");
    }
}
