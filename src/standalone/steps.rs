//! Turns steps into n-step transitions, one stream of steps per environment, whatever their fields are.

use std::collections::HashMap;

use super::options::StepOptions;
use crate::replay::{Element, Field, NStep, Return, Schema};

/// Steps that wait for more to become transitions, per stream.
pub(super) struct Steps {
    options: StepOptions,
    streams: HashMap<i64, NStep<Row>>,
    /// The newest step, reused for the next.
    last: Row,
}

/// One value per field.
type Row = Vec<Vec<u8>>;

/// Transitions that became complete, as columns.
pub(super) struct Complete {
    pub(super) columns: Vec<Vec<u8>>,
    pub(super) rows: usize,
}

impl Steps {
    pub(super) fn new(options: StepOptions) -> Self {
        Self { options, streams: HashMap::new(), last: Row::new() }
    }

    /// Take in one step per row of `columns`, of the environments `streams`, and return the transitions that it
    /// completes.
    pub(super) fn take(&mut self, schema: &Schema, columns: &[&[u8]], streams: &[i64]) -> Complete {
        let Self { options, streams: memories, last } = self;
        let fields = schema.fields();
        let mut complete = Complete { columns: vec![Vec::new(); fields.len()], rows: 0 };
        let position = |name: &str| schema.position(name).expect("checked with the options");
        let reward_at = position(&options.reward);
        // Fields that a transition takes from its last step.
        let behind = options.next_fields.iter().map(String::as_str).chain([&*options.terminated]).chain(options.truncated.as_deref());
        let behind: Vec<usize> = behind.map(position).collect();
        last.resize(fields.len(), Vec::new());
        for (row, &stream) in streams.iter().enumerate() {
            // All that follows uses a copy: the caller's bytes may change meanwhile.
            for ((value, column), field) in last.iter_mut().zip(columns).zip(fields) {
                value.clear();
                value.extend_from_slice(&column[row * field.size_bytes()..][..field.size_bytes()]);
            }
            let last = &*last;
            let is_set = |name: &str| is_true(&fields[position(name)], &last[position(name)]);
            let terminated = is_set(&options.terminated);
            let ended = terminated || options.truncated.as_deref().is_some_and(is_set);
            let reward = number(&fields[reward_at], &last[reward_at]);
            let memory = memories.entry(stream).or_insert_with(|| NStep::new(options.n, options.gamma));
            let ready = |transition: &mut Row, Return { reward, discount }: Return| {
                for &field in &behind {
                    transition[field].copy_from_slice(&last[field]);
                }
                match fields[reward_at].element {
                    Element::F64 => transition[reward_at].copy_from_slice(&reward.to_le_bytes()),
                    _ => transition[reward_at].copy_from_slice(&(reward as f32).to_le_bytes()),
                }
                if let Some(name) = &options.discount {
                    let discount = if terminated { 0.0 } else { discount };
                    transition[position(name)].copy_from_slice(&discount.to_le_bytes());
                }
                complete.columns.iter_mut().zip(&*transition).for_each(|(column, value)| column.extend_from_slice(value));
                complete.rows += 1;
            };
            memory.push(reward, ended, |transition| transition.clone_from(last), ready);
        }
        complete
    }

    /// Drop the steps that wait for more, of these streams or of all.
    pub(super) fn forget(&mut self, streams: Option<&[i64]>) {
        match streams {
            Some(streams) => self.streams.retain(|stream, _| !streams.contains(stream)),
            None => self.streams.clear(),
        }
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
