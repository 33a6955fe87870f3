//! Two processes and what lies between them: how long a message takes, and how many come through.

use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use shoal::segment::control::RunState;
use shoal::segment::{Description, Layout, Region, Segment, SegmentSizes, system};
use shoal::sync::{AtomicU64, Ordering, monotonic_ns, spin_loop};

/// Most messages of one measurement, and the fewest, however long they take.
const MOST_MESSAGES: usize = 4_000;
const FEWEST_MESSAGES: usize = 40;
/// Messages at the beginning that are not counted: pages and caches are cold.
pub(crate) const WARM_UP: usize = 8;
/// Pause between the moment when a message has been seen and the next message, so that a reader that sleeps is asleep by then.
const GAP_NS: u64 = 30_000;

/// The end of a way that hands messages over.
pub(crate) trait Sender {
    /// Hand over the next message, which is number `number`; the first is 1.
    fn send(&mut self, number: u64);

    /// Work that has to follow a message, and is not measured.
    fn settle(&mut self, _number: u64) {}
}

/// The end of a way that gets messages.
pub(crate) trait Receiver {
    /// Look once: how many messages have come since the last look. All of them are copied when it returns.
    fn look(&mut self) -> usize;

    /// Work that has to follow messages that were found, and is not measured.
    fn settle(&mut self) {}

    /// Wait for a moment. The default returns at once, which shows the time of the way itself: in a run most readers look now and then
    /// anyway.
    fn wait(&mut self) {
        spin_loop();
    }
}

/// A way from one process to another, which nobody has used before.
pub(crate) trait Path {
    /// The writer's end; called in the process that writes.
    fn sender(&self) -> Box<dyn Sender + '_>;

    /// The reader's end; called in the process that reads.
    fn receiver(&self) -> Box<dyn Receiver + '_>;
}

/// How long one measurement may take.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) one_by_one: Duration,
    pub(crate) streamed: Duration,
}

/// Nanoseconds of every message that was sent once the one before had been seen.
#[derive(Default)]
pub(crate) struct Times {
    /// Nanoseconds from before the writer's call to after the reader's.
    pub(crate) seen_ns: Vec<u64>,
    /// Nanoseconds of the writer's call.
    pub(crate) sent_ns: Vec<u64>,
    /// Nanoseconds of the reader's call that found the message.
    pub(crate) copied_ns: Vec<u64>,
}

/// Where the two processes of a measurement meet, beside the way that is measured.
pub(crate) struct Desk {
    segment: Segment,
    /// A core for the writer and one for the reader: on one core they would take turns, and messages would stay in its caches.
    cores: Option<[usize; 2]>,
}

fn two_cores() -> Option<[usize; 2]> {
    let usable = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let mut cores = (0..CpuSet::count()).filter(|&core| usable.is_set(core).unwrap_or(false));
    Some([cores.next()?, cores.next()?])
}

fn bind(core: usize) {
    let mut alone = CpuSet::new();
    alone.set(core).expect("a core that there is");
    sched_setaffinity(Pid::from_raw(0), &alone).expect("one of our cores");
}

impl Desk {
    /// A desk whose store holds no rows, but two numbers for each message.
    pub(crate) fn new() -> Self {
        let layout = Layout::new(SegmentSizes::of_rows(7, MOST_MESSAGES)).expect("small");
        let segment = Segment::create(layout, &Description::default(), false).expect("room in /dev/shm");
        let cores = two_cores();
        cores.inspect(|&[writer, _]| bind(writer));
        Self { segment, cores }
    }

    /// The core of the writer and that of the reader; `None` if both have the same.
    pub(crate) fn cores(&self) -> Option<[usize; 2]> {
        self.cores
    }

    /// One more than the number of messages that have been seen; 0 until the reader is there.
    fn seen(&self) -> &AtomicU64 {
        self.segment.control().sampled()
    }

    fn moments(&self, message: usize) -> &[AtomicU64] {
        &self.segment.words(Region::Store)[8 * (message % MOST_MESSAGES)..][..2]
    }

    /// Start the process that reads, and wait until it is there.
    fn start(&self, path: &dyn Path) -> Pid {
        self.seen().store(0, Ordering::SeqCst);
        self.segment.control().set_run_state(RunState::Running);
        let reader = system::fork_child(|| {
            self.cores.inspect(|&[_, reader]| bind(reader));
            self.read(&mut *path.receiver());
            0
        });
        self.wait_until_seen(0);
        reader.expect("fork")
    }

    fn read(&self, receiver: &mut dyn Receiver) {
        let mut seen = 0;
        self.seen().store(1, Ordering::Release);
        while self.segment.control().run_state() == RunState::Running {
            let begun_ns = monotonic_ns();
            let found = receiver.look();
            if found == 0 {
                receiver.wait();
                continue;
            }
            let moments = self.moments(seen);
            moments[0].store(begun_ns, Ordering::Relaxed);
            moments[1].store(monotonic_ns(), Ordering::Relaxed);
            receiver.settle();
            seen += found;
            // Release: a process that reads this count finds the times of these messages.
            self.seen().store(1 + seen as u64, Ordering::Release);
        }
    }

    fn wait_until_seen(&self, messages: u64) {
        while self.seen().load(Ordering::Acquire) < 1 + messages {
            spin_loop();
        }
    }

    fn end(&self, reader: Pid) {
        self.segment.control().set_run_state(RunState::Stopping);
        assert!(matches!(waitpid(reader, None), Ok(WaitStatus::Exited(_, 0))), "the reader failed");
    }

    /// Send messages one after the other, each once the one before has been seen; what they took is added to `times`.
    pub(crate) fn one_by_one(&self, path: &dyn Path, effort: Effort, times: &mut Times) {
        let reader = self.start(path);
        {
            let mut sender = path.sender();
            let start = Instant::now();
            for message in 0..MOST_MESSAGES {
                let number = 1 + message as u64;
                let begun_ns = monotonic_ns();
                sender.send(number);
                let sent_ns = monotonic_ns();
                sender.settle(number);
                self.wait_until_seen(number);
                let [looked_ns, seen_ns] = [0, 1].map(|index| self.moments(message)[index].load(Ordering::Relaxed));
                if message >= WARM_UP {
                    times.sent_ns.push(sent_ns - begun_ns);
                    times.copied_ns.push(seen_ns - looked_ns);
                    times.seen_ns.push(seen_ns - begun_ns);
                }
                if message >= WARM_UP + FEWEST_MESSAGES && start.elapsed() > effort.one_by_one {
                    break;
                }
                let next_ns = monotonic_ns() + GAP_NS;
                while monotonic_ns() < next_ns {
                    spin_loop();
                }
            }
        }
        self.end(reader);
    }

    /// Send messages as fast as the way itself lets the writer. Returns how many were sent in a second, and how many of them the
    /// reader got whole.
    pub(crate) fn streamed(&self, path: &dyn Path, effort: Effort) -> [f64; 2] {
        let reader = self.start(path);
        let (counts, elapsed) = {
            let mut sender = path.sender();
            let start = Instant::now();
            let mut number = 0;
            while start.elapsed() < effort.streamed {
                number += 1;
                sender.send(number);
                sender.settle(number);
            }
            ([number, self.seen().load(Ordering::Acquire) - 1], start.elapsed())
        };
        self.end(reader);
        counts.map(|count| count as f64 / elapsed.as_secs_f64())
    }
}
