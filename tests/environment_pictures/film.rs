//! A film of an episode.

use std::fs;
use std::path::Path;

use gif::{ColorOutput, DecodeOptions};
use shoal::environments::film::Film;
use shoal::environments::reel::FilmError;
use shoal::environments::{Action, make};

use crate::support::{Played, Undrawn};

/// For each picture of a film: hundredths of a second for which it is seen, and the size of the film.
fn pictures(path: &Path) -> (Vec<u16>, [u16; 2]) {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let mut decoder = options.read_info(fs::File::open(path).expect("the film is there")).expect("it is a GIF");
    let size = [decoder.width(), decoder.height()];
    let mut delays = Vec::new();
    while let Some(frame) = decoder.read_next_frame().expect("a whole picture") {
        assert!(frame.left + frame.width <= size[0] && frame.top + frame.height <= size[1], "it is inside");
        delays.push(frame.delay);
    }
    (delays, size)
}

#[test]
fn a_film_shows_one_episode_from_its_reset_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catch.gif");
    let film = Film::prepare(&path, 5).unwrap();
    let mut played = Played::new(film.of(make("Catch-v0").unwrap()).unwrap(), 1);
    while !played.step(Action::Discrete(0)).ended() {}
    assert!(!path.exists(), "it has no name yet");
    // What comes later is not in it.
    played.reset(None);
    played.step(Action::Discrete(0));
    let finished = film.finish().unwrap();
    assert_eq!((finished.path.as_path(), finished.pictures), (path.as_path(), 10));
    let (delays, size) = pictures(&path);
    assert_eq!(size, [200, 400]);
    assert_eq!(delays, [&[20; 9][..], &[100]].concat());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_film_changes_nothing_for_who_steps_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let film = Film::prepare(&folder.path().join("film.gif"), 50).unwrap();
    let mut filmed = Played::new(film.of(make("CartPole-v1").unwrap()).unwrap(), 9);
    let mut plain = Played::new(make("CartPole-v1").unwrap(), 9);
    assert_eq!(filmed.environment.spec(), plain.environment.spec());
    for _ in 0..100 {
        let step = filmed.step_at_random();
        assert_eq!(plain.step_at_random(), step);
        if step.ended() {
            filmed.reset(None);
            plain.reset(None);
        }
        assert_eq!(filmed.observed(), plain.observed());
        assert_eq!(filmed.picture(), plain.picture());
    }
    film.finish().unwrap();
}

#[test]
fn a_film_of_a_long_game_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pendulum.gif");
    let film = Film::prepare(&path, 30).unwrap();
    let mut played = Played::new(film.of(make("Pendulum-v1").unwrap()).unwrap(), 1);
    while !played.step_at_random().ended() {}
    assert_eq!(film.finish().unwrap().pictures, 201);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 1_000_000, "{bytes} bytes");
}

#[test]
fn what_cannot_be_filmed_is_said_and_an_older_film_stays() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder/film.gif");
    let refusal = Film::prepare(&missing, 30).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("no/such/folder/film.gif") && refusal.contains("name another file"), "{refusal}");

    let path = folder.path().join("film.gif");
    fs::write(&path, "older").unwrap();
    let film = Film::prepare(&path, 30).unwrap();
    let undrawn = Box::new(Undrawn(make("CartPole-v1").unwrap()));
    assert!(film.of(undrawn).is_err());
    // An episode that did not end makes no film.
    let mut played = Played::new(film.of(make("CartPole-v1").unwrap()).unwrap(), 1);
    played.step_at_random();
    assert!(matches!(film.finish(), Err(FilmError::Unfinished { pictures: 2, .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}
