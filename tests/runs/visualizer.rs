//! The visualizer shows what an agent does and records it, and training never depends on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use shoal::checkpoint::RunCheckpoint;
use shoal::segment::pictures::{Caption, DRAWN_AS_BARS};

use crate::support::programs::{Supervised, Watchdog, bits, kill, start, wait_for};

const SHOWING: [&str; 2] = ["visualizer.enabled=true", "visualizer.pictures_per_s=100"];

/// A run that learns nothing, so that its episodes and videos are short: at the lowest priority long ones take their time on a busy
/// machine.
fn showing(overrides: &[&str]) -> Supervised {
    start(&[&SHOWING[..], &["learner.learning_rate=1e-9"], overrides].concat())
}

/// The first picture that satisfies `condition`.
fn picture(run: &Supervised, condition: impl Fn(&Caption, &[u8]) -> bool) -> (Caption, Vec<u8>) {
    run.wait_for_process("visualizer");
    let segment = run.segment();
    let board = segment.picture_board().expect("the run has a board of pictures");
    wait_for("a picture", || run.log(), || board.read().filter(|(caption, bytes)| condition(caption, bytes)))
}

/// The videos below `folder`, the oldest first.
fn videos(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("videos")).into_iter().flatten().flatten();
    let is_video = |path: &PathBuf| path.extension().is_some_and(|end| end == "gif" || end == "mp4");
    let mut videos: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_video).collect();
    videos.sort();
    videos
}

/// How many of `videos` there are still.
fn still_there(videos: &[PathBuf]) -> usize {
    videos.iter().filter(|video| video.exists()).count()
}

fn steps(run: &Supervised) -> u64 {
    run.metrics().last().and_then(|line| line["env_steps"].as_u64()).unwrap_or(0)
}

#[test]
fn a_run_shows_its_agent_and_keeps_the_newest_videos_and_the_best() {
    let mut run = showing(&["visualizer.video_interval_s=0.001", "visualizer.keep_videos=2"]);
    let (first, bytes) = picture(&run, |_, _| true);
    assert_eq!(bytes.len(), first.width * first.height * 3);
    let (later, moved) = picture(&run, |caption, moved| caption.version > first.version + 20 && *moved != bytes);
    assert_eq!((later.width, later.height, moved.len()), (first.width, first.height, bytes.len()), "all pictures have one size");
    assert_eq!(later.notes[3] & DRAWN_AS_BARS, 0, "CartPole draws itself");
    let pid = run.wait_for_process("visualizer");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let priority = stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap();
    assert_eq!(priority, "19", "it has the lowest priority: {stat}");

    let folder = run.run_folder();
    run.wait_until("three videos", || videos(&folder).len() >= 3);
    let first = videos(&folder);
    // One of them may be the best of all.
    run.wait_until("all old videos but one to go", || still_there(&first) <= 1);
    run.end_by(Signal::SIGINT);
    let left = videos(&folder);
    assert!((2..=4).contains(&left.len()), "the newest two, the best, and one that its end kept from going: {left:?}");
    for video in &left {
        let bytes = fs::read(video).unwrap();
        assert!(bytes.starts_with(b"GIF89a") && bytes.ends_with(&[0x3b]), "{} is a whole video", video.display());
    }
    let all = fs::read_dir(folder.join("videos")).unwrap().count();
    assert_eq!(all, left.len(), "nothing half made is left");
    let last = run.metrics().pop().expect("a run has metrics");
    let took_time = |key: &str| last[key].as_f64().is_some_and(|seconds| seconds > 0.0);
    assert!(["visualizer_processor_s", "supervisor_processor_s"].into_iter().all(took_time), "{last}");
}

#[test]
fn videos_are_mp4s_if_wanted_and_a_program_without_them_says_so_at_the_start() {
    let mut run = showing(&["visualizer.video_interval_s=0.001", "visualizer.video_format=mp4"]);
    if !cfg!(feature = "mp4") {
        assert!(!run.wait().success());
        let output = run.output();
        assert!(
            output.contains("visualizer.video_format") && output.contains("take gif instead") && output.contains("--features mp4"),
            "{output}"
        );
        return;
    }
    let folder = run.run_folder();
    run.wait_until("a video", || !videos(&folder).is_empty());
    run.end_by(Signal::SIGINT);
    for video in videos(&folder) {
        let bytes = fs::read(&video).unwrap();
        // The table of its samples comes last.
        let is_whole = bytes[4..8] == *b"ftyp" && bytes.windows(4).any(|word| word == b"moov");
        assert!(is_whole && video.extension().is_some_and(|end| end == "mp4"), "{} is no MP4", video.display());
    }
}

#[test]
fn a_killed_visualizer_returns_and_nobody_waits_for_it() {
    let mut run = showing(&["visualizer.video_interval_s=\"none\""]);
    let (before, _) = picture(&run, |_, _| true);
    let pid = run.wait_for_process("visualizer");
    kill(pid, Signal::SIGKILL);
    run.wait_for_log("visualizer 0 (pid");
    let (after, _) = picture(&run, |caption, _| caption.version > before.version + 5);
    assert!(after.version > before.version);
    assert_ne!(run.wait_for_process("visualizer"), pid);
    // A visualizer that stands still holds up nothing.
    let now = run.wait_for_process("visualizer");
    kill(now, Signal::SIGSTOP);
    let steps_before = steps(&run);
    run.wait_for("training to go on", |line| line["env_steps"].as_u64() > Some(steps_before + 5_000));
    kill(now, Signal::SIGCONT);
    run.end_by(Signal::SIGINT);
    assert!(!run.run_folder().join("videos").exists(), "no videos were wanted");
}

#[test]
fn videos_that_cannot_be_written_cost_no_picture() {
    let mut run = showing(&["visualizer.video_interval_s=0.001"]);
    let videos = run.run_folder().join("videos");
    run.wait_until("a video", || videos.exists());
    // Where its videos should go there is a file then.
    let stand_in_the_way = |run: &Supervised| {
        let watchdog = Watchdog::new("the folder not to come back at once");
        while fs::remove_dir_all(&videos).is_err() || fs::write(&videos, "").is_err() {
            watchdog.pause(Duration::ZERO, || run.log());
        }
    };
    stand_in_the_way(&run);
    let words = |run: &Supervised| {
        let segment = run.segment();
        let slots = segment.processes().iter().map(|slot| slot.last_words()).collect::<Vec<_>>();
        slots.join("\n")
    };
    run.look_for("a word about it", |run| words(run).contains("a video is missing").then_some(()));
    let (before, _) = picture(&run, |_, _| true);
    picture(&run, |caption, _| caption.version > before.version + 20);
    run.wait_for_log("visualizer 0: a video is missing");
    assert!(!run.log().contains("visualizer 0 (pid"), "it has not failed: {}", run.log());
    fs::remove_file(&videos).unwrap();
    run.look_for("no more word about it", |run| (!words(run).contains("a video is missing")).then_some(()));

    // The supervisor looks after each of these lines.
    let lines = run.metrics().len();
    run.look_for("the supervisor to see that", |run| (run.metrics().len() > lines + 1).then_some(()));
    let said = run.log().len();
    stand_in_the_way(&run);
    run.wait_for_log_after(said, "visualizer 0: a video is missing");
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_video_that_is_half_made_when_the_run_ends_or_its_supervisor_is_killed_goes_with_its_visualizer() {
    for is_killed in [false, true] {
        let mut run = showing(&["visualizer.video_interval_s=0.001"]);
        let videos = run.run_folder().join("videos");
        let half_made = || {
            let entries = fs::read_dir(&videos).into_iter().flatten().flatten().map(|entry| entry.path());
            entries.filter(|path| path.extension().is_none_or(|end| end != "gif")).count()
        };
        let pid = run.wait_for_process("visualizer");
        let watchdog = Watchdog::new("a video that is half made");
        loop {
            kill(pid, Signal::SIGSTOP);
            // The signal takes a moment.
            std::thread::sleep(Duration::from_millis(20));
            if half_made() > 0 {
                break;
            }
            kill(pid, Signal::SIGCONT);
            watchdog.pause(Duration::from_millis(7), || run.log());
        }
        if is_killed {
            run.kill()
        } else {
            run.end_by(Signal::SIGINT)
        }
        assert_eq!(half_made(), 0);
    }
}

#[test]
fn videos_are_kept_in_the_order_in_which_they_came_though_the_clock_was_set_back() {
    let mut run = showing(&["visualizer.video_interval_s=0.001", "visualizer.keep_videos=2"]);
    let folder = run.run_folder();
    run.wait_until("three videos", || videos(&folder).len() >= 3);
    let before = videos(&folder);
    for video in before.iter().filter_map(|path| fs::File::options().append(true).open(path).ok()) {
        video.set_modified(SystemTime::now() + Duration::from_secs(86_400)).unwrap();
    }
    let newer = || videos(&folder).iter().filter(|video| !before.contains(video)).count();
    // One of the old ones may be the best of all.
    run.wait_until("newer videos in their places", || newer() >= 2 && still_there(&before) <= 1);
    run.end_by(Signal::SIGINT);
}

#[test]
fn videos_of_a_run_whose_folder_was_moved_go_there_and_take_the_places_of_the_old_ones() {
    let mut run = showing(&["visualizer.video_interval_s=0.001", "visualizer.keep_videos=2"]);
    let latest = run.run_folder();
    run.wait_until("three videos", || videos(&latest).len() >= 3);
    let old = latest.canonicalize().unwrap();
    let moved = run.move_folder("archive");
    let before = videos(&moved);
    let newer = || videos(&moved).iter().filter(|video| !before.contains(video)).count();
    // One of the old ones may be the best of all.
    run.wait_until("newer videos in their places", || newer() >= 2 && still_there(&before) <= 1);
    run.end_by(Signal::SIGINT);
    assert!(!old.exists(), "made anew");
}

#[test]
fn a_visualizer_that_keeps_failing_is_given_up_and_training_goes_on() {
    let mut run = showing(&[]);
    for crash in 1..=3 {
        let (before, _) = picture(&run, |_, _| true);
        picture(&run, |caption, _| caption.version > before.version);
        kill(run.wait_for_process("visualizer"), Signal::SIGABRT);
        run.look_for("its death to be noticed", |run| (run.log().matches("was killed by SIGABRT").count() >= crash).then_some(()));
    }
    run.wait_for_log("nothing is shown any more, and training goes on");
    let steps_before = steps(&run);
    run.wait_for("training to go on", |line| line["env_steps"].as_u64() > Some(steps_before + 5_000));
    assert!(run.processes("visualizer").is_empty());
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_visualizer_changes_no_bit_of_a_reproducible_run() {
    let every_second = ["checkpoint.synchronous_interval_steps=1000", "checkpoint.keep_last=100"];
    let reproducible = [&every_second[..], &["actor.count=0", "run.seed=7", "evaluator.enabled=false"]].concat();
    let learned = |run: &Supervised, checkpoint: &RunCheckpoint| {
        bits(&checkpoint.policy(run.last_weights()).unwrap().expect("something was learned").parameters)
    };
    // It goes on until something is shown.
    let mut shown = start(&[&SHOWING[..], &reproducible[..], &["environment.step_delay_us=1000"]].concat());
    let (first, _) = picture(&shown, |_, _| true);
    picture(&shown, |caption, _| caption.version > first.version);
    let before = steps(&shown);
    let checkpoint = shown.look_for("another checkpoint", |run| {
        let newest = RunCheckpoint::open(&run.checkpoints().pop()?).unwrap();
        (newest.manifest().env_steps > before).then_some(newest)
    });
    shown.end_by(Signal::SIGINT);

    let limit = format!("run.stop_env_steps={}", checkpoint.manifest().env_steps);
    let mut hidden = start(&[&reproducible[..], &[&limit]].concat());
    hidden.succeed();
    let last = RunCheckpoint::open(hidden.checkpoints().last().unwrap()).unwrap();
    assert_eq!(last.manifest().env_steps, checkpoint.manifest().env_steps);
    assert_eq!(learned(&shown, &checkpoint), learned(&hidden, &last));
}

#[cfg(feature = "python")]
#[test]
fn an_environment_in_python_renders_or_shows_what_it_observes() {
    let run = showing(&["environment.id=gymnasium:CartPole-v1", "visualizer.video_interval_s=\"none\""]);
    let (caption, bytes) = picture(&run, |_, _| true);
    assert_eq!((caption.width, caption.height, caption.notes[3] & DRAWN_AS_BARS), (600, 400, 0), "as Gymnasium renders it");
    assert!(bytes.chunks_exact(3).any(|pixel| pixel != [255; 3]) && bytes.chunks_exact(3).any(|pixel| pixel == [255; 3]));
    video_of(run, |video| assert!(video.unwrap().starts_with(b"GIF89a")));

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("blind.py"), BLIND).unwrap();
    let path = format!("environment.python_path={}", folder.path().display());
    let mut run = showing(&["environment.id=python:blind:Blind", &path]);
    let (caption, _) = picture(&run, |caption, _| caption.notes[3] & !DRAWN_AS_BARS > 3);
    assert_eq!((caption.width, caption.height, caption.notes[3] & DRAWN_AS_BARS), (400, 240, DRAWN_AS_BARS), "bars of what is observed");
    let report: serde_json::Value = serde_json::from_str(&run.ask("inspect", &["--json", &run.pid().to_string()])).unwrap();
    assert_eq!(report["picture"]["drawn_as_bars"], true);
    assert!(report["processes"].to_string().contains("bars of what is observed are shown"), "{}", report["processes"]);
    run.wait_for_log("visualizer 0: bars of what is observed are shown instead of a picture");
    video_of(run, |video| assert!(video.unwrap_err().contains("python:blind:Blind"), "nothing is played for a video that cannot be made"));
}

/// What comes of a video of an episode with the weights that the run leaves.
#[cfg(feature = "python")]
fn video_of(mut run: Supervised, check: impl FnOnce(Result<Vec<u8>, String>)) {
    run.end_by(Signal::SIGINT);
    let path = run.folder.path().join("video.gif");
    let mut evaluate = run.program("evaluate");
    evaluate.args(["--episodes", "1", "--weights", "last", "--video", path.to_str().unwrap()]).arg(run.run_folder());
    let output = evaluate.output().unwrap();
    check(if output.status.success() { Ok(fs::read(path).unwrap()) } else { Err(crate::support::programs::said(&output)) });
}

#[cfg(feature = "python")]
const BLIND: &str = "
import gymnasium
import numpy

class Blind(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return numpy.zeros(3, numpy.float32), {}

    def step(self, action):
        self.at += 1
        return numpy.full(3, self.at / 50, numpy.float32), 1.0, self.at == 50, False, {}
";
