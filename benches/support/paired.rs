//! Contestants that take turns: on a shared machine the speed of the processor changes within seconds, so only contestants
//! that take turns can be compared. Each round runs all of them once; what counts is the median over the rounds.
#![allow(dead_code, reason = "each benchmark uses a part")]

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// One way of doing the prepared work.
pub(crate) struct Contestant<'a> {
    pub(crate) name: String,
    pub(crate) run: Box<dyn FnMut() + 'a>,
}

impl<'a> Contestant<'a> {
    pub(crate) fn new(name: impl Into<String>, run: impl FnMut() + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Nanoseconds per element, of each contestant in each round.
pub(crate) struct Race {
    rounds: Vec<Vec<f64>>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the thread has a clock").into()
}

impl Race {
    /// Let all contestants do the work of `elements` elements in each of `rounds` rounds, after one round to warm up.
    pub(crate) fn run(contestants: &mut [Contestant<'_>], elements: usize, rounds: usize) -> Self {
        contestants.iter_mut().for_each(|contestant| (contestant.run)());
        let mut once = |contestant: &mut Contestant<'_>| {
            let start = cpu_time();
            (contestant.run)();
            (cpu_time() - start).as_nanos() as f64 / elements as f64
        };
        Self { rounds: (0..rounds).map(|_| contestants.iter_mut().map(&mut once).collect()).collect() }
    }

    /// Median nanoseconds per element of a contestant.
    pub(crate) fn median_ns(&self, contestant: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[contestant]).collect())
    }

    /// Median over the rounds of how many times as long `slow` takes as `fast`.
    pub(crate) fn median_ratio(&self, slow: usize, fast: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[slow] / round[fast]).collect())
    }

    /// The fastest of the contestants in `range`.
    pub(crate) fn fastest(&self, range: std::ops::Range<usize>) -> usize {
        range.min_by(|&first, &second| self.median_ns(first).total_cmp(&self.median_ns(second))).expect("somebody runs")
    }
}

/// How the benchmark was called: by `cargo bench`, or by `cargo test`, where one short round shows that it works.
pub(crate) struct Call {
    pub(crate) is_measuring: bool,
}

impl Call {
    pub(crate) fn read() -> Self {
        Self { is_measuring: std::env::args().any(|argument| argument == "--bench") }
    }

    pub(crate) fn rounds(&self) -> usize {
        if self.is_measuring { 9 } else { 1 }
    }
}

/// Mebibytes of this process that lie on huge pages.
pub(crate) fn huge_page_mebibytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}
