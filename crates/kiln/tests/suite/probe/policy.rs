//! What each policy does, touches, and leaves alone.

use kiln::probe::{Absence, ProbeError, Selection};
use kiln::{Policy, error::ErrorKind};
use kiln_driver::DeviceKind;

use super::scripted::{Scripted, fault, prober, prober_with};

#[test]
fn off_touches_nothing_whatever_is_asked() {
    let (cuda, simulator) = (Scripted::one_device(), Scripted::simulator());
    let prober = prober_with(&cuda, &simulator, None);
    prober.set_policy(Policy::Off).unwrap();
    assert!(prober.resolve(Policy::Off).unwrap().is_none());
    assert!(prober.resolve_on(Policy::Off, &Selection::Ordinal(7)).unwrap().is_none());
    let switched_off = Absence::SwitchedOff { policy: Policy::Off };
    assert_eq!(prober.availability().unwrap().absence(), Some(&switched_off));
    assert_eq!(prober.refresh().unwrap().absence(), Some(&switched_off));
    assert!(prober.runtime(0).unwrap_err().is_absence());
    assert!(prober.probe_backend("solver").unwrap_err().is_absence());
    assert!(prober.memory_budget_for(0).unwrap_err().is_absence());
    assert!(prober.balanced_partition(10).unwrap_err().is_absence());
    assert_eq!((cuda.listed(), cuda.opened()), (0, vec![]));
    assert_eq!((simulator.listed(), simulator.opened()), (0, vec![]));
}

#[test]
fn simulate_leaves_cuda_alone() {
    let cuda = Scripted::one_device();
    let prober = prober_with(&cuda, &Scripted::simulator(), Some("simulate"));
    let runtime = prober.resolve(Policy::Simulate).unwrap().unwrap();
    assert_eq!(runtime.info().kind, DeviceKind::Simulated);
    let parts = prober.probe_backend("solver").unwrap();
    assert!(std::ptr::eq(parts.runtime(), runtime));
    assert!(prober.availability().unwrap().is_available());
    assert!(prober.cuda(0).unwrap_err().is_absence());
    assert_eq!((cuda.listed(), cuda.opened()), (0, vec![]));
}

#[test]
fn auto_is_content_without_a_device_but_not_with_a_broken_one() {
    let simulator = Scripted::simulator();
    let nothing = prober_with(&Scripted::absent(), &simulator, None);
    assert!(nothing.resolve(Policy::Auto).unwrap().is_none());
    assert!(simulator.opened().is_empty());

    let cuda = Scripted::one_device();
    cuda.will_list(Err(fault().into()));
    let broken = prober(&cuda);
    assert!(!broken.resolve(Policy::Auto).unwrap_err().is_absence());

    let cuda = Scripted::one_device();
    cuda.will_fail_to_open(fault());
    assert!(prober(&cuda).resolve(Policy::Auto).is_err());
}

#[test]
fn required_makes_absence_an_error() {
    let prober = prober(&Scripted::absent());
    for error in [prober.resolve(Policy::Required).unwrap_err(), prober.require().unwrap_err()] {
        assert!(error.is_absence() && !error.is_retryable());
        assert_eq!(error.to_string(), "no CUDA runtime available");
    }
}

#[test]
fn only_the_call_that_may_simulate_does() {
    let (cuda, simulator) = (Scripted::absent(), Scripted::simulator());
    let prober = prober_with(&cuda, &simulator, None);
    assert!(prober.resolve(Policy::Auto).unwrap().is_none());
    assert!(prober.probe_backend("solver").is_err());
    assert!(prober.runtime(0).is_err());
    assert!(simulator.opened().is_empty());
    let runtime = prober.auto().unwrap();
    assert_eq!(runtime.info().kind, DeviceKind::Simulated);
    assert!(std::ptr::eq(runtime, prober.auto().unwrap()));
    assert_eq!((simulator.opened(), cuda.opened()), (vec![0], vec![]));
}

#[test]
fn the_call_that_may_simulate_follows_the_policy_in_force() {
    let cuda = Scripted::one_device();
    let simulator = Scripted::simulator();
    prober_with(&cuda, &simulator, Some("off")).auto().unwrap();
    prober_with(&cuda, &simulator, Some("simulate")).auto().unwrap();
    assert_eq!((cuda.listed(), simulator.opened()), (0, vec![0, 0]));

    prober_with(&cuda, &simulator, None).auto().unwrap();
    assert_eq!((cuda.opened(), simulator.opened()), (vec![0], vec![0, 0]));

    let required = prober_with(&Scripted::absent(), &simulator, Some("required"));
    assert!(required.auto().unwrap_err().is_absence());

    let broken = Scripted::one_device();
    broken.will_list(Err(fault().into()));
    assert!(!prober_with(&broken, &simulator, None).auto().unwrap_err().is_absence());
    assert_eq!(simulator.opened(), [0, 0]);
}

#[test]
fn a_second_setting_that_differs_is_an_error_and_changes_nothing() {
    let prober = prober(&Scripted::one_device());
    prober.set_policy(Policy::Required).unwrap();
    let error = prober.set_policy(Policy::Simulate).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::PolicyConflict { .. })), "{error}");
    assert_eq!(prober.policy().unwrap(), Policy::Required);
}

#[test]
fn nonsense_in_the_environment_stops_what_would_follow_it() {
    let cuda = Scripted::one_device();
    let prober = prober_with(&cuda, &Scripted::simulator(), Some("fast"));
    let unknown =
        |error: &kiln::Error| matches!(error.kind(), ErrorKind::Probe(ProbeError::Environment { .. }));
    assert!(unknown(&prober.availability().unwrap_err()));
    assert!(unknown(&prober.auto().unwrap_err()));
    assert!(unknown(&prober.probe_backend("solver").unwrap_err()));
    // A request that brings its own policy does not need the default.
    assert!(prober.resolve(Policy::Required).unwrap().is_some());
}

#[test]
fn a_device_by_ordinal_is_the_simulated_one_under_simulate_and_a_cuda_one_otherwise() {
    let (cuda, simulator) = (Scripted::one_device(), Scripted::simulator());
    let simulate = prober_with(&cuda, &simulator, Some("simulate"));
    let runtime = simulate.runtime(0).unwrap();
    assert!(std::ptr::eq(runtime, simulate.auto().unwrap()));
    let switched_off = simulate.cuda(0).unwrap_err();
    assert_eq!(switched_off.absence(), Some(&Absence::SwitchedOff { policy: Policy::Simulate }));
    assert_eq!((cuda.listed(), simulator.opened()), (0, vec![0]));

    let auto = prober_with(&cuda, &simulator, None);
    assert!(std::ptr::eq(auto.runtime(0).unwrap(), auto.cuda(0).unwrap()));
    assert_eq!((cuda.opened(), simulator.opened()), (vec![0], vec![0]));
    assert!(prober_with(&cuda, &simulator, Some("off")).runtime(0).unwrap_err().is_absence());
}
