//! Which lines of a kernel were executed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::code_location::CodeSite;
use super::lowered_code::Code;

/// Which steps of an entry some thread has executed, over any number of launches.
///
/// Made by [`Entry::coverage`](super::Entry::coverage) and given to launches in [`Options`](super::Options); the entry then tells
/// [which lines](super::Entry::lines) were executed.
#[derive(Debug)]
pub struct Coverage {
    executed: Vec<AtomicBool>,
}

/// A line of a kernel, or of a function it can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredLine {
    /// The file of the source; none for a line of the PTX itself.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: u32,
    /// Whether some thread executed an instruction of it.
    pub executed: bool,
}

impl Coverage {
    pub(crate) fn new(code: &Code) -> Self {
        Self { executed: code.steps.iter().map(|_| AtomicBool::new(false)).collect() }
    }

    #[inline]
    pub(crate) fn mark(&self, pc: u32) {
        // Most steps were executed before, and then nothing is written: several host threads look here.
        if let Some(executed) = self.executed.get(pc as usize)
            && !executed.load(Ordering::Relaxed)
        {
            executed.store(true, Ordering::Relaxed);
        }
    }

    /// All lines that have instructions, by file and number.
    pub(crate) fn lines(&self, code: &Code) -> Vec<CoveredLine> {
        let mut lines: BTreeMap<(Option<String>, u32), bool> = BTreeMap::new();
        for (pc, executed) in (0..).zip(&self.executed) {
            let site = CodeSite::of(code, pc);
            let place = match site.source {
                Some((file, line)) => (Some(file), line),
                None => (None, site.ptx_line),
            };
            *lines.entry(place).or_default() |= executed.load(Ordering::Relaxed);
        }
        lines.into_iter().map(|((file, line), executed)| CoveredLine { file, line, executed }).collect()
    }
}
