//! Repair without a supervisor: the participants of a shared replay look after each other.
//!
//! Whoever finds, now and then or because something is in its way, that another participant has died (the kernel says
//! so, see [`has_exited`]) takes the repairer's word and does what the supervisor of a run would do. Repairs are
//! idempotent, so that a repairer that dies is itself repaired after by the next one, who takes the word over.

use super::repair::{open, repair, wait_until_outside};
use super::schema::Schema;
use super::staging::StagingArea;
use super::table::Replay;
use crate::segment::control::Control;
use crate::segment::processes::{ProcessSlot, SlotState, has_exited, start_time};
use crate::segment::view::low;
use crate::segment::{Region, Segment};
use crate::sync::{Ordering, monotonic_ns};

/// How long a place may be promised to a process that has not taken it: it takes microseconds unless that process died.
const PROMISE_NS: u64 = 10_000_000_000;

/// Repair after every participant that has died. Returns the slots that are free again.
///
/// Nothing happens while another living participant repairs, and a participant that stays inside an operation (stopped
/// by a debugger, say) puts the repair off: nobody can kill it here.
pub fn sweep(segment: &Segment, schema: &Schema) -> Vec<usize> {
    let dead: Vec<ProcessSlot<'_>> = segment.processes().iter().filter(|&slot| is_dead(slot)).collect();
    let control = segment.control();
    if dead.is_empty() && !gate_was_left_closed(control) {
        return Vec::new();
    }
    let Some(_turn) = Turn::take(control) else { return Vec::new() };
    let mut replay = Replay::new(segment, schema.clone(), None);
    let mut freed = Vec::new();
    for slot in dead {
        let layout = segment.layout().parameters();
        let area = (slot.index() < layout.stagers).then(|| StagingArea::new(segment.words(Region::Staging), layout, slot.index()));
        // Somebody else may have been faster, and the slot may be a new process's by now.
        if !is_dead(slot) {
            continue;
        }
        if !repair(segment, &mut replay, slot, area).stuck.is_empty() {
            continue;
        }
        slot.release();
        freed.push(slot.index());
    }
    // A repairer that died may have closed the gate for a repair that has been done again above.
    open(control);
    freed
}

/// Empty the replay: behind the gate, as a repair. `false` when somebody else repairs, or a participant stays inside an
/// operation; then nothing was done.
pub fn clear(segment: &Segment, replay: &mut Replay<'_>) -> bool {
    let control = segment.control();
    let Some(_turn) = Turn::take(control) else { return false };
    control.gate().store(1, Ordering::SeqCst);
    let quiet = wait_until_outside(segment.processes(), None).is_empty();
    if quiet {
        replay.remove_everything();
    }
    open(control);
    quiet
}

/// Called by whoever waits at a closed gate: whoever closed it may be dead.
pub(super) fn relieve(segment: &Segment, schema: &Schema) {
    if gate_was_left_closed(segment.control()) {
        sweep(segment, schema);
    }
}

fn is_dead(slot: ProcessSlot<'_>) -> bool {
    match slot.state() {
        SlotState::Free => false,
        SlotState::Reserved => monotonic_ns().saturating_sub(slot.heartbeat_ns()) > PROMISE_NS,
        SlotState::Live => has_exited(slot.pid(), slot.start_time()),
    }
}

/// Whether a repairer died behind a closed gate. A supervisor's gate is not ours to open: it leaves the word at 0.
fn gate_was_left_closed(control: Control<'_>) -> bool {
    let repairer = control.repairer().load(Ordering::SeqCst);
    repairer != 0 && control.gate().load(Ordering::SeqCst) != 0 && is_gone(repairer)
}

fn is_gone(repairer: u64) -> bool {
    let pid = low(repairer);
    let started = start_time(pid).unwrap_or(0);
    has_exited(pid, started) || started & START_MASK != repairer >> 32
}

const START_MASK: u64 = u32::MAX as u64;

/// The right to repair, given back on drop.
pub(super) struct Turn<'a> {
    control: Control<'a>,
}

impl<'a> Turn<'a> {
    /// Take the turn, from a dead repairer too; `None` while a living one has it.
    pub(super) fn take(control: Control<'a>) -> Option<Self> {
        let pid = std::process::id();
        let own = u64::from(pid) | (start_time(pid).unwrap_or(0) & START_MASK) << 32;
        let word = control.repairer();
        let holder = word.load(Ordering::SeqCst);
        if holder != 0 && !is_gone(holder) {
            return None;
        }
        word.compare_exchange(holder, own, Ordering::SeqCst, Ordering::SeqCst).is_ok().then_some(Self { control })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.control.repairer().store(0, Ordering::SeqCst);
    }
}
