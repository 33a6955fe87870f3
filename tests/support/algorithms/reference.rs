//! What a reference of an algorithm gives: losses written from the papers, their gradients by automatic differentiation in f64,
//! and the update that follows. Nothing here is shared with the code under test but the formats of a batch and of a saved state.

use rand::RngExt;
use rand_distr::StandardNormal;
use shoal::algorithms::Random;
use shoal::config::schema::Loss;
use shoal::experience::transition::{DISCOUNT, FLAGS, REWARD};
use shoal::replay::{Batch, Element};
use tch::{Kind, Reduction, Tensor};

use super::network::values;

/// Rows of a block: noise is drawn block after block of a large batch, and within a block one use after the other.
const BLOCK_ROWS: usize = 256;

/// What a learner finds in a batch, before an update.
pub struct Found {
    /// Loss, summed over the transitions and averaged over the critics.
    pub loss_sum: f64,
    /// Values of the actions taken, summed over the transitions and averaged over the critics.
    pub q_sum: f64,
    /// Loss of the policy, summed over the transitions; 0 if the update leaves the policy alone.
    pub policy_loss_sum: f64,
    /// What else is said of the policy, by the names of metrics: means over the transitions.
    pub of_policy: Vec<(&'static str, f64)>,
    /// Absolute errors, averaged over the critics.
    pub errors: Vec<f64>,
    /// Gradient of the summed losses with respect to everything that is learned: one part for each network, and one for the temperature.
    pub gradient: Vec<Vec<f64>>,
}

/// An algorithm, written a second time.
pub trait Reference {
    /// The losses of a batch, with the noise that `random` gives.
    fn find(&self, batch: &Batch, random: &mut Random) -> Found;

    /// The update that `found` in `batch` makes, and what is to be said of it, by the names of metrics.
    fn update(&mut self, batch: &Batch, found: &Found, learning_rate: f64) -> Vec<(&'static str, f64)>;

    /// Everything that a learner keeps, in the order in which it saves it: parameters, targets, moments and counts apart.
    fn state(&self) -> Vec<Vec<f64>>;
}

/// A column of a batch as rows of f64.
pub fn column(batch: &Batch, field: usize) -> Tensor {
    let column = batch.column(field);
    let values = match column.element() {
        Element::F32 => Tensor::from_slice(column.as_f32()),
        Element::I32 => Tensor::from_slice(column.as_i32()),
        other => unreachable!("no field of a transition is {}", other.name()),
    };
    values.to_kind(Kind::Double).reshape([batch.rows() as i64, -1])
}

/// Importance weights, one row each.
pub fn weights(batch: &Batch) -> Tensor {
    Tensor::from_slice(&batch.weights).to_kind(Kind::Double).reshape([-1, 1])
}

/// Reward, and the discounted value of what follows where the problem did not end: a truncated transition goes on, a terminated one does
/// not, even if it was truncated too.
pub fn targets(batch: &Batch, following: &Tensor) -> Tensor {
    let terminated = column(batch, FLAGS).to_kind(Kind::Int64).bitwise_and(1).to_kind(Kind::Double);
    column(batch, REWARD) + column(batch, DISCOUNT) * (1.0 - terminated) * following
}

/// The loss of each error: half its square, or Huber's.
pub fn loss_of(errors: &Tensor, loss: Loss) -> Tensor {
    match loss {
        Loss::Mse => errors.square() * 0.5,
        Loss::Huber => errors.huber_loss(&errors.zeros_like(), Reduction::None, 1.0),
    }
}

/// The elements of the gradient of `loss` with respect to `of`.
pub fn gradient_of(loss: &Tensor, of: &Tensor) -> Vec<f64> {
    values(&Tensor::run_backward(&[loss], &[of], true, false)[0])
}

/// A number.
pub fn number(tensor: &Tensor) -> f64 {
    tensor.double_value(&[])
}

/// Standard normal noise for `rows` actions of `elements` elements, for `N` uses, in the order in which a learner draws it.
pub fn noise<const N: usize>(random: &mut Random, rows: usize, elements: usize) -> [Tensor; N] {
    let mut uses = [const { Vec::new() }; N];
    for first in (0..rows).step_by(BLOCK_ROWS) {
        let numbers = BLOCK_ROWS.min(rows - first) * elements;
        for noise in &mut uses {
            noise.extend((0..numbers).map(|_| random.sample::<f32, _>(StandardNormal)));
        }
    }
    uses.map(|noise| Tensor::from_slice(&noise).to_kind(Kind::Double).reshape([-1, elements as i64]))
}
