//! Notes for the launcher: which ranks this rank saw end, and which it waited for in vain.
//!
//! A rank that fails because another one has ended may itself end first: the other one may take long to drop what it has. A launcher that reads these notes knows which of the two failed
//! first. Each note is a line, `lost 3` or `left 3`; `late 3` for a rank that did not come in time, and `came 3` once it has.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

#[derive(Debug)]
pub(super) struct EndNotes {
    file: Option<File>,
}

impl EndNotes {
    /// Notes go to the end of this file. Without one, or if it cannot be written to, there are none.
    pub(super) fn open(path: Option<&Path>) -> Self {
        let file = path.and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok());
        Self { file }
    }

    /// A rank ended without leaving.
    pub(super) fn lost(&self, rank: u32) {
        self.write("lost", rank);
    }

    /// A rank has left as planned.
    pub(super) fn left(&self, rank: u32) {
        self.write("left", rank);
    }

    /// A rank did not come to what this rank waited in.
    pub(super) fn late(&self, rank: u32) {
        self.write("late", rank);
    }

    /// A rank that was late has come.
    pub(super) fn came(&self, rank: u32) {
        self.write("came", rank);
    }

    fn write(&self, how: &str, rank: u32) {
        if let Some(mut file) = self.file.as_ref() {
            // What cannot be noted is not known; the rank goes on.
            let _ = file.write_all(format!("{how} {rank}\n").as_bytes());
        }
    }
}
