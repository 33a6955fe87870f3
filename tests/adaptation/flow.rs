//! What a run does from one look to the next, if one side may be ahead of the other for a while; and the windows that the tuner gets of it,
//! made as the supervisor makes them: each ends with a look, and holds whole updates and whole flushes.

use shoal::adaptation::{AllowedSamples, LeastWindow, NarrowBand, Setting, Window};

use super::machine::{Between, Done, Machine};
use super::shapes::{self, Start};

/// Seconds between two looks.
const LOOK_S: f64 = 0.2;
/// Transitions that are inserted at once.
const FLUSH: usize = 64;

/// Work that is done but not used yet, or not visible yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    /// Transitions by which actors are ahead of the learner; below zero, the learner is ahead.
    surplus: f64,
    /// Transitions of the batch that is being made.
    made: f64,
    /// Transitions still to learn from the current batch, counted once for each pass over them.
    to_learn: f64,
    /// Part of the update under way.
    begun: f64,
    /// Transitions that are not inserted yet.
    staged: f64,
    /// The judge of which rates last.
    narrow: NarrowBand,
}

/// What is done per second, by which sides are at work.
struct Rates {
    both: Window,
    actors: Window,
    learner: Window,
    /// While the faster side waits for the other.
    limited: Window,
    /// Transitions by which actors get ahead while both work.
    ahead_per_s: f64,
}

impl Flow {
    /// The next window with `setting`, and its length. `speeds` are those of actors and learner, as multiples of the usual ones.
    pub(crate) fn window(&mut self, machine: &Machine, setting: Setting, speeds: [f64; 2]) -> (Window, f64) {
        if machine.between == Between::Nothing {
            return (at(speeds, machine.window(setting)), 1.0);
        }
        let (rates, rows) = (Rates::of(machine, setting, speeds), machine.update_rows(setting));
        let least = LeastWindow::of(machine.updates_of_batch());
        let (mut done, mut looks) = (Done::default(), 0);
        let (seconds, updates) = loop {
            match machine.between {
                Between::Nothing => {}
                Between::Band(band) => self.pass_with_band(band, &rates, &mut done),
                Between::Batches { epochs, .. } => self.pass_with_batches(setting.batch_size as f64, epochs as f64, &rates, &mut done),
            }
            looks += 1;
            let seconds = f64::from(looks) * LOOK_S;
            let updates = self.begun + done.learned / rows;
            if least.is_held(seconds, updates as u64) {
                break (seconds, updates);
            }
        };
        let staged = self.staged + done.env_steps;
        (self.begun, self.staged) = (updates.fract(), staged % FLUSH as f64);
        let mut measured = Window { learned_per_s: updates.floor() * rows / seconds, ..done.per_second() };
        let inserted_per_s = (staged - self.staged) / seconds;
        // With batches neither side is ahead for longer than a window.
        let Between::Band(band) = machine.between else { return (measured, seconds) };
        if rates.ahead_per_s > 0.0 && self.surplus == band {
            // Actors wait before the first step of a flush, so their steps also come together.
            measured.env_steps_per_s = inserted_per_s;
        }
        let samples_per_insert = machine.ratio(setting).expect("what lies between the sides is held by a ratio");
        let at_once = (samples_per_insert * FLUSH as f64).max(setting.batch_size as f64);
        let allowed = AllowedSamples { per_s: samples_per_insert * inserted_per_s, at_once };
        (self.narrow.lasting(measured, seconds, allowed), seconds)
    }

    /// Until the next look each side works at its own pace; once one is ahead by the band, it works at the pace of the other.
    fn pass_with_band(&mut self, band: f64, rates: &Rates, done: &mut Done) {
        let room = if rates.ahead_per_s > 0.0 { band - self.surplus } else { band + self.surplus };
        let apart_s = (room / rates.ahead_per_s.abs()).min(LOOK_S);
        done.add(&rates.both, apart_s);
        done.add(&rates.limited, LOOK_S - apart_s);
        self.surplus = (self.surplus + rates.ahead_per_s * apart_s).clamp(-band, band);
    }

    /// Until the next look actors make at most one batch, while the learner learns from the batch before.
    fn pass_with_batches(&mut self, batch: f64, epochs: f64, rates: &Rates, done: &mut Done) {
        let mut left_s = LOOK_S;
        while left_s > 0.0 {
            if self.to_learn == 0.0 && self.made == batch {
                (self.made, self.to_learn) = (0.0, epochs * batch);
            }
            let (is_acting, is_learning) = (self.made < batch, self.to_learn > 0.0);
            let rates = match (is_acting, is_learning) {
                (true, true) => &rates.both,
                (true, false) => &rates.actors,
                (false, _) => &rates.learner,
            };
            let made_s = if is_acting { (batch - self.made) / rates.env_steps_per_s } else { f64::INFINITY };
            let learned_s = if is_learning { self.to_learn / rates.learned_per_s } else { f64::INFINITY };
            let passed_s = left_s.min(made_s).min(learned_s);
            done.add(rates, passed_s);
            left_s -= passed_s;
            // A complete batch has exactly its size, whatever rounding would leave.
            self.made = if passed_s == made_s { batch } else { self.made + rates.env_steps_per_s * passed_s };
            self.to_learn = if passed_s == learned_s { 0.0 } else { self.to_learn - rates.learned_per_s * passed_s };
        }
    }
}

impl Rates {
    fn of(machine: &Machine, setting: Setting, speeds: [f64; 2]) -> Self {
        let of_those = |is_acting, is_learning| at(speeds, machine.at_work(setting, is_acting, is_learning));
        let ratio = machine.ratio(setting).expect("what lies between the sides is held by a ratio");
        let both = of_those(true, true);
        let ahead_per_s = both.env_steps_per_s - both.learned_per_s / ratio;
        let limited = machine.limited(setting, ratio, speeds);
        Self { both, actors: of_those(true, false), learner: of_those(false, true), limited, ahead_per_s }
    }
}

/// `rates`, with actors and learner as many times as fast.
fn at([actors, learner]: [f64; 2], rates: Window) -> Window {
    Window { env_steps_per_s: rates.env_steps_per_s * actors, learned_per_s: rates.learned_per_s * learner, ..rates }
}

#[test]
fn a_run_comes_to_what_its_machine_says_that_lasts() {
    for shape in [shapes::with_bands(), shapes::in_bursts()].concat() {
        for setting in [shape.start(Start::Auto), shape.start(Start::Lowest)] {
            let (mut flow, mut done) = (Flow::default(), Done::default());
            for window in 0..2_000 {
                let (rates, seconds) = flow.window(&shape.machine, setting, [1.0; 2]);
                // By then the band is used up.
                if window >= 1_900 {
                    done.add(&rates, seconds);
                }
            }
            let (found, expected) = (done.per_second(), shape.machine.window(setting));
            let is_close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.03;
            let are_close = is_close(found.env_steps_per_s, expected.env_steps_per_s)
                && is_close(found.learned_per_s, expected.learned_per_s)
                && is_close(1.0 + found.cores_used, 1.0 + expected.cores_used)
                && is_close(1.0 + found.learners_wait, 1.0 + expected.learners_wait)
                && is_close(1.0 + found.actors_wait, 1.0 + expected.actors_wait);
            assert!(are_close, "{}, {setting:?}: {found:?} instead of {expected:?}", shape.name());
        }
    }
}
