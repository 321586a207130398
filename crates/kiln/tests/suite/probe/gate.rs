//! Tests that need a GPU.

use kiln::probe::{TestGate, skipped_tests};

use super::scripted::{Scripted, fault, prober, prober_with};

#[test]
fn ready_where_there_is_a_device() {
    let gate = prober(&Scripted::one_device()).gpu_for_test("needs a GPU").unwrap();
    assert!(matches!(gate, TestGate::Ready(runtime) if runtime.ordinal() == 0));
}

#[test]
fn a_skip_is_counted() {
    let before = skipped_tests();
    let gate = prober(&Scripted::absent()).gpu_for_test("needs a GPU").unwrap();
    assert!(matches!(gate, TestGate::Skipped(_)));
    assert!(skipped_tests() > before);
}

#[test]
fn a_missing_gpu_that_is_required_fails_the_test_and_so_does_a_broken_one() {
    let required = prober_with(&Scripted::absent(), &Scripted::simulator(), Some("required"));
    let error = required.gpu_for_test("needs a GPU").err().unwrap();
    assert_eq!(error.to_string(), "needs a GPU backend: no CUDA runtime available");
    let cuda = Scripted::one_device();
    cuda.will_list(Err(fault().into()));
    assert!(prober(&cuda).gpu_for_test("needs a GPU").is_err());
}
