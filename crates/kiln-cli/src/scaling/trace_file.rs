//! A file of recorded collectives, as text or as JSON.

use std::path::Path;
use std::time::Duration;

use kiln::group::{CollectiveKind, CollectiveTrace, TracedCollective};
use serde::Deserialize;

use crate::failure::{Failure, Place};
use crate::text_file::read_text;

/// A step as JSON has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    kind: String,
    bytes: Option<u64>,
    #[serde(default = "once")]
    count: u64,
    #[serde(default)]
    compute_ns: u64,
    #[serde(default)]
    overlap: bool,
}

fn once() -> u64 {
    1
}

/// Reads a trace.
///
/// # Errors
/// A file that cannot be read; something that is no trace, with its line; no collective in it.
pub(super) fn read(path: &Path) -> Result<CollectiveTrace, Failure> {
    let text = read_text(path).map_err(|failure| match path.exists() {
        true => failure,
        false => failure.next(
            "record the collectives of a program with `kiln::group::CollectiveTrace`, or write lines such as `all_reduce bytes=4MB count=12 compute=1.5ms`",
        ),
    })?;
    let trace = match text.trim_start().starts_with('[') {
        true => from_json(path, &text)?,
        false => text.parse().map_err(|error: kiln::group::CollectiveTraceError| {
            let place = Place::in_line(path, error.line as u64);
            let next = "write lines such as `all_reduce bytes=4MB count=12 compute=1.5ms`";
            Failure::file(path, &error.what).at(place).next(next)
        })?,
    };
    match trace.steps().is_empty() {
        true => Err(Failure::file(path, "it has no collective").next("record one, or write it by hand")),
        false => Ok(trace),
    }
}

fn from_json(path: &Path, text: &str) -> Result<CollectiveTrace, Failure> {
    let steps: Vec<Step> = serde_json::from_str(text).map_err(|error| {
        let place =
            Place { column: Some(error.column() as u64), ..Place::in_line(path, error.line() as u64) };
        Failure::file(path, error).at(place)
    })?;
    let step = |(at, step): (usize, Step)| {
        let Step { kind, bytes, count, compute_ns, overlap } = step;
        let known = TracedCollective::kind_named(&kind).ok_or_else(|| {
            Failure::file(path, format!("step {at} is `{kind}`, which is no collective"))
                .next("use a name such as all_reduce, all_gather or broadcast")
        })?;
        if count == 0 {
            let what = format!("step {at} has the count 0");
            return Err(Failure::file(path, what).next("give a count of 1 or more, or leave the step out"));
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None if known == CollectiveKind::Barrier => 0,
            None => {
                let what = format!("step {at}, `{kind}`, has no bytes");
                return Err(Failure::file(path, what).next("give the bytes of the larger buffer"));
            }
        };
        let compute = Duration::from_nanos(compute_ns);
        Ok(TracedCollective { kind: known, bytes, count, compute, overlaps: overlap })
    };
    steps.into_iter().enumerate().map(step).collect::<Result<Vec<_>, _>>().map(CollectiveTrace::new)
}
