//! Which lines of kernels were executed, and what is worth knowing of launches, over all machines that share the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_ptx::exec::{
    Coverage, CoveredLine, DeviceHeap, Entry, ExecFinding, LaunchStatistics, StatisticsReport,
};

/// Which lines of kernels were executed, and notes about launches. Clones are the same log; engines that share it add to it.
///
/// ```
/// use kiln_sim::{KernelLog, PtxEngine};
///
/// let log = KernelLog::default();
/// let engine = PtxEngine::default().log(&log);
/// assert!(log.lines("axpy").is_none(), "no engine has loaded such a kernel");
/// ```
#[derive(Clone, Debug, Default)]
pub struct KernelLog {
    kernels: Arc<Mutex<HashMap<String, Vec<CoveredKernel>>>>,
    notes: Arc<Mutex<Vec<ExecFinding>>>,
    refused: Arc<Mutex<Vec<String>>>,
    /// What kernels executed, where it is counted.
    counted: Option<Arc<Mutex<Vec<CountedKernel>>>>,
    /// The heaps of modules that were loaded since leaks were last noted.
    heaps: Arc<Mutex<Vec<Arc<DeviceHeap>>>>,
}

/// A kernel that was loaded, and which of its instructions were executed.
type CoveredKernel = (Entry, Arc<Coverage>);

/// A kernel that was loaded, and what its instructions did.
type CountedKernel = (Entry, Arc<LaunchStatistics>);

/// Notes beyond this many are dropped.
const MAX_NOTES: usize = 1000;

impl KernelLog {
    /// A log that also counts what kernels execute. That takes several times as long, and the seed of the machine does not change the order of threads.
    #[must_use]
    pub fn counting() -> Self {
        Self { counted: Some(Arc::default()), ..Self::default() }
    }

    /// What each kernel executed that was launched, by name, with all its launches taken together; nothing if the log does not [count](Self::counting).
    pub fn statistics(&self) -> Vec<(String, StatisticsReport)> {
        let Some(counted) = &self.counted else { return Vec::new() };
        let counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        let reports =
            counted.iter().map(|(entry, counts)| (entry.name().to_owned(), entry.statistics_report(counts)));
        reports.filter(|(_, report)| report.total.warp_instructions > 0).collect()
    }

    /// Takes a kernel in that was loaded, if the log counts.
    pub(super) fn count(&self, entry: &Entry) -> Option<Arc<LaunchStatistics>> {
        let counted = self.counted.as_ref()?;
        let counts = Arc::new(entry.statistics());
        let mut list = counted.lock().unwrap_or_else(PoisonError::into_inner);
        list.push((entry.clone(), counts.clone()));
        Some(counts)
    }

    /// The lines of a kernel and of functions it can reach, by file and number, with all its launches taken together. None if no kernel of
    /// that name was loaded.
    pub fn lines(&self, kernel: &str) -> Option<Vec<CoveredLine>> {
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let mut loaded = kernels.get(kernel)?.iter().map(|(entry, coverage)| entry.lines(coverage));
        let mut lines = loaded.next()?;
        for more in loaded {
            for line in more {
                match lines.iter_mut().find(|known| (&known.file, known.line) == (&line.file, line.line)) {
                    Some(known) => known.executed |= line.executed,
                    None => lines.push(line),
                }
            }
        }
        Some(lines)
    }

    /// What launches did that is worth knowing and may be right, such as several threads that write the same value; in the order it happened.
    pub fn notes(&self) -> Vec<ExecFinding> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why kernels were refused while the other kernels of their modules were loaded, each reason once; see
    /// [`PtxEngine::refuse_kernels_alone`](crate::PtxEngine::refuse_kernels_alone).
    pub fn refused_kernels(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the blocks of `malloc` that kernels have not freed: for the end of all launches. Modules that were loaded before are not asked again.
    pub fn note_leaks(&self) {
        let heaps = std::mem::take(&mut *self.heaps.lock().unwrap_or_else(PoisonError::into_inner));
        heaps.iter().for_each(|heap| self.note(&heap.leaks()));
    }

    /// Takes the heap of a module in that was loaded.
    pub(super) fn add_heap(&self, heap: &Arc<DeviceHeap>) {
        self.heaps.lock().unwrap_or_else(PoisonError::into_inner).push(heap.clone());
    }

    /// Takes the reason in for which a kernel was refused.
    pub(super) fn add_refused(&self, why: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MAX_NOTES && !refused.iter().any(|known| known == why) {
            refused.push(why.to_owned());
        }
    }

    /// Takes the notes of a launch in.
    pub(super) fn note(&self, notes: &[ExecFinding]) {
        let mut kept = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_NOTES.saturating_sub(kept.len());
        kept.extend(notes.iter().take(room).cloned());
    }

    /// Takes a kernel in that was loaded.
    pub(super) fn add(&self, entry: &Entry) -> Arc<Coverage> {
        let coverage = Arc::new(entry.coverage());
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.entry(entry.name().to_owned()).or_default().push((entry.clone(), coverage.clone()));
        coverage
    }
}
