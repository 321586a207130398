//! What a kernel executed, for `kiln run --stats`.

use std::fmt::Write;

use kiln_ptx::exec::{ExecutionCounts, LineStatistics, MemoryBytes, StatisticsReport};
use serde::Serialize;

use crate::demangled_name::readable;
use crate::plural::counted;
use crate::table::{Table, bytes};

/// The most lines that are listed.
const MAX_LINES: usize = 10;

/// What one kernel executed.
#[derive(Serialize)]
pub(super) struct KernelStatistics {
    kernel: String,
    #[serde(flatten)]
    total: Counts,
    bytes: Bytes,
    kinds: Vec<Kind>,
    /// The lines with the most warp instructions.
    lines: Vec<Line>,
    /// How many lines were executed.
    lines_executed: usize,
}

/// What some instructions did.
#[derive(Serialize)]
struct Counts {
    warp_instructions: u64,
    thread_instructions: u64,
    /// Threads that were with their warp, and threads that each warp has, at each instruction.
    active_threads: u64,
    warp_threads: u64,
    global_requests: u64,
    global_sectors: u64,
    ideal_sectors: u64,
    shared_requests: u64,
    shared_wavefronts: u64,
    ideal_wavefronts: u64,
    atomic_updates: u64,
    atomic_passes: u64,
    barriers: u64,
}

#[derive(Serialize)]
struct Bytes {
    global_loaded: u64,
    global_stored: u64,
    shared_loaded: u64,
    shared_stored: u64,
    local_loaded: u64,
    local_stored: u64,
    constant_loaded: u64,
    parameter_loaded: u64,
}

#[derive(Serialize)]
struct Kind {
    kind: &'static str,
    warp_instructions: u64,
    thread_instructions: u64,
}

#[derive(Serialize)]
struct Line {
    file: String,
    line: u32,
    #[serde(flatten)]
    counts: Counts,
}

impl KernelStatistics {
    pub(super) fn new(kernel: String, report: &StatisticsReport) -> Self {
        let kind = |(kind, counts): &(kiln_ptx::exec::InstructionKind, ExecutionCounts)| Kind {
            kind: kind.name(),
            warp_instructions: counts.warp_instructions,
            thread_instructions: counts.thread_instructions,
        };
        let line = |line: &LineStatistics| Line {
            file: line.file.clone(),
            line: line.line,
            counts: Counts::of(&line.counts),
        };
        Self {
            kernel,
            total: Counts::of(&report.total),
            bytes: Bytes::of(&report.total.bytes),
            kinds: report.kinds.iter().map(kind).collect(),
            lines: report.lines.iter().take(MAX_LINES).map(line).collect(),
            lines_executed: report.lines.len(),
        }
    }

    /// As text, without a line end behind it.
    pub(super) fn render(&self, columns: usize) -> String {
        let total = &self.total;
        let mut text = format!("executed by {}", readable(&self.kernel));
        let _ = write!(
            text,
            "\n  {} of threads, {} of warps: {:.1} of {:.1} lanes active, {:.1} execute",
            counted(total.thread_instructions, "instruction"),
            total.warp_instructions,
            per(total.active_threads, total.warp_instructions),
            per(total.warp_threads, total.warp_instructions),
            per(total.thread_instructions, total.warp_instructions),
        );
        for line in total.memory_lines() {
            let _ = write!(text, "\n  {line}");
        }
        let mut kinds = Table::new(&["kind", "#of warps", "#of threads", "#share"]);
        for kind in &self.kinds {
            kinds.row([
                kind.kind.to_owned(),
                kind.warp_instructions.to_string(),
                kind.thread_instructions.to_string(),
                percent(kind.thread_instructions, total.thread_instructions),
            ]);
        }
        let _ = write!(text, "\n{}", kinds.render(columns));
        let mut memory = Table::new(&["memory", "#loaded", "#stored"]);
        for (name, loaded, stored) in self.bytes.rows() {
            if loaded + stored > 0 {
                memory.row([name.to_owned(), bytes(loaded), bytes(stored)]);
            }
        }
        let _ = write!(text, "\n{}", memory.render(columns));
        if !self.lines.is_empty() {
            let _ = write!(text, "\n{}", self.line_table().render(columns));
        }
        if self.lines_executed > self.lines.len() {
            let _ = write!(
                text,
                "\n  and {} more",
                counted((self.lines_executed - self.lines.len()) as u64, "line")
            );
        }
        text
    }

    fn line_table(&self) -> Table {
        let mut table = Table::new(&[
            "line",
            "#of warps",
            "#share",
            "#lanes",
            "#sectors",
            "#ideal",
            "#wavefronts",
            "#ideal",
        ]);
        let number = |requests: u64, count: u64| if requests > 0 { count.to_string() } else { String::new() };
        for Line { file, line, counts } in &self.lines {
            let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
            table.row([
                format!("{file}:{line}"),
                counts.warp_instructions.to_string(),
                percent(counts.warp_instructions, self.total.warp_instructions),
                format!("{:.1}", per(counts.active_threads, counts.warp_instructions)),
                number(counts.global_requests, counts.global_sectors),
                number(counts.global_requests, counts.ideal_sectors),
                number(counts.shared_requests, counts.shared_wavefronts),
                number(counts.shared_requests, counts.ideal_wavefronts),
            ]);
        }
        table
    }
}

impl Counts {
    fn of(counts: &ExecutionCounts) -> Self {
        Self {
            warp_instructions: counts.warp_instructions,
            thread_instructions: counts.thread_instructions,
            active_threads: counts.active_threads,
            warp_threads: counts.warp_threads,
            global_requests: counts.global_requests,
            global_sectors: counts.global_sectors,
            ideal_sectors: counts.ideal_sectors,
            shared_requests: counts.shared_requests,
            shared_wavefronts: counts.shared_wavefronts,
            ideal_wavefronts: counts.ideal_wavefronts,
            atomic_updates: counts.atomic_updates,
            atomic_passes: counts.atomic_passes,
            barriers: counts.barriers,
        }
    }

    /// What there is to say about memory and barriers.
    fn memory_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.global_requests > 0 {
            lines.push(format!(
                "global memory: {}, {:.1} sectors of 32 bytes for each, {:.1} would hold the bytes",
                counted(self.global_requests, "request"),
                per(self.global_sectors, self.global_requests),
                per(self.ideal_sectors, self.global_requests),
            ));
        }
        if self.shared_requests > 0 {
            lines.push(format!(
                "shared memory: {}, {:.1} wavefronts for each, {:.1} without bank conflicts",
                counted(self.shared_requests, "request"),
                per(self.shared_wavefronts, self.shared_requests),
                per(self.ideal_wavefronts, self.shared_requests),
            ));
        }
        if self.atomic_updates > 0 {
            lines.push(format!(
                "atomics: {} of threads, in {} one after the other",
                counted(self.atomic_updates, "update"),
                counted(self.atomic_passes, "round"),
            ));
        }
        if self.barriers > 0 {
            lines.push(format!("barriers: {} of warps", counted(self.barriers, "arrival")));
        }
        lines
    }
}

impl Bytes {
    fn of(bytes: &MemoryBytes) -> Self {
        Self {
            global_loaded: bytes.global_loaded,
            global_stored: bytes.global_stored,
            shared_loaded: bytes.shared_loaded,
            shared_stored: bytes.shared_stored,
            local_loaded: bytes.local_loaded,
            local_stored: bytes.local_stored,
            constant_loaded: bytes.constant_loaded,
            parameter_loaded: bytes.parameter_loaded,
        }
    }

    fn rows(&self) -> [(&'static str, u64, u64); 5] {
        [
            ("global", self.global_loaded, self.global_stored),
            ("shared", self.shared_loaded, self.shared_stored),
            ("local", self.local_loaded, self.local_stored),
            ("constant", self.constant_loaded, 0),
            ("parameters", self.parameter_loaded, 0),
        ]
    }
}

fn per(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

fn percent(count: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * per(count, of))
}
