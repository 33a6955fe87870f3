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
        let drawn = self.fields.iter().enumerate().rev().find_map(|(position, field)| Some((position, Frame::of(field)?)));
        let mut table = Table::new(&["field", "type", "values"], &[0, 1, 2], 0);
        for (position, field) in self.fields.iter().enumerate() {
            let values = match drawn {
                _ if steps.is_some() && [ACTIONS, REWARDS, FLAGS, LOG_PROBABILITIES, AGES].contains(&position) => continue,
                Some((at, frame)) if at == position => sizes(&field.shape) + frame.place(),
                _ if Frame::of(field).is_some() => sizes(&field.shape),
                _ => text(&field.values),
            };
            table.row(vec![field.name.clone(), field.element.into(), values]);
        }
        write!(formatter, "{table}")?;
        if let Some(steps) = &steps {
            write!(formatter, "\n{}", steps.table())?;
        }
        if let Some((position, frame)) = drawn {
            let bytes = frame.bytes;
            // A fragment that is shorter than the longest leaves the last frames unused.
            let longest = self.fields[position].shape[0].max(1);
            let unused = steps.as_ref().map_or(0, |steps| (steps.most - steps.length) * bytes.len() / longest);
            let end = bytes.len().saturating_sub(unused).max(frame.len());
            write!(formatter, "\n{}", picture(&frame.brightness(end), frame.columns))?;
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

/// One of the frames in a field of pictures.
#[derive(Clone, Copy)]
struct Frame<'t> {
    /// All frames of the field.
    bytes: &'t [u8],
    /// Red, green and blue, or one plane alone.
    channels: usize,
    rows: usize,
    columns: usize,
}

impl<'t> Frame<'t> {
    /// A frame of the field, if it holds pictures. Three channels are colours, unless the run says that they are frames;
    /// of fragments it does not say so.
    fn of(field: &'t FieldValues) -> Option<Self> {
        let [.., rows, columns] = field.shape[..] else { return None };
        let Values::U8(bytes) = &field.values else { return None };
        let is_in_colour = match field.shape[..] {
            [channels, _, _] => channels.is_multiple_of(3) && channels / 3 == field.stack.max(1),
            [.., channels, _, _] => channels == 3,
            _ => false,
        };
        let frame = Self { bytes, channels: if is_in_colour { 3 } else { 1 }, rows, columns };
        (rows.min(columns) >= SMALLEST_SIDE && frame.len() <= bytes.len()).then_some(frame)
    }

    fn len(&self) -> usize {
        self.channels * self.rows * self.columns
    }

    /// Where the picture is that is shown of the field.
    fn place(&self) -> &'static str {
        if self.len() == self.bytes.len() { ", below" } else { ", the newest below" }
    }

    /// The mean of the channels of the frame that ends before byte `end`.
    fn brightness(&self, end: usize) -> Vec<u8> {
        let planes = &self.bytes[end - self.len()..end];
        let pixels = self.rows * self.columns;
        let sum = |pixel: usize| planes[pixel..].iter().step_by(pixels).map(|&byte| usize::from(byte)).sum::<usize>();
        (0..pixels).map(|pixel| (sum(pixel) / self.channels) as u8).collect()
    }
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
    use super::super::transition::Owner;
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
    fn colours_are_shown_by_their_brightness_and_of_stacked_frames_the_newest() {
        let mut bytes = vec![0; 3 * 8 * 8];
        // Two pixels of the middle plane.
        (bytes[64 + 2 * 8 + 3], bytes[64 + 3 * 8 + 3]) = (240, 240);
        let shown = |shape: &[usize], stack| {
            let values = Values::U8(bytes.clone());
            let field = FieldValues { name: "observation".into(), element: "u8", shape: shape.to_vec(), stack, values };
            let owner = Owner { slot: 0, role: None };
            Transition { slot: 0, generation: 1, owner, priority: None, fields: vec![field.clone(), field] }.to_string()
        };
        let is_one_frame = |shown: &str| shown.contains("3 x 8 x 8\n") && shown.contains("3 x 8 x 8, below") && shown.contains("\n   @\n");
        for colours in [shown(&[3, 8, 8], 0), shown(&[3, 8, 8], 1)] {
            assert!(is_one_frame(&colours), "{colours}");
        }
        for grey in [shown(&[3, 8, 8], 3), shown(&[3, 1, 8, 8], 0)] {
            assert!(grey.contains(", the newest below") && !grey.contains('@'), "the last plane is empty: {grey}");
        }
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
