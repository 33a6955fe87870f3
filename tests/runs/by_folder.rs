//! A run named by its folder, as `runs/latest`, instead of the process id of its supervisor.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use shoal::telemetry::RunFolder;

use crate::support::programs::{kill, program, segments_of, start, stop};

/// What comes of a program that is started in `folder`, which has the runs.
fn output_of(name: &str, folder: &Path, arguments: &[&str]) -> Output {
    program(name, folder).args(arguments).current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_run_is_inspected_and_joined_by_its_folder_and_its_folder_tells_of_it_later() {
    let mut run = start(&["evaluator.interval_ms=50"]);
    run.wait_for("a confirmation", |line| line["best_eval_return"].is_number());
    let folder = run.folder.path().to_owned();
    let inspect = |arguments: &[&str]| output_of("inspect", &folder, arguments);
    let live = text(&inspect(&["runs/latest", "--interval-ms", "1"]));
    assert!(live.contains(&format!("pid {}", run.pid())) && live.contains("replay"), "{live}");
    let elsewhere = |name: &str| {
        let mut command = program(name, &folder.join("elsewhere"));
        text(&command.arg("runs/latest").current_dir(&folder).output().unwrap())
    };
    let (seen, refused) = (elsewhere("inspect"), elsewhere("attach"));
    assert!(seen.contains("its supervisor noted no end, and lives") && !seen.contains("killed"), "{seen}");
    assert!(refused.contains("is not announced here") && !refused.contains("killed"), "{refused}");

    let attached = run.program("attach").arg("runs/latest").current_dir(&folder).stderr(Stdio::piped()).spawn().unwrap();
    run.wait_for("the attached actor", |line| line["attached"].as_u64() == Some(1));
    run.signal(Signal::SIGTERM);
    run.wait();
    let attached = attached.wait_with_output().unwrap();
    assert!(attached.status.success(), "{}", text(&attached));

    let over = inspect(&["runs/latest"]);
    let report = text(&over);
    assert!(over.status.success() && report.contains("terminated") && report.contains("env steps"), "{report}");
    assert!(
        report.contains("best        mean return ")
            && report.contains("fresh episodes, confirmed")
            && report.contains("last        mean return "),
        "{report}"
    );
    let refused = inspect(&["runs/latest", "--live"]);
    assert!(!refused.status.success() && text(&refused).contains("the run in runs/latest has ended (terminated)"), "{}", text(&refused));
    let refused = output_of("attach", &folder, &["runs/latest"]);
    assert!(!refused.status.success() && text(&refused).contains("the run in runs/latest has ended (terminated)"), "{}", text(&refused));
}

#[test]
fn a_run_that_was_moved_is_found_where_it_is_and_a_copy_of_it_is_no_run_under_way() {
    let mut run = start(&["checkpoint.interval_s=0.1"]);
    run.wait_for_log("checkpoint 000001");
    run.end_by(Signal::SIGTERM);
    let (folder, runs) = (run.folder.path().to_owned(), run.folder.path().join("runs"));
    let inspected = |name: &str| text(&output_of("inspect", &folder, &[name, "--interval-ms", "1"]));
    std::fs::rename(run.run_folder().canonicalize().unwrap(), runs.join("moved")).unwrap();
    std::fs::remove_file(runs.join("latest")).unwrap();
    std::os::unix::fs::symlink("moved", runs.join("latest")).unwrap();
    run.resume(&[]);
    run.wait_for_log("checkpoint 000003");
    let live = format!("pid {}", run.pid());
    assert!(inspected("runs/moved").contains(&live), "{}", inspected("runs/moved"));

    std::fs::create_dir(runs.join("copy")).unwrap();
    for file in ["run.json", "config.toml"] {
        std::fs::copy(runs.join("moved").join(file), runs.join("copy").join(file)).unwrap();
    }
    assert!(inspected("runs/copy").contains("its supervisor noted no end"), "{}", inspected("runs/copy"));
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_whose_memory_is_gone_and_whose_record_is_not_is_told_of_by_its_folder() {
    let mut run = start(&["evaluator.enabled=false"]);
    run.wait_for("some steps", |line| line["env_steps"].as_u64() > Some(0));
    let (folder, supervisor) = (run.folder.path().to_owned(), run.pid());
    // As after a restart of the machine: no process has cleaned up.
    stop(supervisor);
    run.all_processes().into_iter().filter(|&pid| pid != supervisor).for_each(|pid| kill(pid, Signal::SIGKILL));
    run.kill();
    for segment in segments_of(supervisor) {
        std::fs::remove_file(format!("/dev/shm{segment}")).unwrap();
    }
    let inspected = output_of("inspect", &folder, &["runs/latest"]);
    let report = text(&inspected);
    assert!(inspected.status.success() && report.contains("its supervisor noted no end"), "{report}");
    let refused = text(&output_of("attach", &folder, &["runs/latest"]));
    assert!(refused.contains("is dead") && refused.contains("`shoal resume "), "{refused}");
    let cleaned = output_of("inspect", &folder, &["--clean"]);
    assert!(cleaned.status.success(), "{}", text(&cleaned));
}

#[test]
fn whoever_looks_at_runs_makes_no_registry() {
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(place.path(), "run", "[environment]\nid = \"CartPole-v1\"\n").unwrap();
    let runtime = place.path().join("runtime");
    for arguments in [&[][..], &["--clean"], &[folder.path().to_str().unwrap()]] {
        let looked = program("inspect", &runtime).args(arguments).output().unwrap();
        assert!(looked.status.success(), "{}", text(&looked));
    }
    let mut dashboard = program("dashboard", &runtime).arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut link = String::new();
    BufReader::new(dashboard.stdout.take().unwrap()).read_line(&mut link).unwrap();
    dashboard.kill().and_then(|()| dashboard.wait()).unwrap();
    assert!(link.starts_with("http://") && !runtime.exists(), "{link}");
}

#[test]
fn a_run_whose_supervisor_was_killed_is_told_from_one_that_ended() {
    let mut run = start(&["evaluator.enabled=false"]);
    run.wait_for("some steps", |line| line["env_steps"].as_u64() > Some(0));
    run.signal(Signal::SIGKILL);
    run.wait();
    run.assert_nothing_left();
    let folder = run.folder.path().to_owned();
    let report = text(&output_of("inspect", &folder, &["runs/latest"]));
    assert!(report.contains("its supervisor noted no end") && report.contains("env steps"), "{report}");
    let refused = text(&output_of("attach", &folder, &["runs/latest"]));
    assert!(refused.contains("was killed before it could note an end"), "{refused}");
    let nameless = folder.join(OsStr::from_bytes(b"run\xe9"));
    std::fs::rename(folder.join("runs/latest").canonicalize().unwrap(), &nameless).unwrap();
    let moved = text(&program("inspect", &folder).arg(&nameless).output().unwrap());
    assert!(moved.contains("its supervisor noted no end, and is gone") && moved.contains("env steps"), "{moved}");
    let refused = text(&output_of("inspect", &folder, &["elsewhere"]));
    assert!(refused.contains("cannot open the run folder elsewhere"), "{refused}");
}
