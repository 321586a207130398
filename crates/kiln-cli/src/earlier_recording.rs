//! A recording that is there when another is made in its place.

use std::fs;
use std::path::{Path, PathBuf};

use kiln_trace::is_being_recorded;

use crate::console::complain;
use crate::failure::Failure;
use crate::left_behind;

/// How the hidden name of an earlier recording ends.
const ASIDE: &str = "earlier";

/// A recording of an earlier run, moved aside while a program is recorded, so that it is not taken for the new one.
pub(crate) struct Earlier<'f> {
    file: &'f Path,
    aside: Option<PathBuf>,
}

impl<'f> Earlier<'f> {
    /// Moves it aside.
    ///
    /// # Errors
    /// One that is being written, or a file that cannot be moved.
    pub(crate) fn move_aside(file: &'f Path) -> Result<Self, Failure> {
        put_back(file);
        let mut aside = None;
        if file.is_file() {
            if is_being_recorded(file) {
                let why = "another program that still runs is recorded to it";
                return Err(Failure::file(file, why)
                    .next("give another FILE, or one with %p for the number of the process"));
            }
            let place = left_behind::hidden(file, ASIDE).unwrap_or_else(|| file.with_extension(ASIDE));
            fs::rename(file, &place).map_err(|error| Failure::file(file, error))?;
            aside = Some(place);
        }
        Ok(Self { file, aside })
    }
}

/// Puts back what a command moved aside that was killed, and tells it; where there is a later recording, it is removed. Whether anything was done.
pub(crate) fn put_back(file: &Path) -> bool {
    let mut is_changed = false;
    for aside in left_behind::found(file, ASIDE) {
        let (done, what) = match is_recorded(file) {
            true => (fs::remove_file(&aside), "removed"),
            false => (fs::rename(&aside, file), "put back"),
        };
        is_changed |= done.is_ok();
        if done.is_ok() {
            complain(format_args!(
                "{}: note: {what}; a command that was killed had moved this recording aside",
                aside.display()
            ));
        }
    }
    is_changed
}

impl Drop for Earlier<'_> {
    /// Puts it back if nothing was recorded in its place.
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ =
                if is_recorded(self.file) { fs::remove_file(aside) } else { fs::rename(aside, self.file) };
        }
    }
}

/// Whether a file has something in it.
pub(crate) fn is_recorded(file: &Path) -> bool {
    file.metadata().is_ok_and(|known| known.is_file() && known.len() > 0)
}
