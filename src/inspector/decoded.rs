//! One row of the replay for people: its fields, a line for each step if the row is a fragment, and the newest frame
//! as a small picture.

use std::fmt::{self, Display, Formatter};

use super::transition::{FieldValues, Transition, Values};
use super::words::line;
use crate::experience::fragment::{ACTIONS, AGES, FIELDS, FLAGS, FRAMES, LENGTH, LOG_PROBABILITIES, REWARDS};
use crate::experience::transition::{is_terminated, is_truncated};
use crate::telemetry::Table;

/// Bytes of at least this many rows and columns are shown as a picture.
const SMALLEST_SIDE: usize = 8;
/// Values of a field that are shown. JSON has all of them.
const MOST_VALUES: usize = 64;
/// Dimensions of a shape that are shown. JSON has all of them.
const MOST_DIMENSIONS: usize = 8;
/// Characters of the widest picture.
const WIDEST: usize = 84;
/// Characters for shades, from the darkest to the brightest.
const SHADES: &[u8] = b" .:-=+*#%@";

impl Display for Transition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let role = self.owner.role.map_or("no process of the table", |role| role.name());
        line(formatter, "slot", &self.slot.to_string())?;
        line(formatter, "generation", &self.generation.to_string())?;
        line(formatter, "owner", &format!("process slot {} ({role})", self.owner.slot))?;
        line(formatter, "priority", &self.priority.map_or_else(|| "none".into(), |priority| priority.to_string()))?;
        let steps = Steps::of(&self.fields);
        let mut table = Table::new(&["field", "type", "values"], &[0, 1, 2], 0);
        for (position, field) in self.fields.iter().enumerate() {
            let values = match picture_size(field) {
                _ if steps.is_some() && [ACTIONS, REWARDS, FLAGS, LOG_PROBABILITIES, AGES].contains(&position) => continue,
                Some(_) => sizes(&field.shape) + ", the newest below",
                None => text(&field.values),
            };
            table.row(vec![field.name.clone(), field.element.into(), values]);
        }
        write!(formatter, "{table}")?;
        if let Some(steps) = &steps {
            write!(formatter, "\n{}", steps.table())?;
        }
        let newest = self.fields.iter().rev().find_map(|field| Some((field, picture_size(field)?)));
        if let Some((field, (rows, columns))) = newest
            && let Values::U8(bytes) = &field.values
        {
            let size = rows * columns;
            // A fragment that is shorter than the longest leaves the last frames unused.
            let unused = steps.as_ref().map_or(0, |steps| (steps.most - steps.length) * field.values.len() / field.shape[0].max(1));
            let end = bytes.len().saturating_sub(unused).max(size);
            write!(formatter, "\n{}", picture(&bytes[end - size..end], columns))?;
        }
        Ok(())
    }
}

/// The steps of a fragment.
struct Steps<'t> {
    actions: &'t FieldValues,
    rewards: &'t [f32],
    flags: &'t [i32],
    log_probabilities: &'t [f32],
    ages: &'t [i32],
    /// Steps that the fragment has.
    length: usize,
    /// Steps that a fragment can have.
    most: usize,
}

impl<'t> Steps<'t> {
    /// The steps in these fields; `None` if they are not the fields of a fragment.
    fn of(fields: &'t [FieldValues]) -> Option<Self> {
        let is_fragment = fields.len() == FIELDS.len() && fields.iter().zip(FIELDS).all(|(field, name)| field.name == name);
        let at = |position: usize| is_fragment.then(|| &fields[position]);
        let floats = |position| at(position)?.values.floats();
        let integers = |position| at(position)?.values.integers();
        let rewards = floats(REWARDS)?;
        let flags = integers(FLAGS)?;
        let log_probabilities = floats(LOG_PROBABILITIES)?;
        let ages = integers(AGES)?;
        let most = rewards.len();
        let are_equal = [flags.len(), log_probabilities.len(), ages.len()] == [most; 3] && at(FRAMES)?.shape.first()? > &0;
        let length = usize::try_from(*integers(LENGTH)?.first()?).ok()?;
        let actions = at(ACTIONS)?;
        let is_sound = are_equal && length <= most && most > 0 && actions.values.len().is_multiple_of(most);
        is_sound.then_some(Self { actions, rewards, flags, log_probabilities, ages, length, most })
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["step", "age", "action", "reward", "log probability", "end"], &[2, 5], 0);
        let lanes = self.actions.values.len() / self.most;
        for step in 0..self.length {
            let end = match self.flags[step] {
                flags if is_terminated(flags) => "terminated",
                flags if is_truncated(flags) => "truncated",
                _ => "",
            };
            table.row(vec![
                step.to_string(),
                self.ages[step].to_string(),
                self.actions.values.part(step * lanes, lanes.min(MOST_VALUES)),
                self.rewards[step].to_string(),
                self.log_probabilities[step].to_string(),
                end.into(),
            ]);
        }
        table
    }
}

/// Rows and columns of the pictures in a field, if it holds pictures.
fn picture_size(field: &FieldValues) -> Option<(usize, usize)> {
    let [.., rows, columns] = field.shape[..] else { return None };
    let is_picture = matches!(field.values, Values::U8(_)) && rows.min(columns) >= SMALLEST_SIDE && rows * columns <= field.values.len();
    is_picture.then_some((rows, columns))
}

/// Brighter bytes as denser characters. A character stands for two rows, since it is about twice as high as it is wide.
fn picture(bytes: &[u8], columns: usize) -> String {
    let (low, high) = bytes.iter().fold((u8::MAX, 0), |(low, high), &byte| (low.min(byte), high.max(byte)));
    let side = columns.div_ceil(WIDEST);
    let range = usize::from(high.saturating_sub(low)).max(1);
    let rows: Vec<&[u8]> = bytes.chunks_exact(columns).collect();
    let mut text = String::new();
    for block in rows.chunks(2 * side) {
        for left in (0..columns).step_by(side) {
            let right = (left + side).min(columns);
            let sum: usize = block.iter().flat_map(|row| &row[left..right]).map(|&byte| usize::from(byte - low)).sum();
            let mean = sum / (block.len() * (right - left));
            text.push(char::from(SHADES[mean * (SHADES.len() - 1) / range]));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// The values, or the first of them and how many follow.
fn text(values: &Values) -> String {
    let (shown, all) = (values.part(0, values.len().min(MOST_VALUES)), values.len());
    if all <= MOST_VALUES { shown } else { format!("{shown} and {} more", all - MOST_VALUES) }
}

fn sizes(shape: &[usize]) -> String {
    let shown = shape.iter().take(MOST_DIMENSIONS).map(usize::to_string).collect::<Vec<_>>().join(" x ");
    if shape.len() <= MOST_DIMENSIONS { shown } else { shown + " x ..." }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_values_or_dimensions_the_first_are_shown() {
        // A cell of a table with all of them would be wider than can be formatted.
        let values = text(&Values::F32(vec![0.5; 100_000]));
        assert!(values.ends_with("0.5] and 99936 more") && values.len() < 500, "{values}");
        assert_eq!(text(&Values::I32(vec![1, 2])), "[1, 2]");
        assert_eq!((sizes(&[4, 84, 84]).as_str(), sizes(&[1; 90]).len()), ("4 x 84 x 84", 8 + 7 * 3 + 6));
    }

    #[test]
    fn a_picture_is_half_as_high_as_wide_and_dark_where_bytes_are_small() {
        let mut bytes = vec![10; 8 * 8];
        bytes[2 * 8 + 3] = 210;
        bytes[3 * 8 + 3] = 210;
        bytes[7 * 8 + 7] = 210;
        assert_eq!(picture(&bytes, 8), "\n   @\n\n       =\n");
        assert_eq!(picture(&vec![7; 200 * 100], 200).lines().count(), 17, "of more columns than fit some are shown together");
    }
}
