//! The real loops of actors and a learner, each in a thread, one at a time: the test says who moves next, so no clock decides
//! who looks first. Whoever waits is served in order, whatever the scheduler likes.

use std::iter::repeat_n;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use shoal::algorithms::registry as algorithms;
use shoal::catalogue::Catalogue;
use shoal::config::Config;
use shoal::environments::registry;
use shoal::roles::run::{RoleError, Run};
use shoal::roles::supervisor::Plan;
use shoal::roles::{actor, learner};
use shoal::segment::control::{Control, RunState};
use shoal::segment::counters::Counter;
use shoal::segment::membership::View;
use shoal::segment::processes::{Phase, Role};
use shoal::segment::{Description, Segment};
use shoal::sync::Ordering;

/// Between two wake-ups of a process that sleeps although it is its turn to move.
const NUDGE: Duration = Duration::from_micros(100);
/// As many nudges in a row mean that the test hangs: a watchdog.
const NUDGES: u32 = 1_000_000;
const PUBLISH_INTERVAL: u64 = 4;
/// Updates that one flush calls for.
const UPDATES_PER_FLUSH: u64 = 12;
const FLUSHES: usize = 300;
/// Flushes until everybody is under way.
const WARM_UP: usize = 20;
/// Flushes over which shares are compared.
const WINDOW: usize = 100;

fn config(actors: usize, attached: usize) -> Config {
    let mut config = Config::for_environment("CartPole-v1");
    config.network.hidden = vec![16];
    config.algorithm.n_step = 3;
    config.actor.count = actors;
    config.actor.attach_slots = attached;
    config.actor.environments = 4;
    config.actor.flush_transitions = 16;
    // Only the number of transitions says when to flush: nothing may depend on the time that threads take.
    config.actor.flush_interval_ms = 60_000;
    config.learner.batch_size = 32;
    config.learner.publish_interval_updates = PUBLISH_INTERVAL;
    config.replay.samples_per_insert = Some((UPDATES_PER_FLUSH * 32) as f64 / 16.0);
    config.replay.min_size = 200;
    config.evaluator.enabled = false;
    config
}

/// A process of the run, as the scheduler sees it: it moves when it is told to, and says when it would like to move again.
struct Member<'scope> {
    go: Sender<()>,
    ready: Receiver<()>,
    thread: ScopedJoinHandle<'scope, Result<(), RoleError>>,
}

impl<'scope> Member<'scope> {
    fn start<'environment>(
        scope: &'scope Scope<'scope, 'environment>,
        name: &'scope str,
        config: &'scope Config,
        slot: usize,
        role: Role,
        number: usize,
    ) -> Self {
        let (go, allowed) = channel::<()>();
        let (asks, ready) = channel();
        let thread = scope.spawn(move || {
            let segment = Segment::attach(name).expect("the segment of the run");
            let environment = registry::spec(&config.environment.id).expect("a known environment");
            let algorithm = algorithms::build(config, &environment)?;
            let process = segment.processes().slot(slot);
            assert!(process.reserve(role, number).is_some_and(|generation| process.occupy(std::process::id(), generation)));
            // Every loop and every wait asks this before it goes on.
            let supervisor_alive = || asks.send(()).is_ok() && allowed.recv().is_ok();
            let run = Run {
                segment: &segment,
                config,
                algorithm: &*algorithm,
                environment: &environment,
                catalogue: &Catalogue::default(),
                process,
                role,
                number,
                incarnation: process.generation(),
                supervisor_alive: &supervisor_alive,
            };
            if role == Role::Learner { learner::run(&run) } else { actor::run(&run) }
        });
        Self { go, ready, thread }
    }

    /// Let it move, and wait until it would like to move again.
    fn moves(&self, control: Control<'_>) {
        self.go.send(()).expect("it waits to be told");
        self.wait(control);
    }

    fn wait(&self, control: Control<'_>) {
        for _ in 0..NUDGES {
            match self.ready.recv_timeout(NUDGE) {
                Ok(()) => return,
                // It sleeps in line. Whether it may go on then is no question of time.
                Err(RecvTimeoutError::Timeout) => control.set_run_state(RunState::Running),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        panic!("a process of the run has ended, or does not move");
    }
}

/// What a run came to.
struct Played {
    /// Who flushed, in order.
    flushes: Vec<usize>,
    /// The largest policy lag of any actor, in updates.
    lag_max: u64,
}

/// Begin a run of `actors` actors, `attached` actors after them, and a learner in the last slot; play it as `play` says; end it.
fn in_a_run<T>(actors: usize, attached: usize, play: impl FnOnce(&Segment, &[Member<'_>]) -> T) -> T {
    let config = config(actors, attached);
    let environment = registry::spec(&config.environment.id).expect("a known environment");
    let algorithm = algorithms::build(&config, &environment).expect("an algorithm");
    let layout = Plan::new(&config, &*algorithm, &[0], &[]).expect("a plan").layout;
    let description = Description { fields: algorithm.schema().describe(), ..Description::default() };
    let segment = Segment::create(layout, &description, false).expect("a small segment");
    let control = segment.control();
    control.set_run_state(RunState::Running);
    View { epoch: 1, members: 1, leader: Some(0), doublings: 0 }.store(control.membership());
    let everybody = actors + attached;
    let name = segment.name().to_owned();
    thread::scope(|scope| {
        let mut members: Vec<Member<'_>> = (0..everybody)
            .map(|slot| {
                let role = if slot < actors { Role::Actor } else { Role::AttachedActor };
                Member::start(scope, &name, &config, slot, role, slot)
            })
            .collect();
        members.push(Member::start(scope, &name, &config, everybody, Role::Learner, 0));
        members.iter().for_each(|member| member.wait(control));
        let played = play(&segment, &members);
        control.set_run_state(RunState::Stopping);
        for Member { go, ready, thread } in members {
            drop((go, ready));
            thread.join().expect("no panic").expect("an orderly end");
        }
        played
    })
}

/// Play until there were enough flushes. In each round actors, and then those attached, move as often as `favour` says, and
/// the learner once.
fn play(actors: usize, attached: usize, favour: &[usize]) -> Played {
    in_a_run(actors, attached, |segment, members| {
        let (control, everybody) = (segment.control(), actors + attached);
        let counter = |slot: usize, counter| segment.processes().slot(slot).counters().get(counter);
        // One round: each moves as often as it is favoured, in another order each time.
        let moves = favour.iter().copied().chain([1]).enumerate();
        let mut round: Vec<usize> = moves.flat_map(|(member, times)| repeat_n(member, times)).collect();
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut played = Played { flushes: Vec::new(), lag_max: 0 };
        let mut inserted = vec![0; everybody];
        let mut position = 0;
        while played.flushes.len() < FLUSHES {
            if position == 0 {
                round.shuffle(&mut random);
            }
            let next = round[position];
            position = (position + 1) % round.len();
            members[next].moves(control);
            if next < everybody && counter(next, Counter::Inserted) != inserted[next] {
                inserted[next] = counter(next, Counter::Inserted);
                // Until there are enough transitions to learn from nobody waits.
                if control.sampled().load(Ordering::Relaxed) > 0 {
                    played.flushes.push(next);
                }
                if played.flushes.len() == WARM_UP {
                    for slot in segment.processes().iter() {
                        slot.counters().add(Counter::PolicyLagMax, slot.counters().get(Counter::PolicyLagMax).wrapping_neg());
                    }
                }
            }
        }
        played.lag_max = (0..everybody).map(|slot| counter(slot, Counter::PolicyLagMax)).max().unwrap_or(0);
        played
    })
}

/// Everybody gets at least half of an equal share over any hundred flushes, once all are under way.
fn assert_shares_are_fair(played: &Played, members: usize) {
    let counts =
        |window: &[usize]| (0..members).map(|member| window.iter().filter(|&&flusher| flusher == member).count()).collect::<Vec<_>>();
    for (first, window) in played.flushes.windows(WINDOW).enumerate().skip(WARM_UP) {
        let counts = counts(window);
        let least = counts.iter().copied().min().unwrap_or(0);
        assert!(2 * least * members >= WINDOW, "flushes {first} to {}: {counts:?} by {members} actors", first + WINDOW);
    }
}

/// Room for the publication that is under way, and for what a learner does while a flush is made.
const FEW_PUBLICATIONS: u64 = 4 * PUBLISH_INTERVAL;

#[test]
fn actors_that_wait_are_served_in_order_and_act_by_new_parameters_whoever_is_favoured() {
    for favour in [&[1, 1][..], &[8, 1], &[1, 1, 1], &[6, 1, 2], &[8, 1, 1, 4]] {
        let played = play(favour.len(), 0, favour);
        assert_shares_are_fair(&played, favour.len());
        assert!(played.lag_max <= FEW_PUBLICATIONS, "a lag of {} updates with {} actors", played.lag_max, favour.len());
    }
}

#[test]
fn attached_actors_count_like_any() {
    let played = play(1, 2, &[6, 1, 1]);
    assert_shares_are_fair(&played, 3);
    assert!(played.lag_max <= FEW_PUBLICATIONS, "a lag of {} updates", played.lag_max);
}

#[test]
fn a_wait_is_counted_while_it_goes_on() {
    in_a_run(1, 0, |segment, members| {
        // Each moves alone until it waits for the other: first the learner has nothing to draw, then the actor has no room.
        for alone in [1, 0] {
            let slot = segment.processes().slot(alone);
            while slot.phase() != Some(Phase::LimiterWait) {
                members[alone].moves(segment.control());
            }
            for _ in 0..3 {
                let before = slot.counters().get(Counter::LimiterWaitNs);
                members[alone].moves(segment.control());
                assert_eq!(slot.phase(), Some(Phase::LimiterWait));
                assert!(slot.counters().get(Counter::LimiterWaitNs) > before, "process {alone} waits, and nobody can tell how long");
            }
        }
    });
}
