//! What is left when a runtime ends is printed: buffers that outlive it, and findings that no caller was told.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kiln::memory::AllocTag;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::kernels::KERNELS;

/// The test that this process was started for.
const TEST: &str = "KILN_TEST_SAID";

/// What a program says on its error output: this binary, started again for one test. None in that process, where the body was run.
fn said(test: &str, body: impl FnOnce()) -> Option<String> {
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    if std::env::var(TEST).is_ok_and(|asked| asked == test) {
        body();
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--test-threads=1", "--nocapture"]).env(TEST, test);
    let output = child.env_remove("KILN_FINDINGS").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}\n{text}", output.status);
    Some(text)
}

macro_rules! said {
    ($test:literal, $body:expr) => {
        match said(concat!(module_path!(), "::", $test), $body) {
            Some(text) => text,
            None => return,
        }
    };
}

fn open(seed: u64) -> DeviceRuntime {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap()
}

#[test]
fn buffers_that_outlive_the_runtime_are_named() {
    let text = said!("buffers_that_outlive_the_runtime_are_named", || {
        let gpu = open(1);
        let tag = |name| AllocTag::new(name).unwrap();
        let kept = gpu.allocate_tagged::<u32>(gpu.main_stream(), 100, tag("weights")).unwrap();
        std::mem::forget(gpu.allocate_tagged::<u32>(gpu.main_stream(), 8, tag("forgotten")).unwrap());
        let dropped = gpu.allocate_tagged::<u32>(gpu.main_stream(), 8, tag("dropped")).unwrap();
        drop(dropped);
        drop(gpu);
        drop(kept);
    });
    let words = "kiln: 432 bytes of buffers are left when their runtime ends: 1 block of 400 bytes (weights), 1 block \
                 of 32 bytes (forgotten)";
    assert!(text.contains(words) && !text.contains("dropped)"), "{text}");
}

#[test]
fn a_program_that_drops_its_buffers_says_nothing_also_after_a_shutdown() {
    let text = said!("a_program_that_drops_its_buffers_says_nothing_also_after_a_shutdown", || {
        let gpu = open(2);
        let buffer = gpu.zeros::<u32>(100).unwrap();
        assert!(gpu.shutdown(Duration::from_secs(10)).unwrap(), "live buffers are no error");
        drop(buffer);
        drop(gpu);
    });
    assert!(!text.contains("kiln:"), "{text}");
}

#[test]
fn a_finding_that_no_caller_was_told_is_printed() {
    let text = said!("a_finding_that_no_caller_was_told_is_printed", || {
        let gpu = open(3);
        let kernel = gpu.kernel(KERNELS, "follow").unwrap();
        let (target, out) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(1).unwrap());
        let list = gpu.upload(&[target.address().0]).unwrap();
        drop(target);
        // SAFETY: the simulator checks every access.
        unsafe { gpu.launch(&kernel).threads(1).read(&list).write(&out).submit().unwrap() };
    });
    assert!(text.contains("kiln: found and not read: ") && text.contains("use after free"), "{text}");
}
