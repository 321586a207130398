//! The policy of a process, from its environment and its code.

use kiln::backend::BackendOptions;
use kiln::probe::ProbeError;
use kiln::{DeviceRuntime, Policy, error::ErrorKind};
use kiln_driver::DeviceKind;

use crate::machine::{Machine, log};

/// Whether the loader has mapped the driver's library into this process.
fn libcuda_is_loaded() -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains("libcuda")
}

on_machine! {
    fn off_does_not_even_load_the_driver() on Machine::fake().with("KILN_POLICY", "off") => {
        #[cfg(target_os = "linux")]
        assert_eq!(kiln::probe::worker_device().unwrap(), kiln::recovery::DeviceSpec::simulated(0));
        assert_eq!(kiln::probe::policy().unwrap(), Policy::Off);
        assert!(!kiln::probe::availability().unwrap().is_available());
        assert!(!kiln::probe::refresh().unwrap().is_available());
        assert!(kiln::probe::resolve(Policy::Off).unwrap().is_none());
        assert!(DeviceRuntime::try_get(0).unwrap_err().is_absence());
        assert!(kiln::probe::probe_backend("solver").unwrap_err().is_absence());
        assert_eq!(DeviceRuntime::auto().unwrap().info().kind, DeviceKind::Simulated);
        assert_eq!((log(), libcuda_is_loaded()), (vec![], false));
        // A request that brings its own policy is another matter, and shows that the above could have failed.
        assert_eq!(kiln::probe::require().unwrap().info().kind, DeviceKind::Cuda);
        assert!(!log().is_empty() && libcuda_is_loaded());
    }

    fn simulate_does_not_load_the_driver_either() on Machine::fake().with("KILN_POLICY", "simulate") => {
        let parts = kiln::probe::probe_backend("solver").unwrap();
        assert_eq!(parts.runtime().info().kind, DeviceKind::Simulated);
        assert!(kiln::probe::availability().unwrap().is_available());
        assert_eq!((log(), libcuda_is_loaded()), (vec![], false));
    }

    fn the_environment_overrides_what_the_program_sets() on Machine::fake().with("KILN_POLICY", "SIMULATE") => {
        assert_eq!(kiln::probe::set_policy(Policy::Required).unwrap(), Policy::Simulate);
        assert_eq!(kiln::probe::policy().unwrap(), Policy::Simulate);
    }

    fn a_second_setting_is_reported() on Machine::without_driver() => {
        assert_eq!(kiln::probe::set_policy(Policy::Auto).unwrap(), Policy::Auto);
        assert_eq!(kiln::probe::set_policy(Policy::Auto).unwrap(), Policy::Auto);
        let error = kiln::probe::set_policy(Policy::Required).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::PolicyConflict { .. })));
    }

    fn nonsense_in_the_environment_is_said() on Machine::without_driver().with("KILN_POLICY", "gpu") => {
        for answer in [kiln::probe::policy().map(drop), kiln::probe::availability().map(drop), kiln::probe::set_policy(Policy::Auto).map(drop)] {
            assert!(matches!(answer.unwrap_err().kind(), ErrorKind::Probe(ProbeError::Environment { variable: "KILN_POLICY", .. })));
        }
    }

    fn a_seed_that_is_no_number_is_said() on Machine::without_driver().with("KILN_SIM_SEED", "seven") => {
        let error = DeviceRuntime::auto().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::Environment { variable: "KILN_SIM_SEED", .. })), "{error}");
    }

    fn a_fault_plan_that_cannot_be_read_is_said() on Machine::without_driver().with("KILN_SIM_FAULTS", "oom@3,flood@1") => {
        let error = DeviceRuntime::auto().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::Environment { variable: "KILN_SIM_FAULTS", text, .. }) if text == "flood@1"), "{error}");
    }

    fn planned_faults_happen_on_the_first_simulated_device_alone() on Machine::without_driver().with("KILN_SIM_FAULTS", "fault@1=CUDA_ERROR_LAUNCH_FAILED") => {
        let first = DeviceRuntime::auto().unwrap();
        let other = DeviceRuntime::simulated(3).unwrap();
        let fill = |gpu: &DeviceRuntime| {
            let kernel = gpu.kernel(NOTHING, "nothing").unwrap();
            // SAFETY: it touches nothing, and ends.
            unsafe { gpu.launch(&kernel).grid(1).block(1).submit() }.unwrap().wait()
        };
        fill(&other).unwrap();
        let error = fill(first).unwrap_err();
        assert!(error.is_sticky() && error.to_string().contains("CUDA_ERROR_LAUNCH_FAILED"), "{error}");
        fill(DeviceRuntime::auto().unwrap()).unwrap();
    }

    #[cfg(target_os = "linux")]
    fn faults_that_a_worker_would_not_have_are_refused() on Machine::without_driver().with("KILN_SIM_FAULTS", "oom@3") => {
        let error = kiln::probe::worker_device().unwrap_err();
        assert!(error.to_string().contains("KILN_SIM_FAULTS") && error.to_string().contains("in a worker process"), "{error}");
    }

    fn a_device_by_ordinal_follows_the_policy_and_cuda_by_name_does_not() on Machine::fake().with("KILN_POLICY", "simulate") => {
        let runtime = DeviceRuntime::try_get(0).unwrap();
        assert_eq!(runtime.info().kind, DeviceKind::Simulated);
        assert!(std::ptr::eq(runtime, DeviceRuntime::auto().unwrap()));
        assert!(DeviceRuntime::cuda(0).unwrap_err().is_absence());
        assert_eq!((log(), libcuda_is_loaded()), (vec![], false));
        let parts = kiln::probe::probe_backend_on("solver", &BackendOptions::cuda()).unwrap();
        assert_eq!(parts.runtime().info().kind, DeviceKind::Cuda);
    }

    #[cfg(target_os = "linux")]
    fn a_worker_has_a_simulated_device_where_the_policy_asks_for_one() on Machine::fake().with("KILN_POLICY", "simulate").with("KILN_SIM_SEED", "7") => {
        assert_eq!(kiln::probe::worker_device().unwrap(), kiln::recovery::DeviceSpec::simulated(7));
        assert_eq!((log(), libcuda_is_loaded()), (vec![], false));
    }

    #[cfg(target_os = "linux")]
    fn a_worker_has_the_gpu_where_there_is_one() on Machine::fake() => {
        assert_eq!(kiln::probe::worker_device().unwrap(), kiln::recovery::DeviceSpec::cuda(0));
    }

    #[cfg(target_os = "linux")]
    fn a_worker_has_a_simulated_device_where_there_is_no_gpu_unless_one_is_required() on Machine::without_driver() => {
        assert_eq!(kiln::probe::worker_device().unwrap(), kiln::recovery::DeviceSpec::simulated(0));
    }

    #[cfg(target_os = "linux")]
    fn a_worker_that_must_have_a_gpu_has_none_otherwise() on Machine::without_driver().with("KILN_POLICY", "required") => {
        assert!(kiln::probe::worker_device().unwrap_err().is_absence());
    }

    fn a_simulated_device_that_is_lost_is_opened_again() on Machine::without_driver() => {
        let first = DeviceRuntime::auto().unwrap();
        let machine = kiln::probe::simulated_machine().unwrap();
        let traps = first.kernel(TRAPS, "traps").unwrap();
        // SAFETY: it touches nothing and stops the device.
        let ticket = unsafe { first.launch(&traps).grid(1).block(1).submit() }.unwrap();
        assert!(ticket.wait().unwrap_err().is_sticky());
        let second = DeviceRuntime::auto().unwrap();
        assert!(!std::ptr::eq(first, second));
        assert_eq!(second.upload(&[7u32; 9]).unwrap().download().unwrap(), [7; 9]);
        assert!(!std::ptr::eq(machine, kiln::probe::simulated_machine().unwrap()));
    }
}

const NOTHING: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

const TRAPS: &str = ".version 7.0
.target sm_70
.address_size 64
.visible .entry traps() {
    trap;
    ret;
}";
