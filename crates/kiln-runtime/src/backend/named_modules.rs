//! Modules by name, loaded when they are first needed.
//!
//! The map's lock is held to find a key's cell and never while code is compiled or loaded, so two keys load at the same
//! time and one key loads once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_probe::RetryCell;

use crate::error::{Error, Result};
use crate::launch::Module;

/// A module that is loaded once; a failed load is tried again.
type ModuleCell = Arc<RetryCell<Module, Error>>;

/// The modules of one backend.
#[derive(Default)]
pub(super) struct Modules {
    by_key: Mutex<HashMap<Box<str>, ModuleCell>>,
}

impl Modules {
    pub(super) fn module(&self, key: &str, load: impl FnOnce() -> Result<Module>) -> Result<Module> {
        self.cell(key).get_or_try_init(load).cloned()
    }

    fn cell(&self, key: &str) -> Arc<RetryCell<Module, Error>> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = by_key.get(key) {
            return Arc::clone(cell);
        }
        let cell = Arc::new(RetryCell::new());
        by_key.insert(key.into(), Arc::clone(&cell));
        cell
    }
}
