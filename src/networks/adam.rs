//! The optimizer and the two other operations on flat parameters: clipping a gradient and averaging
//! towards a target network.
//!
//! They work on slices, whatever engine computed the gradient, and make one pass over them.

use pulp::{Arch, Simd, WithSimd};

/// Settings of [`Adam`] besides the learning rate, which may change from step to step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamSettings {
    /// Decay of the first moment, in [0, 1).
    pub beta1: f64,
    /// Decay of the second moment, in [0, 1).
    pub beta2: f64,
    /// Added to the square root of the second moment.
    pub epsilon: f64,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

/// Adam with bias correction (Kingma & Ba 2015, algorithm 1), as `torch.optim.Adam` computes it without weight decay.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    settings: AdamSettings,
    first_moment: Vec<f32>,
    second_moment: Vec<f32>,
    step: u64,
}

impl Adam {
    /// An optimizer of `parameters` parameters that has made no step.
    pub fn new(parameters: usize, settings: AdamSettings) -> Self {
        Self { settings, first_moment: vec![0.0; parameters], second_moment: vec![0.0; parameters], step: 0 }
    }

    /// An optimizer that goes on where another one stopped.
    ///
    /// # Panics
    /// When the moments differ in length.
    pub fn from_state(settings: AdamSettings, first_moment: Vec<f32>, second_moment: Vec<f32>, step: u64) -> Self {
        assert_eq!(first_moment.len(), second_moment.len(), "the moments differ in length");
        Self { settings, first_moment, second_moment, step }
    }

    /// Running mean of the gradient, per parameter.
    pub fn first_moment(&self) -> &[f32] {
        &self.first_moment
    }

    /// Running mean of the squared gradient, per parameter.
    pub fn second_moment(&self) -> &[f32] {
        &self.second_moment
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Count a step that another process makes.
    pub fn count_step(&mut self) {
        self.step += 1;
    }

    /// The settings that this optimizer was made with.
    pub fn settings(&self) -> AdamSettings {
        self.settings
    }

    /// Changes `parameters` by one step against `gradient`.
    ///
    /// # Panics
    /// When a slice is not as long as the moments.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f32) {
        self.step_scaled(parameters, gradient, [1.0; 2], learning_rate);
    }

    /// [`Self::step`] against `gradient` times the first factor, times the second: the same, bit for bit, as after a
    /// pass over the gradient for each of them.
    pub(crate) fn step_scaled(&mut self, parameters: &mut [f32], gradient: &[f32], factors: [f32; 2], learning_rate: f32) {
        assert_eq!(parameters.len(), self.first_moment.len(), "the optimizer was made for another number of parameters");
        assert_eq!(gradient.len(), parameters.len(), "gradient and parameters differ in length");
        self.step += 1;
        let AdamSettings { beta1, beta2, epsilon } = self.settings;
        // Bias corrections in f64: beta2^step loses its digits in f32 near 1.
        let exponent = i32::try_from(self.step).unwrap_or(i32::MAX);
        let step_size = (f64::from(learning_rate) / (1.0 - beta1.powi(exponent))) as f32;
        let inverse_root = (1.0 / (1.0 - beta2.powi(exponent)).sqrt()) as f32;
        let first_weight = (1.0 - beta1) as f32;
        let second_weight = (1.0 - beta2) as f32;
        let second_decay = beta2 as f32;
        let epsilon = epsilon as f32;
        let first_moment = self.first_moment.as_mut_slice();
        let second_moment = self.second_moment.as_mut_slice();
        Arch::new().dispatch(|| {
            let moments = first_moment.iter_mut().zip(second_moment.iter_mut());
            for ((parameter, gradient), (first, second)) in parameters.iter_mut().zip(gradient).zip(moments) {
                let gradient = gradient * factors[0] * factors[1];
                *first = flush_subnormal(*first + first_weight * (gradient - *first));
                *second = flush_subnormal(second_decay * *second + second_weight * (gradient * gradient));
                *parameter -= step_size * *first / (second.sqrt() * inverse_root + epsilon);
            }
        });
    }
}

/// `moment`, or zero if it is subnormal, that is nearer to zero than 1.2e-38.
///
/// Parameters of a unit that is no longer active have a gradient of zero. Rounding would stop the decay of their moments
/// at a few subnormal units, never at zero, and processors compute with subnormal numbers more slowly, some of them many
/// times. Such a moment, and its square root, are nothing beside the least [`AdamSettings::epsilon`] that a run may have.
#[inline(always)]
fn flush_subnormal(moment: f32) -> f32 {
    if moment.abs() < f32::MIN_POSITIVE { 0.0 } else { moment }
}

/// Scales `gradient` down to the Euclidean norm `maximum` if it is longer, and returns the norm that it had.
///
/// As `torch.nn.utils.clip_grad_norm_`. A gradient whose norm is not finite stays as it is: the
/// caller must not step with it.
pub fn clip_norm(gradient: &mut [f32], maximum: f32) -> f32 {
    let (norm, scale) = norm_and_scale(gradient, 1.0, maximum);
    if scale < 1.0 {
        Arch::new().dispatch(|| gradient.iter_mut().for_each(|value| *value *= scale));
    }
    norm
}

/// The norm of `gradient` times `factor`, and what [`clip_norm`] would multiply it by then; 1 if it would leave it alone.
pub(crate) fn norm_and_scale(gradient: &[f32], factor: f32, maximum: f32) -> (f32, f32) {
    let norm = Arch::new().dispatch(SquaredSum { values: gradient, factor }).sqrt() as f32;
    let scale = maximum / (norm + 1e-6);
    (norm, if norm.is_finite() && scale < 1.0 { scale } else { 1.0 })
}

/// Moves `target` towards `online`: `target += tau * (online - target)`; `tau` = 1 copies.
///
/// # Panics
/// When the slices differ in length.
pub fn polyak(target: &mut [f32], online: &[f32], tau: f32) {
    assert_eq!(target.len(), online.len(), "target and online network differ in length");
    if tau == 1.0 {
        return target.copy_from_slice(online);
    }
    Arch::new().dispatch(|| {
        for (target, online) in target.iter_mut().zip(online) {
            *target += tau * (online - *target);
        }
    });
}

/// Sum of the squares of `values` times `factor`: `f32` lanes inside a block, `f64` across blocks, so that long gradients
/// lose no digits.
struct SquaredSum<'a> {
    values: &'a [f32],
    factor: f32,
}

impl WithSimd for SquaredSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Self { values, factor } = self;
        let factors = simd.splat_f32s(factor);
        let mut total = 0.0;
        for block in values.chunks(1024) {
            let (vectors, tail) = S::as_simd_f32s(block);
            let (quads, rest) = pulp::as_arrays::<4, _>(vectors);
            // Four sums, because each addition waits for the one before it.
            let mut sums = [simd.splat_f32s(0.0); 4];
            for quad in quads {
                for (sum, &vector) in sums.iter_mut().zip(quad) {
                    let vector = simd.mul_f32s(vector, factors);
                    *sum = simd.mul_add_e_f32s(vector, vector, *sum);
                }
            }
            for (sum, &vector) in sums.iter_mut().zip(rest) {
                let vector = simd.mul_f32s(vector, factors);
                *sum = simd.mul_add_e_f32s(vector, vector, *sum);
            }
            let sum = simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3]));
            let tail = tail.iter().map(|value| value * factor);
            total += f64::from(simd.reduce_sum_f32s(sum)) + tail.map(|value| f64::from(value * value)).sum::<f64>();
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Algorithm 1 of the paper, word for word and in f64.
    fn reference(parameters: &mut [f64], gradients: &[Vec<f32>], rate: f64, settings: AdamSettings) {
        let (mut first, mut second) = (vec![0.0; parameters.len()], vec![0.0; parameters.len()]);
        for (index, gradient) in gradients.iter().enumerate() {
            let step = index as i32 + 1;
            for (i, parameter) in parameters.iter_mut().enumerate() {
                let g = f64::from(gradient[i]);
                first[i] = settings.beta1 * first[i] + (1.0 - settings.beta1) * g;
                second[i] = settings.beta2 * second[i] + (1.0 - settings.beta2) * g * g;
                let corrected: f64 = second[i] / (1.0 - settings.beta2.powi(step));
                *parameter -= rate * (first[i] / (1.0 - settings.beta1.powi(step))) / (corrected.sqrt() + settings.epsilon);
            }
        }
    }

    fn gradients(steps: usize, length: usize) -> Vec<Vec<f32>> {
        let value = |step: usize, i: usize| (((step * 31 + i * 17) % 101) as f32 / 50.0 - 1.0) * 10f32.powi(i as i32 % 5 - 3);
        (0..steps).map(|step| (0..length).map(|i| value(step, i)).collect()).collect()
    }

    #[test]
    fn adam_follows_the_published_algorithm() {
        let settings = AdamSettings { beta1: 0.8, beta2: 0.99, epsilon: 1e-5 };
        let gradients = gradients(500, 37);
        let mut expected = vec![0.5f64; 37];
        reference(&mut expected, &gradients, 1e-3, settings);
        let (mut adam, mut parameters) = (Adam::new(37, settings), vec![0.5f32; 37]);
        for gradient in &gradients {
            adam.step(&mut parameters, gradient, 1e-3);
        }
        for (got, expected) in parameters.iter().zip(&expected) {
            assert!((f64::from(*got) - expected).abs() < 2e-6, "{got} is not {expected}");
        }
    }

    #[test]
    fn adam_goes_on_from_its_state_bit_for_bit() {
        let gradients = gradients(20, 33);
        let (mut adam, mut parameters) = (Adam::new(33, AdamSettings::default()), vec![0.1f32; 33]);
        gradients[..10].iter().for_each(|gradient| adam.step(&mut parameters, gradient, 1e-2));
        let mut resumed = Adam::from_state(adam.settings(), adam.first_moment().to_vec(), adam.second_moment().to_vec(), adam.steps());
        let mut resumed_parameters = parameters.clone();
        for gradient in &gradients[10..] {
            adam.step(&mut parameters, gradient, 1e-2);
            resumed.step(&mut resumed_parameters, gradient, 1e-2);
        }
        assert_eq!((parameters, adam), (resumed_parameters, resumed));
    }

    #[test]
    fn moments_of_a_parameter_without_a_gradient_become_zero_and_are_never_subnormal() {
        let (mut adam, mut parameters) = (Adam::new(19, AdamSettings::default()), vec![0.5f32; 19]);
        adam.step(&mut parameters, &[1.0; 19], 1e-3);
        for _ in 0..100_000 {
            adam.step(&mut parameters, &[0.0; 19], 1e-3);
            assert!(!adam.first_moment()[0].is_subnormal() && !adam.second_moment()[0].is_subnormal(), "step {}", adam.steps());
        }
        assert_eq!((adam.first_moment(), adam.second_moment()), (&[0.0; 19][..], &[0.0; 19][..]));
    }

    #[test]
    fn a_long_gradient_is_cut_to_the_maximum_and_a_short_one_left_alone() {
        let original: Vec<f32> = (0..3000).map(|i| (i as f32 * 0.37).sin()).collect();
        let expected = original.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
        let mut gradient = original.clone();
        let norm = clip_norm(&mut gradient, 5.0);
        assert!((norm - expected).abs() < 1e-4 * expected, "{norm} is not {expected}");
        for (cut, original) in gradient.iter().zip(&original) {
            assert!((cut - original * 5.0 / expected).abs() < 1e-6);
        }
        assert!((clip_norm(&mut gradient, f32::MAX) - 5.0).abs() < 1e-4);
        let mut short = original.clone();
        clip_norm(&mut short, expected + 1.0);
        assert_eq!(short, original);
    }

    #[test]
    fn a_gradient_that_is_not_finite_is_reported_and_left_alone() {
        for (bad, first) in [(f32::NAN, 1.0f32), (f32::INFINITY, -2.0)] {
            let mut gradient = vec![first, bad, 3.0];
            assert!(!clip_norm(&mut gradient, 1.0).is_finite());
            assert_eq!((gradient[0], gradient[2]), (first, 3.0));
        }
    }

    #[test]
    fn factors_give_what_passes_over_the_gradient_give_bit_for_bit() {
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        // The norm is beyond the first maximum alone.
        for (length, maximum) in
            [7, 37, 1024, 3001].into_iter().flat_map(|length| [1e-3, 1e6, f32::INFINITY].map(|maximum| (length, maximum)))
        {
            let (mut passed, mut folded) = (Adam::new(length, AdamSettings::default()), Adam::new(length, AdamSettings::default()));
            let [mut parameters, mut expected] = [0, 1].map(|_| vec![0.5f32; length]);
            for (step, gradient) in gradients(20, length).iter().enumerate() {
                let factor = 1.0 / (3.0 + step as f32);
                let mut scaled = gradient.clone();
                scaled.iter_mut().for_each(|value| *value *= factor);
                let expected_norm = clip_norm(&mut scaled, maximum);
                passed.step(&mut expected, &scaled, 1e-3);
                let (norm, scale) = norm_and_scale(gradient, factor, maximum);
                folded.step_scaled(&mut parameters, gradient, [factor, scale], 1e-3);
                assert_eq!((norm.to_bits(), scale < 1.0), (expected_norm.to_bits(), maximum == 1e-3), "{length} values, step {step}");
            }
            assert_eq!(bits(&parameters), bits(&expected), "{length} values, clipped to {maximum}");
            for moment in [Adam::first_moment, Adam::second_moment] {
                assert_eq!(bits(moment(&folded)), bits(moment(&passed)), "{length} values, clipped to {maximum}");
            }
        }
    }

    #[test]
    fn polyak_averages_and_copies_at_one() {
        let online: Vec<f32> = (0..19).map(|i| i as f32).collect();
        let mut target = vec![10.0f32; 19];
        polyak(&mut target, &online, 0.25);
        for (i, value) in target.iter().enumerate() {
            assert_eq!(*value, 10.0 + 0.25 * (i as f32 - 10.0));
        }
        polyak(&mut target, &online, 1.0);
        assert_eq!(target, online);
    }
}
