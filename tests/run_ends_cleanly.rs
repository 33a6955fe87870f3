//! Every way in which a run can end leaves results and nothing else.

mod run_support;

use nix::sys::signal::Signal;
use run_support::start;
use shoal::checkpoint::Policy;

#[test]
fn the_step_limit_ends_a_run_with_all_its_results() {
    let mut run = start(&["run.stop_env_steps=3000"]);
    let status = run.wait();
    let output = run.output();
    assert!(status.success(), "{output}");
    run.assert_nothing_left();
    let folder = run.run_folder();
    let last = run.metrics().pop().unwrap();
    assert!(last["env_steps"].as_u64().unwrap() >= 3_000);
    assert!(last["updates"].as_u64().unwrap() > 0);
    assert!(last["eval_return_mean"].is_number(), "the last parameters are evaluated");
    for name in ["config.toml", "metrics.jsonl", "evaluations.jsonl", "run.json", "weights/last.safetensors", "weights/best.safetensors"] {
        assert!(folder.join(name).is_file(), "{name} is missing");
    }
    let policy = Policy::load(&folder.join("weights/last.safetensors")).unwrap();
    assert_eq!((policy.metadata.environment.as_str(), policy.metadata.algorithm.as_str()), ("CartPole-v1", "dqn"));
    assert_eq!(policy.metadata.updates, last["updates"].as_u64().unwrap());
    assert!(output.contains("step limit"), "{output}");
}

#[test]
fn the_resolved_configuration_can_be_run_again() {
    let mut first = start(&["run.stop_env_steps=1000"]);
    assert!(first.wait().success());
    let config = first.run_folder().join("config.toml");
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_supervisor"))
        .arg(&config)
        .args(["--set", &format!("run.folder={:?}", folder.path().display().to_string())])
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let [first, again] = [config, folder.path().join("latest/config.toml")].map(|path| std::fs::read_to_string(path).unwrap());
    let without_folder = |text: &str| text.lines().filter(|line| !line.starts_with("folder")).map(String::from).collect::<Vec<_>>();
    assert_eq!(without_folder(&first), without_folder(&again));
}

#[test]
fn interrupting_a_run_keeps_what_was_learned() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut run = start(&[]);
        run.wait_for("the first updates", |line| line["updates"].as_u64() > Some(10));
        run.signal(signal);
        assert!(run.wait().success(), "{}", run.output());
        assert!(run.run_folder().join("weights/last.safetensors").is_file());
        assert!(run.output().contains("interrupted"));
        run.assert_nothing_left();
    }
}

#[test]
fn planning_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_support::command(folder.path(), &[]).arg("--check").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    for part in ["dqn on CartPole-v1", "segment", "learner 0", "actor 0"] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_segment_that_does_not_fit_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    // The gradients of this network take 64 GiB.
    let huge = ["network.hidden=[16000, 16000]", "learner.count=32", "learner.batch_size=64"];
    let output = run_support::command(folder.path(), &huge).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("do not fit") && text.contains("smaller"), "{text}");
    assert!(!folder.path().join("runs").exists());
}
