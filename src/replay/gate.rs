//! The closed gate: behind it a repair has the replay to itself.
//!
//! The gate is the only thing that lets one process hold up others, so it opens by itself when it goes out of scope. It
//! stays closed in one case: a replay that is half emptied must not be met by anybody (see `leaderless::clear`).

use std::time::Duration;

use crate::segment::Segment;
use crate::segment::control::Control;
use crate::segment::processes::{ProcessSlot, ProcessTable, SlotState};
use crate::sync::{Ordering, monotonic_ns, sleep, wake_all};

/// How long live processes get to finish the operation they are in. Microseconds do unless a process is not scheduled:
/// on a machine with three times as many busy processes as cores some needed more than 50 ms.
const GATE_PATIENCE_NS: u64 = 250_000_000;
/// Most of the time between two looks that counts. If more passes, this process has stood still, and perhaps the others
/// as well: all may have been stopped at once. So nobody is reported who was not seen inside 25 times in a row.
pub(crate) const LONGEST_STEP_NS: u64 = 10_000_000;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_micros(100);

/// The closed gate. No process is inside an operation, except those that were not to be waited for.
pub(super) struct ClosedGate<'a> {
    control: Control<'a>,
    is_alone: bool,
}

impl<'a> ClosedGate<'a> {
    /// Close the gate and wait until every living process is outside, except the one in slot `dead`, which the caller
    /// knows to be gone.
    ///
    /// # Errors
    /// The slots of the processes that stay inside for too long. The gate is then open again.
    pub(super) fn close(segment: &'a Segment, dead: Option<usize>) -> Result<Self, Vec<usize>> {
        Self::close_beside(segment, dead, &[])
    }

    /// As [`Self::close`], but the processes in the slots `beside` may stay inside and are not waited for.
    pub(super) fn close_beside(segment: &'a Segment, dead: Option<usize>, beside: &[usize]) -> Result<Self, Vec<usize>> {
        let mut gate = Self { control: segment.control(), is_alone: true };
        // SeqCst: see `ProcessSlot::begin_operation`.
        gate.control.gate().store(1, Ordering::SeqCst);
        let mut stuck = wait_until_outside(segment.processes(), dead, beside, monotonic_ns);
        gate.is_alone = stuck.is_empty();
        stuck.retain(|slot| !beside.contains(slot));
        if stuck.is_empty() { Ok(gate) } else { Err(stuck) }
    }

    /// Whether nobody else is inside an operation.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Open a gate that a dead repairer left closed.
    pub(super) fn open(control: Control<'a>) {
        drop(Self { control, is_alone: true });
    }
}

/// Open the gate that a dead supervisor left closed, once nothing is left that it has to be closed for.
pub fn open_gate_of_the_dead(segment: &Segment) {
    ClosedGate::open(segment.control());
}

impl Drop for ClosedGate<'_> {
    fn drop(&mut self) {
        if self.control.clearing().load(Ordering::Relaxed) == 0 {
            self.control.gate().store(0, Ordering::SeqCst);
            wake_all(self.control.gate());
        }
    }
}

/// Wait until nobody is inside but processes in the slots `beside`, or until patience ends, by the clock `now_ns`.
/// Returns the slots of those that have been inside all the time.
pub(crate) fn wait_until_outside(
    processes: ProcessTable<'_>,
    dead: Option<usize>,
    beside: &[usize],
    mut now_ns: impl FnMut() -> u64,
) -> Vec<usize> {
    let living = processes.iter().filter(|slot| Some(slot.index()) != dead);
    let mut inside: Vec<ProcessSlot<'_>> = living.filter(|&slot| is_living_inside(slot)).collect();
    let mut last_look_ns = now_ns();
    let mut waited_ns = 0;
    while waited_ns < GATE_PATIENCE_NS && !inside.iter().all(|slot| beside.contains(&slot.index())) {
        sleep(PAUSE);
        // The clock before the look: after a stop between the two, the look is new and the clock old.
        let look_ns = now_ns();
        waited_ns += (look_ns - last_look_ns).min(LONGEST_STEP_NS);
        last_look_ns = look_ns;
        // Who has been outside since the gate was closed does not get in, and seems to be inside for an instant
        // whenever it tries.
        inside.retain(|&slot| is_living_inside(slot));
    }
    inside.into_iter().map(ProcessSlot::index).collect()
}

fn is_living_inside(slot: ProcessSlot<'_>) -> bool {
    // The in-operation word first: its load is the one that is ordered after the closing of the gate. Were the state
    // looked at before it, a process that came and went inside meanwhile could be passed over (acquire loads may be
    // satisfied before an earlier store is visible).
    slot.in_operation()
        && slot.state() == SlotState::Live
        // One that died inside an operation changes nothing any more and gets a repair of its own.
        && slot.dead_owner().is_none()
}
