//! Binding pays while a learner has its core for itself. Another program that starts later, or another run that planned at the same moment,
//! may take that core too, and then every bound process is better left to the kernel.

use super::core_times::CoreTimes;
use super::watch::Watched;
use crate::machine::affinity;
use crate::segment::processes::Role;

/// A bound learner that waits for its core for more of the time than this shares it.
const SHARED_FROM: f64 = 0.3;
/// Looks in a row that must show it: what lasts shorter is not worth moving for.
const LOOKS: u32 = 2;

/// How long learners have been seen to share their cores.
#[derive(Debug, Default)]
pub(super) struct Contention {
    looks: u32,
}

impl Contention {
    /// Unless every learner has its core for itself, let all processes run on any of the `usable` cores, now and after a restart. Says so when
    /// it happens.
    pub(super) fn leave_contended_cores(&mut self, watched: &mut [Watched], times: &CoreTimes, usable: &[usize]) -> Option<String> {
        let waits = watched.iter().filter(|process| process.planned.role == Role::Learner && process.planned.cores.len() == 1);
        let waits = waits.map(|process| (process, times.core_wait(process.planned.slot)));
        let Some((learner, wait)) = waits.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, wait)| *wait >= SHARED_FROM) else {
            self.looks = 0;
            return None;
        };
        self.looks += 1;
        if self.looks < LOOKS {
            return None;
        }
        let (name, core) = (learner.planned.name(), learner.planned.cores[0]);
        for process in watched {
            process.planned.cores.clear();
            if let Some(living) = &process.living {
                // A process that stays on its cores is slower, not wrong.
                let _ = affinity::bind_process(living.pid, usable);
            }
        }
        let waited = (100.0 * wait).round();
        Some(format!("{name} waited {waited} % of the time for core {core}, which others use too: every process may run on any core now"))
    }
}
