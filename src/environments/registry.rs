//! From an id to the environment: native ones and those that a program adds by their bare names, others by the prefix
//! before the colon.

use std::sync::Arc;

use super::atari::{self, AtariGames};
use super::ids::{is_versioned, may_be_module, nearest_id};
use super::origin::{Entry, Origin, takes_no_arguments};
use super::python::InPython;
use super::request::{EnvironmentRequest, Examined};
use super::{Environment, EnvironmentError, EnvironmentSpec, mujoco, native};
use crate::machine::Host;

/// Origins by the prefix of their ids.
const PREFIXES: [(&str, &dyn Origin); 3] = [(atari::PREFIX, &AtariGames), ("gymnasium:", &InPython), ("python:", &InPython)];

/// An environment that a program adds.
#[derive(Clone)]
struct Own {
    id: String,
    make: Arc<dyn Fn() -> Result<Box<dyn Environment>, EnvironmentError> + Send + Sync>,
}

/// The environments that a program knows: those of this library, and those that it adds
/// ([`Catalogue::add_environment`](crate::catalogue::Catalogue::add_environment)).
#[derive(Clone, Default)]
pub struct Environments {
    own: Vec<Own>,
}

/// All entries of this build.
fn entries() -> impl Iterator<Item = &'static Entry> {
    native::ENTRIES.iter().chain(&mujoco::ENTRIES)
}

/// The names of all environments of this library that need no Python, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.id)
}

/// Make the environment of that id, without arguments.
///
/// # Errors
/// As [`EnvironmentRequest::make`].
pub fn make(id: &str) -> Result<Box<dyn Environment>, EnvironmentError> {
    EnvironmentRequest::new(id).make()
}

/// What is fixed about the environment of that id, without arguments.
///
/// # Errors
/// As [`EnvironmentRequest::examine`].
pub fn spec(id: &str) -> Result<EnvironmentSpec, EnvironmentError> {
    EnvironmentRequest::new(id).examine().map(|examined| examined.spec)
}

/// Requests for environments of this library; [`Environments`] also knows those that a program adds.
impl EnvironmentRequest {
    /// Make the environment, which has to be reset before its first step.
    ///
    /// # Errors
    /// [`EnvironmentError::Unknown`], with the nearest name if one is near; for a MuJoCo environment
    /// [`EnvironmentError::NotBuilt`], [`EnvironmentError::Model`] or [`EnvironmentError::LibraryVersion`]; for an environment in Python
    /// whatever its constructor raises, and [`EnvironmentError::NotPrepared`] in a process that was not prepared for Python.
    pub fn make(&self) -> Result<Box<dyn Environment>, EnvironmentError> {
        Environments::default().make(self)
    }

    /// What is fixed about the environment and what it runs on. An environment in Python is made, reset and stepped once
    /// for that, in a process of its own, so that this process may fork afterwards.
    ///
    /// # Errors
    /// As [`make`](Self::make), without the need to be prepared.
    pub fn examine(&self) -> Result<Examined, EnvironmentError> {
        Environments::default().examine(self)
    }

    /// Whether Python steps the environment, so that the process must be prepared.
    pub fn needs_python(&self) -> bool {
        Environments::default().origin_of(self).is_ok_and(|origin| origin.needs_python())
    }
}

impl Environments {
    /// The names of all environments that need no Python: those of this library, then those that were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        entries().map(|entry| entry.id).chain(self.own.iter().map(|own| own.id.as_str()))
    }

    /// Whether `id` is a known name or begins with a known prefix.
    pub fn may_have(&self, id: &str) -> bool {
        self.names().any(|name| name == id) || id.starts_with(mujoco::PREFIX) || PREFIXES.iter().any(|(prefix, _)| id.starts_with(prefix))
    }

    /// Add an environment. Whether it may have that id is checked by the catalogue.
    pub(crate) fn add<E: Environment + 'static>(
        &mut self,
        id: &str,
        make: impl Fn() -> Result<E, EnvironmentError> + Send + Sync + 'static,
    ) {
        self.own.push(Own { id: id.into(), make: Arc::new(move || Ok(Box::new(make()?))) });
    }

    /// As [`EnvironmentRequest::make`], of all environments that are known.
    ///
    /// # Errors
    /// As [`EnvironmentRequest::make`], and [`EnvironmentError::Misnamed`] if an environment that was added has another id in its spec.
    pub fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        self.origin_of(request)?.make(request)
    }

    /// As [`EnvironmentRequest::examine`], of all environments that are known.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn examine(&self, request: &EnvironmentRequest) -> Result<Examined, EnvironmentError> {
        self.origin_of(request)?.examine(request)
    }

    /// What makes the requested environment.
    fn origin_of(&self, request: &EnvironmentRequest) -> Result<&dyn Origin, EnvironmentError> {
        let id = &request.id;
        if let Some((_, origin)) = PREFIXES.iter().find(|(prefix, _)| id.starts_with(prefix)) {
            return Ok(*origin);
        }
        let native = entries().find(|entry| entry.id == id).map(|entry| entry as &dyn Origin);
        let own = || self.own.iter().find(|own| own.id == *id).map(|own| own as &dyn Origin);
        native.or_else(own).ok_or_else(|| self.unknown(id))
    }

    fn unknown(&self, id: &str) -> EnvironmentError {
        if id.starts_with(mujoco::PREFIX) && mujoco::ENTRIES.is_empty() {
            // Whoever has the Python package has no compiler.
            let remedy = Host::of_this_process().map_or_else(
                || "run `cargo xtask setup`, then build with it".to_owned(),
                |_| {
                    let task = id.rsplit(':').next().unwrap_or(id);
                    format!("pip install 'gymnasium[mujoco]', and set environment.id to `gymnasium:{task}`, the same task in Python")
                },
            );
            return EnvironmentError::NotBuilt { id: id.to_owned(), feature: "mujoco", remedy };
        }
        // Not every task of MuJoCo is native. What stands before another colon may be the module that registers it.
        let task = id.strip_prefix(mujoco::PREFIX).unwrap_or(id);
        let versioned = || is_versioned(task) && task.split_once(':').is_none_or(|(module, _)| may_be_module(module));
        let suggestion = match nearest_id(id, self.names()) {
            Some(name) => format!(" (did you mean `{name}`?)"),
            None if versioned() => format!("; if it is one of Gymnasium's, write `gymnasium:{task}`"),
            None => String::new(),
        };
        let prefixes = PREFIXES.iter().map(|(prefix, _)| format!("{prefix}..."));
        let known = self.names().map(str::to_owned).chain(prefixes).collect::<Vec<_>>().join(", ");
        EnvironmentError::Unknown { id: id.to_owned(), suggestion, known }
    }
}

impl Origin for Own {
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        takes_no_arguments(&self.id, request)?;
        let made = (self.make)()?;
        match made.spec().id.as_str() {
            id if id == self.id => Ok(made),
            other => Err(EnvironmentError::Misnamed { id: self.id.clone(), other: other.to_owned() }),
        }
    }

    fn examine(&self, request: &EnvironmentRequest) -> Result<Examined, EnvironmentError> {
        Ok(Examined { spec: self.make(request)?.spec().clone(), software: Vec::new(), remark: None })
    }
}

#[cfg(test)]
mod tests {
    use super::{EnvironmentError, make, names, spec};

    #[test]
    fn every_name_makes_the_environment_that_bears_it() -> Result<(), EnvironmentError> {
        for name in names() {
            assert_eq!(make(name)?.spec(), &spec(name)?);
            assert_eq!(spec(name)?.id, name);
        }
        Ok(())
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest_one() {
        for (asked, meant) in [
            ("cartpole-v1", "`CartPole-v1`"),
            ("CartPole-v0", "`CartPole-v1`"),
            ("Pendulm-v1", "`Pendulum-v1`"),
            ("MountainCarContinous-v0", "`MountainCarContinuous-v0`"),
            ("acrobot", "`Acrobot-v1`"),
            ("catch", "`Catch-v0`"),
            ("Rally-v1", "`Rally-v0`"),
        ] {
            assert_suggests(asked, meant);
        }
    }

    fn assert_suggests(asked: &str, meant: &str) {
        let message = spec(asked).expect_err("the name is misspelt").to_string();
        assert!(message.contains(&format!("(did you mean {meant}?)")), "{message}");
    }

    #[test]
    fn a_name_with_a_version_that_is_not_native_is_taken_for_one_of_gymnasium() {
        for asked in ["LunarLander-v3", "BipedalWalker-v3", "ALE/Pong-v5", "my_tasks:Mine-v0"] {
            let message = spec(asked).expect_err("it is not native").to_string();
            assert!(message.contains(&format!("write `gymnasium:{asked}`")), "{message}");
        }
        let misspelt = spec("gymnasum:LunarLander-v3").expect_err("there is no such prefix").to_string();
        assert!(!misspelt.contains("write `"), "{misspelt}");
    }

    #[cfg(feature = "mujoco")]
    #[test]
    fn a_name_of_mujoco_is_recognised_without_its_prefix_or_version() {
        for asked in ["HalfCheetah-v5", "mujoco:HalfCheetah-v4", "mujoco:halfcheeta", "mojoco:HalfCheetah-v5"] {
            assert_suggests(asked, "`mujoco:HalfCheetah-v5`");
        }
    }

    #[cfg(feature = "mujoco")]
    #[test]
    fn a_task_of_mujoco_that_is_not_native_is_taken_for_one_of_gymnasium() {
        for asked in ["Reacher-v5", "Pusher-v5"] {
            let message = spec(&format!("mujoco:{asked}")).expect_err("it is not native").to_string();
            assert!(message.contains(&format!("write `gymnasium:{asked}`")), "{message}");
        }
    }

    #[cfg(not(feature = "mujoco"))]
    #[test]
    fn a_name_of_mujoco_says_what_the_build_lacks() {
        let message = spec("mujoco:HalfCheetah-v5").expect_err("this build has no MuJoCo").to_string();
        assert!(message.contains("feature `mujoco`") && message.contains("cargo xtask setup"), "{message}");
    }

    #[test]
    fn a_name_like_no_other_is_answered_with_all_names() {
        let message = spec("Zaxxon").expect_err("there is no such environment").to_string();
        assert!(!message.contains("did you mean"), "{message}");
        assert!(names().all(|name| message.contains(name)), "{message}");
    }
}
