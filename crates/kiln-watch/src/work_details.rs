//! What is known of one work, and why there is a gap before it.
//!
//! The sentences are those of `kiln explain`: the same types say them.

use kiln_trace::{
    IdleReason, IdleWhy, LaunchSize, StreamStall, SubmissionKind, SubmissionRecord, TimeSpan, TraceEvent,
    TraceStamp, TraceStream, WaitReason, WorkName, plain_text,
};
use serde::Serialize;

use crate::decoded_page::for_each_event;
use crate::page_table::Page;
use crate::timeline_row::RowKind;
use crate::watch_error::WatchError;
use crate::watched_recording::{Shared, WatchedRecording};

/// Waits that are listed.
const MAX_WAITS: usize = 32;

/// Why the first work of a stream did not begin, where the recording began later than the work of its device.
const EARLIER: &str = "The stream still had work that was submitted before the recording began.";

/// What is known of one work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkDetails {
    /// Its row.
    pub row: u32,
    /// Its number on the stream; of a thread, the number of its wait.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What kind of work it is, in a word.
    pub kind: &'static str,
    /// Which line submitted it.
    pub line: Option<String>,
    /// The shape of a launch: grid, block, bytes of shared memory.
    pub size: Option<([u32; 3], [u32; 3], u32)>,
    /// Bytes that are moved or written.
    pub bytes: u64,
    /// When the host submitted it.
    pub host_ns: (u64, u64),
    /// When the device ran it, if that was measured.
    pub device_ns: Option<(u64, u64)>,
    /// The gap before it.
    pub gap: Option<GapDetails>,
}

/// Why there is a gap before a work.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GapDetails {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Why, in sentences; what took longest comes first.
    pub sentences: Vec<String>,
    /// What the work had to wait for, whether it took time or not.
    pub waits: Vec<WaitDetails>,
}

/// What a work had to wait for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WaitDetails {
    /// Why.
    pub reason: &'static str,
    /// The block of memory it is about.
    pub block: Option<u64>,
    /// Its tag.
    pub tag: String,
    /// The work that had to come first.
    pub writer: String,
    /// The device it ran on.
    pub device: u32,
    /// Its stream.
    pub stream: u32,
    /// Its number.
    pub number: u64,
    /// Its row, if it has one.
    pub row: Option<u32>,
    /// Which line submitted it.
    pub line: Option<String>,
    /// When it ended, if that was measured.
    pub end_ns: Option<u64>,
    /// Which line asked for the wait, where the program did.
    pub asked_at: Option<String>,
    /// The later work that was waited for as well, if there is any.
    pub unrelated: Option<String>,
}

/// A work that was found in the file.
#[derive(Clone)]
pub(crate) struct FoundWork {
    stamp: TraceStamp,
    name: String,
    line: Option<String>,
    kind: SubmissionKind,
    size: Option<LaunchSize>,
    bytes: u64,
    host: TimeSpan,
    device: Option<TimeSpan>,
}

/// A wait that was found in the file.
struct FoundWait {
    waiter: u64,
    writer: TraceStamp,
    covers: u64,
    reason: WaitReason,
    block: Option<(u64, String)>,
    line: Option<String>,
}

impl WatchedRecording {
    /// What is known of a work.
    ///
    /// # Errors
    /// No such work; a file that cannot be read any more.
    pub fn work(&self, row: u32, number: u64) -> Result<WorkDetails, WatchError> {
        let shared = self.read();
        let unknown = WatchError::Unknown("there is no such work");
        let known = shared.index.rows.get(row as usize).ok_or(WatchError::Unknown("there is no such row"))?;
        let stream = match known.kind {
            RowKind::Stream { device, stream } => TraceStream { device, stream },
            RowKind::Thread { .. } => return self.thread_wait(&shared, row, known.kind, number),
        };
        let stamp = TraceStamp { stream, number };
        let Some(work) = self.found(&shared, stamp)?.filter(|work| work.stamp == stamp) else {
            return Err(unknown);
        };
        let gap = self.gap(&shared, row, &work)?;
        Ok(WorkDetails {
            row,
            number,
            name: work.name,
            kind: kind_word(work.kind),
            line: work.line,
            size: work.size.map(|size| (size.grid, size.block, size.shared_bytes)),
            bytes: work.bytes,
            host_ns: (work.host.begin_ns, work.host.end_ns),
            device_ns: work.device.map(|span| (span.begin_ns, span.end_ns)),
            gap,
        })
    }

    /// A wait of a thread.
    fn thread_wait(
        &self,
        shared: &Shared,
        row: u32,
        kind: RowKind,
        number: u64,
    ) -> Result<WorkDetails, WatchError> {
        let mut found = None;
        for page in pages_with(shared, row, number) {
            let mut next = page.row(row).map_or(0, |row| row.numbers.0);
            self.events(shared, page, |event| {
                if let TraceEvent::HostWait(wait) = event
                    && shared.index.row_of_wait(wait) == kind
                {
                    if next == number {
                        let line = wait.line.map(|line| line.to_string());
                        found = Some((wait.cause, wait.span, line, wait.awaited));
                    }
                    next += 1;
                }
            })?;
        }
        let (cause, span, line, awaited) = found.ok_or(WatchError::Unknown("there is no such wait"))?;
        let mut sentences = Vec::new();
        if let Some(stamp) = awaited {
            let awaited = self.found(shared, stamp)?.filter(|work| work.stamp == stamp);
            let name = awaited.map_or_else(|| named("", stamp), |work| work.work_name());
            sentences.push(format!("The thread waited for {name}."));
        }
        let gap = GapDetails { begin_ns: span.begin_ns, end_ns: span.end_ns, sentences, waits: Vec::new() };
        Ok(WorkDetails {
            row,
            number,
            name: cause.words().to_owned(),
            kind: "wait of the program",
            line,
            size: None,
            bytes: 0,
            host_ns: (span.begin_ns, span.end_ns),
            device_ns: None,
            gap: Some(gap),
        })
    }

    /// The gap before a work; none if its time was not measured.
    fn gap(&self, shared: &Shared, row: u32, work: &FoundWork) -> Result<Option<GapDetails>, WatchError> {
        let Some(ran) = work.device else { return Ok(None) };
        let before = match work.stamp.number.checked_sub(1) {
            Some(number) => self.found(shared, TraceStamp { number, ..work.stamp })?,
            None => None,
        };
        let ended = before.as_ref().and_then(|before| before.device).map(|span| span.end_ns);
        let after = before.map_or(0, |before| before.stamp.number);
        let waits = self.waits(shared, row, after, work.stamp)?;
        let begin = ended.unwrap_or(work.host.end_ns).min(ran.begin_ns);
        let ready = work.host.end_ns.clamp(begin, ran.begin_ns);
        let mut parts: Vec<(u64, String)> = Vec::new();
        let mut listed = Vec::new();
        let mut longest: Option<(u64, StreamStall)> = None;
        for wait in waits {
            let (details, stall) = self.stall(shared, &wait, work, ready, ran.begin_ns)?;
            listed.push(details);
            if let Some(stall) = stall
                && longest.as_ref().is_none_or(|(ns, _)| stall.ns > *ns)
            {
                longest = Some((stall.ns, stall));
            }
        }
        let waited = longest.as_ref().map_or(0, |(ns, _)| *ns);
        parts.extend(longest.map(|(ns, stall)| (ns, stall.to_string())));
        if ready > begin {
            parts.extend(self.starved(shared, work, begin, ready)?);
        }
        let earlier = if after == 0 { shared.index.earlier.get(&work.stamp.stream) } else { None };
        let earlier = earlier.map_or(0, |until| TimeSpan::new(ready, *until).within(ready, ran.begin_ns));
        if earlier > waited {
            parts.push((earlier, EARLIER.to_owned()));
        }
        let left = (ran.begin_ns - ready).saturating_sub(waited.max(earlier));
        if left > 0 {
            parts.push((left, idle(IdleWhy::Start, work, left)));
        }
        parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let sentences = parts.into_iter().map(|(_, text)| text).collect();
        Ok(Some(GapDetails { begin_ns: begin, end_ns: ran.begin_ns, sentences, waits: listed }))
    }

    /// What one wait cost a work that was ready, and what is known of it.
    fn stall(
        &self,
        shared: &Shared,
        wait: &FoundWait,
        work: &FoundWork,
        ready: u64,
        began: u64,
    ) -> Result<(WaitDetails, Option<StreamStall>), WatchError> {
        let covered = TraceStamp { number: wait.covers.max(wait.writer.number), ..wait.writer };
        let writer = self.found(shared, wait.writer)?.filter(|found| found.stamp == wait.writer);
        let last = if covered == wait.writer { writer.clone() } else { self.found(shared, covered)? };
        // Where what was needed is not in the recording, what came after it is not known either.
        let is_known = writer.as_ref().is_some_and(|writer| writer.device.is_some());
        let is_unrelated = is_known && last.as_ref().is_some_and(|last| last.stamp != wait.writer);
        let clock = |stamp: TraceStamp| shared.index.clock_of(stamp.stream.device);
        let is_comparable = clock(wait.writer) == clock(work.stamp);
        let ended = last.as_ref().and_then(|last| last.device).filter(|_| is_comparable);
        let ended = ended.map(|span| span.end_ns.min(began));
        let needed =
            writer.as_ref().and_then(|writer| writer.device).map_or(ready, |span| span.end_ns.max(ready));
        let unrelated = last.filter(|_| is_unrelated).map(|last| last.work_name());
        let name = writer.as_ref().map_or_else(|| named("", wait.writer), FoundWork::work_name);
        let details = WaitDetails {
            reason: reason_words(wait.reason),
            block: wait.block.as_ref().map(|(block, _)| *block),
            tag: wait.block.as_ref().map(|(_, tag)| tag.clone()).unwrap_or_default(),
            writer: name.name.clone(),
            device: wait.writer.stream.device,
            stream: wait.writer.stream.stream,
            number: wait.writer.number,
            row: shared.index.row_number(RowKind::of(wait.writer.stream)),
            line: name.line.clone(),
            end_ns: writer.and_then(|writer| writer.device).map(|span| span.end_ns),
            asked_at: wait.line.clone(),
            unrelated: unrelated.as_ref().map(ToString::to_string),
        };
        let stall = ended.filter(|ended| *ended > ready).map(|ended| StreamStall {
            waiter: work.work_name(),
            writer: name,
            reason: wait.reason,
            block: details.block,
            tag: details.tag.clone(),
            line: wait.line.clone(),
            unrelated_ns: if is_unrelated { ended.saturating_sub(needed) } else { 0 },
            unrelated,
            ns: ended - ready,
            times: 1,
            longest_ns: ended - ready,
        });
        Ok((details, stall))
    }

    /// The waits of a work: those behind the work before it.
    fn waits(
        &self,
        shared: &Shared,
        row: u32,
        after: u64,
        stamp: TraceStamp,
    ) -> Result<Vec<FoundWait>, WatchError> {
        let of_row: Vec<&Page> =
            shared.index.pages.pages().iter().filter(|page| page.row(row).is_some()).collect();
        let has_it = |page: &&Page| {
            page.row(row).is_some_and(|row| (row.numbers.0..=row.numbers.1).contains(&stamp.number))
        };
        let Some(at) = of_row.iter().rposition(has_it) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        // Waits come before their work, so that they may be on the page before.
        for page in of_row.iter().skip(at.saturating_sub(1)).take(1 + usize::from(at > 0)) {
            self.events(shared, page, |event| {
                let TraceEvent::StreamWait(wait) = event else { return };
                let is_its = wait.waiter.stream == stamp.stream
                    && wait.waiter.number > after
                    && wait.waiter.number <= stamp.number;
                if is_its && found.len() < MAX_WAITS {
                    found.push(FoundWait {
                        waiter: wait.waiter.number,
                        writer: wait.writer,
                        covers: wait.covers,
                        reason: wait.reason,
                        block: wait.block.map(|block| (block.block, plain_text(block.tag).into_owned())),
                        line: wait.line.map(|line| line.to_string()),
                    });
                }
            })?;
        }
        found.sort_by_key(|wait| wait.waiter);
        Ok(found)
    }

    /// A work, or the last one before it on its stream that is known.
    fn found(&self, shared: &Shared, stamp: TraceStamp) -> Result<Option<FoundWork>, WatchError> {
        let Some(row) = shared.index.row_number(RowKind::of(stamp.stream)) else { return Ok(None) };
        let begins = |page: &&Page| page.row(row).is_some_and(|row| row.numbers.0 <= stamp.number);
        let mut best: Option<FoundWork> = None;
        let Some(page) = shared.index.pages.pages().iter().rfind(begins) else { return Ok(None) };
        self.events(shared, page, |event| {
            let TraceEvent::Submission(work) = event else { return };
            let is_nearer = || best.as_ref().is_none_or(|best| best.stamp.number < work.stamp.number);
            if work.stamp.stream == stamp.stream && work.stamp.number <= stamp.number && is_nearer() {
                best = Some(FoundWork::of(work));
            }
        })?;
        Ok(best)
    }

    pub(crate) fn events(
        &self,
        shared: &Shared,
        page: &Page,
        take: impl FnMut(&TraceEvent<'_>),
    ) -> Result<(), WatchError> {
        for_each_event(self.source(shared)?, page, take).map_err(|error| self.file_error(error))
    }
}

impl FoundWork {
    fn of(work: &SubmissionRecord<'_>) -> Self {
        Self {
            stamp: work.stamp,
            name: plain_text(work.name).into_owned(),
            line: work.line.map(|line| line.to_string()),
            kind: work.kind,
            size: work.size,
            bytes: work.bytes,
            host: work.host,
            device: work.device,
        }
    }

    pub(crate) fn work_name(&self) -> WorkName {
        WorkName { line: self.line.clone(), ..named(&self.name, self.stamp) }
    }
}

/// The pages that have this number of a row.
fn pages_with(shared: &Shared, row: u32, number: u64) -> impl Iterator<Item = &Page> {
    let has_it = move |page: &&Page| {
        page.row(row).is_some_and(|row| (row.numbers.0..=row.numbers.1).contains(&number))
    };
    shared.index.pages.pages().iter().filter(has_it)
}

fn named(name: &str, stamp: TraceStamp) -> WorkName {
    let TraceStamp { stream, number } = stamp;
    WorkName { name: name.to_owned(), line: None, device: stream.device, stream: stream.stream, number }
}

pub(crate) fn idle(why: IdleWhy, before: &FoundWork, ns: u64) -> String {
    IdleReason { why, before: before.work_name(), ns, times: 1, longest_ns: ns }.to_string()
}

fn reason_words(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::ReadAfterWrite => "reads what the other writes",
        WaitReason::WriteAfterWrite => "overwrites what the other writes",
        WaitReason::WriteAfterRead => "overwrites what the other reads",
        WaitReason::Allocation => "uses memory that was allocated behind the other",
        WaitReason::Asked => "waits because the program asked for that",
        WaitReason::Unknown => "waits",
    }
}

fn kind_word(kind: SubmissionKind) -> &'static str {
    match kind {
        SubmissionKind::Kernel => "kernel",
        SubmissionKind::Copy => "copy",
        SubmissionKind::Fill => "fill",
        SubmissionKind::Graph => "graph",
        SubmissionKind::Library => "library call",
        SubmissionKind::Collective => "collective",
        SubmissionKind::Foreign => "work of another library",
        SubmissionKind::Other => "other work",
    }
}
