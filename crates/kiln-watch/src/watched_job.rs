//! The recordings of one job, on one time axis.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use kiln_trace::{ClockAlignment, JobCollective, JobExplanation, RankLateness, RankLog};
use serde::Serialize;

use crate::file_pattern::FilePattern;
use crate::watch_error::WatchError;
use crate::watched_recording::{WatchedRecording, locked};

/// Recordings of one page.
pub(crate) const MAX_RECORDINGS: usize = 64;
/// Collectives with late ranks that are listed.
const MAX_LATE: usize = 100;
/// Collectives of one answer.
const MAX_CALLS: usize = 2000;

/// The files of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchedFiles {
    /// These.
    Files(Vec<PathBuf>),
    /// Those of a pattern that are there, or come, and were changed since a moment.
    Pattern {
        /// The pattern.
        pattern: FilePattern,
        /// Older ones are left out.
        since: Option<SystemTime>,
    },
}

/// The recordings of one job.
pub struct WatchedJob {
    files: WatchedFiles,
    recordings: RwLock<Vec<Arc<WatchedRecording>>>,
    /// Answers to questions before there is a recording.
    nothing: Arc<WatchedRecording>,
    explained: Mutex<Option<(u64, Arc<JobExplanation>)>>,
    /// Files beyond the most that are shown.
    left_out: AtomicUsize,
    repeat: Option<RepeatCommandText>,
}

/// The command that records a program again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepeatCommandText {
    /// As a shell takes it.
    pub command: String,
    /// What it lacks, in words; none if it is whole.
    pub lacks: Option<String>,
}

/// What is known of a job.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct JobState {
    /// Its recordings.
    pub recordings: Vec<JobRecording>,
    /// How their clocks are aligned, in words.
    pub clocks: String,
    /// How many recordings there are and whether their times can be compared, in a sentence.
    pub axis: String,
    /// Recordings that are not shown, because there are more than 64.
    pub left_out: usize,
    /// Whether the time in which a rank waits for others is on the time axis.
    pub has_waits: bool,
    /// Collectives of several ranks.
    pub collectives: usize,
    /// Those with the latest ranks, the latest first.
    pub late: Vec<LateCollective>,
    /// How often ranks came last, in words; the largest loss first.
    pub late_ranks: Vec<String>,
    /// The command that records the program again, where it is known.
    pub repeat: Option<String>,
    /// What it lacks, in words; none if it is whole.
    pub repeat_lacks: Option<String>,
}

/// A recording of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct JobRecording {
    /// The file.
    pub file: String,
    /// Its ranks.
    pub ranks: Vec<u32>,
    /// What is added to its times.
    pub offset_ns: u64,
}

/// A collective to which a rank came late.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LateCollective {
    /// What is said of it.
    pub sentence: String,
    /// How late the last rank came.
    pub late_ns: u64,
    /// The collective.
    #[serde(flatten)]
    pub call: JobCollective,
}

impl WatchedJob {
    /// The recordings of some files. Nothing is read yet.
    pub fn new(files: WatchedFiles) -> Self {
        let given = match &files {
            WatchedFiles::Files(given) => given.as_slice(),
            WatchedFiles::Pattern { .. } => &[],
        };
        let recordings = given.iter().take(MAX_RECORDINGS).map(|file| Arc::new(WatchedRecording::new(file)));
        let recordings = RwLock::new(recordings.collect());
        let nothing = Arc::new(WatchedRecording::new(given.first().map_or("".as_ref(), PathBuf::as_path)));
        let left_out = AtomicUsize::new(given.len().saturating_sub(MAX_RECORDINGS));
        let job = Self { files, recordings, nothing, explained: Mutex::default(), left_out, repeat: None };
        job.look_for_files();
        job
    }

    /// The same, with the command that records the program again.
    #[must_use]
    pub fn repeated_by(self, repeat: Option<RepeatCommandText>) -> Self {
        Self { repeat, ..self }
    }

    /// A recording by its number; the first stands for one that is not there yet.
    pub fn recording(&self, number: usize) -> Option<Arc<WatchedRecording>> {
        let known = self.recordings();
        match known.get(number) {
            None if number == 0 => Some(self.nothing.clone()),
            found => found.cloned(),
        }
    }

    /// All recordings.
    pub fn recordings(&self) -> Vec<Arc<WatchedRecording>> {
        self.recordings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads some of what is new; false if that was all for now.
    pub fn read_more(&self) -> bool {
        self.look_for_files();
        let mut is_more = false;
        for recording in self.recordings() {
            // What is wrong is in the recording's state, and the file may be mended.
            is_more |= recording.read_more().unwrap_or(false);
        }
        is_more
    }

    /// Reads all that is there.
    ///
    /// # Errors
    /// A file that is no recording, of another version, or cannot be read.
    pub fn read_all(&self) -> Result<(), WatchError> {
        self.look_for_files();
        self.recordings().iter().try_for_each(|recording| recording.read_all())
    }

    /// What is known of the job.
    pub fn state(&self) -> JobState {
        let (recordings, job) = (self.recordings(), self.explanation());
        let recording = |(number, recording): (usize, &Arc<WatchedRecording>)| JobRecording {
            file: recording.file(),
            ranks: job.ranks.get(number).cloned().unwrap_or_default(),
            offset_ns: job.offsets_ns.get(number).copied().unwrap_or_default(),
        };
        let late = job.latest(MAX_LATE).into_iter().map(|call| LateCollective {
            sentence: call.to_string(),
            late_ns: call.late_ns(),
            call: call.clone(),
        });
        let clocks = match &recordings[..] {
            [one] => clocks_of_one(one.read().index.clocks(), &job.clocks),
            _ => job.clocks.to_string(),
        };
        let of = if job.clocks.is_one_axis() { " on one time axis" } else { "" };
        let left_out = self.left_out.load(Ordering::Relaxed);
        let more = match left_out {
            0 => String::new(),
            1 => " One more is not shown.".to_owned(),
            _ => format!(" {left_out} more are not shown."),
        };
        JobState {
            axis: format!("{} recordings{of}: {clocks}.{more}", recordings.len()),
            left_out,
            recordings: recordings.iter().enumerate().map(recording).collect(),
            clocks,
            has_waits: job.clocks != ClockAlignment::EachCollective,
            collectives: job.collectives.len(),
            late: late.collect(),
            late_ranks: job.late.iter().map(RankLateness::to_string).collect(),
            repeat: self.repeat.as_ref().map(|repeat| repeat.command.clone()),
            repeat_lacks: self.repeat.as_ref().and_then(|repeat| repeat.lacks.clone()),
        }
    }

    /// The collectives of several ranks that touch a part of the time, the first few.
    pub fn collectives(&self, begin_ns: u64, end_ns: u64) -> Vec<JobCollective> {
        let job = self.explanation();
        let touches = |call: &&JobCollective| {
            call.parts.iter().any(|part| part.begin_ns <= end_ns && part.end_ns >= begin_ns)
        };
        job.collectives.iter().filter(touches).take(MAX_CALLS).cloned().collect()
    }

    /// What `kiln explain` says about the files.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn explain(&self) -> Result<String, WatchError> {
        let recordings = self.recordings();
        let job = self.explanation();
        if recordings.len() < 2 {
            let mut text = recordings.first().unwrap_or(&self.nothing).explain()?;
            if !job.collectives.is_empty() {
                // Several devices of one program are ranks, too.
                text += &format!("\n{job}");
            }
            return Ok(text);
        }
        let mut text = job.to_string();
        for recording in &recordings {
            text += &format!("\n{}\n{}", recording.file(), recording.explain()?);
        }
        Ok(text)
    }

    /// The recordings compared; made once for each state of the files.
    fn explanation(&self) -> Arc<JobExplanation> {
        let recordings = self.recordings();
        let version = recordings.iter().map(|recording| recording.read().version + 1).sum();
        let mut explained = locked(&self.explained);
        if let Some((known, job)) = &*explained
            && *known == version
        {
            return job.clone();
        }
        let guards: Vec<_> = recordings.iter().map(|recording| recording.read()).collect();
        let logs: Vec<&RankLog> = guards.iter().map(|shared| &shared.index.rank_log).collect();
        let job = Arc::new(JobExplanation::of(&logs));
        *explained = Some((version, job.clone()));
        job
    }

    /// Takes files of a pattern that are new.
    fn look_for_files(&self) {
        let WatchedFiles::Pattern { pattern, since } = &self.files else { return };
        let found = pattern.files(*since);
        let mut recordings = self.recordings.write().unwrap_or_else(PoisonError::into_inner);
        let mut left_out = 0;
        for file in found {
            if recordings.iter().any(|known| known.path() == file) {
                continue;
            }
            match recordings.len() < MAX_RECORDINGS {
                true => recordings.push(Arc::new(WatchedRecording::new(&file))),
                false => left_out += 1,
            }
        }
        self.left_out.store(left_out, Ordering::Relaxed);
    }
}

/// What is said of the clocks of one recording, which are so many.
fn clocks_of_one(count: usize, alignment: &ClockAlignment) -> String {
    match count {
        0 | 1 => alignment.to_string(),
        _ => format!("there is one recording, whose devices have {count} clocks that cannot be compared"),
    }
}
