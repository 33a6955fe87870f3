//! Content that one process publishes or reports, and that others copy.

use loom::thread::spawn;
use shoal_models::segment::float_board::FloatBoard;
use shoal_models::segment::metrics::{MetricRing, Report};
use shoal_models::segment::pictures::{PICTURE_NOTES, PictureBoard};
use shoal_models::segment::scores::{EvaluationScore, Scores};
use shoal_models::segment::{Region, Segment};
use shoal_models::sync::Ordering;

use super::support::{CONTROL_STRIDE, segment, sizes, words};

const VALUES: usize = 4;

/// A reader of parameters gets one whole version, and none older than one that it got before.
pub fn parameters_that_are_published_while_they_are_read() {
    let buffer = (FloatBoard::words_needed(VALUES) - 8) / 3;
    // The version; of every buffer its mark, its first note and its values.
    let takes_part = |word: usize| word == 0 || word >= 8 && [0, 1, 8, 9].contains(&((word - 8) % buffer));
    let memory = words(FloatBoard::words_needed(VALUES), takes_part);
    let publish = |board: FloatBoard<'_>, version: u16| {
        assert_eq!(board.publish(&[&[f32::from(version); VALUES]], [u64::from(version); 4]), u64::from(version));
    };
    publish(FloatBoard::new(&memory, VALUES), 1);
    let writer = spawn({
        let memory = memory.clone();
        move || (2..=4).for_each(|version| publish(FloatBoard::new(&memory, VALUES), version))
    });
    let mut values = [0.0; VALUES];
    let (version, notes) = FloatBoard::new(&memory, VALUES).read(&mut values).expect("one was there before");
    assert_eq!((values, notes[0]), ([version as f32; VALUES], version));
    writer.join().unwrap();
}

/// A reader of pictures gets a whole one, of the size that it was shown with.
pub fn pictures_that_are_shown_while_they_are_read() {
    const BYTES: usize = 12;
    let buffer = (PictureBoard::words_needed(BYTES) - 8) / 3;
    // The version; of every buffer its mark, its height and its first bytes.
    let takes_part = |word: usize| word == 0 || word >= 8 && [0, 2, 8].contains(&((word - 8) % buffer));
    let memory = words(PictureBoard::words_needed(BYTES), takes_part);
    // Two rows, then one, and so on: the size changes with what is shown.
    let rows = |version: u64| 1 + (version % 2) as usize;
    let show = move |board: PictureBoard<'_>, version: u64| {
        let bytes = vec![version as u8; 2 * rows(version) * 3];
        assert_eq!(board.show([2, rows(version)], [version; PICTURE_NOTES], &bytes), version);
    };
    show(PictureBoard::new(&memory, BYTES), 1);
    let writer = spawn({
        let memory = memory.clone();
        move || (2..=4).for_each(|version| show(PictureBoard::new(&memory, BYTES), version))
    });
    let (caption, bytes) = PictureBoard::new(&memory, BYTES).read().expect("one was there before");
    assert_eq!(caption.height, rows(caption.version));
    assert_eq!(bytes, vec![caption.version as u8; 2 * caption.height * 3]);
    writer.join().unwrap();
}

/// A reader of scores gets one whole record.
pub fn scores_that_are_published_while_they_are_read() {
    // The sequence number, and the number of episodes and the version of an evaluation.
    let first = 16 * CONTROL_STRIDE;
    let segment = segment(sizes(1, 2), &[], |region, word| region == Region::Control && [0, 3, 8].map(|word| first + word).contains(&word));
    let scores = |number| Scores {
        training: None,
        evaluation: Some(EvaluationScore {
            return_mean: 0.0,
            ci95_low: None,
            ci95_high: None,
            episodes: number,
            env_steps: 0,
            version: number,
        }),
    };
    segment.control().scores().publish(&scores(1));
    let writer = spawn({
        let segment = segment.clone();
        move || [2, 3].map(|number| segment.control().scores().publish(&scores(number)))
    });
    let read = segment.control().scores().read();
    assert!((1..=3).any(|number| read == scores(number)), "{read:?}");
    writer.join().unwrap();
}

/// A reader of reports gets each whole and in order while the ring goes round, or knows that it is lost.
pub fn reports_that_are_taken_while_the_ring_goes_round() {
    const RECORDS: usize = 2;
    // The position; of both records the length and the return of an episode.
    let takes_part = |word: usize| word == 0 || word >= 8 && [1, 2].contains(&(word % 4));
    let memory = words(MetricRing::words_needed(RECORDS), takes_part);
    let push = |ring: MetricRing<'_>, length: u64| ring.push(Report::Episode { episode_return: length as f64, length });
    push(MetricRing::over(&memory), 0);
    let writer = spawn({
        let memory = memory.clone();
        move || (1..4).for_each(|length| push(MetricRing::over(&memory), length))
    });
    let (mut position, mut taken, mut lost) = (0, Vec::new(), 0);
    let mut take = || {
        let (next, more) = MetricRing::over(&memory).drain(position, |report| {
            let Report::Episode { episode_return, length } = report else { panic!("{report:?} was never pushed") };
            assert_eq!(episode_return, length as f64, "a mixture of two reports");
            taken.push(length);
        });
        (position, lost) = (next, lost + more);
    };
    take();
    writer.join().unwrap();
    take();
    assert!(taken.is_sorted_by(|earlier, later| earlier < later), "{taken:?}");
    assert_eq!((position, taken.len() as u64 + lost, taken.last()), (4, 4, Some(&3)));
}

/// A process that waits for something that two others bring is woken: after a lost wake-up it would wait for ever here.
pub fn progress_that_somebody_waits_for() {
    use super::support::{INSERTED, PROGRESS, WAITERS};
    let segment = segment(sizes(1, 2), &[INSERTED, PROGRESS, WAITERS], |_, _| false);
    let bring = |segment: &Segment| {
        segment.control().inserted().fetch_add(1, Ordering::Relaxed);
        segment.control().signal_progress();
    };
    let waiter = spawn({
        let segment = segment.clone();
        move || {
            let control = segment.control();
            let is_there = || control.inserted().load(Ordering::Relaxed) == 2;
            while !is_there() {
                control.wait_for_progress(std::time::Duration::MAX, is_there);
            }
        }
    });
    let other = spawn({
        let segment = segment.clone();
        move || bring(&segment)
    });
    bring(&segment);
    other.join().unwrap();
    waiter.join().unwrap();
}
