//! A kernel that stores outside of all memory, for tests of several packages.

use kiln::{DeviceRuntime, Ticket};

const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry wild(.param .u64 out) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u32 %r1, 1;
    mov.u64 %rd1, 64;
    st.global.u32 [%rd1], %r1;
    ret;
}";

/// Launches it. Waiting for it fails, and the device is lost.
pub(crate) fn launch_wild(gpu: &DeviceRuntime) -> Ticket {
    let kernel = gpu.kernel(PTX, "wild").unwrap();
    let out = gpu.zeros::<u32>(1).unwrap();
    let mut launch = gpu.launch(&kernel);
    launch.grid(1).block(1).write(&out);
    // SAFETY: there is no reason: its store is what the simulated device is to find.
    unsafe { launch.submit() }.unwrap()
}
