//! Collects the findings and printed text of a launch.

use std::collections::HashSet;
use std::mem::Discriminant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::code_location::CodeSite;
use super::fault::ExecFault;
use super::finding::{ExecFinding, ExecFindingKind};
use super::lowered_code::Code;
use super::outcome::{Counters, ExecOutcome};
use super::own_line::OwnLine;

/// Places of findings that were not kept are counted up to here.
const MAX_LEFT_OUT: usize = 1 << 16;

/// Findings, output and counters of a launch.
pub(crate) struct Log {
    max_findings: usize,
    max_printed_bytes: usize,
    inner: Mutex<Inner>,
    /// Every thread of the launch looks at it often.
    stop: OwnLine<AtomicBool>,
}

#[derive(Default)]
struct Inner {
    /// Findings with the steps they are about.
    findings: Vec<((u32, u32), ExecFinding)>,
    notes: Vec<((u32, u32), ExecFinding)>,
    /// The places of findings that were not kept.
    left_out: HashSet<((u32, u32), Discriminant<ExecFindingKind>)>,
    printed: Vec<u8>,
    printed_left_out_bytes: u64,
    counters: Counters,
    fault: Option<ExecFault>,
}

impl Log {
    pub(crate) fn new(max_findings: usize, max_printed_bytes: usize) -> Self {
        let stop = OwnLine::new(AtomicBool::new(false));
        Self { max_findings, max_printed_bytes, inner: Mutex::default(), stop }
    }

    /// Counts a finding again, if the same was found at these steps before. `is_like` may add to what is known.
    pub(crate) fn count_again(
        &self,
        steps: (u32, u32),
        mut is_like: impl FnMut(&mut ExecFindingKind) -> bool,
    ) -> bool {
        let mut inner = self.inner();
        let key = key(steps);
        let Inner { findings, notes, .. } = &mut *inner;
        let known = findings.iter_mut().chain(notes).filter(|(at, _)| *at == key).map(|(_, known)| known);
        for known in known {
            if is_like(&mut known.kind) {
                known.times += 1;
                return true;
            }
        }
        false
    }

    /// Keeps a finding at a step, or counts it if the same was found there before. A race is about two steps, of which
    /// either may come first. A note does not make the launch fail.
    pub(crate) fn find(
        &self,
        code: &Code,
        (pc, other): (u32, u32),
        kind: ExecFindingKind,
        note: bool,
        thread: impl FnOnce(CodeSite) -> CodeSite,
    ) {
        let mut inner = self.inner();
        let key = key((pc, other));
        let inner = &mut *inner;
        let list = if note { &mut inner.notes } else { &mut inner.findings };
        let same = |(at, known): &&mut ((u32, u32), ExecFinding)| *at == key && known.kind.is_like(&kind);
        if let Some((_, known)) = list.iter_mut().find(same) {
            known.times += 1;
        } else if list.len() < self.max_findings || kind.fault().is_some() {
            // What ends the launch is kept, in the place of another finding where there is no room.
            if list.len() >= self.max_findings.max(1)
                && let Some((at, last)) = list.pop()
            {
                inner.left_out.insert((at, std::mem::discriminant(&last.kind)));
            }
            let site = thread(CodeSite::of(code, pc));
            let mut kind = kind;
            kind.name_variable(&code.shared);
            list.push((key, ExecFinding { kind, site, times: 1 }));
        } else if !note && inner.left_out.len() < MAX_LEFT_OUT {
            inner.left_out.insert((key, std::mem::discriminant(&kind)));
        }
    }

    pub(crate) fn print(&self, text: &[u8]) {
        let mut inner = self.inner();
        let room = self.max_printed_bytes.saturating_sub(inner.printed.len());
        let (kept, rest) = text.split_at(text.len().min(room));
        inner.printed.extend_from_slice(kept);
        inner.printed_left_out_bytes += rest.len() as u64;
    }

    pub(crate) fn count(&self, counters: Counters) {
        self.inner().counters.add(counters);
    }

    /// Ends the launch.
    pub(crate) fn fail(&self, fault: ExecFault) {
        self.inner().fault.get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the launch has ended.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn into_outcome(self) -> ExecOutcome {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        ExecOutcome {
            findings: inner.findings.into_iter().map(|(_, finding)| finding).collect(),
            notes: inner.notes.into_iter().map(|(_, finding)| finding).collect(),
            fault: inner.fault,
            findings_left_out: inner.left_out.len() as u64,
            printed: inner.printed,
            printed_left_out_bytes: inner.printed_left_out_bytes,
            counters: inner.counters,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two steps, whichever came first.
fn key((pc, other): (u32, u32)) -> (u32, u32) {
    (pc.min(other), pc.max(other))
}
