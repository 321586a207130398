//! Modules that are loaded, by what went into them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Image};
use kiln_ptx::EntryFacts;

use super::failure::CodeError;
use super::payload::Payload;
use super::reading::signature;
use crate::cache::{CacheConfig, CacheCounters, DiskCache, Key, Surroundings};
use crate::error::{Error, Result};
use crate::launch::{Kernel, Module, Signature, WeakModule};
use crate::runtime::DeviceRuntime;
use crate::telemetry::span;

/// What the code caches of a runtime did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeCounters {
    /// Modules that were asked for while they were loaded.
    pub memory_hits: u64,
    /// Compilations.
    pub compilations: u64,
    /// Time they took.
    pub compile_time: Duration,
    /// What the disk did.
    pub disk: CacheCounters,
}

/// The modules of one runtime.
pub(crate) struct Modules {
    disk: DiskCache,
    /// A slot's own lock is held while its module is made, so that each is made once; the map's is not.
    slots: Mutex<HashMap<Key, Arc<Mutex<Option<Loaded>>>>>,
    memory_hits: AtomicU64,
    compilations: AtomicU64,
    compile_ns: AtomicU64,
}

#[derive(Clone)]
struct Loaded {
    module: WeakModule,
    code: Arc<Code>,
}

/// What is known of a module besides what the driver holds.
#[derive(Debug, Default)]
pub(super) struct Code {
    entries: HashMap<String, Signature>,
    names: HashMap<String, String>,
}

impl Modules {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        Self {
            disk: DiskCache::new(config, &Surroundings::of_process()),
            slots: Mutex::default(),
            memory_hits: AtomicU64::new(0),
            compilations: AtomicU64::new(0),
            compile_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn disk(&self) -> &DiskCache {
        &self.disk
    }

    pub(crate) fn counters(&self) -> CodeCounters {
        CodeCounters {
            memory_hits: self.memory_hits.load(Ordering::Relaxed),
            compilations: self.compilations.load(Ordering::Relaxed),
            compile_time: Duration::from_nanos(self.compile_ns.load(Ordering::Relaxed)),
            disk: self.disk.counters(),
        }
    }

    /// The module of a key: the one that is loaded, or one made of what `make` answers.
    pub(super) fn load(
        &self,
        runtime: &DeviceRuntime,
        key: Key,
        make: impl FnOnce() -> Result<Payload>,
    ) -> Result<CompiledModule> {
        let slot = self.slots().entry(key).or_default().clone();
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = &*slot
            && let Some(module) = loaded.module.upgrade()
        {
            self.memory_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(CompiledModule { module, code: loaded.code.clone() });
        }
        let compiled = load(runtime, &make()?)?;
        *slot = Some(Loaded { module: compiled.module.downgrade(), code: compiled.code.clone() });
        Ok(compiled)
    }

    /// What the disk holds under a key, or else what `compile` makes, which is then kept there.
    pub(super) fn payload(&self, key: &Key, compile: impl FnOnce() -> Result<Payload>) -> Result<Payload> {
        if let Some(payload) = self.stored(key) {
            return Ok(payload);
        }
        let payload = self.timed(compile)?;
        self.disk.put(key, payload.kind(), &payload.encode());
        Ok(payload)
    }

    fn stored(&self, key: &Key) -> Option<Payload> {
        let (kind, bytes) = self.disk.get(key)?;
        Payload::decode(kind, &bytes)
    }

    fn timed(&self, compile: impl FnOnce() -> Result<Payload>) -> Result<Payload> {
        let _span = span::compilation();
        let start = Instant::now();
        let payload = compile();
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.compilations.fetch_add(1, Ordering::Relaxed);
        self.compile_ns.fetch_add(spent, Ordering::Relaxed);
        payload
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Mutex<Option<Loaded>>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A loaded module with what is known of its kernels.
pub(super) struct CompiledModule {
    module: Module,
    code: Arc<Code>,
}

impl CompiledModule {
    /// A kernel by its name in the source: a plain name, or a name expression that was asked for.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel> {
        let lowered = self.code.names.get(name).map_or(name, String::as_str);
        if lowered == name && name.contains('<') && !self.code.entries.contains_key(name) {
            return Err(CodeError::NotInstantiated { name: name.to_owned() }.into());
        }
        self.module.kernel(lowered, self.code.entries.get(lowered).cloned())
    }
}

/// Loads what was compiled: machine code first, the PTX if the device does not take it.
fn load(runtime: &DeviceRuntime, payload: &Payload) -> Result<CompiledModule> {
    let code = Arc::new(read(payload)?);
    let ptx = Image::Ptx(&payload.ptx);
    let module = match (&payload.cubin, runtime.info().kind) {
        (Some(cubin), DeviceKind::Cuda) => runtime
            .load_module(&Image::Cubin(cubin))
            .or_else(|error| if error.is_sticky() { Err(error) } else { runtime.load_module(&ptx) }),
        _ => runtime.load_module(&ptx),
    };
    Ok(CompiledModule { module: module.map_err(|error| explained(runtime, error))?, code })
}

/// Loads machine code of which nothing else is known.
pub(super) fn load_cubin(runtime: &DeviceRuntime, cubin: &[u8]) -> Result<CompiledModule> {
    let module = runtime.load_module(&Image::Cubin(cubin)).map_err(|error| explained(runtime, error))?;
    Ok(CompiledModule { module, code: Arc::default() })
}

fn explained(runtime: &DeviceRuntime, error: Error) -> Error {
    let info = runtime.info();
    match CodeError::of_loader(error.code(), info.driver_version, info.capability) {
        Some(better) => better.into(),
        None => error,
    }
}

fn read(payload: &Payload) -> Result<Code> {
    let module = kiln_ptx::Module::parse(&payload.ptx).map_err(CodeError::from)?;
    let facts = |name: &str| -> Option<EntryFacts> { module.facts(module.find_function(name)?) };
    let entries = module
        .entries()
        .filter_map(|entry| Some((entry.name.to_string(), signature(&facts(&entry.name)?))))
        .collect();
    Ok(Code { entries, names: payload.names.iter().cloned().collect() })
}
