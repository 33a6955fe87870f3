//! What is done for a process that died: finish its flush, make the tree exact again.
//!
//! A flush is logged in the staging area itself: a staged transition names its slot before the slot is claimed. So
//! whatever the dead process had begun is found, and finished idempotently. A repairer may die as well, so it works in
//! the dead process's name: before anything changes, the dead one's slot says that it is inside an operation, and slots
//! are claimed for it, after they were named in its area. Whatever a dead repairer leaves is what the dead process
//! itself could have left, and is repaired in the same way.

use std::time::Duration;

use super::gate::ClosedGate;
use super::insertion::Insertion;
use super::name::Name;
use super::schema::Schema;
use super::staging::StagingArea;
use super::sum_tree::SumTree;
use super::view::ReplayView;
use crate::segment::Segment;
use crate::segment::processes::{ProcessSlot, Role};
use crate::sync::{Ordering, sleep};

/// Looks at a guest before it counts as one that stands still inside an operation, and the pause between two.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_micros(100);

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
    /// Whether a process that was not to be waited for was inside an operation meanwhile. Once it goes on, the sums
    /// may be wrong until [`rebuild_sums`].
    pub provisional: bool,
}

/// The staging area that belongs to a slot, if one does.
fn staging_area<'a>(segment: &'a Segment, slot: ProcessSlot<'_>) -> Option<StagingArea<'a>> {
    (slot.index() < segment.layout().sizes().stagers).then(|| StagingArea::of(segment, slot.index()))
}

/// Whether the owner of a slot is, or was when it died, inside an operation, or has staged transitions that are not
/// inserted.
pub fn is_unfinished(segment: &Segment, slot: ProcessSlot<'_>) -> bool {
    slot.in_operation() || staging_area(segment, slot).is_some_and(|area| area.pending() > 0)
}

/// Repair after the process in slot `dead`, which the kernel has said is gone. If the result names stuck processes,
/// nothing was done: kill them first and call again.
pub fn repair(segment: &Segment, schema: &Schema, dead: ProcessSlot<'_>) -> Repair {
    repair_beside(segment, schema, dead, &[])
}

/// As [`repair`], but does not wait for the processes in the slots `beside` to leave their operations: nobody may kill
/// them, or the caller knows that they have ended.
pub fn repair_beside(segment: &Segment, schema: &Schema, dead: ProcessSlot<'_>, beside: &[usize]) -> Repair {
    let inside = dead.in_operation();
    if !is_unfinished(segment, dead) {
        return Repair { exact: true, ..Repair::default() };
    }
    let gate = match ClosedGate::close_beside(segment, Some(dead.index()), beside) {
        Ok(gate) => gate,
        Err(stuck) => return Repair { stuck, ..Repair::default() },
    };
    dead.announce_repair();
    let mut replay = Repairing::new(segment, schema.clone(), dead.index());
    let mut done = Repair { rebuilt_tree: inside, provisional: inside && !gate.is_alone(), ..Repair::default() };
    if inside && let Some(tree) = replay.view.tree() {
        tree.rebuild();
    }
    if inside && let Some(frames) = replay.view.frames() {
        frames.abandon_unfinished(dead.index());
    }
    if let Some(area) = staging_area(segment, dead) {
        done.completed = complete(&mut replay, area);
        done.inserted = replay.flush(area);
    }
    done.exact = !inside || replay.view.tree().is_none_or(|tree| tree.audit().is_exact());
    segment.control().repairs().fetch_add(1, Ordering::Relaxed);
    dead.complete_repair();
    drop(gate);
    done
}

/// Compute the sums of the tree anew, after a repair beside guests that were inside an operation. Returns whether the
/// tree is exact then.
///
/// # Errors
/// The slots of the processes that did not leave their operation in time; none if a guest stands still inside one.
/// Nothing was done then.
pub fn rebuild_sums(segment: &Segment) -> Result<bool, Vec<usize>> {
    // Mostly these looks decide, and they hold up nobody: a guest at work is outside every now and then.
    let stands_still = |slot: ProcessSlot<'_>| {
        (0..LOOKS).all(|look| {
            if look > 0 {
                sleep(PAUSE);
            }
            slot.in_operation()
        })
    };
    if segment.processes().iter().filter(|slot| slot.plays(Role::Guest)).any(stands_still) {
        return Err(Vec::new());
    }
    let _gate = ClosedGate::close(segment, None)?;
    let Some(tree) = SumTree::of(segment) else { return Ok(true) };
    tree.rebuild();
    Ok(tree.audit().is_exact())
}

/// The replay during a repair, alone behind the closed gate and in the name of the dead process: nothing is announced
/// but the repair itself.
struct Repairing<'a> {
    view: ReplayView<'a>,
    owner: usize,
    work: Insertion,
}

impl<'a> Repairing<'a> {
    fn new(segment: &'a Segment, schema: Schema, owner: usize) -> Self {
        Self { view: ReplayView::new(segment, schema), owner, work: Insertion::default() }
    }

    fn flush(&mut self, area: StagingArea<'_>) -> usize {
        self.work.flush(&self.view, area, self.owner, || (), |_| ())
    }

    /// Finish the insertion of one staged transition whose slot the dead process had claimed.
    fn finish(&mut self, area: StagingArea<'_>, index: usize, Name { slot, generation }: Name, is_published: bool) {
        let store = self.view.store();
        let differences = &mut self.work.differences;
        // A row that was published is whole, and no longer this repair's to write: a guest inside an operation may be
        // overwriting it. A slot that is still marked as being written is claimed by nobody else: others pass it over.
        if !is_published {
            if let Some(tree) = self.view.tree() {
                tree.clear(&[(slot, generation)], differences);
            }
            store.write(slot, area.row(index));
            store.publish(slot, generation, self.owner);
        }
        if let Some(tree) = self.view.tree() {
            // The leaf got this generation before the row was published. It refuses if it has another by now: the row
            // was taken or overwritten.
            let priority = area.priority(index).unwrap_or_else(|| self.view.largest_priority());
            tree.update(std::iter::once((slot, generation, priority)), differences);
            self.view.control.raise_largest_priority(priority.0);
        }
        self.view.control.count_inserted(1);
    }
}

/// Finish the staged transitions whose slots the dead process had claimed, and return how many: write each row again
/// and publish it, unless that was done, and give it its priority. Transitions without a claimed slot stay staged.
/// Slots are claimed in order.
fn complete(replay: &mut Repairing<'_>, area: StagingArea<'_>) -> usize {
    let (committed, flushed) = area.progress();
    let mut completed = 0;
    for index in flushed..committed {
        let Some(destination) = area.destination(index) else { break };
        let word = replay.view.store().word(destination.slot);
        // Another process may have claimed the last named slot first. If the slot was overwritten since, nothing
        // tells who had claimed it, and the transition is inserted (again): it cannot be in the replay twice.
        let last_named = index + 1 == committed || area.destination(index + 1).is_none();
        if last_named && word.generation() > destination.generation {
            break;
        }
        if word.generation() < destination.generation || word.generation() == destination.generation && word.owner() != replay.owner {
            break;
        }
        // A higher generation means that the transition was published and has been overwritten since.
        if word.generation() == destination.generation {
            replay.finish(area, index, destination, word.is_ready());
            completed += 1;
        }
        area.set_progress(committed, index + 1);
    }
    completed
}
