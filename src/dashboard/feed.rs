//! What happens in a run, as messages for all pages that show it: the work of looking is done once for all of them.

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
/// Messages that a page may be behind. What it has missed it gets as a whole. The pictures that they tell of are kept as long.
const MOST_BEHIND: usize = 32;
/// Readings that nobody may hear before a run is followed no more: a page that was hidden comes back, and what a long run has written takes
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

/// The feeds of the runs that somebody looks at, or did a moment ago.
#[derive(Default)]
pub(super) struct Feeds(Mutex<HashMap<String, Arc<Feed>>>);

/// A feed among the others, until its work is over.
struct Followed {
    feeds: Arc<Feeds>,
    id: String,
}

impl Drop for Followed {
    fn drop(&mut self) {
        locked(&self.feeds.0).remove(&self.id);
    }
}

/// The feed of one run.
pub(super) struct Feed {
    sender: Sender<Message>,
    known: Mutex<Known>,
}

/// What a page that comes later has to be told first, and where the rest comes from.
struct Known {
    history: History,
    state: Message,
    live: Option<Live>,
}

/// What becomes of a run.
#[derive(Serialize)]
struct Told {
    card: Option<Card>,
    /// Why nobody can look into it though it goes on.
    problem: Option<String>,
}

impl Feeds {
    /// The feed of the run `id` in `folder`, which goes on for as long as somebody listens, and for a while after that.
    pub(super) async fn follow(self: &Arc<Self>, runs: &Arc<Runs>, id: &str, folder: RunFolder) -> Arc<Feed> {
        let mut history = History::of(&folder);
        if !locked(&self.0).contains_key(id) {
            history.catch_up().await;
        }
        let mut feeds = locked(&self.0);
        // Somebody else may have come meanwhile.
        if let Some(feed) = feeds.get(id) {
            return Arc::clone(feed);
        }
        let known = Known { history, state: state(runs.card(&folder), None), live: None };
        let feed = Arc::new(Feed { sender: broadcast::channel(MOST_BEHIND).0, known: Mutex::new(known) });
        feeds.insert(id.to_owned(), Arc::clone(&feed));
        let work = watch(Arc::clone(&feed), Arc::clone(runs), folder);
        let entry = Followed { feeds: Arc::clone(self), id: id.to_owned() };
        tokio::spawn(async move {
            // However the work ends.
            let _entry = entry;
            work.await;
        });
        Arc::clone(&feed)
    }

    /// What is `wanted` of the history of the run `id`, if somebody follows it: it has been read already.
    pub(super) fn of_history(&self, id: &str, wanted: impl Fn(&History) -> String) -> Option<String> {
        let feed = Arc::clone(locked(&self.0).get(id)?);
        Some(wanted(&locked(&feed.known).history))
    }

    /// The picture of the run `id` as a PNG that pages were told of lately as the version `wanted`, or the newest of those. `None` unless
    /// somebody follows the run and it has a visualizer.
    pub(super) fn picture(&self, id: &str, wanted: Option<&str>) -> Option<Bytes> {
        let feed = Arc::clone(locked(&self.0).get(id)?);
        let known = locked(&feed.known);
        let mut newest_first = known.live.as_ref()?.pictures.iter().rev();
        let (_, picture) = newest_first.find(|(told, _)| wanted.is_none_or(|wanted| told.version.to_string() == wanted))?;
        Some(picture.clone())
    }
}

impl Feed {
    /// What is known, and whatever comes after it.
    pub(super) fn listen(&self) -> (Vec<Message>, Receiver<Message>) {
        // Nothing is sent between the two, since who sends holds the same lock.
        let known = locked(&self.known);
        (known.tell(), self.sender.subscribe())
    }
}

impl Known {
    /// Open the run under way that `card` names, if there is one and it is not open; why not, if it cannot be.
    fn look_for(&mut self, runs: &Runs, card: Option<&Card>) -> Option<String> {
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

    fn tell(&self) -> Vec<Message> {
        vec![self.state.clone(), Message::new("history", self.history.whole())]
    }
}

/// Look at the run until nobody has listened for a while: only at its files while nobody does.
async fn watch(feed: Arc<Feed>, runs: Arc<Runs>, folder: RunFolder) {
    let mut clock = interval(LOOK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unheard = 0;
    for look in 0u32.. {
        clock.tick().await;
        let reads = look % LOOKS_PER_READING == 0;
        // Whoever asked for the first is about to listen.
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
            // Whoever listened may have gone.
            let _ = feed.sender.send(message);
        };
        if reads {
            let card = runs.card(&folder);
            // It was moved or removed: whoever comes next is to look for it anew.
            if card.is_none() && !is_heard {
                return;
            }
            let runs_on = card.as_ref().is_some_and(|card| card.state == State::Running);
            let problem = known.look_for(&runs, card.as_ref().filter(|_| runs_on && is_heard));
            if let Some(growth) = known.history.grow() {
                send(Message::new("growth", growth.to_json()));
            }
            // The same card decides both, or a page would be told more of a run that it was told has ended.
            let now = state(card, problem);
            if now.content != known.state.content {
                known.state = now.clone();
                send(now);
            }
        }
        // Rates over the moment since it was opened would say nothing.
        if let Some(live) = known.live.as_mut().filter(|_| was_open) {
            send(Message::new("now", live.look(reads)));
        }
    }
}

/// A run under way.
struct Live {
    inspection: Inspection,
    earlier: Look,
    /// The newest pictures that pages were told of, as PNGs, each with what was told.
    pictures: VecDeque<(PictureReport, Bytes)>,
}

impl Live {
    fn open(runs: &Runs, card: &Card) -> Result<Self, InspectError> {
        let inspection = Inspection::open(runs.registry(), card.supervisor_pid)?;
        let earlier = Look::at(inspection.segment());
        Ok(Self { inspection, earlier, pictures: VecDeque::new() })
    }

    /// What is there now, as JSON.
    fn look(&mut self, at_the_tree_too: bool) -> String {
        let mut report =
            if at_the_tree_too { self.inspection.report_since(&self.earlier) } else { self.inspection.counts_since(&self.earlier) };
        self.earlier = Look::at(self.inspection.segment());
        report.processes.retain(ProcessReport::is_of_interest);
        let newest_kept = self.pictures.back().map(|(told, _)| *told);
        if report.picture.map(|picture| picture.version) != newest_kept.map(|told| told.version) {
            // One that cannot be read at this moment leaves that before it on view.
            report.picture = self.keep_picture().or(newest_kept);
        }
        json(&report)
    }

    /// What is said of the newest picture, which is kept with it: when a page that is told of it asks for it, the visualizer shows another.
    fn keep_picture(&mut self) -> Option<PictureReport> {
        let (caption, bytes) = self.inspection.segment().picture_board()?.read()?;
        let picture = picture::encoded(&caption, &bytes)?;
        if self.pictures.len() == MOST_BEHIND {
            self.pictures.pop_front();
        }
        let told = PictureReport::of(caption);
        self.pictures.push_back((told, picture));
        Some(told)
    }
}

fn state(card: Option<Card>, problem: Option<String>) -> Message {
    Message::new("state", json(&Told { card, problem }))
}
