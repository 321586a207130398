//! What is seen, as lines.

use kiln_trace::plain_text;

use super::Seen;
use super::entry::{Program, Runtime};
use super::gpu_figures::Gpu;
use crate::plural::counted;
use crate::table::bytes;

/// A bar has so many places.
const BAR: usize = 20;
/// Letters of a tag that are shown.
const TAG: usize = 24;

/// How a line is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// A program or a GPU.
    Head,
    Plain,
    /// A command, which is pasted elsewhere.
    Command,
    /// Something that is wrong.
    Alarm,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) look: Look,
    text: String,
}

impl Line {
    fn new(look: Look, text: impl AsRef<str>) -> Self {
        Self { look, text: plain_text(text.as_ref()).into_owned() }
    }

    /// The text alone.
    pub(super) fn plain(&self) -> &str {
        &self.text
    }
}

/// All lines.
pub(super) fn lines(seen: &Seen) -> Vec<Line> {
    let mut lines = Vec::new();
    if seen.programs.is_empty() && seen.not_seen.is_empty() {
        let folder = &seen.folder;
        lines.push(Line::new(
            Look::Plain,
            format!("No program publishes in {folder}; start one with KILN_TOP=1. It is seen while it has a runtime."),
        ));
    }
    if let Some(wrong) = &seen.folder_wrong {
        lines.push(Line::new(Look::Alarm, format!("{}: {wrong}", seen.folder)));
    }
    seen.not_seen.iter().for_each(|missing| lines.push(Line::new(Look::Alarm, &missing.why)));
    seen.programs.iter().for_each(|program| program_lines(program, &mut lines));
    for entry in &seen.unreadable_entries {
        lines.push(Line::new(Look::Alarm, format!("{} could not be read: {}", entry.file, entry.why)));
    }
    seen.gpus.iter().for_each(|gpu| gpu_lines(gpu, &mut lines));
    if let Some(absent) = &seen.gpus_absent {
        lines.push(Line::new(Look::Plain, format!("No figures of GPUs: {absent}")));
    }
    lines
}

fn program_lines(program: &Program, lines: &mut Vec<Line>) {
    let head = format!("{} (process {})", program.program, program.process);
    lines.push(Line::new(Look::Head, head));
    if !program.command.is_empty() {
        lines.push(Line::new(Look::Command, format!("  {}", program.command)));
    }
    if !program.command_lacks.is_empty() {
        lines.push(Line::new(Look::Plain, format!("    ({})", program.command_lacks)));
    }
    if program.is_silent {
        lines.push(Line::new(
            Look::Alarm,
            "  it has not published for more than 5 s: it is stopped, or its disk is full",
        ));
    }
    program.runtimes.iter().for_each(|runtime| runtime_lines(runtime, lines));
}

fn runtime_lines(runtime: &Runtime, lines: &mut Vec<Line>) {
    let Runtime { kind, ordinal, name, state, .. } = runtime;
    let look = if state == "ready" { Look::Plain } else { Look::Alarm };
    let streams = counted(runtime.streams, "stream");
    let rate = runtime.submissions_per_second;
    lines.push(Line::new(
        look,
        format!(
            "  {kind} {ordinal} ({name}): {state}, {streams}, {rate:.0} submissions/s, {} so far",
            runtime.submissions
        ),
    ));
    if runtime.faults > 0 {
        lines.push(Line::new(Look::Alarm, format!("    lost {}", counted(runtime.faults, "time"))));
    }
    let (live, limit) = (bytes(runtime.live_bytes), bytes(runtime.limit_bytes));
    let (held, peak) = (bytes(runtime.held_bytes), bytes(runtime.peak_bytes));
    let bar = bar(runtime.live_bytes, runtime.limit_bytes);
    lines.push(Line::new(
        Look::Plain,
        format!("    {bar} {live} of {limit} in use, {held} held, peak {peak}"),
    ));
    for tag in &runtime.tags {
        let name = if tag.tag.is_empty() { "without a tag" } else { &tag.tag };
        let name: String = plain_text(name).chars().take(TAG).collect();
        let bar = self::bar(tag.bytes, runtime.live_bytes);
        lines.push(Line::new(Look::Plain, format!("      {bar} {name:<TAG$} {}", bytes(tag.bytes))));
    }
}

fn gpu_lines(gpu: &Gpu, lines: &mut Vec<Line>) {
    lines.push(Line::new(Look::Head, format!("{} ({})", gpu.name, gpu.uuid)));
    let mut text = "  ".to_owned();
    if let (Some(used), Some(total)) = (gpu.used_bytes, gpu.total_bytes) {
        text += &format!("{} {} of {} in use by all; ", bar(used, total), bytes(used), bytes(total));
    }
    let known =
        |value: Option<u32>, unit: &str| value.map_or("?".to_owned(), |value| format!("{value}{unit}"));
    let watts = gpu.power_milliwatts.map(|milliwatts| milliwatts / 1000);
    let (busy, degrees) = (known(gpu.busy_percent, " %"), known(gpu.temperature, " °C"));
    text += &format!("busy {busy}, {degrees}, {}", known(watts, " W"));
    lines.push(Line::new(Look::Plain, text));
}

/// A part of a whole as a bar.
fn bar(part: u64, whole: u64) -> String {
    let places = (u128::from(part) * BAR as u128).checked_div(u128::from(whole)).unwrap_or(0).min(BAR as u128)
        as usize;
    // What is there at all is seen.
    let places = if part > 0 { places.max(1) } else { places };
    format!("[{}{}]", "#".repeat(places), ".".repeat(BAR - places))
}
