//! Which process has a device.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::config::{IsolationConfig, WorkerEntry};

/// The process of the worker in use: another one after each takeover. Clones tell the same, and do not keep the device.
#[derive(Clone, Debug)]
pub struct WorkerProcess {
    id: Arc<AtomicU32>,
    name: Arc<str>,
}

impl WorkerProcess {
    /// One that has a device now.
    pub(super) fn new(config: &IsolationConfig, id: u32) -> Self {
        let program = match &config.entry {
            WorkerEntry::Program(program) => Some(program.clone()),
            WorkerEntry::Main | WorkerEntry::Test(_) => std::env::current_exe().ok(),
        };
        let name = program.as_deref().and_then(|program| program.file_name()).map(OsStr::to_string_lossy);
        Self { id: Arc::new(AtomicU32::new(id)), name: name.as_deref().unwrap_or("worker").into() }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Acquire)
    }

    /// The name of its program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another process has the device from here on.
    pub(super) fn replace(&self, id: u32) {
        self.id.store(id, Ordering::Release);
    }
}
