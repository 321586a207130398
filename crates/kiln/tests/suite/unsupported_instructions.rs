//! A kernel with instructions that the simulated device does not execute is refused, and everything else goes on.

use kiln::{DeviceRuntime, GpuRef};

/// Two kernels that only a GPU runs, and one that runs everywhere.
const MODULE: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry multiply(.param .u64 out) {
    .reg .b32 %r<12>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 0;
    mma.sp.sync.aligned.m16n8k64.row.col.f16.e4m3.e4m3.f16 {%r2, %r3}, {%r1, %r1, %r1, %r1}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, %r1, 0;
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry prefetch(.param .u64 out, .param .u64 map) {
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [map];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.wait::st.sync.aligned;
    ret;
}
.visible .entry fill(.param .u64 out, .param .u32 value) {
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}";

fn fill(gpu: &DeviceRuntime, out: &GpuRef<u32>, value: u32) -> kiln::Result<()> {
    let fill = gpu.kernel(MODULE, "fill")?;
    // SAFETY: 32 threads write 32 elements.
    unsafe { gpu.launch(&fill).grid(1).block(32).write(out).value(value).submit() }.map(|_| ())
}

#[test]
fn a_launch_is_refused_with_instruction_and_line_and_the_device_lives_on() {
    for seed in 0..4 {
        let gpu = DeviceRuntime::simulated(seed).unwrap();
        let out = gpu.zeros::<u32>(32).unwrap();
        fill(&gpu, &out, 7).unwrap();
        let multiply = gpu.kernel(MODULE, "multiply").unwrap();
        // SAFETY: it is refused; it would write one element.
        let refused = unsafe { gpu.launch(&multiply).grid(1).block(32).write(&out).submit() }.unwrap_err();
        assert!(refused.driver().is_some_and(|error| error.is_unsupported()), "{refused:#}");
        assert!(!refused.is_lost() && !refused.is_retryable(), "{refused:#}");
        let text = format!("{refused:#}");
        for word in ["mma.sp.sync", "multiply", "line 9", "GPU"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert_eq!(out.download().unwrap(), [7; 32], "nothing was changed");
        fill(&gpu, &out, 8).unwrap();
        gpu.synchronize().unwrap();
        assert_eq!(out.download().unwrap(), [8; 32]);
    }
}

#[test]
fn further_instructions_are_counted() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let out = gpu.zeros::<u32>(32).unwrap();
    let prefetch = gpu.kernel(MODULE, "prefetch").unwrap();
    // SAFETY: it is refused; it touches no memory.
    let refused =
        unsafe { gpu.launch(&prefetch).grid(1).block(32).write(&out).value(0u64).submit() }.unwrap_err();
    let text = format!("{refused:#}");
    assert!(text.contains("tcgen05.wait") && text.contains("line 16") && text.contains("1 more"), "{text}");
}

#[test]
fn a_graph_with_such_a_kernel_is_refused() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let out = gpu.zeros::<u32>(32).unwrap();
    let multiply = gpu.kernel(MODULE, "multiply").unwrap();
    let recorded = gpu.record(|graph| {
        let mut launch = graph.launch(&multiply);
        launch.grid(1).block(32).write(&out);
        // SAFETY: it is refused; it would write one element.
        unsafe { launch.record() }
    });
    let text = format!("{:#}", recorded.err().unwrap());
    assert!(text.contains("mma.sp.sync") && text.contains("line 9"), "{text}");
    fill(&gpu, &out, 9).unwrap();
    assert_eq!(out.download().unwrap(), [9; 32]);
}
