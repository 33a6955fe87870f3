//! The list of runs, what happens to vanished ones, and the removal of what dead ones left.

use serde_json::json;
use shoal::segment::{Description, Segment};

use super::fixture::{Known, World, kill_supervisor};
use crate::support::object::{Object, path_of};

/// An object called `name` that a living process shares. Every supervisor that starts on this machine cleans, too, so that it is shared
/// before it has that name.
fn shared(name: String, bytes: &[u8]) -> (Object, Segment) {
    let object = Object::new(bytes);
    // A mapping for writing holds the lock of a living process, as an actor's does.
    let process = Segment::attach(&object.name).unwrap();
    (object.renamed(name), process)
}

#[test]
fn running_and_dead_runs_are_listed() {
    let (world, known) = (World::new(), Known::new());
    let nothing =
        "no runs under way; of those that have ended, `shoal inspect runs/latest` shows one, `shoal dashboard` all side by side\n";
    assert_eq!(world.inspect(&[]).unwrap(), nothing);
    assert_eq!(world.json(&[]), json!({"runs": []}));
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let mut bytes = known.bytes();
    let identity = kill_supervisor(&mut bytes, known.segment.identity());
    let dead = Object::new(&bytes);
    let _dead_announcement = world.announce(&identity, &dead.name);
    let list = world.json(&[]);
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let run = |pid: u32| runs.iter().find(|run| run["pid"] == pid).unwrap();
    for (pid, state, segment) in
        [(std::process::id(), "running", known.segment.name()), (identity.supervisor_pid, "dead", dead.name.as_str())]
    {
        let run = run(pid);
        assert_eq!((&run["state"], &run["segment"], &run["problem"]), (&json!(state), &json!(segment), &json!(null)));
        assert_eq!((&run["env_steps"], &run["updates"], &run["phase"]), (&json!(120), &json!(7), &json!("running")));
        let names = [&run["environment"], &run["algorithm"], &run["run_folder"]];
        assert_eq!(names, [&json!("Known-v1"), &json!("dqn"), &json!("runs/known")]);
        assert!(run["age_s"].is_number());
    }
    let text = world.inspect(&[]).unwrap();
    assert!(text.contains("dead") && text.contains("running") && text.contains("`shoal inspect --clean` removes"), "{text}");
}

#[test]
fn the_folder_of_a_run_is_named_whole_however_deep_it_lies() {
    let (world, known) = (World::new(), Known::new());
    let folder = format!("/{}run", "deep/".repeat(300));
    let description = Description { run_folder: folder.clone(), ..known.segment.description().unwrap() };
    let object = Object::new(&known.bytes_with(&description));
    let _announcement = world.announce_in(&folder, known.segment.identity(), &object.name);
    assert_eq!(world.json(&[])["runs"][0]["run_folder"], json!(folder));
    assert_eq!(world.json(&[&known.pid()])["description"]["run_folder"], json!(folder));
    assert!(world.inspect(&[]).unwrap().contains(&folder));
}

#[test]
fn a_dead_run_can_still_be_looked_at() {
    let (world, known) = (World::new(), Known::new());
    let mut bytes = known.bytes();
    let identity = kill_supervisor(&mut bytes, known.segment.identity());
    let dead = Object::new(&bytes);
    let _announcement = world.announce(&identity, &dead.name);
    let pid = identity.supervisor_pid.to_string();
    let report = world.json(&[&pid]);
    assert_eq!((&report["header"]["state"], &report["run"]["env_steps"]), (&json!("dead"), &json!(120)));
    assert_eq!(report["run"]["env_steps_per_s"], json!(null), "a dead run has no rates");
    assert_eq!(world.json(&[&pid, "--transition", "2"])["generation"], json!(1));
    let refused = world.inspect(&[&pid, "--live"]).unwrap_err();
    assert!(refused.contains("is dead and will not change"), "{refused}");
}

#[test]
fn cleaning_removes_the_dead_and_leaves_the_living() {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let mut bytes = known.bytes();
    let identity = kill_supervisor(&mut bytes, known.segment.identity());
    // Every supervisor that starts on this machine cleans, too, and may come first.
    let removed_here = (0..20).any(|_| {
        let dead = Object::named(identity.segment_name(), &bytes);
        let _dead_announcement = world.announce(&identity, &dead.name);
        let text = world.inspect(&["--clean"]).unwrap();
        assert!(!dead.exists() && path_of(known.segment.name()).exists(), "{text}");
        text.contains(&format!("removed {}\n", dead.name))
    });
    assert!(removed_here, "somebody else removed it, twenty times");
    let left = world.json(&[]);
    assert_eq!((left["runs"].as_array().unwrap().len(), &left["runs"][0]["pid"]), (1, &json!(std::process::id())));
    assert!(world.json(&["--clean"])["removed"].is_array());
}

#[test]
fn cleaning_names_nothing_that_it_left_and_no_name_steers_a_terminal() {
    let (world, known) = (World::new(), Known::new());
    let mut bytes = known.bytes();
    let identity = kill_supervisor(&mut bytes, known.segment.identity());
    let foreign = Object::new(&bytes);
    let _announcement = world.announce(&identity, &foreign.name);
    let text = world.inspect(&["--clean"]).unwrap();
    assert!(foreign.exists() && !text.contains(&foreign.name), "{text}");
    let name = identity.segment_name();
    let spelled_out = format!("removed {name}\\u{{1b}}[2J\n");
    // Every supervisor that starts on this machine cleans, too, and may have it in its hands for a moment.
    let told = (0..20).any(|_| {
        let dead = Object::named(format!("{name}\u{1b}[2J"), &bytes);
        let _announcement = world.announce(&identity, &dead.name);
        let text = world.inspect(&["--clean"]).unwrap();
        assert!(!text.contains('\u{1b}'), "{text:?}");
        text.contains(&spelled_out)
    });
    assert!(told, "somebody else had it, twenty times");
}

#[test]
fn a_dead_run_whose_processes_live_is_kept_and_named() {
    let (world, known) = (World::new(), Known::new());
    let mut bytes = known.bytes();
    let identity = kill_supervisor(&mut bytes, known.segment.identity());
    let (orphaned, _process) = shared(identity.segment_name(), &bytes);
    let _announcement = world.announce(&identity, &orphaned.name);
    let cleaned = world.json(&["--clean"]);
    assert_eq!(cleaned["kept"], json!([identity.supervisor_pid]));
    assert!(orphaned.exists());
}

#[test]
fn a_vanished_run_is_an_error_that_says_so() {
    let (world, known) = (World::new(), Known::new());
    let pid = known.pid();
    let error = world.inspect(&[&pid]).unwrap_err();
    assert!(error.contains(&format!("no run of yours has the supervisor {pid}; nothing is running")), "{error}");
    let _announcement = world.announce(known.segment.identity(), "/shoal-that-is-not-there");
    let error = world.inspect(&[&pid]).unwrap_err();
    assert!(error.contains("cannot open the shared-memory object `/shoal-that-is-not-there`"), "{error}");
    let list = world.json(&[]);
    assert_eq!(list["runs"][0]["env_steps"], json!(null));
    assert!(list["runs"][0]["problem"].as_str().unwrap().contains("cannot open"));
    assert!(world.inspect(&[]).unwrap().contains("cannot open"));
}

#[test]
fn a_segment_of_another_run_is_refused() {
    let (world, known, other) = (World::new(), Known::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), other.segment.name());
    let error = world.inspect(&[&known.pid()]).unwrap_err();
    assert!(error.contains("belongs to another run"), "{error}");
}

#[test]
fn cleaning_removes_what_a_shared_replay_left() {
    let (world, known) = (World::new(), Known::new());
    let mut bytes = known.bytes();
    let identity = kill_supervisor(&mut bytes, known.segment.identity());
    // As Python's `Replay(..., shared=True)` names it.
    let named = |end: &str| identity.segment_name().replacen("/shoal-", "/shoal-replay-", 1) + end;
    let (in_use, _participant) = shared(named("1"), &bytes);
    // Every supervisor that starts on this machine cleans, too, and may come first.
    let removed_here = (0..20).any(|_| {
        let left = Object::named(named("0"), &bytes);
        let text = world.inspect(&["--clean"]).unwrap();
        assert!(!text.contains(&in_use.name) && !left.exists() && in_use.exists(), "{text}");
        text.contains(&format!("removed {}\n", left.name))
    });
    assert!(removed_here, "somebody else removed it, twenty times");
}
