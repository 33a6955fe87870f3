//! Table `[auto_encoder]`.

use super::FRAGMENT_ALGORITHMS;
use crate::config::define::table;
use crate::config::limits::{between, whole};

table! {
    /// The auto-encoder of a policy that sees images: its network also gives a latent vector, from which a decoder
    /// learns to draw the image.
    [auto_encoder] AutoEncoderConfig {
        /// Weight of the reconstruction loss: half the squared error of an image, summed over its pixels (0 to 1
        /// each). 0 leaves the auto-encoder out.
        coefficient: f64 = 0.0, between(0.0, 1_000.0), "", only FRAGMENT_ALGORITHMS;
        /// Length of the latent vector.
        latent: usize = 256, whole(1, 65_536), "values", only FRAGMENT_ALGORITHMS;
    }
}
