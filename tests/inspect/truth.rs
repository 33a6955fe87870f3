//! What the inspector says of a run is what is in its segment.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shoal::inspector::{Inspection, Look};
use shoal::replay::Priority;
use shoal::segment::SegmentSizes;
use shoal::segment::counters::Counter;
use shoal::segment::metrics::Report;
use shoal::segment::scores::Scores;
use shoal::sync::Ordering;

use super::fixture::{CAPACITY, Known, LAST_WORDS, PENDING, PRIORITIES, World, sizes};
use crate::support::object::{Object, path_of};

fn known() -> (World, Known, shoal::rendezvous::Announcement) {
    let (world, known) = (World::new(), Known::new());
    let announcement = world.announce(known.segment.identity(), known.segment.name());
    (world, known, announcement)
}

#[test]
fn the_header_and_the_regions_are_those_of_the_layout() {
    let (world, known, _announcement) = known();
    let header = &world.json(&[&known.pid()])["header"];
    let layout = known.segment.layout();
    assert_eq!(header["segment"], known.segment.name());
    assert_eq!(header["run_id"], format!("{:032x}", known.segment.identity().run_id));
    assert_eq!(header["supervisor_pid"], std::process::id());
    assert_eq!(header["state"], "running");
    assert_eq!(header["total_bytes"], layout.total_bytes());
    assert_eq!(header["sizes"], serde_json::to_value(layout.sizes()).unwrap());
    let regions: Vec<(u64, u64)> =
        array(&header["regions"]).iter().map(|region| (count(&region["offset_bytes"]), count(&region["length_bytes"]))).collect();
    let truth: Vec<(u64, u64)> =
        layout.sections().iter().map(|section| (section.offset_bytes as u64, section.length_bytes as u64)).collect();
    assert_eq!(regions, truth);
}

#[test]
fn counts_are_those_of_the_run() {
    let (world, known, _announcement) = known();
    let report = world.json(&[&known.pid()]);
    let description = &report["description"];
    assert_eq!((&description["environment"], &description["algorithm"]), (&json!("Known-v1"), &json!("dqn")));
    assert_eq!(description["fields"][2], json!({"name": "pixels", "element": "u8", "length": 5}));
    let run = &report["run"];
    for (key, value) in
        [("env_steps", 120), ("episodes", 4), ("updates", 7), ("repairs", 2), ("policy_lag_max", 9)].map(|(key, value)| (key, json!(value)))
    {
        assert_eq!(run[key], value, "{key}");
    }
    assert_eq!((&run["state"], &run["policy_lag_mean"], &run["repairing"]), (&json!("running"), &json!(3.0), &json!(false)));
    assert_eq!(report["parameters"], json!({"count": 10, "version": 3, "learner_state_version": 1}));
    assert_eq!(report["learners"], json!({"epoch": 5, "members": [0, 1], "leader": 1}));
    let metrics = json!([
        {"name": "loss", "value": 0.5},
        {"name": "entropy", "value": 0.75},
        {"name": "drops", "value": 6.0},
    ]);
    assert_eq!(report["metrics"], metrics, "the newest mean, the largest, the sum, and nothing that was never said");
    assert!(world.inspect(&[&known.pid()]).unwrap().contains("loss 0.5, entropy 0.75, drops 6\n"));
    let replay = &report["replay"];
    for (key, value) in [
        ("capacity", CAPACITY),
        ("claimed", PRIORITIES.len()),
        ("inserted", PRIORITIES.len()),
        ("size", PRIORITIES.len()),
        ("sampled", 224),
        ("skipped_slots", 1),
        ("redrawn", 2),
        ("stale_priorities", 5),
        ("refused_priorities", 6),
        ("saturated_priorities", 7),
    ] {
        assert_eq!(replay[key], value, "{key}");
    }
    assert_eq!((&replay["fill"], &replay["samples_per_insert"]), (&json!(0.3125), &json!(22.4)));
    let empty = json!({"slot": 1, "capacity": 8, "committed": 0, "flushed": 0, "pending": 0});
    let used = json!({"slot": 0, "capacity": 8, "committed": PENDING, "flushed": 0, "pending": PENDING});
    assert_eq!(report["staging"], json!([used, empty]));
}

#[test]
fn gpus_are_as_their_learners_reported_last() {
    let (world, known, _announcement) = known();
    for (index, busy_share, memory_bytes) in [(0, 1.0, 77), (0, 0.5, 1 << 30), (1, 0.25, 2 << 30)] {
        known.segment.metric_ring(2).push(Report::Gpu { index, busy_share, memory_bytes });
    }
    let metrics = world.json(&[&known.pid()])["metrics"].clone();
    let told = [json!({"name": "gpu_busy_share", "value": 0.375}), json!({"name": "gpu_memory_bytes", "value": 3.0 * 2f64.powi(30)})];
    assert!(array(&metrics).ends_with(&told), "{metrics}");
    let text = world.inspect(&[&known.pid()]).unwrap();
    assert!(text.contains("drops 6, gpu_busy_share 0.375, gpu_memory_bytes 3.00 GiB\n"), "{text}");
}

#[test]
fn the_newest_returns_are_those_that_the_supervisor_knows() {
    let (world, known, _announcement) = known();
    let evaluation = json!({"return_mean": 412.5, "ci95_low": 380.0, "ci95_high": 445.0, "episodes": 20, "env_steps": 96, "version": 2});
    let scores = json!({"training": {"return_mean": -120.25, "episodes": 4}, "evaluation": evaluation});
    assert_eq!(world.json(&[&known.pid()])["scores"], scores);
    let text = world.inspect(&[&known.pid()]).unwrap();
    for line in [
        "training    mean return -120.2 over the newest 4 episodes",
        "evaluation  mean return 412.5 (95 % interval 380.0 to 445.0, 20 episodes), version 2, 96 env steps",
    ] {
        assert!(text.contains(line), "`{line}` is missing in:\n{text}");
    }
    known.segment.control().scores().publish(&Scores::default());
    let text = world.inspect(&[&known.pid()]).unwrap();
    assert!(text.contains("training    no episode is finished yet") && text.contains("evaluation  none yet"), "{text}");
}

#[test]
fn the_process_table_tells_the_living_from_the_dead() {
    let (world, known, _announcement) = known();
    let processes = world.json(&[&known.pid()])["processes"].clone();
    let [actor, dead, learner, free] = [0, 1, 2, 3].map(|slot| &processes[slot]);
    assert_eq!((&actor["role"], &actor["number"], &actor["phase"]), (&json!("actor"), &json!(0), &json!("insert")));
    assert_eq!((&actor["state"], &actor["alive"], &actor["pid"]), (&json!("live"), &json!(true), &json!(std::process::id())));
    assert!(actor["heartbeat_age_ms"].is_u64());
    assert_eq!((&actor["time"]["environment"], &actor["time"]["inference"]), (&json!(0.75), &json!(0.25)));
    assert_eq!((&actor["time"]["accounted_s"], &actor["env_steps"], &actor["inserted"]), (&json!(4.0), &json!(120), &json!(10)));
    assert_eq!((&actor["insert_share"], &dead["insert_share"]), (&json!(1.0), &Value::Null));
    assert_eq!((&dead["state"], &dead["alive"], &dead["restarts"]), (&json!("live"), &json!(false), &json!(1)));
    assert_eq!(dead["last_words"], LAST_WORDS.replace('\x1b', "\\u{1b}"));
    assert_eq!((&learner["role"], &learner["updates"], &learner["sampled"]), (&json!("learner"), &json!(7), &json!(224)));
    assert_eq!((&learner["phase"], &learner["time"]["compute"]), (&json!("compute"), &json!(1.0)));
    assert_eq!((&free["state"], &free["role"], &free["pid"]), (&json!("free"), &Value::Null, &json!(0)));
}

#[test]
fn the_histogram_counts_every_priority_once() {
    let (world, known, _announcement) = known();
    let priorities = world.json(&[&known.pid()])["priorities"].clone();
    let bins = array(&priorities["bins"]);
    let (first, last) = (-10, 9);
    assert_eq!(bins.len(), usize::try_from(last - first + 1).unwrap());
    for (bin, power) in bins.iter().zip(first..=last) {
        let range = 2f64.powi(power)..2f64.powi(power + 1);
        assert_eq!((number(&bin["at_least"]), number(&bin["below"])), (range.start, range.end));
        let truth = PRIORITIES.iter().filter(|&&priority| range.contains(&f64::from(priority))).count();
        assert_eq!(bin["count"], truth, "{range:?}");
    }
    assert_eq!((&priorities["positive"], &priorities["zero"]), (&json!(10), &json!(0)));
    let fixed = PRIORITIES.map(|priority| Priority::from_f32(priority).unwrap().to_f64());
    assert!((number(&priorities["smallest"]) - fixed[9]).abs() < 1e-9 && number(&priorities["largest"]) == 1000.0);
    assert!((number(&priorities["mean"]) - fixed.iter().sum::<f64>() / 10.0).abs() < 1e-9);
}

#[test]
fn a_quiet_tree_is_exact_and_a_damaged_one_is_not() {
    let (world, known, announcement) = known();
    let tree = world.json(&[&known.pid()])["tree"].clone();
    assert_eq!((&tree["verdict"], &tree["inconsistent_nodes"], &tree["looks"]), (&json!("exact"), &json!(0), &json!(1)));
    assert_eq!(tree["root"], tree["leaf_sum"]);
    let total: f64 = PRIORITIES.iter().map(|&priority| Priority::from_f32(priority).unwrap().to_f64()).sum();
    assert!((number(&tree["total_priority"]) - total).abs() < 1e-6);
    drop(announcement);

    let damaged = with_a_wrong_sum(&known);
    let _announcement = world.announce(known.segment.identity(), &damaged.name);
    let report = world.json(&[&known.pid()]);
    // The node itself, and its parent, which no longer is the sum of its children.
    assert_eq!((&report["tree"]["verdict"], &report["tree"]["inconsistent_nodes"]), (&json!("inconsistent"), &json!(2)));
    assert!(world.inspect(&[&known.pid()]).unwrap().contains("INCONSISTENT: 2 nodes"));
}

#[test]
fn a_tree_that_a_death_left_half_changed_is_not_called_damaged() {
    let (world, known) = (World::new(), Known::new());
    // As the dead actor leaves its slot if it was killed inside an operation.
    std::mem::forget(known.segment.processes().slot(1).begin_operation(known.segment.control(), || ()));
    let left = with_a_wrong_sum(&known);
    let _announcement = world.announce(known.segment.identity(), &left.name);
    assert_eq!(world.json(&[&known.pid()])["tree"]["verdict"], "half_changed");
    let text = world.inspect(&[&known.pid()]).unwrap();
    assert!(text.contains("half changed: a process died in the middle of an operation, and 2 nodes"), "{text}");
    assert!(!text.contains("INCONSISTENT"), "{text}");
}

/// The run's bytes, but for one inner node of the tree that is not the sum of its children.
fn with_a_wrong_sum(known: &Known) -> Object {
    let mut bytes = known.bytes();
    let region = known.segment.layout().section(shoal::segment::Region::Tree);
    // The first inner node lies behind the leaves.
    bytes[region.offset_bytes + 8 * CAPACITY] ^= 1;
    Object::new(&bytes)
}

#[test]
fn every_value_of_a_transition_is_decoded() {
    let (world, known, _announcement) = known();
    for (slot, priority) in PRIORITIES.iter().enumerate() {
        let read = world.json(&[&known.pid(), "--transition", &slot.to_string()]);
        let value = slot as f64;
        assert_eq!((&read["slot"], &read["generation"]), (&json!(slot), &json!(1)));
        assert_eq!(read["owner"], json!({"slot": 0, "role": "actor"}));
        // To within what reading a decimal number back may lose.
        assert!((number(&read["priority"]) - Priority::from_f32(*priority).unwrap().to_f64()).abs() < 1e-9);
        let truth = [
            ("observation", "f32", json!([value, -value, 0.5])),
            ("action", "i32", json!([-(slot as i64)])),
            ("pixels", "u8", json!([1, 2, 3, 4, slot])),
            ("flags", "u8", json!([slot, 255])),
            ("indices", "i32", json!([i32::MIN, slot])),
        ];
        let truth = truth.map(|(name, element, values)| {
            let shape = [values.as_array().unwrap().len()];
            json!({"name": name, "element": element, "shape": shape, "values": values})
        });
        assert_eq!(read["fields"], json!(truth));
    }
    let text = world.inspect(&[&known.pid(), "--transition", "3"]).unwrap();
    for part in ["generation  1", "process slot 0 (actor)", "priority    1\n", "[3.0, -3.0, 0.5]", "[-2147483648, 3]"] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[test]
fn slots_without_a_transition_are_errors() {
    let (world, known, _announcement) = known();
    let ask = |slot: &str| world.inspect(&[&known.pid(), "--transition", slot]).unwrap_err();
    assert!(ask("10").contains("slot 10 is empty: 10 transitions have been inserted"));
    assert!(ask("32").contains("there is no slot 32: the replay has 32 slots, 0 to 31"));
    assert!(ask(&usize::MAX.to_string()).contains("there is no slot"));
}

#[test]
fn a_slot_that_is_being_written_is_torn_rather_than_guessed() {
    let (world, known, _announcement) = known();
    let mut bytes = known.bytes();
    let region = known.segment.layout().section(shoal::segment::Region::Store);
    let words = sizes().slot_words();
    // State WRITING, generation 2, owner 1: what a process leaves that is killed in the middle of a row.
    super::fixture::put_word(&mut bytes, region.offset_bytes / 8 + 4 * words, 2 << 24 | 1 << 20 | 1);
    let object = Object::new(&bytes);
    let _other = world.announce(known.segment.identity(), &object.name);
    let error = world.inspect(&[&known.pid(), "--transition", "4"]).unwrap_err();
    assert!(error.contains("the transition in slot 4 is torn"), "{error}");
}

#[test]
fn rates_are_what_the_counters_gain_over_the_time_between_two_looks() {
    let (world, known, _announcement) = known();
    let inspection = Inspection::open(&world.registry, std::process::id()).unwrap();
    let before = Instant::now();
    let look = Look::at(inspection.segment());
    let after = Instant::now();
    known.segment.processes().slot(0).counters().add(Counter::EnvSteps, 300);
    known.segment.control().env_steps().fetch_add(700, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(20));
    let shortest_s = after.elapsed().as_secs_f64();
    let report = serde_json::to_value(inspection.report_since(&look)).unwrap();
    let longest_s = before.elapsed().as_secs_f64();
    let (run, [actor, learner]) = (&report["run"], [0, 2].map(|slot| &report["processes"][slot]));
    for (of, gained) in [(actor, 300.0), (run, 700.0)] {
        let rate = number(&of["env_steps_per_s"]);
        assert!((gained / longest_s..=gained / shortest_s).contains(&rate), "{rate}: {gained} in {shortest_s} to {longest_s} s");
    }
    assert_eq!((number(&learner["updates_per_s"]), number(&run["updates_per_s"])), (0.0, 0.0));
}

#[test]
fn the_supervisor_has_a_share_of_the_cores_that_is_no_part_of_the_runs() {
    let (world, known, _announcement) = known();
    let inspection = Inspection::open(&world.registry, std::process::id()).unwrap();
    // This process is the supervisor of the run.
    let look = Look::at(inspection.segment());
    let after = Instant::now();
    while after.elapsed() < Duration::from_millis(20) {
        std::hint::black_box(0);
    }
    let run = serde_json::to_value(inspection.report_since(&look)).unwrap()["run"].clone();
    assert!(number(&run["supervisor_cores_used"]) > 0.0, "{run}");
    let text = world.inspect(&[&known.pid()]).unwrap();
    let line = text.lines().find(|line| line.starts_with("supervisor  ")).unwrap();
    assert!(line.contains(" ago, ") && line.ends_with(" cores"), "{line}");
}

#[test]
fn the_binary_tells_rates_of_the_interval_that_it_is_given() {
    let (world, known, _announcement) = known();
    let slot = known.segment.processes().slot(0);
    // So long that this thread, too, has a core within it.
    let pid = known.pid();
    let mut child = world.command(&["--json", "--interval-ms", "1000", &pid]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut gained = 0u32;
    while child.try_wait().unwrap().is_none() {
        slot.counters().add(Counter::EnvSteps, 3);
        known.segment.control().env_steps().fetch_add(3, Ordering::Relaxed);
        gained += 3;
        std::thread::sleep(Duration::from_micros(200));
    }
    let report: Value = serde_json::from_reader(child.stdout.take().unwrap()).unwrap();
    // No more was gained between its looks than in its whole life, and they are no less than the interval, a second, apart.
    let most = f64::from(gained);
    for of in [&report["processes"][0], &report["run"]] {
        let rate = number(&of["env_steps_per_s"]);
        assert!(rate > 0.0 && rate <= most, "{rate}, at most {most}");
    }
}

#[test]
fn without_a_tree_there_are_no_priorities() {
    let (world, known) = (World::new(), Known::with(SegmentSizes { fanout: 0, ..sizes() }));
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let report = world.json(&[&known.pid()]);
    assert_eq!((&report["tree"], &report["priorities"]), (&Value::Null, &Value::Null));
    assert_eq!(world.json(&[&known.pid(), "--transition", "3"])["priority"], Value::Null);
    assert!(!world.inspect(&[&known.pid()]).unwrap().contains("sum tree"));
}

#[test]
fn the_text_names_everything_and_steers_no_terminal() {
    let (world, known, _announcement) = known();
    let text = world.inspect(&[&known.pid()]).unwrap();
    for part in [
        "run         dqn on Known-v1",
        &format!("pid {} (alive), started", std::process::id()),
        "state       running",
        "folder      runs/known",
        "120 env steps",
        "policy lag  mean 3.0, max 9 updates",
        "version 3 for acting",
        "[0, 1] in epoch 5, 1 leads",
        "learner state",
        "4 slots, 1 never used",
        "actor 1 said last: out of \\u{1b}[31mmemory",
        "actor 0: environment 75 %, inference 25 % of 4.0 s",
        "10 of 32 rows, 31.2 % full",
        "(22.40 per insert)",
        "priorities: stale 5, refused 6, saturated 7",
        "exact after 1 look",
        "10 (0 zero)",
        "2 areas, 1 in use",
    ] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(!text.contains(|character: char| character.is_control() && character != '\n'), "{text:?}");
    assert_eq!(text.lines().filter(|line| line.ends_with('█')).count(), 6, "one bar per occupied power of two");
}

#[test]
fn looking_changes_no_byte() {
    let (world, known, _announcement) = known();
    let before = known.bytes();
    let pid = known.pid();
    for arguments in [vec![&*pid], vec![&*pid, "--json"], vec![&*pid, "--transition", "1"], vec![]] {
        world.inspect(&arguments).unwrap();
        assert!(known.bytes() == before, "{arguments:?} changed the segment");
    }
    assert!(path_of(known.segment.name()).exists());
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no array"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}
