//! The orderings that no model misses when they are weakened, and why the code has them all the same.

use shoal_models::explore::Fault;

/// The kernel says that a process is gone, or that a message has come: a process that acts on that sees all that was
/// done before. A model's threads do not die, and the ordering is for readers that act on less.
const KERNEL: &str = "who acts on it was told by the kernel, which orders more";
/// Another ordering in the same step gives the same.
const TWICE: &str = "another access of the same step orders it too; either may go, not both";
/// The exchange succeeds only on the value that an acquiring load has just seen, and a model misses that load if it
/// is weaker.
const LOADED_BEFORE: &str = "it succeeds on what an acquiring load of the same word has seen, and no other";
/// Nothing that others must see comes before it.
const NOTHING_BEFORE: &str = "what others must see is stored after it, behind a fence of its own";
/// A read-modify-write decides, and that sees the newest value whatever its ordering.
const CHANGED: &str = "a change of the word decides, so acquire and release would do";
/// A process that does not see it yet sees it at a later look, and loses nothing but time.
const LOOKED_AT_AGAIN: &str = "who misses it looks again and is late, not wrong";

/// A process that takes a waiter's bit has read that waiter's announcement, so it cannot raise a count from before it.
const TAKEN: &str = "who calls a waiter has taken its bit, and looks at the count after it";

/// File, fault, what stands there, and the reason.
type Reason = (&'static str, &'static str, &'static str, &'static str);

const KEPT: &[Reason] = &[
    ("replay/gate.rs", "without SeqCst", "self.control.gate().store(0,", LOOKED_AT_AGAIN),
    ("segment/processes.rs", "without SeqCst", "inside.store(0, Ordering::SeqCst)", LOOKED_AT_AGAIN),
    ("replay/leaderless.rs", "without SeqCst", "let is_closed = control.gate().load(", KERNEL),
    ("replay/leaderless.rs", "without SeqCst", "let repairer = control.repairer().load(", KERNEL),
    ("replay/leaderless.rs", "without SeqCst", "control.clearing().load(Ordering::SeqCst)", KERNEL),
    ("replay/leaderless.rs", "without SeqCst", "let holder = word.load(", CHANGED),
    ("replay/leaderless.rs", "without SeqCst", "word.compare_exchange(holder, NamedProcess::this()", CHANGED),
    ("replay/leaderless.rs", "without SeqCst", "self.control.repairer().store(0,", LOOKED_AT_AGAIN),
    ("replay/leaderless.rs", "without Acquire", "if self.control.clearing().load(Ordering::Acquire)", KERNEL),
    ("segment/control.rs", "without SeqCst", "self.progress().fetch_add(1,", CHANGED),
    ("segment/control.rs", "without SeqCst", "self.waiters().swap(0,", CHANGED),
    ("segment/control.rs", "without SeqCst", "let seen = self.progress().load(", CHANGED),
    ("segment/control.rs", "without SeqCst", "self.waiters().fetch_or(bit,", CHANGED),
    ("segment/control.rs", "read, then written", "self.progress().fetch_add(1,", TAKEN),
    ("replay/staging.rs", "without Acquire", "self.words[0].load(Ordering::Acquire)", KERNEL),
    ("replay/staging.rs", "without Release", "self.words[0].store(committed as u64", KERNEL),
    ("replay/store.rs", "without Acquire", "compare_exchange(old.0, new.0,", LOADED_BEFORE),
    ("replay/store.rs", "without Release", "compare_exchange(old.0, new.0,", KERNEL),
    ("segment/board.rs", "without Acquire", "self.words[0].load(Ordering::Acquire)", TWICE),
    ("segment/board.rs", "without Acquire", "buffer[0].load(Ordering::Acquire) != version", TWICE),
    ("segment/board.rs", "without Release", "buffer[0].store(version,", TWICE),
    ("segment/board.rs", "without Release", "self.words[0].store(version,", TWICE),
    ("segment/processes.rs", "without Acquire", "compare_exchange(owner.0, reserved.0,", TWICE),
    ("segment/processes.rs", "without Release", "compare_exchange(owner.0, reserved.0,", NOTHING_BEFORE),
    ("segment/processes.rs", "without Acquire", "compare_exchange(promised.0, live.0,", LOADED_BEFORE),
    ("segment/processes.rs", "without Release", "every store of the repair comes after this one.", KERNEL),
    ("segment/processes.rs", "without Release", "self.words[Self::IN_OPERATION].store(0, Ordering::Release)", KERNEL),
];

fn is_about(&(file, name, part, _): &Reason, fault: Fault) -> bool {
    fault.site().file == file && fault.name() == name && fault.site().passage().contains(part)
}

/// The reason for an ordering that no model misses.
pub fn reason(fault: Fault) -> Option<&'static str> {
    KEPT.iter().find(|kept| is_about(kept, fault)).map(|&(.., reason)| reason)
}

/// Whether the reason is that another access orders the same.
pub fn is_twice(fault: Fault) -> bool {
    reason(fault) == Some(TWICE)
}

/// The entries of [`KEPT`] that are wrong: some model misses the place, or the code does not have it any more.
pub fn outdated(never_missed: &[Fault]) -> Vec<&'static str> {
    let is_outdated = |kept: &&Reason| !never_missed.iter().any(|&fault| is_about(kept, fault));
    KEPT.iter().filter(is_outdated).map(|&(_, _, part, _)| part).collect()
}
