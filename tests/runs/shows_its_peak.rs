//! How near a run is to what the cores could compute is in its metrics, its report and the inspector, and the process that measured it is
//! gone.

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::segment::counters::Counter;
use shoal::sync::Ordering;

use crate::support::programs::start;

/// A share of the peak, which no run reaches that does anything else.
fn is_share(value: &Value) -> bool {
    value.as_f64().is_some_and(|share| share > 0.0 && share < 1.0)
}

/// What networks computed in a synchronous run with evaluations of so many episodes, by the process that trains.
fn products_of_synchronous(episodes: u64) -> u64 {
    let mut run = start(&[
        "actor.count=0",
        "run.seed=1",
        "run.stop_env_steps=200_000",
        "run.stop_eval_return=none",
        "evaluator.enabled=true",
        "evaluator.synchronous_interval_steps=50_000",
        &format!("evaluator.episodes={episodes}"),
    ]);
    run.wait_for("a step", |line| line["env_steps"].as_u64() > Some(0));
    let segment = run.segment();
    run.succeed();
    segment.processes().iter().map(|slot| slot.counters().get(Counter::Products)).sum()
}

#[test]
fn what_evaluations_compute_is_no_training_also_where_one_process_does_both() {
    let [few, many] = [1, 20].map(products_of_synchronous);
    assert!(few > 0);
    assert_eq!(few, many);
}

/// A share of the machine's time: a run that trains keeps some of it busy, and others may keep all.
fn is_busy(value: &Value) -> bool {
    value.as_f64().is_some_and(|share| share > 0.0 && share <= 1.0)
}

#[test]
fn the_share_of_what_the_cores_could_compute_is_shown_everywhere() {
    let mut run = start(&["network.hidden=[256, 256]", "learner.batch_size=256", "replay.min_size=256", "replay.samples_per_insert=64"]);
    let line = run.wait_for("the share", |line| line["updates"].as_u64() > Some(50) && is_share(&line["peak_share"]));
    assert!(is_busy(&line["machine_busy_share"]), "{line}");
    let segment = run.segment();
    let peak_per_s = segment.control().products_peak_per_s().load(Ordering::Relaxed) as f64;
    let [share, products_per_s] = ["peak_share", "products_per_s"].map(|key| line[key].as_f64().unwrap());
    assert!((share * peak_per_s / products_per_s - 1.0).abs() < 1e-6, "{share} of {peak_per_s} is not {products_per_s}");
    // An update of double DQN has three forward passes, and a backward pass without the gradient of the input. Actors compute as well, and
    // the products of an update are counted before the update.
    let weights = [4 * 256, 256 * 256, 256 * 2];
    let update = 256.0 * f64::from(5 * weights.iter().sum::<i32>() - weights[0]);
    let updates = segment.control().updates().load(Ordering::Relaxed) as f64;
    let products: u64 = segment.processes().iter().map(|slot| slot.counters().get(Counter::Products)).sum();
    assert!(products as f64 >= updates * update, "{products} products in {updates} updates of {update}");
    drop(segment);

    let pid = run.pid().to_string();
    let inspect = |arguments: &[&str]| run.ask("inspect", &[&[&*pid][..], arguments].concat());
    let report: Value = serde_json::from_str(&inspect(&["--json", "--interval-ms", "2000"])).unwrap();
    assert!(is_share(&report["run"]["peak_share"]), "{}", report["run"]);
    assert!(is_busy(&report["run"]["machine_busy_share"]), "{}", report["run"]);
    let text = inspect(&["--interval-ms", "2000"]);
    assert!(text.contains(" % of what they could compute, machine "), "{text}");

    run.end_by(Signal::SIGINT);
    let record = run.record();
    let summary = &record["finished"]["summary"];
    assert!(is_share(&summary["peak_share"]) && is_busy(&summary["machine_busy_share"]), "{summary}");
    assert!(summary["learned_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{summary}");
    let cores = [&summary["cores_used"], &summary["cores_by_kind"]["learners"], &summary["cores_by_kind"]["supervisor"]];
    assert!(cores.iter().all(|cores| cores.as_f64() > Some(0.0)), "{summary}");
    let told = run.ask("inspect", &[run.run_folder().to_str().unwrap()]);
    assert!(told.contains(" cores used, ") && told.contains(" % of what they could compute, machine "), "{told}");
    run.assert_nothing_left();
}
