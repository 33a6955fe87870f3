//! How much the networks of a thread compute, in products: a product is one multiplication and the addition of its
//! result, two floating-point operations. Of what training computes, only for products of matrices can a machine's
//! peak be measured.

use std::cell::Cell;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::specification::Stage;
use super::{CpuNetwork, Head, Network, NetworkSpec};
use crate::values::Values;

/// Rows, inputs and outputs of the products that the peak is measured with: so many that nothing else counts, and few
/// enough for the cache.
const SIDE: usize = 256;

thread_local! {
    static PRODUCTS: Cell<u64> = const { Cell::new(0) };
}

/// Products that networks computed for this thread since the last call, on whichever device.
pub fn take_products() -> u64 {
    PRODUCTS.take()
}

/// What one row costs a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    /// Products of a forward pass.
    forward: u64,
    /// Products of the first layer in a forward pass: often nobody wants the gradient of its input.
    first: u64,
}

impl Work {
    pub(super) fn of(stages: &[Stage]) -> Self {
        let products = |stage: &Stage| stage.products() as u64;
        let first = stages.iter().map(products).find(|&products| products > 0);
        Self { forward: stages.iter().map(products).sum(), first: first.unwrap_or(0) }
    }

    /// Count a forward pass.
    pub(super) fn count_forward(self, rows: usize) {
        count(self.forward, rows);
    }

    /// Count a backward pass. The gradient of a layer's weights takes as many products as its forward pass, and so does
    /// the gradient of its input; a gradient that is not wanted does not count. Rows through which no gradient passes
    /// count, although an engine may leave them out.
    pub(super) fn count_backward(self, rows: usize, of_parameters: bool, of_input: bool) {
        let weights = if of_parameters { self.forward } else { 0 };
        count(weights + self.forward - if of_input { 0 } else { self.first }, rows);
    }
}

fn count(products: u64, rows: usize) {
    PRODUCTS.set(PRODUCTS.get().wrapping_add(products.wrapping_mul(rows as u64)));
}

/// Products per second of one core that only multiplies large matrices, with the native engine, over so much processor
/// time of this thread. `None` if the kernel does not tell that time.
pub fn measure_products_per_s(duration: Duration) -> Option<f64> {
    let mut network = CpuNetwork::new(NetworkSpec::perceptron(SIDE, &[], Head::Linear { outputs: SIDE })).ok()?;
    network.set_parameters(&vec![1.0; network.parameters().len()]);
    let (input, mut output) = (vec![1.0; SIDE * SIDE], vec![0.0; SIDE * SIDE]);
    let mut multiply = || network.infer(Values::F32(&input), SIDE, &mut output);
    let counted_elsewhere = take_products();
    // Not measured: the first product allocates, packs and fills the cache.
    multiply();
    PRODUCTS.set(0);
    let began = processor_time()?;
    loop {
        multiply();
        let elapsed = processor_time()?.saturating_sub(began);
        if elapsed >= duration {
            let products = PRODUCTS.replace(counted_elsewhere);
            return Some(products as f64 / elapsed.as_secs_f64());
        }
    }
}

fn processor_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

#[cfg(test)]
mod tests {
    use super::super::InputSpec;
    use super::*;
    use crate::values::ValueType;

    const ROWS: usize = 3;

    /// Products of a forward pass of three rows, and of backward passes for the parameters, for
    /// the input, and for both.
    fn counted(spec: NetworkSpec) -> [u64; 4] {
        let mut network = CpuNetwork::new(spec).unwrap();
        let (inputs, outputs) = (network.spec().inputs(), network.spec().outputs());
        let (input, mut output) = (vec![1.0; ROWS * inputs], vec![0.0; ROWS * outputs]);
        let (mut parameters, mut entering) = (vec![0.0; network.parameters().len()], vec![0.0; ROWS * inputs]);
        take_products();
        network.infer(Values::F32(&input), ROWS, &mut output);
        let inference = take_products();
        let mut backward = |of_parameters: bool, of_input: bool| {
            network.forward(Values::F32(&input), ROWS, &mut output);
            assert_eq!(take_products(), inference, "both are forward passes");
            network.backward(&output, of_parameters.then_some(&mut *parameters), of_input.then_some(&mut *entering));
            take_products()
        };
        [inference, backward(true, false), backward(false, true), backward(true, true)]
    }

    #[test]
    fn dense_layers_make_a_product_for_each_weight_and_row() {
        // 4 x 8 and 8 x 2 weights.
        let (forward, first) = (48, 32);
        let expected = [forward, 2 * forward - first, forward, 2 * forward].map(|products| ROWS as u64 * products);
        assert_eq!(counted(NetworkSpec::perceptron(4, &[8], Head::Linear { outputs: 2 })), expected);
        // A value and two advantages of eight inputs each.
        assert_eq!(counted(NetworkSpec::perceptron(4, &[8], Head::Dueling { outputs: 2 }))[0], ROWS as u64 * (32 + 24));
    }

    #[test]
    fn a_kernel_makes_its_products_wherever_it_is_put() {
        let input = InputSpec { element: ValueType::F32, shape: vec![2, 7, 7] };
        // Five channels of a kernel of 3 x 3, put on 3 x 3 places, then 45 values with 4 outputs.
        let (convolution, dense) = (5 * 2 * 9 * 9, 45 * 4);
        let expected = [convolution + dense, convolution + 2 * dense, convolution + dense, 2 * (convolution + dense)];
        let spec = NetworkSpec::of_input(input, &[[5, 3, 2]], &[], Head::Linear { outputs: 4 });
        assert_eq!(counted(spec), expected.map(|products| (ROWS * products) as u64));
        // One place of 6 values becomes 2 channels of 3 x 3, whose 9 places become 6 x 6 by a kernel of 4 x 4.
        assert_eq!(counted(NetworkSpec::decoder(6, 1, 6))[0], (ROWS * (6 * 2 * 9 + 9 * 2 * 16)) as u64);
    }

    #[test]
    fn the_peak_is_measured_beside_what_is_counted() {
        take_products();
        Work { forward: 7, first: 0 }.count_forward(1);
        assert!(measure_products_per_s(Duration::from_millis(5)).unwrap() > 1e6);
        assert_eq!(take_products(), 7);
    }
}
