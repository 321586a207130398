//! The state of one file of the cache: good, damaged, or written by another version.

use std::path::PathBuf;

use super::entry::{EntryDamage, EntryKind};
use super::key::Key;

/// What one file of the cache is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryState {
    /// An entry that can be used.
    Good {
        /// Its key.
        key: Key,
        /// What it holds.
        kind: EntryKind,
    },
    /// An entry that will be made anew when it is asked for.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: EntryDamage,
    },
    /// An entry that another version of kiln wrote, and may still use; this one does not ask for it.
    OtherVersion {
        /// The file.
        path: PathBuf,
    },
    /// What a writer left that did not come to its end.
    Abandoned {
        /// The file.
        path: PathBuf,
    },
    /// A file that could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: String,
    },
}

impl EntryState {
    /// Whether it is an entry that can be used.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Good { .. })
    }
}
