//! Frees are deferred until the device is idle: no call waits for running work.

use std::sync::Arc;

use kiln_cuda::CudaDevice;
use kiln_driver::{Driver, DriverExt, MemoryRequest, SharedBytes};

use crate::machine::{Machine, calls};
use crate::opened::Bench;

/// The calls of the driver that wait for everything that runs.
fn waiting_calls() -> [usize; 4] {
    ["cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuModuleUnload"].map(|name| calls(name).len())
}

on_machine! {
    fn nothing_that_waits_is_called_while_a_stream_works() on Machine::fake() => {
        let bench = Bench::new();
        let (memory, block) = (bench.memory(64), bench.host(&[1; 64]));
        let registered = bench.device.register_host(Arc::new(SharedBytes::zeroed(4096))).unwrap();
        bench.run("stall").unwrap();
        bench.device.free(memory.id, None).unwrap();
        for object in [block.id().into(), registered.id().into(), bench.module.into()] {
            bench.device.destroy(object).unwrap();
        }
        drop((block, registered));
        let _more = bench.memory(64);
        assert_eq!(waiting_calls(), [0; 4]);
        drop(bench);
        assert_eq!(waiting_calls(), [2, 1, 1, 1], "and closing the device frees all of it");
    }

    fn the_end_of_a_wait_runs_deferred_frees() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(64);
        bench.run("stall").unwrap();
        bench.device.free(memory.id, None).unwrap();
        bench.run("resume").unwrap();
        assert_eq!(waiting_calls()[0], 0);
        bench.device.synchronize(bench.stream).unwrap();
        assert_eq!(waiting_calls()[0], 1);
    }

    fn a_destroyed_stream_may_still_work() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(64);
        bench.run("stall").unwrap();
        bench.device.destroy(bench.stream.into()).unwrap();
        assert_eq!(calls("cuEventRecord").len(), 1, "an event at its end tells when it is done");
        bench.device.free(memory.id, None).unwrap();
        // The stand-in completes a stream when it is destroyed, which the next check finds.
        let _more = bench.memory(64);
        assert_eq!(waiting_calls()[0], 1);
    }

    fn an_allocation_that_finds_no_memory_waits_for_deferred_frees() on Machine::fake() => {
        let bench = Bench::new();
        let large = bench.memory(40 << 20);
        bench.run("stall").unwrap();
        bench.device.free(large.id, None).unwrap();
        assert!(bench.device.allocate(MemoryRequest::Direct { bytes: 40 << 20 }).unwrap_err().is_oom());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                bench.run("resume").unwrap();
            });
            bench.device.allocate(MemoryRequest::Direct { bytes: 40 << 20 }).unwrap();
        });
    }

    fn a_device_opened_twice_is_idle_when_both_are() on Machine::fake() => {
        let bench = Bench::new();
        let other = CudaDevice::open(0).unwrap();
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 1);
        let memory = other.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
        bench.run("stall").unwrap();
        other.free(memory.id, None).unwrap();
        assert_eq!(waiting_calls()[0], 0);
        bench.run("resume").unwrap();
        assert!(other.allocate_host(1).is_ok());
        assert_eq!(waiting_calls()[0], 1);
    }
}
