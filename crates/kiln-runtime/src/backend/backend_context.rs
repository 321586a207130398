//! `BackendContext`: the runtime and stream of a backend, with its modules and a pool of buffers.

use std::sync::Arc;

use kiln_driver::{Capability, Driver};

use super::backend_parts::BackendParts;
use super::buffer_pool::{Arena, ArenaBuffer, ArenaConfig};
use super::code_image::CodeImage;
use super::named_modules::Modules;
use crate::buffer::Element;
use crate::error::Result;
use crate::launch::Module;
use crate::runtime::{DeviceRuntime, Stream};

/// Parts, modules loaded when first needed, and reusable buffers.
pub struct BackendContext {
    arena: Arc<Arena>,
    modules: Modules,
    parts: BackendParts,
}

impl BackendContext {
    /// A context with the usual arena.
    pub fn from_parts(parts: BackendParts) -> Self {
        Self::with_arena(parts, ArenaConfig::default())
    }

    /// A context with an arena of the caller's measure.
    pub fn with_arena(parts: BackendParts, config: ArenaConfig) -> Self {
        Self { arena: Arena::new(parts.clone(), config), modules: Modules::default(), parts }
    }

    /// The parts.
    pub fn parts(&self) -> &BackendParts {
        &self.parts
    }

    /// The runtime, shared by every backend on this device.
    pub fn runtime(&self) -> &'static DeviceRuntime {
        self.parts.runtime()
    }

    /// The device.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.parts.driver()
    }

    /// The stream to use by default.
    pub fn stream(&self) -> &Stream {
        self.parts.stream()
    }

    /// What to compile for.
    pub fn capability(&self) -> Capability {
        self.parts.capability()
    }

    /// The module of a key. The first who asks makes its code and loads it, holding no lock; others who ask for the same
    /// key meanwhile wait for that. A failure is not kept.
    ///
    /// # Errors
    /// What `code` says; or the device did not accept it, with the loader's log.
    pub fn module(&self, key: &str, code: impl FnOnce(&BackendParts) -> Result<CodeImage>) -> Result<Module> {
        self.modules.module(key, || self.runtime().load_module(&code(&self.parts)?.as_image()))
    }

    /// A buffer for `len` elements, used before or new, with nothing known of its contents.
    ///
    /// # Errors
    /// Out of memory, also after everything the arena keeps was freed.
    pub fn buffer<T: Element>(&self, len: usize) -> Result<ArenaBuffer<T>> {
        self.arena.take(len)
    }

    /// The buffers it keeps for reuse.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }
}
