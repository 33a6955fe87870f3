//! Actors that record stacked frames are killed, at moments of nobody's choice and after every single instruction: whatever a learner draws
//! afterwards is whole, and shows the frames that followed each other.
#![cfg(target_arch = "x86_64")]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rand::RngExt;
use shoal::config::Config;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace, registry};
use shoal::experience::transition::{ACTION, NEXT_OBSERVATION, OBSERVATION};
use shoal::experience::{Choice, Experience, Recorder, Steps, Transitions};
use shoal::replay::{Batch, Replay, ReplayView, Sampler, Schema, StagingArea, repair};
use shoal::segment::processes::{ProcessSlot, Role};
use shoal::segment::{Layout, LayoutParameters, Region, Segment, system};
use shoal::values::Values;
use support::traced::{Traced, report, sweep};
use support::{Run, Sizes, random, wait_until};

const STACK: usize = 4;
const ACTORS: usize = 2;
const FLUSH: usize = 8;

/// A replay of stacked frames of `side` x `side` bytes.
struct Frames {
    transitions: Transitions,
    segment: Segment,
    side: usize,
    /// Holds the watchdog, and keeps other tests of this program from forking meanwhile.
    _run: Run,
}

impl Frames {
    fn new(side: usize, capacity: usize, frames: usize) -> Self {
        let run = Run::new(Sizes::default());
        let observation = ObservationSpace { stack: STACK, ..ObservationSpace::bytes(&[STACK, side, side]) };
        let environment =
            EnvironmentSpec { observation, action: ActionSpace::Discrete { n: 3 }, ..registry::spec("CartPole-v1").expect("it is native") };
        let transitions = Transitions::new(&Config::for_environment("CartPole-v1"), &environment);
        let schema = transitions.schema();
        let layout = Layout::new(LayoutParameters {
            processes: ACTORS,
            stagers: ACTORS,
            staged_transitions: FLUSH + 2,
            capacity,
            fanout: 16,
            transition_words: schema.words(),
            published_values: 1,
            learned_parameters: 1,
            learner_state_values: 4,
            statistics_values: 0,
            learners: 1,
            frames,
            frame_bytes: schema.frame_bytes(),
            description_bytes: 4_096,
        });
        let description = support::run::description(&schema);
        let segment = Segment::create(layout.expect("sizes within their limits"), &description, false).expect("memory");
        Self { transitions, segment, side, _run: run }
    }

    fn schema(&self) -> Schema {
        self.transitions.schema()
    }

    fn slot(&self, slot: usize) -> ProcessSlot<'_> {
        self.segment.processes().slot(slot)
    }

    fn area(&self, slot: usize) -> StagingArea<'_> {
        StagingArea::new(self.segment.words(Region::Staging), self.segment.layout().parameters(), slot)
    }

    fn actor(&self, slot: usize, life: u32) -> Acting<'_> {
        Acting {
            frames: self,
            replay: Replay::new(&self.segment, self.schema(), self.slot(slot)),
            recorder: self.transitions.recorder(1),
            area: self.area(slot),
            life,
            step: 0,
        }
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
        self.recorder.record(&steps, self.area, &self.replay);
        self.step += 1;
        if self.area.pending() >= FLUSH {
            self.replay.flush(self.area);
        }
    }
}

#[test]
fn rows_of_stacked_frames_are_never_torn_however_often_their_actors_are_killed() {
    // 10^6 by hand: SHOAL_TEST_FRAME_ROWS=1000000, in release.
    let wanted = support::count_from_environment("SHOAL_TEST_FRAME_ROWS", 20_000);
    // Fewer frames than the rows name, so that some vanish under the reader.
    let frames = Frames::new(42, 1_000, 900);
    let mut lives = 0;
    let start = |slot: usize, life: u32| -> Pid {
        let generation = frames.slot(slot).reserve(Role::Actor, slot).expect("its slot is free");
        let child = system::fork_child(|| {
            assert!(frames.slot(slot).occupy(std::process::id(), generation));
            let mut actor = frames.actor(slot, life);
            loop {
                actor.record();
            }
        });
        child.expect("fork")
    };
    let mut children: Vec<Pid> = (0..ACTORS).map(|slot| start(slot, u32::try_from(slot).expect("few"))).collect();
    let (mut random, mut batch) = (random(5), Batch::new(&frames.schema(), 50));
    let mut sampler = Sampler::new(&frames.segment, frames.schema());
    let view = ReplayView::new(&frames.segment, frames.schema());
    wait_until(|| view.len() >= 200);
    let mut drawn = 0;
    while drawn < wanted {
        for _ in 0..20 {
            sampler.sample(&mut batch, 0.5, &mut random).expect("rows whose frames are there");
            frames.verify(&batch);
            drawn += batch.rows() as u64;
        }
        let slot = random.random_range(0..ACTORS);
        kill(children[slot], Signal::SIGKILL).expect("kill");
        waitpid(children[slot], None).expect("waitpid");
        wait_until(|| repair(&frames.segment, &frames.schema(), frames.slot(slot)).stuck.is_empty());
        frames.slot(slot).release();
        lives += 1;
        children[slot] = start(slot, lives + ACTORS as u32);
    }
    for child in children {
        kill(child, Signal::SIGKILL).expect("kill");
        waitpid(child, None).expect("waitpid");
    }
    report(&format!("{drawn} rows verified over {lives} kills"));
}

#[test]
fn an_actor_killed_after_any_instruction_of_recording_frames_leaves_whole_rows_and_no_frame_half_written() {
    let frames = Frames::new(9, 40, 60);
    let survivor = 1;
    let generation = frames.slot(survivor).reserve(Role::Actor, survivor).expect("a free slot");
    assert!(frames.slot(survivor).occupy(std::process::id(), generation));
    let mut other = frames.actor(survivor, 7);
    (0..50).for_each(|_| other.record());
    let generation = frames.slot(0).reserve(Role::Actor, 0).expect("a free slot");
    let traced = Traced::start(|| {
        assert!(frames.slot(0).occupy(std::process::id(), generation));
        let mut actor = frames.actor(0, 1);
        // All but one row of a flush, so that the operation stages one, writes a frame for it and flushes.
        (0..FLUSH - 1).for_each(|_| actor.record());
        let [before, after] = [actor.step, actor.step + 1].map(|step| frames.stack(1, step));
        move || actor.record_between(&before, &after)
    });
    let mut batch = Batch::new(&frames.schema(), 1);
    let (instructions, states) = sweep(&frames.segment, &traced, |instruction| {
        traced.bury(&frames.segment);
        let repaired = repair(&frames.segment, &frames.schema(), frames.slot(0));
        assert!(repaired.stuck.is_empty() && repaired.exact, "killed after instruction {instruction}: {repaired:?}");
        assert_eq!(frames.area(0).pending(), 0);
        let view = ReplayView::new(&frames.segment, frames.schema());
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
        assert!(view.tree().is_none_or(|tree| tree.audit().is_exact()), "killed after instruction {instruction}");
        let frame_words = frames.segment.layout().parameters().frame_slot_words();
        let writing = frames.segment.words(Region::Frames).iter().step_by(frame_words);
        let left = writing.filter(|word| word.load(shoal::sync::Ordering::Relaxed) >> 20 & 0xf == 1).count();
        assert_eq!(left, 0, "killed after instruction {instruction}: a frame is being written for ever");
    });
    assert!(instructions > 1_000 && states > 50, "{instructions} instructions, {states} states");
    report(&format!("recording frames: {instructions} instructions, {states} different states, all repaired"));
}
