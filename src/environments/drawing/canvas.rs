//! Shapes in the units of a task, painted on a picture of fixed size.

use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, Transform};

use super::Picture;

/// A place: to the right and upwards, in the units of the canvas.
pub(in crate::environments) type Point = [f64; 2];
/// Red, green and blue.
pub(in crate::environments) type Colour = [u8; 3];

pub(in crate::environments) const PAPER: Colour = [248, 249, 251];
pub(in crate::environments) const PALE: Colour = [214, 220, 228];
pub(in crate::environments) const GREY: Colour = [141, 153, 168];
pub(in crate::environments) const INK: Colour = [38, 50, 66];
pub(in crate::environments) const RED: Colour = [217, 83, 60];
pub(in crate::environments) const ORANGE: Colour = [240, 162, 58];
pub(in crate::environments) const GREEN: Colour = [134, 180, 120];
pub(in crate::environments) const BLUE: Colour = [58, 124, 196];

/// A picture in the making. What is painted outside of it is cut off.
pub(in crate::environments) struct Canvas {
    pixels: Pixmap,
    to_pixels: Transform,
}

impl Canvas {
    /// An empty picture of `size` (width and height in pixels), on which a unit is `pixels_per_unit` long and the place [0, 0] is at
    /// `origin`, in pixels to the right and downwards from the upper left corner.
    ///
    /// # Panics
    /// If the picture has no pixels.
    pub(in crate::environments) fn new(size: [u32; 2], background: Colour, origin: [f32; 2], pixels_per_unit: f32) -> Self {
        let mut pixels = Pixmap::new(size[0], size[1]).expect("a picture has pixels");
        pixels.fill(solid(background));
        let to_pixels = Transform::from_row(pixels_per_unit, 0.0, 0.0, -pixels_per_unit, origin[0], origin[1]);
        Self { pixels, to_pixels }
    }

    /// Fill the area between corners.
    pub(in crate::environments) fn polygon(&mut self, corners: &[Point], colour: Colour) {
        let mut outline = path(corners);
        outline.close();
        self.fill(outline.finish(), colour);
    }

    /// Fill a rectangle with sides along the axes.
    pub(in crate::environments) fn rectangle(&mut self, [left, bottom]: Point, [width, height]: Point, colour: Colour) {
        let (right, top) = (left + width, bottom + height);
        self.polygon(&[[left, bottom], [right, bottom], [right, top], [left, top]], colour);
    }

    /// Fill a circle.
    pub(in crate::environments) fn disc(&mut self, [x, y]: Point, radius: f64, colour: Colour) {
        self.fill(PathBuilder::from_circle(x as f32, y as f32, radius as f32), colour);
    }

    /// A line with round ends through all places, `width` units wide.
    pub(in crate::environments) fn line(&mut self, through: &[Point], width: f64, colour: Colour) {
        let Some(path) = path(through).finish() else { return };
        let stroke = Stroke { width: width as f32, line_cap: LineCap::Round, line_join: LineJoin::Round, ..Stroke::default() };
        self.pixels.stroke_path(&path, &paint(colour), &stroke, self.to_pixels, None);
    }

    pub(in crate::environments) fn into_picture(self) -> Picture {
        let (width, height) = (self.pixels.width() as usize, self.pixels.height() as usize);
        // Everything is opaque, so the colours have not been scaled by their opacity.
        let bytes = self.pixels.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
        Picture { width, height, bytes }
    }

    /// Nothing is painted for a shape that is nowhere, for instance because a simulation has diverged.
    fn fill(&mut self, path: Option<Path>, colour: Colour) {
        if let Some(path) = path {
            self.pixels.fill_path(&path, &paint(colour), FillRule::Winding, self.to_pixels, None);
        }
    }
}

/// An open path from point to point.
fn path(points: &[Point]) -> PathBuilder {
    let mut builder = PathBuilder::with_capacity(points.len() + 1, points.len());
    for (index, point) in points.iter().enumerate() {
        let [x, y] = point.map(|coordinate| coordinate as f32);
        if index == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
    }
    builder
}

fn solid([red, green, blue]: Colour) -> Color {
    Color::from_rgba8(red, green, blue, u8::MAX)
}

fn paint(colour: Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(solid(colour));
    paint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_where_they_were_put_and_nowhere_else() {
        let mut canvas = Canvas::new([40, 20], PAPER, [10.0, 15.0], 5.0);
        canvas.rectangle([0.0, 0.0], [2.0, 1.0], RED);
        let picture = canvas.into_picture();
        for row in 0..20 {
            for column in 0..40 {
                let inside = (10..20).contains(&column) && (10..15).contains(&row);
                assert_eq!(picture.pixel(column, row), if inside { RED } else { PAPER }, "({column}, {row})");
            }
        }
    }

    #[test]
    fn what_is_outside_or_nowhere_is_not_painted() {
        let mut canvas = Canvas::new([16, 16], PAPER, [8.0, 8.0], 4.0);
        canvas.disc([100.0, 0.0], 1.0, INK);
        canvas.line(&[[1e30, -1e30], [1e30, 1e30]], 1.0, INK);
        for nowhere in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            canvas.disc([nowhere, 0.0], 1.0, INK);
            canvas.disc([0.0, 0.0], nowhere, INK);
            canvas.line(&[[0.0, 0.0], [nowhere, 0.0]], 1.0, INK);
            canvas.polygon(&[[0.0, 0.0], [1.0, nowhere], [1.0, 0.0]], INK);
        }
        canvas.polygon(&[], INK);
        let picture = canvas.into_picture();
        assert!(picture.bytes.chunks_exact(3).all(|pixel| pixel == PAPER));
    }
}
