//! What fresh episodes confirmed as the best stays when a run goes on, unless it is about to be found again.

use serde_json::Value;
use shoal::checkpoint::{PolicyWeights, RunCheckpoint};

use crate::support::programs::{Supervised, number, program, said, start, told};

#[test]
fn best_weights_that_came_after_the_checkpoint_of_an_asynchronous_run_stay() {
    let mut run = start(&["run.stop_env_steps=2000", "evaluator.enabled=false", "checkpoint.interval_s=600"]);
    run.succeed();
    // As a confirmation after the last checkpoint leaves them.
    let weights = run.run_folder().join("weights");
    std::fs::copy(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
    let best = std::fs::read(weights.join("best.safetensors")).unwrap();
    let steps = run.metrics().pop().unwrap()["env_steps"].as_u64().unwrap();
    run.resume(&["--set", "actor.count=0", "--set", &format!("run.stop_env_steps={}", steps + 500)]);
    run.succeed();
    assert!(std::fs::read(weights.join("best.safetensors")).is_ok_and(|now| now == best));
}

#[test]
fn best_weights_of_an_asynchronous_life_stay_whatever_came_before_and_after_it() {
    let mut run =
        start(&["actor.count=0", "run.stop_env_steps=2000", "evaluator.enabled=false", "checkpoint.synchronous_interval_steps=1000"]);
    run.succeed();
    run.resume(&["--set", "actor.count=1", "--set", "checkpoint.interval_s=none", "--set", "run.stop_env_steps=1000000000"]);
    run.wait_for("steps of a life without a checkpoint", |line| line["env_steps"].as_u64() > Some(2500));
    run.kill();
    run.wait_for_end_of_all();
    let weights = run.run_folder().join("weights");
    std::fs::copy(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
    let best = std::fs::read(weights.join("best.safetensors")).unwrap();
    run.resume(&["--set", "actor.count=0", "--set", "run.stop_env_steps=4000"]);
    run.succeed();
    assert!(std::fs::read(weights.join("best.safetensors")).is_ok_and(|now| now == best));
}

#[test]
fn a_resumed_synchronous_run_keeps_its_best_weights_only_if_a_change_keeps_it_from_finding_them_again() {
    for (change, stay) in [("learner.learning_rate=0.0001", true), ("run.stop_env_steps=3500", true), ("machine.max_restarts=3", false)] {
        let settings = ["actor.count=0", "run.stop_env_steps=3000", "evaluator.enabled=false"];
        let mut run = start(&[&settings[..], &["checkpoint.synchronous_interval_steps=1000", "checkpoint.keep_last=9"]].concat());
        run.succeed();
        // As a confirmation after the checkpoint leaves them.
        let weights = run.run_folder().join("weights");
        std::fs::copy(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
        let first = run.checkpoints().remove(0);
        run.resume(&["--from", first.to_str().unwrap(), "--set", change]);
        run.succeed();
        assert_eq!(weights.join("best.safetensors").exists(), stay, "{change}");
    }
}

#[test]
fn a_run_that_goes_on_takes_the_weights_that_are_there_for_its_best_whatever_the_lines_say() {
    let mut run = start(&["run.stop_env_steps=2000", "evaluator.interval_ms=0", "checkpoint.interval_s=600"]);
    run.succeed();
    let [file, weights] = ["evaluations.jsonl", "weights/best.safetensors"].map(|name| run.run_folder().join(name));
    let lines = run.evaluations();
    let write_lines = |is_wanted: &dyn Fn(&Value) -> bool| {
        let wanted = lines.iter().filter(|line| is_wanted(line)).map(|line| format!("{line}\n"));
        std::fs::write(&file, wanted.collect::<String>()).unwrap();
    };
    // The files as a full disk leaves them that takes no more lines.
    write_lines(&|line| line["is_best"] != true);
    let best = PolicyWeights::load(&weights).unwrap().metadata;
    let inspected = |run: &Supervised| told(&program("inspect", run.folder.path()).arg(run.run_folder()).output().unwrap());
    assert!(inspected(&run).contains("fresh episodes, confirmed"), "{}", inspected(&run));
    let (told, in_checkpoint) = best_without_evaluator(&mut run);
    assert_eq!((number(&told, "version"), number(&told, "episodes")), (best.parameter_version, best.evaluation.unwrap().episodes));
    assert_eq!(in_checkpoint, Some(best.environment_steps), "`keep_best` goes by this");
    // The files as a full disk leaves them that takes no weights.
    assert!(lines.iter().any(|line| line["is_best"] == true), "{lines:?}");
    write_lines(&|_| true);
    std::fs::remove_file(&weights).unwrap();
    assert!(inspected(&run).contains("none confirmed"), "{}", inspected(&run));
    let (told, in_checkpoint) = best_without_evaluator(&mut run);
    assert!(told.is_null() && in_checkpoint.is_none(), "{told}, {in_checkpoint:?}");
}

#[test]
fn best_weights_that_another_version_of_the_program_reads_keep_this_one_from_going_on_until_they_are_moved() {
    let mut run = start(&["run.stop_env_steps=2000", "checkpoint.interval_s=600"]);
    run.succeed();
    let [last, best] = ["last", "best"].map(|name| run.run_folder().join(format!("weights/{name}.safetensors")));
    let mut weights = std::fs::read(last).unwrap();
    let format = br#"\"format\":"#;
    let number = weights.windows(format.len()).position(|window| window == format).unwrap() + format.len();
    weights[number] = b'0';
    std::fs::write(&best, weights).unwrap();
    let check = || run.command_to("resume", &["--check", "--set", "run.stop_env_steps=4000"]).output().unwrap();
    let refused = check();
    assert!(!refused.status.success() && said(&refused).contains("has weights format 0"), "{}", said(&refused));
    std::fs::rename(&best, run.folder.path().join("best.safetensors")).unwrap();
    assert!(check().status.success(), "{}", said(&check()));
}

/// Go on with a run for a little while, and return what its report and its last checkpoint say of its best weights.
fn best_without_evaluator(run: &mut Supervised) -> (Value, Option<u64>) {
    let steps = number(&run.metrics().pop().unwrap(), "env_steps");
    run.resume(&["--set", "evaluator.enabled=false", "--set", &format!("run.stop_env_steps={}", steps + 500)]);
    run.succeed();
    let newest = RunCheckpoint::open(run.checkpoints().last().unwrap()).unwrap();
    (run.record()["finished"]["summary"]["best_evaluation"].clone(), newest.manifest().best_env_steps)
}
