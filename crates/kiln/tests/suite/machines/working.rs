//! Machines whose driver works.

use kiln::probe::{PartOutcome, ProbeError, Selection, gather, prober};
use kiln::{DeviceRuntime, Policy, error::ErrorKind};
use kiln_driver::{DeviceKind, MemoryRequest};

use crate::machine::{Machine, calls};

on_machine! {
    fn listing_creates_no_context_and_opening_creates_one() on Machine::fake().devices(3) => {
        let availability = kiln::probe::availability().unwrap();
        let devices = availability.devices().unwrap();
        assert_eq!((devices.len(), devices.kind()), (3, DeviceKind::Cuda));
        let identities: std::collections::BTreeSet<_> = devices.working().map(|device| device.uuid).collect();
        assert_eq!(identities.len(), 3);
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 0);
        let runtime = DeviceRuntime::try_get(1).unwrap();
        assert_eq!((runtime.ordinal(), runtime.info().kind), (1, DeviceKind::Cuda));
        assert!(std::ptr::eq(runtime, DeviceRuntime::try_get(1).unwrap()));
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 1);
        assert_eq!(runtime.upload(&[5u32; 100]).unwrap().download().unwrap(), [5; 100]);
    }

    fn threads_that_come_first_share_one_context() on Machine::fake() => {
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let get = || std::ptr::from_ref(DeviceRuntime::try_get(0).unwrap()).addr();
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
        assert_eq!((calls("cuInit").len(), calls("cuDevicePrimaryCtxRetain").len()), (1, 1));
    }

    fn an_unknown_device_is_an_error() on Machine::fake().devices(2) => {
        for ordinal in [2, 64, u32::MAX] {
            let error = DeviceRuntime::try_get(ordinal).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::UnknownDevice { known: 2, .. })), "{error}");
            assert!(kiln::probe::memory_budget_for(ordinal).is_err());
        }
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 0);
    }

    fn a_device_is_chosen_by_its_identity() on Machine::fake().devices(3) => {
        let availability = kiln::probe::availability().unwrap();
        let last = availability.devices().unwrap().device(2).unwrap();
        let chosen = prober().resolve_on(Policy::Required, &Selection::Uuid(last.uuid)).unwrap().unwrap();
        assert_eq!((chosen.ordinal(), chosen.info().uuid), (2, last.uuid));
    }

    fn auto_takes_the_gpu() on Machine::fake() => {
        assert_eq!(DeviceRuntime::auto().unwrap().info().kind, DeviceKind::Cuda);
        assert!(std::ptr::eq(DeviceRuntime::auto().unwrap(), DeviceRuntime::try_get(0).unwrap()));
    }

    fn work_is_spread_over_all_devices() on Machine::fake().devices(3) => {
        let parts = kiln::probe::scatter(300, |runtime, range| {
            let bytes: Vec<u8> = range.map(|at| at as u8).collect();
            let copied = runtime.upload(&bytes).and_then(|buffer| buffer.download());
            PartOutcome::from(copied.map(|copied| (runtime.ordinal(), copied == bytes)))
        });
        let answers = gather(parts.done().unwrap()).done().unwrap();
        assert_eq!(answers, [(0, true), (1, true), (2, true)]);
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 3);
    }

    fn the_memory_budget_follows_the_device() on Machine::fake() => {
        let before = kiln::probe::memory_budget_for(0).unwrap();
        let driver = DeviceRuntime::try_get(0).unwrap().driver();
        let held = driver.allocate(MemoryRequest::Direct { bytes: 8 << 20 }).unwrap();
        let during = kiln::probe::memory_budget_for(0).unwrap();
        assert_eq!(before.free_bytes - during.free_bytes, 8 << 20);
        assert!(during.usable_bytes < before.usable_bytes);
        driver.free(held.id, None).unwrap();
        assert_eq!(kiln::probe::memory_budget_for(0).unwrap(), before);
    }

    fn a_device_that_was_shut_down_is_opened_again() on Machine::fake() => {
        let first = DeviceRuntime::auto().unwrap();
        assert!(first.shutdown(std::time::Duration::from_secs(10)).unwrap());
        let second = DeviceRuntime::auto().unwrap();
        assert!(!std::ptr::eq(first, second) && std::ptr::eq(second, DeviceRuntime::try_get(0).unwrap()));
        assert_eq!(second.info().kind, DeviceKind::Cuda);
        assert_eq!(second.upload(&[5u32; 100]).unwrap().download().unwrap(), [5; 100]);
    }

    fn a_best_device_that_cannot_be_opened_hides_no_other() on Machine::fake().devices(3).plan("cuDevicePrimaryCtxRetain=46@1") => {
        let runtime = DeviceRuntime::auto().unwrap();
        assert_eq!((runtime.ordinal(), runtime.info().kind), (1, DeviceKind::Cuda));
        let availability = kiln::probe::availability().unwrap();
        assert_eq!(availability.devices().unwrap().skipped().map(|(ordinal, _)| ordinal).collect::<Vec<_>>(), [0]);
        assert!(std::ptr::eq(runtime, kiln::probe::probe_backend("solver").unwrap().runtime()));
        assert!(kiln::probe::refresh().unwrap().is_available());
        assert_eq!(DeviceRuntime::auto().unwrap().ordinal(), 0);
    }
}
