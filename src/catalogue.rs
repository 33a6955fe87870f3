//! The catalogue: the algorithms and environments that a program knows by name, of this library and its own.
//!
//! The catalogue is a value, which is handed to everything that starts, joins or replays a run; nothing in here is
//! global.

use thiserror::Error;

use crate::algorithms::registry::{Algorithms, Declaration};
use crate::algorithms::{Algorithm, AlgorithmError};
use crate::config::{AlgorithmKey, Config};
use crate::environments::{Environment, EnvironmentError, EnvironmentSpec, Environments};

/// Longest name, in bytes.
const LONGEST_NAME: usize = 100;

/// The algorithms and environments that a program knows by name; by default those of this library.
#[derive(Clone, Default)]
pub struct Catalogue {
    algorithms: Algorithms,
    environments: Environments,
}

/// Why something could not be added.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The name means something already.
    #[error("there is already {what} `{name}`; add yours under another name than {known}")]
    Taken {
        /// The kind of thing that has the name, with its article.
        what: &'static str,
        /// The name.
        name: String,
        /// All names that are taken, separated by commas.
        known: String,
    },
    /// The name could not be written in a configuration, or would mean something else there.
    #[error("{name:?} cannot be the name of {what}: it has to be {form}, of at most {LONGEST_NAME} characters")]
    Form {
        /// The kind of thing that has the name, with its article.
        what: &'static str,
        /// The name.
        name: String,
        /// The form that names have.
        form: &'static str,
    },
    /// A key of an algorithm that no run could have.
    #[error("the algorithm `{algorithm}` declares {fault}")]
    Key {
        /// The algorithm.
        algorithm: &'static str,
        /// The key, what is wrong with it, and what it should be.
        fault: String,
    },
}

impl Catalogue {
    /// Lets `algorithm.name` take the name in `declaration`, for the algorithm that `build` makes.
    ///
    /// A supervisor calls `build` before it forks the processes of a run: `build` must start no thread and must not use
    /// a GPU, since neither reaches the forked processes. [`Algorithm::policy`] and [`Algorithm::learning`] may do both.
    ///
    /// # Errors
    /// The name of the algorithm, or of one of its own keys, is taken, or has other characters than small letters,
    /// digits and `_`; a key does not take its own default, or is none of the library.
    pub fn add_algorithm<A: Algorithm + 'static>(
        &mut self,
        declaration: Declaration,
        build: impl Fn(&Config, &EnvironmentSpec) -> Result<A, AlgorithmError> + Send + Sync + 'static,
    ) -> Result<(), CatalogueError> {
        let is_meant = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        check(
            "an algorithm",
            declaration.name,
            "small letters, digits and `_`, such as \"expected_sarsa\"",
            is_meant,
            self.algorithms.names(),
        )?;
        let own_keys = || declaration.keys.iter().filter_map(AlgorithmKey::own_name);
        for (index, name) in own_keys().enumerate() {
            check(
                "a key of an algorithm",
                name,
                "small letters, digits and `_`, such as \"trace_decay\"",
                is_meant,
                own_keys().take(index),
            )?;
        }
        if let Some(fault) = declaration.keys.iter().find_map(AlgorithmKey::fault) {
            return Err(CatalogueError::Key { algorithm: declaration.name, fault });
        }
        self.algorithms.add(declaration, build);
        Ok(())
    }

    /// Lets `environment.id` take `id`, for the environments that `make` makes, whose spec has that id. One type of
    /// environment may be added under several ids.
    ///
    /// A supervisor calls `make` for the spec before it forks the processes of a run: `make` must start no thread and
    /// must not use a GPU, since neither reaches the forked processes. The first reset of an environment may do both.
    ///
    /// # Errors
    /// The id is taken, or has other characters than letters, digits, `_`, `-` and `.`. A colon would end a prefix,
    /// which says where an environment comes from.
    pub fn add_environment<E: Environment + 'static>(
        &mut self,
        id: &str,
        make: impl Fn() -> Result<E, EnvironmentError> + Send + Sync + 'static,
    ) -> Result<(), CatalogueError> {
        let is_meant = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        check("an environment", id, "letters, digits, `_`, `-` and `.`, such as \"Corridor-v0\"", is_meant, self.environments.names())?;
        self.environments.add(id, make);
        Ok(())
    }

    /// The algorithms.
    pub fn algorithms(&self) -> &Algorithms {
        &self.algorithms
    }

    /// The environments.
    pub fn environments(&self) -> &Environments {
        &self.environments
    }
}

fn check<'a>(
    what: &'static str,
    name: &str,
    form: &'static str,
    is_meant: impl Fn(char) -> bool,
    known: impl Iterator<Item = &'a str>,
) -> Result<(), CatalogueError> {
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_meant) {
        return Err(CatalogueError::Form { what, name: name.to_owned(), form });
    }
    let known: Vec<_> = known.collect();
    if known.contains(&name) {
        return Err(CatalogueError::Taken { what, name: name.to_owned(), known: known.join(", ") });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::dqn::Dqn;
    use crate::environments::{Action, EnvironmentRequest, Step, make, spec};
    use crate::values::ValuesMut;

    fn declared(name: &'static str) -> Declaration {
        Declaration { name, keys: &[], learns_from_bytes: false }
    }

    /// CartPole under another id.
    struct Renamed {
        inner: Box<dyn Environment>,
        spec: EnvironmentSpec,
    }

    impl Renamed {
        fn new(id: &str) -> Result<Self, EnvironmentError> {
            Ok(Self { inner: make("CartPole-v1")?, spec: EnvironmentSpec { id: id.into(), ..spec("CartPole-v1")? } })
        }
    }

    impl Environment for Renamed {
        fn spec(&self) -> &EnvironmentSpec {
            &self.spec
        }

        fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
            self.inner.reset(seed, observation)
        }

        fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
            self.inner.step(action, observation)
        }
    }

    #[test]
    fn what_was_added_is_made_by_its_name_and_unknown_to_other_catalogues() {
        let mut catalogue = Catalogue::default();
        catalogue.add_environment("Pole-v0", || Renamed::new("Pole-v0")).unwrap();
        let request = EnvironmentRequest::new("Pole-v0");
        assert_eq!(catalogue.environments().make(&request).unwrap().spec().id, "Pole-v0");
        assert_eq!(catalogue.environments().examine(&request).unwrap().spec.id, "Pole-v0");
        let unknown = Catalogue::default().environments().make(&request).err().expect("nobody has added it").to_string();
        assert!(unknown.contains("unknown environment `Pole-v0`"), "{unknown}");
        let misspelt = catalogue.environments().make(&EnvironmentRequest::new("Polle-v0")).err().expect("it is misspelt").to_string();
        assert!(misspelt.contains("did you mean `Pole-v0`?"), "{misspelt}");
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut catalogue = Catalogue::default();
        catalogue.add_environment("Pole-v0", || Renamed::new("Pole-v0")).unwrap();
        for id in ["Pole-v0", "CartPole-v1"] {
            let error = catalogue.add_environment(id, || Renamed::new("Pole-v0")).unwrap_err();
            assert!(matches!(&error, CatalogueError::Taken { what: "an environment", name, .. } if name == id), "{error}");
        }
        let error = catalogue.add_algorithm(declared("sac"), Dqn::new).unwrap_err();
        assert!(error.to_string().contains("there is already an algorithm `sac`"), "{error}");
    }

    #[test]
    fn a_name_has_to_be_one_that_a_configuration_can_hold() {
        let mut catalogue = Catalogue::default();
        let long: &str = "x".repeat(LONGEST_NAME + 1).leak();
        for name in ["", "Mine", "my algorithm", "my.own", long] {
            let error = catalogue.add_algorithm(declared(name), Dqn::new).unwrap_err();
            assert!(matches!(error, CatalogueError::Form { what: "an algorithm", .. }), "{error}");
        }
        for name in ["", "learning rate", "a.b", "Rate"] {
            let keys: &'static [AlgorithmKey] = Box::leak(Box::new([AlgorithmKey::number(name, 0.5, 0.0..=1.0)]));
            let error = catalogue.add_algorithm(Declaration { keys, ..declared("mine") }, Dqn::new).unwrap_err();
            assert!(matches!(error, CatalogueError::Form { what: "a key of an algorithm", .. }), "{error}");
        }
        const TWICE: &[AlgorithmKey] = &[AlgorithmKey::flag("eager", true), AlgorithmKey::flag("eager", false)];
        let error = catalogue.add_algorithm(Declaration { keys: TWICE, ..declared("mine") }, Dqn::new).unwrap_err();
        assert!(matches!(error, CatalogueError::Taken { what: "a key of an algorithm", .. }), "{error}");
        for id in ["", "gymnasium:Pole-v0", "Pole v0", "Pole/v0", long] {
            let error = catalogue.add_environment(id, || Renamed::new("Pole-v0")).unwrap_err();
            assert!(matches!(error, CatalogueError::Form { what: "an environment", .. }), "{error}");
        }
    }

    #[test]
    fn a_key_that_no_run_could_have_is_refused() {
        const OUTSIDE: &[AlgorithmKey] = &[AlgorithmKey::flag("eager", true), AlgorithmKey::number("decay", 1.5, 0.0..=1.0)];
        const NEAR: &[AlgorithmKey] = &[AlgorithmKey::of_library("network.convolution")];
        const UNKNOWN: &[AlgorithmKey] = &[AlgorithmKey::of_library("wings.colour")];
        for (keys, told) in [
            (OUTSIDE, "the algorithm `mine` declares own.decay with the default 1.5, which must be a number from 0 to 1"),
            (NEAR, "the key `network.convolution`, which the library does not have; did you mean `network.convolutions`?"),
            (UNKNOWN, "docs/configuration.md has all keys"),
        ] {
            let error = Catalogue::default().add_algorithm(Declaration { keys, ..declared("mine") }, Dqn::new).unwrap_err();
            assert!(matches!(error, CatalogueError::Key { .. }) && error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn what_calls_itself_otherwise_is_refused() {
        let mut catalogue = Catalogue::default();
        catalogue.add_environment("Pole-v0", || Renamed::new("Stick-v0")).unwrap();
        let error = catalogue.environments().make(&EnvironmentRequest::new("Pole-v0")).err().expect("the names differ").to_string();
        assert!(error.contains("`Pole-v0`") && error.contains("`Stick-v0`"), "{error}");
        catalogue.add_algorithm(declared("mine"), Dqn::new).unwrap();
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.name = "mine".into();
        let error = catalogue.algorithms().build(&config, &spec("CartPole-v1").unwrap()).err().expect("the names differ").to_string();
        assert!(error.contains("`mine`") && error.contains("`dqn`"), "{error}");
    }
}
