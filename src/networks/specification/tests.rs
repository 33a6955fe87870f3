//! What the specification promises: names, places, initialisation, refusals.

use super::*;

fn linear_perceptron() -> NetworkSpec {
    NetworkSpec::perceptron(4, &[64, 32], Head::Linear { outputs: 3 })
}

fn dueling_perceptron() -> NetworkSpec {
    NetworkSpec::perceptron(4, &[64, 32], Head::Dueling { outputs: 3 })
}

fn frames(shape: [usize; 3], convolutions: &[[usize; 3]]) -> NetworkSpec {
    let input = InputSpec { element: ValueType::U8, shape: shape.to_vec() };
    NetworkSpec::of_input(input, convolutions, &[512], Head::Linear { outputs: 6 })
}

/// The network of Mnih et al. 2015.
fn nature() -> NetworkSpec {
    frames([4, 84, 84], &[[32, 8, 4], [64, 4, 2], [64, 3, 1]])
}

/// A picture through a narrow row and back.
fn auto_encoder() -> NetworkSpec {
    let layers = vec![
        Layer::Convolution { channels: 8, kernel: 4, stride: 2 },
        Layer::Relu,
        Layer::Flatten,
        Layer::Dense { units: 10 },
        Layer::Tanh,
        Layer::Dense { units: 200 },
        Layer::Relu,
        Layer::Unflatten { shape: [8, 5, 5] },
        Layer::TransposedConvolution { channels: 3, kernel: 4, stride: 2 },
    ];
    NetworkSpec { input: InputSpec { element: ValueType::F32, shape: vec![3, 12, 12] }, layers, head: Head::None }
}

fn several_heads() -> NetworkSpec {
    let head = |name: &str, outputs| NamedHead { name: name.into(), outputs };
    NetworkSpec::perceptron(5, &[7], Head::Named(vec![head("mean", 2), head("log_deviation", 2)]))
}

fn all() -> [NetworkSpec; 5] {
    [linear_perceptron(), dueling_perceptron(), nature(), auto_encoder(), several_heads()]
}

fn listed(specification: &NetworkSpec) -> Vec<String> {
    specification.tensors().into_iter().map(|tensor| format!("{} {:?}", tensor.name, tensor.shape)).collect()
}

#[test]
fn tensors_cover_the_flat_buffer_without_gap_or_overlap() {
    for specification in all() {
        let mut end = 0;
        for tensor in specification.tensors() {
            assert_eq!(tensor.offset, end, "{}", tensor.name);
            end = tensor.range().end;
        }
        assert_eq!(end, specification.parameter_count());
        assert_eq!(end, specification.initialise(1).len());
    }
    assert_eq!(linear_perceptron().parameter_count(), 5 * 64 + 65 * 32 + 33 * 3);
    assert_eq!(dueling_perceptron().parameter_count(), 5 * 64 + 65 * 32 + 33 * 4);
    assert_eq!(nature().parameter_count(), 257 * 32 + 513 * 64 + 577 * 64 + 3137 * 512 + 513 * 6);
}

#[test]
fn tensors_are_named_and_shaped_as_in_pytorch() {
    assert_eq!(listed(&linear_perceptron())[..2], ["layers.0.weight [64, 4]", "layers.0.bias [64]"]);
    assert_eq!(listed(&linear_perceptron())[4..], ["layers.2.weight [3, 32]", "layers.2.bias [3]"]);
    let dueling = ["value.weight [1, 32]", "advantage.weight [3, 32]", "value.bias [1]", "advantage.bias [3]"];
    assert_eq!(listed(&dueling_perceptron())[4..], dueling);
    let nature = listed(&nature());
    assert_eq!(nature[..3], ["layers.0.weight [32, 4, 8, 8]", "layers.0.bias [32]", "layers.1.weight [64, 32, 4, 4]"]);
    assert_eq!(nature[6..], ["layers.3.weight [512, 3136]", "layers.3.bias [512]", "layers.4.weight [6, 512]", "layers.4.bias [6]"]);
    assert_eq!(listed(&auto_encoder())[6..], ["layers.3.weight [8, 3, 4, 4]", "layers.3.bias [3]"]);
    let heads = ["mean.weight [2, 7]", "log_deviation.weight [2, 7]", "mean.bias [2]", "log_deviation.bias [2]"];
    assert_eq!(listed(&several_heads())[2..], heads);
}

#[test]
fn inputs_and_outputs_are_the_elements_of_a_row() {
    let sizes = all().map(|specification| (specification.inputs(), specification.outputs()));
    assert_eq!(sizes, [(4, 3), (4, 3), (4 * 84 * 84, 6), (3 * 12 * 12, 3 * 12 * 12), (5, 4)]);
    assert_eq!((nature().hidden(), nature().convolutions()), (vec![512], vec![[32, 8, 4], [64, 4, 2], [64, 3, 1]]));
    assert_eq!((dueling_perceptron().hidden(), dueling_perceptron().is_dueling()), (vec![64, 32], true));
}

#[test]
fn a_specification_comes_back_from_json() {
    for specification in all() {
        let json = serde_json::to_string(&specification).unwrap();
        assert_eq!(serde_json::from_str::<NetworkSpec>(&json).unwrap(), specification, "{json}");
    }
}

#[test]
fn initialisation_is_uniform_within_the_fan_in_bound_and_repeats_from_its_seed() {
    let specification = NetworkSpec::perceptron(16, &[400], Head::Linear { outputs: 2 });
    let parameters = specification.initialise(7);
    assert_eq!(parameters, specification.initialise(7));
    assert_ne!(parameters, specification.initialise(8));
    let first = &parameters[..17 * 400];
    assert!(first.iter().all(|x| x.abs() <= 0.25));
    let mean = first.iter().sum::<f32>() / first.len() as f32;
    let variance = first.iter().map(|x| x * x).sum::<f32>() / first.len() as f32;
    // A uniform distribution on ±0.25 has variance 0.25² / 3; six standard errors of 6,800 draws.
    assert!(mean.abs() < 6.0 * 0.144 / 82.0, "{mean}");
    assert!((variance - 0.0625 / 3.0).abs() < 6.0 * 0.0187 / 82.0, "{variance}");
    assert!(parameters[17 * 400..].iter().all(|x| x.abs() <= 0.05));
}

#[test]
fn he_gives_layers_with_relu_a_variance_of_two_by_fan_in_and_leaves_others_alone() {
    let specification = NetworkSpec::perceptron(16, &[400], Head::Linear { outputs: 2 });
    let parameters = specification.initialise_as(Initialisation::He, 7);
    let (weights, rest) = parameters.split_at(16 * 400);
    let variance = weights.iter().map(|x| x * x).sum::<f32>() / weights.len() as f32;
    // Uniform on a bound with square 6/16: the square has a standard deviation of 0.298 of it; six
    // standard errors of 6,400 draws.
    assert!((variance - 2.0 / 16.0).abs() < 6.0 * 0.298 * 0.375 / 80.0, "{variance}");
    assert!(rest[..400].iter().all(|&bias| bias == 0.0));
    assert!(rest[400..].iter().all(|x| x.abs() <= 0.05) && rest[400..].iter().any(|x| x.abs() > 0.04));
}

#[test]
fn kernels_are_initialised_within_the_bounds_of_pytorch() {
    for (specification, tensor, fan_in) in [
        (nature(), "layers.0.weight", 4 * 8 * 8),
        (nature(), "layers.1.bias", 32 * 4 * 4),
        // The second dimension of the weights, although that is the output here.
        (auto_encoder(), "layers.3.weight", 3 * 4 * 4),
    ] {
        let tensors = specification.tensors();
        let range = tensors.iter().find(|found| found.name == tensor).unwrap().range();
        let largest = specification.initialise(1)[range].iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        let bound = 1.0 / f64::from(fan_in).sqrt();
        assert!((0.8 * bound..=bound * 1.000_001).contains(&f64::from(largest)), "{tensor}: {largest} in {bound}");
    }
}

/// The parameters of multi-layer perceptrons are those of every release: a seed gives the run that it gave.
#[test]
fn initialised_perceptrons_have_the_bits_that_they_always_had() {
    let hash = |specification: &NetworkSpec| {
        let bytes: Vec<u8> = specification.initialise(3).iter().flat_map(|value| value.to_le_bytes()).collect();
        crc32fast::hash(&bytes)
    };
    let of = |inputs, hidden: &[usize], head| hash(&NetworkSpec::perceptron(inputs, hidden, head));
    let found = [
        of(4, &[64, 64], Head::Linear { outputs: 2 }),
        of(4, &[64, 64], Head::Dueling { outputs: 2 }),
        of(17, &[256, 256], Head::Linear { outputs: 6 }),
        of(20, &[], Head::Linear { outputs: 11 }),
    ];
    assert_eq!(found, [0xa7f6_4160, 0x9d20_8650, 0xa2f5_2b17, 0x204a_237c]);
}

#[test]
fn impossible_networks_are_refused_with_what_is_wrong_the_limit_and_the_next_step() {
    let refused = |specification: NetworkSpec, words: &[&str]| {
        let message = specification.validate().unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{words:?} are not in: {message}");
    };
    let linear = Head::Linear { outputs: 2 };
    let hidden = |hidden: &[usize]| NetworkSpec::perceptron(4, hidden, Head::Linear { outputs: 2 });
    refused(NetworkSpec::perceptron(0, &[8], linear.clone()), &["the input [0]", "at least 1"]);
    refused(NetworkSpec::perceptron(4, &[8], Head::Dueling { outputs: 0 }), &["the output", "at least 1"]);
    refused(hidden(&[8, 0]), &["layer 2 (dense 0)", "at least 1"]);
    refused(hidden(&[1 << 20, 1 << 20]), &["dense 1048576", "268435456 parameters", "network.hidden"]);
    refused(hidden(&[usize::MAX / 2, 2]), &["268435456 values", "smaller layers"]);
    refused(NetworkSpec::perceptron(4, &[1 << 16], Head::Linear { outputs: usize::MAX }), &["268435456 parameters"]);

    refused(frames([4, 42, 42], &[[16, 43, 1]]), &["convolution 16@43/1", "43x43", "42x42", "at most 42", "network.convolutions"]);
    refused(frames([4, 10, 10], &[[32, 8, 4], [64, 4, 2]]), &["layer 2 (convolution 64@4/2)", "1x1", "larger frames"]);
    refused(frames([4, 42, 42], &[[16, 4, 0]]), &["layer 0 (convolution 16@4/0)", "at least 1"]);
    refused(frames([4, 42, 0], &[]), &["the input [4, 42, 0]"]);
    refused(frames([1 << 20, 1 << 20, 1 << 30], &[]), &["the input", "268435456 values"]);
    refused(frames([1, 1 << 13, 1 << 13], &[[1 << 16, 1, 1]]), &["268435456 values"]);
    let flat = InputSpec::floats(17);
    refused(NetworkSpec::of_input(flat, &[[16, 4, 2]], &[8], linear.clone()), &["17 values", "network.convolutions to []", "shows frames"]);
    let grey = InputSpec { element: ValueType::U8, shape: vec![84, 84] };
    refused(NetworkSpec::of_input(grey, &[[16, 4, 2]], &[8], linear.clone()), &["2 dimensions", "if that is an image", "frame_stack"]);

    let without_flatten =
        NetworkSpec { layers: nature().layers.into_iter().filter(|layer| *layer != Layer::Flatten).collect(), ..nature() };
    refused(without_flatten, &["layer 6 (dense 512)", "64 channels of 7x7", "flatten"]);
    let of_frames = |layers: Vec<Layer>, head| NetworkSpec { layers, head, ..nature() };
    refused(of_frames(vec![], Head::None), &["the network", "nothing to compute"]);
    refused(of_frames(vec![], linear.clone()), &["the head", "4 channels of 84x84", "flatten"]);
    refused(of_frames(vec![Layer::Relu], linear.clone()), &["layer 0 (relu)", "remove it"]);
    refused(of_frames(vec![Layer::Flatten, Layer::Dense { units: 3 }, Layer::Tanh, Layer::Relu], linear), &["layer 3 (relu)"]);
    let reshaped = vec![Layer::Flatten, Layer::Unflatten { shape: [4, 84, 85] }];
    refused(of_frames(reshaped, Head::None), &["unflatten to [4, 84, 85]", "28560", "28224"]);
    let stretched = Layer::TransposedConvolution { channels: 1, kernel: 1, stride: usize::MAX };
    refused(of_frames(vec![stretched], Head::None), &["transposed convolution", "268435456 values"]);
    for names in [["value", "value"], ["", "value"], ["layers", "value"], ["a.b", "value"]] {
        let heads = names.map(|name| NamedHead { name: name.into(), outputs: 1 });
        refused(NetworkSpec::perceptron(4, &[], Head::Named(heads.to_vec())), &["cannot name a head", "unique"]);
    }
    refused(NetworkSpec::perceptron(4, &[], Head::Named(vec![])), &["the output"]);
    assert!(all().iter().all(|specification| specification.validate().is_ok()));
}
