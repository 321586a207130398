//! What the demo did, and the results of its checks.

use std::fmt::Write;

use kiln_driver::DeviceKind;
use serde::Serialize;

use super::device::Closed;
use super::timeline::{self, Bar};
use super::workload::{ELEMENTS, TILES, Work};
use crate::exit_code::Exit;
use crate::line_wrap::{wrap, wrap_behind};

/// The report of the demo.
#[derive(Serialize)]
pub(crate) struct Report {
    device: DeviceLine,
    seed: u64,
    tiles: usize,
    elements_per_tile: usize,
    checks: Vec<Check>,
    timeline: Vec<Span>,
    /// Submissions that are missing in the timeline.
    unmeasured: u64,
    /// Findings in the pipeline that lacks a dependency.
    twin_findings: Vec<String>,
    exit: u8,
    #[serde(skip)]
    rows: Vec<String>,
    #[serde(skip)]
    bars: Vec<Bar>,
}

#[derive(Serialize)]
struct DeviceLine {
    kind: String,
    ordinal: u32,
    name: String,
    capability: String,
    chosen: String,
}

/// A check and its result.
#[derive(Serialize)]
struct Check {
    what: &'static str,
    passed: bool,
    detail: String,
}

#[derive(Serialize)]
struct Span {
    stream: String,
    work: timeline::Work,
    start_ns: u64,
    end_ns: u64,
}

impl Report {
    /// Puts everything together.
    pub(crate) fn new(closed: Closed, work: Work, twin: kiln_sim::SimReport, seed: u64) -> Self {
        let mut checks = vec![results(&work)];
        checks.extend(closed.findings.as_ref().map(clean));
        checks.push(caught(&twin));
        let exit = if checks.iter().all(|check| check.passed) { Exit::Done } else { Exit::Fault };
        let info = closed.info;
        Self {
            device: DeviceLine {
                kind: info.kind.to_string(),
                ordinal: info.ordinal,
                name: info.name,
                capability: info.capability.to_string(),
                chosen: closed.reason,
            },
            seed,
            tiles: TILES,
            elements_per_tile: ELEMENTS,
            checks,
            timeline: spans(&work),
            unmeasured: work.unmeasured,
            twin_findings: twin.findings.iter().map(ToString::to_string).collect(),
            exit: exit.code(),
            rows: work.rows,
            bars: work.bars,
        }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        if self.exit == Exit::Done.code() { Exit::Done } else { Exit::Fault }
    }

    /// The report as text.
    pub(crate) fn text(&self, columns: usize, colours: bool) -> String {
        let DeviceLine { kind, ordinal, name, capability, chosen } = &self.device;
        let title =
            format!("kiln demo on {kind} device {ordinal}: {name}, capability {capability} ({chosen})");
        let plan = format!(
            "{} tiles of {} elements, seed {}: 2 uploads, 2 kernels and 1 download each, ordered by what they read and write",
            self.tiles, self.elements_per_tile, self.seed
        );
        let mut text = format!("{}\n{}\n\n", wrap(&title, columns), wrap(&plan, columns));
        let time = if *kind == DeviceKind::Simulated.to_string() { "virtual time" } else { "device time" };
        let _ = writeln!(text, "{}\n({time})\n", timeline::draw(&self.rows, &self.bars, columns, colours));
        text += "The same with one dependency left out on purpose, on the simulated device:\n";
        for finding in &self.twin_findings {
            let _ = writeln!(text, "{}", wrap_behind("  found: ", finding, columns));
        }
        text += "\nChecks:";
        for Check { what, passed, detail } in &self.checks {
            let mark = match (passed, colours) {
                (true, false) => "ok    ",
                (false, false) => "FAILED",
                (true, true) => "\x1b[32mok\x1b[0m    ",
                (false, true) => "\x1b[31mFAILED\x1b[0m",
            };
            let _ = write!(
                text,
                "\n{}",
                wrap_behind(&format!("  {mark} "), &format!("{what}: {detail}"), columns)
            );
        }
        text
    }
}

fn results(work: &Work) -> Check {
    let what = "results";
    match &work.mismatch {
        None => {
            let detail = format!("{} elements equal the host's, bit by bit", work.compared);
            Check { what, passed: true, detail }
        }
        Some(mismatch) => Check { what, passed: false, detail: mismatch.clone() },
    }
}

fn clean(report: &kiln_sim::SimReport) -> Check {
    let detail = match report.is_clean() {
        true => format!("{} commands: no race, no use out of bounds or after free, no leak", report.commands),
        false => report.to_string(),
    };
    Check { what: "every access", passed: report.is_clean(), detail }
}

fn caught(twin: &kiln_sim::SimReport) -> Check {
    let races = twin.findings.iter().filter(|finding| finding.kind.is_race()).count();
    let detail = match races {
        0 => "the dependency that was left out was not found".into(),
        _ => "the dependency that was left out was found, as intended".to_owned(),
    };
    Check { what: "the checker", passed: races > 0, detail }
}

fn spans(work: &Work) -> Vec<Span> {
    let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let span = |bar: &Bar| Span {
        stream: work.rows.get(bar.row).cloned().unwrap_or_default(),
        work: bar.work,
        start_ns: nanoseconds(bar.start),
        end_ns: nanoseconds(bar.end),
    };
    work.bars.iter().map(span).collect()
}
