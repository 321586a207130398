//! The words that the book sends its readers to are those of explanations and traces.

use std::io::Cursor;

use kiln_trace::{RecordingReader, SubmissionKind, SubmissionRecord, TraceEvent, export_perfetto};

use crate::explain::explained;
use crate::samples::{all_kinds, asked, kernel, recorded, span, stamp};

/// The page of the book, whose table says where each answer is.
const PAGE: &str = include_str!("../../../../docs/book/src/recording.md");
/// A view of the page that shows recordings.
const OF_THE_PAGE: [&str; 1] = ["Faults"];

/// What stands between asterisks in the table.
fn published() -> Vec<&'static str> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with("| question |"));
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('*').skip(1).step_by(2)).collect()
}

#[test]
fn the_words_of_the_book_are_in_explanations_or_traces() {
    let waits = [
        kernel("produce", stamp(4, 1), 10, 3_300, span(3_400, 9_000)),
        asked(stamp(5, 1), stamp(4, 1)),
        kernel("consume", stamp(5, 1), 20, 3_310, span(9_000, 9_500)),
    ];
    let TraceEvent::Submission(product) = kernel("blas.matmul", stamp(6, 1), 30, 3_400, span(9_500, 9_900))
    else {
        panic!("a submission")
    };
    let product = TraceEvent::Submission(SubmissionRecord { kind: SubmissionKind::Library, ..product });
    let events = [all_kinds(), waits.to_vec(), vec![product]].concat();
    let text = explained(&events).to_string();
    let mut trace = Vec::new();
    let mut reader = RecordingReader::new(Cursor::new(recorded(&events, 5))).unwrap();
    export_perfetto(&mut reader, &mut trace).unwrap();
    let is_traced = |words: &str| trace.windows(words.len()).any(|bytes| bytes == words.as_bytes());
    let published = published();
    assert!(published.len() >= 11, "{published:?}");
    for words in published.iter().filter(|words| !OF_THE_PAGE.contains(words)) {
        assert!(text.contains(words) || is_traced(words), "{words}: {text}");
    }
}
