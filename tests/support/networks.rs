//! Networks with numbers to try them on, and what they should compute: the definition of every layer in plain f64.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use shoal::config::schema::Engine;
use shoal::networks::{self, Device, Head, Layer, Network, NetworkSpec};
use shoal::values::{ValueType, Values};

use super::test_device;

/// Reproducible numbers in about ±1, different for each `salt`.
pub fn numbers(length: usize, salt: u64) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..length).map(|_| next()).collect()
}

/// The elements of an input.
pub enum Elements {
    F32(Vec<f32>),
    U8(Vec<u8>),
}

impl Elements {
    /// Reproducible rows for a network.
    pub fn new(spec: &NetworkSpec, rows: usize, salt: u64) -> Self {
        let numbers = numbers(rows * spec.inputs(), salt);
        match spec.input.element {
            ValueType::F32 => Self::F32(numbers),
            ValueType::U8 => Self::U8(numbers.into_iter().map(|number| (number * 127.5 + 127.5) as u8).collect()),
        }
    }

    pub fn as_input(&self) -> Values<'_> {
        match self {
            Self::F32(values) => values.into(),
            Self::U8(values) => values.into(),
        }
    }

    /// The first elements.
    pub fn first(&self, length: usize) -> Values<'_> {
        match self {
            Self::F32(values) => Values::F32(&values[..length]),
            Self::U8(values) => Values::U8(&values[..length]),
        }
    }

    /// What enters the network.
    pub fn values(&self) -> Vec<f64> {
        match self {
            Self::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Self::U8(values) => values.iter().map(|&value| f64::from(value) / 255.0).collect(),
        }
    }
}

pub fn build(spec: &NetworkSpec, engine: Engine) -> Box<dyn Network> {
    let mut network = networks::build(spec.clone(), engine, device_of(engine), 1).expect("the shape is valid and the device exists");
    network.set_parameters(&spec.initialise(3));
    network
}

fn device_of(engine: Engine) -> Device {
    match engine {
        Engine::Torch => test_device::of_libtorch().parse().expect("SHOAL_TEST_DEVICE names a device"),
        _ => Device::Cpu,
    }
}

/// The engines of this build.
pub fn engines() -> Vec<Engine> {
    if cfg!(feature = "torch") { vec![Engine::Cpu, Engine::Torch] } else { vec![Engine::Cpu] }
}

/// What one forward and one backward pass give.
pub struct Pass {
    pub output: Vec<f32>,
    pub parameter_gradient: Vec<f32>,
    /// Empty where bytes enter.
    pub input_gradient: Vec<f32>,
}

pub fn pass(network: &mut dyn Network, rows: usize) -> Pass {
    let spec = network.spec().clone();
    let (input, output_gradient) = (Elements::new(&spec, rows, 5), numbers(rows * spec.outputs(), 6));
    let wants_input = spec.input.element == ValueType::F32;
    // Filled with NaN, so that a value that is not overwritten is seen.
    let mut output = vec![f32::NAN; rows * spec.outputs()];
    let mut parameter_gradient = vec![f32::NAN; spec.parameter_count()];
    let mut input_gradient = vec![f32::NAN; if wants_input { rows * spec.inputs() } else { 0 }];
    network.forward(input.as_input(), rows, &mut output);
    network.backward(&output_gradient, Some(&mut parameter_gradient), wants_input.then_some(&mut input_gradient));
    Pass { output, parameter_gradient, input_gradient }
}

/// The loss whose gradient [`pass`] computes, straight from the definition: the outputs times `output_gradient`.
pub fn loss(spec: &NetworkSpec, parameters: &[f64], input: &[f64], output_gradient: &[f32]) -> f64 {
    let rows = input.chunks_exact(spec.inputs()).zip(output_gradient.chunks_exact(spec.outputs()));
    rows.map(|(input, gradient)| {
        let output = output(spec, parameters, input);
        assert_eq!(output.len(), gradient.len());
        output.iter().zip(gradient).map(|(output, gradient)| output * f64::from(*gradient)).sum::<f64>()
    })
    .sum()
}

/// The output for one row.
fn output(spec: &NetworkSpec, parameters: &[f64], input: &[f64]) -> Vec<f64> {
    let tensors = spec.tensors();
    let tensor = |name: &str| {
        let tensor = tensors.iter().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("there is no tensor {name}"));
        parameters[tensor.range()].to_vec()
    };
    let linear = |input: &[f64], prefix: &str| {
        let (weight, bias) = (tensor(&format!("{prefix}.weight")), tensor(&format!("{prefix}.bias")));
        let row = |(weight, bias): (&[f64], &f64)| weight.iter().zip(input).map(|(w, x)| w * x).sum::<f64>() + bias;
        weight.chunks_exact(input.len()).zip(&bias).map(row).collect::<Vec<_>>()
    };
    let mut values = input.to_vec();
    let mut shape = spec.input.shape.clone();
    let mut numbered = 0..;
    let mut next = || format!("layers.{}", numbered.next().unwrap());
    for layer in &spec.layers {
        match *layer {
            Layer::Relu => values.iter_mut().for_each(|value| *value = value.max(0.0)),
            Layer::Tanh => values.iter_mut().for_each(|value| *value = value.tanh()),
            Layer::Flatten => shape = vec![values.len()],
            Layer::Unflatten { shape: image } => shape = image.to_vec(),
            Layer::Dense { units } => (values, shape) = (linear(&values, &next()), vec![units]),
            Layer::Convolution { channels, kernel, stride } => {
                let name = next();
                let (weight, bias) = (tensor(&format!("{name}.weight")), tensor(&format!("{name}.bias")));
                let [depth, height, width] = shape[..] else { panic!("an image") };
                let (down, across) = ((height - kernel) / stride + 1, (width - kernel) / stride + 1);
                let mut places = Vec::new();
                for (channel, y, x) in grid(channels, down, across) {
                    let patch = grid(depth, kernel, kernel).map(|(from, row, column)| {
                        let pixel = values[(from * height + y * stride + row) * width + x * stride + column];
                        pixel * weight[((channel * depth + from) * kernel + row) * kernel + column]
                    });
                    places.push(patch.sum::<f64>() + bias[channel]);
                }
                (values, shape) = (places, vec![channels, down, across]);
            }
            Layer::TransposedConvolution { channels, kernel, stride } => {
                let name = next();
                let (weight, bias) = (tensor(&format!("{name}.weight")), tensor(&format!("{name}.bias")));
                let [depth, down, across] = shape[..] else { panic!("an image") };
                let (height, width) = ((down - 1) * stride + kernel, (across - 1) * stride + kernel);
                let mut image: Vec<f64> = grid(channels, height, width).map(|(channel, ..)| bias[channel]).collect();
                for (from, y, x) in grid(depth, down, across) {
                    for (channel, row, column) in grid(channels, kernel, kernel) {
                        image[(channel * height + y * stride + row) * width + x * stride + column] +=
                            values[(from * down + y) * across + x] * weight[((from * channels + channel) * kernel + row) * kernel + column];
                    }
                }
                (values, shape) = (image, vec![channels, height, width]);
            }
        }
    }
    match &spec.head {
        Head::None => values,
        Head::Linear { .. } => linear(&values, &next()),
        Head::Dueling { .. } => {
            let (value, advantage) = (linear(&values, "value")[0], linear(&values, "advantage"));
            let mean = advantage.iter().sum::<f64>() / advantage.len() as f64;
            advantage.iter().map(|advantage| value + advantage - mean).collect()
        }
        Head::Named(heads) => heads.iter().flat_map(|head| linear(&values, &head.name)).collect(),
    }
}

fn grid(channels: usize, height: usize, width: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..channels).flat_map(move |channel| (0..height).flat_map(move |y| (0..width).map(move |x| (channel, y, x))))
}

/// Whether the native engine's gradients are those of [`loss`], by central differences at about `samples` parameters and inputs.
pub fn assert_gradients(spec: &NetworkSpec, rows: usize, samples: usize) {
    // Small enough that a ReLU switches within the step in no case that was met.
    const STEP: f64 = 1e-6;
    let slope = |values: &[f64], index: usize, loss: &dyn Fn(&[f64]) -> f64| {
        let (mut lower, mut upper) = (values.to_vec(), values.to_vec());
        lower[index] -= STEP;
        upper[index] += STEP;
        (loss(&upper) - loss(&lower)) / (2.0 * STEP)
    };
    let mut network = build(spec, Engine::Cpu);
    let parameters: Vec<f64> = network.parameters().iter().map(|&value| f64::from(value)).collect();
    let (input, output_gradient) = (Elements::new(spec, rows, 5).values(), numbers(rows * spec.outputs(), 6));
    let pass = pass(&mut *network, rows);
    let got: f64 = pass.output.iter().zip(&output_gradient).map(|(x, g)| f64::from(*x) * f64::from(*g)).sum();
    let expected = loss(spec, &parameters, &input, &output_gradient);
    assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{spec}: the output gives {got}, not {expected}");
    let sampled = |length: usize| (0..length).step_by((length / samples).max(1));
    for index in sampled(parameters.len()) {
        let expected = slope(&parameters, index, &|parameters| loss(spec, parameters, &input, &output_gradient));
        let got = f64::from(pass.parameter_gradient[index]);
        assert!((got - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{spec}, parameter {index}: {got} is not {expected}");
    }
    for index in sampled(pass.input_gradient.len()) {
        let expected = slope(&input, index, &|input| loss(spec, &parameters, input, &output_gradient));
        let got = f64::from(pass.input_gradient[index]);
        assert!((got - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{spec}, input {index}: {got} is not {expected}");
    }
}

/// Every difference is within `tolerance` times the largest expected value, or times 1 if that is smaller.
pub fn assert_close(got: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), expected.len());
    let scale = expected.iter().fold(1.0f32, |scale, value| scale.max(value.abs()));
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= tolerance * scale, "{what} {index}: {got} is not {expected}");
    }
}

/// Whether a pass gave the same as another: every bit on a CPU. On a GPU cuDNN adds up in an order that it does not promise.
pub fn assert_repeated(engine: Engine, got: &[f32], expected: &[f32], what: &str) {
    if device_of(engine) == Device::Cpu {
        assert_eq!(got, expected, "{what}");
    } else {
        assert_close(got, expected, tolerance(), what);
    }
}

/// Whether both engines give the same outputs and gradients.
#[cfg(feature = "torch")]
pub fn assert_engines_agree(spec: &NetworkSpec, rows: usize) {
    let (native, torch) = (pass(&mut *build(spec, Engine::Cpu), rows), pass(&mut *build(spec, Engine::Torch), rows));
    let what = |part: &str| format!("{spec}, {rows} rows, {part}");
    let tolerance = tolerance();
    assert_close(&native.output, &torch.output, tolerance, &what("output"));
    assert_close(&native.parameter_gradient, &torch.parameter_gradient, tolerance, &what("parameter gradient"));
    assert_close(&native.input_gradient, &torch.input_gradient, tolerance, &what("input gradient"));
    if !native.input_gradient.is_empty() {
        let alone = input_gradient_alone(&mut *build(spec, Engine::Torch), rows);
        assert_close(&native.input_gradient, &alone, tolerance, &what("input gradient alone"));
    }
}

/// The gradient of the input as in [`pass`], computed without that of the parameters.
#[cfg(feature = "torch")]
fn input_gradient_alone(network: &mut dyn Network, rows: usize) -> Vec<f32> {
    let spec = network.spec().clone();
    let mut gradient = vec![f32::NAN; rows * spec.inputs()];
    network.forward(Elements::new(&spec, rows, 5).as_input(), rows, &mut vec![0.0; rows * spec.outputs()]);
    network.backward(&numbers(rows * spec.outputs(), 6), None, Some(&mut gradient));
    gradient
}

/// Tolerance, relative to the largest number. A GPU rounds the factors of convolutions to ten bits (TF32), unless
/// `NVIDIA_TF32_OVERRIDE=0` forbids it.
fn tolerance() -> f32 {
    let rounds = device_of(Engine::Torch) != Device::Cpu && std::env::var("NVIDIA_TF32_OVERRIDE").as_deref() != Ok("0");
    if rounds { 3e-3 } else { 1e-5 }
}
