//! `supervisor --check`: what a run would stumble over is said before it starts, at the key that it follows from.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;

use crate::support::namespaces::{self, in_a_mount_namespace, mount, unshare};
use crate::support::programs::{said, start};
use crate::support::skipped;

/// The supervisor on the preset of CartPole with `overrides`, in a folder of its own.
fn supervisor(folder: &Path, arguments: &[&str]) -> Output {
    supervisor_on("cartpole_dqn", folder, arguments)
}

fn supervisor_on(preset: &str, folder: &Path, arguments: &[&str]) -> Output {
    supervisor_with(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("configs/{preset}.toml")), folder, arguments)
}

fn supervisor_with(file: &Path, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command.arg(file).args(arguments).current_dir(folder).env("XDG_RUNTIME_DIR", folder).output().unwrap()
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    refusal_on("cartpole_dqn", folder, arguments)
}

fn refusal_on(preset: &str, folder: &Path, arguments: &[&str]) -> String {
    let output = supervisor_on(preset, folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!folder.join("runs").exists(), "nothing may be written for a run that cannot start");
    said
}

#[test]
fn a_sound_run_passes_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let output = supervisor(folder.path(), &["--check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("segment"), "{said}");
    assert!(said.ends_with("\nchecked     the run can start like this; nothing was started\n"), "{said}");
    // The folder of the registry is allowed: a plan looks into it, and so makes it.
    let written = std::fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != "shoal");
    assert_eq!(written.count(), 0);
}

#[test]
fn the_plan_says_if_a_time_limit_cuts_fragments_short() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |changes: &[&str]| {
        let output = supervisor_on("pendulum_ppo", folder.path(), &[&["--check"][..], changes].concat());
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let cut = plan(&["--set", "fragments.length_steps=1000", "--set", "learner.batch_size=16000"]);
    assert!(cut.contains("does not divide the time limit of 200 steps") && cut.contains("3,200 of the 16,000 steps"), "{cut}");
    assert!(!plan(&[]).contains("time limit"), "the preset's fragments fit");
}

#[test]
fn the_plan_names_a_typed_key_of_continuous_policies_where_actions_are_discrete() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |preset: &str, change: &str| said(&supervisor_on(preset, folder.path(), &["--check", "--set", change]));
    let typed = "algorithm.initial_action_std=0.5";
    let discrete = plan("cartpole_ppo", typed);
    assert!(discrete.contains("note        algorithm.initial_action_std has no effect on what is learned: "), "{discrete}");
    for other in [plan("pendulum_ppo", typed), plan("halfcheetah_ppo", "environment.id=CartPole-v1")] {
        assert!(other.contains("\nchecked ") && !other.contains("no effect"), "{other}");
    }
}

#[test]
fn the_plan_says_how_many_updates_there_are_for_each_environment_step() {
    let folder = tempfile::tempdir().unwrap();
    let updates = |output: &Output| {
        assert!(output.status.success(), "{}", said(output));
        said(output).lines().find_map(|line| Some(line.strip_prefix("updates     ")?.to_owned()))
    };
    let of_sac = |changes: &[&str]| updates(&supervisor_on("pendulum_sac", folder.path(), &[&["--check"][..], changes].concat()));
    let usual = "1 for each environment step (replay.samples_per_insert 128 / learner.batch_size 128)";
    assert_eq!(of_sac(&[]).as_deref(), Some(usual));
    let fewer = "1 for every 4 environment steps (replay.samples_per_insert 128 / learner.batch_size 512)";
    assert_eq!(of_sac(&["--set", "learner.batch_size=512"]).as_deref(), Some(fewer));
    // The file of the page on configurations, with the name of another algorithm.
    let file = folder.path().join("task.toml");
    let text = "environment.id = \"Pendulum-v1\"\nalgorithm.name = \"sac\"\nreplay.samples_per_insert = 16.0\n";
    std::fs::write(&file, text).unwrap();
    let few = "1 for every 16 environment steps (replay.samples_per_insert 16 / learner.batch_size 256)";
    assert_eq!(updates(&supervisor_with(&file, folder.path(), &["--check"])).as_deref(), Some(few));
    assert_eq!(updates(&supervisor_on("cartpole_ppo", folder.path(), &["--check"])), None);
}

#[test]
fn the_plan_advises_of_a_length_alone_where_the_batch_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("task.toml");
    std::fs::write(&file, "environment.id = \"Pendulum-v1\"\nalgorithm.name = \"ppo\"\nfragments.length_steps = 128\n").unwrap();
    let cut = said(&supervisor_with(&file, folder.path(), &["--check"]));
    assert!(cut.contains("use fragments.length_steps=100") && !cut.contains("learner.batch_size="), "{cut}");
    let followed = supervisor_with(&file, folder.path(), &["--check", "--set", "fragments.length_steps=100"]);
    assert!(followed.status.success() && !said(&followed).contains("time limit"), "{}", said(&followed));
}

#[test]
fn the_plan_names_a_key_of_priorities_that_rests_by_the_defaults_of_the_algorithm() {
    let folder = tempfile::tempdir().unwrap();
    let note = "note        replay.alpha has no effect: td3 draws transitions uniformly by default; leave it out, or set \
                replay.prioritized=true\n";
    let file = folder.path().join("task.toml");
    std::fs::write(&file, "environment.id = \"MountainCarContinuous-v0\"\nalgorithm.name = \"td3\"\nreplay.alpha = 0.7\n").unwrap();
    let of_file = |changes: &[&str]| said(&supervisor_with(&file, folder.path(), &[&["--check"][..], changes].concat()));
    assert!(of_file(&[]).contains(note), "{}", of_file(&[]));
    let decided = of_file(&["--set", "replay.prioritized=true"]);
    assert!(decided.contains("\nchecked ") && !decided.contains("no effect"), "{decided}");
    let mut seeds = Command::new(env!("CARGO_BIN_EXE_shoal"));
    seeds.args(["train", "task.toml", "--seeds", "1", "--set", "run.stop_env_steps=50"]);
    let told = said(&seeds.current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap());
    assert_eq!(told.matches(note).count(), 1, "{told}");
}

#[test]
fn a_program_that_is_started_with_sigchld_ignored_still_waits_for_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/cartpole_dqn.toml");
    let mut command = Command::new("env");
    command.arg("--ignore-signal=CHLD").arg(env!("CARGO_BIN_EXE_supervisor")).arg(preset).arg("--check");
    let output = command.current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_passes_where_proc_shows_processes_alone() {
    // As systemd gives it to a service with ProcSubset=pid.
    let namespace =
        ["--pid", "--fork", "--kill-child", "--mount", "sh", "-c", "mount -t proc -o subset=pid proc /proc && exec \"$@\"", "sh"];
    let Some(mut command) = unshare(&namespace, &["true"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/cartpole_dqn.toml");
    command.arg(env!("CARGO_BIN_EXE_supervisor")).arg(preset).arg("--check");
    let output = command.current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn where_the_kernel_does_not_tell_of_the_end_of_processes_doctor_check_and_run_say_so() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let without_pidfd = |program: &str, arguments: &[&OsStr]| {
        let mut command = Command::new("python3");
        command.arg(root.join("tests/data/without_pidfd.py")).arg(program).args(arguments);
        command.current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path()).output()
    };
    if !without_pidfd("true", &[]).is_ok_and(|output| output.status.success()) {
        return skipped::because("there is no python3 here that can refuse pidfd_open to a program");
    }
    let reason = "not tell of the end of processes (pidfd_open: Operation not permitted (os error 1))";
    let preset = root.join("configs/cartpole_dqn.toml");
    for arguments in [&[OsStr::new("doctor")][..], &[preset.as_os_str(), OsStr::new("--check")], &[preset.as_os_str()]] {
        let output = without_pidfd(env!("CARGO_BIN_EXE_supervisor"), arguments).unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.contains(reason), "{text}");
    }
    assert!(!folder.path().join("runs/latest").is_symlink(), "the run has begun");
}

#[test]
fn a_device_that_is_not_there_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["--check"][..], &[]] {
        let said = refusal(folder.path(), &[&["--set", "learner.device=cuda:250"], flags].concat());
        assert!(said.starts_with("error: --set learner.device=cuda:250: learner.device = \"cuda:250\": "), "{said}");
        assert!(said.lines().count() <= 3, "{said}");
    }
}

#[cfg(not(feature = "torch"))]
#[test]
fn an_engine_that_this_build_lacks_is_refused_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["--check"][..], &[], &["--set", "learner.device=cuda:0"]] {
        let said = refusal(folder.path(), &[&["--set", "network.engine=torch"], flags].concat());
        assert!(said.starts_with("error: --set network.engine=torch: network.engine = \"torch\": the libtorch engine"), "{said}");
    }
}

#[test]
fn each_device_of_a_list_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    for (preset, learners) in [("cartpole_dqn", "learner.count=2"), ("pendulum_sac", "learner.split=actor_critic")] {
        let said = refusal_on(preset, folder.path(), &["--check", "--set", learners, "--set", "learner.device=cpu,cuda:250"]);
        assert!(said.contains("learner.device") && said.contains("cuda:250"), "{learners}: {said}");
    }
}

#[test]
fn an_entropy_that_no_policy_has_is_refused_where_a_temperature_is_learned_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let said = refusal_on("pendulum_sac", folder.path(), &["--check", "--set", "algorithm.target_entropy=1"]);
    assert!(said.contains("no policy has an entropy of 1 nats here") && said.contains("0.69 in all"), "{said}");
    let reached = supervisor_on("pendulum_sac", folder.path(), &["--check", "--set", "algorithm.target_entropy=0.5"]);
    assert!(reached.status.success(), "{}", String::from_utf8_lossy(&reached.stderr));
}

#[test]
fn fragments_too_long_for_a_segment_are_refused_by_their_length_with_the_most_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let said = |length: &str, batch: &str| {
        let [length, batch] = [format!("fragments.length_steps={length}"), format!("learner.batch_size={batch}")];
        let few = ["--set", "actor.environments=1", "--set", "actor.attach_slots=0"];
        let output = supervisor_on("rally_appo", folder.path(), &[&["--check", "--set", &length, "--set", &batch], &few[..]].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, refusal) = said("2048", "4096");
    assert!(code == Some(1) && refusal.starts_with("error: --set fragments.length_steps=2048: "), "{refusal}");
    let most = refusal.rsplit("use at most ").next().and_then(|rest| rest.lines().next()).unwrap_or_default();
    // The machine may lack the memory for the fewest fragments that a run needs, if they are as long as a segment can hold.
    let (code, plan) = said(most, most);
    assert!(code == Some(0) || plan.contains("do not fit"), "{most} were said to fit: {plan}");
    let longer = (most.parse::<u32>().unwrap() + 1).to_string();
    let (code, refusal) = said(&longer, &longer);
    assert!(code == Some(1) && refusal.contains(&format!("use at most {most}\n")), "{refusal}");
}

#[test]
fn a_run_folder_that_is_a_file_is_refused_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("results"), "").unwrap();
    for (path, flags) in [("results", &["--check"][..]), ("results/deeper", &["--check"]), ("results", &[])] {
        let change = format!("run.folder={path}");
        let said = refusal(folder.path(), &[&["--set", &change], flags].concat());
        assert!(said.contains("run.folder") && said.contains("results is no folder"), "{said}");
    }
}

#[test]
fn a_run_that_goes_on_where_the_folder_around_it_cannot_be_written_is_refused_with_advice_that_helps() {
    let name = "check::a_run_that_goes_on_where_the_folder_around_it_cannot_be_written_is_refused_with_advice_that_helps";
    in_a_mount_namespace(name, || {
        let mut run = start(&["checkpoint.interval_s=600"]);
        run.wait_for_updates(20);
        run.end_by(Signal::SIGTERM);
        let runs = run.folder.path().join("runs");
        let folder = run.run_folder().canonicalize().unwrap();
        for path in [&runs, &folder] {
            mount(&["--bind", path.to_str().unwrap()], path);
        }
        mount(&["-o", "remount,bind,ro"], &runs);
        for flags in [&["--check"][..], &[]] {
            let output = run.command_to("resume", flags).output().unwrap();
            let said = said(&output);
            assert!(!output.status.success() && said.contains("no folder can be made in"), "{said}");
            assert!(said.contains("make it writable, or move the run") && !said.contains("choose"), "{said}");
        }
        assert!(Command::new("umount").arg("--recursive").arg(&runs).status().unwrap().success());
    });
}

#[test]
fn a_new_run_among_charts_that_cannot_be_written_is_refused_by_its_key() {
    in_a_mount_namespace("check::a_new_run_among_charts_that_cannot_be_written_is_refused_by_its_key", || {
        let folder = tempfile::tempdir().unwrap();
        let charts = folder.path().join("shared/tensorboard");
        std::fs::create_dir_all(&charts).unwrap();
        mount(&["--bind", charts.to_str().unwrap()], &charts);
        mount(&["-o", "remount,bind,ro"], &charts);
        for flags in [&["--check"][..], &[]] {
            let said = refusal(folder.path(), &[&["--set", "run.folder=shared"], flags].concat());
            assert!(said.contains("run.folder = \"shared\": no folder can be made in shared/tensorboard"), "{said}");
        }
        assert!(Command::new("umount").arg(&charts).status().unwrap().success());
    });
}

#[test]
fn a_link_to_nothing_in_place_of_the_folder_of_runs_or_of_their_charts_is_refused_by_the_key() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("results")).unwrap();
    for link in ["scratch", "results/tensorboard"] {
        std::os::unix::fs::symlink("/gone/runs", folder.path().join(link)).unwrap();
    }
    for (path, link) in [("scratch", "scratch"), ("scratch/mine", "scratch"), ("results", "results/tensorboard")] {
        for flags in [&["--check"][..], &[]] {
            let said = refusal(folder.path(), &[&["--set", &format!("run.folder={path}")], flags].concat());
            let told = format!("run.folder = \"{path}\": {link} is a link to /gone/runs, which is not there");
            assert!(said.contains(&told), "{said}");
        }
    }
}

#[test]
fn a_configuration_that_is_longer_than_most_runs_as_its_check_says() {
    let mut run = start(&[&format!("environment.keyword_arguments={{{}}}", " ".repeat(70_000))]);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_folder_that_nobody_chose_is_refused_as_the_default_with_the_change_to_make() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("runs"), "").unwrap();
    let output = supervisor(folder.path(), &["--check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.starts_with("error: run.folder = \"runs\" (the default): runs is no folder"), "{said}");
    assert!(said.contains("--set run.folder=PATH"), "{said}");
}

#[test]
fn a_run_folder_in_which_nothing_can_be_made_is_refused_by_its_key() {
    // Nobody makes folders in /proc, not even root.
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["--check"][..], &[]] {
        let said = refusal(folder.path(), &[&["--set", "run.folder=/proc/self/runs"], flags].concat());
        assert!(said.contains("run.folder = \"/proc/self/runs\": no folder can be made in /proc/self"), "{said}");
    }
}

#[test]
fn a_run_folder_whose_path_no_record_can_hold_is_refused_by_its_key() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(OsStr::from_bytes(b"run\xe9"));
    std::fs::create_dir(&folder).unwrap();
    for flags in [&["--check"][..], &[]] {
        let said = refusal(&folder, flags);
        assert!(said.contains("run.folder") && said.contains("is not UTF-8"), "{said}");
    }
}

/// A disk of 40 KiB, which this test mounts in a namespace of its own.
#[test]
fn a_disk_without_room_for_the_weights_is_refused_with_both_sizes() {
    namespaces::in_a_mount_namespace("check::a_disk_without_room_for_the_weights_is_refused_with_both_sizes", || {
        let folder = tempfile::tempdir().unwrap();
        let small = folder.path().join("small");
        std::fs::create_dir(&small).unwrap();
        namespaces::mount(&["-t", "tmpfs", "-o", "size=40k", "tmpfs"], &small);
        let output = supervisor(folder.path(), &["--check", "--set", &format!("run.folder={}", small.display())]);
        // The folder can only be removed when nothing is mounted in it.
        let _ = Command::new("umount").arg("--lazy").arg(&small).status();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("the disk has 40.00 KiB left and the run's weights take"), "{said}");
    });
}
