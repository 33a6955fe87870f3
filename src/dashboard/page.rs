//! The files of the page. They are part of the program, so that it needs no other origin and no folder of files.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, media type and content of each file. `uplot` draws the charts (<https://github.com/leeoniya/uPlot>, version
/// 1.6.32, as it was published).
const FILES: [(&str, &str, &str); 14] = [
    ("", HTML, include_str!("page/index.html")),
    ("style.css", STYLE, include_str!("page/style.css")),
    ("main.js", SCRIPT, include_str!("page/main.js")),
    ("run.js", SCRIPT, include_str!("page/run.js")),
    ("panels.js", SCRIPT, include_str!("page/panels.js")),
    ("columns.js", SCRIPT, include_str!("page/columns.js")),
    ("charts.js", SCRIPT, include_str!("page/charts.js")),
    ("compare.js", SCRIPT, include_str!("page/compare.js")),
    ("keep.js", SCRIPT, include_str!("page/keep.js")),
    ("watch.js", SCRIPT, include_str!("page/watch.js")),
    ("words.js", SCRIPT, include_str!("page/words.js")),
    ("uplot.js", SCRIPT, include_str!("page/uplot.js")),
    ("uplot.css", STYLE, include_str!("page/uplot.css")),
    ("uplot.LICENSE", "text/plain; charset=utf-8", include_str!("page/uplot.LICENSE")),
];

/// Answers with the file `name`.
pub(super) fn file(name: &str) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, media_type, content)) => ([(header::CONTENT_TYPE, *media_type)], *content).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
