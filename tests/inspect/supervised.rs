//! A real run under a real supervisor, looked at from outside, and many inspectors at once.

use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use rand::SeedableRng;
use serde_json::Value;
use shoal::replay::{Batch, Priority, Replay, StagingArea};

use super::fixture::{Known, World, schema};
use crate::support::programs::{Supervised, start};

fn inspect(run: &Supervised, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run.program("inspect").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(run: &Supervised, arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let (code, out, err) = inspect(run, &all);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn twenty_inspectors_at_once_do_not_disturb_a_writer() {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let process = known.segment.processes().slot(0);
    let area = StagingArea::of(&known.segment, 0);
    let mut replay = Replay::new(&known.segment, schema(), process);
    let before = known.segment.control().inserted().load(shoal::sync::Ordering::Relaxed);
    let mut written = area.pending() as u64;
    replay.flush(area);
    let look = || {
        let pid = known.pid();
        let mut command = world.command(&["--json", "--interval-ms", "50", &pid]);
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    let mut inspectors: Vec<Child> = (0..20).map(|_| look()).collect();
    let mut batch = Batch::new(&schema(), 4);
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(3);
    let schema = schema();
    while inspectors.iter_mut().any(|inspector| inspector.try_wait().unwrap().is_none()) {
        for _ in 0..4 {
            let mut writer = area.write(&schema);
            writer.f32(0, &[0.0, 1.0, 2.0]);
            writer.commit(Some(Priority::ONE));
        }
        written += replay.flush(area) as u64;
        replay.sample(&mut batch, 0.4, &mut random).unwrap();
        replay.update_priorities(&batch, (0..4u8).map(|row| Priority::from_f32(f32::from(row) + 0.5)));
    }
    for mut inspector in inspectors {
        assert!(inspector.wait().unwrap().success());
    }
    assert_eq!(known.segment.control().inserted().load(shoal::sync::Ordering::Relaxed), before + written);
    assert!(replay.tree().unwrap().audit().is_exact());
    assert!(!process.in_operation());
}

#[test]
fn a_real_run_is_seen_as_its_supervisor_sees_it() {
    let mut run = start(&["actor.count=2", "algorithm.n_step=1"]);
    run.wait_for_updates(20);
    let pid = run.pid().to_string();
    let list = json(&run, &[]);
    let listed = &list["runs"][0];
    assert_eq!((&listed["pid"], &listed["state"]), (&Value::from(run.pid()), &Value::from("running")));
    assert_eq!((&listed["environment"], &listed["algorithm"]), (&Value::from("CartPole-v1"), &Value::from("dqn")));

    let report = json(&run, &[&pid, "--interval-ms", "500"]);
    assert!(report["run"]["env_steps"].as_u64() > Some(200) && report["run"]["updates"].as_u64() > Some(20));
    assert!(report["run"]["updates_per_s"].as_f64() > Some(0.0), "{}", report["run"]);
    assert_ne!(report["tree"]["verdict"], "inconsistent");
    let processes = report["processes"].as_array().unwrap();
    let alive = |role: &str| processes.iter().filter(|process| process["role"] == role && process["alive"] == true).count();
    assert_eq!((alive("actor"), alive("learner"), alive("evaluator")), (2, 1, 1));
    let actor = processes.iter().find(|process| process["role"] == "actor").unwrap();
    let shares = actor["time"].as_object().unwrap().iter().filter(|(name, _)| *name != "accounted_s");
    assert!((shares.map(|(_, share)| share.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-9, "{actor}");

    run.wait_for("an evaluation", |line| line["eval_return_mean"].is_number() && line["train_return_mean"].is_number());
    let scores = &json(&run, &[&pid])["scores"];
    assert!(scores["training"]["return_mean"].is_number() && scores["training"]["episodes"].as_u64() <= Some(100), "{scores}");
    let evaluations = std::fs::read_to_string(run.run_folder().join("evaluations.jsonl")).unwrap();
    let mut evaluations = evaluations.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // The same weights may have been confirmed since, over more episodes.
    let is_shown = |written: &Value| ["version", "episodes"].iter().all(|&key| written[key] == scores["evaluation"][key]);
    let written = evaluations.find(is_shown).unwrap();
    for (key, shown) in scores["evaluation"].as_object().unwrap() {
        assert_eq!(*shown, written[key], "{key}");
    }

    let transition = json(&run, &[&pid, "--transition", "5"]);
    let field = |name: &str| transition["fields"].as_array().unwrap().iter().find(|field| field["name"] == name).unwrap()["values"].clone();
    assert_eq!(field("reward"), serde_json::json!([1.0]), "CartPole pays one per step");
    assert!(field("observation").as_array().unwrap().iter().all(|value| value.as_f64().unwrap().abs() < 10.0));

    run.end_by(Signal::SIGINT);
    let (code, _, error) = inspect(&run, &[&pid]);
    assert_eq!(code, Some(1));
    assert!(error.contains("nothing is running"), "{error}");
}
