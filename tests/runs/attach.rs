//! Actors from outside join a run, leave it at any time, and never disturb it. Driven as real binaries.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use shoal::segment::counters::Counter;
use shoal::segment::processes::Role;

use crate::support::programs::{Supervised, Watchdog, kill, number, process_slot, start, stop_outside_of_operations};

fn attach(run: &Supervised, arguments: &[&str]) -> Child {
    run.program("attach").args(arguments).stderr(Stdio::piped()).spawn().unwrap()
}

fn stderr(mut child: Child) -> (bool, String) {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap().success(), text)
}

#[test]
fn attached_actors_add_to_a_run_and_leave_it_cleanly() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let attached = attach(&run, &[&run.pid().to_string(), "--actors", "2"]);
    run.wait_for("two attached actors", |line| number(line, "attached") == 2 && number(line, "actors") == 3);
    kill(attached.id(), Signal::SIGINT);
    let (success, text) = stderr(attached);
    assert!(success && text.contains("actor 1 has joined") && text.contains("actor 2 has joined"), "{text}");
    run.wait_for_log("attached actor 2");
    let before = run.metrics().pop().unwrap();
    run.wait_for("the run to go on alone", |line| {
        number(line, "attached") == 0 && number(line, "actors") == 1 && number(line, "updates") > number(&before, "updates") + 20
    });
    assert!(run.log().contains("environment steps"), "{}", run.log());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn more_actors_than_a_run_could_ever_take_are_refused_once() {
    let mut run = start(&["actor.attach_slots=3"]);
    run.wait_for_updates(20);
    let (success, text) = stderr(attach(&run, &[&run.pid().to_string(), "--actors", "99"]));
    assert!(!success && text.contains("99 actors are asked for, and the run has 3 places"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_in_one_process_refuses_actors_from_outside_and_says_why() {
    let mut run = start(&["actor.count=0"]);
    run.wait_for_updates(20);
    let (success, text) = stderr(attach(&run, &[&run.pid().to_string(), "--actors", "9"]));
    assert!(!success && text.contains("takes nobody from outside") && !text.contains("8 places"), "{text}");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn an_attached_actor_may_be_killed() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    for _ in 0..3 {
        let mut attached = attach(&run, &[&run.pid().to_string()]);
        kill(run.wait_for_process("attached actor"), Signal::SIGKILL);
        let before = run.metrics().pop().unwrap();
        run.wait_for("the run to go on", |line| number(line, "attached") == 0 && number(line, "updates") > number(&before, "updates"));
        assert!(!attached.wait().unwrap().success());
    }
    run.wait_for_log("was killed, or ended by what it ran, after");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn an_attached_actor_that_stands_still_inside_an_operation_is_killed_for_a_repair_and_the_log_says_so() {
    let mut run = start(&["actor.count=1"]);
    run.wait_for_updates(20);
    let mut attached = attach(&run, &[&run.pid().to_string()]);
    let pid = run.wait_for_process("attached actor");
    let segment = run.segment();
    let inside = [process_slot(&segment, Role::AttachedActor, 1), process_slot(&segment, Role::Actor, 0)].map(|slot| {
        stop_outside_of_operations(slot);
        std::mem::forget(slot.begin_operation(segment.control(), || ()));
        slot
    });
    // Its repair needs the attached actor to be outside.
    kill(inside[1].pid(), Signal::SIGKILL);
    run.wait_for_log(&format!("attached actor 1 (pid {pid}) is stuck in the middle of an operation: killing it"));
    run.wait_for_log(&format!("attached actor 1 (pid {pid}) stood still in the middle of an operation and was killed after "));
    assert!(!attached.wait().unwrap().success());
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

/// The environment steps of attached actors in a log, in the order in which the actors left.
fn steps_told(log: &str) -> Vec<u64> {
    let of_one = |line: &str| {
        let (before, _) = line.split_once(" environment steps").filter(|_| line.contains("attached actor"))?;
        before.rsplit(' ').next()?.parse().ok()
    };
    log.lines().filter_map(of_one).collect()
}

#[test]
fn the_log_counts_the_steps_of_an_attached_actor_without_those_of_the_one_before_it() {
    let mut run = start(&["actor.attach_slots=1"]);
    run.wait_for_updates(20);
    let segment = run.segment();
    let steps_in_place = || {
        let mut slots = segment.processes().iter();
        let place = slots.find(|slot| slot.plays(Role::AttachedActor));
        place.map_or(0, |place| place.counters().get(Counter::EnvSteps))
    };
    let first = attach(&run, &[&run.pid().to_string()]);
    run.wait_until("thousands of steps of the first", || steps_in_place() > 2_000);
    kill(first.id(), Signal::SIGINT);
    assert!(stderr(first).0);
    run.look_for("the first to be seen off", |run| (steps_told(&run.log()).len() == 1).then_some(()));
    let of_first = steps_in_place();
    let mut second = attach(&run, &[&run.pid().to_string()]);
    kill(run.wait_for_process("attached actor"), Signal::SIGKILL);
    second.wait().unwrap();
    run.look_for("the second to be seen off", |run| (steps_told(&run.log()).len() == 2).then_some(()));
    assert_eq!(steps_told(&run.log()), [of_first, steps_in_place() - of_first], "{}", run.log());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn attached_actors_leave_with_the_run_and_with_the_supervisor() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut run = start(&[]);
        run.wait_for_updates(20);
        let attached = attach(&run, &[&run.pid().to_string()]);
        run.wait_for("the attached actor", |line| number(line, "attached") == 1);
        run.signal(signal);
        run.wait();
        let (success, text) = stderr(attached);
        assert!(success, "{text}");
        run.assert_nothing_left();
    }
}

#[test]
fn a_run_can_be_named_by_its_record_instead_of_its_process_id() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let record = run.folder.path().join(format!("shoal/{}.json", run.pid()));
    let attached = attach(&run, &["--config", record.to_str().unwrap()]);
    run.wait_for("the attached actor", |line| number(line, "attached") == 1);
    // A copy, and as from a job of cron, for which the variable leads elsewhere.
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("run.json");
    std::fs::copy(&record, &copy).unwrap();
    let mut from_elsewhere = run.program("attach");
    from_elsewhere.arg("--config").arg(&copy).env("XDG_RUNTIME_DIR", elsewhere.path());
    let from_elsewhere = from_elsewhere.stderr(Stdio::piped()).spawn().unwrap();
    run.wait_for("the actor from elsewhere", |line| number(line, "attached") == 2);
    run.signal(Signal::SIGTERM);
    assert!(stderr(attached).0 && stderr(from_elsewhere).0);
    let (success, said) = stderr(attach(&run, &[&run.pid().to_string(), "--config", record.to_str().unwrap()]));
    assert!(!success && said.contains("cannot be used with"), "one of the two would be ignored: {said}");
}

#[test]
fn a_run_that_is_seen_can_be_joined() {
    for _ in 0..5 {
        let mut run = start(&[]);
        let record = run.folder.path().join(format!("shoal/{}.json", run.pid()));
        let socket = record.with_extension("socket");
        let watchdog = Watchdog::new("the run to be announced");
        // Without a pause: what is looked for is the moment between the two.
        while !record.exists() {
            assert!(run.is_running(), "the run is not announced; its log:\n{}", run.log());
            watchdog.pause(Duration::ZERO, || run.log());
            std::thread::yield_now();
        }
        UnixStream::connect(&socket).expect("somebody listens");
        run.signal(Signal::SIGTERM);
    }
}

#[test]
fn a_full_run_and_an_unknown_one_are_named() {
    let mut run = start(&["actor.attach_slots=1"]);
    run.wait_for_updates(20);
    let first = attach(&run, &[&run.pid().to_string()]);
    run.wait_for("the attached actor", |line| number(line, "attached") == 1);
    let (success, text) = stderr(attach(&run, &[&run.pid().to_string()]));
    assert!(!success && text.contains("all 1 slots") && text.contains("actor.attach_slots"), "{text}");
    let (success, text) = stderr(attach(&run, &["1"]));
    assert!(!success && text.contains("no run of yours has the supervisor 1"), "{text}");
    assert!(text.contains(&format!("running now: {} (CartPole-v1)", run.pid())), "{text}");
    run.signal(Signal::SIGTERM);
    assert!(stderr(first).0);
}

#[test]
fn strangers_at_the_socket_do_not_disturb_the_run() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let socket = run.folder.path().join(format!("shoal/{}.socket", run.pid()));
    let connect = || UnixStream::connect(&socket).unwrap();
    // Silence, a hostile length, garbage of the right length, and half a message.
    let silent: Vec<UnixStream> = (0..40).map(|_| connect()).collect();
    for message in [&b"\xff\xff\xff\xff"[..], &b"\x08\0\0\0garbage!"[..], &b"\x40\0\0\0half"[..]] {
        connect().write_all(message).unwrap();
    }
    let mut garbage = connect();
    garbage.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    garbage.write_all(b"\x08\0\0\0garbage!").unwrap();
    let mut answer = Vec::new();
    garbage.read_to_end(&mut answer).unwrap();
    assert!(!answer.is_empty(), "garbage is answered with a refusal");
    let before = run.metrics().pop().unwrap();
    run.wait_for("more updates", |line| number(line, "updates") > number(&before, "updates") + 100);
    drop(silent);
    let attached = attach(&run, &[&run.pid().to_string()]);
    run.wait_for("the attached actor", |line| number(line, "attached") == 1);
    run.signal(Signal::SIGTERM);
    assert!(stderr(attached).0);
}
