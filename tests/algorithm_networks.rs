//! The networks of each algorithm are those that the table `[network]` describes, and what it names computes their gradients.

mod support {
    pub(crate) mod algorithms;
}

use shoal::config::schema::Engine;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace};
use shoal::networks::{Head, NetworkSpec};
use support::algorithms::{build, environment};

const OF_IMAGES: [&str; 3] = ["dqn", "appo", "ppo"];
const OF_FLOATS: [&str; 3] = ["ddpg", "td3", "sac"];

/// An environment that the algorithm called `name` can act in.
fn suitable(name: &str) -> EnvironmentSpec {
    environment::<5>(if OF_IMAGES.contains(&name) {
        ActionSpace::Discrete { n: 3 }
    } else {
        ActionSpace::Box { low: vec![-1.0; 2], high: vec![1.0; 2] }
    })
}

#[test]
fn every_algorithm_has_the_configured_layers_and_so_has_a_value_of_its_own() {
    const CONVOLUTIONS: [[usize; 3]; 2] = [[5, 3, 2], [4, 2, 1]];
    const HIDDEN: [usize; 2] = [7, 6];
    for name in OF_IMAGES {
        let images = EnvironmentSpec { observation: ObservationSpace::bytes(&[2, 11, 9]), ..suitable(name) };
        let has_separate_value = name != "dqn";
        let (_, algorithm) = build(name, &images, |config| {
            (config.network.convolutions, config.network.hidden) = (CONVOLUTIONS.into(), HIDDEN.into());
            config.network.separate_value = Some(has_separate_value);
        });
        let (network, sizes) = (algorithm.network(), algorithm.sizes());
        assert_eq!((network.convolutions(), network.hidden()), (CONVOLUTIONS.into(), HIDDEN.into()), "{name}");
        let value = NetworkSpec::of_input(network.input.clone(), &CONVOLUTIONS, &HIDDEN, Head::Linear { outputs: 1 });
        assert_eq!(sizes.learned - sizes.published, if has_separate_value { value.parameter_count() } else { 0 }, "{name}");
    }
    for name in OF_FLOATS {
        let (_, algorithm) = build(name, &suitable(name), |config| config.network.hidden = HIDDEN.into());
        assert_eq!(algorithm.network().hidden(), HIDDEN, "{name}");
    }
}

#[test]
fn dqn_has_separate_streams_if_they_are_wanted() {
    for dueling in [false, true] {
        let (_, algorithm) = build("dqn", &suitable("dqn"), |config| config.network.dueling = dueling);
        assert_eq!(algorithm.network().is_dueling(), dueling);
    }
}

#[test]
fn every_learner_computes_with_the_configured_engine() {
    for name in OF_IMAGES.into_iter().chain(OF_FLOATS) {
        for engine in [Engine::Auto, Engine::Cpu, Engine::Torch] {
            let (_, algorithm) = build(name, &suitable(name), |config| {
                (config.network.engine, config.learner.device) = (engine, "cuda:250".into());
            });
            // Both engines refuse that device, each in its own words, in a build with libtorch and in one without.
            let refusal = algorithm.learning(1).err().expect("no machine has so many GPUs").to_string();
            assert_eq!(refusal.contains("native engine"), engine == Engine::Cpu, "{name} with {engine:?}: {refusal}");
        }
    }
}
