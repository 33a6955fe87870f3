//! Videos of episodes for a browser, whole or the part that it asks for: some players ask for parts alone.

use std::io::Read;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_range_header::parse_range_header;

use crate::bounded_file::open_file;
use crate::config::schema::VideoFormat;
use crate::telemetry::{RunFolder, Video, videos_in};

/// Bytes of a video that are read at most: far more than any has.
const LARGEST_BYTES: u64 = 256 << 20;

/// The videos of the run in `folder`, the newest first.
pub(super) fn newest_first(folder: &RunFolder) -> Vec<Video> {
    let mut videos = videos_in(&folder.videos());
    videos.reverse();
    videos
}

fn media_type(format: VideoFormat) -> &'static str {
    match format {
        VideoFormat::Gif => "image/gif",
        VideoFormat::Mp4 => "video/mp4",
    }
}

/// The video `wanted` of a run, or the part of it that `headers` ask for. The name from a request is compared with
/// those of the videos that are there, and never becomes a path.
pub(super) fn answer(folder: &RunFolder, wanted: &str, headers: &HeaderMap) -> Option<Response> {
    let Video { name, format, .. } = videos_in(&folder.videos()).into_iter().find(|video| video.name == wanted)?;
    let mut video = Vec::new();
    open_file(&folder.videos().join(name)).ok()?.take(LARGEST_BYTES).read_to_end(&mut video).ok()?;
    let described = [(header::CONTENT_TYPE, media_type(format)), (header::ACCEPT_RANGES, "bytes")];
    // A range in another unit is answered with the whole video.
    let in_bytes = |range: &&str| range.starts_with("bytes=");
    Some(match headers.get(header::RANGE).and_then(|range| range.to_str().ok()).filter(in_bytes) {
        Some(range) => part(video, range, described),
        None => (described, video).into_response(),
    })
}

/// The first of the parts that `range` asks for (RFC 9110, section 14: a server may answer fewer than were asked for).
fn part(mut video: Vec<u8>, range: &str, described: [(HeaderName, &'static str); 2]) -> Response {
    let whole = video.len();
    let parts = parse_range_header(range).and_then(|ranges| ranges.validate(whole as u64));
    let part =
        parts.ok().and_then(|parts| Some((usize::try_from(*parts.first()?.start()).ok()?, usize::try_from(*parts.first()?.end()).ok()?)));
    let Some((first, last)) = part.filter(|(_, last)| *last < whole) else {
        return (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, format!("bytes */{whole}"))]).into_response();
    };
    video.truncate(last + 1);
    video.drain(..first);
    (StatusCode::PARTIAL_CONTENT, described, [(header::CONTENT_RANGE, format!("bytes {first}-{last}/{whole}"))], video).into_response()
}
