//! How the shape of a row changes from layer to layer, and which layers cannot be applied to it.

use super::{Layer, MAXIMUM_VALUES, NetworkError};

/// The shape of one row between two layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One row of values.
    Flat(usize),
    /// Channels, height, width.
    Image([usize; 3]),
    /// Any other shape, which has to be flattened.
    Other { dimensions: usize, values: usize },
}

impl Shape {
    pub(super) fn of_input(shape: &[usize]) -> Result<Self, NetworkError> {
        let named = || format!("the input {shape:?}");
        let values = shape.iter().try_fold(1usize, |values, &length| values.checked_mul(length));
        match (shape, values) {
            (_, Some(0)) => Err(NetworkError::EmptyLayer { layer: named() }),
            (&[values], Some(_)) => Self::Flat(values).limited(named),
            (&[channels, height, width], Some(_)) => Self::Image([channels, height, width]).limited(named),
            (_, Some(values)) => Self::Other { dimensions: shape.len(), values }.limited(named),
            (_, None) => Err(NetworkError::TooManyValues { layer: named(), limit: MAXIMUM_VALUES }),
        }
    }

    /// Number of values.
    pub(super) fn values(self) -> usize {
        match self {
            Self::Flat(values) | Self::Other { values, .. } => values,
            Self::Image([channels, height, width]) => channels * height * width,
        }
    }

    /// The shape after `layer`, which is the one at `index`.
    pub(super) fn after(self, index: usize, layer: &Layer) -> Result<Self, NetworkError> {
        let named = || name(index, layer);
        match *layer {
            Layer::Relu | Layer::Tanh => Ok(self),
            Layer::Flatten => Ok(Self::Flat(self.values())),
            Layer::Unflatten { shape } => {
                let image = Self::of_input(&shape).map_err(|_| NetworkError::EmptyLayer { layer: named() })?;
                let Self::Flat(_) = self else {
                    return Err(NetworkError::NotFlat { layer: named(), found: self.to_string() });
                };
                if image.values() == self.values() {
                    Ok(image)
                } else {
                    Err(NetworkError::OtherLength { layer: named(), found: self.values(), expected: image.values() })
                }
            }
            Layer::Dense { units } => {
                let Self::Flat(_) = self else {
                    return Err(NetworkError::NotFlat { layer: named(), found: self.to_string() });
                };
                if units == 0 { Err(NetworkError::EmptyLayer { layer: named() }) } else { Self::Flat(units).limited(named) }
            }
            Layer::Convolution { channels, kernel, stride } => {
                let [_, height, width] = self.windowed(index, layer, [channels, kernel, stride])?;
                if kernel > height.min(width) {
                    return Err(NetworkError::KernelTooLarge { layer: named(), kernel, height, width });
                }
                Self::Image([channels, (height - kernel) / stride + 1, (width - kernel) / stride + 1]).limited(named)
            }
            Layer::TransposedConvolution { channels, kernel, stride } => {
                let [_, height, width] = self.windowed(index, layer, [channels, kernel, stride])?;
                let side = |side: usize| (side - 1).checked_mul(stride)?.checked_add(kernel);
                match (side(height), side(width)) {
                    (Some(height), Some(width)) => Self::Image([channels, height, width]).limited(named),
                    _ => Err(NetworkError::TooManyValues { layer: named(), limit: MAXIMUM_VALUES }),
                }
            }
        }
    }

    /// The image that a kernel moves over.
    fn windowed(self, index: usize, layer: &Layer, settings: [usize; 3]) -> Result<[usize; 3], NetworkError> {
        if settings.contains(&0) {
            return Err(NetworkError::EmptyLayer { layer: name(index, layer) });
        }
        let remedy = match self {
            Self::Image(shape) => return Ok(shape),
            // It may also be several rows of numbers, which are no image however many are stacked.
            Self::Other { dimensions: 2, .. } => {
                "if that is an image of rows and columns, set environment.frame_stack to 2 or more, or let the environment show a third \
                 dimension, of length 1"
            }
            _ => "choose an environment that shows frames",
        };
        Err(NetworkError::NotAnImage { layer: name(index, layer), found: self.to_string(), remedy })
    }

    fn limited(self, named: impl Fn() -> String) -> Result<Self, NetworkError> {
        let values = match self {
            Self::Flat(values) | Self::Other { values, .. } => Some(values),
            Self::Image([channels, height, width]) => channels.checked_mul(height).and_then(|pixels| pixels.checked_mul(width)),
        };
        match values {
            Some(values) if values <= MAXIMUM_VALUES => Ok(self),
            _ => Err(NetworkError::TooManyValues { layer: named(), limit: MAXIMUM_VALUES }),
        }
    }
}

/// How messages call a layer.
pub(super) fn name(index: usize, layer: &Layer) -> String {
    format!("layer {index} ({layer})")
}

impl std::fmt::Display for Shape {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flat(values) => write!(out, "a row of {values} values"),
            Self::Image([channels, height, width]) => write!(out, "{channels} channels of {height}x{width} pixels"),
            Self::Other { dimensions, values } => write!(out, "{values} values in {dimensions} dimensions"),
        }
    }
}
