//! The code caches of a runtime.

use super::code_counters::CodeCounters;
use super::loaded_modules::Modules;
use crate::code_cache::DiskCache;
use crate::runtime::DeviceRuntime;

impl DeviceRuntime {
    /// What the code caches did so far.
    pub fn code_counters(&self) -> CodeCounters {
        Modules::of(self.inner()).counters()
    }

    /// The cache of compiled code on disk.
    pub fn disk_cache(&self) -> &DiskCache {
        self.inner().disk_cache()
    }
}
