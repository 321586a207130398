//! The cache of loaded modules, by a key of source, options, compiler and device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Image};
use kiln_ptx::EntryFacts;

use super::code_counters::CodeCounters;
use super::disk_entry::{Payload, kernel_names};
use super::ptx_signature::signature;
use crate::code_cache::{CacheEntry, DiskCache, EntryKind, Key};
use crate::counters::{Count, Counted, Numbers};
use crate::error::{CodeError, Result};
use crate::launch::{Kernel, Module, WeakModule};
use crate::runtime::{DeviceRuntime, Inner};
use crate::signature::Signature;
use crate::tracing_span;

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

impl Counted for Modules {
    fn add_to(&self, numbers: &mut Numbers) {
        let code = self.counters();
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let counted = [
            (Count::ModuleHits, code.memory_hits),
            (Count::Compilations, code.compilations),
            (Count::CompileNanoseconds, nanoseconds(code.compile_time)),
            (Count::ModuleLoads, code.loads),
            (Count::ModuleLoadNanoseconds, nanoseconds(code.load_time)),
            (Count::MemorySavedNanoseconds, nanoseconds(code.memory_time_saved)),
            (Count::DiskSavedNanoseconds, nanoseconds(code.disk.time_saved)),
            (Count::DiskHits, code.disk.hits),
            (Count::DiskMisses, code.disk.misses),
            (Count::DiskStores, code.disk.stores),
        ];
        for (count, number) in counted {
            numbers[count as usize] += number;
        }
    }
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

    /// The module of a source that NVRTC compiles: the one that is loaded, or one from the disk, or one that `compile` makes.
    pub(super) fn load_compiled(
        &self,
        runtime: &DeviceRuntime,
        key: Key,
        compile: impl FnOnce() -> Result<Payload>,
    ) -> Result<CompiledModule> {
        self.load(key, || {
            let payload = self.payload(&key, compile)?;
            let (module, load_time) = self.timed_load(|| load(runtime, &payload))?;
            Ok((module, payload.compile_time.saturating_add(load_time)))
        })
    }

    /// The module of PTX: the one that is loaded, or one from machine code on disk, or one that the driver makes of the text. Its machine
    /// code is then kept on disk, where the driver hands it out.
    pub(super) fn load_ptx(&self, runtime: &DeviceRuntime, key: Key, ptx: &str) -> Result<CompiledModule> {
        self.load(key, || {
            let code = Arc::new(read(ptx, &[])?);
            let (module, cost) = self.load_kept(runtime, &key, ptx)?;
            Ok((CompiledModule { module, code }, cost))
        })
    }

    /// A module, and how long it took to make and to load.
    fn load_kept(&self, runtime: &DeviceRuntime, key: &Key, ptx: &str) -> Result<(Module, Duration)> {
        if self.disk.folder().is_none() {
            return self.timed_load(|| runtime.load_module(&Image::Ptx(ptx)));
        }
        if let Some(entry) = self.disk.get(key).filter(|entry| entry.kind == EntryKind::Cubin) {
            match self.timed_load(|| runtime.load_image(&Image::Cubin(&entry.payload), Some(ptx))) {
                Ok((module, time)) => return Ok((module, entry.compile_time.saturating_add(time))),
                Err(error) if error.is_sticky() => return Err(error),
                // The device does not take it, so it is made anew.
                Err(_) => {}
            }
        }
        let machine_code = OnceLock::new();
        let image = Image::PtxToKeep { text: ptx, machine_code: &machine_code };
        let (module, time) = match self.timed_load(|| runtime.load_module(&image)) {
            Err(error) if error.driver().is_some_and(kiln_driver::Error::is_unsupported) => {
                self.timed_load(|| runtime.load_module(&Image::Ptx(ptx)))?
            }
            loaded => loaded?,
        };
        if let Some(payload) = machine_code.into_inner() {
            let compile_time = match runtime.info().kind {
                DeviceKind::Cuda => time,
                // A simulated device runs the text as it is, so its machine code saves no time.
                DeviceKind::Simulated => Duration::ZERO,
            };
            let kernels = kernel_names(ptx, &[]);
            self.disk.put(key, &CacheEntry { kind: EntryKind::Cubin, compile_time, kernels, payload });
        }
        Ok((module, time))
    }

    /// The module of a key: the one that is loaded, or what `make` answers, with how long that took.
    fn load(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<(CompiledModule, Duration)>,
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
        let (compiled, cost) = make()?;
        *slot = Some(Loaded {
            module: compiled.module.downgrade(),
            code: compiled.code.clone(),
            cost_ns: nanoseconds(cost),
        });
        Ok(compiled)
    }

    /// Counts that the module of a key was asked for and is loaded, for a caller that holds it.
    pub(crate) fn count_found(&self, key: &Key) {
        let slot = self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        let cost_ns = slot.and_then(|slot| {
            let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.as_ref().map(|loaded| loaded.cost_ns)
        });
        self.memory_hits.fetch_add(1, Ordering::Relaxed);
        self.memory_saved_ns.fetch_add(cost_ns.unwrap_or(0), Ordering::Relaxed);
    }

    /// PTX texts whose modules are loaded. One that is being loaded is not waited for.
    pub(crate) fn sources(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let is_loaded = |slot: &&Slot| {
            let slot = slot.try_lock();
            slot.is_ok_and(|slot| slot.as_ref().is_some_and(|loaded| loaded.module.is_loaded()))
        };
        slots.values().filter(is_loaded).count()
    }

    fn timed_load<T>(&self, load: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        let start = Instant::now();
        let loaded = load()?;
        let time = start.elapsed();
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.load_ns.fetch_add(nanoseconds(time), Ordering::Relaxed);
        Ok((loaded, time))
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
        let _span = tracing_span::compilation();
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
    pub(super) fn into_module(self) -> Module {
        self.module
    }

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
    let code = Arc::new(read(&payload.ptx, &payload.names)?);
    let module = load_first(payload, |image| runtime.load_image(image, Some(&payload.ptx)))?;
    Ok(CompiledModule { module, code })
}

/// The first of a payload's images that loads. A lost device takes none, so nothing more is tried on it.
fn load_first<T>(payload: &Payload, load: impl Fn(&Image<'_>) -> Result<T>) -> Result<T> {
    let ptx = Image::Ptx(&payload.ptx);
    match &payload.cubin {
        Some(cubin) => {
            load(&Image::Cubin(cubin)).or_else(|error| if error.is_lost() { Err(error) } else { load(&ptx) })
        }
        None => load(&ptx),
    }
}

/// Loads machine code of which nothing else is known.
pub(super) fn load_cubin(runtime: &DeviceRuntime, cubin: &[u8]) -> Result<CompiledModule> {
    Ok(CompiledModule { module: runtime.load_module(&Image::Cubin(cubin))?, code: Arc::default() })
}

/// What PTX says of its kernels; `names` are name expressions and what they are called in it.
fn read(ptx: &str, names: &[(String, String)]) -> Result<Code> {
    let module = kiln_ptx::PtxModule::parse(ptx).map_err(CodeError::from)?;
    let facts = |name: &str| -> Option<EntryFacts> { module.facts(module.find_function(name)?) };
    let entries = module
        .entries()
        .filter_map(|entry| Some((entry.name.to_string(), signature(&facts(&entry.name)?))))
        .collect();
    Ok(Code { entries, names: names.iter().cloned().collect() })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kiln_driver::{Code as CudaCode, Error, Fault};

    use super::*;

    /// Which images are tried, and whether one loaded, on a device that answers machine code with that error.
    fn tried(refusal: Option<Error>) -> (Vec<&'static str>, bool) {
        let payload = Payload { cubin: Some(vec![1]), ..Payload::of_ptx("ptx".into()) };
        let tried = RefCell::new(Vec::new());
        let loaded = load_first(&payload, |image| match image {
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
        assert_eq!(tried(None), (vec!["cubin"], true));
        assert_eq!(tried(Some(refused)), (vec!["cubin", "ptx"], true));
        assert_eq!(tried(Some(lost)), (vec!["cubin"], false));
    }
}
