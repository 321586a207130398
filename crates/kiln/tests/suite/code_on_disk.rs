//! Kernels and the cache on disk together: what makes another entry, and what a cache in trouble costs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kiln::code_cache::{CacheConfig, CacheEntry, CachePlace, EntryKind, EntryState};
use kiln::program::{Backend, Bindings, Program};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::{Capability, Version};
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const SET: &str = "extern \"C\" __global__ void set(int* x) { x[threadIdx.x] = 7; }";

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("kiln-code-on-disk-{}-{number}", std::process::id())))
    }

    fn runtime(&self) -> DeviceRuntime {
        runtime(CachePlace::At(self.0.clone()), DeviceConfig::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn runtime(place: CachePlace, device: DeviceConfig) -> DeviceRuntime {
    let machine =
        Machine::new(MachineConfig::seeded(3).engine(Arc::new(PtxEngine::default())).device(device));
    let cache = CacheConfig { place, ..CacheConfig::default() };
    let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

/// Runs the kernel and says how many compilations that took.
fn set(gpu: &DeviceRuntime) -> u64 {
    let before = gpu.code_counters().compilations;
    let (kernel, x) = (gpu.kernel(SET, "set").unwrap(), gpu.zeros::<i32>(4).unwrap());
    // SAFETY: the kernel touches one element for each of its four threads.
    unsafe { gpu.launch(&kernel).grid(1).block(4).write(&x).submit() }.unwrap();
    assert_eq!(x.download().unwrap(), [7; 4]);
    gpu.code_counters().compilations - before
}

#[test]
fn another_architecture_and_another_driver_make_other_entries() {
    if crate::skip::without_nvrtc("another_architecture_and_another_driver_make_other_entries") {
        return;
    }
    let folder = Folder::new();
    let usual = DeviceConfig::default();
    let older = DeviceConfig { capability: Capability { major: 8, minor: 0 }, ..usual.clone() };
    let newer = DeviceConfig { driver_version: Version { major: 13, minor: 1 }, ..usual.clone() };
    for (entries, device) in [(1, &usual), (2, &older), (3, &newer)] {
        let gpu = runtime(CachePlace::At(folder.0.clone()), device.clone());
        assert_eq!(set(&gpu), 1, "it is not what another device had");
        assert_eq!(gpu.disk_cache().list().unwrap().len(), entries);
    }
    for device in [usual, older, newer] {
        assert_eq!(set(&runtime(CachePlace::At(folder.0.clone()), device)), 0, "each finds its own");
    }
}

#[test]
fn a_damaged_or_foreign_entry_is_compiled_anew() {
    if crate::skip::without_nvrtc("a_damaged_or_foreign_entry_is_compiled_anew") {
        return;
    }
    let folder = Folder::new();
    assert_eq!(set(&folder.runtime()), 1);
    let cache = folder.runtime();
    let key = cache.disk_cache().list().unwrap()[0].key;
    let file = folder.0.join(format!("{key}.kiln"));
    let whole = std::fs::read(&file).unwrap();
    for cut in [0, 7, 60, whole.len() - 1] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let gpu = folder.runtime();
        assert_eq!((set(&gpu), gpu.code_counters().disk.damaged), (1, 1), "cut at {cut}");
        assert_eq!(set(&folder.runtime()), 0, "it is good again");
    }
    // Whole, and of this key, but not what a compiler made.
    let kind = EntryKind::CubinWithPtx;
    let nonsense = CacheEntry {
        kind,
        payload: vec![0xff; 100],
        compile_time: std::time::Duration::ZERO,
        kernels: Vec::new(),
    };
    cache.disk_cache().put(&key, &nonsense);
    assert_eq!(set(&folder.runtime()), 1);
    assert_eq!(set(&folder.runtime()), 0);
}

/// Warnings, in order.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<&'static str>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(event.metadata().target());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_cache_that_cannot_be_written_is_one_warning_and_kernels_still_run() {
    if crate::skip::without_nvrtc("a_cache_that_cannot_be_written_is_one_warning_and_kernels_still_run") {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    std::fs::write(&file, b"").unwrap();
    let gpu = runtime(CachePlace::At(file.join("below")), DeviceConfig::default());
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        assert_eq!(set(&gpu), 1);
        let other = SET.replace("= 7", "= 8");
        gpu.kernel(other.as_str(), "set").unwrap();
        gpu.source(SET).fmad(false).kernel("set").unwrap();
    });
    assert_eq!(warnings.0.lock().unwrap().len(), 1);
    assert!(gpu.disk_cache().has_warned() && gpu.disk_cache().list().is_err());
    assert_eq!((gpu.code_counters().compilations, gpu.code_counters().disk.bytes_written), (3, 0));
}

#[test]
fn a_cache_that_is_off_compiles_in_every_runtime_and_touches_no_disk() {
    if crate::skip::without_nvrtc("a_cache_that_is_off_compiles_in_every_runtime_and_touches_no_disk") {
        return;
    }
    for _ in 0..2 {
        let gpu = runtime(CachePlace::Off, DeviceConfig::default());
        assert_eq!((set(&gpu), gpu.disk_cache().folder()), (1, None));
    }
}

const COPY: &str = include_str!("../copy.ptx");

/// Runs the kernel of [`COPY`] and says what the disk did for it: hits, misses, stores.
fn copy(gpu: &DeviceRuntime) -> (u64, u64, u64) {
    let before = gpu.code_counters().disk;
    let (from, to) = (gpu.upload(&[41_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let kernel = gpu.kernel(COPY, "copy").unwrap();
    // SAFETY: the kernel touches one element of each.
    unsafe { gpu.launch(&kernel).threads(1).read(&from).write(&to).submit() }.unwrap();
    assert_eq!(to.download().unwrap(), [41]);
    let now = gpu.code_counters().disk;
    (now.hits - before.hits, now.misses - before.misses, now.stores - before.stores)
}

#[test]
fn machine_code_of_ptx_is_kept_for_the_next_process() {
    let folder = Folder::new();
    let first = folder.runtime();
    assert_eq!(copy(&first), (0, 1, 1), "not found, made, stored");
    assert_eq!(copy(&first), (1, 0, 0), "the kernel was dropped, so the module comes from the disk");
    let kernel = first.kernel(COPY, "copy").unwrap();
    assert_eq!((copy(&first), first.code_counters().memory_hits), ((0, 0, 0), 1), "found loaded");
    drop(kernel);

    let second = folder.runtime();
    assert_eq!(copy(&second), (1, 0, 0));
    let counters = second.code_counters();
    assert_eq!((counters.compilations, counters.loads), (0, 1));
    let entries = second.disk_cache().list().unwrap();
    assert_eq!((entries.len(), entries[0].kernels.as_slice()), (1, ["copy".to_owned()].as_slice()));
    assert!(second.disk_cache().verify().unwrap().iter().all(EntryState::is_good));
}

#[test]
fn machine_code_of_a_program_is_kept_for_the_next_process() {
    let text = "kernel doubled(in x: f32[], out y: f32[like x]) block(32) over(x) { y[global.x] = x[global.x] + x[global.x]; }";
    let doubled = Program::parse(text).unwrap();
    let folder = Folder::new();
    for expected in [(0, 1, 1), (1, 0, 0)] {
        let gpu = folder.runtime();
        let pipeline = Backend::over(gpu.clone()).compile(&doubled).unwrap();
        let disk = gpu.code_counters().disk;
        assert_eq!((disk.hits, disk.misses, disk.stores), expected);
        let mut y = vec![0.0_f32; 3];
        pipeline.dispatch(Bindings::new().input("x", &[1.0_f32, 2.0, 3.0]).output("y", &mut y)).unwrap();
        assert_eq!(y, [2.0, 4.0, 6.0]);
        assert_eq!(gpu.disk_cache().list().unwrap()[0].kernels, ["doubled"]);
    }
}

#[test]
fn ptx_for_another_device_is_another_entry() {
    let folder = Folder::new();
    let usual = DeviceConfig::default();
    let older = DeviceConfig { capability: Capability { major: 8, minor: 0 }, ..usual.clone() };
    let newer = DeviceConfig { driver_version: Version { major: 13, minor: 1 }, ..usual.clone() };
    let on = |device: &DeviceConfig| runtime(CachePlace::At(folder.0.clone()), device.clone());
    for device in [&usual, &older, &newer] {
        assert_eq!(copy(&on(device)), (0, 1, 1));
    }
    for device in [&usual, &older, &newer] {
        assert_eq!(copy(&on(device)), (1, 0, 0));
    }
    assert_eq!(on(&usual).disk_cache().list().unwrap().len(), 3);
}

#[test]
fn machine_code_that_cannot_be_used_is_made_anew() {
    let folder = Folder::new();
    assert_eq!(copy(&folder.runtime()), (0, 1, 1));
    let cache = folder.runtime();
    let key = cache.disk_cache().list().unwrap()[0].key;
    let file = folder.0.join(format!("{key}.kiln"));
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let gpu = folder.runtime();
    assert_eq!((copy(&gpu), gpu.code_counters().disk.damaged), ((0, 1, 1), 1), "a damaged file");
    assert_eq!(copy(&folder.runtime()), (1, 0, 0), "it is good again");
    let other = CacheEntry {
        kind: EntryKind::Cubin,
        compile_time: std::time::Duration::ZERO,
        kernels: Vec::new(),
        payload: b"kiln-sim machine code for 7.0\n".to_vec(),
    };
    cache.disk_cache().put(&key, &other);
    assert_eq!(copy(&folder.runtime()), (1, 0, 1), "code that the device refuses");
    assert_eq!(copy(&folder.runtime()), (1, 0, 0));
}

#[test]
fn ptx_that_is_refused_is_not_kept_and_a_cache_that_is_off_keeps_nothing() {
    let folder = Folder::new();
    let gpu = folder.runtime();
    let broken = COPY.replace(".param .u64 from,", ".param");
    assert!(gpu.kernel(broken.as_str(), "copy").is_err());
    assert_eq!((gpu.code_counters().disk.stores, gpu.disk_cache().list().unwrap().len()), (0, 0));
    assert_eq!(copy(&runtime(CachePlace::Off, DeviceConfig::default())), (0, 0, 0));
}
