//! Scaling of a network's input: the fixed first layer of a policy that was trained on normalised observations.

/// `(input - mean) / deviation` for every column, clipped to ±10.
#[derive(Debug, Clone, PartialEq)]
pub struct InputScaling {
    /// Mean of each column.
    pub means: Vec<f32>,
    /// One divided by the standard deviation of each column.
    pub inverse_deviations: Vec<f32>,
}

impl InputScaling {
    /// Scaled values are clipped to this absolute value, so that a rare observation cannot drown the others.
    pub const LIMIT: f32 = 10.0;

    /// Scaling that changes nothing but values beyond the limit.
    pub fn identity(columns: usize) -> Self {
        Self { means: vec![0.0; columns], inverse_deviations: vec![1.0; columns] }
    }

    /// The scaling that a flat row holds: all means, then all inverse deviations.
    pub fn from_values(values: &[f32]) -> Self {
        let (means, inverse_deviations) = values.split_at(values.len() / 2);
        Self { means: means.to_vec(), inverse_deviations: inverse_deviations.to_vec() }
    }

    /// Replace the scaling by that of a flat row of the same length.
    pub fn set_values(&mut self, values: &[f32]) {
        let (means, inverse_deviations) = values.split_at(self.means.len());
        self.means.copy_from_slice(means);
        self.inverse_deviations.copy_from_slice(inverse_deviations);
    }

    /// Length of the flat row.
    pub fn values(&self) -> usize {
        2 * self.means.len()
    }

    /// Append the flat row to `values`.
    pub fn append_to(&self, values: &mut Vec<f32>) {
        values.extend_from_slice(&self.means);
        values.extend_from_slice(&self.inverse_deviations);
    }

    /// Scale whole rows in place.
    pub fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.means.len()) {
            for ((value, mean), inverse_deviation) in row.iter_mut().zip(&self.means).zip(&self.inverse_deviations) {
                *value = ((*value - mean) * inverse_deviation).clamp(-Self::LIMIT, Self::LIMIT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_centred_scaled_and_clipped() {
        let scaling = InputScaling { means: vec![1.0, 2.0], inverse_deviations: vec![2.0, 0.5] };
        let mut rows = [1.5, 0.0, 100.0, 2.0];
        scaling.apply(&mut rows);
        assert_eq!(rows, [1.0, -1.0, 10.0, 0.0]);
        let mut values = Vec::new();
        scaling.append_to(&mut values);
        let mut other = InputScaling::identity(2);
        other.set_values(&values);
        assert_eq!([&InputScaling::from_values(&values), &other], [&scaling; 2]);
        assert_eq!(values.len(), scaling.values());
    }
}
