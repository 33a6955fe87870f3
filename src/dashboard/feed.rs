//! What happens in a run, as messages for all pages that show it. The run is looked at once for all of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::time::{MissedTickBehavior, interval};

use super::history::History;
use super::runs::{Card, Runs, State};
use super::{json, locked, picture};
use crate::inspector::{InspectError, Inspection, Look, PictureReport, ProcessReport};
use crate::telemetry::RunFolder;

/// Time between two looks at a segment.
const LOOK: Duration = Duration::from_millis(200);
/// Looks between two at the files, at the sum tree, and at whether the run is still there.
const LOOKS_PER_READING: u32 = 5;
/// Messages that a page may be behind. One that is further behind gets the whole state anew. As many pictures are kept,
/// since messages announce them.
const MOST_BEHIND: usize = 32;
/// Readings without a listener before a feed ends. A page that was hidden comes back, and the files of a long run take
/// seconds to read.
const MOST_UNHEARD: u32 = 600;

/// One message: a kind, and its content as JSON.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) kind: &'static str,
    pub(super) content: Arc<str>,
}

impl Message {
    fn new(kind: &'static str, content: String) -> Self {
        Self { kind, content: content.into() }
    }
}

/// The feeds of the runs that pages show, or did a while ago, by id.
#[derive(Default)]
pub(super) struct Feeds(Mutex<HashMap<String, Arc<Feed>>>);

/// Removes the feed of the run `id` from `feeds` when it is dropped.
struct RemoveOnDrop {
    feeds: Arc<Feeds>,
    id: String,
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        locked(&self.feeds.0).remove(&self.id);
    }
}

/// The feed of one run.
pub(super) struct Feed {
    sender: Sender<Message>,
    known: Mutex<Known>,
}

/// What is known of a run: a page that comes later is told this first.
struct Known {
    history: History,
    /// The newest message about the state of the run.
    state: Message,
    /// The run's segment, while the run goes on and a page listens.
    live: Option<Live>,
}

/// The state of a run.
#[derive(Serialize)]
struct RunState {
    /// `None` if the folder of the run is gone.
    card: Option<Card>,
    /// Why the segment cannot be read although the run goes on.
    problem: Option<String>,
}

impl Feeds {
    /// The feed of the run `id` in `folder`. It goes on for as long as a page listens, and for a while after that.
    pub(super) async fn follow(self: &Arc<Self>, runs: &Arc<Runs>, id: &str, folder: RunFolder) -> Arc<Feed> {
        let mut history = History::of(&folder);
        if !locked(&self.0).contains_key(id) {
            history.catch_up().await;
        }
        let mut feeds = locked(&self.0);
        // Another request may have made the feed meanwhile.
        if let Some(feed) = feeds.get(id) {
            return Arc::clone(feed);
        }
        let known = Known { history, state: state(runs.card(&folder), None), live: None };
        let feed = Arc::new(Feed { sender: broadcast::channel(MOST_BEHIND).0, known: Mutex::new(known) });
        feeds.insert(id.to_owned(), Arc::clone(&feed));
        let work = watch(Arc::clone(&feed), Arc::clone(runs), folder);
        let entry = RemoveOnDrop { feeds: Arc::clone(self), id: id.to_owned() };
        tokio::spawn(async move {
            // Dropped however the work ends.
            let _entry = entry;
            work.await;
        });
        feed
    }

    /// The `wanted` part of the history of the run `id`, if the run has a feed.
    pub(super) fn part_of_history(&self, id: &str, wanted: impl Fn(&History) -> String) -> Option<String> {
        let feed = Arc::clone(locked(&self.0).get(id)?);
        Some(wanted(&locked(&feed.known).history))
    }

    /// A picture of the run `id` as a PNG: of those that messages announced lately, the one with version `wanted`, or
    /// the newest. `None` if the run has no feed or no visualizer.
    pub(super) fn picture(&self, id: &str, wanted: Option<&str>) -> Option<Bytes> {
        let feed = Arc::clone(locked(&self.0).get(id)?);
        let known = locked(&feed.known);
        let mut newest_first = known.live.as_ref()?.pictures.iter().rev();
        let (_, picture) = newest_first.find(|(announced, _)| wanted.is_none_or(|wanted| announced.version.to_string() == wanted))?;
        Some(picture.clone())
    }
}

impl Feed {
    /// Messages with all that is known, and a receiver of those that come after them.
    pub(super) fn listen(&self) -> (Vec<Message>, Receiver<Message>) {
        // No message is sent between the two, since the sender holds the same lock.
        let known = locked(&self.known);
        (known.messages(), self.sender.subscribe())
    }
}

impl Known {
    /// Opens the segment of the run that `card` names, unless it is open; without a card, closes it. Returns why it
    /// cannot be opened.
    fn open_live(&mut self, runs: &Runs, card: Option<&Card>) -> Option<String> {
        let is_open = self.live.as_ref().is_some_and(|live| live.inspection.is_running());
        if is_open && card.is_some() {
            return None;
        }
        self.live = None;
        match Live::open(runs, card?) {
            Ok(live) => {
                self.live = Some(live);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    fn messages(&self) -> Vec<Message> {
        vec![self.state.clone(), Message::new("history", self.history.whole())]
    }
}

/// Looks at the run until no page has listened for a while; at its files alone while none does.
async fn watch(feed: Arc<Feed>, runs: Arc<Runs>, folder: RunFolder) {
    let mut clock = interval(LOOK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unheard = 0;
    for look in 0u32.. {
        clock.tick().await;
        let reads = look % LOOKS_PER_READING == 0;
        // The page for which the feed was made is about to listen.
        let is_heard = look == 0 || feed.sender.receiver_count() > 0;
        if is_heard {
            unheard = 0;
        } else if reads {
            unheard += 1;
        }
        if unheard > MOST_UNHEARD {
            return;
        }
        let mut known = locked(&feed.known);
        let was_open = known.live.is_some();
        let send = |message| {
            // It fails if the last page has gone.
            let _ = feed.sender.send(message);
        };
        if reads {
            let card = runs.card(&folder);
            // The folder was moved or removed: the next page is to look for the run anew.
            if card.is_none() && !is_heard {
                return;
            }
            let runs_on = card.as_ref().is_some_and(|card| card.state == State::Running);
            let problem = known.open_live(&runs, card.as_ref().filter(|_| runs_on && is_heard));
            if let Some(growth) = known.history.grow() {
                send(Message::new("growth", json(&growth)));
            }
            // One card decides both what is told and whether the segment is open: a page must hear no more from the
            // segment of a run that it was told has ended.
            let now = state(card, problem);
            if now.content != known.state.content {
                known.state = now.clone();
                send(now);
            }
        }
        // A segment that was opened in this look has no time over which rates could be measured.
        if let Some(live) = known.live.as_mut().filter(|_| was_open) {
            send(Message::new("now", live.look(reads)));
        }
    }
}

/// The open segment of a run that goes on.
struct Live {
    inspection: Inspection,
    earlier: Look,
    /// The newest pictures that messages announced, as PNGs.
    pictures: VecDeque<(PictureReport, Bytes)>,
}

impl Live {
    fn open(runs: &Runs, card: &Card) -> Result<Self, InspectError> {
        let inspection = Inspection::open(runs.registry(), card.supervisor_pid)?;
        let earlier = Look::at(inspection.segment());
        Ok(Self { inspection, earlier, pictures: VecDeque::new() })
    }

    /// A report of the run as it is now, as JSON; without the sum tree unless `with_tree`.
    fn look(&mut self, with_tree: bool) -> String {
        let mut report = if with_tree { self.inspection.report_since(&self.earlier) } else { self.inspection.counts_since(&self.earlier) };
        self.earlier = Look::at(self.inspection.segment());
        report.processes.retain(ProcessReport::is_of_interest);
        let newest_kept = self.pictures.back().map(|(announced, _)| *announced);
        if report.picture.map(|picture| picture.version) != newest_kept.map(|announced| announced.version) {
            // If the picture cannot be read at this moment, the page goes on showing the one before.
            report.picture = self.keep_picture().or(newest_kept);
        }
        json(&report)
    }

    /// Keeps the newest picture, and returns what to announce of it. By the time that a page asks for it, the
    /// visualizer shows another one.
    fn keep_picture(&mut self) -> Option<PictureReport> {
        let (caption, bytes) = self.inspection.segment().picture_board()?.read()?;
        let picture = picture::encoded(&caption, &bytes)?;
        if self.pictures.len() == MOST_BEHIND {
            self.pictures.pop_front();
        }
        let announced = PictureReport::of(caption);
        self.pictures.push_back((announced, picture));
        Some(announced)
    }
}

fn state(card: Option<Card>, problem: Option<String>) -> Message {
    Message::new("state", json(&RunState { card, problem }))
}
