//! Repair without a supervisor: the participants of a shared replay look after each other.
//!
//! Each participant looks now and then, and when something is in its way, whether another one has died: the kernel
//! says so (see `has_exited`). The participant that finds a death takes the repairer's word and does what the
//! supervisor of a run would do. If the repairer dies, the next one takes the word over and repairs after it as well:
//! a repair announces itself in the dead participant's slot before it changes anything, and the emptying of a replay
//! in a word of its own.

use super::gate::ClosedGate;
use super::repair::{is_unfinished, repair};
use super::schema::Schema;
use super::store::RowStore;
use super::sum_tree::SumTree;
use crate::segment::control::{Control, RunState};
use crate::segment::pidfd::has_exited;
use crate::segment::processes::ProcessSlot;
use crate::segment::{NamedProcess, Segment};
use crate::sync::{Ordering, fence, monotonic_ns};

/// How long no repair is tried after a process inside an operation has put one off. Each attempt closes the gate for
/// as long as its patience lasts, which is a small part of this.
const REST_NS: u64 = 5_000_000_000;
/// How long the sentinel of a dead supervisor may take to repair and open the gate: many times what it needs.
const SENTINEL_NS: u64 = 5_000_000_000;

/// Repair after every participant that has died. Returns the slots that are free again.
///
/// Nothing happens while another living participant repairs. A participant that stays inside an operation (stopped by a
/// debugger, say) puts the repair off, since nobody may kill it here; nobody tries again for some seconds then.
///
/// A tree that is not exact after a repair poisons the replay ([`RunState::Poisoned`]): nobody may train on it until it
/// has been emptied.
pub fn sweep(segment: &Segment, schema: &Schema) -> Vec<usize> {
    let control = segment.control();
    if !was_left(control) && !segment.processes().iter().any(|slot| slot.dead_owner().is_some()) {
        return Vec::new();
    }
    let Some(repairer) = Repairer::take(segment) else { return Vec::new() };
    // A gate that is closed although nobody repairs was closed by a repairer that died, perhaps with its work half
    // done.
    let is_closed = control.gate().load(Ordering::SeqCst) != 0;
    repairer.repair_after_the_dead(segment, schema, is_closed || !is_put_off(control)).0
}

/// Whether a repair was put off lately.
fn is_put_off(control: Control<'_>) -> bool {
    // Relaxed: the word stands for nothing but itself.
    monotonic_ns() < control.repair_not_before_ns().load(Ordering::Relaxed)
}

fn put_off(control: Control<'_>) {
    control.repair_not_before_ns().store(monotonic_ns() + REST_NS, Ordering::Relaxed);
}

/// Repair after an operation of this process in `slot` that ended half-way, by a panic, and free the slot. `false` if
/// another participant repairs, or one stays inside an operation; nothing was done then.
pub fn repair_and_release(segment: &Segment, schema: &Schema, slot: ProcessSlot<'_>) -> bool {
    if is_put_off(segment.control()) {
        return false;
    }
    let Some(repairer) = Repairer::take(segment) else { return false };
    let repaired = repair(segment, schema, slot);
    if !repaired.stuck.is_empty() {
        put_off(repairer.control);
        return false;
    }
    if !repaired.exact {
        repairer.control.set_run_state(RunState::Poisoned);
    }
    slot.release();
    true
}

/// Repair a copy that a fork has made of a private replay, and free all its slots: the threads that were at work in
/// them exist in the parent alone.
pub fn repair_forked_copy(segment: &Segment, schema: &Schema) {
    let control = segment.control();
    let processes = segment.processes();
    // The repairer may be a thread of the parent, which does not exist here.
    control.repairer().store(0, Ordering::SeqCst);
    if control.clearing().load(Ordering::Relaxed) != 0 {
        remove_everything(segment);
    }
    ClosedGate::open(control);
    // One rebuild of the tree serves all slots, and nobody has to be waited for: so one slot alone stays inside an
    // operation.
    let inside = processes.iter().any(ProcessSlot::in_operation);
    processes.iter().for_each(ProcessSlot::complete_repair);
    if inside {
        processes.slot(0).announce_repair();
    }
    for slot in processes.iter() {
        if !repair(segment, schema, slot).exact {
            control.set_run_state(RunState::Poisoned);
        }
        slot.release();
    }
}

/// What keeps a replay from being emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTheWay {
    /// Another process that repairs or empties it, or may be doing so: this process cannot tell who is dead.
    Repairer,
    /// A participant that stays inside an operation.
    Participant,
}

/// Empty the replay, behind the gate as a repair.
///
/// # Errors
/// What is in the way. Nothing was removed then.
pub fn clear(segment: &Segment, schema: &Schema) -> Result<(), InTheWay> {
    let control = segment.control();
    let repairer = Repairer::take(segment).ok_or(InTheWay::Repairer)?;
    // What dead processes had staged is inserted first, since it is to be removed as well.
    let (_, complete) = repairer.repair_after_the_dead(segment, schema, true);
    if !complete {
        return Err(InTheWay::Participant);
    }
    let gate = ClosedGate::close(segment, None).map_err(|_| InTheWay::Participant)?;
    control.clearing().store(1, Ordering::Relaxed);
    // Release fence: the announcement comes before whatever is removed.
    fence(Ordering::Release);
    remove_everything(segment);
    drop(gate);
    // Processes that wait for room have it now.
    control.signal_progress();
    Ok(())
}

/// Remove every transition and reset every count, then announce that this is done. To be called alone behind the
/// gate, after the emptying was announced. If this process dies, the next repairer begins again with the first step.
fn remove_everything(segment: &Segment) {
    let control = segment.control();
    let store = RowStore::of(segment);
    // Slots that nobody has claimed name nothing. They are left alone, since their memory may not be allocated before it
    // is written.
    let claimed = usize::try_from(control.claimed().load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    (0..store.capacity()).take(claimed).for_each(|slot| store.empty(slot));
    if let Some(tree) = SumTree::of(segment) {
        tree.empty();
    }
    // Release: an emptying that begins again goes by `claimed`, so every slot was emptied before this store.
    control.claimed().store(0, Ordering::Release);
    for count in [control.inserted(), control.sampled(), control.largest_priority()] {
        count.store(0, Ordering::Relaxed);
    }
    if control.run_state() == RunState::Poisoned {
        control.set_run_state(RunState::Running);
    }
    // Release: everything was removed before this store.
    control.clearing().store(0, Ordering::Release);
}

/// Wait until the gate is open, and take over from a participant that has died behind it. `false` if `idle`, which is
/// called before every sleep, returns `false`: in a run, when the supervisor has died.
pub fn wait_until_open(segment: &Segment, schema: &Schema, mut idle: impl FnMut() -> bool) -> bool {
    while segment.control().gate().load(Ordering::Relaxed) != 0 {
        if !idle() {
            return false;
        }
        segment.control().wait_for_gate();
        take_over_if_left(segment, schema);
    }
    true
}

/// The process that repairs now, if one does.
pub fn repairer(segment: &Segment) -> Option<u32> {
    NamedProcess::from_word(segment.control().repairer().load(Ordering::Relaxed)).map(NamedProcess::pid)
}

/// For a process that waits at a closed gate: repair if the participant that closed it is dead. A living one is
/// waited for, however long it takes: it may have been stopped, and goes on where it stopped.
fn take_over_if_left(segment: &Segment, schema: &Schema) {
    if was_left(segment.control()) {
        sweep(segment, schema);
    }
}

/// As [`take_over_if_left`], for a process that waits at the gate in the middle of its work and cannot leave.
///
/// # Panics
/// If the supervisor of a run closed the gate and died, and its sentinel does not open the gate either.
pub(super) fn take_over_from_the_dead(segment: &Segment, schema: &Schema) {
    if !segment.has_supervisor() {
        return take_over_if_left(segment, schema);
    }
    let pid = segment.identity().supervisor_pid;
    if !has_exited(pid, segment.identity().supervisor_start_time) {
        return;
    }
    let give_up_ns = monotonic_ns() + SENTINEL_NS;
    while segment.control().gate().load(Ordering::SeqCst) != 0 {
        assert!(monotonic_ns() < give_up_ns, "the gate is closed for ever: the supervisor (process {pid}) died during a repair");
        segment.control().wait_for_gate();
    }
}

/// Whether a participant died behind a closed gate, or gave up while the replay was half emptied. A gate that a
/// supervisor has closed is not a participant's to open: the supervisor leaves both words at 0.
fn was_left(control: Control<'_>) -> bool {
    let repairer = control.repairer().load(Ordering::SeqCst);
    let is_left = match NamedProcess::from_word(repairer) {
        None => control.clearing().load(Ordering::SeqCst) != 0,
        Some(repairer) => repairer.has_ended(),
    };
    is_left && control.gate().load(Ordering::SeqCst) != 0
}

/// The right to repair, until it is dropped.
struct Repairer<'a> {
    control: Control<'a>,
}

impl<'a> Repairer<'a> {
    /// Become the repairer, also in place of a dead one. `None` while a living one has the word, and in a process
    /// that has got into another namespace by a fork, where it cannot tell who is dead.
    fn take(segment: &'a Segment) -> Option<Self> {
        segment.check_namespaces().ok()?;
        let control = segment.control();
        let word = control.repairer();
        let holder = word.load(Ordering::SeqCst);
        if NamedProcess::from_word(holder).is_some_and(|holder| !holder.has_ended()) {
            return None;
        }
        word.compare_exchange(holder, NamedProcess::this().word(), Ordering::SeqCst, Ordering::SeqCst).is_ok().then_some(Self { control })
    }

    /// Finish what a dead repairer left, and repair after every dead participant; unless `may_close` the gate for
    /// that, only after those that left nothing unfinished. Returns the slots that are free again, and whether
    /// nothing is left to do.
    fn repair_after_the_dead(&self, segment: &Segment, schema: &Schema, mut may_close: bool) -> (Vec<usize>, bool) {
        // First of all, since nobody may enter before this: what dead processes had staged goes into the emptied
        // replay.
        if self.control.clearing().load(Ordering::Acquire) != 0 {
            let Ok(_gate) = ClosedGate::close(segment, None) else { return (Vec::new(), false) };
            remove_everything(segment);
        }
        let mut freed = Vec::new();
        let mut complete = true;
        for slot in segment.processes().iter() {
            let Some(owner) = slot.dead_owner() else { continue };
            if !may_close && is_unfinished(segment, slot) {
                complete = false;
                continue;
            }
            let repaired = repair(segment, schema, slot);
            if !repaired.stuck.is_empty() {
                put_off(self.control);
                may_close = false;
                complete = false;
                continue;
            }
            if !repaired.exact {
                self.control.set_run_state(RunState::Poisoned);
            }
            if slot.release_from(owner) {
                freed.push(slot.index());
            }
        }
        // A repairer may have died behind the gate with its work done.
        ClosedGate::open(self.control);
        (freed, complete)
    }
}

impl Drop for Repairer<'_> {
    fn drop(&mut self) {
        self.control.repairer().store(0, Ordering::SeqCst);
    }
}
