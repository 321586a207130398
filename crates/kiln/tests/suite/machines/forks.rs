//! Processes that fork.

use std::ffi::c_int;

use kiln::probe::ProbeError;
use kiln::{DeviceRuntime, backend::CachedBackend, error::ErrorKind};
use kiln_driver::DeviceKind;

use crate::machine::{Machine, log};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
}

static BACKEND: CachedBackend<u32> = CachedBackend::new();

/// Forks, runs `body` in the child, and says whether it returned true there.
fn in_fork(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `body`, which asks kiln a few questions, and ends without unwinding; no other thread of this
    // process holds a lock it needs.
    let process = unsafe { fork() };
    if process == 0 {
        let code = if body() { 0 } else { 1 };
        // SAFETY: ends the child at once.
        unsafe { _exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child forked above.
    assert_eq!(unsafe { waitpid(process, &mut status, 0) }, process);
    status == 0
}

fn is_forked<T>(answer: kiln::Result<T>) -> bool {
    matches!(answer, Err(error) if matches!(error.kind(), ErrorKind::Probe(ProbeError::Forked)))
}

on_machine! {
    fn a_device_opened_before_a_fork_is_refused_in_the_child() on Machine::fake() => {
        let runtime = DeviceRuntime::try_get(0).unwrap();
        let buffer = runtime.upload(&[1u8; 64]).unwrap();
        let before = log().len();
        assert!(in_fork(|| {
            is_forked(DeviceRuntime::try_get(0))
                && is_forked(kiln::probe::availability())
                && is_forked(kiln::probe::refresh())
                && is_forked(kiln::probe::require())
                && is_forked(kiln::probe::probe_backend("solver"))
                && is_forked(BACKEND.get_or_probe("solver", |_| Ok(1)))
                && is_forked(kiln::probe::memory_budget_for(0))
        }));
        assert_eq!(log().len(), before, "the child called the driver");
        assert_eq!(buffer.download().unwrap(), [1; 64]);
        assert_eq!(*BACKEND.get_or_probe("solver", |_| Ok(2)).unwrap(), 2);
    }

    fn a_child_forked_before_the_first_question_asks_for_itself() on Machine::fake() => {
        assert_eq!(kiln::probe::policy().unwrap(), kiln::Policy::Auto);
        assert!(in_fork(|| DeviceRuntime::try_get(0).is_ok_and(|runtime| runtime.upload(&[1u8]).is_ok())));
        assert!(DeviceRuntime::try_get(0).is_ok());
    }

    fn a_machine_without_a_driver_answers_the_child_too() on Machine::without_driver() => {
        assert!(!kiln::probe::availability().unwrap().is_available());
        assert!(in_fork(|| {
            kiln::probe::probe_backend("solver").is_err_and(|error| error.is_absence())
                && DeviceRuntime::auto().is_ok_and(|runtime| runtime.info().kind == DeviceKind::Simulated)
        }));
    }

    fn a_simulated_device_does_not_survive_a_fork_either() on Machine::without_driver() => {
        DeviceRuntime::auto().unwrap();
        assert!(in_fork(|| is_forked(DeviceRuntime::auto())));
    }
}
