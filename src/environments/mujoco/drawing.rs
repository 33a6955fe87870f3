//! Pictures of the simulated bodies: the capsules and balls of which the simulator makes them.

use super::simulation::Simulation;
use crate::environments::Picture;
use crate::environments::drawing::canvas::{BLUE, Canvas, Colour, GREY, INK, ORANGE, PALE, PAPER, Point};

/// Pixels of each side of the picture.
const SIDE: u32 = 480;
/// How much of the world each side shows.
const SEEN_M: f64 = 4.0;
/// How far the floor reaches in each direction. It has a line every metre, which shows how fast a body walks.
const FLOOR_M: i32 = 3;
/// How much lower than the middle of the picture the floor is, seen from the side.
const FLOOR_BELOW_MIDDLE_M: f64 = 0.9;
const OUTLINE_M: f64 = 0.02;

/// A capsule, or a ball where both ends are one.
pub(super) struct Limb {
    pub(super) ends: [[f64; 3]; 2],
    pub(super) radius: f64,
    /// The number of its body: 0 is the world, 1 the first that can move.
    pub(super) body: usize,
}

impl Limb {
    fn colour(&self) -> Colour {
        match self.body {
            0 => GREY,
            1 => BLUE,
            _ => ORANGE,
        }
    }
}

/// The bodies as seen by a camera that stands beside them, `elevation_degrees` above the horizon, and goes along with them.
pub(super) fn draw(simulation: &Simulation, elevation_degrees: f64) -> Picture {
    let (sine, cosine) = elevation_degrees.to_radians().sin_cos();
    let pixels_per_m = f64::from(SIDE) / SEEN_M;
    let middle = f64::from(SIDE) / 2.0;
    let floor = middle + FLOOR_BELOW_MIDDLE_M * cosine * pixels_per_m;
    let mut canvas = Canvas::new([SIDE; 2], PAPER, [middle as f32, floor as f32], pixels_per_m as f32);
    let mut limbs = simulation.limbs();
    let [x_centre, y_centre] = [0, 1].map(|axis| middle_of_bodies(&limbs, axis));
    let seen = |[x, y, z]: [f64; 3]| -> Point { [x - x_centre, z * cosine + (y - y_centre) * sine] };

    let reach = f64::from(FLOOR_M);
    let corner = |right: f64, back: f64| seen([x_centre + right * reach, y_centre + back * reach, 0.0]);
    canvas.polygon(&[corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)], PALE);
    for line in -FLOOR_M..=FLOOR_M {
        let [x, y] = [x_centre, y_centre].map(|centre| centre.floor() + f64::from(line));
        canvas.line(&[seen([x, y_centre - reach, 0.0]), seen([x, y_centre + reach, 0.0])], 0.01, GREY);
        canvas.line(&[seen([x_centre - reach, y, 0.0]), seen([x_centre + reach, y, 0.0])], 0.01, GREY);
    }

    // What is farther away is painted first.
    let nearness = |limb: &Limb| -limb.ends[0][1] - limb.ends[1][1];
    limbs.sort_by(|left, right| nearness(left).total_cmp(&nearness(right)));
    for limb in &limbs {
        let ends = limb.ends.map(seen);
        canvas.line(&ends, 2.0 * (limb.radius + OUTLINE_M), INK);
        canvas.line(&ends, 2.0 * limb.radius, limb.colour());
    }
    canvas.into_picture()
}

/// Mean coordinate of the ends of all limbs that can move.
fn middle_of_bodies(limbs: &[Limb], axis: usize) -> f64 {
    let ends = limbs.iter().filter(|limb| limb.body != 0).flat_map(|limb| limb.ends);
    let (sum, count) = ends.fold((0.0, 0), |(sum, count), end| (sum + end[axis], count + 1));
    sum / f64::from(count.max(1))
}
