//! Boards, whose readers want only the newest version: parameters, statistics, pictures.

use shoal::segment::float_board::{FloatBoard, NOTES};
use shoal::segment::pictures::{PICTURE_NOTES, PictureBoard};
use shoal::segment::{Description, Layout, Segment, SegmentSizes};

use crate::measure::{Path, Receiver, Sender};

/// A segment for boards, with next to no replay.
pub(crate) fn segment(sizes: SegmentSizes) -> Segment {
    let layout = Layout::new(sizes).expect("sizes within their limits");
    Segment::create(layout, &Description::default(), false).expect("room in /dev/shm")
}

/// Sizes of a segment that holds nothing yet.
pub(crate) fn sizes() -> SegmentSizes {
    SegmentSizes { processes: 2, ..SegmentSizes::of_rows(1, 16) }
}

/// A board of floats in a segment.
pub(crate) struct Floats {
    segment: Segment,
    board: fn(&Segment) -> FloatBoard<'_>,
}

impl Floats {
    pub(crate) fn parameters(values: usize) -> Self {
        Self { segment: segment(SegmentSizes { published_values: values, ..sizes() }), board: Segment::parameter_board }
    }

    /// The board with the statistics of an actor whose observations have `values` numbers.
    pub(crate) fn statistics(values: usize) -> Self {
        let segment = segment(SegmentSizes { statistics_values: values, ..sizes() });
        Self { segment, board: |segment| segment.statistics_board(0).expect("there are statistics") }
    }
}

impl Path for Floats {
    fn sender(&self) -> Box<dyn Sender + '_> {
        let board = (self.board)(&self.segment);
        Box::new(FloatSender { board, values: vec![0.5; board.len()] })
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        let board = (self.board)(&self.segment);
        Box::new(FloatReceiver { board, version: 0, values: vec![0.0; board.len()] })
    }
}

struct FloatSender<'a> {
    board: FloatBoard<'a>,
    values: Vec<f32>,
}

impl Sender for FloatSender<'_> {
    fn send(&mut self, number: u64) {
        self.board.publish(&[&self.values], [number; NOTES]);
    }
}

struct FloatReceiver<'a> {
    board: FloatBoard<'a>,
    version: u64,
    values: Vec<f32>,
}

impl Receiver for FloatReceiver<'_> {
    fn look(&mut self) -> usize {
        if self.board.version() == self.version {
            return 0;
        }
        let Some((version, _)) = self.board.read(&mut self.values) else { return 0 };
        self.version = version;
        1
    }
}

/// The board with the pictures of a visualizer.
pub(crate) struct Pictures {
    segment: Segment,
    size: [usize; 2],
}

impl Pictures {
    pub(crate) fn new(size: [usize; 2]) -> Self {
        Self { segment: segment(SegmentSizes { picture_bytes: length_bytes(size), ..sizes() }), size }
    }

    fn board(&self) -> PictureBoard<'_> {
        self.segment.picture_board().expect("there are pictures")
    }
}

pub(crate) fn length_bytes([width, height]: [usize; 2]) -> usize {
    3 * width * height
}

impl Path for Pictures {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(PictureSender { board: self.board(), size: self.size, bytes: vec![7; length_bytes(self.size)] })
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        Box::new(PictureReceiver { board: self.board(), version: 0, newest: Vec::new() })
    }
}

struct PictureSender<'a> {
    board: PictureBoard<'a>,
    size: [usize; 2],
    bytes: Vec<u8>,
}

impl Sender for PictureSender<'_> {
    fn send(&mut self, number: u64) {
        self.board.show(self.size, [number; PICTURE_NOTES], &self.bytes);
    }
}

struct PictureReceiver<'a> {
    board: PictureBoard<'a>,
    version: u64,
    /// The newest picture, kept until the next one is there, as a page keeps it.
    newest: Vec<u8>,
}

impl Receiver for PictureReceiver<'_> {
    fn look(&mut self) -> usize {
        if self.board.version() == self.version {
            return 0;
        }
        let Some((caption, bytes)) = self.board.read() else { return 0 };
        (self.version, self.newest) = (caption.version, bytes);
        1
    }
}
