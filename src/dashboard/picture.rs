//! A picture of the visualizer for a browser.

use axum::body::Bytes;
use png::{BitDepth, ColorType, Compression, Encoder};

use crate::segment::pictures::Caption;

/// The picture as a PNG; `None` if `bytes` do not have the size that `caption` tells.
pub(super) fn encoded(caption: &Caption, bytes: &[u8]) -> Option<Bytes> {
    let [width, height] = [caption.width, caption.height].map(|side| u32::try_from(side).ok());
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width?, height?);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    // Pictures go to a browser on the same machine, several times a second: time matters, and size does not.
    encoder.set_compression(Compression::Fastest);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(bytes).ok()?;
    writer.finish().ok()?;
    Some(file.into())
}
