//! Plain memory and host memory.

use std::sync::Arc;

use kiln_driver::{
    Command, DeviceAddress, Driver, ErrorKind, ForeignMemory, MemoryRequest, Pattern, Refusal, SharedBytes,
};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, device};

on_machine! {
    fn direct_memory_is_allocated_and_freed_once() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(1000);
        assert_eq!(memory.bytes, 1000);
        let refused = bench.device.free(memory.id, Some(bench.stream)).unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::Invalid { .. })));
        bench.device.free(memory.id, None).unwrap();
        let again = bench.device.free(memory.id, None).unwrap_err();
        assert!(matches!(again.refusal(), Some(Refusal::Stale { .. })) && again.call() == "free");
        assert_eq!(calls("cuMemFree_v2").len(), 1);
    }

    fn pool_memory_is_freed_on_a_stream() on Machine::fake() => {
        let bench = Bench::new();
        let request = MemoryRequest::Pool { bytes: 4096, stream: bench.stream };
        let memory = bench.device.allocate(request).unwrap();
        bench.device.allocate(request).unwrap();
        assert_eq!(calls("cuMemPoolCreate").len(), 1);
        assert_eq!(calls("cuMemPoolSetAttribute"), ["4 18446744073709551615"]);
        assert!(bench.device.free(memory.id, None).unwrap_err().is_refused());
        bench.device.free(memory.id, Some(bench.stream)).unwrap();
        assert_eq!((calls("cuMemFreeAsync").len(), calls("cuMemFree_v2").len()), (1, 0));
        bench.device.trim_pool(1 << 20).unwrap();
        assert_eq!(calls("cuMemPoolTrimTo"), ["1048576"]);
        drop(bench);
        assert_eq!(calls("cuMemFree_v2").len(), 1, "what was never freed is freed with the device");
        assert_eq!(calls("cuMemPoolDestroy").len(), 1);
    }

    fn impossible_sizes_are_out_of_memory_with_what_is_free() on Machine::fake() => {
        let bench = Bench::new();
        let _held = bench.memory(1 << 20);
        for bytes in [64 << 20, (64 << 20) + 1, 1 << 63, u64::MAX] {
            for request in [MemoryRequest::Direct { bytes }, MemoryRequest::Pool { bytes, stream: bench.stream }] {
                let error = bench.device.allocate(request).unwrap_err();
                assert!(error.is_oom() && error.is_retryable(), "{error}");
                let ErrorKind::OutOfMemory { requested, free } = error.kind() else { panic!() };
                assert_eq!((*requested, *free), (bytes, Some(63 << 20)));
            }
        }
        assert!(bench.device.allocate_host(1 << 63).unwrap_err().is_oom());
        assert!(bench.device.allocate_host(65 << 20).unwrap_err().is_oom());
        assert_eq!(bench.device.memory_info().unwrap().free_bytes, 63 << 20);
    }

    fn zero_bytes_are_refused() on Machine::fake() => {
        let bench = Bench::new();
        assert!(bench.device.allocate(MemoryRequest::Direct { bytes: 0 }).unwrap_err().is_refused());
        let pool = MemoryRequest::Pool { bytes: 0, stream: bench.stream };
        assert!(bench.device.allocate(pool).unwrap_err().is_refused());
        assert!(bench.device.allocate_host(0).unwrap_err().is_refused());
        assert!(bench.device.register_host(Arc::new(SharedBytes::zeroed(0))).unwrap_err().is_refused());
    }

    fn an_injected_failure_leaves_nothing_behind() on Machine::fake().plan("cuMemAlloc_v2=2@1,cuMemPoolSetAttribute=1@1") => {
        let bench = Bench::new();
        assert!(bench.device.allocate(MemoryRequest::Direct { bytes: 10 }).unwrap_err().is_oom());
        assert!(bench.device.allocate(MemoryRequest::Direct { bytes: 10 }).is_ok());
        let pool = MemoryRequest::Pool { bytes: 10, stream: bench.stream };
        assert!(bench.device.allocate(pool).unwrap_err().is_refused());
        assert_eq!((calls("cuMemPoolCreate").len(), calls("cuMemPoolDestroy").len()), (1, 1));
        assert!(bench.device.allocate(pool).is_ok());
    }

    fn foreign_memory_is_used_and_left_alone() on Machine::fake() => {
        let bench = Bench::new();
        let theirs = SharedBytes::zeroed(64);
        // SAFETY: the stand-in's device memory is host memory, and these bytes outlive the handle.
        let foreign = unsafe { ForeignMemory::new(DeviceAddress(theirs.as_ptr() as u64), 64) };
        let memory = bench.device.allocate(MemoryRequest::Foreign(foreign)).unwrap();
        let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(7), count: 64 };
        bench.device.submit(bench.stream, &fill).unwrap();
        bench.device.free(memory.id, None).unwrap();
        assert_eq!(calls("cuMemFree_v2").len(), 0);
        let mut bytes = [0; 64];
        assert!(theirs.read(0, &mut bytes));
        assert_eq!(bytes, [7; 64]);
    }

    fn pinned_memory_is_zero_and_outlives_its_handle() on Machine::fake() => {
        let device = device();
        let block = device.allocate_host(100).unwrap();
        let mut bytes = [1; 100];
        assert!(block.read(0, &mut bytes));
        assert_eq!(bytes, [0; 100], "the stand-in hands out memory full of 0x5a");
        device.destroy(block.id().into()).unwrap();
        assert!(device.destroy(block.id().into()).unwrap_err().is_refused());
        assert!(block.write(0, b"still here"));
        assert_eq!(calls("cuMemFreeHost").len(), 0);
        drop(block);
        assert_eq!(calls("cuMemFreeHost").len(), 1);
        assert_eq!(calls("cuMemHostAlloc"), ["100 1"]);
    }

    fn memory_is_registered_once_at_a_time() on Machine::fake() => {
        let device = device();
        let bytes = Arc::new(SharedBytes::zeroed(4096));
        let block = device.register_host(bytes.clone()).unwrap();
        let twice = device.register_host(bytes.clone()).unwrap_err();
        assert!(matches!(twice.refusal(), Some(Refusal::Busy { .. })), "{twice}");
        device.destroy(block.id().into()).unwrap();
        assert_eq!(calls("cuMemHostUnregister").len(), 1);
        assert!(device.register_host(bytes).is_ok());
    }
}
