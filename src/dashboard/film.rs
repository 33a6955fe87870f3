//! Films of episodes for a browser, whole or the part of one that it asks for: some players ask for parts alone.

use std::fs::{self, DirEntry, Metadata};
use std::io::Read;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_range_header::parse_range_header;

use crate::telemetry::{RunFolder, jsonl};

/// Far more than a film of pictures of environments has.
const LARGEST_BYTES: u64 = 256 << 20;

/// The names of the films in `folder`, the newest first.
pub(super) fn films(folder: &RunFolder) -> Vec<String> {
    let entries = fs::read_dir(folder.videos()).into_iter().flatten().flatten();
    let film = |entry: DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.starts_with("step") && media_type(name).is_some())?;
        Some((entry.metadata().ok().filter(Metadata::is_file)?.modified().ok()?, name))
    };
    let mut films: Vec<_> = entries.filter_map(film).collect();
    films.sort_by(|a, b| b.cmp(a));
    films.into_iter().map(|(_, name)| name).collect()
}

/// The media type of the film `name`; `None` if it is none.
fn media_type(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "gif" => Some("image/gif"),
        "mp4" => Some("video/mp4"),
        _ => None,
    }
}

/// The film `wanted` of a run, or the part of it that `headers` ask for. What a request names is compared with what is there,
/// and never made a path.
pub(super) fn answer(folder: &RunFolder, wanted: &str, headers: &HeaderMap) -> Option<Response> {
    let name = films(folder).into_iter().find(|name| name == wanted)?;
    let media_type = media_type(&name)?;
    let mut film = Vec::new();
    jsonl::open(&folder.videos().join(name))?.take(LARGEST_BYTES).read_to_end(&mut film).ok()?;
    let described = [(header::CONTENT_TYPE, media_type), (header::ACCEPT_RANGES, "bytes")];
    // Of a unit that is not understood, the whole is answered.
    let in_bytes = |range: &&str| range.starts_with("bytes=");
    Some(match headers.get(header::RANGE).and_then(|range| range.to_str().ok()).filter(in_bytes) {
        Some(range) => part(film, range, described),
        None => (described, film).into_response(),
    })
}

/// The first of the parts that `range` asks for (RFC 9110, section 14: a server may answer fewer than were asked for).
fn part(mut film: Vec<u8>, range: &str, described: [(HeaderName, &'static str); 2]) -> Response {
    let whole = film.len();
    let parts = parse_range_header(range).and_then(|ranges| ranges.validate(whole as u64));
    let part =
        parts.ok().and_then(|parts| Some((usize::try_from(*parts.first()?.start()).ok()?, usize::try_from(*parts.first()?.end()).ok()?)));
    let Some((first, last)) = part.filter(|(_, last)| *last < whole) else {
        return (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, format!("bytes */{whole}"))]).into_response();
    };
    film.truncate(last + 1);
    film.drain(..first);
    (StatusCode::PARTIAL_CONTENT, described, [(header::CONTENT_RANGE, format!("bytes {first}-{last}/{whole}"))], film).into_response()
}
