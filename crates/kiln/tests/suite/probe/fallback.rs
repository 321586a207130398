//! A best device that cannot be opened: the next one takes its place, and the probe says so.

use std::sync::Arc;
use std::time::Duration;

use kiln::Policy;
use kiln_driver::Code;
use kiln_sim::DeviceConfig;

use super::log::lines;
use super::scripted::{Scripted, fault, out_of_memory, prober};

/// Three devices: 1 is the best, 2 comes next, 0 is small.
fn three() -> Arc<Scripted> {
    Scripted::cuda([DeviceConfig::small(), DeviceConfig::with_memory(32 << 30), DeviceConfig::default()])
}

#[test]
fn the_next_best_device_serves_every_request_that_names_none() {
    let cuda = three();
    cuda.will_fail_to_open(fault());
    let prober = prober(&cuda);
    let runtime = prober.probe_backend("solver").unwrap().runtime();
    assert_eq!(runtime.ordinal(), 2);
    for same in [
        prober.auto().unwrap(),
        prober.require().unwrap(),
        prober.resolve(Policy::Required).unwrap().unwrap(),
        prober.probe_backend("sampler").unwrap().runtime(),
    ] {
        assert!(std::ptr::eq(same, runtime), "all share one runtime");
    }
    assert_eq!(cuda.opened(), [1, 2], "the best one is not tried again by each request");
}

#[test]
fn the_availability_and_the_log_say_what_was_skipped_and_why() {
    let cuda = three();
    cuda.will_fail_to_open(fault());
    cuda.will_fail_to_open(out_of_memory());
    let prober = prober(&cuda);
    assert_eq!(prober.availability().unwrap().devices().unwrap().skipped().count(), 0);
    let said = lines(|| assert_eq!(prober.auto().unwrap().ordinal(), 0));
    let skipped: Vec<_> = said.iter().filter(|line| line.contains("is skipped")).collect();
    assert!(skipped[0].contains("device 1") && skipped[0].contains("NOT_INITIALIZED"), "{said:?}");
    assert!(skipped[1].contains("device 2") && skipped[1].contains("out of memory"), "{said:?}");

    let availability = prober.availability().unwrap();
    let skipped: Vec<_> = availability
        .devices()
        .unwrap()
        .skipped()
        .map(|(ordinal, error)| (ordinal, error.driver().and_then(kiln_driver::Error::code)))
        .collect();
    assert_eq!(skipped, [(1, Some(Code::NOT_INITIALIZED)), (2, Some(Code::OUT_OF_MEMORY))]);
}

#[test]
fn a_skipped_device_is_tried_again_by_name() {
    let cuda = three();
    cuda.will_fail_to_open(fault());
    let prober = prober(&cuda);
    assert_eq!(prober.auto().unwrap().ordinal(), 2);
    assert_eq!(prober.runtime(1).unwrap().ordinal(), 1);
    assert_eq!(prober.availability().unwrap().devices().unwrap().skipped().count(), 0);
}

#[test]
fn a_skipped_device_is_tried_again_after_a_refresh() {
    let cuda = three();
    cuda.will_fail_to_open(fault());
    let prober = prober(&cuda);
    assert_eq!(prober.auto().unwrap().ordinal(), 2);
    assert_eq!(prober.refresh().unwrap().devices().unwrap().skipped().count(), 0);
    assert_eq!(prober.auto().unwrap().ordinal(), 1);
}

#[test]
fn when_no_device_can_be_opened_the_error_is_that_of_the_best_and_nothing_is_kept() {
    let cuda = three();
    [out_of_memory(), fault(), fault()].into_iter().for_each(|error| cuda.will_fail_to_open(error));
    let prober = prober(&cuda);
    let error = prober.auto().unwrap_err();
    assert_eq!(error.to_string(), "failed to create CUDA context for device 1");
    assert!(error.is_oom());
    assert_eq!(prober.auto().unwrap().ordinal(), 1);
    assert_eq!(cuda.opened(), [1, 2, 0, 1]);
}

#[test]
fn a_request_that_names_a_device_gets_that_one_or_its_error() {
    let cuda = three();
    cuda.will_fail_to_open(fault());
    let prober = prober(&cuda);
    assert_eq!(prober.runtime(1).unwrap_err().code(), Some(Code::NOT_INITIALIZED));
    assert_eq!(cuda.opened(), [1]);
}

#[test]
fn a_device_that_cannot_be_opened_again_makes_place_for_the_next() {
    let cuda = three();
    let prober = prober(&cuda);
    let first = prober.auto().unwrap();
    assert_eq!(first.ordinal(), 1);
    first.shutdown(Duration::from_secs(10)).unwrap();
    cuda.will_fail_to_open(fault());
    assert_eq!(prober.auto().unwrap().ordinal(), 2);
}
