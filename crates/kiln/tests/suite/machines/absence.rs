//! Machines without a usable driver: an ordinary answer, never a panic.

use kiln::libraries::{self, Library};
use kiln::probe::{CudaAbsence, PartOutcome, Policy};
use kiln::{
    DeviceRuntime,
    backend::CachedBackend,
    error::ErrorKind,
    probe::{Absence, Availability},
};
use kiln_driver::{Code, DeviceKind};

use crate::machine::Machine;

static BACKEND: CachedBackend<u32> = CachedBackend::new();

fn absence() -> CudaAbsence {
    let Availability::Absent(Absence::Cuda(absence)) = kiln::probe::availability().unwrap() else {
        panic!("available")
    };
    absence
}

/// Everything a program may ask first, each answered without a device.
fn ask_for_everything() {
    assert!(kiln::probe::resolve(Policy::Off).unwrap().is_none());
    assert!(kiln::probe::resolve(Policy::Auto).unwrap().is_none());
    let required = [
        kiln::probe::resolve(Policy::Required).map(drop),
        kiln::probe::require().map(drop),
        DeviceRuntime::try_get(0).map(drop),
        DeviceRuntime::try_get(u32::MAX).map(drop),
        kiln::probe::memory_budget_for(0).map(drop),
        kiln::probe::balanced_partition(10).map(drop),
        kiln::probe::probe_backend("solver").map(drop),
        kiln::probe::probe_backend_with_compile("solver", |_| Ok(())),
        BACKEND.get_or_probe("solver", |_| Ok(1)).map(drop),
    ];
    for answer in required {
        let error = answer.unwrap_err();
        assert!(error.is_absence() && error.to_string().ends_with("no CUDA runtime available"), "{error}");
    }
    let text = kiln::probe::probe_backend("solver").unwrap_err().to_string();
    assert_eq!(text, "solver backend: no CUDA runtime available");
    assert!(matches!(kiln::probe::scatter(10, |_, _| PartOutcome::Done(())), PartOutcome::Declined(_)));
    let simulated = DeviceRuntime::auto().unwrap();
    assert_eq!(simulated.info().kind, DeviceKind::Simulated);
    assert_eq!(simulated.upload(&[1u8, 2, 3]).unwrap().download().unwrap(), [1, 2, 3]);
}

/// From here on a panic anywhere in the process, caught or not, ends it at once.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|_| std::process::abort()));
}

on_machine! {
    fn a_machine_without_a_driver_answers_everything() on Machine::without_driver() => {
        abort_on_panic();
        assert!(matches!(absence(), CudaAbsence::Named { .. }));
        ask_for_everything();
    }

    fn an_empty_libcuda_is_an_absence() on Machine::with_file(b"") => {
        abort_on_panic();
        assert!(matches!(absence(), CudaAbsence::Unusable { .. }));
        ask_for_everything();
    }

    fn a_libcuda_without_entry_points_is_an_absence() on Machine::with_source("int nothing;") => {
        abort_on_panic();
        assert!(matches!(absence(), CudaAbsence::Incomplete { .. }));
        ask_for_everything();
    }

    fn a_stub_is_an_absence() on Machine::fake().plan("cuInit=34") => {
        abort_on_panic();
        assert!(matches!(absence(), CudaAbsence::Stub { .. }));
        ask_for_everything();
    }

    fn an_old_driver_is_an_absence() on Machine::fake().with("FAKE_CUDA_VERSION", "12020") => {
        abort_on_panic();
        assert!(matches!(absence(), CudaAbsence::TooOld { .. }));
        ask_for_everything();
    }

    fn a_driver_without_a_device_is_an_absence() on Machine::fake().plan("cuInit=100") => {
        abort_on_panic();
        assert_eq!(absence(), CudaAbsence::NoDevice);
        ask_for_everything();
    }

    fn a_mismatch_is_an_absence_that_keeps_its_code() on Machine::fake().plan("cuInit=803") => {
        abort_on_panic();
        ask_for_everything();
        assert_eq!(kiln::probe::require().unwrap_err().code(), Some(Code::SYSTEM_DRIVER_MISMATCH));
    }

    fn compatibility_libraries_on_the_wrong_device_are_an_absence() on Machine::fake().plan("cuInit=804") => {
        abort_on_panic();
        ask_for_everything();
        assert_eq!(kiln::probe::require().unwrap_err().code(), Some(Code::COMPAT_NOT_SUPPORTED_ON_DEVICE));
    }

    fn threads_that_ask_first_at_the_same_time_get_the_same_answer() on Machine::without_driver() => {
        std::thread::scope(|scope| {
            for at in 0..16 {
                scope.spawn(move || match at % 4 {
                    0 => assert!(!kiln::probe::availability().unwrap().is_available()),
                    1 => assert!(DeviceRuntime::try_get(0).unwrap_err().is_absence()),
                    2 => assert!(kiln::probe::probe_backend("solver").unwrap_err().is_absence()),
                    _ => assert_eq!(DeviceRuntime::auto().unwrap().info().kind, DeviceKind::Simulated),
                });
            }
        });
    }

    fn a_missing_library_is_an_answer_with_the_places_that_were_looked_at()
    on Machine::without_driver().with("KILN_NVRTC", "/nonexistent/libnvrtc.so") => {
        abort_on_panic();
        let missing = libraries::find(Library::Nvrtc).unwrap_err();
        assert!(!missing.tried.is_empty() && missing.to_string().contains("NVRTC"));
        let error = kiln::Error::from(missing).labelled("compiler");
        assert!(matches!(error.kind(), ErrorKind::Library(missing) if missing.kind == Library::Nvrtc));
        assert!(error.to_string().starts_with("compiler backend: KILN_NVRTC is set to a wrong place"), "{error}");
        assert_eq!(libraries::find_all().len(), Library::ALL.len());
    }
}
