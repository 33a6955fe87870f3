//! Runs a model in every order, as the code is and with one place of it broken.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

/// Name of the threads in which models run.
const EXPLORER: &str = "explorer";

/// A place in a file of the product, by what stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Path below `src`.
    pub file: &'static str,
    line: u32,
    column: u32,
}

/// How a place is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It is no part any more of the one order in which all processes see such accesses.
    NoCommonOrder(Site),
    /// What comes after it may be seen before it.
    NoAcquire(Site),
    /// What comes before it may be seen after it.
    NoRelease(Site),
    /// It reads, and writes a moment later.
    Torn(Site),
}

impl Fault {
    /// Where.
    pub fn site(self) -> Site {
        match self {
            Self::NoCommonOrder(site) | Self::NoAcquire(site) | Self::NoRelease(site) | Self::Torn(site) => site,
        }
    }

    /// What is broken.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoCommonOrder(_) => "without SeqCst",
            Self::NoAcquire(_) => "without Acquire",
            Self::NoRelease(_) => "without Release",
            Self::Torn(_) => "read, then written",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { file, line, .. } = self.site();
        write!(formatter, "{file}:{line} {}: {}", self.name(), self.site().source())
    }
}

impl Site {
    /// `None` for what is no file of the product, but of a model.
    fn of(caller: &'static Location<'static>) -> Option<Self> {
        let (_, file) = caller.file().rsplit_once("../src/")?;
        Some(Self { file, line: caller.line(), column: caller.column() })
    }

    /// The line.
    pub fn source(self) -> String {
        self.lines(1)
    }

    /// The line with the one before, which often says why, unless that is a statement of its own.
    pub fn passage(self) -> String {
        let whole = self.lines(2);
        match whole.split_once("; ") {
            Some((before, _)) if !before.starts_with("//") && !self.source().contains(before) => self.source(),
            _ => whole,
        }
    }

    fn lines(self, count: usize) -> String {
        let path = format!("{}/../../src/{}", env!("CARGO_MANIFEST_DIR"), self.file);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().skip(self.line as usize - count).take(count).map(str::trim).collect();
        lines.join(" ")
    }
}

/// What one exploration looks for, and has come by.
#[derive(Default)]
struct Exploration {
    broken: Vec<Fault>,
    possible: BTreeSet<Fault>,
}

thread_local! {
    // The threads of a model are coroutines of one thread.
    static EXPLORATION: RefCell<Exploration> = RefCell::default();
}

/// The ordering that an access at `caller` has in this exploration.
pub(crate) fn ordering(caller: &'static Location<'static>, wanted: Ordering) -> Ordering {
    let Some(site) = Site::of(caller) else { return wanted };
    let (acquires, releases) =
        (wanted == Ordering::AcqRel || wanted == Ordering::Acquire, wanted == Ordering::AcqRel || wanted == Ordering::Release);
    let faults =
        [(wanted == Ordering::SeqCst, Fault::NoCommonOrder(site)), (acquires, Fault::NoAcquire(site)), (releases, Fault::NoRelease(site))];
    EXPLORATION.with_borrow_mut(|exploration| {
        exploration.possible.extend(faults.iter().filter(|(is_possible, _)| *is_possible).map(|(_, fault)| fault));
        let here = exploration.broken.iter().filter(|broken| broken.site() == site);
        here.fold(wanted, |ordering, &broken| weakened(ordering, broken))
    })
}

fn weakened(ordering: Ordering, broken: Fault) -> Ordering {
    match (broken, ordering) {
        (Fault::NoCommonOrder(_), Ordering::SeqCst) => Ordering::AcqRel,
        (Fault::NoAcquire(_), Ordering::AcqRel) => Ordering::Release,
        (Fault::NoRelease(_), Ordering::AcqRel) => Ordering::Acquire,
        (Fault::NoAcquire(_), Ordering::Acquire) | (Fault::NoRelease(_), Ordering::Release) => Ordering::Relaxed,
        _ => ordering,
    }
}

/// Whether an access at `caller` that reads and writes at once does so one after the other in this exploration.
pub(crate) fn is_torn(caller: &'static Location<'static>) -> bool {
    let Some(site) = Site::of(caller) else { return false };
    EXPLORATION.with_borrow_mut(|exploration| {
        exploration.possible.insert(Fault::Torn(site));
        exploration.broken.contains(&Fault::Torn(site))
    })
}

/// What came of an exploration.
pub struct Explored {
    /// What the model complained of; `None` when it holds.
    pub failure: Option<String>,
    /// Interleavings.
    pub executions: usize,
    /// Every fault that could be planted on the way.
    pub possible: BTreeSet<Fault>,
}

/// Explore `model` in every order in which its threads are interrupted at most `interruptions` times, with what is `broken`.
pub fn explore(model: fn(), interruptions: usize, broken: &[Fault]) -> Explored {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        // What a model panics with is the answer, not something to be told about.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(EXPLORER) {
                usual(panic);
            }
        }));
    });
    let broken = broken.to_vec();
    let explorer = std::thread::Builder::new().name(EXPLORER.into()).spawn(move || {
        let executions = Arc::new(AtomicUsize::new(0));
        let counted = executions.clone();
        EXPLORATION.set(Exploration { broken, ..Exploration::default() });
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(interruptions);
        builder.max_branches = 3_000;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            builder.check(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                model();
            });
        }));
        let failure = result.err().map(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            text.unwrap_or("a panic").to_owned()
        });
        Explored { failure, executions: executions.load(Ordering::Relaxed), possible: EXPLORATION.take().possible }
    });
    explorer.expect("a thread").join().expect("an exploration catches what its model panics with")
}
