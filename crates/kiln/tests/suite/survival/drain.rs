//! Freed memory that unfinished work may still use: what is pending, and waiting for it with a deadline.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use kiln::{
    DeviceRuntime, RuntimeConfig,
    error::{ErrorKind, Misuse},
};
use kiln_driver::{Access, Image};
use kiln_sim::{HostKernel, KernelLibrary, Machine, MachineConfig, Mode};

const LIBRARY: &str = "gates";
const BYTES: usize = 1 << 20;

/// A device on which the kernel `gate` runs until the barrier opens.
fn gated() -> (Machine, Arc<Barrier>, DeviceRuntime) {
    let gate = Arc::new(Barrier::new(2));
    let inside = gate.clone();
    let kernel = HostKernel::new("gate").body(move |_| {
        inside.wait();
        Ok(())
    });
    let library = KernelLibrary::new(LIBRARY).kernel(kernel);
    let machine = Machine::new(MachineConfig::seeded(0).mode(Mode::Threaded { workers: 2 }).library(library));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    (machine, gate, gpu)
}

#[test]
fn a_drain_waits_for_work_that_uses_freed_memory_and_a_reap_does_not() {
    let (_machine, gate, gpu) = gated();
    let kernel = gpu.load_kernel(&Image::HostKernels(LIBRARY), "gate", None).unwrap();
    let stream = gpu.stream().unwrap();
    let buffer = gpu.zeros::<u8>(BYTES).unwrap();
    gpu.synchronize().unwrap();
    // SAFETY: the kernel touches nothing.
    unsafe { gpu.launch(&kernel).on(&stream).grid(1).block(1).submit() }.unwrap();
    buffer.fill_on(&stream, 1).unwrap();
    drop(buffer);

    assert_eq!(gpu.reap_pending().unwrap(), 0);
    let cut_short = gpu.drain_pending(Duration::ZERO).unwrap();
    assert_eq!((cut_short.freed_bytes, cut_short.is_complete()), (0, false));
    assert_eq!(cut_short.pending_bytes, BYTES as u64);

    let opener = std::thread::spawn(move || {
        gate.wait();
    });
    let drained = gpu.drain_pending(Duration::MAX).unwrap();
    assert_eq!((drained.freed_bytes, drained.pending_bytes), (BYTES as u64, 0));
    assert_eq!(gpu.bytes_outstanding(), 0);
    opener.join().unwrap();
    assert_eq!(gpu.drain_pending(Duration::ZERO).unwrap(), Default::default());
}

#[test]
fn on_a_seeded_device_a_drain_makes_time_pass() {
    for seed in 0..20 {
        let gpu = DeviceRuntime::simulated(seed).unwrap();
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        for stream in streams.iter().cycle().take(6) {
            gpu.zeros::<u32>(1000).unwrap().fill_on(stream, 7).unwrap();
        }
        let drained = gpu.drain_pending(Duration::from_secs(60)).unwrap();
        assert!(drained.is_complete(), "seed {seed}: {drained:?}");
        assert_eq!(gpu.bytes_outstanding(), 0, "seed {seed}");
    }
}

#[test]
fn a_thread_that_holds_a_prepared_use_would_wait_for_itself_and_is_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let buffer = gpu.zeros::<u32>(16).unwrap();
    let held = gpu.prepare_first_use(gpu.main_stream(), &buffer, Access::Write).unwrap();
    let error = gpu.drain_pending(Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Prepared { .. })), "{error}");
    drop(held);
    assert!(gpu.drain_pending(Duration::from_secs(1)).unwrap().is_complete());
}
