//! Listing devices without touching them, and opening one.

use kiln_cuda::{CudaDevice, DriverAbsence, Libcuda, OpenError, StartFault, Unavailable};
use kiln_driver::{Capability, Code, DeviceKind, Driver, Priorities};

use crate::machine::{Machine, calls};

on_machine! {
    fn a_device_is_described_without_a_context() on Machine::fake().devices(2) => {
        let devices = Libcuda::load().unwrap().devices().unwrap();
        let second = devices[1].clone().unwrap();
        assert_eq!((second.ordinal, second.name.as_str(), second.mig), (1, "Fake 1", false));
        assert_eq!(second.uuid.to_string(), "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
        assert_eq!(second.pci.to_string(), "00000000:04:00.0");
        assert_eq!(second.capability, Capability { major: 9, minor: 0 });
        assert_eq!(second.total_memory_bytes, 64 << 20);
        assert_eq!((second.limits.max_threads_per_block, second.limits.multiprocessors), (1024, 4));
        assert_eq!(second.limits.shared_bytes_per_block_optin, 99_000);
        assert_eq!(second.limits.page_granularity_bytes, 2 << 20);
        assert!(second.features.pages && second.features.cluster_launch && !second.features.host_kernels);
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 0);
    }

    fn one_broken_device_does_not_hide_the_others()
    on Machine::fake().devices(3).with("FAKE_CUDA_BROKEN", "1") => {
        let devices = Libcuda::load().unwrap().devices().unwrap();
        assert!(devices[0].is_ok() && devices[2].is_ok());
        assert_eq!(devices[1], Err(StartFault { call: "cuDeviceGetAttribute", code: Code::UNKNOWN }));
        assert!(matches!(CudaDevice::open(1).unwrap_err(), OpenError::Device { ordinal: 1, .. }));
        assert_eq!(CudaDevice::open(2).unwrap().info().ordinal, 2);
    }

    fn a_device_is_let_into_the_memory_of_another_once() on Machine::fake().devices(2) => {
        let library = Libcuda::load().unwrap();
        assert_eq!((library.can_access_peer(0, 1), library.can_access_peer(1, 1)), (Ok(true), Ok(false)));
        assert_eq!(library.can_access_peer(0, 2).unwrap_err().code, Code::INVALID_DEVICE);
        assert_eq!((library.peer_attribute(2, 0, 1), library.peer_attribute(3, 0, 1)), (Ok(1), Ok(0)));
        assert_eq!(library.peer_attribute(9, 0, 1).unwrap_err().code, Code::INVALID_VALUE);
        let (first, second) = (CudaDevice::open(0).unwrap(), CudaDevice::open(1).unwrap());
        assert_eq!(first.disable_peer_access(&second).unwrap_err().code(), Some(Code(705)));
        first.enable_peer_access(&second).unwrap();
        let error = first.enable_peer_access(&second).unwrap_err();
        assert!(error.is_refused() && error.code() == Some(Code(704)), "{error}");
        assert_eq!(calls("cuCtxEnablePeerAccess"), ["c0001 0", "c0001 0"]);
        first.disable_peer_access(&second).unwrap();
    }

    fn a_slice_of_a_device_says_so() on Machine::fake().devices(2).with("FAKE_CUDA_MIG", "1") => {
        let devices = Libcuda::load().unwrap().devices().unwrap();
        let slices: Vec<bool> = devices.into_iter().map(|device| device.unwrap().mig).collect();
        assert_eq!(slices, [false, true]);
    }

    fn a_driver_that_cannot_count_is_a_fault() on Machine::fake().plan("cuDeviceGetCount=999") => {
        let fault = StartFault { call: "cuDeviceGetCount", code: Code::UNKNOWN };
        assert_eq!(Libcuda::load().unwrap().devices(), Err(Unavailable::Fault(fault)));
    }

    fn no_devices_are_an_absence() on Machine::fake().devices(0) => {
        assert_eq!(Libcuda::load().unwrap().devices(), Err(Unavailable::Absent(DriverAbsence::NoDevice)));
        assert_eq!(CudaDevice::open(0).unwrap_err(), OpenError::UnknownOrdinal { ordinal: 0, count: 0 });
    }

    fn an_unknown_ordinal_is_refused() on Machine::fake().devices(2) => {
        assert_eq!(CudaDevice::open(2).unwrap_err(), OpenError::UnknownOrdinal { ordinal: 2, count: 2 });
        assert_eq!(CudaDevice::open(u32::MAX).unwrap_err().code(), None);
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 0);
    }

    fn a_context_that_cannot_be_made_is_an_error_that_may_pass()
    on Machine::fake().plan("cuDevicePrimaryCtxRetain=2@1") => {
        let error = CudaDevice::open(0).unwrap_err();
        assert!(error.is_oom() && error.is_retryable() && !error.is_absence() && !error.is_sticky());
        assert!(error.to_string().contains("failed to create a CUDA context for device 0"), "{error}");
        assert!(CudaDevice::open(0).is_ok());
    }

    fn an_opened_device_knows_itself() on Machine::fake() => {
        let device = CudaDevice::open(0).unwrap();
        let info = device.info();
        assert_eq!((info.kind, info.name.as_str()), (DeviceKind::Cuda, "Fake 0"));
        assert_eq!(info.limits.priorities, Priorities { lowest: 0, highest: -5 });
        assert!(device.health().is_healthy());
        let memory = device.memory_info().unwrap();
        assert_eq!((memory.free_bytes, memory.total_bytes), (64 << 20, 64 << 20));
    }

    fn the_context_is_released_with_the_last_who_needs_it() on Machine::fake() => {
        let device = CudaDevice::open(0).unwrap();
        let block = device.allocate_host(64).unwrap();
        drop(device);
        assert_eq!(calls("cuDevicePrimaryCtxRelease_v2").len(), 0, "a host block still needs it");
        assert!(block.write(0, b"alive"));
        drop(block);
        assert_eq!(calls("cuMemFreeHost").len(), 1);
        assert_eq!(calls("cuDevicePrimaryCtxRelease_v2").len(), 1);
    }
}
