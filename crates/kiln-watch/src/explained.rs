//! The recording in words.

use kiln_trace::{Explainer, ReadError};

use crate::watch_error::WatchError;
use crate::watched_recording::{WatchedRecording, locked};

/// More events than this are not explained on the page: that would take more than half a minute.
const MAX_EVENTS: u64 = 30_000_000;

impl WatchedRecording {
    /// What `kiln explain` says about what was read so far. It is made once for each state of the file.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn explain(&self) -> Result<String, WatchError> {
        // One at a time, because each reads the whole file.
        let mut explained = locked(&self.explained);
        let (source, at, version, events) = {
            let shared = self.read();
            (self.source(&shared)?.clone(), shared.at, shared.version, shared.index.events)
        };
        if let Some((known, text)) = &*explained
            && *known == version
        {
            return Ok(text.clone());
        }
        if events > MAX_EVENTS {
            return Ok(format!(
                "The recording has {events} events, too many to explain beside the page. Run `kiln explain` on the file."
            ));
        }
        let mut reader = source.part(source.first_block(), at).map_err(|error| self.file_error(error))?;
        let (mut explainer, mut damaged) = (Explainer::default(), 0);
        loop {
            match reader.next_event() {
                Ok(Some(event)) => explainer.add(&event),
                Ok(None) => break,
                Err(ReadError::Damaged { .. }) => damaged += 1,
                Err(error) => return Err(self.file_error(error)),
            }
        }
        explainer.leave_out(damaged, reader.skipped_bytes());
        let text = explainer.finish().to_string();
        *explained = Some((version, text.clone()));
        Ok(text)
    }
}
