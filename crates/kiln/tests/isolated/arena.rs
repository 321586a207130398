//! The buffers that a backend keeps for reuse, after another worker has taken over.

use std::sync::Arc;

use kiln::probe::{DeviceSummary, Listing, Platform, Prober, ProberConfig, Result};
use kiln::recovery::{DeviceSpec, Isolation};
use kiln::{DeviceRuntime, GpuRef, Policy, RuntimeConfig, backend::BackendContext, buffer::Stale};
use kiln_driver::{DeviceKind, Driver};
use kiln_sim::{Machine, MachineConfig};

use crate::{kernels, rig};

/// One simulated device that is opened in a worker process.
struct InWorker {
    seed: u64,
}

impl InWorker {
    fn machine(&self) -> Machine {
        Machine::new(MachineConfig::seeded(self.seed))
    }
}

impl Platform for InWorker {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Simulated
    }

    fn list(&self) -> Result<Listing> {
        let devices = self.machine().devices();
        Ok(Listing::Devices(devices.iter().map(|info| Ok(DeviceSummary::from(info))).collect()))
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        Ok(self.machine().device(ordinal)?)
    }

    fn backend(&self, _: u32) -> Result<Option<DeviceSpec>> {
        Ok(Some(DeviceSpec::simulated(self.seed)))
    }
}

/// A backend over a device in a worker process.
fn context(seed: u64) -> BackendContext {
    let platform = || Box::new(InWorker { seed });
    let prober = Prober::new(ProberConfig { cuda: platform(), simulator: platform(), policy_override: None });
    prober.set_policy(Policy::Simulate).unwrap();
    let isolation = Isolation::Process(rig::process());
    prober.set_runtime_config(RuntimeConfig { isolation, ..RuntimeConfig::default() }).unwrap();
    BackendContext::from_parts(prober.probe_backend("arena").unwrap())
}

/// Launches a kernel that writes the buffer and faults; returns when another worker has taken over.
fn fault_on(gpu: &DeviceRuntime, buffer: &GpuRef<u32>) {
    let generation = gpu.generation().0;
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    gpu.synchronize().unwrap();
    // SAFETY: it is to fault.
    unsafe { gpu.launch(&illegal).grid(1).block(1).write(buffer).submit() }.unwrap();
    rig::recovered(gpu, generation);
}

#[test]
fn a_takeover_leaves_the_buffers_that_were_kept_and_no_other() {
    let context = context(41);
    let gpu = context.runtime();
    let (kept, lost) = (context.buffer::<u32>(64).unwrap(), context.buffer::<u32>(64).unwrap());
    kept.upload(&[7; 64]).unwrap();
    let (kept_block, lost_block) = (kept.block_id(), lost.block_id());
    drop(kept);
    fault_on(gpu, &lost);
    drop(lost);
    assert_eq!(context.arena().usage().kept_bytes, 256);
    let (first, second) = (context.buffer::<u32>(64).unwrap(), context.buffer::<u32>(64).unwrap());
    assert_eq!(first.block_id(), kept_block);
    assert_ne!(second.block_id(), lost_block);
    for buffer in [first, second] {
        buffer.upload(&[3; 64]).unwrap();
        assert_eq!(buffer.download().unwrap(), [3; 64]);
    }
}

#[test]
fn buffers_that_are_free_while_they_are_lost_leave_the_arena() {
    let context = context(42);
    let gpu = context.runtime();
    let buffer = context.buffer::<u32>(1024).unwrap();
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    gpu.synchronize().unwrap();
    // SAFETY: it is to fault.
    unsafe { gpu.launch(&illegal).grid(1).block(1).write(&buffer).submit() }.unwrap();
    // Given back before anything is known of the fault.
    drop(buffer);
    rig::recovered(gpu, 0);
    assert_eq!(context.arena().usage().kept_bytes, 0, "also before a buffer of that size is asked for");
    for _ in 0..3 {
        let next = context.buffer::<u32>(1024).unwrap();
        assert_eq!(next.access().map(|memory| memory.bytes), Ok(4096));
        next.upload(&[1; 1024]).unwrap();
        assert_eq!(next.download().unwrap(), [1; 1024]);
    }
    assert_eq!(context.arena().usage().kept_bytes, 4096, "one buffer, and not the lost one");
}

#[test]
fn a_buffer_given_back_after_its_loss_is_dropped() {
    let context = context(43);
    let gpu = context.runtime();
    let lost = context.buffer::<u32>(256).unwrap();
    fault_on(gpu, &lost);
    assert_eq!(lost.access(), Err(Stale::Lost));
    assert_eq!(context.arena().usage().kept_bytes, 0, "free buffers of this generation are checked by now");
    drop(lost);
    assert_eq!((context.arena().usage().kept_bytes, context.arena().usage().lent_bytes), (0, 0));
    assert!(context.buffer::<u32>(256).unwrap().access().is_ok());
}
