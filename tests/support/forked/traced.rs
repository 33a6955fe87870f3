//! A process that is taken through its work one machine instruction at a time, and the states in which a kill would leave
//! the segment.

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use shoal::segment::pidfd::has_exited;
use shoal::segment::processes::SLOT_WORDS;
use shoal::segment::{Region, Segment, system};
use shoal::sync::{AtomicU64, Ordering};

/// A process id that the kernel never gives.
const NOBODY: u64 = 0x7fff_ffff;
const PID_MASK: u64 = u32::MAX as u64;

/// A child that stands still before its operation and takes it one instruction at a time.
pub struct Traced {
    child: Pid,
}

impl Traced {
    /// Fork a child that prepares its operation, and let it come to where the operation begins.
    pub fn start<O: FnOnce()>(prepare: impl FnOnce() -> O) -> Self {
        let child = system::fork_child(|| {
            let operation = prepare();
            ptrace::traceme().expect("being traced by the parent");
            raise(Signal::SIGSTOP).expect("raise");
            operation();
            raise(Signal::SIGSTOP).expect("raise");
            0
        });
        let traced = Self { child: child.expect("fork") };
        let status = waitpid(traced.child, None).expect("waitpid");
        assert!(matches!(status, WaitStatus::Stopped(_, Signal::SIGSTOP)), "{status:?}");
        traced
    }

    /// Take one instruction; `false` once the operation is over.
    pub fn step(&self) -> bool {
        ptrace::step(self.child, None).expect("a single step");
        match waitpid(self.child, None).expect("waitpid") {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => true,
            WaitStatus::Stopped(_, Signal::SIGSTOP) => false,
            other => panic!("the traced child came to an end: {other:?}"),
        }
    }

    /// Take so many instructions, or all that there are: an operation that looks at a clock takes more of them one time than another.
    pub fn take_steps(&self, count: usize) {
        let _ = (0..count).all(|_| self.step());
    }

    /// Let it go on until the operation is over.
    pub fn finish(&self) {
        ptrace::cont(self.child, None).expect("letting the child go on");
        let status = waitpid(self.child, None).expect("waitpid");
        assert!(matches!(status, WaitStatus::Stopped(_, Signal::SIGSTOP)), "{status:?}");
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_raw().cast_unsigned()
    }

    /// Take instructions until `there`; panics when the operation is over before.
    pub fn step_until(&self, mut there: impl FnMut() -> bool) {
        while !there() {
            assert!(self.step(), "the operation is over");
        }
    }

    /// Go on to the beginning or the end of the next system call; `false` once the operation is over.
    pub fn next_system_call(&self) -> bool {
        ptrace::syscall(self.child, None).expect("letting the child go on");
        match waitpid(self.child, None).expect("waitpid") {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => true,
            WaitStatus::Stopped(_, Signal::SIGSTOP) => false,
            other => panic!("the traced child came to an end: {other:?}"),
        }
    }

    /// Let the segment name a process that the kernel knows to be gone wherever it names this one, as if it had been
    /// killed: it merely stands still, so that it can take the next instruction once the bytes are put back.
    pub fn bury(&self, segment: &Segment) {
        let pid = u64::from(self.pid());
        let owners = segment.words(Region::Processes).iter().step_by(SLOT_WORDS);
        for word in owners.chain([segment.control().repairer()]) {
            let value = word.load(Ordering::Relaxed);
            if value & PID_MASK == pid {
                word.store(value & !PID_MASK | NOBODY, Ordering::Relaxed);
            }
        }
        assert!(has_exited(NOBODY as u32, 0));
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = kill(self.child, Signal::SIGKILL);
        while waitpid(self.child, None).is_ok_and(|status| !matches!(status, WaitStatus::Signaled(..) | WaitStatus::Exited(..))) {}
    }
}

/// All shared bytes behind the header, region by region.
pub struct Snapshot {
    regions: Vec<Vec<u64>>,
}

impl Snapshot {
    /// What they are now.
    pub fn take(segment: &Segment) -> Self {
        let words = |region| segment.words(region).iter().map(|word| word.load(Ordering::Relaxed)).collect();
        Self { regions: Region::ALL.into_iter().map(words).collect() }
    }

    /// Whether they are so still. Asked after every instruction, so eight words at a time and without a branch for each: one word after
    /// the other took four fifths of the time of a sweep.
    pub fn is_current(&self, segment: &Segment) -> bool {
        let difference = |word: &AtomicU64, value: u64| word.load(Ordering::Relaxed) ^ value;
        Region::ALL.into_iter().zip(&self.regions).all(|(region, values)| {
            let ((eights, words), (eight_values, values)) = (segment.words(region).as_chunks::<8>(), values.as_chunks::<8>());
            let mut different = 0;
            for (words, values) in eights.iter().zip(eight_values) {
                for index in 0..8 {
                    different |= difference(&words[index], values[index]);
                }
            }
            different == 0 && words.iter().zip(values).all(|(word, &value)| difference(word, value) == 0)
        })
    }

    /// Make them so again.
    pub fn put_back(&self, segment: &Segment) {
        for (region, values) in Region::ALL.into_iter().zip(&self.regions) {
            for (word, &value) in segment.words(region).iter().zip(values) {
                if word.load(Ordering::Relaxed) != value {
                    word.store(value, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Take a child through its operation, and hand each different state of the segment to `visit`, with the number of the
/// instruction that left it. Returns instructions and states.
pub fn sweep(segment: &Segment, traced: &Traced, mut visit: impl FnMut(usize)) -> (usize, usize) {
    let (mut instructions, mut states) = (0, 0);
    let mut last: Option<Snapshot> = None;
    loop {
        if last.as_ref().is_none_or(|last| !last.is_current(segment)) {
            let now = Snapshot::take(segment);
            visit(instructions);
            now.put_back(segment);
            last = Some(now);
            states += 1;
        }
        if !traced.step() {
            return (instructions, states);
        }
        instructions += 1;
    }
}

/// What a sweep covered, for whoever runs it with `--no-capture`.
pub fn report(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
