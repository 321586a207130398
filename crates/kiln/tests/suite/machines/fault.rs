//! Drivers that are there and do not work.

use kiln::probe::ProbeError;
use kiln::{DeviceRuntime, Policy, error::ErrorKind};
use kiln_driver::Code;

use crate::machine::{Machine, calls};

on_machine! {
    fn a_driver_that_does_not_start_is_a_fault_everywhere() on Machine::fake().plan("cuInit=3") => {
        let answers = [
            kiln::probe::availability().map(drop),
            kiln::probe::resolve(Policy::Auto).map(drop),
            kiln::probe::require().map(drop),
            DeviceRuntime::try_get(0).map(drop),
            DeviceRuntime::auto().map(drop),
            kiln::probe::probe_backend("solver").map(drop),
        ];
        for answer in answers {
            let error = answer.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::Listing { .. })) && !error.is_absence(), "{error}");
            assert_eq!((error.code(), error.call()), (Some(Code::NOT_INITIALIZED), Some("cuInit")));
        }
        assert_eq!(calls("cuInit").len(), 1, "the fault is kept");
    }

    fn a_fault_is_looked_at_again_on_request() on Machine::fake().plan("cuInit=999@1") => {
        assert_eq!(kiln::probe::availability().unwrap_err().code(), Some(Code::UNKNOWN));
        assert_eq!(kiln::probe::availability().unwrap_err().code(), Some(Code::UNKNOWN));
        assert!(kiln::probe::refresh().unwrap().is_available());
        assert!(DeviceRuntime::try_get(0).is_ok());
    }

    fn a_context_that_finds_no_memory_is_asked_for_again() on Machine::fake().plan("cuDevicePrimaryCtxRetain=2@1") => {
        let error = kiln::probe::probe_backend("solver").unwrap_err();
        assert_eq!(error.to_string(), "solver backend: failed to create CUDA context for device 0");
        assert_eq!((error.code(), error.call()), (Some(Code::OUT_OF_MEMORY), Some("cuDevicePrimaryCtxRetain")));
        assert!(error.is_oom() && error.is_retryable());
        assert!(kiln::probe::probe_backend("solver").is_ok());
        assert_eq!(calls("cuDevicePrimaryCtxRetain").len(), 2);
    }

    fn one_broken_device_hides_no_other() on Machine::fake().devices(3).with("FAKE_CUDA_BROKEN", "0") => {
        let availability = kiln::probe::availability().unwrap();
        let devices = availability.devices().unwrap();
        assert_eq!(devices.working().map(|device| device.ordinal).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(devices.broken().map(|(ordinal, _)| ordinal).collect::<Vec<_>>(), [0]);
        assert_eq!(kiln::probe::require().unwrap().ordinal(), 1);
        assert!(DeviceRuntime::try_get(0).is_err());
        assert!(DeviceRuntime::try_get(2).is_ok());
    }
}
