//! Repair without a supervisor: the participants of a shared replay look after each other.
//!
//! Whoever finds, now and then or because something is in its way, that another participant has died (the kernel says
//! so, see `has_exited`) takes the repairer's word and does what the supervisor of a run would do. A repairer that dies
//! is itself repaired after by the next one, who takes the word over: a repair says in the dead participant's slot that
//! it is under way before it changes anything, and so does the emptying of a replay in a word of its own.

use super::gate::ClosedGate;
use super::repair::{is_unfinished, repair};
use super::schema::Schema;
use super::store::TransitionStore;
use super::sum_tree::SumTree;
use crate::segment::control::{Control, RunState};
use crate::segment::pidfd::has_exited;
use crate::segment::processes::ProcessSlot;
use crate::segment::{NamedProcess, Segment};
use crate::sync::{Ordering, fence, monotonic_ns};

/// How long a repair rests that somebody inside an operation has put off. Each attempt closes the gate for as long as its patience
/// lasts, which is little of this.
const REST_NS: u64 = 5_000_000_000;
/// How long the sentinel of a dead supervisor may take to repair and open the gate: many times what it needs.
const SENTINEL_NS: u64 = 5_000_000_000;

/// Repair after every participant that has died. Returns the slots that are free again.
///
/// Nothing happens while another living participant repairs, and a participant that stays inside an operation (stopped
/// by a debugger, say) puts the repair off: nobody can kill it here. Then nobody tries again for some seconds.
///
/// A tree that is not exact after a repair poisons the replay ([`RunState::Poisoned`]): nobody may train on it until it
/// has been emptied.
pub fn sweep(segment: &Segment, schema: &Schema) -> Vec<usize> {
    let control = segment.control();
    if !was_left(control) && !segment.processes().iter().any(|slot| slot.dead_owner().is_some()) {
        return Vec::new();
    }
    let Some(repairer) = Repairer::take(segment) else { return Vec::new() };
    // A gate that is closed although nobody repairs now was closed by a repairer that died, perhaps with its work half done.
    let is_closed = control.gate().load(Ordering::SeqCst) != 0;
    repairer.repair_after_the_dead(segment, schema, is_closed || !rests(control)).0
}

/// Whether a repair was put off lately.
fn rests(control: Control<'_>) -> bool {
    // Relaxed: the word stands for nothing but itself.
    monotonic_ns() < control.repair_not_before_ns().load(Ordering::Relaxed)
}

fn put_off(control: Control<'_>) {
    control.repair_not_before_ns().store(monotonic_ns() + REST_NS, Ordering::Relaxed);
}

/// Repair after an operation of this process in `slot` that ended half-way, by a panic, and free the slot. `false` when
/// somebody else repairs, or a participant stays inside an operation; then nothing was done.
pub fn give_up(segment: &Segment, schema: &Schema, slot: ProcessSlot<'_>) -> bool {
    if rests(segment.control()) {
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

/// Repair in a copy, made by a fork, of a replay that was its process's alone, and free all places: whoever was at work in them
/// stayed behind in the parent.
pub fn take_over(segment: &Segment, schema: &Schema) {
    let (control, processes) = (segment.control(), segment.processes());
    // The repairer may be a thread that is not here.
    control.repairer().store(0, Ordering::SeqCst);
    if control.clearing().load(Ordering::Relaxed) != 0 {
        remove_everything(segment);
    }
    ClosedGate::open(control);
    // One rebuilding of the tree serves all, and nobody is to be waited for.
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

/// Who keeps a replay from being emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTheWay {
    /// Somebody else who repairs or empties it, or may: this process cannot tell who is dead.
    Repairer,
    /// A participant that stays inside an operation.
    Participant,
}

/// Empty the replay: behind the gate, as a repair.
///
/// # Errors
/// Somebody is in the way. Then nothing was removed.
pub fn clear(segment: &Segment, schema: &Schema) -> Result<(), InTheWay> {
    let control = segment.control();
    let repairer = Repairer::take(segment).ok_or(InTheWay::Repairer)?;
    // What the dead had staged belongs to what is removed.
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
    // Whoever waits for room has it now.
    control.signal_progress();
    Ok(())
}

/// Forget every transition and count, and say that this is done. Alone behind the gate, once it has been announced. Each
/// step may be done again from the beginning, by the next repairer.
fn remove_everything(segment: &Segment) {
    let (control, store) = (segment.control(), TransitionStore::of(segment));
    (0..store.capacity()).for_each(|slot| store.empty(slot));
    if let Some(tree) = SumTree::of(segment) {
        tree.empty();
    }
    for count in [control.claimed(), control.inserted(), control.sampled(), control.largest_priority()] {
        count.store(0, Ordering::Relaxed);
    }
    if control.run_state() == RunState::Poisoned {
        control.set_run_state(RunState::Running);
    }
    // Release: everything was removed before.
    control.clearing().store(0, Ordering::Release);
}

/// Wait until the gate is open, looking after whoever may have died behind it. `idle` is called before every sleep and
/// may end the waiting by returning `false`, which is then the answer: in a run, when the supervisor has died.
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

/// Called by whoever waits at a closed gate: whoever closed it may be dead. A living one is waited for, however long it
/// takes: it may have been stopped, and goes on where it stopped.
fn take_over_if_left(segment: &Segment, schema: &Schema) {
    if was_left(segment.control()) {
        sweep(segment, schema);
    }
}

/// As [`take_over_if_left`], for who is at the gate in the middle of its work and cannot leave.
///
/// # Panics
/// When it was the supervisor of a run, that is dead, and its sentinel does not open the gate either.
pub(super) fn take_over_from_the_dead(segment: &Segment, schema: &Schema) {
    if !segment.has_supervisor() {
        return take_over_if_left(segment, schema);
    }
    let (pid, started) = (segment.identity().supervisor_pid, segment.identity().supervisor_start_time);
    if !has_exited(pid, started) {
        return;
    }
    let give_up_ns = monotonic_ns() + SENTINEL_NS;
    while segment.control().gate().load(Ordering::SeqCst) != 0 {
        assert!(monotonic_ns() < give_up_ns, "the gate is closed for ever: the supervisor (process {pid}) died during a repair");
        segment.control().wait_for_gate();
    }
}

/// Whether somebody died behind a closed gate, or gave up while the replay was half emptied. A supervisor's gate is not
/// ours to open: it leaves both words at 0.
fn was_left(control: Control<'_>) -> bool {
    let repairer = control.repairer().load(Ordering::SeqCst);
    let is_left = match NamedProcess::from_word(repairer) {
        None => control.clearing().load(Ordering::SeqCst) != 0,
        Some(repairer) => repairer.has_ended(),
    };
    is_left && control.gate().load(Ordering::SeqCst) != 0
}

/// Who may repair, until it is dropped.
struct Repairer<'a> {
    control: Control<'a>,
}

impl<'a> Repairer<'a> {
    /// Become the repairer, in place of a dead one too; `None` while a living one has it, and in a process that has got into another
    /// namespace by a fork, where it cannot tell who is dead.
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

    /// Finish what a dead repairer left, and repair after every dead participant; unless `may_close` the gate, only after those
    /// that left nothing undone. Returns the slots that are free again, and whether there is nothing left to do.
    fn repair_after_the_dead(&self, segment: &Segment, schema: &Schema, mut may_close: bool) -> (Vec<usize>, bool) {
        // First of all, since nobody may get in before: what the dead had staged goes into the emptied replay.
        if self.control.clearing().load(Ordering::Acquire) != 0 {
            let Ok(_gate) = ClosedGate::close(segment, None) else { return (Vec::new(), false) };
            remove_everything(segment);
        }
        let (mut freed, mut complete) = (Vec::new(), true);
        for slot in segment.processes().iter() {
            let Some(owner) = slot.dead_owner() else { continue };
            if !may_close && is_unfinished(segment, slot) {
                complete = false;
                continue;
            }
            let repaired = repair(segment, schema, slot);
            if !repaired.stuck.is_empty() {
                put_off(self.control);
                (may_close, complete) = (false, false);
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
