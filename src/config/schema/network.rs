//! Table `[network]`.

use super::FRAGMENT_ALGORITHMS;
use crate::config::define::{choice, table};
use crate::config::limits::Limits;

table! {
    /// The network that the algorithm trains.
    [network] NetworkConfig {
        /// Convolutions before the hidden layers, each as `[channels, kernel, stride]`, without padding and with
        /// ReLU. Only for observations of three dimensions (channels, height, width).
        convolutions: Vec<[usize; 3]> = Vec::new(),
            Limits::Triples { longest: 16, least: 1, most: 1_024 }, "", only ["dqn", "appo", "ppo"];
        /// Units of each hidden layer.
        hidden: Vec<usize> = vec![256, 256], Limits::List { longest: 64, least: 1, most: 65_536 }, "units";
        /// Separate value and advantage streams after the last hidden layer (dueling).
        dueling: bool = false, Limits::Any, "", only ["dqn"];
        /// Learn the value with a network of its own, which has the same layers, instead of as one more output of
        /// the policy's network. Actors do without the value's network. `"none"` does so unless there are
        /// convolutions.
        separate_value: Option<bool> = None, Limits::Any, "", only FRAGMENT_ALGORITHMS;
        /// How large the first weights are.
        initialisation: Initialisation = Initialisation::FanIn, Limits::Any, "", only FRAGMENT_ALGORITHMS;
        /// What computes the learner's gradients.
        engine: Engine = Engine::Auto, Limits::Any, "";
    }
}

choice! {
    /// How large the first weights are.
    Initialisation {
        /// PyTorch's default: weights and biases uniform in ±1/√fan_in. The output of a layer with ReLU has two
        /// fifths of the size of its input.
        FanIn = "fan_in",
        /// Layers with ReLU: weights uniform in ±√(6/fan_in), biases 0, so that a signal keeps its size (He et al.
        /// 2015). Other layers: as `fan_in`.
        He = "he",
    }
}

choice! {
    /// What computes forward and backward passes.
    Engine {
        /// `cpu` on a CPU, `torch` on a GPU.
        Auto = "auto",
        /// The native engine: flat parameters, hand-written backward pass.
        Cpu = "cpu",
        /// libtorch through the crate tch.
        Torch = "torch",
    }
}
