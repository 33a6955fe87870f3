//! Networks of random layers and shapes: the native engine computes the definition and its gradients, and libtorch the same.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use shoal::networks::{Head, InputSpec, Layer, NamedHead, NetworkSpec};
use shoal::values::ValueType;

#[cfg(feature = "torch")]
use crate::support::networks::assert_engines_agree;
use crate::support::networks::assert_gradients;

fn head() -> impl Strategy<Value = Head> {
    let named = |outputs: Vec<usize>| {
        let head = |(index, outputs)| NamedHead { name: format!("head_{index}"), outputs };
        Head::Named(outputs.into_iter().enumerate().map(head).collect())
    };
    prop_oneof![
        (1..9usize).prop_map(|outputs| Head::Linear { outputs }),
        (1..9usize).prop_map(|outputs| Head::Dueling { outputs }),
        prop::collection::vec(1..5usize, 1..4).prop_map(named),
    ]
}

fn activation() -> impl Strategy<Value = Option<Layer>> {
    prop_oneof![Just(None), Just(Some(Layer::Relu)), Just(Some(Layer::Relu)), Just(Some(Layer::Tanh))]
}

/// A kernel on an image, forwards or backwards; channels reach beyond the longest vector.
fn window() -> impl Strategy<Value = (Layer, Option<Layer>)> {
    let layer = (1..37usize, 1..5usize, 1..4usize, any::<bool>()).prop_map(|(channels, kernel, stride, transposed)| {
        if transposed { Layer::TransposedConvolution { channels, kernel, stride } } else { Layer::Convolution { channels, kernel, stride } }
    });
    (layer, activation())
}

/// Any network that is valid: images through windows, then perhaps dense layers and a head, or an image again.
fn networks() -> impl Strategy<Value = NetworkSpec> {
    let element = prop_oneof![Just(ValueType::F32), Just(ValueType::U8)];
    let shape = (1..6usize, 3..12usize, 3..12usize).prop_map(|(channels, height, width)| vec![channels, height, width]);
    let windows = prop::collection::vec(window(), 0..4);
    let dense = prop::collection::vec((1..40usize, activation()), 0..3);
    let image = prop::option::weighted(0.3, (1..4usize, 1..4usize, 1..4usize));
    let network = (element, shape, windows, dense, image, prop::option::weighted(0.7, head()));
    network
        .prop_map(|(element, shape, windows, dense, image, head)| {
            let activated = |(layer, activation): (Layer, Option<Layer>)| [Some(layer), activation];
            let mut layers: Vec<Layer> = windows.into_iter().flat_map(activated).flatten().collect();
            if !dense.is_empty() || image.is_some() || head.is_some() {
                layers.push(Layer::Flatten);
                layers.extend(dense.into_iter().flat_map(|(units, then)| activated((Layer::Dense { units }, then))).flatten());
            }
            if let Some((channels, height, width)) = image {
                layers.extend([Layer::Dense { units: channels * height * width }, Layer::Unflatten { shape: [channels, height, width] }]);
                layers.extend([Layer::TransposedConvolution { channels: 3, kernel: 3, stride: 2 }, Layer::Tanh]);
                layers.extend(head.is_some().then_some(Layer::Flatten));
            }
            NetworkSpec { input: InputSpec { element, shape }, layers, head: head.unwrap_or(Head::None) }
        })
        .prop_filter("a network that can be", |spec| spec.validate().is_ok() && spec.parameter_count() < 60_000)
}

/// The same networks in every run: one that a ReLU at zero spoils would fail by chance.
fn for_networks(cases: usize, test: impl Fn(&NetworkSpec)) {
    let mut runner = TestRunner::new_with_rng(
        Config { max_global_rejects: 100_000, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let strategy = networks();
    for _ in 0..cases {
        test(&strategy.new_tree(&mut runner).expect("most networks can be").current());
    }
}

#[test]
fn gradients_of_a_decoder_are_finite_differences_of_the_definition() {
    [6, 13].into_iter().for_each(|side| assert_gradients(&NetworkSpec::decoder(9, 3, side), 2, 25));
}

#[cfg(feature = "torch")]
#[test]
fn both_engines_give_the_same_outputs_and_gradients_for_a_decoder() {
    [6, 13, 42].into_iter().for_each(|side| assert_engines_agree(&NetworkSpec::decoder(9, 3, side), 3));
}

#[test]
fn gradients_of_every_layer_are_finite_differences_of_the_definition() {
    for_networks(60, |spec| assert_gradients(spec, 2, 25));
}

#[cfg(feature = "torch")]
#[test]
fn both_engines_give_the_same_outputs_and_gradients_for_random_networks() {
    for_networks(200, |spec| [1, 3].into_iter().for_each(|rows| assert_engines_agree(spec, rows)));
}
