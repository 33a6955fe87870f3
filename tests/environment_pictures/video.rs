//! A video of an episode.

use std::fs;
use std::path::Path;

use gif::{ColorOutput, DecodeOptions};
use shoal::environments::video::{RecordVideo, VideoError, VideoWriter};
use shoal::environments::{Action, Dynamics, EnvironmentSpec, Generator, Native, Picture, make};

use crate::support::{Played, Undrawn};

/// How long each picture of a video is shown, in hundredths of a second; and the size of the video.
fn pictures(path: &Path) -> (Vec<u16>, [u16; 2]) {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let mut decoder = options.read_info(fs::File::open(path).expect("the video is there")).expect("it is a GIF");
    let size = [decoder.width(), decoder.height()];
    let mut delays = Vec::new();
    while let Some(frame) = decoder.read_next_frame().expect("a whole picture") {
        assert!(frame.left + frame.width <= size[0] && frame.top + frame.height <= size[1], "it is inside");
        delays.push(frame.delay);
    }
    (delays, size)
}

#[test]
fn a_video_shows_one_episode_from_its_reset_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catch.gif");
    let video = RecordVideo::prepare(&path, 5).unwrap();
    let mut played = Played::new(video.of(make("Catch-v0").unwrap()).unwrap(), 1);
    while !played.step(Action::Discrete(0)).ended() {}
    assert!(!path.exists(), "it has no name yet");
    // What comes later is not in it.
    played.reset(None);
    played.step(Action::Discrete(0));
    let finished = video.finish().unwrap();
    assert_eq!((finished.path.as_path(), finished.pictures), (path.as_path(), 10));
    let (delays, size) = pictures(&path);
    assert_eq!(size, [200, 400]);
    assert_eq!(delays, [&[20; 9][..], &[100]].concat());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

/// A board that is there from the first reset on.
#[derive(Default)]
struct Board(Vec<u8>);

impl Dynamics for Board {
    type Action = usize;
    type Value = u8;

    fn spec() -> EnvironmentSpec {
        make("Catch-v0").unwrap().spec().clone()
    }

    fn reset(&mut self, _: &mut Generator, observation: &mut [u8]) {
        self.0 = vec![7; 4 * 2 * 3];
        observation.fill(7);
    }

    fn step(&mut self, _: usize, _: &mut Generator, observation: &mut [u8]) -> (f64, bool) {
        observation.fill(7);
        (0.0, true)
    }

    fn picture(&self) -> Option<Picture> {
        Some(Picture { width: 4, height: 2, bytes: self.0[..4 * 2 * 3].to_vec() })
    }
}

#[test]
fn what_is_drawn_of_a_state_is_drawn_from_the_first_reset_on() {
    let folder = tempfile::tempdir().unwrap();
    let video = RecordVideo::prepare(&folder.path().join("board.gif"), 5).unwrap();
    let mut played = Played::new(video.of(Box::new(Native::new(Board::default()))).unwrap(), 1);
    assert!(played.step(Action::Discrete(0)).ended());
    assert_eq!(video.finish().unwrap().pictures, 2);
}

#[test]
fn a_video_changes_nothing_for_who_steps_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let video = RecordVideo::prepare(&folder.path().join("video.gif"), 50).unwrap();
    let mut recorded = Played::new(video.of(make("CartPole-v1").unwrap()).unwrap(), 9);
    let mut plain = Played::new(make("CartPole-v1").unwrap(), 9);
    assert_eq!(recorded.environment.spec(), plain.environment.spec());
    for _ in 0..100 {
        let step = recorded.step_at_random();
        assert_eq!(plain.step_at_random(), step);
        if step.ended() {
            recorded.reset(None);
            plain.reset(None);
        }
        assert_eq!(recorded.observed(), plain.observed());
        assert_eq!(recorded.picture(), plain.picture());
    }
    video.finish().unwrap();
}

#[test]
fn a_video_of_a_long_game_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pendulum.gif");
    let video = RecordVideo::prepare(&path, 30).unwrap();
    let mut played = Played::new(video.of(make("Pendulum-v1").unwrap()).unwrap(), 1);
    while !played.step_at_random().ended() {}
    assert_eq!(video.finish().unwrap().pictures, 201);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 1_000_000, "{bytes} bytes");
}

#[test]
fn what_cannot_be_recorded_is_said_and_an_older_video_stays() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder/video.gif");
    let refusal = RecordVideo::prepare(&missing, 30).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("there is no folder") && refusal.contains("name another file"), "{refusal}");
    let taken = folder.path().join("folder.gif");
    fs::create_dir(&taken).unwrap();
    let refusal = RecordVideo::prepare(&taken, 30).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("folder.gif: is a directory; name another file"), "{refusal}");
    fs::remove_dir(&taken).unwrap();

    let path = folder.path().join("video.gif");
    fs::write(&path, "older").unwrap();
    let video = RecordVideo::prepare(&path, 30).unwrap();
    let undrawn = Box::new(Undrawn(make("CartPole-v1").unwrap()));
    assert!(video.of(undrawn).is_err());
    // An episode that did not end makes no video.
    let mut played = Played::new(video.of(make("CartPole-v1").unwrap()).unwrap(), 1);
    played.step_at_random();
    assert!(matches!(video.finish(), Err(VideoError::Unfinished { pictures: 2, .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn pictures_of_several_sizes_make_no_video_and_the_disk_is_not_blamed() {
    let folder = tempfile::tempdir().unwrap();
    let mut video = VideoWriter::prepare(&folder.path().join("video.gif"), 30).unwrap();
    for width in [4, 6] {
        video.add(Picture { width, height: 2, bytes: vec![0; width * 2 * 3] }, width == 6);
    }
    let refusal = video.finish().unwrap_err().to_string();
    assert!(refusal.ends_with("the size of its pictures from [4, 2] to [6, 2]; let all have one size"), "{refusal}");
}
