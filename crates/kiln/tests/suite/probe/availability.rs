//! The answer to "is there a GPU?": what is kept, and for how long.

use std::thread;

use kiln::probe::Listing;
use kiln_driver::Code;

use super::scripted::{Scripted, fault, no_driver, out_of_memory, prober};

#[test]
fn an_answer_is_asked_for_once_and_opens_nothing() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    for _ in 0..3 {
        let availability = prober.availability().unwrap();
        assert_eq!(availability.devices().map(|devices| devices.len()), Some(1));
        assert!(availability.is_available() && availability.absence().is_none());
    }
    assert_eq!((cuda.listed(), cuda.opened()), (1, vec![]));
}

#[test]
fn threads_that_ask_first_at_the_same_time_share_one_answer() {
    let cuda = Scripted::one_device();
    let prober = prober(&cuda);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(prober.availability().unwrap().is_available()));
        }
    });
    assert_eq!(cuda.listed(), 1);
}

#[test]
fn absence_is_a_value_and_kept() {
    let cuda = Scripted::absent();
    let prober = prober(&cuda);
    for _ in 0..2 {
        assert_eq!(prober.availability().unwrap().absence(), Some(&no_driver()));
    }
    assert_eq!(cuda.listed(), 1);
}

#[test]
fn a_fault_is_an_error_that_is_kept_until_a_refresh() {
    let cuda = Scripted::one_device();
    cuda.will_list(Err(fault().into()));
    cuda.will_list(Err(fault().into()));
    let prober = prober(&cuda);
    for _ in 0..3 {
        let error = prober.availability().unwrap_err();
        assert_eq!((error.code(), error.call()), (Some(Code::NOT_INITIALIZED), Some("cuInit")));
        assert!(!error.is_absence());
    }
    assert_eq!(cuda.listed(), 1);
    assert!(prober.refresh().is_err());
    assert!(prober.refresh().unwrap().is_available());
    assert!(prober.availability().unwrap().is_available());
    assert_eq!(cuda.listed(), 3);
}

#[test]
fn a_lack_of_memory_is_never_kept() {
    let cuda = Scripted::one_device();
    cuda.will_list(Err(out_of_memory().into()));
    let prober = prober(&cuda);
    assert!(prober.availability().unwrap_err().is_oom());
    assert!(prober.availability().unwrap().is_available());
}

#[test]
fn a_fresh_look_can_also_find_that_there_is_something_now() {
    let cuda = Scripted::one_device();
    cuda.will_list(Ok(Listing::Absent(no_driver())));
    let prober = prober(&cuda);
    assert!(!prober.availability().unwrap().is_available());
    assert!(prober.refresh().unwrap().is_available());
    assert!(prober.require().is_ok());
}

#[test]
fn one_broken_device_hides_no_other_but_only_broken_ones_are_a_fault() {
    let cuda = Scripted::cuda([Default::default(), Default::default()]);
    let mut entries = cuda.entries();
    entries[0] = Err(fault());
    cuda.will_list(Ok(Listing::Devices(entries)));
    let half = prober(&cuda);
    let availability = half.availability().unwrap();
    let devices = availability.devices().unwrap();
    assert_eq!(devices.working().map(|device| device.ordinal).collect::<Vec<_>>(), [1]);
    assert_eq!(devices.broken().map(|(ordinal, _)| ordinal).collect::<Vec<_>>(), [0]);
    assert_eq!(half.require().unwrap().ordinal(), 1);

    cuda.will_list(Ok(Listing::Devices(vec![Err(fault())])));
    assert_eq!(prober(&cuda).availability().unwrap_err().code(), Some(Code::NOT_INITIALIZED));

    cuda.will_list(Ok(Listing::Devices(Vec::new())));
    assert!(prober(&cuda).availability().unwrap().absence().is_some());
}
