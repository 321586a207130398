//! Undefined values that a launch copies are found when the host or another launch uses them.

use kiln::checking::FindingRule;
use kiln::{DeviceRuntime, GpuRef};

/// `copy(from, to)` copies a struct of a byte and a word by whole words; `sum(from, to)` adds its two members. `flag(from, to)` stores whether the word is large, and
/// `low(from, to)` branches by all bits of a word but the lowest.
const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to) {
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
    ld.global.u64 %rd3, [%rd1];
    st.global.u64 [%rd2], %rd3;
    ret;
}
.visible .entry set(.param .u64 to, .param .u32 count) {
    .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p;
    ld.param.u64 %rd1, [to]; ld.param.u32 %r1, [count];
    st.global.u8 [%rd1], 3;
    setp.ne.u32 %p, %r1, 0;
    @%p st.global.u32 [%rd1+4], %r1;
    ret;
}
.visible .entry flag(.param .u64 from, .param .u64 to) {
    .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
    ld.global.u32 %r1, [%rd1+4];
    setp.gt.u32 %p, %r1, 9;
    selp.u32 %r2, 1, 0, %p;
    st.global.u32 [%rd2+4], %r2;
    ret;
}
.visible .entry low(.param .u64 from, .param .u64 to) {
    .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
    ld.global.u32 %r1, [%rd1+4];
    and.b32 %r2, %r1, 0xfffffffe;
    setp.gt.u32 %p, %r2, 9;
    @%p bra DONE;
    st.global.u32 [%rd2], %r2;
DONE:
    ret;
}
.visible .entry sum(.param .u64 from, .param .u64 to) {
    .reg .b64 %rd<3>; .reg .b32 %r<5>;
    ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
    ld.global.v2.u32 {%r1, %r2}, [%rd1];
    and.b32 %r3, %r1, 255;
    add.u32 %r4, %r3, %r2;
    st.global.u32 [%rd2], %r4;
    ret;
}
";

fn launch(gpu: &DeviceRuntime, name: &str, from: &GpuRef<u32>, to: &GpuRef<u32>) -> kiln::Result<()> {
    let kernel = gpu.kernel(KERNELS, name)?;
    // SAFETY: inside both buffers.
    unsafe { gpu.launch(&kernel).threads(1).read(from).write(to).submit()?.wait() }
}

/// A struct of which the padding, and the word if it is 0, was never written, and two copies of it.
fn copied(gpu: &DeviceRuntime, count: u32) -> kiln::Result<GpuRef<u32>> {
    let [first, second, third] = [gpu.allocate(2)?, gpu.allocate(2)?, gpu.allocate(2)?];
    let set = gpu.kernel(KERNELS, "set")?;
    // SAFETY: inside the buffer.
    unsafe { gpu.launch(&set).threads(1).write(&first).value(count).submit()?.wait()? };
    launch(gpu, "copy", &first, &second)?;
    third.copy_from(&second)?;
    Ok(third)
}

#[test]
fn padding_goes_through_copies_of_kernels_and_of_the_host() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let (third, out) = (copied(&gpu, 39).unwrap(), gpu.allocate(1).unwrap());
    launch(&gpu, "sum", &third, &out).unwrap();
    assert_eq!(out.download().unwrap(), [42]);
    assert_eq!(third.view(1..2).unwrap().download().unwrap(), [39]);
}

#[test]
fn a_later_launch_that_computes_with_a_copy_names_the_copy() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let (third, out) = (copied(&gpu, 0).unwrap(), gpu.allocate(1).unwrap());
    launch(&gpu, "sum", &third, &out).unwrap();
    let error = out.download().unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!((finding.rule, finding.kernel.as_deref()), (FindingRule::Uninitialised, Some("sum")));
    for word in [
        "(element 0 of argument 1 (`to`), counted in elements of 4 bytes)",
        "which was never written",
        "sum at PTX line",
        "an earlier launch stored",
        "copy at PTX line",
    ] {
        assert!(finding.text.contains(word), "{word}: {}", finding.text);
    }
}

#[test]
fn a_download_of_a_copy_names_the_load() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let third = copied(&gpu, 0).unwrap();
    let error = third.download().unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!((finding.rule, finding.kernel.as_deref()), (FindingRule::Uninitialised, Some("copy")));
    assert!(
        finding.line.is_some() && finding.text.contains("read of 8 bytes at global address"),
        "{}",
        finding.text
    );
}

#[test]
fn one_undefined_bit_is_kept_from_launch_to_launch() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let (third, flags, out) = (copied(&gpu, 0).unwrap(), gpu.zeros(2).unwrap(), gpu.zeros(1).unwrap());
    launch(&gpu, "flag", &third, &flags).unwrap();
    // The lowest bit of the flag is undefined, and the others are zeros.
    launch(&gpu, "low", &flags, &out).unwrap();
    assert_eq!(out.download().unwrap(), [0]);
    assert_eq!(flags.view(0..1).unwrap().download().unwrap(), [0]);
    let error = flags.download().unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!((finding.rule, finding.kernel.as_deref()), (FindingRule::Uninitialised, Some("flag")));
    assert!(finding.text.contains("element 1 of argument 1 (`to`)"), "{}", finding.text);
}
