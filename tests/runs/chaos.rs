//! Whatever of a run is killed or stopped, at random and again and again, it goes on, and its sum tree stays exact.
//!
//! `cargo xtask chaos --kills N --seed S` makes it longer and prints what it measured. A seed gives the same victims in the same order;
//! the moments depend on the machine.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use shoal::experience::Random;

use crate::support::counts::count_from_environment;
use crate::support::programs::{Supervised, Watchdog, kill, start};

/// The roles that may be hit, each with its weight in the choice.
const VICTIMS: [(&str, u32); 5] = [("actor", 5), ("learner", 4), ("evaluator", 2), ("attached actor", 2), ("supervisor", 1)];
/// Longest pause between two blows.
const LONGEST_PAUSE_MS: u64 = 40;
/// One hit in this many stops a process for a while instead of killing it.
const STOPS: u32 = 5;
/// Blows between two audits.
const AUDIT_INTERVAL: u64 = 10;

/// What was seen of it.
#[derive(Default)]
struct Report {
    kills: u64,
    stops: u64,
    supervisors: u64,
    audits: u64,
    exact: u64,
    /// From a kill until the process table names another process.
    replaced_ms: Vec<f64>,
    /// From the kill of a supervisor until the run goes on, by way of the disk.
    resumed_ms: Vec<f64>,
    /// From the kill of a supervisor until the run goes on, in its memory.
    adopted_ms: Vec<f64>,
}

fn quantiles(times: &mut [f64]) -> String {
    if times.is_empty() {
        return "none".into();
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("p50 {:.1}, p99 {:.1}, most {:.1} ms", at(0.5), at(0.99), at(1.0))
}

fn attach(run: &Supervised) -> Child {
    run.program("attach").arg(run.pid().to_string()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn env_steps(run: &Supervised) -> u64 {
    let folder = run.run_folder();
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap_or_default();
    let last = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    last.and_then(|line| line["env_steps"].as_u64()).unwrap_or(0)
}

/// Wait until `condition` holds, as long as a watchdog waits, and return the milliseconds.
fn until(what: &str, run: &Supervised, mut condition: impl FnMut() -> bool) -> f64 {
    let (watchdog, began) = (Watchdog::new(what), Instant::now());
    while !condition() {
        watchdog.pause(Duration::from_micros(500), || run.log());
    }
    began.elapsed().as_secs_f64() * 1e3
}

/// Wait until `attach` has ended, which does so by itself once its actor was killed.
fn wait_for_end(attached: &mut Child, run: &Supervised) {
    until("`attach` to end", run, || attached.try_wait().unwrap().is_some());
}

fn says(folder: &Path, text: &str) -> usize {
    std::fs::read_to_string(folder.join("run.log")).unwrap_or_default().matches(text).count()
}

/// Kill the supervisor, and go on with the run: in its memory, or by way of the disk.
fn kill_supervisor(run: &mut Supervised, adopts: bool, report: &mut Report) {
    let (folder, began) = (run.run_folder().canonicalize().unwrap(), Instant::now());
    let said = if adopts { "goes on in the memory" } else { "goes on from checkpoint" };
    let before = says(&folder, said);
    run.kill_and_wait_for_keeper();
    if adopts {
        run.adopt(&[]);
    } else {
        run.resume(&[]);
    }
    until("the run to go on", run, || says(&folder, said) > before);
    until("actors", run, || !run.processes("actor").is_empty());
    let times = if adopts { &mut report.adopted_ms } else { &mut report.resumed_ms };
    times.push(began.elapsed().as_secs_f64() * 1e3);
    report.supervisors += 1;
}

#[test]
fn a_run_survives_random_kills_and_stops_of_everything() {
    let (kills, seed) = (count_from_environment("SHOAL_CHAOS_KILLS", 60), count_from_environment("SHOAL_CHAOS_SEED", 1));
    let mut random = Random::seed_from_u64(seed);
    let (mut report, began) = (Report::default(), Instant::now());
    let mut run = start(&[
        "actor.count=3",
        "learner.count=2",
        "evaluator.interval_ms=0",
        "machine.max_restarts=1000000",
        "checkpoint.interval_s=0.3",
        "machine.sentinel=keep",
    ]);
    run.wait_for_updates(50);
    let mut attached = attach(&run);
    let mut blows = 0;
    while report.kills < kills {
        blows += 1;
        std::thread::sleep(Duration::from_millis(random.random_range(0..=LONGEST_PAUSE_MS)));
        let mut choice = random.random_range(0..VICTIMS.iter().map(|(_, weight)| weight).sum());
        let (role, _) = VICTIMS.iter().find(|(_, weight)| choice.checked_sub(*weight).map(|rest| choice = rest).is_none()).unwrap();
        let is_stop = random.random_range(0..STOPS) == 0;
        let (pick, pause_ms) = (random.random_range(0..64_usize), random.random_range(1..=60));
        if *role == "supervisor" {
            kill_supervisor(&mut run, is_stop || pick % 2 == 0, &mut report);
            let _ = attached.kill();
            wait_for_end(&mut attached, &run);
            attached = attach(&run);
            report.kills += 1;
            continue;
        }
        let found = run.processes(role);
        // A role whose process is not replaced yet cannot be hit; another one is next.
        let Some(&victim) = found.get(pick % found.len().max(1)) else { continue };
        if is_stop {
            kill(victim, Signal::SIGSTOP);
            std::thread::sleep(Duration::from_millis(pause_ms));
            kill(victim, Signal::SIGCONT);
            report.stops += 1;
        } else {
            kill(victim, Signal::SIGKILL);
            report.kills += 1;
            let gone = until("a death to be noticed", &run, || !run.processes(role).contains(&victim));
            report.replaced_ms.push(gone);
            if *role == "attached actor" {
                wait_for_end(&mut attached, &run);
                attached = attach(&run);
            }
        }
        if blows % AUDIT_INTERVAL == 0 {
            let verdict = run.tree_verdict();
            // A death that has been seen may not have been repaired yet.
            let is_sound = ["exact", "in_motion", "half_changed"].contains(&verdict.as_str());
            assert!(is_sound, "after {} kills: {verdict}\n{}", report.kills, run.log());
            (report.audits, report.exact) = (report.audits + 1, report.exact + u64::from(verdict == "exact"));
        }
        assert!(run.is_running(), "after {} kills: {}", report.kills, run.output());
    }
    let steps = env_steps(&run);
    until("another step after all that", &run, || env_steps(&run) > steps);
    kill_supervisor(&mut run, true, &mut report);
    // Before the run goes on from the disk: a tree that is read from there is built again.
    run.assert_tree_is_exact();
    kill_supervisor(&mut run, false, &mut report);
    run.assert_tree_is_exact();
    let steps = env_steps(&run);
    run.end_by(Signal::SIGTERM);
    let _ = attached.kill();
    wait_for_end(&mut attached, &run);
    assert!(!run.log().contains("failed its audit"), "{}", run.log());
    let Report { kills, stops, supervisors, audits, exact, mut replaced_ms, mut resumed_ms, mut adopted_ms } = report;
    let _ = writeln!(
        std::io::stderr(),
        "chaos: seed {seed}, {kills} kills ({supervisors} of the supervisor) and {stops} stops in {:.0} s, {steps} environment steps; \
         {audits} audits, {exact} exact and none inconsistent\n  \
         a death is noticed and repaired after: {}\n  \
         a killed run goes on after: {}\n  \
         and in its memory after: {}",
        began.elapsed().as_secs_f64(),
        quantiles(&mut replaced_ms),
        quantiles(&mut resumed_ms),
        quantiles(&mut adopted_ms)
    );
}
