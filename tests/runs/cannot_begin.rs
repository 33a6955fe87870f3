//! A run that cannot begin, though its plan fits, leaves neither a folder nor a `latest` that leads to it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::namespaces::{in_a_mount_namespace, mount};
use crate::support::programs::{SMALL, Supervised, command, said, start, under};

/// What lies in the folder of all runs and in that of their charts, and where `latest` leads.
fn found(folder: &Path) -> ([Vec<OsString>; 2], Option<PathBuf>) {
    let runs = folder.join("runs");
    let names = |folder: PathBuf| {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    ([runs.clone(), runs.join("tensorboard")].map(names), std::fs::read_link(runs.join("latest")).ok())
}

/// A run that has ended.
fn ended() -> Supervised {
    let mut run = start(&["run.stop_env_steps=1000"]);
    run.succeed();
    run
}

/// Assert that a run that `begin` begins beside `before` fails as it says in `told`, and leaves everything as it was.
fn assert_leaves_nothing(before: &Supervised, told: &str, begin: impl FnOnce() -> Output) {
    let found_before = found(before.folder.path());
    let failed = begin();
    let text = said(&failed);
    assert!(failed.status.code() == Some(1) && text.contains(told), "{text}");
    // Its sentinel may be about to see to what the supervisor left.
    before.assert_nothing_left();
    assert_eq!(found(before.folder.path()), found_before);
}

#[test]
fn a_run_that_cannot_be_announced_leaves_no_folder_and_latest_leads_where_it_led() {
    let before = ended();
    // With checkpoints the sentinel, which is there by then, looks after what is in the folder.
    let run = command(before.folder.path(), &[SMALL, &["checkpoint.interval_s=600"]].concat());
    for (taken, told) in [("socket", "cannot listen at"), ("new", "cannot announce the run in")] {
        // The process id, and so the names in the registry, stay when the shell becomes the supervisor.
        let block = format!("umask 077; mkdir \"$XDG_RUNTIME_DIR/shoal/$$.{taken}\"");
        assert_leaves_nothing(&before, told, || under(&block, &run).output().unwrap());
    }
}

#[test]
fn a_run_whose_memory_cannot_be_made_leaves_no_folder_and_latest_leads_where_it_led() {
    in_a_mount_namespace("cannot_begin::a_run_whose_memory_cannot_be_made_leaves_no_folder_and_latest_leads_where_it_led", || {
        let before = ended();
        // There is room for the bytes, which the plan looks at, and for no file.
        mount(&["-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs"], Path::new("/dev/shm"));
        let begin = || command(before.folder.path(), SMALL).output().unwrap();
        assert_leaves_nothing(&before, "cannot create the shared-memory object", begin);
    });
}
