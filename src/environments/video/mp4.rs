//! An MP4 in H.264: smaller than a GIF, and in all colours.

use std::io::{self, BufWriter, Seek, Write};

use mp4::{AvcConfig, MediaConfig, Mp4Config, Mp4Sample, Mp4Writer, TrackConfig, TrackType};
use openh264::OpenH264API;
use openh264::encoder::{EncodedBitStream, Encoder, EncoderConfig, RateControlMode};
use openh264::formats::{RgbSliceU8, YUVBuffer};

use super::format::{Animation, check_size};
use crate::environments::Picture;

/// Times of pictures are hundredths of a second.
const TICKS_PER_S: u32 = 100;
/// The only track: tracks are counted from 1.
const TRACK: u32 = 1;
/// Types of units of the network abstraction layer (H.264, table 7-1).
const SEQUENCE_PARAMETERS: u8 = 7;
const PICTURE_PARAMETERS: u8 = 8;

/// An MP4 that is being written.
pub(super) struct Mp4<W: Write + Seek> {
    encoder: Encoder,
    writer: Mp4Writer<BufWriter<W>>,
    /// Width and height of its pictures.
    size: [usize; 2],
    hundredths_so_far: u64,
}

impl<W: Write + Seek> Mp4<W> {
    /// Begin with `picture`, which is seen for so many hundredths of a second.
    pub(super) fn begin(writer: W, picture: Picture, hundredths: u16) -> io::Result<Self> {
        // Pictures differ by little, so that a constant quality makes small files; every picture is kept, because each is a step.
        let config = EncoderConfig::new().rate_control_mode(RateControlMode::Off).skip_frames(false).num_threads(1);
        let mut encoder = Encoder::with_api_config(OpenH264API::from_source(), config).map_err(io::Error::other)?;
        let first = Coded::from(&encoder.encode(&as_yuv(&picture)).map_err(io::Error::other)?);
        let [isom, iso2, avc1, mp41] = ["isom", "iso2", "avc1", "mp41"].map(|brand| brand.parse().expect("a brand has four letters"));
        let config =
            Mp4Config { major_brand: isom, minor_version: 512, compatible_brands: vec![isom, iso2, avc1, mp41], timescale: TICKS_PER_S };
        let mut writer = Mp4Writer::write_start(BufWriter::new(writer), &config).map_err(as_io)?;
        let [width, height] = [even(picture.width), even(picture.height)].map(u16::try_from).map(|side| side.expect("the encoder took it"));
        let seen = AvcConfig { width, height, seq_param_set: first.sequence, pic_param_set: first.picture };
        let track = TrackConfig {
            track_type: TrackType::Video,
            timescale: TICKS_PER_S,
            language: "und".into(),
            media_conf: MediaConfig::AvcConfig(seen),
        };
        writer.add_track(&track).map_err(as_io)?;
        let mut video = Self { encoder, writer, size: [picture.width, picture.height], hundredths_so_far: 0 };
        video.write(first.units, true, hundredths)?;
        Ok(video)
    }

    fn write(&mut self, units: Vec<u8>, is_sync: bool, hundredths: u16) -> io::Result<()> {
        let sample = Mp4Sample {
            start_time: self.hundredths_so_far,
            duration: hundredths.into(),
            rendering_offset: 0,
            is_sync,
            bytes: units.into(),
        };
        self.hundredths_so_far += u64::from(hundredths);
        self.writer.write_sample(TRACK, &sample).map_err(as_io)
    }
}

impl<W: Write + Seek> Animation for Mp4<W> {
    fn add(&mut self, picture: Picture, hundredths: u16) -> io::Result<()> {
        check_size(self.size, &picture)?;
        let coded = Coded::from(&self.encoder.encode(&as_yuv(&picture)).map_err(io::Error::other)?);
        self.write(coded.units, !coded.sequence.is_empty(), hundredths)
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.writer.write_end().map_err(as_io)?;
        self.writer.into_writer().flush()
    }
}

/// A picture as the encoder left it.
#[derive(Default)]
struct Coded {
    /// Parameters of the sequence, which a decoder needs before the picture; empty for a picture that builds on those before.
    sequence: Vec<u8>,
    /// Parameters of the picture, as those of the sequence.
    picture: Vec<u8>,
    /// Units of the picture, each behind its length in four bytes, as an MP4 has them.
    units: Vec<u8>,
}

impl Coded {
    fn take(&mut self, unit: &[u8]) {
        // The unit follows a mark of zeros and a one.
        let unit = unit.iter().position(|byte| *byte != 0).map_or(unit, |one| &unit[one + 1..]);
        match unit.first().map(|header| header & 0b1_1111) {
            Some(SEQUENCE_PARAMETERS) => self.sequence = unit.to_vec(),
            Some(PICTURE_PARAMETERS) => self.picture = unit.to_vec(),
            _ => {
                let length = u32::try_from(unit.len()).expect("a picture is smaller");
                self.units.extend(length.to_be_bytes().iter().chain(unit));
            }
        }
    }
}

impl From<&EncodedBitStream<'_>> for Coded {
    fn from(stream: &EncodedBitStream<'_>) -> Self {
        let mut coded = Self::default();
        for layer in (0..stream.num_layers()).filter_map(|layer| stream.layer(layer)) {
            (0..layer.nal_count()).filter_map(|unit| layer.nal_unit(unit)).for_each(|unit| coded.take(unit));
        }
        coded
    }
}

/// Colours in the encoder's form, which has a colour for each two by two pixels: an odd side gets its last line twice.
fn as_yuv(picture: &Picture) -> YUVBuffer {
    let size @ (width, height) = (even(picture.width), even(picture.height));
    let row = |row: usize| (0..width).flat_map(move |column| picture.pixel(column.min(picture.width - 1), row.min(picture.height - 1)));
    let bytes: Vec<u8> = (0..height).flat_map(row).collect();
    YUVBuffer::from_rgb8_source(RgbSliceU8::new(&bytes, size))
}

fn even(side: usize) -> usize {
    side.next_multiple_of(2)
}

fn as_io(error: mp4::Error) -> io::Error {
    match error {
        mp4::Error::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use mp4::Mp4Reader;
    use openh264::decoder::Decoder;
    use openh264::formats::YUVSource;

    use super::*;

    /// What a viewer sees of each picture, and for how many hundredths of a second.
    fn played(file: Vec<u8>) -> Vec<(Vec<u8>, u32)> {
        let length = file.len() as u64;
        let mut reader = Mp4Reader::read_header(Cursor::new(file), length).expect("it is an MP4");
        let track = &reader.tracks()[&TRACK];
        let parameters =
            [track.sequence_parameter_set(), track.picture_parameter_set()].map(|set| set.expect("a decoder needs it").to_vec());
        let pictures = track.sample_count();
        let mut decoder = Decoder::new().expect("a decoder");
        let mut stream: Vec<u8> = parameters.iter().flat_map(|set| [&[0, 0, 0, 1], &set[..]].concat()).collect();
        (1..=pictures)
            .map(|picture| {
                let sample = reader.read_sample(TRACK, picture).expect("a sample").expect("it is there");
                let mut units = &sample.bytes[..];
                while let Some((length, rest)) = units.split_first_chunk() {
                    let (unit, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
                    stream.extend([&[0, 0, 0, 1], unit].concat());
                    units = rest;
                }
                let seen = decoder.decode(&std::mem::take(&mut stream)).expect("it can be decoded").expect("a picture for each sample");
                let mut bytes = vec![0; seen.dimensions().0 * seen.dimensions().1 * 3];
                seen.write_rgb8(&mut bytes);
                (bytes, sample.duration)
            })
            .collect()
    }

    /// A dark square on a light ground, `step` pixels from the left.
    fn square(step: usize, [width, height]: [usize; 2]) -> Picture {
        let is_in = |pixel: usize| (step..step + 16).contains(&(pixel % width)) && (8..24).contains(&(pixel / width));
        let bytes = (0..width * height).flat_map(|pixel| if is_in(pixel) { [40, 60, 120] } else { [230, 225, 220] }).collect();
        Picture { width, height, bytes }
    }

    #[test]
    fn what_is_played_is_nearly_what_was_added() {
        let (size, steps) = ([64, 48], 40);
        let mut file = Cursor::new(Vec::new());
        let mut video = Box::new(Mp4::begin(&mut file, square(0, size), 7).unwrap());
        (1..steps).for_each(|step| video.add(square(step, size), 3).unwrap());
        video.end().unwrap();
        let played = played(file.into_inner());
        assert_eq!(played.len(), steps);
        for (step, (seen, hundredths)) in played.iter().enumerate() {
            assert_eq!(*hundredths, if step == 0 { 7 } else { 3 });
            let shown = square(step, size).bytes;
            let apart: usize = seen.iter().zip(&shown).map(|(seen, shown)| usize::from(seen.abs_diff(*shown))).sum();
            assert!(apart / shown.len() <= 6, "picture {step} is off by {} a value", apart / shown.len());
        }
    }

    #[test]
    fn odd_sides_get_their_last_line_twice_and_a_change_of_size_is_refused() {
        let mut file = Cursor::new(Vec::new());
        let mut video = Box::new(Mp4::begin(&mut file, square(0, [63, 47]), 3).unwrap());
        let refusal = video.add(square(0, [64, 48]), 3).unwrap_err().to_string();
        assert!(refusal.contains("[63, 47]") && refusal.contains("[64, 48]"), "{refusal}");
        video.end().unwrap();
        assert_eq!(played(file.into_inner())[0].0.len(), 64 * 48 * 3);
    }
}
