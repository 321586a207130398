//! One runtime per device.

use std::sync::{Arc, Barrier};
use std::thread;

use kiln::error::ErrorKind;
use kiln::probe::ProbeError;
use kiln_driver::Code;

use super::scripted::{Scripted, fault, out_of_memory, prober};

#[test]
fn every_caller_gets_the_same_runtime_and_no_other_device_is_opened() {
    let cuda = Scripted::cuda([Default::default(), Default::default(), Default::default()]);
    let prober = prober(&cuda);
    let first = prober.runtime(1).unwrap();
    assert_eq!(first.ordinal(), 1);
    assert!(std::ptr::eq(first, prober.runtime(1).unwrap()));
    assert_eq!(cuda.opened(), [1]);
}

#[test]
fn threads_that_come_first_at_the_same_time_wait_for_one_builder() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    let start = Barrier::new(8);
    let addresses: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    std::ptr::from_ref(prober.runtime(0).unwrap()).addr()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(addresses.iter().all(|address| *address == addresses[0]));
    assert_eq!(cuda.opened(), [0]);
}

#[test]
fn a_slow_device_does_not_hold_up_another() {
    let cuda = Scripted::cuda([Default::default(), Default::default()]);
    let prober = prober(&cuda);
    // Both openings are inside the platform at the same time, or this waits for ever.
    let both = Arc::new(Barrier::new(2));
    *cuda.during_open.lock().unwrap() = Some(Arc::new(move || {
        both.wait();
    }));
    thread::scope(|scope| {
        let prober = &prober;
        let threads = [0, 1]
            .map(|ordinal| scope.spawn(move || prober.runtime(ordinal).map(|runtime| runtime.ordinal())));
        let ordinals = threads.map(|thread| thread.join().unwrap().unwrap());
        assert_eq!(ordinals, [0, 1]);
    });
}

#[test]
fn a_failed_build_leaves_the_place_free() {
    let cuda = Scripted::one_device();
    cuda.will_fail_to_open(out_of_memory());
    cuda.will_fail_to_open(fault());
    let prober = prober(&cuda);
    let first = prober.runtime(0).unwrap_err();
    assert!(first.is_oom() && first.is_retryable());
    assert_eq!(first.to_string(), "failed to create CUDA context for device 0");
    assert_eq!(prober.runtime(0).unwrap_err().code(), Some(Code::NOT_INITIALIZED));
    assert!(prober.runtime(0).is_ok());
    assert_eq!(cuda.opened(), [0, 0, 0]);
}

#[test]
fn an_unknown_ordinal_is_an_error_that_says_what_there_is() {
    let cuda = Scripted::cuda([Default::default(), Default::default()]);
    let prober = prober(&cuda);
    for ordinal in [2, 63, 64, u32::MAX] {
        let error = prober.runtime(ordinal).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Probe(ProbeError::UnknownDevice { known: 2, .. })),
            "{error}"
        );
        assert!(error.to_string().contains("0 to 1"), "{error}");
    }
    assert!(cuda.opened().is_empty());
}

#[test]
fn a_panic_while_opening_leaves_the_place_free() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    *cuda.during_open.lock().unwrap() = Some(Arc::new(|| panic!("planned")));
    let panicked = thread::scope(|scope| scope.spawn(|| drop(prober.runtime(0))).join());
    assert!(panicked.is_err());
    *cuda.during_open.lock().unwrap() = None;
    assert!(prober.runtime(0).is_ok());
}
