//! The log of a run: trace, timeline and findings.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::time::Duration;

use kiln_driver::{DeviceFinding, Error, ErrorKind, Site, StreamId, Submission};

use crate::check::access_origin::Actor;
use crate::check::finding::Finding;
use crate::machine_config::{MachineLimits, Mode};

/// When a piece of work ran, on the virtual clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimelineSpan {
    /// The ordinal of the device.
    pub device: u32,
    /// The stream.
    pub stream: StreamId,
    /// Its number on the stream.
    pub submission: Submission,
    /// The node, if it was part of a graph.
    pub node: Option<u32>,
    /// What it was, such as `launch axpy`.
    pub label: String,
    /// When it began.
    pub start: Duration,
    /// When it was done.
    pub end: Duration,
}

#[derive(Debug)]
pub(crate) struct Journal {
    mode: Mode,
    limits: MachineLimits,
    trace: String,
    spans: Vec<TimelineSpan>,
    findings: Vec<Finding>,
    seen: BTreeSet<String>,
    /// Findings that no call has answered yet, with their devices.
    unread: VecDeque<(u32, Error)>,
    dropped: u64,
    pub(crate) commands: u64,
    printed: Vec<u8>,
    printed_left_out_bytes: u64,
}

impl Journal {
    pub(crate) fn new(mode: Mode, limits: MachineLimits) -> Self {
        let mut journal = Self {
            mode,
            limits,
            trace: String::new(),
            spans: Vec::new(),
            findings: Vec::new(),
            seen: BTreeSet::new(),
            unread: VecDeque::new(),
            dropped: 0,
            commands: 0,
            printed: Vec::new(),
            printed_left_out_bytes: 0,
        };
        let mode = journal.mode.clone();
        journal.write(0, format_args!("machine with {mode}"));
        journal
    }

    /// Text that kernels printed, up to its limit.
    pub(crate) fn printed(&self) -> &[u8] {
        &self.printed
    }

    pub(crate) fn take_printed(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.printed)
    }

    pub(crate) fn print(&mut self, text: &[u8]) {
        let room = self.limits.printed_bytes.saturating_sub(self.printed.len());
        let (kept, rest) = text.split_at(text.len().min(room));
        self.printed.extend_from_slice(kept);
        self.printed_left_out_bytes += rest.len() as u64;
    }

    /// Counts findings, and bytes of text, that an engine did not keep.
    pub(crate) fn leave_out(&mut self, (findings, printed_bytes): (u64, u64)) {
        self.dropped += findings;
        self.printed_left_out_bytes += printed_bytes;
    }

    /// How many bytes kernels printed beyond the limit.
    pub(crate) fn printed_left_out_bytes(&self) -> u64 {
        self.printed_left_out_bytes
    }

    /// Whether lines are kept, so that none is formatted in vain.
    pub(crate) fn is_tracing(&self) -> bool {
        self.trace.len() < self.limits.trace_bytes
    }

    pub(crate) fn write(&mut self, now_ns: u64, line: std::fmt::Arguments<'_>) {
        if !self.is_tracing() {
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.trace, "{now_ns:>12} {line}");
        if !self.is_tracing() {
            self.trace.push_str("             the trace ends here: its limit is reached\n");
        }
    }

    pub(crate) fn span(&mut self, actor: &Actor, start_ns: u64, end_ns: u64) {
        let (Some(stream), Some(submission)) = (actor.stream, actor.submission) else { return };
        self.write(end_ns, format_args!("ran {actor} from {start_ns}"));
        if self.spans.len() < self.limits.spans {
            self.spans.push(TimelineSpan {
                device: actor.device,
                stream,
                submission,
                node: actor.node,
                label: actor.action.to_string(),
                start: Duration::from_nanos(start_ns),
                end: Duration::from_nanos(end_ns),
            });
        }
    }

    /// Keeps a finding, once for each pair of actors and block.
    pub(crate) fn find(&mut self, now_ns: u64, finding: Finding) {
        let identity =
            format!("{:?} {} {:?} {:?}", finding.kind, finding.subject, finding.first, finding.second);
        if self.seen.contains(&identity) {
            return;
        }
        if self.unread.len() < self.limits.findings {
            self.unread.push_back((finding.device, finding.error()));
        }
        if self.findings.len() >= self.limits.findings {
            self.dropped += 1;
            return;
        }
        self.seen.insert(identity);
        self.write(now_ns, format_args!("FOUND {finding}"));
        self.findings.push(finding);
    }

    /// Marks what a piece of work was found to do as the reason why its device was lost.
    pub(crate) fn mark_fatal(&mut self, device: u32, site: &Site) {
        let of_it = |(of, error): &&mut (u32, Error)| *of == device && error.site() == Some(site);
        for (_, error) in self.unread.iter_mut().filter(of_it) {
            if let Some(finding) = error.finding() {
                let fatal = DeviceFinding { fatal: true, ..finding.clone() };
                *error = Error::new(error.call(), ErrorKind::Finding(fatal)).at(site.clone());
            }
        }
    }

    /// The oldest finding of a device that was not asked for yet.
    pub(crate) fn next_unread(&mut self, device: u32) -> Option<Error> {
        let at = self.unread.iter().position(|(of, _)| *of == device)?;
        self.unread.remove(at).map(|(_, error)| error)
    }

    pub(crate) fn mode(&self) -> &Mode {
        &self.mode
    }

    pub(crate) fn trace(&self) -> &str {
        &self.trace
    }

    pub(crate) fn spans(&self) -> &[TimelineSpan] {
        &self.spans
    }

    pub(crate) fn take_spans(&mut self) -> Vec<TimelineSpan> {
        std::mem::take(&mut self.spans)
    }

    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
