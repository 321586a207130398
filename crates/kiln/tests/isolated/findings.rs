//! The simulator in a worker process: findings come to the client as they do in one process.

use std::time::Duration;

use kiln::checking::FindingRule;
use kiln::{DeviceRuntime, GpuRef, Kernel, Ticket};

use crate::rig;

/// `store(data, n)` writes the first n elements.
const STORE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 data, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r5, [n];
    mov.u32 %r4, %tid.x;
    setp.ge.u32 %p, %r4, %r5;
    @%p ret;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}
";

fn launch(gpu: &DeviceRuntime, kernel: &Kernel, data: &GpuRef<u32>, elements: u32) -> Ticket {
    let mut launch = gpu.launch(kernel);
    // SAFETY: the simulator checks every access, and what lies behind the buffer is mapped.
    unsafe { launch.grid(1).block(elements).write(data).value(elements).submit().unwrap() }
}

#[test]
fn a_finding_in_a_worker_fails_its_ticket_and_what_comes_after_and_the_worker_lives_on() {
    let gpu = rig::open(40, rig::process());
    let kernel = gpu.kernel(STORE, "store").unwrap();
    let (data, neighbour) = (gpu.zeros::<u32>(256).unwrap(), gpu.zeros::<u32>(256).unwrap());
    launch(&gpu, &kernel, &data, 256).wait().unwrap();
    let bad = launch(&gpu, &kernel, &data, 260);
    let error = data.download().unwrap_err();
    for error in [error, bad.wait().unwrap_err()] {
        let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
        let line = finding.line.as_ref().map(|line| (line.file.as_str(), line.line));
        let told = (finding.rule, finding.kernel.as_deref(), line, finding.fatal);
        assert_eq!(told, (FindingRule::Undeclared, Some("store"), Some(("ptx", 13)), false), "{error}");
        assert!(error.to_string().contains("past the end of argument 0 (`data`)"), "{error}");
    }
    assert_eq!((gpu.status().generation.0, gpu.post_mortems().len()), (0, 0));
    launch(&gpu, &kernel, &data, 256).wait().unwrap();
    assert_eq!(neighbour.download().unwrap()[4..], [0; 252]);
    assert_eq!(gpu.findings().findings.len(), 1);
    assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
}

#[test]
fn a_finding_that_was_told_outlives_its_worker_and_the_next_worker_checks_too() {
    let gpu = rig::open(41, rig::process());
    let kernel = gpu.kernel(STORE, "store").unwrap();
    let (data, _behind) = (gpu.zeros::<u32>(256).unwrap(), gpu.zeros::<u32>(256).unwrap());
    let bad = launch(&gpu, &kernel, &data, 260);
    assert!(bad.wait().unwrap_err().finding().is_some());
    rig::kill(&gpu);
    assert!(bad.wait().unwrap_err().finding().is_some(), "it failed, and stays so");
    launch(&gpu, &kernel, &data, 256).wait().unwrap();
    assert!(launch(&gpu, &kernel, &data, 257).wait().unwrap_err().finding().is_some());
    assert_eq!(gpu.findings().findings.len(), 2);
}
