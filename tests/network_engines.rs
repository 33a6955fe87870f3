//! Both engines compute the same function and the right gradients.

use shoal::{
    config::schema::Engine,
    networks::{self, Device, MlpSpec, Network},
};

/// Reproducible numbers in about ±1, different for each `salt`.
fn numbers(length: usize, salt: u64) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..length).map(|_| next()).collect()
}

fn build(spec: &MlpSpec, engine: Engine) -> Box<dyn Network> {
    let mut network = networks::build(spec.clone(), engine, Device::Cpu, 1).expect("the shape is valid");
    network.set_parameters(&spec.initialise(3));
    network
}

/// Shapes that reach every product: narrow and wide sides, widths that no vector length divides, no hidden layer.
fn specs() -> Vec<MlpSpec> {
    let spec = |inputs, hidden: &[usize], outputs, dueling| MlpSpec { inputs, hidden: hidden.to_vec(), outputs, dueling };
    vec![
        spec(4, &[64, 64], 2, false),
        spec(4, &[64, 64], 2, true),
        spec(1, &[33], 1, false),
        spec(2, &[37, 5], 4, false),
        spec(8, &[37, 5], 8, true),
        spec(17, &[48, 40], 6, false),
        spec(23, &[3, 19, 31], 18, true),
        spec(3, &[], 2, true),
        spec(20, &[], 11, false),
    ]
}

struct Pass {
    output: Vec<f32>,
    parameter_gradient: Vec<f32>,
    input_gradient: Vec<f32>,
}

fn pass(network: &mut dyn Network, rows: usize) -> Pass {
    let spec = network.spec().clone();
    let (input, output_gradient) = (numbers(rows * spec.inputs, 5), numbers(rows * spec.outputs, 6));
    // Filled with NaN, so that a value that is not overwritten is seen.
    let mut output = vec![f32::NAN; rows * spec.outputs];
    let mut parameter_gradient = vec![f32::NAN; spec.parameter_count()];
    let mut input_gradient = vec![f32::NAN; input.len()];
    network.forward(&input, rows, &mut output);
    network.backward(&output_gradient, Some(&mut parameter_gradient), Some(&mut input_gradient));
    Pass { output, parameter_gradient, input_gradient }
}

/// The loss whose gradient `pass` computes, in f64 and straight from the definition.
fn loss(spec: &MlpSpec, parameters: &[f32], input: &[f32], output_gradient: &[f32]) -> f64 {
    let tensors = spec.tensors();
    let tensor = |name: &str| {
        let tensor = tensors.iter().find(|tensor| tensor.name == name).expect("the tensor exists");
        parameters[tensor.range()].iter().map(|&value| f64::from(value)).collect::<Vec<_>>()
    };
    let linear = |input: &[f64], prefix: &str| {
        let (weight, bias) = (tensor(&format!("{prefix}.weight")), tensor(&format!("{prefix}.bias")));
        let row = |(weight, bias): (&[f64], &f64)| weight.iter().zip(input).map(|(w, x)| w * x).sum::<f64>() + bias;
        weight.chunks_exact(input.len()).zip(&bias).map(row).collect::<Vec<_>>()
    };
    let mut total = 0.0;
    for (input, gradient) in input.chunks_exact(spec.inputs).zip(output_gradient.chunks_exact(spec.outputs)) {
        let mut values: Vec<f64> = input.iter().map(|&value| f64::from(value)).collect();
        for layer in 0..spec.hidden.len() {
            values = linear(&values, &format!("layers.{layer}")).into_iter().map(|value| value.max(0.0)).collect();
        }
        let output = if spec.dueling {
            let (value, advantage) = (linear(&values, "value")[0], linear(&values, "advantage"));
            let mean = advantage.iter().sum::<f64>() / advantage.len() as f64;
            advantage.iter().map(|advantage| value + advantage - mean).collect()
        } else {
            linear(&values, &format!("layers.{}", spec.hidden.len()))
        };
        total += output.iter().zip(gradient).map(|(output, gradient)| output * f64::from(*gradient)).sum::<f64>();
    }
    total
}

#[test]
fn the_native_engine_computes_the_definition() {
    for spec in specs() {
        let rows = 5;
        let mut network = build(&spec, Engine::Cpu);
        let output_gradient = numbers(rows * spec.outputs, 6);
        let output = pass(&mut *network, rows).output;
        let got: f64 = output.iter().zip(&output_gradient).map(|(x, g)| f64::from(*x) * f64::from(*g)).sum();
        let expected = loss(&spec, network.parameters(), &numbers(rows * spec.inputs, 5), &output_gradient);
        assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{spec:?}: {got} is not {expected}");
    }
}

#[test]
fn gradients_of_the_native_engine_are_finite_differences_of_the_definition() {
    // Central differences in f64; a ReLU that switches within the step would spoil one, and such seeds were not met.
    const STEP: f32 = 1e-4;
    let slope = |values: &[f32], index: usize, loss: &dyn Fn(&[f32]) -> f64| {
        let (mut lower, mut upper) = (values.to_vec(), values.to_vec());
        lower[index] -= STEP;
        upper[index] += STEP;
        (loss(&upper) - loss(&lower)) / (f64::from(upper[index]) - f64::from(lower[index]))
    };
    for spec in specs() {
        let rows = 3;
        let mut network = build(&spec, Engine::Cpu);
        let parameters = network.parameters().to_vec();
        let (input, output_gradient) = (numbers(rows * spec.inputs, 5), numbers(rows * spec.outputs, 6));
        let pass = pass(&mut *network, rows);
        let stride = (parameters.len() / 300).max(1);
        for index in (0..parameters.len()).step_by(stride) {
            let expected = slope(&parameters, index, &|parameters| loss(&spec, parameters, &input, &output_gradient));
            let got = f64::from(pass.parameter_gradient[index]);
            assert!((got - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{spec:?}, parameter {index}: {got} is not {expected}");
        }
        for index in 0..input.len() {
            let expected = slope(&input, index, &|input| loss(&spec, &parameters, input, &output_gradient));
            let got = f64::from(pass.input_gradient[index]);
            assert!((got - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{spec:?}, input {index}: {got} is not {expected}");
        }
    }
}

fn engines() -> Vec<Engine> {
    if cfg!(feature = "torch") { vec![Engine::Cpu, Engine::Torch] } else { vec![Engine::Cpu] }
}

#[test]
fn inference_equals_the_forward_pass_and_leaves_it_alone() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut network = build(&spec, engine);
        let expected = pass(&mut *network, 7);
        let mut output = vec![f32::NAN; 7 * spec.outputs];
        network.infer(&numbers(7 * spec.inputs, 5), 7, &mut output);
        assert_eq!(output, expected.output, "{spec:?}");

        network.forward(&numbers(7 * spec.inputs, 5), 7, &mut output);
        network.infer(&numbers(70 * spec.inputs, 9), 70, &mut vec![0.0; 70 * spec.outputs]);
        let mut gradient = vec![f32::NAN; spec.parameter_count()];
        network.backward(&numbers(7 * spec.outputs, 6), Some(&mut gradient), None);
        assert_eq!(gradient, expected.parameter_gradient, "{spec:?}");
    }
}

#[test]
fn results_do_not_depend_on_the_batches_before() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut used = build(&spec, engine);
        for rows in [4096, 1, 64] {
            pass(&mut *used, rows);
        }
        for rows in [0, 1, 3, 257] {
            let (used, fresh) = (pass(&mut *used, rows), pass(&mut *build(&spec, engine), rows));
            assert_eq!(used.output, fresh.output, "{spec:?}, {rows} rows");
            assert_eq!(used.parameter_gradient, fresh.parameter_gradient, "{spec:?}, {rows} rows");
            assert_eq!(used.input_gradient, fresh.input_gradient, "{spec:?}, {rows} rows");
            assert!(used.parameter_gradient.iter().all(|value| value.is_finite()));
        }
    }
}

#[test]
fn a_change_of_the_parameters_reaches_every_layer() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut changed = build(&spec, engine);
        changed.update_parameters(&mut |parameters| parameters.iter_mut().for_each(|value| *value *= -0.5));
        let mut fresh = networks::build(spec.clone(), engine, Device::Cpu, 1).unwrap();
        fresh.set_parameters(&spec.initialise(3).iter().map(|value| value * -0.5).collect::<Vec<_>>());
        assert_eq!(changed.parameters(), fresh.parameters());
        assert_eq!(pass(&mut *changed, 3).output, pass(&mut *fresh, 3).output, "{spec:?}");
    }
}

#[test]
fn an_input_that_is_not_a_number_is_seen_at_the_output() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut network = build(&spec, engine);
        let (mut input, mut output) = (numbers(4 * spec.inputs, 5), vec![0.0; 4 * spec.outputs]);
        input[spec.inputs] = f32::NAN;
        network.infer(&input, 4, &mut output);
        let row = |index: usize| &output[index * spec.outputs..(index + 1) * spec.outputs];
        assert!(row(1).iter().all(|value| value.is_nan()), "{spec:?}");
        assert!(row(0).iter().chain(row(2)).all(|value| value.is_finite()), "{spec:?}");
    }
}

#[test]
fn the_native_engine_allocates_nothing_once_it_has_seen_the_largest_batch() {
    for spec in specs() {
        let mut network = build(&spec, Engine::Cpu);
        let (input, output_gradient) = (numbers(64 * spec.inputs, 5), numbers(64 * spec.outputs, 6));
        let (mut output, mut input_gradient) = (vec![0.0; output_gradient.len()], vec![0.0; input.len()]);
        let mut gradient = vec![0.0; spec.parameter_count()];
        let mut all = |rows: usize| {
            let (inputs, outputs) = (rows * spec.inputs, rows * spec.outputs);
            network.infer(&input[..inputs], rows, &mut output[..outputs]);
            network.forward(&input[..inputs], rows, &mut output[..outputs]);
            network.backward(&output_gradient[..outputs], Some(&mut gradient), Some(&mut input_gradient[..inputs]));
            network.update_parameters(&mut |parameters| parameters[0] += 1.0);
        };
        all(64);
        let seen = allocation_counter::measure(|| [64, 1, 17, 64].into_iter().for_each(&mut all));
        assert_eq!(seen.count_total, 0, "{spec:?}");
    }
}

#[test]
#[should_panic(expected = "needs a forward pass")]
fn a_backward_pass_after_a_change_of_the_parameters_is_a_bug() {
    let spec = &specs()[0];
    let mut network = build(spec, Engine::Cpu);
    network.forward(&[0.0; 4], 1, &mut [0.0; 2]);
    network.update_parameters(&mut |_| ());
    network.backward(&[1.0; 2], Some(&mut vec![0.0; spec.parameter_count()]), None);
}

#[cfg(feature = "torch")]
mod torch {
    use super::*;
    use shoal::networks::{Adam, AdamSettings, clip_norm};
    use tch::Tensor;

    /// Every difference is within `tolerance` times the largest expected value, or times 1 if that is smaller.
    fn assert_close(got: &[f32], expected: &[f32], tolerance: f32, what: &str) {
        assert_eq!(got.len(), expected.len());
        let scale = expected.iter().fold(1.0f32, |scale, value| scale.max(value.abs()));
        for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
            assert!((got - expected).abs() <= tolerance * scale, "{what} {index}: {got} is not {expected}");
        }
    }

    #[test]
    fn both_engines_give_the_same_outputs_and_gradients() {
        let wide = |dueling| MlpSpec { inputs: 4, hidden: vec![256, 256], outputs: 2, dueling };
        for spec in specs().into_iter().chain([wide(false), wide(true)]) {
            let (mut native, mut torch) = (build(&spec, Engine::Cpu), build(&spec, Engine::Torch));
            for rows in [1, 3, 64, 257] {
                let (native, torch) = (pass(&mut *native, rows), pass(&mut *torch, rows));
                let what = |part: &str| format!("{spec:?}, {rows} rows, {part}");
                assert_close(&native.output, &torch.output, 1e-5, &what("output"));
                assert_close(&native.parameter_gradient, &torch.parameter_gradient, 1e-5, &what("parameter gradient"));
                assert_close(&native.input_gradient, &torch.input_gradient, 1e-5, &what("input gradient"));
            }
        }
    }

    #[test]
    fn adam_equals_the_one_of_pytorch() {
        let (length, steps, rate) = (1003, 500, 1e-3);
        let settings = AdamSettings::default();
        let mut parameters = numbers(length, 1);
        let mut store = tch::nn::VarStore::new(tch::Device::Cpu);
        let mut variable = store.root().var_copy("parameters", &Tensor::from_slice(&parameters));
        let options = tch::nn::Adam { beta1: settings.beta1, beta2: settings.beta2, wd: 0.0, eps: settings.epsilon, amsgrad: false };
        let mut reference = tch::nn::OptimizerConfig::build(options, &store, rate).expect("libtorch has Adam");
        store.unfreeze();
        let mut adam = Adam::new(length, settings);
        for step in 0..steps {
            let mut gradient = numbers(length, 100 + step);
            gradient.iter_mut().enumerate().for_each(|(i, value)| *value *= 10f32.powi(i as i32 % 7 - 4));
            let loss = (&variable * Tensor::from_slice(&gradient)).sum(tch::Kind::Float);
            reference.backward_step(&loss);
            adam.step(&mut parameters, &gradient, rate as f32);
        }
        let mut expected = vec![0.0f32; length];
        variable.requires_grad_(false).copy_data(&mut expected, length);
        for (got, expected) in parameters.iter().zip(&expected) {
            assert!((got - expected).abs() <= 2e-6, "{got} is not {expected}");
        }
    }

    #[test]
    fn clipping_equals_the_one_of_pytorch() {
        let (length, maximum) = (5003, 3.0);
        let mut store = tch::nn::VarStore::new(tch::Device::Cpu);
        let variable = store.root().zeros("parameters", &[length as i64]);
        let optimizer = tch::nn::OptimizerConfig::build(tch::nn::Sgd::default(), &store, 1.0).expect("libtorch has SGD");
        let mut gradient = numbers(length, 4);
        (&variable * Tensor::from_slice(&gradient)).sum(tch::Kind::Float).backward();
        optimizer.clip_grad_norm(f64::from(maximum));
        let mut expected = vec![0.0f32; length];
        variable.grad().copy_data(&mut expected, length);
        clip_norm(&mut gradient, maximum);
        assert_close(&gradient, &expected, 1e-6, "clipped gradient");
        store.freeze();
    }
}
