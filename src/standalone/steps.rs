//! Turns steps into n-step transitions, one stream of steps per environment, whatever their fields are.
//!
//! As `replay::n_step` does for the actors of a run (Sutton 1988, in the form of Rainbow, Hessel et al. 2018), on rows of bytes.

use std::collections::{HashMap, VecDeque};

use super::options::StepOptions;
use crate::replay::{Element, Field, Schema};

/// Steps on their way, per stream.
pub(super) struct Steps {
    options: StepOptions,
    streams: HashMap<i64, VecDeque<Step>>,
}

/// A step whose n-step transition is not complete: one value per field, and what is behind it so far.
struct Step {
    values: Vec<Vec<u8>>,
    reward: f64,
    discount: f32,
}

/// Transitions that became complete, as columns.
pub(super) struct Complete {
    pub(super) columns: Vec<Vec<u8>>,
    pub(super) rows: usize,
}

impl Steps {
    pub(super) fn new(options: StepOptions) -> Self {
        Self { options, streams: HashMap::new() }
    }

    /// Take one step per row of `columns`, of the environments `streams`.
    pub(super) fn take(&mut self, schema: &Schema, columns: &[&[u8]], streams: &[i64]) -> Complete {
        let fields = schema.fields();
        let mut complete = Complete { columns: vec![Vec::new(); fields.len()], rows: 0 };
        let position = |name: &str| schema.position(name).expect("checked with the options");
        let reward_at = position(&self.options.reward);
        for (row, &stream) in streams.iter().enumerate() {
            // All that follows is worked out from a copy: what was handed over may change meanwhile.
            let value = |(column, field): (&&[u8], &Field)| column[row * field.size_bytes()..][..field.size_bytes()].to_vec();
            let values: Vec<Vec<u8>> = columns.iter().zip(fields).map(value).collect();
            let is_set = |name: &str| is_true(&fields[position(name)], &values[position(name)]);
            let reward = number(&fields[reward_at], &values[reward_at]);
            let terminated = is_set(&self.options.terminated);
            let ended = terminated || self.options.truncated.as_deref().is_some_and(is_set);
            let pending = self.streams.entry(stream).or_default();
            let mut last = Step { values, reward: 0.0, discount: 1.0 };
            for step in pending.iter_mut().chain([&mut last]) {
                step.reward += f64::from(step.discount) * reward;
                step.discount *= self.options.gamma;
            }
            let mut emit = |mut step: Step| {
                match fields[reward_at].element {
                    Element::F64 => step.values[reward_at].copy_from_slice(&step.reward.to_le_bytes()),
                    _ => step.values[reward_at].copy_from_slice(&(step.reward as f32).to_le_bytes()),
                }
                if let Some(name) = &self.options.discount {
                    let discount = if terminated { 0.0 } else { step.discount };
                    step.values[position(name)].copy_from_slice(&discount.to_le_bytes());
                }
                complete.columns.iter_mut().zip(&step.values).for_each(|(column, value)| column.extend_from_slice(value));
                complete.rows += 1;
            };
            let steps = pending.len() + 1;
            let due = if ended { steps } else { usize::from(steps >= self.options.n) };
            for mut step in pending.drain(..due.min(steps - 1)) {
                // What lies behind the transition is what lies behind its last step.
                let behind = self.options.next_fields.iter().map(String::as_str).chain([&*self.options.terminated]);
                for name in behind.chain(self.options.truncated.as_deref()) {
                    step.values[position(name)].copy_from_slice(&last.values[position(name)]);
                }
                emit(step);
            }
            if due == steps {
                emit(last);
            } else {
                pending.push_back(last);
            }
        }
        complete
    }

    /// Forget the steps on their way.
    pub(super) fn clear(&mut self) {
        self.streams.clear();
    }
}

fn number(field: &Field, value: &[u8]) -> f64 {
    match field.element {
        Element::F64 => value.try_into().map_or(0.0, f64::from_le_bytes),
        _ => value.try_into().map_or(0.0, |value| f32::from_le_bytes(value).into()),
    }
}

fn is_true(field: &Field, value: &[u8]) -> bool {
    match field.element {
        Element::F32 => number(field, value) != 0.0,
        _ => value.iter().any(|&byte| byte != 0),
    }
}
