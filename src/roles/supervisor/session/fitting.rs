//! Putting in force what the tuner asks for: actors are started, asked to leave, or replaced by actors with other
//! numbers of environments, and learners are given a view with another batch.

use super::super::fitting::{Fitting, is_graded};
use super::super::watch::{Living, Watched, work_counted};
use super::{Session, SupervisorError};
use crate::adaptation::{Incident, Probe, Setting, Verdict};
use crate::config::Config;
use crate::config::fitted::{Line, doublings, repeating};
use crate::segment::Segment;
use crate::segment::processes::{Phase, Role};
use crate::telemetry::Snapshot;

impl Session {
    /// Tell the tuner what happened, if there is one, and do what it says.
    pub(super) fn fit(&mut self, now: &Snapshot) -> Result<(), SupervisorError> {
        let wanted = self.wanted();
        let Some(fitting) = self.fitting.as_mut().filter(|_| self.reason.is_none()) else { return Ok(()) };
        let mut in_force = in_force(&self.watched, &self.segment, wanted);
        if now.learners < self.prepared.loaded.config.learner.processes() as u64 {
            // Learners that are missing do not take their shares: no whole batch is in force.
            in_force.batch_size = 0;
        }
        let Some(step) = fitting.look(now, in_force) else { return Ok(()) };
        if let Some(reason) = fitting.held_back() {
            self.sinks.event(&format!("no setting is tried for now: {reason}"));
        }
        if let Some(probe) = step.probe {
            self.tell(&probe);
            if probe.verdict != Verdict::Accepted {
                // Failures under the setting on trial say nothing of the one that replaces it.
                for watched in &mut self.watched {
                    if watched.planned.role.is_fitted() {
                        watched.forgive();
                    }
                }
            }
        }
        if self.wanted().batch_size != wanted.batch_size {
            self.take_wanted_batch();
        }
        self.match_actors_to_setting()
    }

    /// The numbers of processes and the batch that are to be in force.
    pub(super) fn wanted(&self) -> Setting {
        self.fitting.as_ref().map_or_else(|| self.config().setting(), |fitting| fitting.wanted())
    }

    /// Start the actors that are wanted and not there. Ask those to leave that are not wanted, or have another
    /// number of environments.
    pub(super) fn match_actors_to_setting(&mut self) -> Result<(), SupervisorError> {
        let wanted = self.wanted();
        let is_graded = is_graded(self.prepared.algorithm(), self.config().run.stop_env_steps);
        for index in 0..self.watched.len() {
            let watched = &mut self.watched[index];
            if self.reason.is_some() || watched.planned.role != Role::Actor {
                continue;
            }
            let is_wanted = watched.planned.number < wanted.actors;
            match &watched.living {
                None if !is_wanted => watched.give_up(),
                None if watched.is_awaited() => {}
                None => self.start_process(index)?,
                Some(living) => {
                    let knows_its_place = !is_graded || living.setting.actors == wanted.actors;
                    let suits = is_wanted && living.setting.environments == wanted.environments && knows_its_place;
                    // An actor that was asked to leave does so, even if it would suit again.
                    if !suits || watched.is_dismissed() {
                        watched.dismiss();
                    }
                }
            }
        }
        Ok(())
    }

    /// Start the process number `index` of the plan. If the system has no room for one more process now, a run that
    /// is under way does not end: a process that had been there is tried again later, and in a run that fits itself
    /// the setting that asked for an actor is taken back.
    pub(super) fn start_process(&mut self, index: usize) -> Result<(), SupervisorError> {
        let watched = &self.watched[index];
        let role = watched.planned.role;
        let is_replacement = watched.restarts > 0;
        let may_come_later = is_replacement || role == Role::Actor && self.fitting.is_some();
        match self.fork(index) {
            Err(error) if may_come_later => {
                if let Some(fitting) = self.fitting.as_mut().filter(|_| role.is_fitted()) {
                    fitting.happened(Incident::ProcessFailed(error.to_string()));
                }
                self.watched[index].postpone();
                self.sinks.trouble(error.to_string(), &format!("{} could not be started: {error}", self.watched[index].planned.name()));
                Ok(())
            }
            result => result,
        }
    }

    /// Have the learners take the batch that is wanted.
    pub(super) fn take_wanted_batch(&mut self) {
        let doublings = doublings(self.config().learner.batch_size, self.wanted().batch_size);
        self.change_view(|membership| membership.double(doublings));
    }

    /// Note that a process has died and is replaced, or that somebody from outside has joined or left.
    pub(super) fn disturb(&mut self) {
        if let Some(fitting) = &mut self.fitting {
            fitting.happened(Incident::Disturbed);
        }
    }

    /// Whether a setting is on trial.
    pub(super) fn is_on_trial(&self) -> bool {
        self.fitting.as_ref().is_some_and(Fitting::is_on_trial)
    }

    /// Note that a process has died by its own fault, as `how` tells it, and that the setting on trial is to blame.
    pub(super) fn blame_setting(&mut self, how: &str) {
        if let Some(fitting) = &mut self.fitting {
            fitting.happened(Incident::ProcessFailed(how.to_owned()));
        }
    }

    /// Note the end of the run: nothing judges the probe under way any more.
    pub(super) fn end_probe(&mut self) {
        let wall_s = self.observer.wall_s();
        if let Some(probe) = self.fitting.as_mut().and_then(|fitting| fitting.end(wall_s)) {
            self.tell(&probe);
        }
    }

    fn tell(&mut self, probe: &Probe) {
        let resumptions = self.folder().record().ok().map(|record| record.resumptions);
        self.sinks.probe(&Line { probe, configured: self.config().setting(), resumptions });
        let flags = probe.to.flags();
        match probe.verdict {
            Verdict::Accepted => self.sinks.event(&format!("faster with {flags}: {}", probe.reason)),
            Verdict::Abandoned => self.sinks.event(&format!("gave up trying {flags}: {}", probe.reason)),
            // Most settings that are tried are no better.
            Verdict::Rejected => {}
        }
    }

    /// The setting that the run was fitted to, for the report: in words, and as the configuration that repeats it.
    pub(super) fn fitted(&self) -> Option<(String, Config)> {
        let fitting = self.fitting.as_ref()?;
        let [tried, accepted] = fitting.counts();
        let home = fitting.home();
        let (config, more) = repeating(self.config(), home);
        let flags = home.flags();
        Some((format!("{flags}{more} --set adaptation.enabled=false; {tried} settings tried, {accepted} faster"), config))
    }
}

/// The setting that the processes have by now. It differs from `wanted` as long as any of them has not begun, or
/// not left.
fn in_force(watched: &[Watched], segment: &Segment, wanted: Setting) -> Setting {
    let actors = || watched.iter().filter(|watched| watched.planned.role == Role::Actor);
    let living = || actors().filter_map(|watched| Some((watched.planned.slot, watched.living.as_ref()?)));
    let has_begun = |&(slot, living): &(usize, &Living)| {
        let slot = segment.processes().slot(slot);
        // If many actors wait for a learner, a new one waits as the others do, long before its first step.
        slot.phase() == Some(Phase::LimiterWait) || work_counted(slot, Role::Actor) > living.work_before
    };
    let other = living().map(|(_, living)| living.setting.environments).find(|&environments| environments != wanted.environments);
    // An actor that was asked to leave still acts, but is soon gone.
    let is_changing = actors().any(|watched| watched.living.is_some() && watched.is_dismissed());
    let acting = if is_changing { 0 } else { living().filter(has_begun).count() };
    Setting { actors: acting, environments: other.unwrap_or(wanted.environments), ..wanted }
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::*;
    use crate::roles::supervisor::slots::{ActorSetting, PlannedProcess};
    use crate::segment::SegmentSizes;
    use crate::segment::counters::Counter;

    #[test]
    fn an_actor_is_in_force_once_it_has_taken_a_step_or_waits_to_take_its_first() {
        let segment = Segment::of_sizes(SegmentSizes { processes: 3, stagers: 3, ..SegmentSizes::of_rows(1, 64) });
        let wanted = Setting { actors: 3, environments: 8, batch_size: 64 };
        let slot = |number| segment.processes().slot(number);
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let begin = |number| {
            // Whoever had the slot before took steps, too, and waited when it left.
            slot(number).counters().add(Counter::EnvSteps, 80);
            slot(number).enter(Phase::LimiterWait);
            assert!(slot(number).reserve(Role::Actor, number).is_some());
            let mut watched = Watched::new(PlannedProcess { slot: number, role: Role::Actor, number, cores: Vec::new() });
            let setting = ActorSetting { actors: wanted.actors, environments: wanted.environments };
            // One process stands for all of them.
            watched.started(Pid::from_raw(child.id().cast_signed()), None, setting, work_counted(slot(number), Role::Actor)).unwrap();
            watched
        };
        let watched: Vec<Watched> = (0..3).map(begin).collect();
        let found = || in_force(&watched, &segment, wanted);
        assert_eq!(found().actors, 0, "all of them start");
        for number in [0, 1] {
            slot(number).counters().add(Counter::EnvSteps, 8);
        }
        assert_eq!(found().actors, 2, "the third still starts");
        slot(2).enter(Phase::LimiterWait);
        assert_eq!(found(), wanted);
        slot(2).enter(Phase::Environment);
        assert_eq!(found().actors, 2, "its first step may fail");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
