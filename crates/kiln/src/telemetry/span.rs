//! Spans for a program that listens.
//!
//! Whether anybody does is one comparison with a number that `tracing` keeps; the span itself is made out of line.

use kiln_driver::StreamId;
use tracing::span::EnteredSpan;
use tracing::{Level, debug_span, span_enabled, trace_span};

/// Around one submission.
#[inline]
pub(crate) fn submission(stream: StreamId, command: &'static str) -> Option<EnteredSpan> {
    #[cold]
    fn span(stream: StreamId, command: &'static str) -> EnteredSpan {
        trace_span!(target: "kiln", "submit", %stream, command).entered()
    }
    span_enabled!(target: "kiln", Level::TRACE).then(|| span(stream, command))
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
