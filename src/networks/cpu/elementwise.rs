//! Loops over whole matrices between two products: bias and ReLU, their backward passes, and the dueling combination.
//!
//! Plain loops that the compiler vectorises; the caller runs them inside `Arch::dispatch`, so that they use the widest
//! instructions of the machine at hand.

use super::narrow::{relu, relu_gradient};

/// Adds `bias` to every row, then applies ReLU.
#[inline(always)]
pub(super) fn add_bias_relu(matrix: &mut [f32], bias: &[f32]) {
    for row in matrix.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value = relu(*value + bias);
        }
    }
}

/// Applies ReLU.
#[inline(always)]
pub(super) fn activate(matrix: &mut [f32]) {
    for value in matrix {
        *value = relu(*value);
    }
}

/// Adds `bias` to every row.
#[inline(always)]
pub(super) fn add_bias(matrix: &mut [f32], bias: &[f32]) {
    for row in matrix.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += bias;
        }
    }
}

/// Lets the gradient pass where the activation is positive.
#[inline(always)]
pub(super) fn mask_gradient(gradient: &mut [f32], activation: &[f32]) {
    for (gradient, activation) in gradient.iter_mut().zip(activation) {
        *gradient = relu_gradient(*activation, *gradient);
    }
}

/// Lets the gradient pass through the hyperbolic tangent that gave the activation.
#[inline(always)]
pub(super) fn tanh_gradient(gradient: &mut [f32], activation: &[f32]) {
    for (gradient, activation) in gradient.iter_mut().zip(activation) {
        *gradient *= 1.0 - activation * activation;
    }
}

/// Sums over the rows of a matrix: the gradient of a bias.
#[inline(always)]
pub(super) fn column_sums(matrix: &[f32], sums: &mut [f32]) {
    let columns = sums.len();
    sums.fill(0.0);
    // Four rows per pass, so that the sums are loaded and stored a quarter as often.
    let mut blocks = matrix.chunks_exact(4 * columns);
    for block in &mut blocks {
        let (upper, lower) = block.split_at(2 * columns);
        let (first, second) = upper.split_at(columns);
        let (third, fourth) = lower.split_at(columns);
        for ((((sum, first), second), third), fourth) in sums.iter_mut().zip(first).zip(second).zip(third).zip(fourth) {
            *sum += (first + second) + (third + fourth);
        }
    }
    for row in blocks.remainder().chunks_exact(columns) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
}

/// `q = v + a - mean(a)` for every row; a row of `streams` is the value, then the advantages.
#[inline(always)]
pub(super) fn combine_streams(streams: &[f32], output: &mut [f32], outputs: usize) {
    for (streams, output) in streams.chunks_exact(1 + outputs).zip(output.chunks_exact_mut(outputs)) {
        let mean = streams[1..].iter().sum::<f32>() / outputs as f32;
        for (output, advantage) in output.iter_mut().zip(&streams[1..]) {
            *output = streams[0] + (advantage - mean);
        }
    }
}

/// The backward pass of [`combine_streams`].
#[inline(always)]
pub(super) fn split_gradient(output_gradient: &[f32], streams_gradient: &mut [f32], outputs: usize) {
    for (gradient, streams) in output_gradient.chunks_exact(outputs).zip(streams_gradient.chunks_exact_mut(1 + outputs)) {
        let sum = gradient.iter().sum::<f32>();
        let mean = sum / outputs as f32;
        streams[0] = sum;
        for (advantage, gradient) in streams[1..].iter_mut().zip(gradient) {
            *advantage = gradient - mean;
        }
    }
}
