//! What a command with several seeds makes of what happens to it while they train.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::support::programs::{SMALL, checkpoints_in, install, kill, said, wait_until};

/// `program` with a command that trains these seeds one after the other in `folder`, and that ends by itself if nobody
/// ends it.
fn training(program: &Path, folder: &Path, seeds: &str, changes: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_RUNTIME_DIR", folder).current_dir(folder).args(["train", "CartPole-v1", "--seeds", seeds]);
    let all = [SMALL, &["run.stop_wall_s=60.0"], changes].concat();
    command.args(all.iter().flat_map(|change| ["--set", change])).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn seeds_that_a_signal_ended_say_so_by_the_exit_code_where_their_table_cannot_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    // Takes as little as a terminal that was closed.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let shoal = Path::new(env!("CARGO_BIN_EXE_shoal"));
    let command = training(shoal, folder.path(), "1", &[]).stdout(full).spawn().unwrap();
    let metrics = folder.path().join("runs/latest/metrics.jsonl");
    wait_until("a run", String::new, || fs::metadata(&metrics).is_ok_and(|file| file.len() > 0));
    kill(command.id(), Signal::SIGTERM);
    let output = command.wait_with_output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(128 + Signal::SIGTERM as i32), "{said}");
    assert!(said.contains("seed 1 was interrupted") && said.contains("the table could not be printed: "), "{said}");
}

#[test]
fn a_seed_that_may_be_trained_by_another_program_than_the_first_is_named_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    // Runs are registered in a folder `shoal` beside it.
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let [shoal, other] = ["shoal", "supervisor"].map(|name| programs.join(name));
    install(&shoal);
    install(&other);
    // So slow that the second has not begun when the program is replaced.
    let changes = ["run.stop_env_steps=2000", "environment.step_delay_us=400"];
    let command = training(&shoal, folder.path(), "1,2", &changes).spawn().unwrap();
    wait_until("the first seed", String::new, || folder.path().join("runs/latest").exists());
    fs::rename(&other, &shoal).unwrap();
    let said = said(&command.wait_with_output().unwrap());
    let warning = format!("warning: {} was replaced: seed 2 may be trained by another program", shoal.display());
    let (before, after) = said.split_once(&warning).unwrap_or_else(|| panic!("{said}"));
    assert!(before.contains("seed 1 has ended") && !before.contains("was replaced") && after.contains("seed 2 has failed"), "{said}");
}

#[test]
fn a_seed_whose_supervisor_was_killed_has_the_signal_told_and_how_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let shoal = Path::new(env!("CARGO_BIN_EXE_shoal"));
    let command = training(shoal, folder.path(), "1", &["checkpoint.interval_s=0.2"]).spawn().unwrap();
    let run = folder.path().join("runs/latest");
    wait_until("a checkpoint", String::new, || !checkpoints_in(&run).is_empty());
    let record: serde_json::Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let supervisor = u32::try_from(record["supervisor_pid"].as_u64().unwrap()).unwrap();
    kill(supervisor, Signal::SIGKILL);
    let output = command.wait_with_output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("seed 1 was killed by SIGKILL") && said.contains("seed 1 goes on with: "), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("killed by SIGKILL"), "{output:?}");
    let announced = folder.path().join(format!("shoal/{supervisor}.json"));
    wait_until("its sentinel to leave", String::new, || !announced.exists());
}
