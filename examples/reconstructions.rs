//! Trains an auto-encoder on frames of Rally-v0, played at random, and writes a video: on the left what was seen, on
//! the right what the decoder draws from 256 numbers.
//!
//! `cargo run --release --example reconstructions -- reconstructions.gif`
//!
//! The decoder's layers are those that `auto_encoder.coefficient` gives to APPO and PPO (docs/appo.md), here
//! for frames of one channel.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use std::error::Error;
use std::fs::File;

use gif::{Encoder, Frame, Repeat};
use shoal::environments::registry;
use shoal::prelude::*;
use shoal::values::ValueType;

const SIDE: usize = 42;
const PIXELS: usize = SIDE * SIDE;
const LATENT: usize = 256;
const BATCH: usize = 32;
const UPDATES: usize = 1_500;
const LEARNING_RATE: f32 = 1e-3;
/// Pixels of the video for one of a frame.
const ZOOM: usize = 4;
const SHOWN: usize = 120;

/// A network, its parameters' gradient, and what changes them.
struct Part {
    network: Box<dyn Network>,
    gradient: Vec<f32>,
    adam: Adam,
}

impl Part {
    fn new(spec: NetworkSpec, seed: u64) -> Result<Self, Box<dyn Error>> {
        let first = spec.initialise(seed);
        let mut network = build_network(spec, Engine::Cpu, Device::Cpu, 1)?;
        network.set_parameters(&first);
        Ok(Self { network, gradient: vec![0.0; first.len()], adam: Adam::new(first.len(), AdamSettings::default()) })
    }

    fn step(&mut self) {
        let Self { network, gradient, adam } = self;
        network.update_parameters(&mut |parameters| adam.step(parameters, gradient, LEARNING_RATE));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "reconstructions.gif".into());
    let frames = play(10_000)?;
    let input = InputSpec { element: ValueType::U8, shape: vec![1, SIDE, SIDE] };
    let encoder = NetworkSpec::of_input(input, &[[16, 4, 2], [32, 4, 2]], &[256], Head::Linear { outputs: LATENT });
    let mut encoder = Part::new(encoder, 1)?;
    let mut decoder = Part::new(NetworkSpec::decoder(LATENT, 1, SIDE), 2)?;

    let mut random = Random::seed_from_u64(1);
    let mut latents = vec![0.0; BATCH * LATENT];
    let mut latent_gradient = vec![0.0; BATCH * LATENT];
    let mut seen = vec![0; BATCH * PIXELS];
    let mut drawn = vec![0.0; BATCH * PIXELS];
    for update in 1..=UPDATES {
        for row in seen.chunks_exact_mut(PIXELS) {
            row.copy_from_slice(&frames[random.random_range(0..frames.len() / PIXELS) * PIXELS..][..PIXELS]);
        }
        encoder.network.forward(Values::U8(&seen), BATCH, &mut latents);
        decoder.network.forward(Values::F32(&latents), BATCH, &mut drawn);
        // `drawn` becomes the gradient of the loss: half the squared error, as a mean over the frames.
        let mut loss = 0.0;
        for (pixel, &byte) in drawn.iter_mut().zip(&seen) {
            let error = *pixel - f32::from(byte) / 255.0;
            loss += 0.5 * error * error / BATCH as f32;
            *pixel = error / BATCH as f32;
        }
        decoder.network.backward(&drawn, Some(&mut decoder.gradient), Some(&mut latent_gradient));
        encoder.network.backward(&latent_gradient, Some(&mut encoder.gradient), None);
        encoder.step();
        decoder.step();
        if update % 100 == 0 {
            println!("{update:>5} updates: half the squared error of a frame is {loss:.2}");
        }
    }

    let mut video = Encoder::new(File::create(&path)?, (2 * SIDE * ZOOM) as u16, (SIDE * ZOOM) as u16, &[])?;
    video.set_repeat(Repeat::Infinite)?;
    for frame in frames.chunks_exact(PIXELS).take(SHOWN) {
        encoder.network.infer(Values::U8(frame), 1, &mut latents[..LATENT]);
        decoder.network.infer(Values::F32(&latents[..LATENT]), 1, &mut drawn[..PIXELS]);
        let bytes: Vec<u8> = drawn[..PIXELS].iter().map(|value| (value.clamp(0.0, 1.0) * 255.0) as u8).collect();
        video.write_frame(&side_by_side(frame, &bytes))?;
    }
    println!("wrote {path}");
    Ok(())
}

/// Plays Rally-v0 at random for so many frames; returns them one after another.
fn play(frames: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut game = registry::make("Rally-v0")?;
    let ActionSpace::Discrete { n } = game.spec().action else { unreachable!("Rally has a paddle to move") };
    let mut random = Random::seed_from_u64(7);
    let mut played = vec![0; frames * PIXELS];
    let mut ended = true;
    for (index, frame) in played.chunks_exact_mut(PIXELS).enumerate() {
        if ended {
            game.reset((index == 0).then_some(7), ValuesMut::U8(frame))?;
            ended = false;
        } else {
            let step = game.step(Action::Discrete(random.random_range(0..n)), ValuesMut::U8(frame))?;
            ended = step.terminated || step.truncated;
        }
    }
    Ok(played)
}

fn side_by_side(left: &[u8], right: &[u8]) -> Frame<'static> {
    let (width, height) = (2 * SIDE * ZOOM, SIDE * ZOOM);
    let mut pixels = Vec::with_capacity(3 * width * height);
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y / ZOOM, x / ZOOM))) {
        let grey = if x < SIDE { left[y * SIDE + x] } else { right[y * SIDE + x - SIDE] };
        pixels.extend([grey; 3]);
    }
    Frame { delay: 5, ..Frame::from_rgb(width as u16, height as u16, &pixels) }
}
