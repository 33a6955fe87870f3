//! Each verdict on the times of a run that shows it. `tests/runs/bottleneck_advice.rs` has real ones.

use super::super::snapshot::Effort;
use super::super::{ActorTime, LearnerTime};
use super::*;
use crate::machine::machine_time::MachineTime;

fn context() -> Context {
    let mut config = Config::for_environment("CartPole-v1");
    (config.actor.count, config.learner.count, config.learner.batch_size) = (4, 1, 256);
    config.replay.samples_per_insert = Some(32.0);
    Context::new(config, 7)
}

fn with(change: impl FnOnce(&mut Config)) -> Context {
    let mut context = context();
    change(&mut context.config);
    context
}

/// A run of 25 seconds whose four actors and one learner computed whenever they did not wait.
fn run(actor: [f64; 4], learner: [f64; 5]) -> Snapshot {
    let [environment_s, inference_s, insert_s, limiter_wait_s] = actor;
    let processor_s = environment_s + inference_s + insert_s;
    let actor_time = ActorTime { environment_s, inference_s, insert_s, limiter_wait_s, processor_s, core_wait_s: 0.0 };
    let [replay_s, compute_s, exchange_s, publish_s, limiter_wait_s] = learner;
    let processor_s = replay_s + compute_s + exchange_s + publish_s;
    let learner_time = LearnerTime { replay_s, compute_s, exchange_s, publish_s, limiter_wait_s, processor_s, core_wait_s: 0.0 };
    Snapshot { wall_s: 25.0, updates: 5000, inserted: 10_000, sampled: 320_000, actor_time, learner_time, ..Snapshot::default() }
}

fn judge(snapshot: &Snapshot, context: &Context) -> Diagnosis {
    verdict_since(&Snapshot::default(), Some(&Snapshot::default()), snapshot, Clock::Wall, context)
}

/// The keys of the advice with the values to try, in order.
fn settings(verdict: &Diagnosis) -> Vec<String> {
    verdict.advice.iter().flat_map(|advice| &advice.set).map(|setting| format!("{}={}", setting.key, setting.to)).collect()
}

#[test]
fn actors_that_wait_for_busy_learners_show_a_learner_bound_run() {
    let verdict = judge(&run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]), &context());
    assert_eq!(verdict.bottleneck, Bottleneck::Learners);
    assert_eq!(
        verdict.to_string(),
        "learner-bound: actors waited 71 % of their time for the rate limiter, learners 4 % (learners: 80 % gradients); \
         set learner.count=2 (now 1): 4.88 cores were idle, and each learner then computes less of every batch; \
         or set network.hidden=[128,128] (now [256,256]): a smaller network is faster and changes what is learned; \
         or set replay.samples_per_insert=16 (now 32): more environment steps for the same updates; each transition is learned from less \
         often, which changes what is learned"
    );
}

#[test]
fn cores_that_other_programs_use_are_not_idle() {
    let alone = run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]);
    assert_eq!(settings(&judge(&alone, &context()))[0], "learner.count=2");
    let machine_time = MachineTime { busy: 97, total: 100 };
    let beside_others = Snapshot { effort_in_training: Effort { machine_time, ..Effort::default() }, ..alone.clone() };
    let read_back = Snapshot { machine_busy_share: Some(0.97), ..alone };
    for crowded in [beside_others, read_back] {
        assert!(!settings(&judge(&crowded, &context())).contains(&"learner.count=2".to_owned()));
    }
}

#[test]
fn a_run_whose_cores_other_programs_take_is_told_so_and_not_to_shrink_its_network() {
    let mut crowded = run([0.2, 0.3, 0.1, 24.4], [1.0, 7.0, 0.0, 0.5, 0.2]);
    crowded.learner_time.core_wait_s = 9.0;
    let of_two_cores = Context { cores: 2.0, machine_cores: 2, ..with(|config| config.actor.count = 1) };
    let verdict = judge(&crowded, &of_two_cores);
    assert_eq!(verdict.bottleneck, Bottleneck::Learners);
    let told = "; the run used 0.36 of 2 cores and waited for one in 50 % of the time in which it had work: other programs take them";
    assert!(verdict.to_string().contains(told), "{verdict}");
    assert!(!verdict.to_string().contains("network.hidden"), "{verdict}");
    crowded.effort_in_training.machine_time = MachineTime { busy: 25, total: 100 };
    assert!(!judge(&crowded, &of_two_cores).to_string().contains("other programs"), "its processes were in each other's way");
    crowded.learner_time.core_wait_s = 0.0;
    let alone = judge(&crowded, &of_two_cores).to_string();
    assert!(alone.contains("network.hidden") && !alone.contains("other programs"), "{alone}");
}

#[test]
fn a_control_group_that_leaves_a_run_a_part_of_a_core_is_not_taken_for_other_programs() {
    let mut throttled = run([0.5, 0.5, 0.2, 23.8], [1.0, 9.0, 0.0, 0.5, 0.2]);
    throttled.learner_time.core_wait_s = 12.0;
    let of = |cores| judge(&throttled, &Context { cores, machine_cores: 2, ..with(|config| config.actor.count = 1) }).to_string();
    assert!(of(1.0).contains("other programs take them"), "{}", of(1.0));
    assert!(of(0.5).contains("network.hidden") && !of(0.5).contains("other programs"), "{}", of(0.5));
}

#[test]
fn cores_that_other_programs_use_elsewhere_on_a_larger_machine_leave_those_of_the_run_idle() {
    let machine_time = MachineTime { busy: 95, total: 100 };
    let effort_in_training = Effort { machine_time, ..Effort::default() };
    let beside_others = Snapshot { effort_in_training, ..run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]) };
    let verdict = judge(&beside_others, &Context { machine_cores: 64, ..context() });
    assert!(verdict.to_string().contains("set learner.count=2 (now 1): 3.2 cores were idle"), "{verdict}");
}

#[test]
fn the_advice_follows_the_slowest_part_of_learning() {
    let three = with(|config| (config.learner.count, config.learner.batch_size) = (3, 255));
    let exchange = judge(&run([10.0, 15.0, 4.0, 71.0], [3.0, 5.0, 52.0, 1.0, 1.0]), &three);
    assert_eq!(settings(&exchange)[0], "learner.count=1");
    let drawing = judge(&run([10.0, 15.0, 4.0, 71.0], [20.0, 3.0, 0.0, 1.0, 1.0]), &Context { cores: 1.0, ..context() });
    assert_eq!(settings(&drawing), ["replay.samples_per_insert=16"], "a smaller network would draw as slowly");
}

#[test]
fn learners_are_added_while_cores_are_idle_and_each_has_enough_to_compute() {
    let busy = run([1.0, 1.5, 0.5, 97.0], [3.0, 20.0, 0.0, 1.0, 1.0]);
    assert_eq!(settings(&judge(&busy, &Context { cores: 2.0, ..context() }))[0], "learner.count=2", "the actors hardly use theirs");
    let crowded = run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]);
    assert!(!judge(&crowded, &Context { cores: 2.0, ..context() }).to_string().contains("learner.count"), "both cores are taken");
    let small = with(|config| config.learner.batch_size = 64);
    assert!(!judge(&busy, &small).to_string().contains("learner.count"), "32 transitions each are not worth an exchange");
    let odd = with(|config| config.learner.batch_size = 387);
    assert_eq!(settings(&judge(&busy, &odd))[0], "learner.count=3", "every learner draws the same share");
}

#[test]
fn learners_that_wait_for_computing_actors_are_told_of_idle_cores() {
    let verdict = judge(&run([70.0, 15.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &context());
    assert_eq!(verdict.bottleneck, Bottleneck::Actors);
    assert_eq!(
        verdict.to_string(),
        "actor-bound: learners waited 60 % of their time for new transitions, actors 2 % (actors: 70 % stepping environments, on a \
         core 98 % of their time); set actor.count=7 (now 4): 2.68 of 7 cores were idle; or set replay.samples_per_insert=64 (now \
         32): more updates for the same environment steps; each transition is learned from more often, which changes what is learned"
    );
}

#[test]
fn idle_cores_are_those_that_the_run_may_use_when_training_ends() {
    let now = run([70.0, 15.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]);
    let advised = |cores| {
        let mut judged = Judged::new(context());
        (0..3).for_each(|updates| judged.record(&Snapshot { updates, ..Snapshot::default() }));
        judged.training_ended(&now, cores);
        settings(&judged.verdict(&now))
    };
    assert_eq!(advised(7.0), ["actor.count=7", "replay.samples_per_insert=64"]);
    assert_eq!(advised(2.0), ["replay.samples_per_insert=64"], "five of them were taken from it");
}

#[test]
fn environments_that_sleep_call_for_more_actors_on_the_same_cores() {
    let mut sleepy = run([97.0, 1.0, 1.0, 1.0], [2.0, 7.0, 0.0, 1.0, 15.0]);
    sleepy.actor_time.processor_s = 3.0;
    let verdict = judge(&sleepy, &Context { cores: 2.0, ..context() });
    assert_eq!(verdict.bottleneck, Bottleneck::Actors);
    assert_eq!(settings(&verdict)[0], "actor.count=16");
    assert!(verdict.to_string().contains("environments slept 96 % of the actors' time, which costs no core"), "{verdict}");
    let mut held_back = sleepy.clone();
    held_back.actor_time.limiter_wait_s += 25.0;
    let verdict = judge(&held_back, &Context { cores: 2.0, ..context() }).to_string();
    let told = ["actors 21 % (actors: 78 % stepping", "environments slept 77 % of the actors' time"];
    assert!(told.iter().all(|told| verdict.contains(told)), "shares of one whole: {verdict}");
    // The same wall times, but the processes were ready to run and had no core.
    sleepy.actor_time.core_wait_s = 94.0;
    let verdict = judge(&sleepy, &Context { cores: 2.0, ..context() });
    assert_eq!(settings(&verdict), ["replay.samples_per_insert=64"]);
    assert!(verdict.to_string().contains("on a core 3 % of their time, waiting for one 94 %"), "{verdict}");
}

#[test]
fn the_advice_follows_the_slowest_part_of_acting() {
    let inference = judge(&run([10.0, 75.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &context());
    assert_eq!(settings(&inference)[0], "actor.environments=32");
    for (now, offered) in [(2_048, Some("actor.environments=4096")), (4_096, None)] {
        let many = with(|config| {
            (config.actor.environments, config.actor.count, config.replay.capacity) = (now, 1, 1 << 20);
            (config.replay.samples_per_insert, config.replay.error_band) = (Some(1.0), None);
        });
        let all = settings(&judge(&run([10.0, 75.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &many));
        assert_eq!(all.iter().find(|setting| setting.starts_with("actor.environments")).map(String::as_str), offered, "{all:?}");
    }
    let inserting = run([10.0, 15.0, 73.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]);
    let small = with(|config| config.actor.flush_transitions = 8);
    assert_eq!(settings(&judge(&inserting, &small))[0], "actor.flush_transitions=64");
    assert_eq!(settings(&judge(&inserting, &context()))[0], "actor.count=7", "64 are a large portion already");
    let full = judge(&run([70.0, 15.0, 13.0, 2.0], [2.0, 7.0, 0.0, 1.0, 15.0]), &Context { cores: 4.0, ..context() });
    assert_eq!(settings(&full), ["replay.samples_per_insert=64"], "no core is offered that is not there");
}

#[test]
fn learners_on_a_gpu_are_offered_a_larger_batch_and_no_company() {
    let on_gpu = |batch: usize| {
        with(|config| {
            config.learner.device = "cuda:0".into();
            (config.learner.batch_size, config.replay.min_size) = (batch, batch.max(2_000));
        })
    };
    let busy = run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]);
    let all = |batch| settings(&judge(&busy, &Context { cores: 16.0, ..on_gpu(batch) }));
    assert_eq!(all(256)[..2], ["learner.batch_size=1024", "network.hidden=[128,128]"]);
    assert_eq!(all(1_024)[..2], ["learner.batch_size=4096", "replay.min_size=4096"]);
    assert_eq!(all(2_048)[0], "network.hidden=[128,128]");
    let mut ppo = on_gpu(256);
    (ppo.config.algorithm.name, ppo.config.algorithm.minibatches) = ("ppo".into(), 16);
    assert_eq!(settings(&judge(&busy, &ppo))[..2], ["learner.batch_size=1024", "algorithm.minibatches=16"], "it keeps its parts");
    let mut sac = on_gpu(256);
    sac.config.algorithm.name = "sac".into();
    assert_eq!(
        settings(&judge(&busy, &sac))[..2],
        ["learner.batch_size=1024", "replay.samples_per_insert=32"],
        "fewer updates for each step"
    );
}

#[test]
fn two_sides_that_wait_for_each_other_show_the_rate_limiter() {
    let verdict = judge(&run([30.0, 15.0, 15.0, 40.0], [5.0, 8.0, 0.0, 2.0, 10.0]), &with(|config| config.replay.error_band = Some(700.0)));
    assert_eq!(verdict.bottleneck, Bottleneck::RateLimiter);
    assert!(verdict.to_string().contains("actors waited 40 % and learners 40 %"), "{verdict}");
    assert_eq!(settings(&verdict), ["replay.error_band=2800"]);
    let in_turns = judge(&run([7.0, 3.0, 3.0, 12.0], [5.0, 8.0, 0.0, 1.0, 11.0]), &Context { cores: 1.0, ..context() });
    assert_eq!(in_turns.bottleneck, Bottleneck::Cores, "where one core does everything, one side always waits");
}

#[test]
fn two_sides_that_wait_for_each_others_fragments_take_turns_and_only_appo_is_advised_to_let_more_of_them_wait() {
    let [ppo, appo] = ["ppo", "appo"].map(|name| with(|config| config.algorithm.name = name.into()));
    let verdict = |context: &Context| judge(&run([30.0, 15.0, 15.0, 40.0], [5.0, 8.0, 0.0, 2.0, 10.0]), context);
    assert_eq!(verdict(&ppo).bottleneck, Bottleneck::Turns);
    let told = "acting and learning take turns: actors waited 40 % and learners 40 % of their time for each other";
    assert_eq!(verdict(&ppo).to_string(), told);
    assert_eq!(settings(&verdict(&appo)), [format!("fragments.capacity={}", 4 * appo.config.fragment_capacity())]);
    let few = with(|config| {
        (config.algorithm.name, config.learner.batch_size) = ("appo".into(), 64);
        (config.actor.environments, config.actor.attach_slots) = (1, 0);
    });
    assert_eq!(settings(&verdict(&few)), ["fragments.capacity=64"], "eight places, and no run may configure fewer than 64");
}

#[test]
fn sides_that_never_wait_show_the_cores() {
    let mut busy = run([60.0, 25.0, 10.0, 5.0], [5.0, 18.0, 0.0, 1.0, 1.0]);
    let roomy = judge(&busy, &Context { cores: 9.0, ..context() });
    assert_eq!(roomy.bottleneck, Bottleneck::Cores);
    assert_eq!(settings(&roomy), ["learner.count=2", "actor.count=8", "network.hidden=[128,128]"]);
    assert!(roomy.to_string().contains("set learner.count=2 (now 1) and set actor.count=8 (now 4)"), "{roomy}");
    let crowded = judge(&busy, &Context { cores: 5.0, ..context() });
    assert_eq!(settings(&crowded), ["network.hidden=[128,128]"]);
    assert!(crowded.to_string().contains("the run used 4.76 of 5 cores"), "{crowded}");
    let smallest = judge(&busy, &Context { cores: 5.0, ..with(|config| config.network.hidden = vec![1]) });
    assert_eq!(settings(&smallest), [""; 0], "nothing is smaller");
    (busy.actor_time.processor_s, busy.actor_time.core_wait_s) = (45.0, 50.0);
    let beside_others = judge(&busy, &Context { cores: 5.0, ..context() });
    let told = "waited for one in 42 % of the time in which it had work: other programs take them";
    assert!(beside_others.to_string().contains(told), "{beside_others}");
}

#[test]
fn a_free_run_is_judged_by_its_rates() {
    let free = with(|config| config.replay.samples_per_insert = None);
    let run = run([60.0, 25.0, 15.0, 0.0], [5.0, 19.0, 0.0, 1.0, 0.0]);
    let mut slow_learners = Snapshot { sampled: 4_000, ..run.clone() };
    let verdict = judge(&slow_learners, &free);
    assert_eq!(verdict.bottleneck, Bottleneck::Learners);
    assert!(verdict.to_string().contains("0.4 samples per inserted transition (learners: 76 % gradients)"), "{verdict}");
    assert_eq!(settings(&verdict).last().unwrap(), "replay.samples_per_insert=8");
    (slow_learners.learner_time.processor_s, slow_learners.learner_time.core_wait_s) = (15.0, 10.0);
    assert!(settings(&judge(&slow_learners, &free)).contains(&"actor.count=2".into()), "actors take the learner's core");
    let slow_actors = judge(&Snapshot { sampled: 900_000, ..run.clone() }, &free);
    assert_eq!(slow_actors.bottleneck, Bottleneck::Actors);
    assert!(slow_actors.to_string().contains("90 samples per inserted transition (actors: 60 % stepping"), "{slow_actors}");
    assert_eq!(settings(&slow_actors).last().unwrap(), "replay.samples_per_insert=32");
    assert_eq!(judge(&Snapshot { sampled: 80_000, ..run.clone() }, &free).bottleneck, Bottleneck::Cores);
    let sac = with(|config| (config.algorithm.name, config.replay.samples_per_insert) = ("sac".into(), None));
    assert_eq!(judge(&Snapshot { sampled: 900_000, ..run.clone() }, &sac).bottleneck, Bottleneck::Cores, "256 are an update for each step");
    assert_eq!(settings(&judge(&Snapshot { sampled: 3_000_000, ..run }, &sac)).last().unwrap(), "replay.samples_per_insert=256");
}

#[test]
fn one_process_is_told_how_its_time_divides() {
    let verdict = judge(&run([2.0, 3.0, 0.0, 0.0], [5.0, 10.0, 0.0, 0.0, 0.0]), &with(|config| config.actor.count = 0));
    assert_eq!(verdict.bottleneck, Bottleneck::OneProcess);
    assert!(verdict.to_string().contains("acting took 25 % and learning 75 %"), "{verdict}");
    assert_eq!(settings(&verdict), ["actor.count=1"]);
}

#[test]
fn processes_that_keep_failing_are_what_holds_a_run_back() {
    // Learners wait and acting is mostly inference: a process that has just begun.
    let run = run([2.0, 4.0, 1.0, 0.0], [1.0, 3.0, 0.0, 0.0, 21.0]);
    let failing = Snapshot { restarts: 9, ..run.clone() };
    let verdict = judge(&failing, &context());
    assert_eq!((verdict.bottleneck, settings(&verdict)), (Bottleneck::Failures, Vec::new()));
    assert_eq!(
        verdict.to_string(),
        "held back by failures: 9 deaths in the time judged, and actors worked for only 7 % of that time; run.log says how processes failed"
    );
    let once = judge(&Snapshot { restarts: 1, ..run.clone() }, &context()).to_string();
    assert!(once.contains("1 death in the time judged"), "{once}");
    let before_learning = verdict_since(&Snapshot::default(), None, &failing, Clock::Wall, &context());
    assert_eq!(before_learning.bottleneck, Bottleneck::Failures, "also before the first update");
    assert_eq!(judge(&run, &context()).bottleneck, Bottleneck::Actors);
    let one_death = Snapshot { restarts: 1, ..super::tests::run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]) };
    assert_eq!(judge(&one_death, &context()).bottleneck, Bottleneck::Learners, "everybody worked all the time");
    // It had one actor for most of the time, and has sixteen now.
    let fitted = Context { adapts: true, ..with(|config| config.actor.count = 16) };
    assert_eq!(judge(&one_death, &fitted).bottleneck, Bottleneck::Learners, "of those that there were everybody worked");
}

#[test]
fn a_run_that_hardly_began_is_not_judged() {
    let short = judge(&run([0.1, 0.1, 0.0, 0.0], [0.1, 0.1, 0.0, 0.0, 0.0]), &context());
    assert_eq!(short.bottleneck, Bottleneck::Unknown);
    assert_eq!(short.to_string(), "no bottleneck to name: too short a time to judge, with 5000 updates in 0:25");
    // Both sides waited, for the first transitions and for the first update.
    let start_up = run([10.0, 15.0, 4.0, 71.0], [3.0, 6.0, 0.0, 0.0, 16.0]);
    assert_eq!(verdict_since(&Snapshot::default(), None, &start_up, Clock::Wall, &context()).bottleneck, Bottleneck::Unknown);
    // What its earlier lives did, and how often processes failed in them, is nothing that this one did.
    let first = Snapshot { wall_s: 18_000.0, updates: 1_000_000, restarts: 9, ..Snapshot::default() };
    let resumed = verdict_since(&first, None, &Snapshot { wall_s: 18_003.0, ..first.clone() }, Clock::Wall, &context());
    assert_eq!(resumed.to_string(), "no bottleneck to name: too short a time to judge, with 0 updates in 0:03");
}

#[test]
fn the_time_before_learning_does_not_count() {
    let filling = run([50.0, 20.0, 5.0, 0.0], [0.0, 0.0, 0.0, 0.0, 75.0]);
    let end = Snapshot { wall_s: 50.0, ..run([60.0, 35.0, 9.0, 71.0], [3.0, 20.0, 0.0, 1.0, 76.0]) };
    assert_eq!(judge(&end, &context()).bottleneck, Bottleneck::RateLimiter);
    let since_filling = verdict_since(&Snapshot::default(), Some(&filling), &end, Clock::Wall, &context());
    assert_eq!(since_filling.bottleneck, Bottleneck::Learners);
}

#[test]
fn ppo_is_advised_of_its_own_keys_and_of_no_learner_that_would_not_pay() {
    let ppo = with(|config| {
        config.algorithm.name = "ppo".into();
        (config.algorithm.epochs, config.algorithm.minibatches, config.fragments.length_steps) = (16, 4, 32);
    });
    let verdict = judge(&run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]), &ppo);
    assert_eq!(settings(&verdict), ["network.hidden=[128,128]", "algorithm.epochs=8"]);
    assert!(verdict.to_string().contains("for learners to take a batch"), "{verdict}");
}

#[test]
fn more_environments_than_a_batch_has_fragments_are_advised_with_their_price() {
    let of = |batch_size| {
        with(|config| {
            config.algorithm.name = "ppo".into();
            (config.actor.count, config.actor.environments) = (1, 8);
            (config.fragments.length_steps, config.learner.batch_size) = (32, batch_size);
        })
    };
    // Inference takes the longest, and learners wait.
    let moment = run([10.0, 70.0, 4.0, 1.0], [3.0, 8.0, 0.0, 1.0, 13.0]);
    let warned = |context: &Context| {
        let verdict = judge(&moment, context);
        let advice = verdict.advice.iter().find(|advice| advice.set[0].key == "actor.environments").unwrap_or_else(|| panic!("{verdict}"));
        advice.why.contains("the batch grows with the environments or, if it is configured, fragments are older")
    };
    assert!(warned(&of(256)) && !warned(&of(32 * 64)));
}

#[test]
fn fragments_that_are_overwritten_are_judged_by_what_was_dropped_and_not_by_samples_per_insert() {
    let appo = with(|config| {
        config.algorithm.name = "appo".into();
        (config.fragments.on_full, config.fragments.uses) = (OnFull::DropOldest, 2);
        (config.fragments.length_steps, config.learner.batch_size) = (32, 256);
    });
    let judged = |dropped_fragments: u64, learner: [f64; 5]| {
        let snapshot = Snapshot { inserted: 10_000, sampled: 10_000, dropped_fragments, ..run([10.0, 15.0, 75.0, 0.0], learner) };
        judge(&snapshot, &appo)
    };
    let waiting = judged(100, [3.0, 8.0, 0.0, 1.0, 13.0]);
    assert_eq!(waiting.bottleneck, Bottleneck::Actors, "{waiting}");
    assert!(waiting.to_string().contains("1 % of the fragments were dropped, and learners waited 52 % of their time"), "{waiting}");
    let behind = judged(5_000, [3.0, 20.0, 0.0, 1.0, 1.0]);
    assert_eq!(behind.bottleneck, Bottleneck::Learners, "{behind}");
    assert!(settings(&behind).iter().any(|setting| setting == "fragments.on_full=wait"), "{behind}");
    assert!(!behind.to_string().contains("samples_per_insert"), "{behind}");
    assert_eq!(judged(500, [3.0, 20.0, 0.0, 1.0, 1.0]).bottleneck, Bottleneck::Cores);
}

#[test]
fn fragments_that_were_too_old_are_told_of_where_actors_wait_too() {
    let appo = with(|config| config.algorithm.name = "appo".into());
    let judged = |dropped_fragments: u64| {
        let snapshot = Snapshot { inserted: 10_000, dropped_fragments, ..run([10.0, 15.0, 4.0, 71.0], [3.0, 20.0, 0.0, 1.0, 1.0]) };
        judge(&snapshot, &appo).to_string()
    };
    let told = "; 12 % of the fragments were dropped as older than fragments.max_policy_lag_updates = 100";
    assert!(judged(1_200).contains(told), "{}", judged(1_200));
    assert!(!judged(100).contains("dropped"), "{}", judged(100));
}
