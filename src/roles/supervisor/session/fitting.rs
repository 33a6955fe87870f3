//! Putting in force what the tuner asks for: actors are started, asked to leave, or replaced by some with other environments, and learners
//! are given a view with another batch.

use super::super::fitting::{doublings, start};
use super::super::watch::Watched;
use super::Session;
use super::SupervisorError;
use crate::adaptation::{Incident, Probe, Setting, Verdict};
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::segment::processes::Role;
use crate::telemetry::Snapshot;

impl Session {
    /// Tell the tuner what happened, where there is one, and do what it says.
    pub(super) fn fit(&mut self, now: &Snapshot) -> Result<(), SupervisorError> {
        let wanted = self.wanted();
        let Some(fitting) = self.fitting.as_mut().filter(|_| self.reason.is_none()) else { return Ok(()) };
        let in_force = in_force(&self.watched, &self.segment, wanted);
        let Some(step) = fitting.look(now, in_force) else { return Ok(()) };
        if let Some(probe) = step.probe {
            self.tell(&probe);
        }
        if let Some(change) = step.change
            && change.setting.batch_size != wanted.batch_size
        {
            let doublings = doublings(self.config().learner.batch_size, change.setting.batch_size);
            let view = self.membership.double(doublings);
            self.change_view(view);
        }
        self.cast_actors()
    }

    /// The numbers of processes and the batch that are to be in force.
    pub(super) fn wanted(&self) -> Setting {
        self.fitting.as_ref().map_or_else(|| start(self.config()), |fitting| fitting.wanted())
    }

    /// Start the actors that are wanted and not there, and ask those to leave that are there and not wanted, or have other environments.
    pub(super) fn cast_actors(&mut self) -> Result<(), SupervisorError> {
        let wanted = self.wanted();
        for index in 0..self.watched.len() {
            let watched = &mut self.watched[index];
            if self.reason.is_some() || watched.planned.role != Role::Actor {
                continue;
            }
            let is_wanted = watched.planned.number < wanted.actors;
            match &watched.living {
                None if !is_wanted => watched.give_up(),
                None if watched.is_awaited() => {}
                None => self.begin_actor(index)?,
                Some(living) if is_wanted && living.environments == wanted.environments => {}
                Some(_) => watched.dismiss(),
            }
        }
        Ok(())
    }

    /// A system that has no room for one more process ends no run that can go on without.
    fn begin_actor(&mut self, index: usize) -> Result<(), SupervisorError> {
        match (self.fork(index), self.fitting.as_mut().filter(|fitting| fitting.is_trying())) {
            (Err(error), Some(fitting)) => {
                fitting.happened(Incident::NotStarted(error.to_string()));
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// A process has died and is replaced, or somebody from outside has joined or left.
    pub(super) fn disturb(&mut self) {
        if let Some(fitting) = &mut self.fitting {
            fitting.happened(Incident::Disturbed);
        }
    }

    /// Whether the death of an actor by its own fault, as `how` tells it, is an answer to what is tried: it is then not replaced.
    pub(super) fn refutes_setting(&mut self, how: &str) -> bool {
        let Some(fitting) = self.fitting.as_mut().filter(|fitting| fitting.is_trying()) else { return false };
        fitting.happened(Incident::NotStarted(how.to_owned()));
        true
    }

    fn tell(&mut self, probe: &Probe) {
        self.sinks.probe(probe);
        let flags = probe.to.flags();
        match probe.verdict {
            Verdict::Accepted => self.sinks.event(&format!("faster with {flags}: {}", probe.reason)),
            Verdict::Abandoned => self.sinks.event(&format!("gave up trying {flags}: {}", probe.reason)),
            // Most of what is tried is no better.
            Verdict::Rejected => {}
        }
    }

    /// What the run was fitted to, for the report.
    pub(super) fn fitted(&self) -> Option<String> {
        let fitting = self.fitting.as_ref()?;
        let [tried, accepted] = fitting.counts();
        Some(format!("{} --set adaptation.enabled=false; {tried} settings tried, {accepted} faster", fitting.home().flags()))
    }
}

/// The setting that the processes have by now, which is another one than `wanted` as long as any of them has not begun, or not left.
fn in_force(watched: &[Watched], segment: &Segment, wanted: Setting) -> Setting {
    let actors = || watched.iter().filter(|watched| watched.planned.role == Role::Actor);
    let living = || actors().filter_map(|watched| Some((watched.planned.slot, watched.living.as_ref()?)));
    let has_begun = |&(slot, living): &(usize, &super::super::watch::Living)| {
        segment.processes().slot(slot).counters().get(Counter::EnvSteps) > living.steps_before
    };
    let other = living().map(|(_, living)| living.environments).find(|&environments| environments != wanted.environments);
    // One that is asked to leave still acts.
    let acting = living().filter(has_begun).count();
    Setting { actors: acting, environments: other.unwrap_or(wanted.environments), ..wanted }
}
