//! `tracing` spans.
//!
//! Whether a subscriber does is one comparison with a number that `tracing` keeps; the span itself is made out of line.

use kiln_driver::StreamId;
use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Level, debug_span, span_enabled, trace_span};

/// Around one submission.
#[inline]
pub(crate) fn submission(stream: StreamId, command: &'static str) -> Option<EnteredSpan> {
    is_submission_heard().then(|| enter_submission(stream, command, ""))
}

/// Around the launch of a kernel.
pub(crate) fn launch(stream: StreamId, command: &'static str, kernel: &str) -> EnteredSpan {
    enter_submission(stream, command, kernel)
}

/// The number of what was submitted, once that is known.
#[inline]
pub(crate) fn numbered(span: Option<&EnteredSpan>, number: u64) {
    if let Some(span) = span {
        span.record("number", number);
    }
}

/// Whether a subscriber listens to submissions. Who is in a hurry asks this first and goes another way then, so that no span has to be ended.
#[inline(always)]
pub(crate) fn is_submission_heard() -> bool {
    LevelFilter::current() >= Level::TRACE && is_submission_enabled()
}

/// The same once it is known that a subscriber listens to something as fine.
#[cold]
#[inline(never)]
fn is_submission_enabled() -> bool {
    span_enabled!(target: "kiln", Level::TRACE)
}

#[cold]
#[inline(never)]
fn enter_submission(stream: StreamId, command: &'static str, kernel: &str) -> EnteredSpan {
    let kernel = if kernel.is_empty() { None } else { Some(kernel) };
    trace_span!(target: "kiln", "submit", %stream, command, kernel, number = tracing::field::Empty).entered()
}

/// Around a transfer between host and device.
pub(crate) fn transfer(stream: StreamId, direction: &'static str, bytes: usize) -> EnteredSpan {
    debug_span!(target: "kiln", "transfer", %stream, direction, bytes).entered()
}

/// Around a compilation.
pub(crate) fn compilation() -> EnteredSpan {
    debug_span!(target: "kiln", "compile").entered()
}

/// Around the building of a graph.
pub(crate) fn graph(nodes: usize, edges: usize) -> EnteredSpan {
    debug_span!(target: "kiln", "build graph", nodes, edges).entered()
}
