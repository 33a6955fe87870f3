//! A guest of a run is a user's own program. Whatever it does, no process of the run kills it, and it harms none.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use shoal::rendezvous::handshake::Visitor;
use shoal::rendezvous::{Attachment, Registry, attach};
use shoal::replay::{Schema, StagingArea};
use shoal::segment::Segment;
use shoal::segment::processes::ProcessSlot;
use shoal::standalone::{Patience, ReplayHandle, Stale};
use shoal::sync::Ordering;

use crate::support::programs::{Supervised, Watchdog, kill, number, said, start, start_preset, stop, stop_outside_of_operations, told};

/// Names the supervisor to the process that plays a guest.
const SUPERVISOR: &str = "SHOAL_TEST_SUPERVISOR";
/// Lets the process that plays a guest tell its importance exponent, behind [`TOLD`], and leave.
const TELLS_BETA: &str = "SHOAL_TEST_TELLS_BETA";
const TOLD: &str = "an importance exponent of ";
/// Lets the process that plays a guest draw many batches, and leave.
const DRAWS: &str = "SHOAL_TEST_DRAWS";
/// Priorities that a guest sets at once: so many that it is inside the operation for most of its time.
const AT_ONCE: usize = 16_384;

/// Not a test of its own: what a guest does, in a process of its own, when [`guest`] starts this program again.
#[test]
fn play_a_guest() {
    let Some(supervisor) = std::env::var(SUPERVISOR).ok().and_then(|pid| pid.parse().ok()) else { return };
    let replay = ReplayHandle::attach(supervisor, Some(1)).unwrap_or_else(|error| panic!("{error}"));
    if std::env::var_os(TELLS_BETA).is_some() {
        return writeln!(std::io::stdout(), "{TOLD}{}", replay.beta()).unwrap();
    }
    if std::env::var_os(DRAWS).is_some() {
        let (mut batch, mut go_on) = (replay.batch(64), || true);
        for _ in 0..1_000 {
            let patience = Patience::new(Some(Duration::from_secs(10)), &mut go_on);
            replay.sample(&mut batch.as_rows(), None, patience).unwrap_or_else(|error| panic!("{error}"));
        }
        return;
    }
    let indices: Vec<i64> = (0..AT_ONCE as i64).map(|index| index % 64).collect();
    for round in 0u16.. {
        let errors = vec![1.0 + f32::from(round % 10); AT_ONCE];
        let update = || replay.update(&indices, None, &errors, Stale::Ignore, Patience::new(None, &mut || true));
        if update().is_err() && !replay.is_empty() {
            update().expect_err("the run has ended, and the second call of a guest succeeds");
            break;
        }
    }
}

/// This program once more, to play a guest of `run`.
fn player(run: &Supervised) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guests::play_a_guest", "--nocapture"]).env(SUPERVISOR, run.pid().to_string());
    command.env("XDG_RUNTIME_DIR", run.folder.path());
    command
}

fn guest(run: &Supervised) -> Child {
    player(run).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_run_that_learns_from_fragments_refuses_guests_and_keeps_their_places_free() {
    let mut run = start_preset("cartpole_appo", &["run.stop_env_steps=1000000000", "run.stop_eval_return=\"none\""]);
    run.wait_for_updates(20);
    for _ in 0..3 {
        let refused = player(&run).output().unwrap();
        let said = said(&refused) + &String::from_utf8_lossy(&refused.stdout);
        assert!(!refused.status.success() && said.contains("fragments of trajectories (appo)"), "{said}");
    }
    run.end_by(Signal::SIGTERM);
}

#[test]
fn the_importance_exponent_of_a_guest_is_that_of_the_learners() {
    let schedule = ["replay.beta_start=0.2", "replay.beta_anneal_steps=20000"];
    let freely = ["replay.samples_per_insert=none", "environment.step_delay_us=10000", "actor.environments=1"];
    let mut run = start(&[&schedule[..], &freely].concat());
    // More samples than the steps of the whole schedule, after a small part of its environment steps.
    let line = run.wait_for("many samples", |line| line["sampled"].as_u64() > Some(20_000));
    let after = |env_steps: u64| (0.2 + 0.8 * env_steps as f64 / 20_000.0).min(1.0);
    let of_learners = line["beta"].as_f64().unwrap();
    assert!((of_learners - after(number(&line, "env_steps"))).abs() < 1e-6, "{line}");
    let segment = run.segment();
    let env_steps = || segment.control().env_steps().load(Ordering::Relaxed);
    let earliest = env_steps();
    let said = told(&player(&run).env(TELLS_BETA, "1").output().unwrap());
    let of_guest: f64 = said.split(TOLD).nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let expected = after(earliest) - 1e-6..=after(env_steps()) + 1e-6;
    assert!(expected.contains(&of_guest), "{of_guest} is not in {expected:?}");
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn what_a_guest_draws_is_taken_from_no_learner() {
    let mut run = start(&["machine.hang_timeout_s=1000"]);
    run.wait_for_updates(20);
    let segment = run.segment();
    let learner = run.wait_for_process("learner");
    stop_outside_of_operations(slot_of(&segment, learner));
    let sampled = || segment.control().sampled().load(Ordering::Relaxed);
    let before = sampled();
    told(&player(&run).env(DRAWS, "1").output().unwrap());
    assert_eq!(sampled(), before, "what the learner may draw once it goes on has become less");
    kill(learner, Signal::SIGCONT);
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

fn slot_of(segment: &Segment, pid: u32) -> ProcessSlot<'_> {
    segment.processes().iter().find(|slot| slot.pid() == pid).expect("a slot")
}

/// Stop a process in the middle of an operation.
fn stop_inside(segment: &Segment, pid: u32) {
    let slot = slot_of(segment, pid);
    let watchdog = Watchdog::new(format!("process {pid} to be inside an operation"));
    loop {
        stop(pid);
        if slot.in_operation() {
            return;
        }
        kill(pid, Signal::SIGCONT);
        watchdog.pause(Duration::from_micros(300), || format!("it is in {:?}", slot.phase()));
    }
}

/// A run whose guest stands still inside an operation while the sums were made again after the death of an actor.
fn with_a_guest_inside() -> (Supervised, Child, Segment) {
    let mut run = start(&["actor.count=1", "replay.samples_per_insert=\"none\"", "machine.hang_timeout_s=1000"]);
    run.wait_for_updates(20);
    let guest = guest(&run);
    assert_eq!(run.wait_for_process("guest"), guest.id());
    let segment = run.segment_read_only();
    stop_inside(&segment, guest.id());
    // Only the death of an actor in the middle of an operation calls for a repair.
    let actor = run.wait_for_process("actor");
    stop_inside(&segment, actor);
    kill(actor, Signal::SIGKILL);
    run.wait_for_log("stands still inside an operation");
    run.wait_for_log("restarting");
    (run, guest, segment)
}

/// End a run that all have survived.
fn end(mut run: Supervised, mut guest: Child) {
    assert!(guest.try_wait().unwrap().is_none(), "the guest has failed");
    run.end_by(Signal::SIGTERM);
    assert!(guest.wait().unwrap().success(), "the guest was told in good order that the run has ended");
    assert!(!run.log().contains("audit"), "{}", run.log());
    run.assert_nothing_left();
}

#[test]
fn a_guest_that_stands_still_inside_an_operation_is_not_killed_and_holds_up_no_repair() {
    let (mut run, mut guest, _) = with_a_guest_inside();
    let before = run.metrics().pop().unwrap();
    run.wait_for("steps of the actor's replacement", |line| {
        line["env_steps"].as_u64() > before["env_steps"].as_u64().map(|steps| steps + 100)
    });
    assert!(guest.try_wait().unwrap().is_none(), "the guest was killed");
    assert!(!run.log().contains("exact again"), "{}", run.log());
    kill(guest.id(), Signal::SIGCONT);
    run.wait_for_log("the sums of the tree are exact again");
    end(run, guest);
}

#[test]
fn an_actor_that_stands_still_while_sums_are_to_be_made_again_is_killed_as_in_a_repair() {
    let (mut run, guest, segment) = with_a_guest_inside();
    let actor = run.wait_for_process("actor");
    stop_inside(&segment, actor);
    kill(guest.id(), Signal::SIGCONT);
    run.wait_for_log("is stuck in the middle of an operation: killing it");
    run.wait_for_log(&format!("actor 0 (pid {actor}) stood still in the middle of an operation and was killed (after "));
    run.wait_for_log("the sums of the tree are exact again");
    end(run, guest);
}

#[test]
fn a_guest_at_the_gate_of_a_supervisor_that_dies_is_told_that_the_run_has_ended() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let mut guest = guest(&run);
    assert_eq!(run.wait_for_process("guest"), guest.id());
    let segment = run.segment();
    stop_inside(&segment, guest.id());
    // The gate is closed, as the supervisor closes it for a repair.
    segment.control().gate().store(1, Ordering::SeqCst);
    let slot = slot_of(&segment, guest.id());
    kill(guest.id(), Signal::SIGCONT);
    run.wait_until("the guest to be at the gate", || !slot.in_operation());
    drop(segment);
    run.signal(Signal::SIGKILL);
    assert!(guest.wait().unwrap().success(), "the guest was not told in good order that the run has ended");
}

#[test]
fn each_call_of_a_guest_whose_supervisor_was_killed_says_that_the_run_has_ended() {
    // Without checkpoints, so that no sentinel notes in the segment that the run is over.
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let mut guest = guest(&run);
    assert_eq!(run.wait_for_process("guest"), guest.id());
    run.signal(Signal::SIGKILL);
    assert!(guest.wait().unwrap().success(), "the guest was told once alone that the run has ended");
}

/// Gives this process a place in a run, while there is one.
fn entrance(run: &Supervised) -> impl Fn() -> Option<Attachment> + use<> {
    let (registry, pid) = (Registry::open_at(run.folder.path().join("shoal")).unwrap(), run.pid());
    move || attach(&registry, pid, Visitor::Guest).ok()
}

#[test]
fn a_guest_that_hangs_up_before_it_takes_its_place_gives_it_back() {
    let mut run = start(&["actor.attach_slots=1"]);
    run.wait_for_updates(20);
    let join = entrance(&run);
    // As when it cannot open the segment.
    drop(join().expect("a place"));
    run.wait_until("the place to be free", || join().is_some());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn guests_that_leave_at_once_are_seen_off_though_one_of_them_is_in_the_middle_of_an_operation() {
    let mut run = start(&["actor.attach_slots=2"]);
    run.wait_for_updates(20);
    let segment = run.segment();
    let schema = Schema::from_description(&segment.description().unwrap().fields).unwrap();
    let join = entrance(&run);
    let places = [(); 2].map(|()| join().expect("a place"));
    let slots = places.each_ref().map(|place| segment.processes().slot(place.slot));
    for (slot, place) in slots.iter().zip(&places) {
        assert!(slot.occupy(std::process::id(), place.generation));
    }
    // The first leaves a staged transition; the other is left as by a panic.
    let area = StagingArea::of(&segment, slots[0].index());
    area.write(&schema).commit(None);
    std::mem::forget(slots[1].begin_operation(segment.control(), || ()));
    slots.iter().rev().for_each(|slot| slot.announce_leaving());
    for place in &places {
        run.wait_until("both to be seen off", || segment.processes().slot(place.slot).pid() != std::process::id());
    }
    let before = run.metrics().pop().unwrap();
    run.wait_for("more steps", |line| line["env_steps"].as_u64() > before["env_steps"].as_u64().map(|steps| steps + 100));
    assert!(!run.log().contains("audit"), "{}", run.log());
    run.end_by(Signal::SIGTERM);
    drop(segment);
    run.assert_nothing_left();
}
