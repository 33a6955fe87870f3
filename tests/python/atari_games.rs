//! Games of the Atari 2600 keep the rules of all environments, there are as many as the package ships, and what is asked for wrongly is
//! told before anything starts.

use std::path::Path;
use std::process::Command;

use shoal::environments::{Action, ActionSpace, EnvironmentRequest, ObservationSpace, Outcome, Purpose, conformance};

use crate::support::programs::{self, SMALL};
use crate::support::python::{in_prepared_process, request};

/// Games that ale-py 0.12.1 ships and one can play alone.
const GAMES: usize = 104;

#[test]
fn games_keep_the_rules_of_environments() {
    in_prepared_process("atari_games::games_keep_the_rules_of_environments", || {
        // Short games, so that the rules about their end are put to the test, too.
        for (purpose, id, arguments) in [
            (Purpose::Evaluation, "atari:Pong", r#"{"screen_size": 42, "max_num_frames_per_episode": 1000}"#),
            (Purpose::Training, "atari:Breakout", r#"{"repeat_action_probability": 0, "terminal_on_life_loss": true}"#),
        ] {
            let request = EnvironmentRequest { purpose, ..request(id, arguments) };
            conformance::check(|| request.make()).unwrap_or_else(|error| panic!("{id} for {purpose:?}: {error}"));
        }
    });
}

#[test]
fn a_game_is_what_its_examination_says() {
    in_prepared_process("atari_games::a_game_is_what_its_examination_says", || {
        let request = request("atari:Pong", r#"{"screen_size": 42}"#);
        let examined = request.examine().unwrap();
        assert_eq!(*request.make().unwrap().spec(), examined.spec);
        assert_eq!(examined.spec.observation, ObservationSpace::bytes(&[42, 42]));
        assert_eq!((examined.spec.action, examined.spec.frame_stack), (ActionSpace::Discrete { n: 6 }, 4));
        assert_eq!(examined.spec.time_limit_steps, Some(27_000));
        assert!(examined.software.contains(&("ale-py".into(), "0.12.1".into())), "{:?}", examined.software);
    });
}

#[test]
fn every_game_that_is_shipped_can_be_made_under_the_name_that_gymnasium_gives_it() {
    in_prepared_process("atari_games::every_game_that_is_shipped_can_be_made_under_the_name_that_gymnasium_gives_it", || {
        let all = refusal("atari:Xyzzy", "{}");
        let (_, names) = all.split_once("it has ").unwrap();
        let (mut played, mut for_two) = (0, Vec::new());
        for name in names.trim_end_matches(')').split(", ") {
            match request(&format!("atari:{name}"), r#"{"screen_size": 42}"#).make() {
                Ok(mut environment) => {
                    // A second or so for ten of them: a game is plugged in anew for a seed.
                    if played % 10 == 0 {
                        let mut observation = environment.spec().observation.zeros();
                        environment.reset(Some(0), observation.values_mut()).unwrap();
                        environment.step(Action::Discrete(0), observation.values_mut()).unwrap();
                    }
                    played += 1;
                }
                Err(error) => for_two.push((name, error.to_string())),
            }
        }
        assert_eq!(played, GAMES);
        assert!(for_two.iter().all(|(name, error)| error.contains(&format!("cannot play {name} alone"))), "{for_two:?}");
        assert!(request("atari:space_invaders", "{}").make().is_ok(), "the name of the file is as good");
    });
}

#[test]
fn lives_end_episodes_in_training_alone_and_games_are_told_with_their_points() {
    in_prepared_process("atari_games::lives_end_episodes_in_training_alone_and_games_are_told_with_their_points", || {
        let request = request("atari:Breakout", r#"{"repeat_action_probability": 0, "terminal_on_life_loss": true}"#);
        let play = |purpose| {
            let mut environment = EnvironmentRequest { purpose, ..request.clone() }.make().unwrap();
            let mut observation = environment.spec().observation.zeros();
            environment.reset(Some(3), observation.values_mut()).unwrap();
            let (mut episodes, mut reward) = (0, 0.0);
            for step in 0_usize.. {
                let action = ((step / 3) as u32).wrapping_mul(2_654_435_761) >> 30;
                let played = environment.step(Action::Discrete(action as usize), observation.values_mut()).unwrap();
                reward += played.reward;
                if played.ended() {
                    episodes += 1;
                    if let Outcome::Finished { score, length_steps } = environment.outcome() {
                        return (episodes, reward, score, length_steps as usize == step + 1);
                    }
                    environment.reset(None, observation.values_mut()).unwrap();
                }
            }
            unreachable!("a game of Breakout ends")
        };
        let (episodes, _, score, counts_all_steps) = play(Purpose::Training);
        assert_eq!((episodes, counts_all_steps), (5, true), "a game has five lives");
        assert!(score > 0.0, "some bricks are hit by chance");
        let (episodes, reward, score, counts_all_steps) = play(Purpose::Evaluation);
        assert_eq!((episodes, counts_all_steps), (1, true));
        assert_eq!(reward, score, "an evaluation counts points");
    });
}

fn refusal(id: &str, arguments: &str) -> String {
    let in_process = request(id, arguments).make().err().unwrap_or_else(|| panic!("{id} was made")).to_string();
    let probed = request(id, arguments).examine().unwrap_err().to_string();
    assert_eq!(in_process, probed, "an actor and the supervisor must say the same");
    probed
}

#[test]
fn a_game_that_is_not_there_is_answered_with_those_like_it() {
    in_prepared_process("atari_games::a_game_that_is_not_there_is_answered_with_those_like_it", || {
        for (asked, meant) in [("Pung", "Pong"), ("pong-v5", "Pong"), ("Spaceinvader", "SpaceInvaders"), ("ms_packman", "MsPacman")] {
            let message = refusal(&format!("atari:{asked}"), "{}");
            assert!(message.contains(&format!("ships no game {asked} (names like it: ")) && message.contains(meant), "{message}");
        }
        assert!(refusal("atari:", "{}").contains("such as atari:Pong"));
        assert!(refusal("atari:Pong", r#"{"screensize": 42}"#).contains("did you mean `screen_size`?"));
    });
}

/// The error of a supervisor that is to train with `overrides` and must refuse.
fn refused_run(overrides: &[&str], prepare: impl FnOnce(&mut Command)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = programs::command(folder.path(), &[SMALL, &["environment.id=atari:Pong"], overrides].concat());
    prepare(&mut command);
    let output = command.output().unwrap();
    let said = programs::said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!folder.path().join("runs").exists(), "nothing may be written for a run that cannot start");
    said
}

#[test]
fn what_is_wrong_with_a_game_is_told_before_a_run_starts() {
    for (arguments, told) in [
        (r#"{"screen_size": 10}"#, "cannot take screen_size = 10: give a whole number from 21 to 160"),
        (r#"{"repeat_action_probability": 0.5}"#, "repeat_action_probability = 0.5"),
        (r#"{"sticky": 0.25}"#, "takes no argument `sticky`"),
    ] {
        let said = refused_run(&[&format!("environment.keyword_arguments={arguments}")], |_| {});
        assert!(said.starts_with("error: --set environment.keyword_arguments=") && said.contains(told), "{said}");
    }
    let said = refused_run(&["environment.id=atari:Pung"], |_| {});
    assert!(said.starts_with("error: --set environment.id=atari:Pung") && said.contains("Pong"), "{said}");
}

#[test]
fn a_game_whose_file_is_missing_or_another_is_told_before_a_run_starts() {
    let games = tempfile::tempdir().unwrap();
    let is_told = |folder: &Path, reason: &str| {
        let said = refused_run(&[], |command| {
            command.env("ALE_ROMS_DIR", folder);
        });
        let remedy = format!("unset ALE_ROMS_DIR, which is {}, or put the file of ale-py 0.12.1 there", folder.display());
        assert!(said.contains("its file pong.bin is of no use (") && said.contains(reason) && said.contains(&remedy), "{said}");
    };
    is_told(&games.path().join("gone"), "doesn't exist");
    is_told(games.path(), "No such file or directory");
    std::fs::write(games.path().join("pong.bin"), "no game").unwrap();
    is_told(games.path(), "The hash of pong.bin does not match");
}

#[test]
fn a_python_without_ale_is_told_which_command_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("bare");
    let python = shoal::machine::Python::find("").unwrap();
    assert!(python.command().args(["-m", "venv", "--without-pip"]).arg(&bare).status().unwrap().success());
    let interpreter = bare.join("bin/python").display().to_string();
    let said = refused_run(&[&format!("environment.python={interpreter}")], |_| {});
    assert!(said.contains(&format!("install it:  uv pip install --python {interpreter} \"ale-py==0.12.1\"")), "{said}");
}
