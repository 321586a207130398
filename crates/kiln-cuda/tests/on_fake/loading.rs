//! Machines without a driver, or with one that does not work: each has its own answer, and none panics.

use kiln_cuda::{CudaDevice, DriverAbsence, Libcuda, OpenError, StartFault, Unavailable};
use kiln_driver::{Code, Version};

use crate::machine::Machine;

fn absence() -> DriverAbsence {
    match Libcuda::load().unwrap_err() {
        Unavailable::Absent(absence) => absence,
        other => panic!("{other}"),
    }
}

fn fault() -> StartFault {
    match Libcuda::load().unwrap_err() {
        Unavailable::Fault(fault) => fault,
        other => panic!("{other}"),
    }
}

on_machine! {
    fn a_named_file_that_is_not_there_is_told_with_the_variable() on Machine::without_driver() => {
        let DriverAbsence::Named { variable, path, why } = absence() else { panic!() };
        assert!(path.ends_with("libcuda.so.1") && why.starts_with("cannot open"), "{why}");
        let error = CudaDevice::open(0).unwrap_err();
        assert!(error.is_absence() && !error.is_retryable() && error.code().is_none());
        assert!(variable == "KILN_LIBCUDA" && error.to_string().ends_with("correct or unset KILN_LIBCUDA"), "{error}");
    }

    fn an_empty_file_is_named() on Machine::with_file(b"") => {
        let DriverAbsence::Unusable { path, why } = absence() else { panic!() };
        assert!(path.ends_with("libcuda.so.1") && path.is_absolute());
        assert!(!why.is_empty());
    }

    fn a_text_file_is_named() on Machine::with_file(&[b'#'; 4096]) => {
        assert!(matches!(absence(), DriverAbsence::Unusable { .. }));
    }

    fn a_library_without_entry_points_is_incomplete() on Machine::with_source("int nothing;") => {
        let DriverAbsence::Incomplete { symbol, library } = absence() else { panic!() };
        assert_eq!((symbol, library.as_str()), ("cuDriverGetVersion", "libcuda.so.1"));
    }

    fn a_stub_is_called_one() on Machine::fake().plan("cuDriverGetVersion=34,cuInit=34") => {
        assert!(matches!(absence(), DriverAbsence::Stub { .. }));
        assert_eq!(Libcuda::load().unwrap_err().code(), Some(Code::STUB_LIBRARY));
    }

    fn a_stub_that_knows_its_version_is_called_one_too() on Machine::fake().plan("cuInit=34") => {
        assert!(matches!(absence(), DriverAbsence::Stub { .. }));
    }

    fn an_old_driver_says_its_version() on Machine::fake().with("FAKE_CUDA_VERSION", "12020") => {
        let DriverAbsence::TooOld { found, needed } = absence() else { panic!() };
        assert_eq!((found, needed), (Version { major: 12, minor: 2 }, Version { major: 12, minor: 4 }));
    }

    fn an_old_driver_that_lacks_entry_points_is_old_and_not_incomplete()
    on Machine::fake_without(&["graphs.c"]).with("FAKE_CUDA_VERSION", "11080") => {
        assert!(matches!(absence(), DriverAbsence::TooOld { .. }));
    }

    fn the_oldest_and_a_future_driver_are_taken() on Machine::fake().with("FAKE_CUDA_VERSION", "12040") => {
        assert_eq!(Libcuda::load().unwrap().version(), Version { major: 12, minor: 4 });
    }

    fn a_missing_entry_point_is_named() on Machine::fake_without(&["graphs.c"]) => {
        let DriverAbsence::Incomplete { symbol, .. } = absence() else { panic!() };
        assert_eq!(symbol, "cuGraphCreate");
    }

    fn a_driver_that_sees_no_device_says_so() on Machine::fake().plan("cuInit=100") => {
        assert_eq!(absence(), DriverAbsence::NoDevice);
        assert!(CudaDevice::open(0).unwrap_err().is_absence());
    }

    fn a_mismatch_of_library_and_kernel_is_an_absence() on Machine::fake().plan("cuInit=803") => {
        assert_eq!(absence(), DriverAbsence::Mismatched { code: Code::SYSTEM_DRIVER_MISMATCH });
    }

    fn compat_libraries_on_the_wrong_device_are_an_absence() on Machine::fake().plan("cuInit=804") => {
        assert_eq!(absence(), DriverAbsence::Mismatched { code: Code::COMPAT_NOT_SUPPORTED_ON_DEVICE });
    }

    fn a_driver_that_does_not_start_is_a_fault() on Machine::fake().plan("cuInit=3") => {
        assert_eq!(fault(), StartFault { call: "cuInit", code: Code::NOT_INITIALIZED });
    }

    fn an_unknown_failure_is_a_fault_with_its_code() on Machine::fake().plan("cuInit=999") => {
        assert_eq!(fault().code, Code::UNKNOWN);
        let error = CudaDevice::open(0).unwrap_err();
        assert!(!error.is_absence() && error.is_retryable());
        assert!(matches!(error, OpenError::Unavailable(Unavailable::Fault(_))));
    }

    fn an_unknown_code_is_a_fault_with_its_number() on Machine::fake().plan("cuInit=4711") => {
        assert_eq!(fault().code, Code(4711));
    }

    fn a_failure_is_not_remembered() on Machine::fake().plan("cuInit=999@1") => {
        assert!(Libcuda::load().is_err());
        assert!(Libcuda::load().is_ok());
    }

    fn the_loader_path_is_searched() on Machine::fake() => {
        let library = Libcuda::load().unwrap();
        assert_eq!(library.name(), "libcuda.so.1");
        let path = library.path().unwrap();
        assert!(path.is_absolute() && path.is_file(), "{}", path.display());
        assert_eq!(library.version(), Version { major: 13, minor: 0 });
        assert_eq!(library.device_count(), Ok(1));
    }
}
