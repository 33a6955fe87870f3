//! A run whose supervisor was killed stays in memory where that is wanted, until another supervisor has adopted it or it is wanted on the
//! disk, and whoever dies meanwhile leaves it as it was. Driven as real binaries.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;
use shoal::algorithms::registry;
use shoal::config::Config;
use shoal::environments;
use shoal::rendezvous::{Registry, Visitor, attach};
use shoal::replay::{Counts, Record, ReplayView, ZeroPriority};
use shoal::segment::control::RunState;
use shoal::segment::keeping::Wanted;
use shoal::segment::{NamedProcess, Segment, object};
use shoal::sync::Ordering;

use crate::support::programs::{self, Supervised, Watchdog, bits, number, said, start, start_preset, under, wait_until};

const KEPT: [&str; 3] = ["machine.sentinel=keep", "checkpoint.interval_s=600", "actor.count=2"];

/// A run that has learned for a while, and its memory, which stays mapped here.
fn learning(changes: &[&str]) -> (Supervised, Segment) {
    let mut run = start(&[&KEPT[..], changes].concat());
    run.wait_for_updates(500);
    let segment = run.segment_read_only();
    (run, segment)
}

/// Everything else that a run goes on from: counts, and what was published.
fn state_of(segment: &Segment) -> ([u64; 3], Vec<(u64, Vec<u32>)>) {
    let control = segment.control();
    let counts = [control.env_steps(), control.updates(), control.samples_beyond()].map(|word| word.load(Ordering::Relaxed));
    let boards = std::iter::once(segment.parameter_board()).chain(segment.learner_boards());
    let published = boards.map(|board| {
        let mut values = vec![0.0; board.len()];
        let (version, _) = board.read(&mut values).unwrap();
        (version, bits(&values))
    });
    (counts, published.collect())
}

/// Every row with its priority and its words, and the counts.
fn replay_of(segment: &Segment) -> (Vec<(Record, Vec<u64>)>, Counts) {
    let config = Config::parse(&segment.description().unwrap().config_toml, "config.toml", &[]).unwrap().config;
    let schema = registry::build(&config, &environments::registry::spec("CartPole-v1").unwrap()).unwrap().schema();
    let (replay, mut rows) = (ReplayView::new(segment, schema), Vec::new());
    let taken: Result<(), ()> = replay.for_each_row(ZeroPriority::Unfinished, |record, words| {
        rows.push((record, words.to_vec()));
        Ok(())
    });
    rows.sort_by_key(|(record, _): &(Record, Vec<u64>)| record.slot);
    taken.map(|()| (rows, replay.counts())).unwrap()
}

fn wait_until_offered(segment: &Segment, keeper: u32) {
    let control = segment.control();
    let state = || format!("what is wanted: {:?}", control.keeping().wanted());
    wait_until(&format!("{keeper} to offer the run"), state, || {
        control.keeping().wanted() == Wanted::Nothing && control.run_state() == RunState::Kept
    });
    assert_eq!(control.keeping().keeper().map(NamedProcess::pid), Some(keeper));
}

#[test]
fn an_adopted_run_goes_on_with_what_was_there_and_may_be_adopted_again() {
    let (mut run, segment) = learning(&["replay.capacity=500000", "environment.step_delay_us=200"]);
    let mut before = None;
    for life in 1..=2 {
        let supervisor = run.pid();
        run.kill_and_wait_for_keeper();
        let (rows, counts) = replay_of(&segment);
        let ([env_steps, updates, _], published) = state_of(&segment);
        assert!(updates > 500 && counts.inserted > before.unwrap_or(0), "life {life}: {counts:?}");
        before = Some(counts.inserted);
        let listed: Value = serde_json::from_str(&run.ask("inspect", &["--json"])).unwrap();
        assert_eq!(
            (&listed["runs"][0]["phase"], number(&listed["runs"][0], "pid")),
            (&Value::from("kept"), u64::from(supervisor)),
            "{listed}"
        );
        let told = run.ask("inspect", &[]);
        assert!(told.contains(&format!("shoal adopt {supervisor}")), "{told}");
        let refused = said(&run.program("attach").arg(supervisor.to_string()).output().unwrap());
        assert!(refused.contains("is kept in memory") && refused.contains("shoal adopt") && !refused.contains("--clean"), "{refused}");
        let lines = run.metrics().len();
        run.adopt(&["--set", "learner.learning_rate=0.0005"]);
        run.wait_for_log("goes on in the memory in which it was kept");
        let file = run.run_folder().join("metrics.jsonl");
        run.wait_until("more lines", || std::fs::read_to_string(&file).unwrap().lines().count() > lines + 2);
        let first = &run.metrics()[lines];
        assert!(number(first, "env_steps") >= env_steps && number(first, "updates") >= updates, "{first}");
        assert!(number(first, "inserted") >= counts.inserted && number(first, "sampled") >= counts.sampled, "{first}");
        run.assert_tree_is_exact();
        let (_, since) = state_of(&segment);
        assert!(
            since.iter().zip(&published).all(|((new, _), (old, _))| new > old),
            "publications go on: {} after {}",
            since[0].0,
            published[0].0
        );
        // None of its rows has been overwritten since: environments are slow, and there is room for many.
        let words = |rows: &[(Record, Vec<u64>)]| -> Vec<(u64, u64, Vec<u64>)> {
            rows.iter().map(|(record, words)| (record.slot, record.generation, words.clone())).collect()
        };
        let (now, _) = replay_of(&segment);
        assert!(now.len() >= rows.len() && words(&now[..rows.len()]) == words(&rows));
        assert_eq!((number(&run.record(), "resumptions"), number(&run.record(), "supervisor_pid")), (life, u64::from(run.pid())));
        assert!(!run.run_folder().join("kept").exists());
    }
    run.end_by(Signal::SIGTERM);
    let name = segment.name().to_owned();
    drop(segment);
    assert!(Segment::identity_of(&name).is_err(), "the memory is left behind");
}

#[test]
fn whoever_dies_while_it_adopts_a_run_leaves_it_to_the_next_as_it_was() {
    let (mut run, segment) = learning(&["actor.count=1"]);
    let keeper = run.kill_and_wait_for_keeper();
    let run_folder = run.run_folder().canonicalize().unwrap();
    let files = || ["config.toml", "run.json"].map(|file| std::fs::read_to_string(run_folder.join(file)).unwrap());
    let before = (replay_of(&segment), state_of(&segment), files());
    let adopted = || segment.control().keeping().keeper().map(NamedProcess::pid) != Some(keeper);
    let mut tried = Vec::new();
    // Each goes a little further, from when it has claimed the run to when it answers for it.
    for calls in (0..).step_by(29) {
        let adopter = Stepped::start(&run.command_to("adopt", &["--set", "learner.learning_rate=0.0005"]));
        adopter.step_until(|| segment.control().keeping().wanted() != Wanted::Nothing);
        let gone_on = (0..calls).take_while(|_| !adopted() && adopter.step()).count();
        let is_late = adopted();
        drop(adopter);
        if is_late {
            break;
        }
        tried.push(gone_on);
        wait_until_offered(&segment, keeper);
        assert!(
            (replay_of(&segment), state_of(&segment), files()) == before,
            "changed by one that died {calls} stops after it had claimed the run"
        );
    }
    assert!(tried.len() > 10, "{tried:?}");
    // The last one had adopted it; its own sentinel keeps it now.
    wait_until("somebody to keep it", || run.log(), || segment.control().run_state() == RunState::Kept);
    let log = run.log().len();
    run.adopt(&[]);
    run.wait_for_log_after(log, "goes on in the memory in which it was kept");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_that_is_kept_goes_to_the_disk_for_whoever_wants_it_there() {
    let (mut run, segment) = learning(&[]);
    run.kill_and_wait_for_keeper();
    let (_, counts) = replay_of(&segment);
    assert_eq!(run.checkpoints().len(), 0);
    // With another layout of the memory.
    run.resume(&["--set", "actor.count=1"]);
    run.wait_for_log("goes on from checkpoint");
    assert!(run.log().contains("with the replay"), "{}", run.log());
    run.wait_for("all rows", |line| number(line, "inserted") >= counts.inserted);
    for signal in programs::stop_signals().into_iter().filter(|&signal| signal != Signal::SIGINT) {
        let newest = run.checkpoints().pop();
        let keeper = run.kill_and_wait_for_keeper();
        programs::kill(keeper, signal);
        run.wait_for_end_of_all();
        assert!(run.checkpoints().pop() > newest, "after {signal}: {}", run.log());
        assert!(!run.run_folder().join("kept").exists());
        assert!(run.adopt_elsewhere(&[]).contains("is not kept in memory"));
        run.resume(&[]);
        run.wait_for_updates(number(run.metrics().last().unwrap(), "updates"));
    }
    run.end_by(Signal::SIGTERM);
}

#[test]
fn what_cannot_be_adopted_is_refused_and_stays() {
    let (mut run, segment) = learning(&[]);
    assert!(run.adopt_elsewhere(&[]).contains("is under way"));
    let keeper = run.kill_and_wait_for_keeper();
    for (change, named) in
        [("actor.count=3", "stagers 10, not 11"), ("network.hidden=[64]", "network.hidden"), ("learner.batch=2", "unknown")]
    {
        let refused = run.adopt_elsewhere(&["--set", change]);
        assert!(refused.contains(named), "{refused}");
    }
    let planned = run.adopt_elsewhere(&["--check"]);
    assert!(planned.contains("segment"), "{planned}");
    wait_until_offered(&segment, keeper);
    run.adopt(&[]);
    run.wait_for_log("goes on in the memory in which it was kept");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn every_kind_of_replay_is_adopted_and_learned_from() {
    let frames: &[&str] = &[
        "replay.capacity=20000",
        "replay.min_size=500",
        "network.convolutions=[[4, 8, 4]]",
        "network.hidden=[16]",
        "run.stop_eval_return=\"none\"",
    ];
    for (preset, changes) in [("rally_dqn", frames), ("cartpole_appo", &["run.stop_eval_return=\"none\""])] {
        let always = ["machine.sentinel=keep", "checkpoint.interval_s=600", "run.stop_env_steps=1000000000"];
        let mut run = start_preset(preset, &[&always[..], changes].concat());
        run.wait_for_updates(50);
        run.kill_and_wait_for_keeper();
        let segment = run.segment_read_only();
        let inserted = segment.control().inserted().load(Ordering::Relaxed);
        let [_, updates, _] = state_of(&segment).0;
        let lines = run.metrics().len();
        run.adopt(&[]);
        run.wait_for_log("goes on in the memory in which it was kept");
        let since = run.wait_for("more updates", |line| number(line, "updates") > updates + 20);
        assert!(number(&since, "inserted") >= inserted && run.metrics().len() > lines, "{preset}: {since}");
        run.assert_tree_is_exact();
        run.end_by(Signal::SIGTERM);
    }
}

#[test]
fn whoever_adopts_a_run_at_once_waits_until_it_is_kept() {
    let (mut run, _) = learning(&[]);
    programs::kill(run.pid(), Signal::SIGKILL);
    run.wait();
    run.adopt(&[]);
    run.wait_for_log("goes on in the memory in which it was kept");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_is_kept_though_nobody_has_seen_off_the_guests_that_left_it() {
    let (mut run, _) = learning(&[]);
    let segment = run.segment();
    let registry = Registry::open_at(run.folder.path().join("shoal")).unwrap();
    let places = [(); 2].map(|()| attach(&registry, run.pid(), Visitor::Guest).unwrap());
    let slots = places.each_ref().map(|place| segment.processes().slot(place.slot));
    for (slot, place) in slots.iter().zip(&places) {
        assert!(slot.occupy(std::process::id(), place.generation));
    }
    programs::stop(run.pid());
    // One is left as by a panic, in the middle of an operation.
    std::mem::forget(slots[0].begin_operation(segment.control(), || ()));
    slots.iter().for_each(|slot| slot.announce_leaving());
    let keeper = run.kill_and_wait_for_keeper();
    wait_until_offered(&segment, keeper);
    drop(segment);
    run.adopt(&[]);
    run.wait_for_log("goes on in the memory in which it was kept");
    run.assert_tree_is_exact();
    run.end_by(Signal::SIGTERM);
}

#[test]
fn what_the_disk_does_not_take_stays_in_memory() {
    let (mut run, _) = learning(&[]);
    run.kill_and_wait_for_keeper();
    let folder = run.run_folder().join("checkpoints");
    std::fs::write(&folder, "no folder").unwrap();
    assert!(run.resume_elsewhere().contains("stays in memory"), "{}", run.log());
    std::fs::remove_file(&folder).unwrap();
    run.resume(&[]);
    run.wait_for_log("goes on from checkpoint");
    assert!(run.log().contains("with the replay"), "{}", run.log());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_kept_run_whose_folder_was_moved_is_written_to_where_it_is_now() {
    let (mut run, _) = learning(&[]);
    run.kill_and_wait_for_keeper();
    run.move_folder("archive");
    run.resume(&[]);
    run.wait_for_log("goes on from checkpoint");
    assert!(run.log().contains("with the replay"), "{}", run.log());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_whose_folder_was_moved_before_its_supervisor_was_killed_is_kept_there() {
    let (mut run, _) = learning(&[]);
    run.move_folder("archive");
    run.kill_and_wait_for_keeper();
    run.adopt(&[]);
    run.wait_for_log("goes on in the memory in which it was kept");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_kept_run_whose_folder_was_moved_while_it_went_on_is_found_by_the_process_id_of_its_supervisor() {
    let (mut run, _) = learning(&[]);
    run.move_folder("archive");
    run.wait_for_log("the folder of the run was moved");
    run.kill_and_wait_for_keeper();
    run.ask("supervisor", &["adopt", &run.pid().to_string(), "--check"]);
    run.adopt(&[]);
    run.wait_for_log("goes on in the memory in which it was kept");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_moved_run_survives_whoever_dies_while_it_adopts_it() {
    let (mut run, segment) = learning(&[]);
    let keeper = run.kill_and_wait_for_keeper();
    run.move_folder("archive");
    let before = (replay_of(&segment), state_of(&segment));
    let adopter = Stepped::start(&run.command_to("adopt", &["--set", "learner.learning_rate=0.0005"]));
    adopter.step_until(|| segment.control().keeping().wanted() != Wanted::Nothing);
    // Far enough to have changed the folder, and not as far as to answer for the run.
    assert_eq!((0..200).take_while(|_| adopter.step()).count(), 200);
    assert_eq!(segment.control().keeping().keeper().map(NamedProcess::pid), Some(keeper));
    drop(adopter);
    wait_until_offered(&segment, keeper);
    assert!((replay_of(&segment), state_of(&segment)) == before);
    run.adopt(&[]);
    run.wait_for_log("goes on in the memory in which it was kept");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn who_keeps_a_run_whose_folder_was_removed_leaves_when_it_is_told_to() {
    let (mut run, _) = learning(&[]);
    let keeper = run.kill_and_wait_for_keeper();
    std::fs::remove_dir_all(std::fs::canonicalize(run.run_folder()).unwrap()).unwrap();
    programs::kill(keeper, Signal::SIGTERM);
    run.wait_for_end_of_all();
}

#[test]
fn without_its_keeper_or_its_name_a_run_goes_on_from_its_newest_checkpoint() {
    let (mut run, _) = learning(&["checkpoint.interval_s=0.3"]);
    run.wait_for_log("checkpoint 000001");
    let keeper = run.kill_and_wait_for_keeper();
    programs::kill(keeper, Signal::SIGKILL);
    run.wait_for_end_of_all();
    assert!(run.adopt_elsewhere(&[]).contains("is not kept in memory"));
    run.resume(&[]);
    run.wait_for_log("goes on from checkpoint");
    run.wait_for_process("learner");
    // A supervisor that ends by an error removes the segment in this way.
    assert!(object::remove(&run.segment_name().unwrap()));
    run.kill();
    assert!(run.log().contains("cannot be kept in memory") && run.log().contains("has all that was there"), "{}", run.log());
}

/// A program that stands still before and after each of its system calls.
struct Stepped(Child);

impl Stepped {
    fn start(command: &Command) -> Self {
        // It waits for this process, which may be without a core for long, before it begins.
        let mut waiting = under("kill -STOP $$", command);
        let stepped = Self(waiting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        assert!(matches!(waitpid(stepped.pid(), Some(WaitPidFlag::WUNTRACED)), Ok(WaitStatus::Stopped(..))));
        ptrace::attach(stepped.pid()).unwrap();
        assert!(matches!(waitpid(stepped.pid(), None), Ok(WaitStatus::Stopped(..))));
        programs::kill(stepped.0.id(), Signal::SIGCONT);
        stepped
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed())
    }

    /// Go on to the beginning or the end of its next system call; `false` once it has ended.
    fn step(&self) -> bool {
        let mut signal = None;
        loop {
            if ptrace::syscall(self.pid(), signal).is_err() {
                return false;
            }
            match waitpid(self.pid(), None) {
                Ok(WaitStatus::Stopped(_, Signal::SIGTRAP)) => return true,
                Ok(WaitStatus::Stopped(_, other)) => signal = Some(other),
                _ => return false,
            }
        }
    }

    fn step_until(&self, mut there: impl FnMut() -> bool) {
        let watchdog = Watchdog::new("a moment to which a program is led in steps");
        while !there() {
            assert!(self.step(), "it ended before");
            watchdog.pause(Duration::ZERO, || "it has passed it".into());
        }
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
