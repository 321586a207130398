//! Tests that need a GPU, with and without one.

use kiln::probe::{TestGate, skipped_tests};

use crate::machine::Machine;

/// Where the children write their skips: beside the log of the driver, which each has to itself.
fn skips() -> std::path::PathBuf {
    std::path::Path::new(&std::env::var_os("FAKE_CUDA_LOG").unwrap()).with_file_name("skips")
}

on_machine! {
    fn a_skip_is_counted_and_written_down() on Machine::without_driver() => {
        // SAFETY: this process has one thread that reads or writes the environment, and it is this one.
        unsafe { std::env::set_var("KILN_SKIP_LOG", skips()) };
        for label in ["first test", "second\ntest"] {
            let gate = kiln::probe::gpu_for_test(label).unwrap();
            assert!(matches!(gate, TestGate::Skipped(_)));
        }
        assert_eq!(skipped_tests(), 2);
        let lines = std::fs::read_to_string(skips()).unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        assert!(lines[0].starts_with("first test: KILN_LIBCUDA names"), "{lines:?}");
        assert!(lines[1].starts_with("second test: ") && lines.len() == 2, "{lines:?}");
    }

    fn a_log_that_cannot_be_written_is_an_error() on Machine::without_driver().with("KILN_SKIP_LOG", "/nonexistent/skips") => {
        assert!(kiln::probe::gpu_for_test("a test").is_err());
    }

    fn a_missing_gpu_that_is_required_fails_the_test() on Machine::without_driver().with("KILN_POLICY", "required") => {
        let error = kiln::probe::gpu_for_test("a test").err().unwrap();
        assert!(error.is_absence() && error.label() == Some("a test"));
        assert_eq!(skipped_tests(), 0);
    }

    fn a_gpu_is_ready() on Machine::fake() => {
        assert!(matches!(kiln::probe::gpu_for_test("a test").unwrap(), TestGate::Ready(runtime) if runtime.ordinal() == 0));
        assert_eq!(skipped_tests(), 0);
    }

    fn a_broken_gpu_fails_the_test() on Machine::fake().plan("cuInit=999") => {
        assert!(kiln::probe::gpu_for_test("a test").is_err());
        assert_eq!(skipped_tests(), 0);
    }
}
