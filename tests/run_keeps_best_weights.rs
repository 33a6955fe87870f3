//! What fresh episodes confirmed as the best stays when a run goes on, unless it is about to be found again.

mod run_support;

use run_support::start;

#[test]
fn best_weights_that_came_after_the_checkpoint_of_an_asynchronous_run_stay() {
    let mut run = start(&["run.stop_env_steps=2000", "evaluator.enabled=false", "checkpoint.interval_s=600"]);
    assert!(run.wait().success(), "{}", run.output());
    // As a confirmation after the last checkpoint leaves them.
    let weights = run.run_folder().join("weights");
    std::fs::copy(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
    let best = std::fs::read(weights.join("best.safetensors")).unwrap();
    let steps = run.metrics().pop().unwrap()["env_steps"].as_u64().unwrap();
    run.resume(&["--set", "actor.count=0", "--set", &format!("run.stop_env_steps={}", steps + 500)]);
    assert!(run.wait().success(), "{}", run.output());
    assert!(std::fs::read(weights.join("best.safetensors")).is_ok_and(|now| now == best));
}

#[test]
fn best_weights_of_an_asynchronous_life_stay_whatever_came_before_and_after_it() {
    let mut run =
        start(&["actor.count=0", "run.stop_env_steps=2000", "evaluator.enabled=false", "checkpoint.synchronous_interval_steps=1000"]);
    assert!(run.wait().success(), "{}", run.output());
    run.resume(&["--set", "actor.count=1", "--set", "checkpoint.interval_s=none", "--set", "run.stop_env_steps=1000000000"]);
    run.wait_for("steps of a life without a checkpoint", |line| line["env_steps"].as_u64() > Some(2500));
    run.kill();
    run.wait_for_end_of_all();
    let weights = run.run_folder().join("weights");
    std::fs::copy(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
    let best = std::fs::read(weights.join("best.safetensors")).unwrap();
    run.resume(&["--set", "actor.count=0", "--set", "run.stop_env_steps=4000"]);
    assert!(run.wait().success(), "{}", run.output());
    assert!(std::fs::read(weights.join("best.safetensors")).is_ok_and(|now| now == best));
}

#[test]
fn best_weights_of_a_synchronous_run_stay_where_it_goes_on_otherwise_and_come_again_where_not() {
    for (change, stay) in [("learner.learning_rate=0.0001", true), ("run.stop_env_steps=3500", true), ("machine.max_restarts=3", false)] {
        let settings = ["actor.count=0", "run.stop_env_steps=3000", "evaluator.enabled=false"];
        let mut run = start(&[&settings[..], &["checkpoint.synchronous_interval_steps=1000", "checkpoint.keep_last=9"]].concat());
        assert!(run.wait().success(), "{}", run.output());
        // As a confirmation after the checkpoint leaves them.
        let weights = run.run_folder().join("weights");
        std::fs::copy(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
        let first = run.checkpoints().remove(0);
        run.resume(&["--from", first.to_str().unwrap(), "--set", change]);
        assert!(run.wait().success(), "{}", run.output());
        assert_eq!(weights.join("best.safetensors").exists(), stay, "{change}");
    }
}
