//! A process in one word of shared memory.

use super::pidfd::{has_exited, start_time};
use super::shared_words::low;

/// The name of a process: its id, and above that the lower half of its start time, so that an id that is used again
/// names another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedProcess(u64);

impl NamedProcess {
    const START_MASK: u64 = u32::MAX as u64;

    /// This process.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self(u64::from(pid) | (start_time(pid).unwrap_or(0) & Self::START_MASK) << 32)
    }

    /// The process that `word` names; `None` for 0.
    pub fn from_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self(word))
    }

    /// The name as a word, which is not 0.
    pub fn word(self) -> u64 {
        self.0
    }

    /// Its process id.
    pub fn pid(self) -> u32 {
        low(self.0)
    }

    /// Whether the kernel says that it has ended.
    pub fn has_ended(self) -> bool {
        let pid = self.pid();
        let started = self.0 >> 32;
        // A start time that could not be read (this process, or the other when it was named, may open no more files)
        // says nothing: in doubt the process lives.
        let is_another = || started != 0 && start_time(pid).is_some_and(|now| now & Self::START_MASK != started);
        has_exited(pid, 0) || is_another()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_that_had_its_id_before_has_ended() {
        let this = NamedProcess::this();
        assert!(!this.has_ended() && this.pid() == std::process::id());
        assert_eq!(NamedProcess::from_word(this.word()), Some(this));
        assert!(NamedProcess::from_word(this.word() ^ 1 << 32).unwrap().has_ended());
        assert_eq!(NamedProcess::from_word(0), None);
    }
}
