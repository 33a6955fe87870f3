//! Both engines compute the same function and the right gradients.

#[path = "network_engines/random_shapes.rs"]
mod random_shapes;

#[path = "support"]
mod support {
    pub(crate) mod networks;
    pub(crate) mod test_device;
}

use shoal::config::schema::Engine;
use shoal::networks::{Head, InputSpec, NetworkSpec};
use shoal::values::{ValueType, Values};
use support::networks::{Elements, assert_gradients, assert_repeated, build, engines, numbers, pass};

fn perceptron(inputs: usize, hidden: &[usize], outputs: usize, dueling: bool) -> NetworkSpec {
    NetworkSpec::perceptron(inputs, hidden, if dueling { Head::Dueling { outputs } } else { Head::Linear { outputs } })
}

/// A network on images, of bytes or of floats, or on a grid of them that is no image.
fn on_images<const AXES: usize>(element: ValueType, shape: [usize; AXES], convolutions: &[[usize; 3]], head: Head) -> NetworkSpec {
    NetworkSpec::of_input(InputSpec { element, shape: shape.to_vec() }, convolutions, &[40], head)
}

/// Shapes that reach every product: narrow and wide sides, widths that no vector length divides, no hidden layer, images.
fn specs() -> Vec<NetworkSpec> {
    vec![
        perceptron(4, &[64, 64], 2, false),
        perceptron(4, &[64, 64], 2, true),
        perceptron(1, &[33], 1, false),
        perceptron(2, &[37, 5], 4, false),
        perceptron(8, &[37, 5], 8, true),
        perceptron(17, &[48, 40], 6, false),
        perceptron(23, &[3, 19, 31], 18, true),
        perceptron(3, &[], 2, true),
        perceptron(20, &[], 11, false),
        on_images(ValueType::U8, [4, 17, 13], &[[16, 4, 2], [35, 3, 1]], Head::Linear { outputs: 6 }),
        on_images(ValueType::F32, [3, 12, 15], &[[16, 4, 2], [5, 3, 2]], Head::Dueling { outputs: 4 }),
        on_images(ValueType::U8, [2, 5, 6], &[], Head::Linear { outputs: 3 }),
        on_images(ValueType::U8, [10, 5], &[], Head::Linear { outputs: 3 }),
        on_images(ValueType::F32, [3, 7], &[], Head::Dueling { outputs: 2 }),
    ]
}

#[test]
fn gradients_of_the_native_engine_are_finite_differences_of_the_definition() {
    for spec in specs() {
        assert_gradients(&spec, 3, 300);
    }
}

#[test]
fn inference_equals_the_forward_pass_and_leaves_it_alone() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut network = build(&spec, engine);
        let expected = pass(&mut *network, 7);
        let mut output = vec![f32::NAN; 7 * spec.outputs()];
        network.infer(Elements::new(&spec, 7, 5).as_input(), 7, &mut output);
        assert_eq!(output, expected.output, "{spec}");

        network.forward(Elements::new(&spec, 7, 5).as_input(), 7, &mut output);
        network.infer(Elements::new(&spec, 70, 9).as_input(), 70, &mut vec![0.0; 70 * spec.outputs()]);
        let mut gradient = vec![f32::NAN; spec.parameter_count()];
        network.backward(&numbers(7 * spec.outputs(), 6), Some(&mut gradient), None);
        assert_repeated(engine, &gradient, &expected.parameter_gradient, &spec.to_string());
    }
}

#[test]
fn results_do_not_depend_on_the_batches_before() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut used = build(&spec, engine);
        for rows in [if spec.inputs() < 100 { 4096 } else { 300 }, 1, 64] {
            pass(&mut *used, rows);
        }
        for rows in [0, 1, 3, 257] {
            let (used, fresh) = (pass(&mut *used, rows), pass(&mut *build(&spec, engine), rows));
            let what = format!("{spec}, {rows} rows");
            assert_repeated(engine, &used.output, &fresh.output, &what);
            assert_repeated(engine, &used.parameter_gradient, &fresh.parameter_gradient, &what);
            assert_repeated(engine, &used.input_gradient, &fresh.input_gradient, &what);
            assert!(used.parameter_gradient.iter().all(|value| value.is_finite()));
        }
    }
}

#[test]
fn a_change_of_the_parameters_reaches_every_layer() {
    for (engine, spec) in engines().into_iter().flat_map(|engine| specs().into_iter().map(move |spec| (engine, spec))) {
        let mut changed = build(&spec, engine);
        changed.update_parameters(&mut |parameters| parameters.iter_mut().for_each(|value| *value *= -0.5));
        let mut fresh = build(&spec, engine);
        fresh.set_parameters(&spec.initialise(3).iter().map(|value| value * -0.5).collect::<Vec<_>>());
        assert_eq!(changed.parameters(), fresh.parameters());
        assert_eq!(pass(&mut *changed, 3).output, pass(&mut *fresh, 3).output, "{spec}");
    }
}

#[test]
fn an_input_that_is_not_a_number_is_seen_at_the_output() {
    let floats = || specs().into_iter().filter(|spec| spec.input.element == ValueType::F32);
    for (engine, spec) in engines().into_iter().flat_map(|engine| floats().map(move |spec| (engine, spec))) {
        let mut network = build(&spec, engine);
        let (mut input, mut output) = (numbers(4 * spec.inputs(), 5), vec![0.0; 4 * spec.outputs()]);
        input[spec.inputs()] = f32::NAN;
        network.infer(Values::F32(&input), 4, &mut output);
        let row = |index: usize| &output[index * spec.outputs()..(index + 1) * spec.outputs()];
        assert!(row(1).iter().all(|value| value.is_nan()), "{spec}");
        assert!(row(0).iter().chain(row(2)).all(|value| value.is_finite()), "{spec}");
    }
}

#[test]
fn the_native_engine_allocates_nothing_once_it_has_seen_the_largest_batch() {
    for spec in specs() {
        let mut network = build(&spec, Engine::Cpu);
        let (input, output_gradient) = (Elements::new(&spec, 64, 5), numbers(64 * spec.outputs(), 6));
        let (mut output, mut input_gradient) = (vec![0.0; output_gradient.len()], vec![0.0; 64 * spec.inputs()]);
        let wants_input = spec.input.element == ValueType::F32;
        let mut gradient = vec![0.0; spec.parameter_count()];
        let mut all = |rows: usize| {
            let (inputs, outputs) = (rows * spec.inputs(), rows * spec.outputs());
            network.infer(input.first(inputs), rows, &mut output[..outputs]);
            network.forward(input.first(inputs), rows, &mut output[..outputs]);
            network.backward(&output_gradient[..outputs], Some(&mut gradient), wants_input.then_some(&mut input_gradient[..inputs]));
            network.update_parameters(&mut |parameters| parameters[0] += 1.0);
        };
        all(64);
        let seen = allocation_counter::measure(|| [64, 1, 17, 64].into_iter().for_each(&mut all));
        assert_eq!(seen.count_total, 0, "{spec}");
    }
}

#[test]
#[should_panic(expected = "needs a forward pass")]
fn a_backward_pass_after_a_change_of_the_parameters_is_a_bug() {
    let spec = &specs()[0];
    let mut network = build(spec, Engine::Cpu);
    network.forward(Values::F32(&[0.0; 4]), 1, &mut [0.0; 2]);
    network.update_parameters(&mut |_| ());
    network.backward(&[1.0; 2], Some(&mut vec![0.0; spec.parameter_count()]), None);
}

#[cfg(feature = "torch")]
mod torch {
    use super::*;
    use crate::support::networks::{assert_close, assert_engines_agree};
    use shoal::networks::{Adam, AdamSettings, clip_norm};
    use tch::Tensor;

    #[test]
    fn both_engines_give_the_same_outputs_and_gradients() {
        for spec in specs().into_iter().chain([false, true].map(|dueling| perceptron(4, &[256, 256], 2, dueling))) {
            [1, 3, 64, 257].into_iter().for_each(|rows| assert_engines_agree(&spec, rows));
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
