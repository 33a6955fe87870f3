//! Runs a model in every order, as the code is and with one place of it broken.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

/// Name of the threads in which models run.
const EXPLORER: &str = "explorer";

/// A place in a source file of the product.
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
    /// The access is no part any more of the one order in which all processes see SeqCst accesses.
    NoCommonOrder(Site),
    /// Accesses after it may take effect before it.
    NoAcquire(Site),
    /// Accesses before it may take effect after it.
    NoRelease(Site),
    /// The read-modify-write reads, and writes a moment later.
    Torn(Site),
}

impl Fault {
    /// The place that is broken.
    pub fn site(self) -> Site {
        match self {
            Self::NoCommonOrder(site) | Self::NoAcquire(site) | Self::NoRelease(site) | Self::Torn(site) => site,
        }
    }

    /// How the place is broken, for messages.
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
    /// The place of an access; `None` if it is not in a file of the product, but in a model.
    fn of(caller: &'static Location<'static>) -> Option<Self> {
        let (_, file) = caller.file().rsplit_once("../src/")?;
        Some(Self { file, line: caller.line(), column: caller.column() })
    }

    /// The line of source code.
    pub fn source(self) -> String {
        self.lines(1)
    }

    /// The line together with the line before it, which often says why, unless that line is a statement of its own.
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

/// The state of one exploration.
#[derive(Default)]
struct Exploration {
    /// Faults that are planted.
    broken: Vec<Fault>,
    /// Faults that could be planted at the accesses that were met so far.
    possible: BTreeSet<Fault>,
}

thread_local! {
    // The threads of a model are coroutines of one thread.
    static EXPLORATION: RefCell<Exploration> = RefCell::default();
}

/// The ordering that an access at `caller` has in this exploration.
pub(crate) fn ordering(caller: &'static Location<'static>, wanted: Ordering) -> Ordering {
    let Some(site) = Site::of(caller) else { return wanted };
    let acquires = matches!(wanted, Ordering::AcqRel | Ordering::Acquire);
    let releases = matches!(wanted, Ordering::AcqRel | Ordering::Release);
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

/// Whether a read-modify-write at `caller` reads first and writes later in this exploration.
pub(crate) fn is_torn(caller: &'static Location<'static>) -> bool {
    let Some(site) = Site::of(caller) else { return false };
    EXPLORATION.with_borrow_mut(|exploration| {
        exploration.possible.insert(Fault::Torn(site));
        exploration.broken.contains(&Fault::Torn(site))
    })
}

/// What came of an exploration.
pub struct Explored {
    /// What the model failed with; `None` if it holds.
    pub failure: Option<String>,
    /// Number of interleavings that were explored.
    pub executions: usize,
    /// Every fault that could have been planted.
    pub possible: BTreeSet<Fault>,
}

/// Explore `model`, with the faults in `broken`, in every order in which its threads are interrupted at most
/// `interruptions` times.
pub fn explore(model: fn(), interruptions: usize, broken: &[Fault]) -> Explored {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        // A panic of a model is an answer, and not to be printed.
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
