//! How this program was started, and so the commands that play what a run has learned, that go on with it and that
//! train more, as whoever started the run can type them in the same folder.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::machine::Host;
use crate::shell::word;

/// The program that trains and does not play.
const TRAIN: &str = "supervisor";
/// The program that has all commands.
const ALL: &str = "shoal";
/// The command that plays; also a program that does only that.
const PLAY: &str = "evaluate";
/// The command that goes on with a run; every program that trains has it.
const RESUME: &str = "resume";

/// How this program was started.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// What was typed for the program.
    typed: PathBuf,
    /// Path of the program's file.
    executable: PathBuf,
    /// What was typed for the interpreter that the program is part of, if it is part of one.
    hosted: Option<String>,
    /// Shoal's workspace, if its cargo started the program.
    workspace: Option<PathBuf>,
    /// The folder in which the program was started.
    working_directory: PathBuf,
}

impl Invocation {
    /// How this process was started.
    pub(crate) fn current() -> Self {
        let host = Host::of_this_process();
        Self {
            typed: env::args_os().next().unwrap_or_default().into(),
            executable: if host.is_some() { ALL.into() } else { present(env::current_exe().unwrap_or_default()) },
            hosted: host.map(|host| host.typed.clone()),
            workspace: env::var_os("CARGO_MANIFEST_DIR").and_then(|package| workspace(Path::new(&package))),
            working_directory: env::current_dir().unwrap_or_default(),
        }
    }

    /// The command that plays the run in `folder`; `None` if the program for that is not installed.
    pub(super) fn play(&self, folder: &Path) -> Option<String> {
        // All programs that train but `supervisor` can play, too: `shoal`, and programs of users.
        let trainer = self.trainer();
        if trainer == TRAIN { self.command(PLAY, "", folder) } else { self.command(trainer, &format!(" {PLAY}"), folder) }
    }

    /// The command that goes on with the run in `folder`, with the options for what has to be changed.
    pub(crate) fn resume(&self, folder: &Path, change: Option<String>) -> Option<String> {
        let command = self.command(self.trainer(), &format!(" {RESUME}"), folder)?;
        Some(command + &change.map_or_else(String::new, |change| format!(" {change}")))
    }

    /// The command that trains as the file `configuration` says, of a program that has all commands: `supervisor` has no
    /// `train`.
    pub(crate) fn train(&self, configuration: &Path) -> Option<String> {
        self.command(self.trainer(), " train", configuration)
    }

    fn trainer(&self) -> &str {
        self.executable.file_name().and_then(|name| name.to_str()).unwrap_or(TRAIN)
    }

    fn command(&self, program: &str, command: &str, folder: &Path) -> Option<String> {
        let program = match (&self.hosted, &self.workspace) {
            (Some(typed), _) => typed.clone(),
            (None, Some(workspace)) => self.through_cargo(workspace, program),
            (None, None) => self.neighbour(program)?,
        };
        Some(format!("{program}{command} {}", word(self.as_called_here(folder))))
    }

    /// `path`, relative to the working directory if it is that folder or lies below.
    fn as_called_here<'a>(&self, path: &'a Path) -> &'a Path {
        match path.strip_prefix(&self.working_directory) {
            Ok(below) if below.as_os_str().is_empty() => Path::new("."),
            Ok(below) => below,
            Err(_) => path,
        }
    }

    /// The program `name` in the folder of this one, spelled as this one was. `None` if it is not there.
    fn neighbour(&self, name: &str) -> Option<String> {
        let installed = self.executable.with_file_name(name);
        if !installed.is_file() {
            return None;
        }
        let beside = self.typed.with_file_name(name);
        // A bare name was found through PATH, where its neighbour is found as well.
        let found_again = beside.parent() == Some(Path::new("")) || self.working_directory.join(&beside).is_file();
        Some(word(if found_again { &beside } else { &installed }))
    }

    /// The call of cargo that runs the program `name`, built with the profile and the features of this one.
    fn through_cargo(&self, workspace: &Path, name: &str) -> String {
        let mut words = vec!["cargo run".to_owned()];
        if !self.working_directory.starts_with(workspace) {
            words.push(format!("--manifest-path {}", word(&workspace.join("Cargo.toml"))));
        }
        match self.executable.parent().and_then(Path::file_name).and_then(|folder| folder.to_str()) {
            Some("release") => words.push("--release".into()),
            Some("debug") | None => {}
            Some(profile) => words.push(format!("--profile {}", word(Path::new(profile)))),
        }
        words.extend(features(&[
            ("torch", cfg!(feature = "torch")),
            ("python", cfg!(feature = "python")),
            ("mujoco", cfg!(feature = "mujoco")),
        ]));
        if cfg!(feature = "mp4") {
            words.push("--features mp4".into());
        }
        words.push(format!("--bin {name} --"));
        words.join(" ")
    }
}

/// The file at the path of a program that the kernel says was started from `executable`: another one if the program was
/// built anew meanwhile.
fn present(executable: PathBuf) -> PathBuf {
    // What the kernel adds to the path of a file that was removed, as a build removes the one that it replaces.
    match executable.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) if !executable.exists() => OsStr::from_bytes(path).into(),
        _ => executable,
    }
}

/// The workspace of Shoal, if cargo has run a program of the package in the folder `package`, and that is Shoal or its
/// `xtask`: `cargo xtask train` becomes `shoal train`. Other packages may start an installed program of Shoal.
fn workspace(package: &Path) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    (package == root || package == root.join("xtask")).then(|| root.to_path_buf())
}

/// Cargo's flags for the default features that are on; `None` if all of them are.
fn features(all: &[(&str, bool)]) -> Option<String> {
    let on: Vec<&str> = all.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    match on.len() {
        count if count == all.len() => None,
        0 => Some("--no-default-features".into()),
        _ => Some(format!("--no-default-features --features {}", on.join(","))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(typed: &str, executable: &Path, working_directory: &Path) -> Invocation {
        Invocation {
            typed: typed.into(),
            executable: executable.into(),
            hosted: None,
            workspace: None,
            working_directory: working_directory.into(),
        }
    }

    #[test]
    fn the_player_is_called_as_the_supervisor_was() {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("target/release");
        std::fs::create_dir_all(&programs).unwrap();
        let supervisor = programs.join("supervisor");
        let play = |typed: &str| invocation(typed, &supervisor, folder.path()).play(Path::new("runs/a run"));
        assert_eq!(play("supervisor"), None, "the player is not there");
        std::fs::write(programs.join(PLAY), "").unwrap();
        assert_eq!(play("supervisor").unwrap(), "evaluate 'runs/a run'");
        assert_eq!(play("target/release/supervisor").unwrap(), "target/release/evaluate 'runs/a run'");
        assert_eq!(play("./target/release/supervisor").unwrap(), "./target/release/evaluate 'runs/a run'");
        let installed = programs.join(PLAY).display().to_string();
        assert_eq!(play("elsewhere/link").unwrap(), format!("{installed} 'runs/a run'"), "a link to the program has no such neighbour");
        let in_its_folder = invocation("supervisor", &supervisor, folder.path()).play(folder.path());
        assert_eq!(in_its_folder.unwrap(), "evaluate .", "where the working directory is the folder of the run");
    }

    #[test]
    fn a_run_of_the_program_with_all_commands_is_played_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("target/release");
        std::fs::create_dir_all(&programs).unwrap();
        let shoal = programs.join("shoal");
        std::fs::write(&shoal, "").unwrap();
        let play = |typed: &str| invocation(typed, &shoal, folder.path()).play(Path::new("runs/one")).unwrap();
        assert_eq!(play("shoal"), "shoal evaluate runs/one");
        assert_eq!(play("target/release/shoal"), "target/release/shoal evaluate runs/one");
        let mut through = invocation("target/debug/shoal", &shoal, folder.path());
        through.workspace = Some(folder.path().into());
        assert!(through.play(Path::new("runs/one")).unwrap().ends_with("--bin shoal -- evaluate runs/one"));
    }

    #[test]
    fn what_cargo_started_is_played_through_cargo() {
        let all = features(&[("torch", true), ("python", true)]);
        assert_eq!(all, None);
        assert_eq!(features(&[("torch", false), ("python", true)]).unwrap(), "--no-default-features --features python");
        assert_eq!(features(&[("torch", false)]).unwrap(), "--no-default-features");
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(workspace(built_in).as_deref(), Some(built_in));
        assert_eq!(workspace(&built_in.join("xtask")).as_deref(), Some(built_in));
        assert_eq!(workspace(Path::new("/another/xtask")), None, "somebody else's program that started this one");
        let root = Path::new("/shoal");
        let through = |executable: &str, here: &str| {
            let mut invocation = invocation("target/release/supervisor", Path::new(executable), Path::new(here));
            invocation.workspace = Some(root.into());
            invocation.play(&root.join("runs/one")).unwrap()
        };
        let here = through("/shoal/target/release/supervisor", "/shoal");
        assert!(here.starts_with("cargo run --release ") && here.ends_with("--bin evaluate -- runs/one"), "{here}");
        let debug = through("/shoal/target/debug/supervisor", "/shoal/configs");
        assert!(!debug.contains("--release") && debug.ends_with("--bin evaluate -- /shoal/runs/one"), "{debug}");
        let away = through("/shoal/target/fast/supervisor", "/home");
        assert!(away.contains("--manifest-path /shoal/Cargo.toml --profile fast"), "{away}");
    }
}
