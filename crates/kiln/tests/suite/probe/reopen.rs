//! Runtimes that failed or were shut down: they are not returned, and their devices are opened again.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use kiln::{DeviceRuntime, Policy, error::ErrorKind};
use kiln_driver::Code;

use super::scripted::{Scripted, fault, launch, out_of_memory, prober};

const LIMIT: Duration = Duration::from_secs(10);

fn works(gpu: &DeviceRuntime) -> bool {
    gpu.upload(&[7_u32; 16]).and_then(|buffer| buffer.download()).is_ok_and(|data| data == [7; 16])
}

#[test]
fn a_runtime_that_was_shut_down_is_not_returned_by_any_request() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    let first = prober.runtime(0).unwrap();
    first.shutdown(LIMIT).unwrap();
    let second = prober.auto().unwrap();
    assert!(!std::ptr::eq(first, second) && works(second) && !works(first));
    for same in [
        prober.runtime(0).unwrap(),
        prober.require().unwrap(),
        prober.resolve(Policy::Auto).unwrap().unwrap(),
        prober.probe_backend("solver").unwrap().runtime(),
    ] {
        assert!(std::ptr::eq(same, second));
    }
    assert_eq!(cuda.opened(), [0, 0]);
}

#[test]
fn memory_of_a_runtime_that_was_shut_down_is_for_the_next_one() {
    let cuda = Scripted::cuda([kiln_sim::DeviceConfig::with_memory(256 << 20)]);
    let prober = prober(&cuda);
    let first = prober.runtime(0).unwrap();
    drop(first.zeros::<u8>(180 << 20).unwrap());
    first.shutdown(LIMIT).unwrap();
    assert!(prober.runtime(0).unwrap().zeros::<u8>(180 << 20).is_ok());
}

#[test]
fn a_device_that_failed_is_opened_again() {
    let cuda = Scripted::faulty();
    let prober = prober(&cuda);
    let first = prober.auto().unwrap();
    assert_eq!(launch(first).unwrap_err().code(), Some(Code::ILLEGAL_ADDRESS));
    cuda.restart();
    let second = prober.auto().unwrap();
    assert!(!std::ptr::eq(first, second) && launch(second).is_ok() && works(second));
}

#[test]
fn an_opening_that_fails_again_says_why_the_last_runtime_failed() {
    let cuda = Scripted::faulty();
    let prober = prober(&cuda);
    assert!(launch(prober.auto().unwrap()).is_err());
    cuda.will_fail_to_open(out_of_memory());
    cuda.will_fail_to_open(fault());
    cuda.restart();

    let error = prober.probe_backend("solver").unwrap_err();
    let ErrorKind::Reopen { ordinal: 0, failure: Some(failure), cause, .. } = error.kind() else {
        panic!("{error}")
    };
    assert_eq!((failure.code(), failure.kernel()), (Some(Code::ILLEGAL_ADDRESS), Some("nothing")));
    assert_eq!(cause.to_string(), "failed to create CUDA context for device 0");
    assert!(error.is_oom() && error.is_retryable() && !error.is_sticky(), "{error}");
    let text = format!("{error:#}");
    assert!(
        text.starts_with("solver backend: CUDA device 0 could not be opened again after it failed"),
        "{text}"
    );
    assert!(text.contains("ILLEGAL_ADDRESS") && text.contains("out of memory"), "{text}");

    let error = prober.resolve(Policy::Auto).unwrap_err();
    assert_eq!(error.code(), Some(Code::NOT_INITIALIZED), "{error}");
    assert!(works(prober.auto().unwrap()), "a failure is not kept");
}

#[test]
fn after_a_shutdown_the_error_says_so() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    prober.auto().unwrap().shutdown(LIMIT).unwrap();
    cuda.will_fail_to_open(fault());
    let error = prober.auto().unwrap_err();
    assert_eq!(error.to_string(), "CUDA device 0 could not be opened again after it was shut down");
    assert!(matches!(error.kind(), ErrorKind::Reopen { failure: None, .. }));
}

#[test]
fn a_device_that_may_come_back_keeps_its_runtime() {
    let prober = prober(&Scripted::faulty());
    let first = prober.auto().unwrap();
    let control = first.control_recovery().unwrap();
    assert!(launch(first).is_err());
    assert!(std::ptr::eq(first, prober.auto().unwrap()));
    control.give_up();
    assert!(prober.auto().is_err(), "the simulated device is lost for good, and now so is its runtime");
}

#[test]
fn threads_that_find_a_runtime_over_wait_for_one_opening() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    prober.auto().unwrap().shutdown(LIMIT).unwrap();
    let start = Barrier::new(8);
    let addresses: Vec<usize> = thread::scope(|scope| {
        let get = || {
            start.wait();
            std::ptr::from_ref(prober.auto().unwrap()).addr()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(addresses.iter().all(|address| *address == addresses[0]));
    assert_eq!(cuda.opened(), [0, 0]);
}
