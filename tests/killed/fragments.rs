//! Fragments of trajectories: whole, in order, each taken by one learner, whoever is killed.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;

use nix::unistd::Pid;
use rand::RngExt;
use shoal::config::Config;
use shoal::experience::fragment::{ACTIONS, AGES, FLAGS, FRAMES, LENGTH, LOG_PROBABILITIES, PARAMETER_UPDATES, REWARDS};
use shoal::experience::transition::is_terminated;
use shoal::experience::{Choice, Experience, Fragments, Recorder, Reuse, Steps};
use shoal::replay::{Batch, Replay, StagingArea};
use shoal::sync::Ordering;
use shoal::values::Values;

use crate::support::forked::recorded::{Recorded, stacked_environment};
use crate::support::forked::traced::{Traced, report, sweep};
use crate::support::forked::{count_from_environment, kill_and_reap, random, wait_until};

const STACK: usize = 3;
const SIDE: usize = 5;
const STEPS: usize = 4;
const PROCESSES: usize = 4;

/// Nothing waits and nothing is dropped, unless a test says so.
const REUSE: Reuse = Reuse { kept_batches: 1, uses: 1, max_policy_lag_updates: None, most_waiting: Some(63), replayed: 0, retained: 0 };

/// A replay of fragments.
type Queue = Recorded<Fragments>;

fn queue(capacity: usize) -> Queue {
    queue_with(capacity, REUSE)
}

fn queue_with(capacity: usize, reuse: Reuse) -> Queue {
    let mut config = Config::for_environment("CartPole-v1");
    config.algorithm.name = "appo".into();
    config.fragments.length_steps = STEPS;
    // So few that the smallest queue, of 64, is large enough.
    (config.actor.environments, config.actor.attach_slots) = (1, 0);
    Recorded::new(Fragments::new(&config, &stacked_environment(STACK, SIDE), reuse), capacity, 0, PROCESSES, 4)
}

fn actor(queue: &Queue, slot: usize, life: u16) -> Acting<'_> {
    Acting {
        replay: queue.replay(slot),
        recorder: queue.experience.recorder(1),
        area: queue.area(slot),
        life,
        step: 0,
        chosen_by: Vec::new(),
    }
}

/// Take everything, as process `slot`; returns the fragments' names in the order in which they were taken.
fn drain(queue: &Queue, slot: usize) -> Vec<(u16, u32)> {
    let (mut replay, mut batch) = (queue.replay(slot), Batch::new(&queue.schema(), 1));
    std::iter::from_fn(|| replay.take(&mut batch, 0).then(|| verify(&batch))).collect()
}

/// Length of episode number `number`: some are shorter than a fragment, some longer.
fn length_of(number: u32) -> u32 {
    [3, 9, 1, 14][number as usize % 4]
}

/// The episode of a step, the steps of the episode before it, and whether it is the episode's last.
fn place_of(step: u32) -> (u32, u32, bool) {
    let (mut first, mut number) = (0, 0);
    while first + length_of(number) <= step {
        first += length_of(number);
        number += 1;
    }
    (number, step - first, step + 1 == first + length_of(number))
}

/// Every second episode is cut off, the others end by themselves.
fn is_cut_off(number: u32) -> bool {
    number % 2 == 1
}

/// A frame that tells its life, its episode and its place in it: as they are in its first bytes, and multiplied in those behind.
fn frame(life: u16, episode: u32, place: u32) -> [u8; SIDE * SIDE] {
    let [low, high] = life.to_le_bytes();
    std::array::from_fn(|position| [low, high, episode as u8, place as u8][position % 4].wrapping_mul(1 + position as u8 / 4))
}

fn stack(life: u16, episode: u32, place: u32) -> Vec<u8> {
    (0..STACK as u32).rev().flat_map(|back| frame(life, episode, place.saturating_sub(back))).collect()
}

/// An actor whose steps count up.
struct Acting<'q> {
    replay: Replay<'q>,
    recorder: Box<dyn Recorder>,
    area: StagingArea<'q>,
    life: u16,
    step: u32,
    /// Updates in the parameters that chose the first step of each fragment: here the number of that step.
    chosen_by: Vec<u64>,
}

impl Acting<'_> {
    /// The observation before a step, the one after it, and whether the step terminated or truncated its episode.
    fn around(&self, step: u32) -> (Vec<u8>, Vec<u8>, bool, bool) {
        let (episode, place, is_last) = place_of(step);
        let [before, after] = [place, place + 1].map(|place| stack(self.life, episode, place));
        (before, after, is_last && !is_cut_off(episode), is_last && is_cut_off(episode))
    }

    /// Take a step. Returns whether it completed a fragment.
    fn record(&mut self) -> bool {
        let (before, after, terminated, truncated) = self.around(self.step);
        self.record_between(&before, &after, terminated, truncated)
    }

    fn record_between(&mut self, before: &[u8], after: &[u8], terminated: bool, truncated: bool) -> bool {
        let steps = Steps {
            observations: Values::U8(before),
            actions: &[self.step % 3],
            choices: &[Choice { value: 0.0, log_probability: -0.5 * self.step as f32 }],
            rewards: &[self.step as f32],
            next_observations: Values::U8(after),
            next_values: &[0.0],
            terminated: &[terminated],
            truncated: &[truncated],
            parameter_updates: self.step.into(),
        };
        self.recorder.record(&steps, self.area, &self.replay, &mut self.chosen_by);
        self.step += 1;
        self.area.pending() > 0 && self.replay.flush(self.area) > 0
    }

    /// Record until another fragment is complete.
    fn complete_one(&mut self) {
        while !self.record() {}
    }
}

/// The name of the fragment in row 0: the life, and its first step. Panics unless every part of it is as it was recorded.
fn verify(batch: &Batch) -> (u16, u32) {
    let (frames, ages, flags) = (batch.column(FRAMES).as_u8(), batch.column(AGES).as_i32(), batch.column(FLAGS).as_i32());
    let (rewards, actions) = (batch.column(REWARDS).as_f32(), batch.column(ACTIONS).as_i32());
    let length = usize::try_from(batch.column(LENGTH).as_i32()[0]).expect("a length");
    let (life, first) = (u16::from_le_bytes([frames[0], frames[1]]), rewards[0] as u32);
    assert!((1..=STEPS).contains(&length));
    assert_eq!(batch.column(PARAMETER_UPDATES).bytes(), u64::from(first).to_le_bytes(), "the updates behind its first step");
    let frame_at = |index: usize| &frames[index * SIDE * SIDE..][..SIDE * SIDE];
    for (offset, step) in (first..).take(length).enumerate() {
        let (episode, place, is_last) = place_of(step);
        assert_eq!(ages[offset].cast_unsigned(), place, "age of step {step}");
        assert_eq!((rewards[offset], actions[offset]), (step as f32, (step % 3).cast_signed()));
        assert_eq!(batch.column(LOG_PROBABILITIES).as_f32()[offset], -0.5 * step as f32);
        assert_eq!(is_terminated(flags[offset]), is_last && !is_cut_off(episode));
        for back in 0..STACK as u32 {
            let newest = offset + STACK - 1;
            let shown = frame_at(newest - back.min(place) as usize);
            assert_eq!(shown, frame(life, episode, place.saturating_sub(back)), "frame {back} before step {step} of life {life}");
        }
        assert!(offset + 1 == length || !(is_last && is_cut_off(episode)), "a fragment goes on after it was cut off");
    }
    let (episode, place, is_last) = place_of(first + length as u32 - 1);
    if !is_last || is_cut_off(episode) {
        assert_eq!(frame_at(STACK - 1 + length), frame(life, episode, place + 1), "where the last step of {first} led");
    }
    (life, first)
}

#[test]
fn fragments_are_taken_in_order_whole_and_once_and_their_observations_can_be_put_together() {
    let queue = queue(64);
    queue.join(0);
    let mut actor = actor(&queue, 0, 1);
    let mut expected = 0;
    for round in 0..30 {
        (0..3 + round % 5).for_each(|_| actor.complete_one());
        assert_eq!(queue.view().fresh(), 3 + round % 5);
        let chosen_by = std::mem::take(&mut actor.chosen_by);
        let drained = drain(&queue, 0);
        assert_eq!(drained.len(), chosen_by.len());
        for ((life, first), chosen_by) in drained.into_iter().zip(chosen_by) {
            assert_eq!((life, first, chosen_by), (1, expected, expected.into()));
            // Whole fragments, and what a truncation cut short: none is missing.
            let cut = (first..first + STEPS as u32).find(|&step| matches!(place_of(step), (episode, _, true) if is_cut_off(episode)));
            expected = cut.map_or(first + STEPS as u32, |step| step + 1);
        }
    }
    assert!(queue.view().tree().expect("a tree").audit().is_exact());
}

#[test]
fn actors_that_do_not_wait_overwrite_the_oldest_fragments_and_those_after_them_are_taken_in_order() {
    let queue = queue_with(64, Reuse { most_waiting: None, ..REUSE });
    queue.join(0);
    let limiter = queue.experience.limiter();
    let mut actor = actor(&queue, 0, 1);
    for fragment in 0..150 {
        assert!(limiter.turn(&queue.segment, queue.slot(0)).has_come(), "with {fragment} inserted");
        actor.complete_one();
    }
    assert_eq!(queue.view().fresh(), 64);
    let taken = drain(&queue, 0);
    assert!(taken.len() == 64 && taken.is_sorted(), "{taken:?}");
}

#[test]
fn several_learners_take_each_fragment_once_while_actors_and_learners_are_killed() {
    let kills = count_from_environment("SHOAL_TEST_FRAGMENT_KILLS", 60);
    let queue = queue(4_096);
    let (actors, learner) = ([0, 1], 2);
    queue.join(3);
    let mut random = random(3);
    let act = |slot: usize, life: u16| {
        queue.start(slot, || {
            let mut actor = actor(&queue, slot, life);
            // Never more than wait for learners, so that nothing is overwritten.
            loop {
                wait_until(|| queue.view().fresh() < 3_000);
                actor.complete_one();
            }
        })
    };
    // What the other learner took, per life: a count, since it dies with what it knows.
    let takes = |slot: usize| {
        queue.start(slot, || {
            let (mut replay, mut batch) = (queue.replay(slot), Batch::new(&queue.schema(), 1));
            loop {
                if replay.take(&mut batch, 0) {
                    verify(&batch);
                    queue.run.scratch(0).fetch_add(1, Ordering::SeqCst);
                }
            }
        })
    };
    let mut children: BTreeMap<usize, Pid> = actors.iter().map(|&slot| (slot, act(slot, slot as u16 + 1))).collect();
    children.insert(learner, takes(learner));
    let mut seen: BTreeMap<(u16, u32), usize> = BTreeMap::new();
    let mut lives = 3;
    let (mut replay, mut batch) = (queue.replay(3), Batch::new(&queue.schema(), 1));
    for _ in 0..kills {
        for _ in 0..random.random_range(1..200) {
            if replay.take(&mut batch, 0) {
                *seen.entry(verify(&batch)).or_default() += 1;
            }
        }
        let slot = random.random_range(0..3);
        kill_and_reap(children[&slot], slot);
        queue.repair(slot);
        lives += 1;
        children.insert(slot, if slot == learner { takes(slot) } else { act(slot, lives) });
    }
    for (slot, child) in children {
        kill_and_reap(child, slot);
        queue.repair(slot);
    }
    while replay.take(&mut batch, 0) {
        *seen.entry(verify(&batch)).or_default() += 1;
    }
    let twice: Vec<_> = seen.iter().filter(|&(_, &times)| times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let by_the_other = queue.run.scratch(0).load(Ordering::SeqCst);
    let [inserted, taken] = [queue.segment.control().inserted(), queue.segment.control().sampled()].map(|word| word.load(Ordering::SeqCst));
    let counted = seen.values().sum::<usize>() as u64 + by_the_other;
    // A learner may die after it has taken one and before it says so; an insertion may be counted twice by a repair.
    assert!(counted <= taken + kills && taken <= counted + kills, "{counted} of {taken}");
    assert!(counted <= inserted && inserted <= counted + 2 * kills, "{counted} of {inserted}");
    assert!(queue.view().tree().expect("a tree").audit().is_exact());
    report(&format!("{counted} fragments, {by_the_other} by a learner that was killed now and then"));
}

#[test]
fn a_learner_killed_after_any_instruction_of_taking_leaves_every_other_fragment_to_be_taken_once() {
    let queue = queue(64);
    queue.join(1);
    let mut actor = actor(&queue, 1, 1);
    (0..6).for_each(|_| actor.complete_one());
    let occupy = queue.promised(0);
    let traced = Traced::start(|| {
        occupy();
        let (mut replay, mut batch) = (queue.replay(0), Batch::new(&queue.schema(), 1));
        // The first use has allocated what it needs.
        assert!(replay.take(&mut batch, 0));
        move || assert!(replay.take(&mut batch, 0))
    });
    let (instructions, states) = sweep(&queue.segment, &traced, |instruction| {
        traced.bury(&queue.segment);
        queue.repair_once(0, instruction);
        let left = drain(&queue, 1);
        assert!((4..=5).contains(&left.len()) && left.is_sorted(), "killed after instruction {instruction}: {left:?}");
        queue.assert_exact(instruction);
    });
    assert!(instructions > 300 && states > 5, "{instructions} instructions, {states} states");
    report(&format!("taking: {instructions} instructions, {states} different states, all repaired"));
}

/// An actor in slot 0 that has completed a fragment, and is about to take the last step of the next one.
fn about_to_complete(queue: &Queue) -> Traced {
    let occupy = queue.promised(0);
    Traced::start(|| {
        occupy();
        let mut actor = actor(queue, 0, 9);
        actor.complete_one();
        (0..STEPS - 1).for_each(|_| assert!(!actor.record()));
        let (before, after, terminated, truncated) = actor.around(actor.step);
        move || assert!(actor.record_between(&before, &after, terminated, truncated))
    })
}

#[test]
fn an_actor_killed_after_any_instruction_of_completing_a_fragment_leaves_it_once_or_not_at_all() {
    let queue = queue(64);
    queue.join(1);
    let traced = about_to_complete(&queue);
    let mut most = 0;
    let (instructions, states) = sweep(&queue.segment, &traced, |instruction| {
        traced.bury(&queue.segment);
        queue.repair_once(0, instruction);
        let left = drain(&queue, 1);
        assert!((1..=2).contains(&left.len()), "killed after instruction {instruction}: {left:?}");
        assert!(left.len() >= most, "killed after instruction {instruction}: a fragment that was complete is gone");
        most = left.len();
        queue.assert_exact(instruction);
    });
    assert_eq!(most, 2);
    assert!(instructions > 300 && states > 5, "{instructions} instructions, {states} states");
    report(&format!("completing a fragment: {instructions} instructions, {states} different states, all repaired"));
}

#[test]
fn what_was_taken_from_an_actor_that_stood_still_is_not_there_again_once_it_was_killed_and_repaired_after() {
    let queue = queue(64);
    queue.join(1);
    let traced = about_to_complete(&queue);
    let mut early = 0;
    sweep(&queue.segment, &traced, |instruction| {
        let before = drain(&queue, 1);
        traced.bury(&queue.segment);
        queue.repair_once(0, instruction);
        let after = drain(&queue, 1);
        let all: Vec<_> = before.iter().chain(&after).collect();
        assert!(all.is_sorted_by(|one, next| one < next), "killed after instruction {instruction}: {before:?}, then {after:?}");
        assert!((1..=2).contains(&all.len()), "killed after instruction {instruction}: {all:?}");
        early += usize::from(before.len() == 2 && instruction > 0);
        queue.assert_exact(instruction);
    });
    assert!(early > 3, "the second fragment was taken before the repair in {early} states");
}

#[test]
fn an_actor_that_stands_still_after_any_instruction_holds_up_one_fragment_at_most() {
    const CAPACITY: usize = 64;
    let queue = queue(CAPACITY);
    queue.join(1);
    let traced = about_to_complete(&queue);
    let mut other = actor(&queue, 1, 3);
    // Every slot has a fragment that nobody has taken: the next insertion overwrites the oldest.
    (0..CAPACITY).for_each(|_| other.complete_one());
    sweep(&queue.segment, &traced, |instruction| {
        let taken = drain(&queue, 1).len();
        assert!(taken >= CAPACITY - 1, "stopped after instruction {instruction}: {taken} can be taken");
    });
}

#[test]
fn actors_wait_for_fragments_that_nobody_has_taken_whatever_the_counts_of_a_death_say() {
    let queue = queue(64);
    queue.join(0);
    queue.join(1);
    let limiter = queue.experience.limiter();
    let may_insert = || limiter.turn(&queue.segment, queue.slot(1)).has_come();
    let mut actor = actor(&queue, 0, 1);
    // As killed learners and actors leave the counts: inserted, and never counted as taken.
    queue.segment.control().inserted().fetch_add(1_000, Ordering::SeqCst);
    let band = limiter.error_band as usize;
    for fragment in 0..=band {
        assert!(may_insert(), "with {fragment} of {band} waiting");
        actor.complete_one();
    }
    assert!(!may_insert());
    assert_eq!(drain(&queue, 0).len(), band + 1);
    assert!(may_insert());
}
