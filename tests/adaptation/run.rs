//! A run on the machine on paper: a driver that does what the tuner says, and measures with noise.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use shoal::adaptation::{Change, Incident, Probe, Reason, Rules, Setting, Status, Tuner, Verdict, Window};

use super::flow::Flow;
use super::machine::Machine;

/// Standard deviation of either side's speed in a window, as a share of it.
const NOISE: f64 = 0.1;
/// Standard deviation of a share in a window.
const SHARE_NOISE: f64 = 0.03;
/// Rates of the first window after a change, as a share of later ones.
const UNSETTLED: f64 = 0.5;
/// Windows at home that end a round: two to settle, and the five of a leg.
const HOME_WINDOWS: f64 = 7.0;

/// A run with its tuner, window by window.
pub(crate) struct Run {
    pub(crate) machine: Machine,
    pub(crate) tuner: Tuner,
    pub(crate) in_force: Setting,
    pub(crate) wall_s: f64,
    /// Share of its steps that the run takes in a window.
    pub(crate) progress_per_window: f64,
    pub(crate) memory_used: fn(Setting) -> f64,
    /// Changes that were made, with the time.
    pub(crate) changes: Vec<(f64, Change)>,
    pub(crate) probes: Vec<Probe>,
    /// Windows spent in rounds of probes: away from home, and at home to compare.
    pub(crate) probing_windows: Vec<f64>,
    /// When the round under way ends.
    round_ends_s: f64,
    has_just_changed: bool,
    flow: Flow,
    noise: Xoshiro256PlusPlus,
}

impl Run {
    pub(crate) fn new(machine: Machine, rules: Rules, start: Setting, seed: u64) -> Self {
        Self {
            machine,
            tuner: Tuner::new(rules, start),
            in_force: start,
            wall_s: 0.0,
            progress_per_window: 0.0,
            memory_used: |_| 0.5,
            changes: Vec::new(),
            probes: Vec::new(),
            probing_windows: Vec::new(),
            round_ends_s: 0.0,
            has_just_changed: true,
            flow: Flow::default(),
            noise: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// One window.
    pub(crate) fn window(&mut self) {
        self.window_with(None);
    }

    /// One window in which something happens.
    pub(crate) fn window_with(&mut self, incident: Option<Incident>) {
        let (window, seconds) = self.measure();
        self.tell(window, seconds, incident);
    }

    /// One window of a second, in which the run did what `window` says.
    pub(crate) fn window_of(&mut self, window: Window, incident: Option<Incident>) {
        self.tell(window, 1.0, incident);
    }

    fn tell(&mut self, window: Window, seconds: f64, incident: Option<Incident>) {
        self.wall_s += seconds;
        if self.wall_s <= self.round_ends_s {
            self.probing_windows.push(self.wall_s);
        }
        let status = Status {
            wall_s: self.wall_s,
            progress: self.progress_per_window * self.wall_s,
            window,
            in_force: self.in_force,
            usable_cores: self.machine.cores,
            memory_used: (self.memory_used)(self.in_force),
            incident,
        };
        let step = self.tuner.step(&status);
        self.has_just_changed = step.change.is_some();
        self.probes.extend(step.probe);
        if let Some(change) = step.change {
            self.round_ends_s = match change.reason {
                Reason::Trying { .. } => f64::INFINITY,
                Reason::Comparing => self.wall_s + HOME_WINDOWS,
                _ => self.wall_s,
            };
            self.in_force = change.setting;
            self.changes.push((self.wall_s, change));
        }
    }

    pub(crate) fn windows(&mut self, count: usize) {
        (0..count).for_each(|_| self.window());
    }

    /// Goes on until `is_over`; `false` if that takes more than `most` windows.
    pub(crate) fn until(&mut self, most: usize, is_over: impl Fn(&Self) -> bool) -> bool {
        (0..most).any(|_| {
            self.window();
            is_over(self)
        })
    }

    /// Goes on until the search is over; `false` if that takes more than `most` windows.
    pub(crate) fn until_locked(&mut self, most: usize) -> bool {
        self.until(most, |run| run.tuner.is_locked())
    }

    /// Goes on until a setting is tried.
    pub(crate) fn until_away(&mut self) {
        assert!(self.until(1_000, |run| run.in_force != run.tuner.home()), "nothing is tried");
    }

    /// What was accepted, with the time.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| probe.verdict == Verdict::Accepted)
    }

    /// The next window, and how long it is.
    fn measure(&mut self) -> (Window, f64) {
        let settled = if self.has_just_changed { UNSETTLED } else { 1.0 };
        let mut noise = |deviation: f64| deviation * Distribution::<f64>::sample(&StandardNormal, &mut self.noise);
        let mut speed = || settled * (1.0 + noise(NOISE)).max(0.0);
        let speeds = [speed(), speed()];
        let (exact, seconds) = self.flow.window(&self.machine, self.in_force, speeds);
        let mut share = |exact: f64| (exact + noise(SHARE_NOISE)).clamp(0.0, 1.0);
        let (cores_used, learners_wait, actors_wait) = (share(exact.cores_used), share(exact.learners_wait), share(exact.actors_wait));
        (Window { cores_used, learners_wait, actors_wait, ..exact }, seconds)
    }
}
