//! Which recordings are of one run.

use super::rank_log::RankLog;

/// The recordings of one run of a program or a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedRun {
    /// What names the run; empty for recordings that do not say.
    pub run: String,
    /// Which of the recordings are of it.
    pub recordings: Vec<usize>,
}

impl RecordedRun {
    /// Recordings by the run that they are of, in the order of the first of each.
    ///
    /// ```
    /// use kiln_trace::{RankLog, RecordedRun, StartRecord, TraceEvent};
    ///
    /// let log = |run| {
    ///     let mut log = RankLog::default();
    ///     log.add(&TraceEvent::Start(StartRecord { run, ..StartRecord::default() }));
    ///     log
    /// };
    /// let logs = ["monday", "tuesday", "monday"].map(log);
    /// let runs = RecordedRun::all_of(&logs.each_ref());
    /// assert_eq!((runs.len(), &runs[0].recordings[..]), (2, &[0, 2][..]));
    /// ```
    pub fn all_of(logs: &[&RankLog]) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for (number, log) in logs.iter().enumerate() {
            match runs.iter_mut().find(|known| known.run == log.run()) {
                Some(known) => known.recordings.push(number),
                None => runs.push(Self { run: log.run().to_owned(), recordings: vec![number] }),
            }
        }
        runs
    }
}
