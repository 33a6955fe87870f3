//! Learning curves as an SVG file.

use std::error::Error;
use std::path::Path;

use plotters::prelude::{ChartBuilder, Color, IntoDrawingArea, LineSeries, Polygon, RGBColor, SVGBackend, WHITE};

use super::curves::{MeanPoint, Point, mean};

const SIZE: (u32, u32) = (800, 500);
const BLUE: RGBColor = RGBColor(31, 119, 180);
/// Room above and below the curves, as a share of their height.
const MARGIN: f64 = 0.05;

/// Draws the evaluations of each seed as thin lines, and over them their mean with its interval.
pub(super) fn draw(path: &Path, title: &str, curves: &[Vec<Point>]) -> Result<(), Box<dyn Error>> {
    let mean = mean(curves);
    let most_steps = curves.iter().flatten().map(|point| point.env_steps).fold(1.0, f64::max);
    let (low, high) = range(curves, &mean);

    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..most_steps, low..high)?;
    chart.configure_mesh().x_desc("environment steps").y_desc("mean return of an evaluation").light_line_style(WHITE).draw()?;

    let band: Vec<(f64, f64, f64)> =
        mean.iter().filter_map(|point| point.interval.map(|(low, high)| (point.env_steps, low, high))).collect();
    // The outline goes along the upper ends and back along the lower ones.
    let outline = band.iter().map(|&(x, _, high)| (x, high)).chain(band.iter().rev().map(|&(x, low, _)| (x, low)));
    chart.draw_series(std::iter::once(Polygon::new(outline.collect::<Vec<_>>(), BLUE.mix(0.2))))?;
    for curve in curves {
        let points = curve.iter().map(|point| (point.env_steps, point.return_mean));
        chart.draw_series(LineSeries::new(points, BLUE.mix(0.4)))?;
    }
    chart.draw_series(LineSeries::new(mean.iter().map(|point| (point.env_steps, point.mean)), BLUE.stroke_width(3)))?;
    area.present()?;
    Ok(())
}

/// The range of returns that is shown: all evaluations and the mean. The interval of few seeds may be far wider, and
/// is cut.
fn range(curves: &[Vec<Point>], mean: &[MeanPoint]) -> (f64, f64) {
    let values = || curves.iter().flatten().map(|point| point.return_mean).chain(mean.iter().map(|point| point.mean));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if !(low.is_finite() && high.is_finite()) {
        return (0.0, 1.0);
    }
    let margin = (MARGIN * (high - low)).max(0.5);
    (low - margin, high + margin)
}
