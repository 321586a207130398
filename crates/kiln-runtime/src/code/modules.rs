//! Modules that are loaded, by what went into them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Image};
use kiln_ptx::EntryFacts;

use super::counters::CodeCounters;
use super::payload::Payload;
use super::reading::signature;
use crate::cache::{DiskCache, Key};
use crate::error::{CodeError, Result};
use crate::launch::{Kernel, Module, WeakModule};
use crate::runtime::{DeviceRuntime, Inner};
use crate::signature::Signature;
use crate::span;

/// The modules of one runtime.
pub(crate) struct Modules {
    disk: Arc<DiskCache>,
    /// A slot's own lock is held while its module is made, so that each is made once; the map's is not.
    slots: Mutex<HashMap<Key, Slot>>,
    memory_hits: AtomicU64,
    memory_saved_ns: AtomicU64,
    compilations: AtomicU64,
    compile_ns: AtomicU64,
    loads: AtomicU64,
    load_ns: AtomicU64,
}

type Slot = Arc<Mutex<Option<Loaded>>>;

struct Loaded {
    module: WeakModule,
    code: Arc<Code>,
    /// How long it took to compile, now or in an earlier process, and to load.
    cost_ns: u64,
}

/// What is known of a module besides what the driver holds.
#[derive(Debug, Default)]
pub(super) struct Code {
    entries: HashMap<String, Signature>,
    names: HashMap<String, String>,
}

impl Modules {
    /// The modules of a runtime, which keeps them.
    pub(crate) fn of(runtime: &Inner) -> Arc<Self> {
        runtime.extensions().get_or_insert_with(|| Self::new(runtime.disk_cache().clone()))
    }

    fn new(disk: Arc<DiskCache>) -> Self {
        Self {
            disk,
            slots: Mutex::default(),
            memory_hits: AtomicU64::new(0),
            memory_saved_ns: AtomicU64::new(0),
            compilations: AtomicU64::new(0),
            compile_ns: AtomicU64::new(0),
            loads: AtomicU64::new(0),
            load_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn counters(&self) -> CodeCounters {
        let time = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Ordering::Relaxed));
        CodeCounters {
            memory_hits: self.memory_hits.load(Ordering::Relaxed),
            memory_time_saved: time(&self.memory_saved_ns),
            compilations: self.compilations.load(Ordering::Relaxed),
            compile_time: time(&self.compile_ns),
            loads: self.loads.load(Ordering::Relaxed),
            load_time: time(&self.load_ns),
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
        let slot = self.slot(key);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = &*slot
            && let Some(module) = loaded.module.upgrade()
        {
            self.memory_hits.fetch_add(1, Ordering::Relaxed);
            self.memory_saved_ns.fetch_add(loaded.cost_ns, Ordering::Relaxed);
            return Ok(CompiledModule { module, code: loaded.code.clone() });
        }
        let payload = make()?;
        let start = Instant::now();
        let compiled = load(runtime, &payload)?;
        let load_ns = nanoseconds(start.elapsed());
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.load_ns.fetch_add(load_ns, Ordering::Relaxed);
        *slot = Some(Loaded {
            module: compiled.module.downgrade(),
            code: compiled.code.clone(),
            cost_ns: nanoseconds(payload.compile_time).saturating_add(load_ns),
        });
        Ok(compiled)
    }

    /// What [`payload`](Self::payload) answers, for callers that do not load it. Others who want the same meanwhile wait.
    pub(super) fn payload_alone(
        &self,
        key: &Key,
        compile: impl FnOnce() -> Result<Payload>,
    ) -> Result<Payload> {
        let slot = self.slot(*key);
        let _making = slot.lock().unwrap_or_else(PoisonError::into_inner);
        self.payload(key, compile)
    }

    /// What the disk holds under a key, or else what `compile` makes, which is then kept there. The caller has the key's slot.
    pub(super) fn payload(&self, key: &Key, compile: impl FnOnce() -> Result<Payload>) -> Result<Payload> {
        if let Some(payload) = self.disk.get(key).as_ref().and_then(Payload::from_entry) {
            return Ok(payload);
        }
        let payload = self.timed(compile)?;
        self.disk.put(key, &payload.entry());
        Ok(payload)
    }

    fn timed(&self, compile: impl FnOnce() -> Result<Payload>) -> Result<Payload> {
        let _span = span::compilation();
        let start = Instant::now();
        let payload = compile();
        let compile_time = start.elapsed();
        self.compilations.fetch_add(1, Ordering::Relaxed);
        self.compile_ns.fetch_add(nanoseconds(compile_time), Ordering::Relaxed);
        Ok(Payload { compile_time, ..payload? })
    }

    /// The slot of a key. A new one makes room: slots whose module is gone, and that no thread uses, go.
    fn slot(&self, key: Key) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        slots.retain(|_, slot| {
            let is_used = |slot: &Mutex<Option<Loaded>>| {
                let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                slot.as_ref().is_some_and(|loaded| loaded.module.is_loaded())
            };
            // A thread that holds a slot got it under the map's lock, so a count of one stays one while we have that.
            Arc::strong_count(slot) > 1 || is_used(slot)
        });
        slots.entry(key).or_default().clone()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
    let module = load_first(payload, runtime.info().kind, |image| runtime.load_module(image))?;
    Ok(CompiledModule { module, code })
}

/// The first of a payload's images that loads. A lost device takes none, so nothing more is tried on it.
fn load_first<T>(payload: &Payload, kind: DeviceKind, load: impl Fn(&Image<'_>) -> Result<T>) -> Result<T> {
    let ptx = Image::Ptx(&payload.ptx);
    match (&payload.cubin, kind) {
        (Some(cubin), DeviceKind::Cuda) => load(&Image::Cubin(cubin))
            .or_else(|error| if error.is_sticky() { Err(error) } else { load(&ptx) }),
        _ => load(&ptx),
    }
}

/// Loads machine code of which nothing else is known.
pub(super) fn load_cubin(runtime: &DeviceRuntime, cubin: &[u8]) -> Result<CompiledModule> {
    Ok(CompiledModule { module: runtime.load_module(&Image::Cubin(cubin))?, code: Arc::default() })
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kiln_driver::{Code as CudaCode, Error, Fault};

    use super::*;

    /// Which images are tried, and whether one loaded, on a device that answers machine code with that error.
    fn tried(kind: DeviceKind, refusal: Option<Error>) -> (Vec<&'static str>, bool) {
        let payload = Payload { cubin: Some(vec![1]), ..Payload::of_ptx("ptx".into()) };
        let tried = RefCell::new(Vec::new());
        let loaded = load_first(&payload, kind, |image| match image {
            Image::Cubin(_) => {
                tried.borrow_mut().push("cubin");
                refusal.clone().map_or(Ok(()), |error| Err(error.into()))
            }
            _ => {
                tried.borrow_mut().push("ptx");
                Ok(())
            }
        });
        (tried.into_inner(), loaded.is_ok())
    }

    #[test]
    fn machine_code_comes_first_and_ptx_where_it_is_refused() {
        let refused = Error::invalid("load", "another architecture", "compile for this one");
        let lost = Error::lost("load", Fault { code: CudaCode::ILLEGAL_ADDRESS, detail: String::new() });
        assert_eq!(tried(DeviceKind::Cuda, None), (vec!["cubin"], true));
        assert_eq!(tried(DeviceKind::Cuda, Some(refused)), (vec!["cubin", "ptx"], true));
        assert_eq!(tried(DeviceKind::Cuda, Some(lost)), (vec!["cubin"], false));
        assert_eq!(tried(DeviceKind::Simulated, None), (vec!["ptx"], true));
    }
}
