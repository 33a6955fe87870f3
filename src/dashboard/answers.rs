//! What is answered to which path. All of them lie behind the token.

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

/// A word to a page of a run in which nothing happens, so that both sides learn when the other is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long the list of all runs is as good as new. Every page asks for it every few seconds.
const LIST_GOOD_FOR: Duration = Duration::from_secs(1);
/// Histories that are kept of runs that nobody follows. When there are more, all are forgotten, and read again when they are asked for.
const MOST_HISTORIES: usize = 32;

#[derive(Clone)]
struct Shown {
    runs: Arc<Runs>,
    feeds: Arc<Feeds>,
    /// Those of runs that nobody followed when they were asked for, read as far as they went.
    histories: Arc<Mutex<HashMap<String, Arc<AsyncMutex<History>>>>>,
    /// The newest list of all runs, and when it was made.
    list: Arc<Mutex<Option<(Instant, String)>>>,
}

pub(super) fn router(token: Token, runs: Runs) -> Router {
    let shown = Shown { runs: Arc::new(runs), feeds: Arc::default(), histories: Arc::default(), list: Arc::default() };
    Router::new()
        // The page asks for all that it needs below the slash.
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
        .with_state(shown)
}

/// All runs.
async fn list(State(shown): State<Shown>) -> Response {
    let mut newest = locked(&shown.list);
    newest.take_if(|(made, _)| made.elapsed() >= LIST_GOOD_FOR);
    let (_, list) = newest.get_or_insert_with(|| (Instant::now(), json(&shown.runs.cards())));
    as_json(list.clone())
}

/// The whole history of a run, once.
async fn history(State(shown): State<Shown>, Path((_, id)): Path<(String, String)>) -> Response {
    of_history(&shown, id, History::whole).await
}

/// What is drawn of a run beside others.
async fn returns(State(shown): State<Shown>, Path((_, id)): Path<(String, String)>) -> Response {
    of_history(&shown, id, History::returns).await
}

/// What is `wanted` of the history of the run `id`, which has been read already where somebody follows it.
async fn of_history(shown: &Shown, id: String, wanted: impl Fn(&History) -> String) -> Response {
    if let Some(history) = shown.feeds.of_history(&id, &wanted) {
        return as_json(history);
    }
    let Some(folder) = shown.runs.find(&id) else { return StatusCode::NOT_FOUND.into_response() };
    let known = {
        let mut histories = locked(&shown.histories);
        if histories.len() >= MOST_HISTORIES && !histories.contains_key(&id) {
            histories.clear();
        }
        Arc::clone(histories.entry(id).or_insert_with(|| Arc::new(AsyncMutex::new(History::of(&folder)))))
    };
    let mut history = known.lock().await;
    history.catch_up().await;
    as_json(wanted(&history))
}

/// What is known of a run, and what happens in it from now on.
async fn events(State(shown): State<Shown>, Path((_, id)): Path<(String, String)>) -> Response {
    let Some(folder) = shown.runs.find(&id) else { return StatusCode::NOT_FOUND.into_response() };
    let feed = shown.feeds.follow(&shown.runs, &id, folder).await;
    Sse::new(messages(&feed)).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response()
}

/// The picture of a run that its pages were told of as this version, or the newest where the request names none.
async fn picture(State(shown): State<Shown>, Path((_, id)): Path<(String, String)>, RawQuery(version): RawQuery) -> Response {
    match shown.feeds.picture(&id, version.as_deref()) {
        Some(picture) => ([(header::CONTENT_TYPE, "image/png")], picture).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A video, or a part of it.
async fn video(State(shown): State<Shown>, Path((_, id, wanted)): Path<(String, String, String)>, headers: HeaderMap) -> Response {
    let answer = shown.runs.find(&id).and_then(|folder| video::answer(&folder, &wanted, &headers));
    answer.unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

/// What a page is told. It does not keep the feed: if that ends, so does this, and the page asks anew.
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

/// The next message. Who was too slow for the others is told everything anew.
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
