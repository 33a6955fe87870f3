//! A writer of much data that leaves the processor to training: each piece of work is followed by a rest.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Seconds of rest for each second on the processor: up to its longest rest the writer takes a sixteenth of one
/// core (docs/resume.md has what that gives).
const REST: f64 = 15.0;

/// A writer that rests after each piece, in proportion to the processor time that the piece took.
pub(super) struct Paced<W> {
    inner: W,
    /// The longest rest for each byte.
    longest_s_per_byte: f64,
    worked: Duration,
}

impl<W> Paced<W> {
    /// A writer for about so many `bytes`, which rests no longer than `longest_rest` over all of them.
    pub(super) fn new(inner: W, bytes: u64, longest_rest: Duration) -> Self {
        Self { inner, longest_s_per_byte: longest_rest.as_secs_f64() / bytes.max(1) as f64, worked: worked() }
    }

    /// The rest after so much work for so many bytes.
    fn rest(&self, work: Duration, bytes: usize) -> Duration {
        Duration::from_secs_f64((work.as_secs_f64() * REST).min(self.longest_s_per_byte * bytes as f64))
    }
}

impl<W: Write> Write for Paced<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        let worked = worked();
        thread::sleep(self.rest(worked.saturating_sub(self.worked), written));
        self.worked = worked;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Time that this thread has had on a processor, including time in the kernel. Without such a clock it is zero, and
/// the writer never rests.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_follow_the_work_up_to_their_share_of_the_longest() {
        let paced = Paced::new(io::sink(), 1000, Duration::from_secs(10));
        assert_eq!(paced.rest(Duration::from_millis(2), 100), Duration::from_millis(30));
        assert_eq!(paced.rest(Duration::from_secs(2), 100), Duration::from_secs(1), "a tenth of the bytes has a tenth of it");
        assert_eq!(paced.rest(Duration::ZERO, 100), Duration::ZERO);
    }

    #[test]
    fn who_is_waited_for_does_not_rest() {
        let paced = Paced::new(io::sink(), 0, Duration::ZERO);
        assert_eq!(paced.rest(Duration::from_secs(2), 1 << 20), Duration::ZERO);
    }
}
