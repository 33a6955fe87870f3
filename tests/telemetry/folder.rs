//! The run folder: names, `latest`, `run.json`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use shoal::telemetry::{Finished, RunFolder, TelemetryError, folders_of};
use tempfile::tempdir;

const CONFIG: &str = "[environment]\nid = \"CartPole-v1\"\n";

#[test]
fn a_run_folder_holds_the_configuration_and_who_runs_it() {
    let root = tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "cartpole_dqn", CONFIG).unwrap();
    assert_eq!(fs::read_to_string(folder.config()).unwrap(), CONFIG);
    assert!(folder.path().join("weights").is_dir());
    let record = folder.record().unwrap();
    assert_eq!((record.supervisor_pid, record.name.as_str(), record.finished), (std::process::id(), "cartpole_dqn", None));
    assert_eq!(record.command_line, std::env::args().collect::<Vec<_>>());
    assert!(record.usable_cores > 0.0 && record.usable_cores <= record.machine_cores as f64);
    let mode = fs::metadata(folder.record_path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, fs::metadata(folder.config()).unwrap().permissions().mode() & 0o777, "run.json is as readable as its neighbours");
}

#[test]
fn the_record_of_a_run_that_has_ended_has_the_cores_of_then() {
    let root = tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "run", CONFIG).unwrap();
    let now = folder.record().unwrap().usable_cores;
    // It began with many more.
    let text = fs::read_to_string(folder.record_path()).unwrap();
    let began = text.replace(&format!("\"usable_cores\": {now:?}"), "\"usable_cores\": 4096.0");
    assert_ne!(began, text);
    fs::write(folder.record_path(), began).unwrap();
    folder.write_finished(Finished { at: Timestamp::now(), reason: "solved".into(), summary: Value::Null }).unwrap();
    assert_eq!(folder.record().unwrap().usable_cores, now);
}

#[test]
fn an_id_is_its_time_in_utc_its_name_and_a_suffix() {
    let root = tempdir().unwrap();
    let before = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let folder = RunFolder::create(root.path(), "../Ant v5 €", CONFIG).unwrap();
    let after = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let (time, rest) = folder.id().split_at(15);
    assert!(before.as_str() <= time && time <= after.as_str(), "{before} {time} {after}");
    let suffix = rest.strip_prefix("-.._Ant_v5__-").unwrap_or_else(|| panic!("{rest}"));
    assert!(suffix.len() == 4 && suffix.chars().all(|c| c.is_ascii_hexdigit()), "{suffix}");
    assert_eq!(folder.path().parent(), Some(root.path()));
}

#[test]
fn runs_started_in_the_same_second_do_not_share_a_folder() {
    let root = tempdir().unwrap();
    let paths: std::collections::BTreeSet<_> =
        (0..50).map(|_| RunFolder::create(root.path(), "same", CONFIG).unwrap().path().to_path_buf()).collect();
    assert_eq!(paths.len(), 50);
}

#[test]
fn a_folder_that_was_moved_is_found_and_one_that_a_link_leads_to_has_not_moved() {
    let root = tempdir().unwrap();
    let [runs, link, moved] = ["runs", "link", "moved"].map(|name| root.path().join(name));
    symlink(&runs, &link).unwrap();
    fs::create_dir(&runs).unwrap();
    let folder = RunFolder::create(&link, "run", CONFIG).unwrap();
    assert!(folder.moved().is_none());
    fs::rename(&runs, &moved).unwrap();
    let found = folder.moved().expect("all runs were moved");
    assert_eq!(found.path(), moved.join(folder.id()).canonicalize().unwrap());
    assert_eq!(folder.current().path(), found.path());
    fs::rename(&moved, &runs).unwrap();
    assert!(folder.moved().is_none());
    assert_eq!(folder.current().path(), folder.path());
    fs::remove_dir_all(&runs).unwrap();
    assert!(folder.moved().is_none(), "it is nowhere");
}

#[test]
fn a_name_that_folders_spell_like_another_has_only_the_folders_of_its_own_runs() {
    let root = tempdir().unwrap();
    let [tokyo, kyoto] = ["東京", "京都"].map(|name| RunFolder::create(root.path(), name, CONFIG).unwrap());
    assert_eq!(folders_of(root.path(), "東京").unwrap(), [tokyo.path()]);
    fs::write(kyoto.record_path(), "damaged").unwrap();
    assert_eq!(folders_of(root.path(), "東京").unwrap().len(), 2, "nobody knows whose it is");
}

#[test]
fn a_folder_of_runs_that_cannot_be_listed_is_not_taken_for_one_without_runs() {
    let root = tempdir().unwrap();
    assert_eq!(folders_of(&root.path().join("none yet"), "run").unwrap().len(), 0);
    // What is no folder cannot be listed, whoever asks.
    let file = root.path().join("runs");
    fs::write(&file, "").unwrap();
    let error = folders_of(&file, "run").unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains(&file.display().to_string()), "{error}");
}

#[test]
fn the_newest_run_of_a_name_is_the_last_of_its_folders_also_after_the_clock_was_set_back() {
    let root = tempdir().unwrap();
    let make = |name: &str| RunFolder::create(root.path(), name, CONFIG).unwrap();
    let first = make("run");
    let ahead = root.path().join(first.id().replacen(&first.id()[..15], "20991231-235959", 1));
    fs::rename(first.path(), &ahead).unwrap();
    let later = [0; 3].map(|_| make("run").path().to_path_buf());
    assert_eq!(folders_of(root.path(), "run").unwrap(), [&[ahead][..], &later].concat(), "also where they begin in the same second");
    assert!(make("another").id() < "2099", "whose clock was right");
}

#[test]
fn latest_leads_to_the_newest_run_and_open_follows_it() {
    let root = tempdir().unwrap();
    let [_, second] = ["first", "second"].map(|name| RunFolder::create(root.path(), name, CONFIG).unwrap());
    second.become_latest().unwrap();
    let latest = root.path().join("latest");
    assert_eq!(fs::read_link(&latest).unwrap().to_str(), Some(second.id()), "relative, so that the folder can be moved");
    let opened = RunFolder::open(&latest).unwrap();
    assert_eq!((opened.id(), opened.path()), (second.id(), second.path().canonicalize().unwrap().as_path()));
    let names: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "two runs, the link and the charts; no temporary link stays behind: {names:?}");
}

#[test]
fn latest_follows_a_run_that_is_renamed_among_its_runs_and_no_other() {
    let root = tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| RunFolder::create(root.path(), name, CONFIG).unwrap());
    second.become_latest().unwrap();
    let renamed = |folder: &RunFolder, name: &str| {
        fs::rename(folder.path(), root.path().join(name)).unwrap();
        let moved = folder.moved().unwrap();
        moved.keep_latest(folder).unwrap();
        fs::read_link(root.path().join("latest")).unwrap()
    };
    assert_eq!(renamed(&first, "one").to_str(), Some(second.id()));
    assert_eq!(renamed(&second, "two").to_str(), Some("two"));
}

/// The folders below `folder` that TensorBoard shows as runs: links are followed, and an event file makes a run.
fn runs_of_tensorboard(folder: &Path) -> BTreeSet<PathBuf> {
    let mut runs = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            runs.extend(runs_of_tensorboard(&path));
        } else if path.file_name().unwrap().to_string_lossy().contains("tfevents") {
            runs.insert(folder.to_path_buf());
        }
    }
    runs
}

#[test]
fn tensorboard_finds_each_run_once() {
    let root = tempdir().unwrap();
    let folders = ["first", "second"].map(|name| RunFolder::create(root.path(), name, CONFIG).unwrap());
    let events: BTreeSet<PathBuf> = folders
        .iter()
        .map(|folder| {
            fs::write(folder.events(), "").unwrap();
            folder.events().parent().unwrap().to_path_buf()
        })
        .collect();
    folders[1].become_latest().unwrap();
    assert_eq!(runs_of_tensorboard(root.path()), events, "in the folder of all runs");
    assert_eq!(runs_of_tensorboard(&folders[0].charts()), events, "in the folder that the report names");
    for (folder, events) in folders.iter().zip(&events) {
        assert!(events.ends_with(folder.id()), "a run is called there as everywhere: {}", events.display());
    }
}

#[test]
fn a_copy_of_a_run_that_goes_on_has_charts_of_its_own_and_a_run_that_was_moved_keeps_its() {
    let root = tempdir().unwrap();
    let original = RunFolder::create(root.path(), "original", CONFIG).unwrap();
    let copy = root.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in [original.record_path(), original.config()] {
        fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    }
    let charts_of = |path: &Path| {
        let mut folder = RunFolder::open(path).unwrap();
        folder.go_on(CONFIG).unwrap();
        assert!(folder.events().parent().unwrap().is_dir());
        folder.events().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(charts_of(&copy), "copy");
    assert_eq!(charts_of(original.path()), original.id());
    fs::rename(original.path(), root.path().join("moved")).unwrap();
    assert_eq!(charts_of(&root.path().join("moved")), original.id());
    assert_eq!(charts_of(&copy), "copy", "whatever becomes of the run that it was copied from");
}

#[test]
fn a_run_that_goes_on_has_a_folder_for_its_weights_even_if_it_was_copied_without_one() {
    let root = tempdir().unwrap();
    let mut folder = RunFolder::create(root.path(), "run", CONFIG).unwrap();
    let weights = folder.path().join("weights");
    fs::remove_dir(&weights).unwrap();
    folder.go_on(CONFIG).unwrap();
    assert!(weights.is_dir());
}

#[test]
fn a_lock_whose_file_was_removed_is_taken_anew_unless_others_were_first() {
    let root = tempdir().unwrap();
    let mut folder = RunFolder::create(root.path(), "run", CONFIG).unwrap();
    let lock = folder.path().join(".lock");
    let mut other = RunFolder::open(folder.path()).unwrap();
    assert!(!folder.take_anew() && !other.take().unwrap(), "the file is there");
    fs::remove_file(&lock).unwrap();
    assert!(other.take().unwrap() && !folder.take_anew());
    other.give_back();
    assert!(folder.take_anew() && !other.take().unwrap());
    // What becomes on a network file system of a file that is removed while it is open.
    fs::rename(&lock, lock.with_file_name(".nfs0001")).unwrap();
    assert!(folder.take_anew() && !other.take().unwrap());
    fs::remove_file(&lock).and_then(|()| fs::remove_file(folder.record_path())).unwrap();
    assert!(!folder.take_anew() && !lock.exists(), "somebody is removing the folder");
    fs::remove_dir_all(folder.path()).unwrap();
    assert!(!folder.take_anew(), "there is no folder");
}

#[test]
fn a_copy_where_the_folder_of_a_run_was_before_it_was_moved_is_not_locked_in_its_place() {
    let root = tempdir().unwrap();
    let mut folder = RunFolder::create(root.path(), "run", CONFIG).unwrap();
    let (before, moved) = (folder.path().to_path_buf(), root.path().join("moved"));
    fs::rename(&before, &moved).unwrap();
    fs::create_dir(&before).unwrap();
    for file in ["run.json", "config.toml", ".lock"] {
        fs::copy(moved.join(file), before.join(file)).unwrap();
    }
    assert!(!folder.take_anew() && RunFolder::open(&before).unwrap().take().unwrap());
    assert!(!RunFolder::open(&moved).unwrap().take().unwrap(), "it is locked where it is now");
    let mut folder = folder.current();
    fs::remove_file(moved.join(".lock")).unwrap();
    assert!(folder.take_anew() && !RunFolder::open(&moved).unwrap().take().unwrap());
}

#[test]
fn charts_of_a_run_that_goes_on_follow_those_before_whatever_the_clock_says() {
    let root = tempdir().unwrap();
    let mut folder = RunFolder::create(root.path(), "run", CONFIG).unwrap();
    let of_this_second = folder.events();
    let of_a_clock_ahead = of_this_second.with_file_name("events.out.tfevents.4102444800.host.1.0");
    for before in [of_this_second, of_a_clock_ahead] {
        fs::write(&before, "").unwrap();
        folder.go_on(CONFIG).unwrap();
        assert!(folder.events() > before, "{} after {}", folder.events().display(), before.display());
    }
}

#[test]
fn latest_leads_to_a_run_again_that_was_killed_while_it_pointed_it() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| RunFolder::create(root.path(), name, "").unwrap());
    second.become_latest().unwrap();
    std::os::unix::fs::symlink(first.id(), root.path().join(format!(".latest-{}", first.id()))).unwrap();
    let latest = || fs::read_link(root.path().join("latest")).unwrap();
    assert_eq!(latest().to_str(), Some(second.id()));
    first.become_latest().unwrap();
    assert_eq!(latest().to_str(), Some(first.id()));
    assert!(fs::symlink_metadata(root.path().join(format!(".latest-{}", first.id()))).is_err());
}

#[test]
fn something_of_the_users_named_latest_is_left_alone() {
    let root = tempdir().unwrap();
    fs::write(root.path().join("latest"), "mine").unwrap();
    let folder = RunFolder::create(root.path(), "run", CONFIG).unwrap();
    let warning = folder.become_latest().unwrap_err();
    assert_eq!(fs::read_to_string(root.path().join("latest")).unwrap(), "mine");
    assert!(warning.contains("latest") && warning.contains("not a symbolic link"), "{warning}");
}

#[test]
fn a_folder_that_no_run_has_written_is_refused_with_the_missing_file() {
    let root = tempdir().unwrap();
    RunFolder::create(root.path(), "run", CONFIG).unwrap().become_latest().unwrap();
    let error = RunFolder::open(root.path()).unwrap_err();
    assert!(matches!(error, TelemetryError::NotARunFolder { missing: "run.json", .. }));
    let latest = root.path().join("latest").display().to_string();
    assert!(error.to_string().contains(&latest), "the folder of all runs is told to name one: {error}");
    let error = RunFolder::open(tempdir().unwrap().path()).unwrap_err();
    assert!(error.to_string().contains("runs/latest"), "{error}");
    let error = RunFolder::open(&root.path().join("nothing")).unwrap_err();
    assert!(error.to_string().contains("nothing") && error.to_string().contains("check the path"), "{error}");
}

#[test]
fn a_root_that_is_a_file_is_an_error_that_names_it() {
    let root = tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let error = RunFolder::create(&file, "run", CONFIG).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
}
