//! Stacked frames: what a transition shows is what was named, each frame is stored once, and a transition whose frame has
//! been overwritten is drawn no more.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use shoal::checkpoint::{Checkpoints, Content, Filled, ReplayFile, Retention, RowsIn, RunCheckpoint, write_replay};
use shoal::replay::{
    Batch, Element, Field, Name, Priority, Replay, ReplayView, SampleError, Sampler, Schema, StagingArea, ZeroPriority, repair,
};
use shoal::segment::description::Description;
use shoal::segment::processes::Role;
use shoal::segment::{Layout, Region, Segment, SegmentSizes};
use shoal::sync::Ordering;

const STACK: usize = 3;
/// No multiple of a word, so that frames end inside one.
const FRAME_BYTES: usize = 21;
const STAGED: usize = 4;

fn schema() -> Schema {
    Schema::new(vec![
        Field::stacked("observation", Element::U8, FRAME_BYTES, STACK),
        Field::new("number", Element::I32, 1),
        Field::stacked("next_observation", Element::U8, FRAME_BYTES, STACK),
    ])
}

fn segment(capacity: usize, frames: usize, fanout: usize) -> Segment {
    let schema = schema();
    let layout = Layout::new(SegmentSizes {
        processes: 2,
        stagers: 2,
        staged_rows: STAGED,
        fanout,
        frames,
        frame_bytes: FRAME_BYTES,
        ..SegmentSizes::of_rows(schema.words(), capacity)
    });
    let description = Description { fields: schema.describe(), ..Description::default() };
    Segment::create_private(layout.expect("sizes within their limits"), &description).expect("memory")
}

fn area(segment: &Segment, slot: usize) -> StagingArea<'_> {
    StagingArea::of(segment, slot)
}

fn join(segment: &Segment, slot: usize) -> Replay<'_> {
    let entry = segment.processes().slot(slot);
    assert!(entry.reserve(Role::Actor, slot).is_some_and(|generation| entry.occupy(std::process::id(), generation)));
    Replay::new(segment, schema(), entry)
}

/// The frame that an endless episode shows at a step.
fn frame(step: usize) -> [u8; FRAME_BYTES] {
    std::array::from_fn(|position| (step * 31 + position) as u8)
}

/// Transition `number` shows the frames `number..number + STACK`, and next those from `number + 1`.
fn insert<'s>(replay: &mut Replay<'s>, area: StagingArea<'s>, names: &[Name], number: usize) {
    let schema = schema();
    let mut writer = area.write(&schema);
    writer.frames(0, &names[number..][..STACK]).frames(2, &names[number + 1..][..STACK]);
    writer.i32(1, &[i32::try_from(number).expect("few transitions")]);
    writer.commit(Priority::from_f32(1.0));
    if area.is_full() {
        replay.flush(area);
    }
}

/// The first `rows` transitions of the episode, through the first staging area, with the frames that they show.
fn fill<'s>(replay: &mut Replay<'s>, segment: &'s Segment, rows: usize) {
    let names: Vec<Name> = (0..rows + STACK).map(|step| replay.write_frame(&frame(step))).collect();
    (0..rows).for_each(|number| insert(replay, area(segment, 0), &names, number));
}

/// Write so many new frames, over the oldest of the ring once it is full.
fn overwrite(replay: &Replay<'_>, frames: usize) {
    (0..frames).for_each(|step| _ = replay.write_frame(&frame(1_000 + step)));
}

fn assert_shows_its_frames(batch: &Batch) -> BTreeSet<usize> {
    let (now, next) = (batch.column(0).as_u8(), batch.column(2).as_u8());
    let mut numbers = BTreeSet::new();
    for (row, &number) in batch.column(1).as_i32().iter().enumerate() {
        let number = usize::try_from(number).expect("a number");
        let stack = |first: usize| (first..first + STACK).flat_map(frame).collect::<Vec<u8>>();
        let place = row * STACK * FRAME_BYTES..(row + 1) * STACK * FRAME_BYTES;
        assert_eq!(now[place.clone()], stack(number)[..], "observation of transition {number}");
        assert_eq!(next[place], stack(number + 1)[..], "next observation of transition {number}");
        numbers.insert(number);
    }
    numbers
}

#[test]
fn stacks_come_back_as_they_were_named_whether_prioritized_or_uniform() {
    for fanout in [0, 4, 16] {
        let segment = segment(64, 80, fanout);
        let mut replay = join(&segment, 0);
        fill(&mut replay, &segment, 64);
        let (mut batch, mut random) = (Batch::new(&schema(), 64), Pcg64Mcg::seed_from_u64(1));
        let mut seen = BTreeSet::new();
        for _ in 0..20 {
            replay.sample(&mut batch, 0.4, &mut random).expect("a full replay");
            seen.append(&mut assert_shows_its_frames(&batch));
        }
        assert_eq!(seen.len(), 64, "every transition is drawn");
        assert_eq!(replay.frames().expect("frames").written(), (64 + STACK) as u64, "each frame is stored once");
    }
}

#[test]
fn a_transition_whose_frame_was_overwritten_is_drawn_no_more_and_leaves_the_tree() {
    let segment = segment(64, 80, 16);
    let mut replay = join(&segment, 0);
    fill(&mut replay, &segment, 64);
    let before = replay.tree().expect("a tree").total();
    // The ring holds 80 frames, 67 are there: 23 more overwrite the ten oldest.
    overwrite(&replay, 23);
    let (mut batch, mut random) = (Batch::new(&schema(), 64), Pcg64Mcg::seed_from_u64(2));
    for _ in 0..50 {
        replay.sample(&mut batch, 0.4, &mut random).expect("others are there");
        let seen = assert_shows_its_frames(&batch);
        assert!(seen.iter().all(|&number| number >= 10), "{seen:?} show frames that are gone");
    }
    let tree = replay.tree().expect("a tree");
    assert!(tree.audit().is_exact());
    assert_eq!(tree.total(), before / 64 * 54, "ten priorities have left the tree");
}

#[test]
fn a_uniform_replay_with_far_too_few_frames_says_so() {
    let segment = segment(4_096, 8, 0);
    let mut replay = join(&segment, 0);
    fill(&mut replay, &segment, 4_096);
    let drawn = replay.sample(&mut Batch::new(&schema(), 64), 0.4, &mut Pcg64Mcg::seed_from_u64(4));
    let error = drawn.expect_err("five transitions have their frames");
    assert!(matches!(error, SampleError::FramesGone { .. }), "{error}");
    assert!(error.to_string().ends_with("most in the replay have lost a frame"), "{error}");
}

#[test]
fn a_prioritized_replay_whose_every_transition_has_lost_a_frame_says_so() {
    let segment = segment(64, 80, 16);
    let mut replay = join(&segment, 0);
    fill(&mut replay, &segment, 64);
    overwrite(&replay, 80);
    let drawn = replay.sample(&mut Batch::new(&schema(), 64), 0.4, &mut Pcg64Mcg::seed_from_u64(5));
    let error = drawn.expect_err("no transition has its frames");
    assert_eq!(replay.tree().expect("a tree").total(), 0, "all have left the tree");
    assert!(matches!(error, SampleError::FramesGone { .. }), "{error}");
}

#[test]
fn who_only_reads_changes_no_priority_and_who_writes_priorities_back_removes_what_has_vanished() {
    let segment = segment(64, 80, 16);
    let mut writer = join(&segment, 0);
    fill(&mut writer, &segment, 64);
    overwrite(&writer, 23);
    let before = writer.tree().expect("a tree").total();
    let tree = || segment.words(Region::Tree).iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<u64>>();
    // A learner's thread that draws ahead reads in this way, while another thread announces the process's operations.
    let mut reader = Sampler::new(&segment, schema());
    let (mut batch, mut random) = (Batch::new(&schema(), 64), Pcg64Mcg::seed_from_u64(3));
    for _ in 0..50 {
        let untouched = tree();
        reader.sample(&mut batch, 0.4, &mut random).expect("others are there");
        assert!(tree() == untouched, "a reader changed the tree, outside of any operation");
        assert!(assert_shows_its_frames(&batch).iter().all(|&number| number >= 10), "frames that are gone");
        writer.update_priorities(&batch, std::iter::repeat_n(Priority::from_f32(1.0), batch.rows()));
    }
    assert!(writer.tree().expect("a tree").audit().is_exact());
    assert_eq!(writer.tree().expect("a tree").total(), before / 64 * 54, "ten priorities have left the tree");
}

#[test]
fn a_frame_that_a_dead_writer_had_begun_is_given_up_and_its_slot_used_again() {
    let segment = segment(16, 4, 16);
    let dead = join(&segment, 1);
    dead.write_frame(&frame(0));
    // A death between claim and copy leaves it so: the frame's slot word says that process 1 is writing.
    let word = &segment.words(Region::Frames)[0];
    let ready = word.load(Ordering::Relaxed);
    let (writing, state) = (1u64 << 20, 0xfu64 << 20);
    word.store(ready & !state | writing, Ordering::Relaxed);
    let place = segment.processes().slot(1);
    std::mem::forget(place.begin_operation(segment.control(), || ()));
    assert!(place.in_operation());
    assert!(repair(&segment, &schema(), place).stuck.is_empty());
    let replay = join(&segment, 0);
    let names: Vec<Name> = (0..8).map(|step| replay.write_frame(&frame(step))).collect();
    assert!(names.iter().any(|name| name.slot == 0), "the slot of the unfinished frame is used again");
    let frames = replay.frames().expect("frames");
    assert!(names[4..].iter().all(|&name| frames.holds(name)));
    assert!(names[..4].iter().all(|&name| !frames.holds(name)), "a name holds until its slot is written again");
}

#[test]
fn whoever_reads_frames_more_slowly_than_they_are_overwritten_finds_long_blocks_of_old_ones() {
    const FRAMES: usize = 4_096;
    let segment = segment(FRAMES, FRAMES, 16);
    let replay = join(&segment, 0);
    (0..FRAMES).for_each(|step| _ = replay.write_frame(&frame(step)));
    let mut old = Vec::new();
    let walked: Result<(), ()> = ReplayView::new(&segment, schema()).for_each_frame(|record, _| {
        overwrite(&replay, 2);
        old.extend((record.generation == 1).then_some(record.slot));
        Ok(())
    });
    assert_eq!(walked, Ok(()));
    // A transition shows as many frames in a row.
    let whole = old.windows(STACK + 1).filter(|frames| frames[STACK] - frames[0] == STACK as u64).count();
    assert!(whole > FRAMES / 3, "{whole} transitions of {FRAMES} have their frames");
}

/// Put the replay of one segment into another by a file, in whose writing `meanwhile` comes between transitions and frames.
fn save_and_load(from: &Segment, into: &Segment, meanwhile: impl FnOnce()) -> Filled {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let between = || {
        meanwhile();
        Ok(())
    };
    let replay = ReplayView::new(from, schema());
    write_replay(&replay, ZeroPriority::Unfinished, String::new(), file.as_file(), between).expect("room on the disk");
    ReplayFile::open(file.path()).expect("a whole file").fill(into, schema()).expect("a file of this replay")
}

#[test]
fn a_transition_that_lost_a_frame_while_it_was_saved_is_not_drawn_once_it_is_loaded() {
    for fanout in [0, 16] {
        let [saved, loaded] = [(); 2].map(|()| segment(64, 80, fanout));
        let mut replay = join(&saved, 0);
        fill(&mut replay, &saved, 64);
        let before = replay.tree().map(|tree| tree.total());
        let filled = save_and_load(&saved, &loaded, || overwrite(&replay, 23));
        assert_eq!(filled, Filled { transitions: 64, without_frames: 10 });
        let mut replay = join(&loaded, 0);
        let (mut batch, mut random) = (Batch::new(&schema(), 64), Pcg64Mcg::seed_from_u64(6));
        assert_eq!(replay.tree().map(|tree| tree.total()), before.map(|before| before / 64 * 54), "ten priorities are gone");
        replay.sample(&mut batch, 0.4, &mut random).expect("others are there");
        assert!(assert_shows_its_frames(&batch).iter().all(|&number| number >= 10), "frames that are gone");
    }
}

#[test]
fn a_replay_whose_every_transition_lost_a_frame_while_it_was_saved_is_empty_once_it_is_loaded() {
    for fanout in [0, 16] {
        let [saved, loaded] = [(); 2].map(|()| segment(64, 80, fanout));
        let mut replay = join(&saved, 0);
        fill(&mut replay, &saved, 64);
        let filled = save_and_load(&saved, &loaded, || overwrite(&replay, 80));
        assert!(filled.is_nothing(), "{filled:?}");
        let mut replay = join(&loaded, 0);
        let (mut batch, mut random) = (Batch::new(&schema(), 64), Pcg64Mcg::seed_from_u64(7));
        assert_eq!(replay.sample(&mut batch, 0.4, &mut random), Err(SampleError::Empty));
        fill(&mut replay, &loaded, 64);
        replay.sample(&mut batch, 0.4, &mut random).expect("it was filled again");
        assert_shows_its_frames(&batch);
    }
}

#[test]
fn a_run_goes_on_with_an_empty_replay_if_all_in_its_checkpoint_lost_a_frame() {
    let [run, resumed] = [(); 2].map(|()| segment(64, 80, 16));
    let mut replay = join(&run, 0);
    fill(&mut replay, &run, 64);
    let record = |_: Duration| {
        overwrite(&replay, 80);
        Value::Null
    };
    let content = Content {
        segment: &run,
        schema: schema(),
        zero: ZeroPriority::Unfinished,
        incarnation: None,
        with_replay: true,
        longest_rest: Duration::ZERO,
        best_weights: Path::new("none"),
        best_env_steps: None,
        supervisor_record: &record,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let retention = Retention { last: 1, best: false, every_steps: None };
    let (path, _) = Checkpoints::new(folder.path().to_path_buf()).write(content, retention).expect("a checkpoint");
    let checkpoint = RunCheckpoint::open(&path).expect("a whole checkpoint");
    let restored = checkpoint.restore(&resumed, &schema(), RowsIn::Checkpoint, |_, number, _| Some(number)).expect("it fits");
    let told = restored.filled.loss().expect("something was lost");
    assert!(told.starts_with("64 of 64 transitions") && told.ends_with("begins empty"), "{told}");
    assert_eq!(resumed.control().inserted().load(Ordering::Relaxed), 0);
}
