//! The text that is published.

use std::fmt::Write;
use std::time::{Instant, SystemTime};

use kiln_mem::{Budget, Heap, MemoryResourceExt};

use crate::counters::Count;
use crate::runtime::recording::repeat_command;
use crate::runtime::{Meters, process_runtimes};

/// The format of the text.
const FORMAT: u32 = 1;
/// Runtimes that are shown.
const MAX_RUNTIMES: usize = 64;
/// Tags of each that are shown, the largest.
const MAX_TAGS: usize = 12;
/// Bytes of a name.
const MAX_NAME: usize = 120;
/// Letters of the command.
const MAX_COMMAND: usize = 2000;

/// What is counted as a submission.
const SUBMISSIONS: [Count; 6] =
    [Count::Launches, Count::Replays, Count::Fills, Count::Uploads, Count::Downloads, Count::Copies];

/// What is known from one text to the next.
pub(super) struct Publication {
    program: String,
    /// How it is run again.
    command: String,
    /// What the command lacks to run it again, in words.
    lacks: String,
    started: u64,
    /// The submissions of each runtime, by its place, and when that was.
    before: Option<(Instant, Vec<u64>)>,
}

/// Whether there is no runtime.
pub(super) fn is_empty() -> bool {
    process_runtimes(|_| ()).0.is_empty()
}

impl Publication {
    pub(super) fn new() -> Self {
        let program = std::env::args_os().next().map(std::path::PathBuf::from);
        let program = program.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let repeat = repeat_command();
        let command = repeat.alone();
        let mut lacks = repeat.lacks().in_words("shown");
        if command.chars().nth(MAX_COMMAND).is_some() {
            let before = if lacks.is_empty() { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(lacks, "{before}only its first {MAX_COMMAND} letters are shown");
        }
        Self { program: program.unwrap_or_default(), command, lacks, started: started(), before: None }
    }

    /// What is published now; none if there is no runtime.
    pub(super) fn text(&mut self) -> Option<String> {
        let now = Instant::now();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut submissions = Vec::new();
        let before = self.before.take();
        let (runtimes, _) = process_runtimes(|meters| {
            let counts = meters.counts();
            let sum =
                SUBMISSIONS.iter().fold(0_u64, |sum, count| sum.saturating_add(counts[*count as usize]));
            let rate = before.as_ref().and_then(|(then, known)| {
                let (seconds, earlier) =
                    (now.duration_since(*then).as_secs_f64(), *known.get(submissions.len())?);
                (seconds > 0.0).then(|| sum.saturating_sub(earlier) as f64 / seconds)
            });
            submissions.push(sum);
            runtime(meters, sum, rate.unwrap_or(0.0))
        });
        self.before = Some((now, submissions));
        if runtimes.is_empty() {
            return None;
        }
        let shown: Vec<String> = runtimes.into_iter().take(MAX_RUNTIMES).collect();
        Some(format!(
            "{{\"format\":{FORMAT},\"process\":{},\"started\":{},\"program\":{},\"command\":{},\"command_lacks\":{},\"updated_ms\":{},\"runtimes\":[{}]}}\n",
            std::process::id(),
            self.started,
            quoted(&self.program, MAX_NAME),
            quoted(&self.command, MAX_COMMAND),
            quoted(&self.lacks, MAX_COMMAND),
            unix.as_millis(),
            shown.join(",")
        ))
    }
}

fn runtime(meters: &Meters, submissions: u64, rate: f64) -> String {
    let (device, memory) = (meters.device(), meters.accounting());
    let budget = Budget::of_device(meters.device());
    let limit = meters.limit_bytes().unwrap_or_else(|| budget.limit_bytes());
    let mut tags: Vec<(String, u64)> = Vec::new();
    if let Some(heap) = meters.memory().find::<Heap>() {
        let live = heap
            .counts_by_tag()
            .into_iter()
            .map(|(tag, counts)| (tag.name().to_owned(), counts.live_bytes()));
        tags = live.filter(|(_, bytes)| *bytes > 0).collect();
    }
    tags.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let tags: Vec<String> = tags
        .iter()
        .take(MAX_TAGS)
        .map(|(tag, bytes)| format!("{{\"tag\":{},\"bytes\":{bytes}}}", quoted(tag, MAX_NAME)))
        .collect();
    let status = meters.state().status();
    format!(
        "{{\"kind\":{},\"ordinal\":{},\"name\":{},\"uuid\":{},\"state\":{},\"faults\":{},\"limit_bytes\":{limit},\"live_bytes\":{},\"peak_bytes\":{},\"held_bytes\":{},\"streams\":{},\"submissions\":{submissions},\"submissions_per_second\":{rate:.1},\"tags\":[{}]}}",
        quoted(&device.kind.to_string().to_ascii_lowercase(), MAX_NAME),
        device.ordinal,
        quoted(&device.name, MAX_NAME),
        quoted(&device.uuid.to_string(), MAX_NAME),
        quoted(&status.phase().to_string(), MAX_NAME),
        meters.state().losses().len(),
        memory.live_bytes,
        memory.peak_live_bytes,
        memory.reserved_bytes,
        // The main stream is not leased.
        meters.pool().leased() + 1,
        tags.join(",")
    )
}

/// A text of JSON, cut where it is too long.
fn quoted(text: &str, limit: usize) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars().take(limit) {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            // Writing to a string cannot fail.
            control if control.is_control() => drop(write!(quoted, "\\u{:04x}", u32::from(control))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// When this process began, as the system counts it: a later process with the same number has another. 0 if that is not known.
fn started() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name stands in brackets and may have any letters.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
