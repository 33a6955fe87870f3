//! A policy on its way to a disk that may be full for a while: kept in memory until it is written.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{PolicyWeights, WeightsError};

/// Time between two attempts.
const INTERVAL: Duration = Duration::from_millis(250);

/// Writes policies, each in the place of the one before. The newest one reaches the disk sooner or later.
pub struct PolicySaver {
    path: Box<dyn Fn() -> PathBuf>,
    unsaved: Option<PolicyWeights>,
    next_attempt: Instant,
}

/// Why a policy is not on the disk yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsaved {
    /// What kind of error the system gave, in words.
    pub cause: String,
    /// The error with the path.
    pub message: String,
}

impl PolicySaver {
    /// A saver with nothing to write yet. Before every attempt it asks for the `path`, whose folder somebody may move.
    pub fn new(path: impl Fn() -> PathBuf + 'static) -> Self {
        Self { path: Box::new(path), unsaved: None, next_attempt: Instant::now() }
    }

    /// Save `policy`, or say why that must wait; [`Self::retry`] then goes on trying. A policy that waited before
    /// is forgotten.
    ///
    /// # Errors
    /// The policy itself cannot be saved: waiting would not help.
    pub fn save(&mut self, policy: PolicyWeights) -> Result<Option<Unsaved>, WeightsError> {
        self.unsaved = Some(policy);
        self.attempt()
    }

    /// Try again what could not be saved, a few times a second at most; to be called as often as is convenient.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub fn retry(&mut self) -> Result<(), WeightsError> {
        if self.unsaved.is_some() && Instant::now() >= self.next_attempt {
            self.attempt()?;
        }
        Ok(())
    }

    /// Try until everything is saved, but no longer than `patience`; returns whether it is.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub fn insist(&mut self, patience: Duration) -> Result<bool, WeightsError> {
        let deadline = Instant::now() + patience;
        while self.unsaved.is_some() && Instant::now() < deadline {
            std::thread::sleep(self.next_attempt.min(deadline).saturating_duration_since(Instant::now()));
            self.retry()?;
        }
        Ok(self.unsaved.is_none())
    }

    fn attempt(&mut self) -> Result<Option<Unsaved>, WeightsError> {
        self.next_attempt = Instant::now() + INTERVAL;
        let Some(policy) = self.unsaved.take() else { return Ok(None) };
        match policy.save(&(self.path)()) {
            Ok(()) => Ok(None),
            Err(error) => {
                let WeightsError::Write { source, .. } = &error else { return Err(error) };
                self.unsaved = Some(policy);
                Ok(Some(Unsaved { cause: source.kind().to_string(), message: error.to_string() }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::WeightsMetadata;
    use crate::networks::{Head, NetworkSpec};

    fn policy(updates: u64) -> PolicyWeights {
        let spec = NetworkSpec::perceptron(2, &[4], Head::Linear { outputs: 2 });
        let metadata =
            WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), updates, ..WeightsMetadata::default() };
        PolicyWeights { parameters: spec.initialise(1), spec, metadata }
    }

    #[test]
    fn what_cannot_be_written_is_written_as_soon_as_that_is_possible() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/best.safetensors");
        let asked = path.clone();
        let mut saver = PolicySaver::new(move || asked.clone());
        for updates in [1, 2] {
            let unsaved = saver.save(policy(updates)).unwrap().expect("the folder is missing");
            assert!(unsaved.message.contains("missing/best.safetensors") && unsaved.cause == "entity not found", "{unsaved:?}");
        }
        assert!(!saver.insist(Duration::from_millis(1)).unwrap());
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        assert!(saver.insist(Duration::from_secs(60)).unwrap());
        assert_eq!(PolicyWeights::load(&path).unwrap(), policy(2), "the newest");
        std::fs::remove_file(&path).unwrap();
        saver.retry().unwrap();
        assert!(!path.exists(), "it is written once");
    }

    #[test]
    fn what_no_wait_mends_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("best.safetensors");
        let mut saver = PolicySaver::new(move || path.clone());
        let mut diverged = policy(1);
        diverged.parameters[0] = f32::NAN;
        assert!(matches!(saver.save(diverged), Err(WeightsError::NotFinite { .. })));
        assert!(saver.insist(Duration::ZERO).unwrap(), "it is not kept");
    }
}
