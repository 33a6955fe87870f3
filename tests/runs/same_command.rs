//! The command that began a run is given again and, where `run.resume` is "auto", goes on with it, or begins a new one. Driven as real
//! binaries.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::Path;

use nix::sys::signal::Signal;
use shoal::catalogue::Catalogue;
use shoal::config::Config;
use shoal::machine::cores;
use shoal::roles::supervisor::Prepared;

use crate::support::programs::{self, Supervised, command_of, confine, said, start, start_preset};
use crate::support::skipped;

const AUTO: [&str; 2] = ["run.resume=auto", "checkpoint.interval_s=0.3"];

fn folders_in(runs: &Path) -> usize {
    let entries = std::fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("run.json").is_file() && !path.is_symlink()).count()
}

#[test]
fn the_same_command_goes_on_with_a_killed_run_if_it_is_told_to_and_begins_another_beside_one_that_goes_on() {
    let mut run = start(&AUTO);
    run.wait_for_log("checkpoint 000001");
    run.kill();
    let runs = run.folder.path().join("runs");
    let changed = [programs::SMALL, &AUTO, &["algorithm.gamma=0.5"]].concat();
    let refused = said(&programs::command(run.folder.path(), &changed).output().unwrap());
    assert!(refused.contains("another algorithm.gamma: ") && refused.contains("run.resume=never, or another run.name"), "{refused}");
    let place = run.folder.path().to_path_buf();
    let plan_in = |folder: &str| {
        let change = format!("run.folder={folder:?}");
        let changed = [programs::SMALL, &AUTO, &[change.as_str()]].concat();
        said(&programs::command(&place, &changed).arg("--check").output().unwrap())
    };
    let (spelled, moved) = (format!("{}/", runs.display()), run.folder.path().join("moved"));
    assert!(plan_in(&spelled).contains("goes on from checkpoint"), "{}", plan_in(&spelled));
    // What somebody has misspelled in its folder is no matter: the checkpoint has its own.
    let config = run.run_folder().join("config.toml");
    let whole = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{whole}nonsense = 1\n")).unwrap();
    assert!(plan_in(&spelled).contains("goes on from checkpoint"), "{}", plan_in(&spelled));
    std::fs::write(&config, whole).unwrap();
    std::fs::rename(&runs, &moved).unwrap();
    let plan = plan_in(&moved.display().to_string());
    std::fs::rename(&moved, &runs).unwrap();
    assert!(plan.contains("goes on from checkpoint"), "{plan}");
    run.start_again(&AUTO);
    run.wait_for_log("goes on from checkpoint");
    assert_eq!(folders_in(&runs), 1);
    let beside = plan_in(&spelled);
    let told = format!("is under way (process {}), so this is a new run beside it", run.pid());
    assert!(beside.contains(&told) && beside.contains("a new one begins"), "{beside}");
    run.end_by(Signal::SIGINT);
}

#[test]
fn the_same_command_passes_over_newer_runs_of_other_users() {
    if !nix::unistd::geteuid().is_root() {
        return skipped::because("only root may give a folder to another user");
    }
    let mut run = start(&AUTO);
    run.wait_for_log("checkpoint 000001");
    run.kill();
    let own = run.run_folder().canonicalize().unwrap();
    let name = own.file_name().unwrap().to_str().unwrap();
    let others = own.with_file_name(format!("2999{}", &name[4..]));
    assert!(std::process::Command::new("cp").arg("-a").args([&own, &others]).status().unwrap().success());
    std::os::unix::fs::chown(&others, Some(65_534), None).unwrap();
    let check = || said(&programs::command(run.folder.path(), &[programs::SMALL, &AUTO].concat()).arg("--check").output().unwrap());
    let plan = check();
    assert!(plan.contains("is of user 65534") && plan.contains("goes on from checkpoint") && plan.contains(name), "{plan}");
    std::os::unix::fs::chown(&own, Some(65_534), None).unwrap();
    let plan = check();
    assert!(plan.contains("is of user 65534") && plan.contains("a new one begins"), "{plan}");
    // Root, as in a container, after whoever has the folder outside took it over.
    std::os::unix::fs::chown(own.parent().unwrap(), Some(65_534), None).unwrap();
    let plan = check();
    assert!(plan.contains("goes on from checkpoint"), "{plan}");
}

#[test]
fn a_run_on_frames_that_fits_itself_goes_on_by_the_same_command_with_fewer_cores() {
    if cores::usable_now() < 2 {
        return skipped::because("with a single core there is none to lose");
    }
    let small = [
        "adaptation.enabled=true",
        "replay.capacity=2000",
        "replay.min_size=200",
        "actor.random_steps=200",
        "run.stop_eval_return=none",
        "evaluator.enabled=false",
    ];
    let changes = [&AUTO[..], &small].concat();
    let mut run = start_preset("rally_dqn", &changes);
    run.wait_for_log("checkpoint 000001");
    run.kill();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/rally_dqn.toml");
    let mut again = command_of(&preset, run.folder.path(), &changes);
    again.arg("--check");
    // A program may use the cores of the thread that starts it.
    let on_one_core = || {
        confine(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(), cores::affinity_mask()[0]);
        again.output().unwrap()
    };
    let plan = said(&std::thread::scope(|threads| threads.spawn(on_one_core).join().unwrap()));
    assert!(plan.contains("goes on from checkpoint") && plan.contains("on 1 core: "), "{plan}");
}

#[test]
fn the_same_command_with_another_batch_goes_on_with_the_ratio_that_followed_the_first_one_and_says_so() {
    let small = [
        "network.hidden=[32]",
        "learner.batch_size=32",
        "replay.min_size=200",
        "actor.random_steps=200",
        "run.stop_env_steps=1000000000",
        "evaluator.enabled=false",
        "machine.affinity=false",
    ];
    let small = [&AUTO[..], &small].concat();
    let ends: [fn(&mut Supervised); 2] = [Supervised::kill, |run| run.end_by(Signal::SIGTERM)];
    for end in ends {
        let folder = tempfile::tempdir().unwrap();
        let task = folder.path().join("task.toml");
        std::fs::write(&task, "environment.id = \"Pendulum-v1\"\nalgorithm.name = \"td3\"\n").unwrap();
        let mut run = Supervised::spawn(command_of(&task, folder.path(), &small), folder);
        run.wait_for_log("checkpoint 000001");
        end(&mut run);
        let set = [&small[..], &["replay.samples_per_insert=16"]].concat();
        let plan = said(&command_of(&task, run.folder.path(), &set).arg("--check").output().unwrap());
        assert!(!plan.contains("goes on from checkpoint"), "{plan}");
        // Of 8 environments that the band has room for with 16 samples per insert, 4 are left with 32.
        for (band, fits_itself, told) in [("128", "true", "goes on from checkpoint"), ("32", "false", "with which the run began: ")] {
            let [band, fits_itself] = [format!("replay.error_band={band}"), format!("adaptation.enabled={fits_itself}")];
            let narrow = [&small[..], &["learner.batch_size=16", "actor.environments=2", band.as_str(), fits_itself.as_str()]].concat();
            let plan = said(&command_of(&task, run.folder.path(), &narrow).arg("--check").output().unwrap());
            assert!(plan.contains(told), "{plan}");
        }
        let runs = format!("run.folder={:?}", run.folder.path().join("runs").display().to_string());
        let changed = [&small[..], &["learner.batch_size=16", runs.as_str()]].concat();
        let loaded = Config::load(&task, &changed.iter().map(|&change| change.to_owned()).collect::<Vec<_>>()).unwrap();
        let mut prepared = Prepared::new(loaded, &Catalogue::default()).unwrap();
        let words = RefCell::new(String::new());
        let mut found = prepared.find_broken_run(&|text| words.borrow_mut().push_str(text)).unwrap().expect("a run that goes on");
        let words = words.into_inner();
        assert!(words.contains("replay.samples_per_insert stays 32.0, ") && words.contains("would have 16.0, "), "{words}");
        let plan = prepared.plan(Some(&found)).unwrap();
        prepared.check_resumption(&plan, &mut found).unwrap();
        assert_eq!(prepared.loaded.config.learner.batch_size, 16);
        assert_eq!(prepared.algorithm().experience().limiter().samples_per_insert, Some(32.0));
    }
}

#[test]
fn a_run_whose_checkpoints_cannot_be_listed_is_no_reason_to_begin_another() {
    let mut run = start(&AUTO);
    run.wait_for_log("checkpoint 000001");
    run.kill();
    let checkpoints = run.run_folder().join("checkpoints");
    std::fs::rename(&checkpoints, run.folder.path().join("aside")).unwrap();
    // What is no folder cannot be listed, whoever asks.
    std::fs::write(&checkpoints, "").unwrap();
    let refused = programs::command(run.folder.path(), &[programs::SMALL, &AUTO].concat()).arg("--check").output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("cannot list the checkpoints in"), "{}", said(&refused));
}

#[test]
fn the_same_command_goes_on_with_a_run_that_was_terminated_and_not_with_one_that_was_interrupted() {
    for signal in programs::stop_signals() {
        let mut run = start(&AUTO);
        run.wait_for_updates(20);
        run.end_by(signal);
        let (runs, log_bytes) = (run.folder.path().join("runs"), run.log().len());
        run.start_again(&AUTO);
        if signal == Signal::SIGINT {
            run.wait_until("a folder of its own", || folders_in(&runs) == 2);
        } else {
            run.wait_for_log_after(log_bytes, "goes on from checkpoint");
            assert_eq!(folders_in(&runs), 1, "after {signal}");
        }
        run.end_by(Signal::SIGINT);
    }
}

#[test]
fn a_command_that_is_given_again_while_its_run_is_about_to_end_waits_for_that_and_goes_on() {
    let mut run = start(&AUTO);
    run.wait_for_log("checkpoint 000001");
    // As long as somebody else has this lock, no checkpoint is written.
    let lock = std::fs::File::open(run.run_folder().join("checkpoints/.lock")).unwrap();
    lock.lock().unwrap();
    run.signal(Signal::SIGTERM);
    run.wait_until_left();
    let mut again = programs::command(run.folder.path(), &[programs::SMALL, &AUTO].concat());
    let mut again = again.arg("--check").spawn().unwrap();
    let mut lines = BufReader::new(again.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("it is about to end: waiting")), "it has not waited");
    drop(lock);
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{}", run.output());
    let said: Vec<String> = lines.collect();
    assert!(again.wait().unwrap().success() && said.iter().any(|line| line.contains("goes on from checkpoint")), "{said:?}");
}
