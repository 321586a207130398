//! The names of exchanges and barriers that a rank has come through. The values of one stay in the store, so that a second one of the same name would be given them and not wait.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::error::RendezvousError;

#[derive(Debug, Default)]
pub(super) struct UsedNames {
    names: Mutex<HashSet<String>>,
}

impl UsedNames {
    /// Refuses a name that was used. One whose exchange failed may be used again.
    pub(super) fn check(&self, name: &str) -> Result<(), RendezvousError> {
        match self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(name) {
            true => Err(RendezvousError::NameUsed { name: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// The exchange of this name has its values.
    pub(super) fn note(&self, name: &str) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }
}
