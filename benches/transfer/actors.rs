//! Another actor, and one fewer: what a run that fits itself to the machine has its supervisor do.
//!
//! The calls are those of a supervisor and its child, in their order, and the child acts in the library's own loop. What a supervisor knows
//! beside that is not there: it has loaded no libtorch and no Python, whose pages a fork would have to map in the child as well.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use shoal::algorithms::{Algorithm, registry as algorithms};
use shoal::catalogue::Catalogue;
use shoal::config::Config;
use shoal::environments::{EnvironmentSpec, registry as environments};
use shoal::machine::affinity;
use shoal::roles::actor;
use shoal::roles::run::Run;
use shoal::roles::supervisor::Plan;
use shoal::segment::control::RunState;
use shoal::segment::counters::Counter;
use shoal::segment::pidfd::Pidfd;
use shoal::segment::processes::{ProcessSlot, Role, SlotState};
use shoal::segment::system::{self, AfterParent};
use shoal::segment::{Description, Segment};
use shoal::sync::monotonic_ns;

use crate::measure::WARM_UP;

/// Environment steps that an actor has taken at least when it is asked to leave: those of some flushes.
const STEPS: u64 = 600;
/// Environment steps of a run that does not end by them.
const ENDLESS: u64 = 1_000_000_000_000;
/// How long an actor may take to leave.
const PATIENCE: Duration = Duration::from_secs(10);

/// Nanoseconds that each of several actors took.
#[derive(Default)]
pub(crate) struct ActorTimes {
    /// From before the fork until the actor has taken its slot, which is the first that it writes into shared memory.
    pub(crate) come_ns: Vec<u64>,
    /// From before SIGTERM until it has been waited for.
    pub(crate) go_ns: Vec<u64>,
}

/// A run of the defaults on CartPole in which nobody learns, and so no actor waits for learners.
pub(crate) struct Actors {
    config: Config,
    environment: EnvironmentSpec,
    algorithm: Box<dyn Algorithm>,
    segment: Segment,
    /// Cores that the supervisor and its actors share.
    cores: Vec<usize>,
}

impl Actors {
    pub(crate) fn new(cores: Vec<usize>) -> Self {
        let mut config = Config::for_environment("CartPole-v1");
        config.replay.samples_per_insert = None;
        config.run.stop_env_steps = ENDLESS;
        let environment = environments::spec(&config.environment.id).expect("a known environment");
        let algorithm = algorithms::build(&config, &environment).expect("an algorithm");
        let layout = Plan::new(&config, &*algorithm, &[0], &[]).expect("a plan").layout;
        let segment = Segment::create(layout, &Description::default(), false).expect("room in /dev/shm");
        segment.control().set_run_state(RunState::Running);
        Self { config, environment, algorithm, segment, cores }
    }

    /// Start `count` actors, each once the one before has left.
    pub(crate) fn come_and_go(&self, count: usize) -> ActorTimes {
        // A child has the cores of its parent until it binds itself, and this process does not sleep while it waits.
        self.bind();
        let mut times = ActorTimes::default();
        for number in 0..WARM_UP + count {
            let [come_ns, go_ns] = self.time_one();
            if number >= WARM_UP {
                times.come_ns.push(come_ns);
                times.go_ns.push(go_ns);
            }
        }
        times
    }

    fn bind(&self) {
        // Without its cores a process is slower, not wrong.
        let _ = self.cores.is_empty() || affinity::bind_current_process(&self.cores).is_ok();
    }

    /// Nanoseconds of one actor.
    fn time_one(&self) -> [u64; 2] {
        let slot = self.slot();
        let generation = slot.reserve(Role::Actor, 0).expect("the actor before has left");
        let steps = || slot.counters().get(Counter::EnvSteps);
        let steps_before = steps();
        let forked_ns = monotonic_ns();
        let child = system::fork_follower(AfterParent::IsAskedToLeave, || self.act(generation)).expect("fork");
        let process = Pidfd::open(child.as_raw().cast_unsigned()).expect("a descriptor");
        let wait_until = |condition: &dyn Fn() -> bool| {
            while !condition() {
                assert!(!process.has_ended(), "the actor failed");
            }
        };
        wait_until(&|| slot.state() == SlotState::Live);
        let there_ns = monotonic_ns();
        wait_until(&|| steps() >= steps_before + STEPS);
        let asked_ns = monotonic_ns();
        kill(child, Signal::SIGTERM).expect("a child of this process");
        // A supervisor sleeps until the kernel reports the end.
        assert!(process.ends_within(PATIENCE), "the actor does not leave");
        let status = waitpid(child, None);
        let gone_ns = monotonic_ns();
        assert!(matches!(status, Ok(WaitStatus::Exited(_, 0))), "the actor failed: {status:?}");
        slot.release();
        [there_ns - forked_ns, gone_ns - asked_ns]
    }

    /// What the child does, until it is asked to leave.
    fn act(&self, generation: u64) -> i32 {
        self.segment.disown();
        system::ignore_signals_of_the_run().expect("they can be ignored");
        system::handle_stop_signals_of_child().expect("they can be handled");
        self.bind();
        let process = self.slot();
        assert!(process.occupy(std::process::id(), generation), "the slot was promised to it");
        let run = Run {
            segment: &self.segment,
            config: &self.config,
            algorithm: &*self.algorithm,
            environment: &self.environment,
            catalogue: &Catalogue::default(),
            process,
            role: Role::Actor,
            number: 0,
            incarnation: generation,
            supervisor_alive: &|| true,
        };
        actor::run(&run).expect("CartPole does not fail");
        0
    }

    fn slot(&self) -> ProcessSlot<'_> {
        self.segment.processes().slot(0)
    }
}
