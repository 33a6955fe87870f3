//! The policy's loss in one step: the clipped surrogate of PPO (Schulman et al. 2017) against a target network, as in
//! APPO and IMPACT (Luo et al. 2020), or the policy gradient of IMPALA (Espeholt et al. 2018).

use crate::config::schema::Surrogate;

/// Logarithm of two: the largest ratio of an action's probability under the acting policy to that under the target
/// network that counts.
const LOG_LARGEST_RATIO: f32 = std::f32::consts::LN_2;

/// Logarithms of an action's probability under three policies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogProbabilities {
    /// Under the policy that is learned.
    pub(super) online: f32,
    /// Under the target network's policy.
    pub(super) target: f32,
    /// Under the policy that acted.
    pub(super) acted: f32,
}

/// Loss and slope of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PolicyLoss {
    pub(super) loss: f32,
    /// Derivative of the loss with respect to the logarithm of the online probability.
    pub(super) slope: f32,
    /// Whether the ratio was beyond the clip and had no gradient.
    pub(super) is_clipped: bool,
}

impl Surrogate {
    pub(super) fn at(self, log_probabilities: LogProbabilities, advantage: f32, clip_ratio: f32) -> PolicyLoss {
        let LogProbabilities { online, target, acted } = log_probabilities;
        match self {
            Self::PolicyGradient => PolicyLoss { loss: -advantage * online, slope: -advantage, is_clipped: false },
            Self::Clipped => {
                // Added before the exponential, since that of either term alone may overflow.
                let ratio = ((acted - target).min(LOG_LARGEST_RATIO) + (online - acted)).exp();
                let (plain, clipped) = (advantage * ratio, advantage * ratio.clamp(1.0 - clip_ratio, 1.0 + clip_ratio));
                if plain <= clipped {
                    PolicyLoss { loss: -plain, slope: -plain, is_clipped: false }
                } else {
                    PolicyLoss { loss: -clipped, slope: 0.0, is_clipped: true }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(online: f32, target: f32, acted: f32, advantage: f32) -> PolicyLoss {
        Surrogate::Clipped.at(LogProbabilities { online, target, acted }, advantage, 0.2)
    }

    #[test]
    fn the_ratio_is_followed_up_to_the_clip_on_the_side_of_the_advantage() {
        assert_eq!(at(-1.0, -1.0, -1.0, 3.0), PolicyLoss { loss: -3.0, slope: -3.0, is_clipped: false });
        let higher = -1.0 + 1.5f32.ln();
        assert_eq!(at(higher, -1.0, -1.0, 3.0), PolicyLoss { loss: -3.0 * 1.2, slope: 0.0, is_clipped: true });
        assert!(!at(higher, -1.0, -1.0, -3.0).is_clipped, "what became likelier and was bad is followed back");
        assert!(at(-1.0 + 0.5f32.ln(), -1.0, -1.0, -3.0).is_clipped);
    }

    #[test]
    fn the_slope_is_that_of_the_loss() {
        for surrogate in [Surrogate::Clipped, Surrogate::PolicyGradient] {
            for (online, target, acted, advantage) in [(-1.1, -1.0, -1.3, 2.0), (-0.9, -1.0, -0.7, -1.5), (-2.0, -1.0, -1.0, 1.0)] {
                let loss = |online| f64::from(surrogate.at(LogProbabilities { online, target, acted }, advantage, 0.2).loss);
                let slope = surrogate.at(LogProbabilities { online, target, acted }, advantage, 0.2).slope;
                let numeric = (loss(online + 1e-3) - loss(online - 1e-3)) / 2e-3;
                assert!((f64::from(slope) - numeric).abs() < 1e-2, "{slope} {numeric}");
            }
        }
    }

    #[test]
    fn a_policy_that_acted_far_from_the_target_network_counts_twice_at_most() {
        assert_eq!(at(-1.0, -5.0, -1.0, 1.0), PolicyLoss { loss: -1.2, slope: 0.0, is_clipped: true });
        assert_eq!(at(-1.0, -5.0, -1.0, -1.0), PolicyLoss { loss: 2.0, slope: 2.0, is_clipped: false });
    }
}
