//! Each verdict on the times of a run that shows it.

use super::*;

fn context() -> Context {
    Context { samples_per_insert: Some(32.0), actors: 4, learners: 1, cores: 7 }
}

fn run(actor: [f64; 4], learner: [f64; 5]) -> Snapshot {
    let [environment_s, inference_s, insert_s, limiter_wait_s] = actor;
    let actor_time = ActorTime { environment_s, inference_s, insert_s, limiter_wait_s };
    let [replay_s, compute_s, exchange_s, publish_s, limiter_wait_s] = learner;
    let learner_time = LearnerTime { replay_s, compute_s, exchange_s, publish_s, limiter_wait_s };
    Snapshot { wall_s: 25.0, updates: 5000, inserted: 10_000, sampled: 320_000, actor_time, learner_time, ..Snapshot::default() }
}

#[test]
fn actors_that_wait_for_busy_learners_show_a_learner_bound_run() {
    let verdict = verdict(&run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]), &context());
    assert_eq!(verdict.bottleneck, Bottleneck::Learners);
    assert_eq!(
        verdict.to_string(),
        "learner-bound: actors waited 71 % of their time for the rate limiter, learners 4 % (learners: 80 % gradients); lower \
         replay.samples_per_insert (now 32), shrink network.hidden, or add learners (learner.count = 1, 2 cores free)"
    );
}

#[test]
fn the_advice_follows_the_slowest_part_of_learning() {
    let exchange = verdict(&run([10.0, 15.0, 4.0, 71.0], [3.0, 5.0, 12.0, 1.0, 1.0]), &Context { learners: 3, ..context() });
    assert!(exchange.to_string().ends_with("or lower learner.count (now 3), whose gradients wait for each other"), "{exchange}");
    let replay = verdict(&run([10.0, 15.0, 4.0, 71.0], [13.0, 5.0, 2.0, 1.0, 1.0]), &context());
    assert!(replay.to_string().contains("replay.fanout"), "{replay}");
    let publish = verdict(&run([10.0, 15.0, 4.0, 71.0], [1.0, 5.0, 2.0, 11.0, 1.0]), &context());
    assert!(publish.to_string().contains("learner.publish_interval_updates"), "{publish}");
}

#[test]
fn no_core_is_offered_that_is_not_there() {
    let verdict = verdict(&run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]), &Context { cores: 2, ..context() });
    assert!(!verdict.to_string().contains("add learners"), "{verdict}");
}

#[test]
fn learners_that_wait_for_busy_actors_show_an_actor_bound_run() {
    let verdict = verdict(&run([70.0, 15.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &context());
    assert_eq!(verdict.bottleneck, Bottleneck::Actors);
    assert_eq!(
        verdict.to_string(),
        "actor-bound: learners waited 60 % of their time for new transitions, actors 2 % (actors: 70 % stepping environments); add actors \
         (actor.count = 4, 2 cores free), or raise replay.samples_per_insert (now 32) to learn more from each transition"
    );
}

#[test]
fn the_advice_follows_the_slowest_part_of_acting() {
    let inference = verdict(&run([10.0, 75.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &context());
    assert!(inference.to_string().contains("raise actor.environments"), "{inference}");
    let insert = verdict(&run([10.0, 15.0, 73.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &context());
    assert!(insert.to_string().contains("raise actor.flush_transitions"), "{insert}");
    let full = verdict(&run([70.0, 15.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &Context { cores: 5, ..context() });
    assert!(full.to_string().contains("all 5 are taken"), "{full}");
}

#[test]
fn two_sides_that_wait_for_each_other_show_the_rate_limiter() {
    let verdict = verdict(&run([30.0, 15.0, 15.0, 40.0], [5.0, 8.0, 0.0, 2.0, 10.0]), &context());
    assert_eq!(verdict.bottleneck, Bottleneck::RateLimiter);
    assert!(verdict.to_string().contains("actors waited 40 % and learners 40 %"), "{verdict}");
    assert!(verdict.to_string().contains("at 32 samples per insert; widen replay.error_band"), "{verdict}");
}

#[test]
fn sides_that_never_wait_show_the_cores() {
    let busy = run([60.0, 25.0, 10.0, 5.0], [5.0, 18.0, 0.0, 1.0, 1.0]);
    let crowded = verdict(&busy, &Context { cores: 2, ..context() });
    assert_eq!(crowded.bottleneck, Bottleneck::Cores);
    assert!(crowded.to_string().contains("lower actor.count (now 4): 5 processes share 2 cores"), "{crowded}");
    let roomy = verdict(&busy, &context());
    assert!(roomy.to_string().contains("raise actor.count (now 4) and learner.count (now 1), 2 cores free"), "{roomy}");
}

#[test]
fn a_free_run_is_judged_by_its_rates() {
    let free = Context { samples_per_insert: None, ..context() };
    let run = run([60.0, 25.0, 15.0, 0.0], [5.0, 19.0, 0.0, 1.0, 0.0]);
    let slow_learners = verdict(&Snapshot { sampled: 4_000, ..run.clone() }, &free);
    assert_eq!(slow_learners.bottleneck, Bottleneck::Learners);
    assert!(slow_learners.to_string().contains("0.4 samples per inserted transition (learners: 76 % gradients)"), "{slow_learners}");
    let slow_actors = verdict(&Snapshot { sampled: 900_000, ..run.clone() }, &free);
    assert_eq!(slow_actors.bottleneck, Bottleneck::Actors);
    assert!(slow_actors.to_string().contains("90 samples per inserted transition (actors: 60 % stepping"), "{slow_actors}");
    assert_eq!(verdict(&Snapshot { sampled: 80_000, ..run }, &free).bottleneck, Bottleneck::Cores);
}

#[test]
fn one_process_is_told_how_its_time_divides() {
    let verdict = verdict(&run([2.0, 3.0, 0.0, 0.0], [5.0, 10.0, 0.0, 0.0, 0.0]), &Context { actors: 0, ..context() });
    assert_eq!(verdict.bottleneck, Bottleneck::OneProcess);
    assert!(verdict.to_string().contains("acting took 25 % and learning 75 %"), "{verdict}");
}

#[test]
fn a_run_that_hardly_began_is_not_judged() {
    let short = verdict(&run([0.1, 0.1, 0.0, 0.0], [0.1, 0.1, 0.0, 0.0, 0.0]), &context());
    assert_eq!(short.bottleneck, Bottleneck::Unknown);
    let without_updates = Snapshot { updates: 0, ..run([10.0, 15.0, 4.0, 71.0], [0.0, 0.0, 0.0, 0.0, 100.0]) };
    assert_eq!(verdict(&without_updates, &context()).bottleneck, Bottleneck::Unknown);
}

#[test]
fn the_time_before_learning_does_not_count() {
    let filling = run([50.0, 20.0, 5.0, 0.0], [0.0, 0.0, 0.0, 0.0, 75.0]);
    let end = run([60.0, 35.0, 9.0, 71.0], [3.0, 20.0, 0.0, 1.0, 76.0]);
    assert_eq!(verdict(&end, &context()).bottleneck, Bottleneck::RateLimiter);
    assert_eq!(verdict_since(&filling, &end, &context()).bottleneck, Bottleneck::Learners);
}
