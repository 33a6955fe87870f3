//! How near a run is to what the cores could compute is in its metrics, its report and what is seen from outside, and whoever measured that
//! is gone.

mod run_support;

use std::process::Command;

use nix::sys::signal::Signal;
use run_support::start;
use serde_json::Value;
use shoal::segment::counters::Counter;
use shoal::sync::Ordering;

/// A share of the limit, which no run reaches that does anything else.
fn is_share(value: &Value) -> bool {
    value.as_f64().is_some_and(|share| share > 0.0 && share < 1.0)
}

#[test]
fn the_share_of_what_the_cores_could_compute_is_shown_everywhere() {
    let mut run = start(&["network.hidden=[256, 256]", "learner.batch_size=256", "replay.min_size=256", "replay.samples_per_insert=64"]);
    let line = run.wait_for("the share", |line| line["updates"].as_u64() > Some(50) && is_share(&line["limit_share"]));
    let segment = run.segment();
    let limit_per_s = segment.control().products_limit_per_s().load(Ordering::Relaxed) as f64;
    let [share, products_per_s] = ["limit_share", "products_per_s"].map(|key| line[key].as_f64().unwrap());
    assert!((share * limit_per_s / products_per_s - 1.0).abs() < 1e-6, "{share} of {limit_per_s} is not {products_per_s}");
    // An update of double DQN: three forward passes, and a backward pass without the gradient of the input; actors compute, too. Products are
    // counted before the update is.
    let weights = [4 * 256, 256 * 256, 256 * 2];
    let update = 256.0 * f64::from(5 * weights.iter().sum::<i32>() - weights[0]);
    let updates = segment.control().updates().load(Ordering::Relaxed) as f64;
    let products: u64 = segment.processes().iter().map(|slot| slot.counters().get(Counter::Products)).sum();
    assert!(products as f64 >= updates * update, "{products} products in {updates} updates of {update}");
    drop(segment);

    let inspect = |arguments: &[&str]| {
        let mut inspect = Command::new(env!("CARGO_BIN_EXE_inspect"));
        inspect.arg(run.pid().to_string()).args(arguments).env("XDG_RUNTIME_DIR", run.folder.path());
        String::from_utf8(inspect.output().unwrap().stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&inspect(&["--json", "--interval-ms", "2000"])).unwrap();
    assert!(is_share(&report["run"]["limit_share"]), "{}", report["run"]);
    let text = inspect(&["--interval-ms", "2000"]);
    assert!(text.contains(" % of what they could compute"), "{text}");

    run.end_by(Signal::SIGINT);
    assert!(is_share(&run.record()["finished"]["summary"]["limit_share"]), "{}", run.record());
    run.assert_nothing_left();
}
