//! Actors that record stacked frames are killed, at random moments and after every single instruction: whatever a learner draws afterwards
//! is whole, and shows frames that followed each other.
#![cfg(target_arch = "x86_64")]

use nix::unistd::Pid;
use rand::RngExt;
use shoal::config::Config;
use shoal::experience::transition::{ACTION, NEXT_OBSERVATION, OBSERVATION};
use shoal::experience::{Choice, Experience, Recorder, Steps, Transitions};
use shoal::replay::{Batch, Replay, Sampler, StagingArea};
use shoal::segment::Region;
use shoal::sync::Ordering;
use shoal::values::Values;

use crate::support::forked::recorded::{Recorded, stacked_environment};
use crate::support::forked::traced::{Traced, report, sweep};
use crate::support::forked::{count_from_environment, kill_and_reap, random, wait_until};

const STACK: usize = 4;
const ACTORS: usize = 2;
const FLUSH: usize = 8;

/// A replay of stacked frames of `side` x `side` bytes.
struct Frames {
    recorded: Recorded<Transitions>,
    side: usize,
}

impl Frames {
    fn new(side: usize, capacity: usize, frames: usize) -> Self {
        let transitions = Transitions::new(&Config::for_environment("CartPole-v1"), &stacked_environment(STACK, side));
        Self { recorded: Recorded::new(transitions, capacity, frames, ACTORS, FLUSH + 2), side }
    }

    fn actor(&self, slot: usize, life: u32) -> Acting<'_> {
        let recorder = self.recorded.experience.recorder(1);
        Acting { frames: self, replay: self.recorded.replay(slot), recorder, area: self.recorded.area(slot), life, step: 0 }
    }

    /// Frame number `step` of life `life`: its name, then bytes that follow from it.
    fn frame(&self, life: u32, step: u32) -> Vec<u8> {
        let mut state = u64::from(life) << 32 | u64::from(step);
        let mut frame = state.to_le_bytes().to_vec();
        while frame.len() < self.side * self.side {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            frame.push((state >> 56) as u8);
        }
        frame
    }

    /// What is seen after `step` steps: the last frames, or copies of the first.
    fn stack(&self, life: u32, step: u32) -> Vec<u8> {
        (0..STACK as u32).flat_map(|back| self.frame(life, (step + 1 + back).saturating_sub(STACK as u32))).collect()
    }

    /// Panics unless every row of `batch` shows the frames of one step and of the next.
    fn verify(&self, batch: &Batch) {
        let length = STACK * self.side * self.side;
        let rows = |field: usize| batch.column(field).as_u8().chunks_exact(length);
        for ((before, after), &action) in rows(OBSERVATION).zip(rows(NEXT_OBSERVATION)).zip(batch.column(ACTION).as_i32()) {
            let last = &before[length - length / STACK..][..8];
            let name = u64::from_le_bytes(last.try_into().expect("eight bytes"));
            let (life, step) = ((name >> 32) as u32, name as u32);
            assert!(before == self.stack(life, step), "a torn observation of step {step} of life {life}");
            assert!(after == self.stack(life, step + 1), "a torn next observation of step {step} of life {life}");
            assert_eq!(action, (step % 3).cast_signed(), "the action of another step");
        }
    }
}

/// What an actor does with steps that count up.
struct Acting<'f> {
    frames: &'f Frames,
    replay: Replay<'f>,
    recorder: Box<dyn Recorder>,
    area: StagingArea<'f>,
    life: u32,
    step: u32,
}

impl Acting<'_> {
    fn record(&mut self) {
        let [before, after] = [self.step, self.step + 1].map(|step| self.frames.stack(self.life, step));
        self.record_between(&before, &after);
    }

    fn record_between(&mut self, before: &[u8], after: &[u8]) {
        let steps = Steps {
            observations: Values::U8(before),
            actions: &[self.step % 3],
            choices: &[Choice::default()],
            rewards: &[1.0],
            next_observations: Values::U8(after),
            next_values: &[0.0],
            terminated: &[false],
            truncated: &[false],
            parameter_updates: 1,
        };
        self.recorder.record(&steps, self.area, &self.replay, &mut Vec::new());
        self.step += 1;
        if self.area.pending() >= FLUSH {
            self.replay.flush(self.area);
        }
    }
}

#[test]
fn rows_of_stacked_frames_are_never_torn_however_often_their_actors_are_killed() {
    // 10^6 by hand: SHOAL_TEST_FRAME_ROWS=1000000, in release.
    let wanted = count_from_environment("SHOAL_TEST_FRAME_ROWS", 20_000);
    // So small that frames are overwritten all the time while the reader copies them, and fewer than the rows name, so that some vanish.
    let frames = Frames::new(42, 96, 80);
    let mut lives = 0;
    let replay = &frames.recorded;
    let start = |slot: usize, life: u32| {
        replay.start(slot, || {
            let mut actor = frames.actor(slot, life);
            loop {
                actor.record();
            }
        })
    };
    let mut children: Vec<Pid> = (0..ACTORS).map(|slot| start(slot, u32::try_from(slot).expect("few"))).collect();
    let (mut random, mut batch) = (random(5), Batch::new(&replay.schema(), 50));
    let mut sampler = Sampler::new(&replay.segment, replay.schema());
    let view = replay.view();
    wait_until(|| view.len() >= 96);
    let mut drawn = 0;
    while drawn < wanted {
        for _ in 0..20 {
            sampler.sample(&mut batch, 0.5, &mut random).expect("rows whose frames are there");
            frames.verify(&batch);
            drawn += batch.rows() as u64;
        }
        let slot = random.random_range(0..ACTORS);
        kill_and_reap(children[slot], slot);
        replay.repair(slot);
        lives += 1;
        children[slot] = start(slot, lives + ACTORS as u32);
    }
    children.into_iter().enumerate().for_each(|(slot, child)| kill_and_reap(child, slot));
    report(&format!("{drawn} rows verified over {lives} kills"));
}

#[test]
fn an_actor_killed_after_any_instruction_of_recording_frames_leaves_whole_rows_and_no_frame_half_written() {
    let frames = Frames::new(9, 40, 60);
    let (replay, survivor) = (&frames.recorded, 1);
    replay.join(survivor);
    let mut other = frames.actor(survivor, 7);
    (0..50).for_each(|_| other.record());
    let occupy = replay.promised(0);
    let traced = Traced::start(|| {
        occupy();
        let mut actor = frames.actor(0, 1);
        // All but one row of a flush, so that the operation stages one, writes a frame for it and flushes.
        (0..FLUSH - 1).for_each(|_| actor.record());
        let [before, after] = [actor.step, actor.step + 1].map(|step| frames.stack(1, step));
        move || actor.record_between(&before, &after)
    });
    let mut batch = Batch::new(&replay.schema(), 1);
    let (instructions, states) = sweep(&replay.segment, &traced, |instruction| {
        traced.bury(&replay.segment);
        replay.repair_once(0, instruction);
        assert_eq!(replay.area(0).pending(), 0);
        let view = replay.view();
        let mut of_the_dead = 0;
        for slot in 0..view.store().capacity() {
            if view.reader().read(slot, &mut batch.as_rows(), 0, &mut Vec::new()).is_ok() {
                frames.verify(&batch);
                of_the_dead += usize::from(batch.column(OBSERVATION).as_u8()[4] == 1);
            }
        }
        assert!((FLUSH - 1..=FLUSH).contains(&of_the_dead), "killed after instruction {instruction}: {of_the_dead} of {FLUSH} rows");
        // Every frame slot can be written again: none is left to the dead.
        let mut next = frames.actor(survivor, 8);
        (0..70).for_each(|_| next.record());
        replay.assert_exact(instruction);
        let frame_words = replay.segment.layout().sizes().frame_slot_words();
        let writing = replay.segment.words(Region::Frames).iter().step_by(frame_words);
        let left = writing.filter(|word| word.load(Ordering::Relaxed) >> 20 & 0xf == 1).count();
        assert_eq!(left, 0, "killed after instruction {instruction}: a frame is being written for ever");
    });
    assert!(instructions > 1_000 && states > 50, "{instructions} instructions, {states} states");
    report(&format!("recording frames: {instructions} instructions, {states} different states, all repaired"));
}
