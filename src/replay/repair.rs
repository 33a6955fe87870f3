//! What the supervisor does for a process that died: finish its flush, make the tree exact again.
//!
//! A flush is logged in the staging area itself: a staged transition names its slot before the slot is claimed. So
//! whatever the dead process had begun is found, and finished idempotently: repairing twice changes nothing.

use std::time::{Duration, Instant};

use super::staging::StagingArea;
use super::table::Replay;
use crate::segment::processes::{ProcessSlot, ProcessTable, SlotState, has_exited};
use crate::segment::{Segment, control::Control};
use crate::sync::{Ordering, wake_all};

/// How long live processes get to finish the operation they are in. Microseconds do unless a process is not scheduled:
/// on a machine with three times as many busy processes as cores some needed more than 50 ms.
const GATE_PATIENCE: Duration = Duration::from_millis(250);

/// What a repair found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repair {
    /// Transitions that were being written into the store and were completed.
    pub completed: usize,
    /// Transitions that were staged and have been inserted.
    pub inserted: usize,
    /// Whether the process died inside an operation, so that the tree was rebuilt.
    pub rebuilt_tree: bool,
    /// Whether the tree is exact afterwards. If not, nobody may train on it.
    pub exact: bool,
    /// Processes that did not leave their operation in time: to be killed and repaired too.
    pub stuck: Vec<usize>,
}

/// Repair after the process in `dead`, which the kernel has said is gone. When the result names stuck processes
/// nothing was done: kill them first and call again.
pub fn repair<'a>(segment: &'a Segment, replay: &mut Replay<'a>, dead: ProcessSlot<'a>, area: Option<StagingArea<'a>>) -> Repair {
    let control = replay.control();
    let inside = dead.in_operation();
    let pending = area.map_or(0, StagingArea::pending);
    if !inside && pending == 0 {
        return Repair { exact: true, ..Repair::default() };
    }
    // SeqCst: see `ProcessSlot::begin_operation`.
    control.gate().store(1, Ordering::SeqCst);
    let stuck = wait_until_outside(segment.processes(), Some(dead.index()));
    if !stuck.is_empty() {
        open(control);
        return Repair { stuck, ..Repair::default() };
    }
    let mut done = Repair { rebuilt_tree: inside, ..Repair::default() };
    if inside && let Some(tree) = replay.tree() {
        tree.rebuild();
    }
    if inside && let Some(frames) = replay.frames() {
        frames.abandon_unfinished(dead.index());
    }
    if let Some(area) = area {
        done.completed = complete(replay, dead.index(), area);
        done.inserted = replay.flush(area);
    }
    done.exact = !inside || replay.tree().is_none_or(|tree| tree.audit().is_exact());
    control.repairs().fetch_add(1, Ordering::Relaxed);
    open(control);
    done
}

pub(super) fn open(control: Control<'_>) {
    control.gate().store(0, Ordering::SeqCst);
    wake_all(control.gate());
}

pub(super) fn wait_until_outside(processes: ProcessTable<'_>, dead: Option<usize>) -> Vec<usize> {
    let deadline = Instant::now() + GATE_PATIENCE;
    loop {
        let inside: Vec<usize> = processes
            .iter()
            .filter(|slot| Some(slot.index()) != dead && slot.state() == SlotState::Live && slot.in_operation())
            // Another one that died inside an operation changes nothing any more and gets a repair of its own.
            .filter(|slot| !has_exited(slot.pid(), slot.start_time()))
            .map(ProcessSlot::index)
            .collect();
        if inside.is_empty() || Instant::now() >= deadline {
            return inside;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Finish those staged transitions whose slots the dead process had claimed: write the row again, publish it, give it
/// its priority. Those that it had claimed nothing for stay staged. Slots are claimed in order.
fn complete(replay: &mut Replay<'_>, owner: usize, area: StagingArea<'_>) -> usize {
    let (committed, flushed) = area.progress();
    let mut completed = 0;
    for index in flushed..committed {
        let Some(target) = area.target(index) else { break };
        let word = replay.store().word(target.slot);
        // The last slot named may be one that another process claimed first. If it has been overwritten since, nothing
        // tells which it was, and the transition is inserted (again): it cannot be in the replay twice.
        let last_named = index + 1 == committed || area.target(index + 1).is_none();
        if last_named && word.generation() > target.generation {
            break;
        }
        if word.generation() < target.generation || word.generation() == target.generation && word.owner() != owner {
            break;
        }
        // A higher generation means that the transition was published and has been overwritten since.
        if word.generation() == target.generation {
            replay.finish(area, index, target, owner);
            completed += 1;
        }
        area.set_progress(committed, index + 1);
    }
    completed
}
