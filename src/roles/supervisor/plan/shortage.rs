//! What to lower where a run's segment takes more memory than there is: keys that it may change, to values that no
//! rule refuses.

use indicatif::BinaryBytes;

use super::Plan;
use crate::config::RowKind;
use crate::segment::Region;

impl Plan {
    /// What to lower so that the segment takes no more than `available` bytes.
    pub(super) fn advice(&self, available: usize) -> String {
        if available == 0 {
            return "no run is small enough (`shoal inspect` lists the runs that have memory here)".into();
        }
        // `None` if not even the smallest replay fits.
        let fitting = self.layout.sizes().largest_capacity(available, |capacity| self.frames(capacity));
        match (self.beginning.config.row_kind(), fitting) {
            (RowKind::Transitions, _) if self.beginning.goes_on_after.is_some() => {
                self.beside_what_stays(available, "replay.capacity", &[Region::Tree, Region::Store, Region::Frames])
            }
            (RowKind::Fragments, None) if self.beginning.goes_on_after.is_some() => {
                self.beside_what_stays(available, "fragments.length_steps", &[])
            }
            (_, None) => self.beside_the_replay(),
            (RowKind::Transitions, Some(most)) => self.fewer_transitions(most),
            (RowKind::Fragments, Some(most)) => self.fewer_fragments(most),
        }
    }

    /// Advice to lower the capacity to `most` transitions, and with it whatever asks for more than that.
    fn fewer_transitions(&self, most: usize) -> String {
        let config = &self.beginning.config;
        let mut advice = lower("replay.capacity", self.layout.sizes().capacity, most);
        let largest_batch = config.adaptation.largest_batch.filter(|_| self.beginning.ranges.is_some()).unwrap_or(0);
        let wanted = [
            ("replay.min_size", config.replay.min_size),
            ("learner.batch_size", config.learner.batch_size),
            ("adaptation.largest_batch", largest_batch),
        ];
        let larger: Vec<String> =
            wanted.into_iter().filter(|&(_, count)| count > most).map(|(key, count)| format!("{key} from {count}")).collect();
        if !larger.is_empty() {
            advice = format!("{advice}, and {} to no more than that", larger.join(" and "));
        }
        let at_once = config.most_transitions_in_flight();
        if at_once > most {
            let keys = self.keys_of_flushes();
            advice = format!("{advice}; up to {at_once} transitions can be written at once and have to find room, so lower {keys}, too");
        }
        advice
    }

    /// Advice to have `most` fragments. If those are too few for a batch and for what the actors complete at once:
    /// to lower these.
    fn fewer_fragments(&self, most: usize) -> String {
        let config = &self.beginning.config;
        let capacity = self.layout.sizes().capacity;
        let (key, others, least) = match config.retained_fragments() {
            0 => ("fragments.capacity", 0, config.least_fragments()),
            _ => ("fragments.retained", config.fragment_capacity(), 1),
        };
        // PPO has neither of the two keys.
        if config.learns_from_old_policies() && most >= others + least {
            return lower(key, capacity - others, most - others);
        }
        let length = if self.beginning.goes_on_after.is_some() { "" } else { "fragments.length_steps, " };
        format!("lower learner.batch_size, {length}{} or actor.attach_slots", self.keys_of_actors())
    }

    /// Advice for a run that goes on and may take `available` bytes: its networks and its value of `key` stay as they
    /// are, and with these the regions `rows`.
    fn beside_what_stays(&self, available: usize, key: &str, rows: &[Region]) -> String {
        let stays = format!("a run that goes on keeps its {key} and its networks");
        let sizes = self.layout.sizes();
        let regions = rows.iter().chain(&[Region::Parameters, Region::LearnerState, Region::Halves]);
        let bytes: usize = regions.map(|&region| self.layout.section(region).length_bytes).sum();
        // If the number of frames follows from the environments, these cannot be fewer either.
        let frames_stay = sizes.frames > 0 && sizes.frames == self.frames(0);
        if bytes > available || frames_stay {
            let size = BinaryBytes(bytes as u64);
            return format!(
                "have it go on where more is free (`shoal inspect` lists the runs that have memory here): {stays}, which take {size}"
            );
        }
        format!("lower {} or actor.attach_slots: {stays}", self.keys_of_actors())
    }

    /// Advice if no replay is small enough: the keys that the largest of the other regions follows from.
    fn beside_the_replay(&self) -> String {
        let others = self.layout.sections().iter().filter(|section| !matches!(section.region, Region::Tree | Region::Store));
        let sizes = others.map(|section| match section.region {
            Region::Frames => (Region::Frames, 8 * self.frames(0) * self.layout.sizes().frame_slot_words()),
            region => (region, section.length_bytes),
        });
        let (largest, bytes) = sizes.max_by_key(|&(_, bytes)| bytes).expect("a layout has regions");
        let actors = self.keys_of_actors();
        let networks = self.keys_of_networks();
        let remedy = match largest {
            Region::Pictures => "set visualizer.enabled=false".to_owned(),
            Region::Staging if self.beginning.config.row_kind() == RowKind::Fragments => {
                format!("lower {actors}, actor.attach_slots or fragments.length_steps")
            }
            Region::Staging => format!("lower {}", self.keys_of_flushes()),
            Region::Gradients => format!("lower learner.count or {networks}"),
            Region::Parameters | Region::LearnerState | Region::Halves => format!("lower {networks}"),
            _ => format!("lower {actors} or actor.attach_slots"),
        };
        let name = largest.words();
        let size = BinaryBytes(bytes as u64);
        format!("{remedy}: not even the smallest replay fits, since the region {name} takes {size}")
    }

    /// The keys by which there are fewer actors at most, however many environments each of them has.
    pub(super) fn keys_of_processes(&self) -> &'static str {
        if self.beginning.ranges.is_some() {
            "adaptation.most_actors (and where a run begins with as many, actor.count)"
        } else {
            "actor.count"
        }
    }

    /// The keys by which there are fewer actors and environments at most.
    fn keys_of_actors(&self) -> &'static str {
        if self.beginning.ranges.is_some() {
            "adaptation.most_actors, adaptation.most_environments (and where a run begins with as many, actor.count, actor.environments)"
        } else {
            "actor.count, actor.environments"
        }
    }

    /// The keys by which fewer transitions are written at once.
    fn keys_of_flushes(&self) -> String {
        format!("{}, actor.attach_slots, actor.flush_transitions or algorithm.n_step", self.keys_of_actors())
    }

    /// The keys that the number of parameters follows from.
    fn keys_of_networks(&self) -> String {
        let auto_encoder = &self.beginning.config.auto_encoder;
        let latent = (auto_encoder.coefficient > 0.0).then(|| format!(" or auto_encoder.latent from {}", auto_encoder.latent));
        format!("network.hidden{}", latent.unwrap_or_default())
    }
}

/// Advice to have fewer rows.
fn lower(key: &str, capacity: usize, most: usize) -> String {
    format!("lower {key} from {capacity} to {most}, the largest that fits")
}

#[cfg(test)]
mod tests {
    use super::super::Beginning;
    use super::*;
    use crate::adaptation::{Range, Ranges};
    use crate::algorithms::registry;
    use crate::config::Config;
    use crate::environments::{self, EnvironmentSpec, ObservationSpace};
    use crate::machine::memory::{Budget, Limit};

    const SMALL: u64 = 64 << 20;

    fn cartpole() -> EnvironmentSpec {
        environments::registry::spec("CartPole-v1").unwrap()
    }

    fn config(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config::for_environment("CartPole-v1");
        change(&mut config);
        config
    }

    fn plan_for(config: &Config, environment: &EnvironmentSpec) -> Plan {
        Plan::new(config, &*registry::build(config, environment).unwrap(), &[0, 1], &[]).unwrap()
    }

    fn plan_of_a_run_that_goes_on(config: &Config, environment: &EnvironmentSpec) -> Plan {
        let beginning =
            Beginning { config: config.clone(), ranges: None, actors: config.actor.count, usable_cores: 2, goes_on_after: Some(0.0) };
        Plan::of_run(config, &*registry::build(config, environment).unwrap(), &[0, 1], &[], beginning).unwrap()
    }

    /// The plan of a run that begins with `first`, and may become `largest`.
    fn plan_of_a_run_that_fits_itself(largest: &Config, first: &Config) -> Plan {
        let ends = [largest.actor.count, largest.actor.environments, largest.learner.batch_size];
        let [actors, environments, batch_size] = ends.map(|high| Range { low: 1, high });
        let ranges = Some(Ranges { actors, environments, batch_size });
        let beginning = Beginning { config: first.clone(), ranges, actors: first.actor.count, usable_cores: 2, goes_on_after: None };
        Plan::of_run(largest, &*registry::build(largest, &cartpole()).unwrap(), &[0, 1], &[], beginning).unwrap()
    }

    fn plan(config: &Config) -> Plan {
        plan_for(config, &cartpole())
    }

    fn budget(bytes: u64) -> Budget {
        Budget { bytes, limit: Limit::SharedMemory { used_bytes: 0 } }
    }

    fn refusal(plan: &Plan, bytes: u64) -> String {
        plan.check(&budget(bytes)).unwrap_err().to_string()
    }

    /// The number that stands behind `words`.
    #[track_caller]
    fn number_after(words: &str, refusal: &str) -> usize {
        let (_, rest) = refusal.split_once(words).unwrap_or_else(|| panic!("{refusal}"));
        rest.split(',').next().unwrap().parse().unwrap()
    }

    #[track_caller]
    fn assert_accepted(config: &Config, bytes: u64) {
        config.validate().unwrap();
        plan(config).check(&budget(bytes)).unwrap();
    }

    #[test]
    fn a_replay_that_does_not_fit_is_refused_with_the_largest_that_would() {
        let mut large = config(|config| config.replay.capacity = 10_000_000);
        let refused = refusal(&plan(&large), SMALL);
        assert!(refused.contains("/dev/shm") && refused.contains(", or lower replay.capacity"), "{refused}");
        large.replay.capacity = number_after("replay.capacity from 10000000 to ", &refused);
        assert_accepted(&large, SMALL);
        large.replay.capacity += 100;
        assert!(plan(&large).check(&budget(SMALL)).is_err());
    }

    #[test]
    fn keys_that_ask_for_more_transitions_than_fit_are_lowered_with_the_capacity() {
        let mut large = config(|config| (config.replay.capacity, config.replay.min_size) = (10_000_000, 5_000_000));
        let refused = refusal(&plan(&large), SMALL);
        assert!(refused.ends_with(", the largest that fits, and replay.min_size from 5000000 to no more than that"), "{refused}");
        let most = number_after("replay.capacity from 10000000 to ", &refused);
        (large.replay.capacity, large.replay.min_size) = (most, most);
        assert_accepted(&large, SMALL);

        let mut busy = config(|config| (config.replay.capacity, config.actor.flush_transitions) = (2_000, 65_536));
        let bytes = plan(&busy).layout.total_bytes() as u64;
        busy.replay.capacity = 10_000_000;
        let refused = refusal(&plan(&busy), bytes);
        let at_once = busy.most_transitions_in_flight();
        assert!(refused.contains(&format!("up to {at_once} transitions can be written at once")), "{refused}");
        assert!(refused.ends_with("actor.flush_transitions or algorithm.n_step, too"), "{refused}");
        busy.replay.capacity = number_after("replay.capacity from 10000000 to ", &refused);
        busy.actor.flush_transitions = 64;
        assert_accepted(&busy, bytes);
    }

    #[test]
    fn fewer_fragments_are_advised_where_those_of_a_batch_and_of_all_actors_find_room() {
        let mut appo = config(|config| config.algorithm.name = "appo".into());
        let bytes = plan(&appo).layout.total_bytes() as u64;
        appo.fragments.capacity = Some(1_000);
        appo.fragments.capacity = Some(number_after("fragments.capacity from 1000 to ", &refusal(&plan(&appo), bytes)));
        assert_accepted(&appo, bytes);

        appo.fragments.capacity = None;
        let fewer = bytes - 30 * 8 * plan(&appo).layout.sizes().slot_words() as u64;
        let refused = refusal(&plan(&appo), fewer);
        let advice = "or lower learner.batch_size, fragments.length_steps, actor.count, actor.environments or actor.attach_slots";
        assert!(refused.ends_with(advice), "{refused}");
        appo.actor.attach_slots = 0;
        assert_accepted(&appo, fewer);
    }

    #[test]
    fn fewer_retained_fragments_are_advised_where_those_are_replayed() {
        let mut appo = config(|config| (config.algorithm.name, config.fragments.replay_share) = ("appo".into(), 0.5));
        let bytes = plan(&appo).layout.total_bytes() as u64;
        appo.fragments.retained = Some(1_000);
        appo.fragments.retained = Some(number_after("fragments.retained from 1000 to ", &refusal(&plan(&appo), bytes)));
        assert_accepted(&appo, bytes);
    }

    #[test]
    fn a_run_that_goes_on_is_advised_nothing_that_a_checkpoint_holds() {
        for (large, fixed) in [
            (config(|config| config.replay.capacity = 10_000_000), "replay.capacity"),
            (config(|config| config.algorithm.name = "ppo".into()), "fragments.length_steps"),
        ] {
            let told = refusal(&plan_of_a_run_that_goes_on(&large, &cartpole()), 64 << 10);
            assert!(told.contains("or have it go on where more is free") && !told.contains("actor."), "{told}");
            assert!(told.contains(&format!("a run that goes on keeps its {fixed} and its networks, which take ")), "{told}");
        }
        let plan = plan_of_a_run_that_goes_on(&config(|_| {}), &cartpole());
        let told = refusal(&plan, plan.layout.total_bytes() as u64 - 1);
        let advice = "or lower actor.count, actor.environments or actor.attach_slots: a run that goes on keeps its";
        assert!(told.ends_with(&format!("{advice} replay.capacity and its networks")), "{told}");
    }

    #[test]
    fn a_run_that_goes_on_is_not_advised_to_change_the_number_of_its_frames() {
        let observation = ObservationSpace { stack: 4, ..ObservationSpace::bytes(&[4, 84, 84]) };
        let images = EnvironmentSpec { observation, ..cartpole() };
        let refusal_for = |capacity: usize| {
            let config = config(|config| {
                (config.actor.environments, config.replay.capacity) = (64, capacity);
                config.network.convolutions = vec![[32, 8, 4], [64, 4, 2], [64, 3, 1]];
            });
            let plan = plan_of_a_run_that_goes_on(&config, &images);
            refusal(&plan, plan.layout.total_bytes() as u64 - 1)
        };
        let by_environments = refusal_for(1_000);
        assert!(by_environments.contains("or have it go on where more is free"), "{by_environments}");
        let by_capacity = refusal_for(1_000_000);
        assert!(by_capacity.contains("or lower actor.count"), "{by_capacity}");
    }

    #[test]
    fn what_pictures_and_batches_that_are_tried_take_is_advised_by_their_keys() {
        let pictures = plan(&config(|config| (config.visualizer.enabled, config.network.hidden) = (true, vec![8])));
        let refused = refusal(&pictures, 1 << 20);
        assert!(refused.contains(", or set visualizer.enabled=false: not even the smallest replay fits"), "{refused}");

        let large = config(|config| {
            (config.learner.batch_size, config.replay.min_size, config.network.hidden) = (8_192, 20_000, vec![8]);
        });
        let start = config(|config| {
            (config.adaptation.enabled, config.adaptation.largest_batch) = (true, Some(8_192));
            (config.replay.min_size, config.network.hidden) = (20_000, vec![8]);
        });
        let refused = refusal(&plan_of_a_run_that_fits_itself(&large, &start), 700 << 10);
        let advice = "and replay.min_size from 20000 and adaptation.largest_batch from 8192 to no more than that";
        assert!(refused.contains(advice), "{refused}");
    }

    #[test]
    fn where_no_replay_is_small_enough_the_keys_are_named_that_decide() {
        const LITTLE: u64 = 1 << 20;
        let many = config(|config| (config.actor.count, config.actor.environments, config.network.hidden) = (16, 512, vec![8]));
        let many_actors = refusal(&plan(&many), LITTLE);
        assert!(many_actors.contains("lower actor.count, actor.environments, actor.attach_slots"), "{many_actors}");
        let ranges = refusal(&plan_of_a_run_that_fits_itself(&many, &Config::for_environment("CartPole-v1")), LITTLE);
        assert!(ranges.contains("lower adaptation.most_actors, adaptation.most_environments (and"), "{ranges}");
        let network = refusal(&plan(&config(|config| config.network.hidden = vec![1_024, 1_024])), LITTLE);
        assert!(network.contains(", or lower network.hidden: not even the smallest replay fits"), "{network}");
        let full = refusal(&plan(&many), 0);
        assert!(full.contains("no run is small enough") && !full.contains("lower "), "where nothing is free, no key helps: {full}");
    }

    #[test]
    fn frames_that_are_shown_again_have_to_find_room_however_small_the_replay_is() {
        let observation = ObservationSpace { stack: 4, ..ObservationSpace::bytes(&[4, 84, 84]) };
        let images = EnvironmentSpec { observation, ..cartpole() };
        let many = config(|config| {
            (config.actor.environments, config.algorithm.n_step) = (16, 3);
            config.network.convolutions = vec![[32, 8, 4], [64, 4, 2], [64, 3, 1]];
        });
        let refused = refusal(&plan_for(&many, &images), SMALL);
        assert!(refused.contains("or lower actor.count, actor.environments or actor.attach_slots: not even the smallest"), "{refused}");
        assert!(refused.ends_with("the region frames takes 93.66 MiB"), "{refused}");
    }
}
