//! A network under training, computed by libtorch in f64: the forward pass for automatic differentiation, Adam and Polyak
//! averaging as the papers write them.

use shoal::config::schema::LearnerConfig;
use shoal::networks::NetworkSpec;
use tch::{Kind, Tensor};

/// Parameters, target parameters and the moments of the optimizer, each one flat tensor.
pub struct Network {
    spec: NetworkSpec,
    online: Tensor,
    target: Option<Tensor>,
    first_moment: Tensor,
    second_moment: Tensor,
    steps: i32,
}

impl Network {
    /// The network that begins at the front of `state`, a learner's saved state before its first update; takes it off.
    pub fn take(state: &mut &[f32], spec: &NetworkSpec, with_target: bool) -> Self {
        let count = spec.parameter_count();
        let mut part = |length: usize| {
            let (part, rest) = state.split_at(length);
            *state = rest;
            Tensor::from_slice(part).to_kind(Kind::Double)
        };
        let online = part(count).set_requires_grad(true);
        let target = with_target.then(|| part(count));
        let (first_moment, second_moment) = (part(count), part(count));
        assert_eq!(part(2).abs().sum(Kind::Double).double_value(&[]), 0.0, "no step was made yet");
        Self { spec: spec.clone(), online, target, first_moment, second_moment, steps: 0 }
    }

    /// The leaf that gradients are taken of.
    pub fn parameters(&self) -> &Tensor {
        &self.online
    }

    /// Steps made.
    pub fn steps(&self) -> i32 {
        self.steps
    }

    /// The outputs for rows of input.
    pub fn outputs(&self, input: &Tensor) -> Tensor {
        outputs(&self.spec, &self.online, input)
    }

    /// The target network's outputs, as numbers without a history.
    pub fn target_outputs(&self, input: &Tensor) -> Tensor {
        outputs(&self.spec, self.target.as_ref().expect("a target network"), input).detach()
    }

    /// Adam (Kingma & Ba 2015, algorithm 1) on the gradient, shortened to the largest norm that is allowed; returns the norm before.
    pub fn step(&mut self, gradient: &Tensor, config: &LearnerConfig, learning_rate: f64) -> f64 {
        let norm = gradient.square().sum(Kind::Double).sqrt().double_value(&[]);
        let shorten = config.max_gradient_norm.map_or(1.0, |most| (most / norm).min(1.0));
        self.steps += 1;
        let moments = [&mut self.first_moment, &mut self.second_moment];
        let change = adam(moments, &(gradient * shorten), self.steps, config) * learning_rate;
        self.online = (self.online.detach() - change).set_requires_grad(true);
        norm
    }

    /// `target = tau * online + (1 - tau) * target` (Lillicrap et al. 2016, algorithm 1).
    pub fn follow(&mut self, tau: f64) {
        if let Some(target) = &mut self.target {
            *target = self.online.detach() * tau + &*target * (1.0 - tau);
        }
    }

    /// Everything, in the order in which a learner saves it.
    pub fn state(&self) -> Vec<Vec<f64>> {
        let parts = [Some(&self.online), self.target.as_ref(), Some(&self.first_moment), Some(&self.second_moment)];
        parts.into_iter().flatten().map(values).chain([vec![0.0, f64::from(self.steps)]]).collect()
    }
}

/// Renews the moments and returns `m / (sqrt(v) + epsilon)`, both corrected for their bias.
pub fn adam([first, second]: [&mut Tensor; 2], gradient: &Tensor, steps: i32, config: &LearnerConfig) -> Tensor {
    let (beta1, beta2) = (config.adam_beta1, config.adam_beta2);
    *first = &*first * beta1 + gradient * (1.0 - beta1);
    *second = &*second * beta2 + gradient.square() * (1.0 - beta2);
    let corrected = [(&*first, beta1), (&*second, beta2)].map(|(moment, beta)| moment / (1.0 - beta.powi(steps)));
    &corrected[0] / (corrected[1].sqrt() + config.adam_epsilon)
}

/// The elements of a tensor.
pub fn values(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.detach().to_kind(Kind::Double).reshape([-1])).expect("a row of f64")
}

fn outputs(spec: &NetworkSpec, flat: &Tensor, input: &Tensor) -> Tensor {
    let tensors = spec.tensors();
    let parts: Vec<Tensor> = tensors
        .iter()
        .map(|tensor| {
            let shape: Vec<i64> = tensor.shape.iter().map(|&length| length as i64).collect();
            flat.narrow(0, tensor.offset as i64, tensor.length() as i64).reshape(shape.as_slice())
        })
        .collect();
    let (layers, head) = parts.split_at(2 * spec.hidden().len());
    let hidden = layers.chunks_exact(2).fold(input.shallow_clone(), |below, layer| below.linear(&layer[0], Some(&layer[1])).relu());
    match head {
        [weight, bias] => hidden.linear(weight, Some(bias)),
        // Wang et al. 2016, equation 9.
        [value_weight, advantage_weight, value_bias, advantage_bias] => {
            let advantage = hidden.linear(advantage_weight, Some(advantage_bias));
            let mean = advantage.mean_dim([1i64].as_slice(), true, Kind::Double);
            hidden.linear(value_weight, Some(value_bias)) + advantage - mean
        }
        _ => unreachable!("a head has two tensors, or four with dueling streams"),
    }
}
