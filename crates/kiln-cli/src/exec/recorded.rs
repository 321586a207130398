//! The recordings of a run's processes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::earlier_recording::Earlier;
use crate::failure::Failure;
use crate::recorded_run::{self, RUN_VARIABLE};
use crate::recording_file;
use crate::trace::recording_place::{RecordingPlace, beginning};

/// Where the processes of a run are recorded.
pub(super) struct RunRecording {
    place: RecordingPlace,
    whole: PathBuf,
    began: SystemTime,
    run: String,
}

impl RunRecording {
    /// A place for the recordings, with that of an earlier run moved aside.
    ///
    /// # Errors
    /// A place that cannot be written to, or that another program is recorded to.
    pub(super) fn new(file: &Path) -> Result<(Self, Earlier<'_>), Failure> {
        let place = RecordingPlace::new(file)?;
        let earlier = Earlier::move_aside(file)?;
        let whole = std::path::absolute(file).map_err(|error| Failure::file(file, error))?;
        Ok((Self { place, whole, began: beginning(), run: recorded_run::of_environment() }, earlier))
    }

    /// What the program is told of it.
    pub(super) fn variables(&self) -> [(&'static str, OsString); 2] {
        [("KILN_EXEC_TRACE", self.whole.clone().into()), (RUN_VARIABLE, self.run.clone().into())]
    }

    /// The recordings that were made, that of the first process first.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let files = self.place.recorded_since(self.began);
        files.iter().for_each(|file| recording_file::note_missing(file));
        files
    }
}
