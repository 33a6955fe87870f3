//! How much of the machine's processor time all programs together compute: a run that shares the cores with others is
//! slow for that reason.

use std::ops::Sub;
use std::path::Path;

use super::text_of;

/// Processor time of all cores together, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineTime {
    /// Time spent on computing, and time that a hypervisor gave to another machine: no other program could have had it.
    pub busy: u64,
    /// All time, idle or busy.
    pub total: u64,
}

impl MachineTime {
    /// The times since the machine was started; zero if the kernel does not say.
    pub fn now() -> Self {
        Self::parse(&text_of(Path::new("/"), "proc/stat")).unwrap_or_default()
    }

    /// Reads the first line of `/proc/stat`: user, nice, system, idle, waiting for a disk, interrupts of two kinds,
    /// stolen. The times of guests, which follow, are contained in the first two.
    fn parse(stat: &str) -> Option<Self> {
        let times = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(8);
        let times: Vec<u64> = times.map(str::parse).collect::<Result<_, _>>().ok()?;
        let idle = times.get(3)? + times.get(4).unwrap_or(&0);
        let total = times.iter().sum::<u64>();
        Some(Self { busy: total - idle, total })
    }

    /// The busy share, from 0 to 1; `None` if no time has passed.
    pub fn busy_share(self) -> Option<f64> {
        (self.total > 0).then(|| self.busy as f64 / self.total as f64)
    }
}

impl Sub for MachineTime {
    type Output = Self;

    /// The difference, never negative and with no share above 1, though the kernel's counts of waiting may fall.
    fn sub(self, before: Self) -> Self {
        let total = self.total.saturating_sub(before.total);
        Self { busy: self.busy.saturating_sub(before.busy).min(total), total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_idle_nor_waiting_for_a_disk_is_busy() {
        let stat = "cpu  100 20 30 400 50 6 4 10 70 8\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 17\n";
        assert_eq!(MachineTime::parse(stat), Some(MachineTime { busy: 170, total: 620 }));
        assert_eq!(MachineTime::parse("cpu  1 2 3 4\n"), Some(MachineTime { busy: 6, total: 10 }), "an old kernel");
        for nonsense in ["", "cpu  1 2 3\n", "cpu  1 2 3 x\n", "cpu0 1 2 3 4 5 6 7 8\n"] {
            assert_eq!(MachineTime::parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_share_is_between_nothing_and_all_whatever_the_counts_do() {
        let share = |now: (u64, u64), before: (u64, u64)| {
            let time = |(busy, total)| MachineTime { busy, total };
            (time(now) - time(before)).busy_share()
        };
        assert_eq!(share((150, 300), (100, 100)), Some(0.25));
        assert_eq!(share((150, 120), (100, 100)), Some(1.0));
        assert_eq!(share((90, 120), (100, 100)), Some(0.0));
        assert_eq!(share((100, 100), (100, 100)), None);
    }

    #[test]
    fn this_machine_computes_while_this_test_does() {
        let before = MachineTime::now();
        assert!(before.total > 0, "the kernel does not say");
        let computed = loop {
            let computed = MachineTime::now() - before;
            if computed.busy >= 2 {
                break computed;
            }
            std::hint::black_box(0);
        };
        assert!(computed.busy_share().is_some_and(|share| share > 0.0 && share <= 1.0), "{computed:?}");
    }
}
