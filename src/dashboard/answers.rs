//! The answer to each path. All paths begin with the token.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures_util::stream::{Stream, unfold};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::feed::{Feed, Feeds, Message};
use super::guard::{Token, guard};
use super::history::History;
use super::runs::Runs;
use super::{json, locked, page, video};

/// Time after which a page of a run in which nothing happens gets a message all the same, so that both sides notice
/// when the other is gone: a page says so after three of them (`page/run.js`).
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long a list of all runs is answered again. Every page asks for it every few seconds.
const LIST_GOOD_FOR: Duration = Duration::from_secs(1);
/// Histories that are kept of runs without a feed. When there are more, all are dropped, and read again when a page
/// asks.
const MOST_HISTORIES: usize = 32;

/// What all requests share.
#[derive(Clone)]
struct Site {
    runs: Arc<Runs>,
    feeds: Arc<Feeds>,
    /// Histories of runs that had no feed when a page asked for them, by id, read as far as the files went.
    histories: Arc<Mutex<HashMap<String, Arc<AsyncMutex<History>>>>>,
    /// The newest list of all runs, and when it was made.
    list: Arc<Mutex<Option<(Instant, String)>>>,
}

pub(super) fn router(token: Token, runs: Runs) -> Router {
    let site = Site { runs: Arc::new(runs), feeds: Arc::default(), histories: Arc::default(), list: Arc::default() };
    Router::new()
        // The page asks for its files relative to the slash.
        .route("/{token}", get(|Path(token): Path<String>| async move { Redirect::permanent(&format!("/{token}/")) }))
        .route("/{token}/", get(|| async { page::file("") }))
        .route("/{token}/{file}", get(|Path((_, file)): Path<(String, String)>| async move { page::file(&file) }))
        .route("/{token}/runs/", get(list))
        .route("/{token}/runs/{id}/history", get(history))
        .route("/{token}/runs/{id}/returns", get(returns))
        .route("/{token}/runs/{id}/events", get(events))
        .route("/{token}/runs/{id}/picture", get(picture))
        .route("/{token}/runs/{id}/videos/{name}", get(video))
        .layer(axum::middleware::from_fn_with_state(token, guard))
        .with_state(site)
}

/// The cards of all runs.
async fn list(State(site): State<Site>) -> Response {
    let mut newest = locked(&site.list);
    newest.take_if(|(made, _)| made.elapsed() >= LIST_GOOD_FOR);
    let (_, list) = newest.get_or_insert_with(|| (Instant::now(), json(&site.runs.cards())));
    as_json(list.clone())
}

/// The whole history of a run, as it is now.
async fn history(State(site): State<Site>, Path((_, id)): Path<(String, String)>) -> Response {
    answer_from_history(&site, id, History::whole).await
}

/// The columns of a run's history that the comparison of runs draws.
async fn returns(State(site): State<Site>, Path((_, id)): Path<(String, String)>) -> Response {
    answer_from_history(&site, id, History::returns).await
}

/// Answers with the `wanted` part of the history of the run `id`. If the run has a feed, that has read the history.
async fn answer_from_history(site: &Site, id: String, wanted: impl Fn(&History) -> String) -> Response {
    if let Some(history) = site.feeds.part_of_history(&id, &wanted) {
        return as_json(history);
    }
    let Some(folder) = site.runs.find(&id) else { return StatusCode::NOT_FOUND.into_response() };
    let known = {
        let mut histories = locked(&site.histories);
        if histories.len() >= MOST_HISTORIES && !histories.contains_key(&id) {
            histories.clear();
        }
        Arc::clone(histories.entry(id).or_insert_with(|| Arc::new(AsyncMutex::new(History::of(&folder)))))
    };
    let mut history = known.lock().await;
    history.catch_up().await;
    as_json(wanted(&history))
}

/// Server-sent events: what is known of a run, and then what happens in it.
async fn events(State(site): State<Site>, Path((_, id)): Path<(String, String)>) -> Response {
    let Some(folder) = site.runs.find(&id) else { return StatusCode::NOT_FOUND.into_response() };
    let feed = site.feeds.follow(&site.runs, &id, folder).await;
    // Pages are not told of comments, which would keep the connection alive as well.
    let alive = Event::default().event("alive").data("null");
    Sse::new(messages(&feed)).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE).event(alive)).into_response()
}

/// The picture of a run with the version that a message announced, or the newest if the request names none.
async fn picture(State(site): State<Site>, Path((_, id)): Path<(String, String)>, RawQuery(version): RawQuery) -> Response {
    match site.feeds.picture(&id, version.as_deref()) {
        Some(picture) => ([(header::CONTENT_TYPE, "image/png")], picture).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A video, or a part of it.
async fn video(State(site): State<Site>, Path((_, id, wanted)): Path<(String, String, String)>, headers: HeaderMap) -> Response {
    let answer = site.runs.find(&id).and_then(|folder| video::answer(&folder, &wanted, &headers));
    answer.unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

/// The messages for one page. The stream does not keep the feed alive: if the feed ends, the stream ends, and the
/// page asks anew.
fn messages(feed: &Arc<Feed>) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let (known, receiver) = feed.listen();
    unfold((Arc::downgrade(feed), VecDeque::from(known), receiver), |(feed, mut waiting, mut receiver)| async move {
        let message = match waiting.pop_front() {
            Some(message) => message,
            None => next(&feed, &mut waiting, &mut receiver).await?,
        };
        let event = Event::default().event(message.kind).data(&*message.content);
        Some((Ok(event), (feed, waiting, receiver)))
    })
}

/// The next message. A page that has missed some gets the whole state anew.
async fn next(feed: &Weak<Feed>, waiting: &mut VecDeque<Message>, receiver: &mut Receiver<Message>) -> Option<Message> {
    match receiver.recv().await {
        Ok(message) => Some(message),
        Err(RecvError::Closed) => None,
        Err(RecvError::Lagged(_)) => {
            let (known, anew) = feed.upgrade()?.listen();
            (*waiting, *receiver) = (known.into(), anew);
            waiting.pop_front()
        }
    }
}

fn as_json(content: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], content).into_response()
}
