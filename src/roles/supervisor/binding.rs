//! Binding pays while a learner has its core for itself, and the run the cores that it was planned for. Another
//! program that starts later, or another run that planned at the same moment, may take such a core; cores may be
//! given to the run or taken from it. Then every bound process is better left to the kernel.

use super::watch::Watched;
use crate::machine::affinity;
use crate::machine::cores::{core_list, usable_now};
use crate::readable::counted;
use crate::segment::processes::Role;

/// A bound learner shares its core with somebody if it waits for it for more than this share of the time.
const SHARED_FROM: f64 = 0.3;
/// Looks in a row that must show a shared core: what lasts shorter is not worth moving for.
const LOOKS: u32 = 2;
/// Looks in which processes are let go, the first included: one second of them.
const REPEATS: u32 = 5;

/// For which cores processes were bound, and how long learners have been seen to share theirs.
#[derive(Debug)]
pub(super) struct Binding {
    usable: Vec<usize>,
    looks: u32,
    /// Whether the processes were let go: each then has the cores that were usable at that moment.
    is_over: bool,
    /// Looks for which processes are let go again: one that was being started meanwhile binds itself to the cores
    /// that it was planned for.
    repeats: u32,
}

impl Binding {
    /// The state of a run whose processes were bound for these cores.
    pub(super) fn planned_for(usable: Vec<usize>) -> Self {
        Self { usable, looks: 0, is_over: false, repeats: 0 }
    }

    /// Let all processes run on any of the `usable` cores, now and after a restart, unless every learner has its
    /// core for itself and the run has the cores that it was planned for. Returns what is to be said when that
    /// happens. `core_wait` is the share of the time in which the owner of a slot has waited for a core.
    /// `is_passing` says that actors are there for a setting that is only tried: nothing is changed for their sake,
    /// since they may be gone soon.
    pub(super) fn look(
        &mut self,
        watched: &mut [Watched],
        core_wait: impl Fn(usize) -> f64,
        usable: Vec<usize>,
        is_passing: bool,
    ) -> Option<String> {
        let are_bound = self.is_over || watched.iter().any(|process| !process.planned.cores.is_empty());
        let others = self.others(&usable).filter(|_| are_bound);
        self.usable = usable;
        if is_passing {
            self.looks = 0;
        }
        let why = others.or_else(|| if is_passing { None } else { self.shared_core(watched, core_wait) });
        if why.is_some() {
            (self.is_over, self.repeats) = (true, REPEATS);
        } else if self.repeats == 0 {
            return None;
        }
        self.repeats -= 1;
        for process in watched {
            process.planned.cores.clear();
            if let Some(living) = &process.living {
                // A process that stays on its cores is slower, not wrong.
                let _ = affinity::bind_process(living.pid, &self.usable);
            }
        }
        why.map(|why| format!("{why}: every process may run on any core now"))
    }

    /// How the `usable` cores are others than before.
    fn others(&self, usable: &[usize]) -> Option<String> {
        let [now, before] = [usable, &self.usable].map(core_list);
        (usable != self.usable).then(|| format!("the run may use cores {now} now instead of {before}"))
    }

    /// How a learner has been sharing its core.
    fn shared_core(&mut self, watched: &[Watched], core_wait: impl Fn(usize) -> f64) -> Option<String> {
        let waits = watched.iter().filter(|process| process.planned.role == Role::Learner && process.planned.cores.len() == 1);
        let waits = waits.map(|process| (process, core_wait(process.planned.slot)));
        let Some((learner, wait)) = waits.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, wait)| *wait >= SHARED_FROM) else {
            self.looks = 0;
            return None;
        };
        self.looks += 1;
        let name = learner.planned.name();
        let core = learner.planned.cores[0];
        let waited = (100.0 * wait).round();
        (self.looks >= LOOKS).then(|| {
            let cause = cause(self.usable.len(), usable_now());
            format!("{name} waited {waited} % of the time for core {core}, {cause}")
        })
    }
}

/// What a learner may have waited for: the kernel counts it as waiting, too, when the control group has used up its
/// time.
fn cause(usable: usize, has_time_of: usize) -> String {
    let others = "which others use too";
    if has_time_of >= usable {
        return others.to_owned();
    }
    format!("{others}, or for its control group, which has the time of {} (docker: --cpus)", counted(has_time_of, "core"))
}

#[cfg(test)]
mod tests {
    use super::super::slots::PlannedProcess;
    use super::*;

    /// A learner on a core of its own in slot 0, which waits for it for half of the time, and an actor on the other.
    fn bound() -> Vec<Watched> {
        let planned = |slot, role, core| Watched::new(PlannedProcess { slot, role, number: 0, cores: vec![core] });
        vec![planned(0, Role::Learner, 0), planned(1, Role::Actor, 1)]
    }

    fn share_a_core(slot: usize) -> f64 {
        if slot == 0 { 0.5 } else { 0.0 }
    }

    #[test]
    fn a_learner_that_goes_on_sharing_its_core_sets_all_free_at_the_second_look() {
        let (mut binding, mut watched) = (Binding::planned_for(vec![0, 1]), bound());
        assert_eq!(binding.look(&mut watched, share_a_core, vec![0, 1], false), None);
        assert!(watched.iter().all(|process| process.planned.cores.len() == 1));
        let said = binding.look(&mut watched, share_a_core, vec![0, 1], false).unwrap();
        assert!(said.contains("learner 0 waited 50 % of the time for core 0"), "{said}");
        assert!(watched.iter().all(|process| process.planned.cores.is_empty()), "none is bound when it comes back");
    }

    #[test]
    fn the_quota_of_a_control_group_is_named_as_the_other_cause_where_there_is_one() {
        assert_eq!(cause(2, 2), "which others use too");
        assert_eq!(cause(8, 2), "which others use too, or for its control group, which has the time of 2 cores (docker: --cpus)");
        assert!(cause(2, 1).contains("of 1 core "), "{}", cause(2, 1));
    }

    #[test]
    fn a_setting_that_is_only_tried_sets_nobody_free() {
        let (mut binding, mut watched) = (Binding::planned_for(vec![0, 1]), bound());
        for _ in 0..2 * LOOKS {
            assert_eq!(binding.look(&mut watched, share_a_core, vec![0, 1], true), None);
        }
        // What was seen meanwhile does not count afterwards.
        assert_eq!(binding.look(&mut watched, share_a_core, vec![0, 1], false), None);
        assert!(binding.look(&mut watched, share_a_core, vec![0, 1], false).is_some());
    }

    #[test]
    fn cores_that_are_taken_or_given_set_all_free_at_once_even_while_a_setting_is_tried() {
        let (mut binding, mut watched) = (Binding::planned_for(vec![0, 1]), bound());
        let said = binding.look(&mut watched, |_| 0.0, vec![1], true).unwrap();
        assert!(said.contains("cores 1 now instead of 0-1"), "{said}");
        assert!(watched.iter().all(|process| process.planned.cores.is_empty()));
        let mut unbound = vec![Watched::new(PlannedProcess { slot: 0, role: Role::Learner, number: 0, cores: Vec::new() })];
        assert_eq!(Binding::planned_for(vec![0, 1]).look(&mut unbound, |_| 0.0, vec![1], false), None, "nobody was bound");
    }
}
