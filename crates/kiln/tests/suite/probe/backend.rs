//! Backends: labels, build steps, cells, modules, buffers.

use std::error::Error as _;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kiln::backend::{ArenaConfig, BackendOptions, CodeImage};
use kiln::checking::FindingRule;
use kiln::probe::{ProbeError, Selection};
use kiln::{
    Error, Policy,
    backend::{BackendContext, CachedBackend},
    error::ErrorKind,
};
use kiln_driver::Code;
use kiln_sim::DeviceConfig;

use super::scripted::{LIBRARY, Scripted, fault, no_driver, out_of_memory, prober, prober_with};

fn context() -> BackendContext {
    BackendContext::from_parts(prober(&Scripted::one_device()).probe_backend("test").unwrap())
}

#[test]
fn every_error_carries_the_label_and_keeps_what_lies_below() {
    let absent = prober(&Scripted::absent()).probe_backend("solver").unwrap_err();
    assert_eq!(absent.to_string(), "solver backend: no CUDA runtime available");
    assert!(matches!(absent.kind(), ErrorKind::Probe(ProbeError::Absent(reason)) if *reason == no_driver()));
    assert_eq!(absent.label(), Some("solver"));

    let cuda = Scripted::cuda([DeviceConfig::small(), DeviceConfig::default()]);
    cuda.will_fail_to_open(out_of_memory());
    cuda.will_fail_to_open(fault());
    let context = prober(&cuda).probe_backend("solver").unwrap_err();
    assert_eq!(context.to_string(), "solver backend: failed to create CUDA context for device 1");
    assert_eq!(
        (context.code(), context.call()),
        (Some(Code::OUT_OF_MEMORY), Some("cuDevicePrimaryCtxRetain"))
    );
    assert!(context.is_oom() && context.source().is_some());

    let cuda = Scripted::one_device();
    cuda.will_list(Err(fault().into()));
    let listing = prober(&cuda).probe_backend("solver").unwrap_err();
    assert!(listing.to_string().starts_with("solver backend: "), "{listing}");
    assert_eq!(listing.code(), Some(Code::NOT_INITIALIZED));

    let environment =
        prober_with(&cuda, &Scripted::simulator(), Some("?")).probe_backend("solver").unwrap_err();
    assert_eq!(environment.label(), Some("solver"));
}

#[test]
fn backends_on_one_device_share_its_runtime() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    let solver = prober.probe_backend("solver").unwrap();
    let sampler = prober.probe_backend("sampler").unwrap();
    assert!(std::ptr::eq(solver.runtime(), sampler.runtime()));
    assert_eq!(solver.capability(), DeviceConfig::default().capability);
    assert_eq!(cuda.opened(), [0]);
}

#[test]
fn the_build_step_gets_the_parts_and_its_error_is_labelled() {
    let prober = prober(&Scripted::one_device());
    let major = prober.probe_backend_with_compile("solver", |parts| Ok(parts.capability().major)).unwrap();
    assert_eq!(major, DeviceConfig::default().capability.major);
    let error = prober
        .probe_backend_with_compile("solver", |_| -> kiln::Result<()> {
            Err(Error::other(std::io::Error::other("no disk")))
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "solver backend: no disk");
}

#[test]
fn a_cell_is_filled_once_however_many_come_first() {
    let (cell, builds) = (CachedBackend::<u32>::new(), AtomicUsize::new(0));
    let prober = prober(&Scripted::one_device());
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                let value = cell.get_or_probe_with(&prober, "solver", |_| {
                    builds.fetch_add(1, Ordering::SeqCst);
                    Ok(7)
                });
                assert_eq!(*value.unwrap(), 7);
            });
        }
    });
    assert_eq!((builds.into_inner(), cell.get()), (1, Some(&7)));
}

#[test]
fn a_cell_forgets_failures_and_survives_panics() {
    let cuda = Scripted::one_device();
    cuda.will_fail_to_open(out_of_memory());
    let (cell, prober) = (CachedBackend::<u32>::new(), prober(&cuda));
    let probed = |value| cell.get_or_probe_with(&prober, "solver", |_| Ok(value));
    assert!(probed(1).unwrap_err().is_oom());
    assert_eq!(cell.get(), None);
    let failed = cell.get_or_probe_with(&prober, "solver", |_| Err(fault().into()));
    assert_eq!(failed.unwrap_err().label(), Some("solver"));
    let panicked = thread::scope(|scope| {
        scope.spawn(|| drop(cell.get_or_probe_with(&prober, "solver", |_| panic!("planned")))).join()
    });
    assert!(panicked.is_err());
    assert_eq!(*probed(2).unwrap(), 2);
    assert_eq!(*probed(3).unwrap(), 2);
}

#[test]
fn a_build_step_that_asks_its_own_cell_is_told_so() {
    let (cell, prober) = (CachedBackend::<u32>::new(), prober(&Scripted::one_device()));
    let error = cell
        .get_or_probe_with(&prober, "outer", |_| cell.get_or_probe_with(&prober, "inner", |_| Ok(1)).copied())
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::Recursion)), "{error}");
}

#[test]
fn a_module_is_loaded_once_per_key() {
    let (context, loads) = (context(), AtomicUsize::new(0));
    let start = Barrier::new(4);
    let ids: Vec<_> = thread::scope(|scope| {
        let load = || {
            start.wait();
            let module = context.module("shared", |parts| {
                assert_eq!(parts.capability(), context.capability());
                loads.fetch_add(1, Ordering::SeqCst);
                Ok(CodeImage::HostKernels(LIBRARY.into()))
            });
            module.unwrap().id()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(loads.into_inner(), 1);
    let other = context.module("other", |_| Ok(CodeImage::HostKernels(LIBRARY.into()))).unwrap();
    assert_ne!(other.id(), ids[0]);
    assert_eq!(other.kernel("nothing", None).unwrap().name(), "nothing");
}

#[test]
fn a_module_that_failed_is_tried_again() {
    let (context, loads) = (context(), AtomicUsize::new(0));
    let image = |name: &str| {
        loads.fetch_add(1, Ordering::SeqCst);
        Ok(CodeImage::HostKernels(name.into()))
    };
    let error = context.module("axpy", |_| image("no such library")).unwrap_err();
    assert!(error.driver().is_some_and(kiln_driver::Error::is_refused), "{error}");
    assert!(context.module("axpy", |_| image(LIBRARY)).is_ok());
    assert!(context.module("axpy", |_| image("never asked for")).is_ok());
    assert_eq!(loads.into_inner(), 2);
}

#[test]
fn a_buffer_comes_back_for_the_next_of_about_its_size() {
    let context = context();
    let first = context.buffer::<f32>(1000).unwrap();
    assert_eq!(first.len(), 1000);
    first.upload(&vec![1.5; 1000]).unwrap();
    assert_eq!(first.download().unwrap(), vec![1.5; 1000]);
    let block = first.block_id();
    let lent = context.arena().usage().lent_bytes;
    assert!((4000..=5000).contains(&lent));
    drop(first);
    assert_eq!((context.arena().usage().lent_bytes, context.arena().usage().kept_bytes), (0, lent));

    let second = context.buffer::<u64>(490).unwrap();
    assert_eq!(second.block_id(), block);
    let third = context.buffer::<u64>(490).unwrap();
    assert_ne!(third.block_id(), block);
    let other_size = context.buffer::<u8>(1 << 20).unwrap();
    assert_ne!(other_size.block_id(), block);
}

/// A device that checks accesses sees a buffer of an arena begin and end like any other block.
#[test]
fn a_buffer_that_comes_back_is_uninitialised() {
    let context = context();
    let first = context.buffer::<u32>(64).unwrap();
    first.upload(&[1; 64]).unwrap();
    let block = first.block_id();
    let copy = context.runtime().zeros::<u32>(64).unwrap();
    copy.copy_from(&first).unwrap();
    drop(first);
    assert_eq!(copy.download().unwrap(), [1; 64], "work from before may use it");
    for _ in 0..2 {
        let again = context.buffer::<u32>(64).unwrap();
        assert_eq!(again.block_id(), block);
        let error = again.download().unwrap_err();
        assert_eq!(error.finding().map(|found| found.rule), Some(FindingRule::Uninitialised), "{error}");
        again.fill(2).unwrap();
        assert_eq!(again.download().unwrap(), [2; 64]);
    }
}

#[test]
fn the_shelves_are_capped_and_trimmed() {
    let parts = prober(&Scripted::one_device()).probe_backend("test").unwrap();
    let runtime = parts.runtime();
    let before = runtime.bytes_outstanding();
    let context = BackendContext::with_arena(parts, ArenaConfig { max_kept_bytes: 3 << 20 });
    let buffers: Vec<_> = (0..5).map(|_| context.buffer::<u8>(1 << 20).unwrap()).collect();
    assert_eq!(context.arena().usage().lent_bytes, 5 << 20);
    drop(buffers);
    assert_eq!(context.arena().usage().kept_bytes, 3 << 20);
    assert_eq!(runtime.bytes_outstanding() - before, 3 << 20);
    context.arena().trim(1 << 20);
    assert_eq!(runtime.bytes_outstanding() - before, 1 << 20);
    drop(context);
    assert_eq!(runtime.bytes_outstanding(), before);
}

#[test]
fn a_handle_kept_beyond_its_buffer_keeps_the_memory_for_itself() {
    let context = context();
    let buffer = context.buffer::<u32>(64).unwrap();
    let kept = (*buffer).clone();
    kept.upload(&[9; 64]).unwrap();
    drop(buffer);
    assert_eq!(context.arena().usage().kept_bytes, 0);
    let next = context.buffer::<u32>(64).unwrap();
    next.upload(&[1; 64]).unwrap();
    assert_ne!(next.block_id(), kept.block_id());
    assert_eq!(kept.download().unwrap(), [9; 64]);
}

#[test]
fn out_of_memory_empties_the_shelves_first() {
    let cuda = Scripted::cuda([DeviceConfig::with_memory(256 << 20)]);
    let parts = prober(&cuda).probe_backend("test").unwrap();
    let context = BackendContext::from_parts(parts);
    drop(context.buffer::<u8>(150 << 20).unwrap());
    assert!(context.arena().usage().kept_bytes > 0);
    let large = context.buffer::<u8>(200 << 20).unwrap();
    assert_eq!(context.arena().usage().kept_bytes, 0);
    drop(large);
    assert!(context.buffer::<u8>(1 << 30).unwrap_err().is_oom());
    assert!(context.buffer::<u64>(usize::MAX / 2).is_err());
}

#[test]
fn the_policy_of_a_backend_is_the_one_in_force() {
    let prober = prober_with(&Scripted::absent(), &Scripted::simulator(), Some("simulate"));
    assert_eq!(prober.policy().unwrap(), Policy::Simulate);
    assert!(prober.probe_backend("solver").is_ok());
}

#[test]
fn a_cell_builds_another_backend_once_its_runtime_is_over() {
    let (cell, prober) = (CachedBackend::<BackendContext>::new(), prober(&Scripted::one_device()));
    let get = || cell.get_or_probe_with(&prober, "solver", |parts| Ok(BackendContext::from_parts(parts)));
    let first = get().unwrap();
    let kept = first.buffer::<u32>(64).unwrap();
    first.runtime().shutdown(Duration::from_secs(10)).unwrap();
    let second = get().unwrap();
    assert!(!std::ptr::eq(first, second) && std::ptr::eq(second, get().unwrap()));
    assert!(cell.get().is_some_and(|last| std::ptr::eq(last, second)));
    assert!(second.buffer::<u32>(64).unwrap().upload(&[1; 64]).is_ok());
    assert!(kept.upload(&[1; 64]).is_err(), "the first one stays what it is");
}

#[test]
fn a_backend_chooses_its_policy_and_its_device() {
    let (cuda, simulator) =
        (Scripted::cuda([DeviceConfig::small(), DeviceConfig::default()]), Scripted::simulator());
    let prober = prober_with(&cuda, &simulator, None);
    let options = BackendOptions::new();
    let probe = |options: BackendOptions| prober.probe_backend_on("solver", &options);
    assert_eq!(probe(options).unwrap().runtime().ordinal(), 1);
    assert_eq!(probe(options.device(Selection::Ordinal(0))).unwrap().runtime().ordinal(), 0);
    assert_eq!((cuda.opened(), simulator.opened()), (vec![1, 0], vec![]));
    let simulated = probe(options.policy(Policy::Simulate)).unwrap();
    assert!(std::ptr::eq(simulated.runtime(), prober.resolve(Policy::Simulate).unwrap().unwrap()));
    assert_eq!(simulator.opened(), [0]);

    let unknown = probe(options.device(Selection::Ordinal(7))).unwrap_err();
    assert!(
        matches!(unknown.kind(), ErrorKind::Probe(ProbeError::UnknownDevice { known: 2, .. })),
        "{unknown}"
    );
    assert_eq!(unknown.label(), Some("solver"));
    let off = probe(options.policy(Policy::Off)).unwrap_err();
    assert!(off.is_absence() && off.label() == Some("solver"), "{off}");
}

#[test]
fn a_cuda_backend_is_never_a_simulated_one() {
    let simulator = Scripted::simulator();
    let absent = prober_with(&Scripted::absent(), &simulator, Some("simulate"));
    for error in [
        absent.probe_backend_on("solver", &BackendOptions::cuda()).unwrap_err(),
        absent.require().unwrap_err(),
        absent.cuda(0).unwrap_err(),
    ] {
        assert!(error.is_absence(), "{error}");
    }
    assert!(simulator.opened().is_empty());
    let cuda = Scripted::one_device();
    let present = prober_with(&cuda, &simulator, Some("simulate"));
    assert!(present.probe_backend_on("solver", &BackendOptions::cuda()).is_ok());
    assert_eq!((cuda.opened(), simulator.opened()), (vec![0], vec![]));
}
