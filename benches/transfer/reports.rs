//! Reports to the supervisor and by it: metrics through a ring, evaluations through a channel, and the newest scores for all to read.

use std::cell::RefCell;

use ipc_channel::ipc::{self, IpcReceiver, IpcSender};
use shoal::metrics::Amount;
use shoal::roles::evaluator::EvaluationReport;
use shoal::segment::Segment;
use shoal::segment::metrics::{MetricRing, Report};
use shoal::segment::scores::{EvaluationScore, ScoreRecord, Scores, TrainingScore};
use shoal::telemetry::Evaluation;

use crate::boards::{segment, sizes};
use crate::measure::{Path, Receiver, Sender};

/// Bytes of one report in a ring: four words.
pub(crate) const REPORT_BYTES: usize = 4 * 8;
/// Bytes of the scores, without the number of their version: eight words.
pub(crate) const SCORE_BYTES: usize = 8 * 8;
/// Episodes of a routine evaluation.
const EPISODES: usize = 20;

/// The ring of one process.
pub(crate) struct Metrics(Segment);

impl Metrics {
    pub(crate) fn new() -> Self {
        Self(segment(sizes()))
    }
}

impl Path for Metrics {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(Reporting(self.0.metric_ring(0)))
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        Box::new(Draining { ring: self.0.metric_ring(0), position: 0, newest: None })
    }
}

struct Reporting<'a>(MetricRing<'a>);

impl Sender for Reporting<'_> {
    fn send(&mut self, number: u64) {
        self.0.push(Report::Metric { index: 0, amount: Amount { value: number as f64, count: 1.0 } });
    }
}

struct Draining<'a> {
    ring: MetricRing<'a>,
    position: u64,
    newest: Option<Report>,
}

impl Receiver for Draining<'_> {
    fn look(&mut self) -> usize {
        let mut found = 0;
        (self.position, _) = self.ring.drain(self.position, |report| {
            self.newest = Some(report);
            found += 1;
        });
        found
    }
}

/// The record of the newest scores.
pub(crate) struct NewestScores(Segment);

impl NewestScores {
    pub(crate) fn new() -> Self {
        Self(segment(sizes()))
    }
}

impl Path for NewestScores {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(Publishing(self.0.control().scores()))
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        Box::new(Looking { record: self.0.control().scores(), newest: Scores::default() })
    }
}

struct Publishing<'a>(ScoreRecord<'a>);

impl Sender for Publishing<'_> {
    fn send(&mut self, number: u64) {
        let training = TrainingScore { return_mean: 200.0, episodes: 100 };
        let evaluation = EvaluationScore {
            return_mean: 200.0,
            ci95_low: Some(190.0),
            ci95_high: Some(210.0),
            episodes: EPISODES as u64,
            env_steps: number,
            version: number,
        };
        self.0.publish(&Scores { training: Some(training), evaluation: Some(evaluation) });
    }
}

struct Looking<'a> {
    record: ScoreRecord<'a>,
    newest: Scores,
}

impl Receiver for Looking<'_> {
    fn look(&mut self) -> usize {
        let scores = self.record.read();
        if scores == self.newest || scores == Scores::default() {
            return 0;
        }
        self.newest = scores;
        1
    }
}

/// The channel from the evaluator to the supervisor.
pub(crate) struct Evaluations {
    sender: IpcSender<EvaluationReport>,
    receiver: RefCell<Option<IpcReceiver<EvaluationReport>>>,
}

impl Evaluations {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = ipc::channel().expect("a channel");
        Self { sender, receiver: RefCell::new(Some(receiver)) }
    }
}

fn report(number: u64) -> EvaluationReport {
    let evaluation = Evaluation {
        version: number,
        updates: number,
        env_steps: 10 * number,
        returns: vec![200.0; EPISODES],
        lengths: vec![200; EPISODES],
        ..Evaluation::default()
    };
    EvaluationReport { evaluation, unsaved: None }
}

/// Bytes of one report as `bincode` writes it, which is about what the channel sends.
pub(crate) fn evaluation_bytes() -> usize {
    bincode::serde::encode_to_vec(report(1), bincode::config::legacy()).expect("it can be written").len()
}

impl Path for Evaluations {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(Telling(&self.sender))
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        Box::new(Hearing { receiver: self.receiver.take().expect("one reader"), newest: None })
    }
}

struct Telling<'a>(&'a IpcSender<EvaluationReport>);

impl Sender for Telling<'_> {
    fn send(&mut self, number: u64) {
        self.0.send(report(number)).expect("the reader is there");
    }
}

struct Hearing {
    receiver: IpcReceiver<EvaluationReport>,
    newest: Option<EvaluationReport>,
}

impl Receiver for Hearing {
    fn look(&mut self) -> usize {
        let Ok(report) = self.receiver.try_recv() else { return 0 };
        self.newest = Some(report);
        1
    }
}
