//! Modules by name, loaded when they are first needed.
//!
//! The map's lock is held to find a key's cell and never while code is compiled or loaded, so two keys load at the same
//! time and one key loads once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Driver, Function, ModuleId, Object};

use super::code::CodeImage;
use crate::error::Result;
use crate::probe::RetryCell;

/// Loaded code; it is unloaded with its last owner, who keeps it until its kernels are done.
pub struct Module {
    driver: Arc<dyn Driver>,
    id: ModuleId,
}

impl Module {
    pub(super) fn load(driver: &Arc<dyn Driver>, code: &CodeImage) -> Result<Self> {
        let id = driver.load(&code.as_image())?;
        Ok(Self { driver: Arc::clone(driver), id })
    }

    /// Its name for the driver.
    pub fn id(&self) -> ModuleId {
        self.id
    }

    /// A kernel of the module.
    ///
    /// # Errors
    /// It has none of that name.
    pub fn function(&self, name: &str) -> Result<Function> {
        Ok(self.driver.function(self.id, name)?)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Err(error) = self.driver.destroy(Object::Module(self.id)) {
            tracing::debug!("a module was not unloaded: {error}");
        }
    }
}

/// The modules of one backend.
#[derive(Default)]
pub(super) struct Modules {
    by_key: Mutex<HashMap<Box<str>, Arc<RetryCell<Arc<Module>>>>>,
}

impl Modules {
    pub(super) fn module(&self, key: &str, load: impl FnOnce() -> Result<Module>) -> Result<Arc<Module>> {
        self.cell(key).get_or_try_init(|| load().map(Arc::new)).cloned()
    }

    fn cell(&self, key: &str) -> Arc<RetryCell<Arc<Module>>> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = by_key.get(key) {
            return Arc::clone(cell);
        }
        let cell = Arc::new(RetryCell::new());
        by_key.insert(key.into(), Arc::clone(&cell));
        cell
    }
}
