//! A test of a kernel, as it would stand in a test file: eight seeds on the simulated device, with every check on.
//!
//! `cargo run -p kiln --example 11_check`; `KILN_SEED=5` picks one seed, `KILN_TEST_DEVICE=cuda` adds the GPU.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::DeviceRuntime;
use kiln::testing::{TestFailure, check};

/// `reverse(const unsigned* in, unsigned* out)` for one block of 256 threads, with or without the barrier that it needs.
fn reverse(barrier: &str) -> String {
    format!(
        ".version 7.0
         .target sm_70
         .address_size 64
         .visible .entry reverse(.param .u64 in, .param .u64 out) {{
             .shared .align 4 .b8 tile[1024];
             .reg .b32 %r<4>; .reg .b64 %rd<9>;
             ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
             mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
             add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r2, [%rd4];
             mov.u64 %rd5, tile; add.s64 %rd6, %rd5, %rd3; st.shared.u32 [%rd6], %r2;
             {barrier}
             sub.s64 %rd7, %rd5, %rd3; ld.shared.u32 %r3, [%rd7+1020];
             add.s64 %rd8, %rd2, %rd3; st.global.u32 [%rd8], %r3;
             ret;
         }}"
    )
}

/// The numbers from 0 to 255, reversed by the kernel.
fn reversed(gpu: &DeviceRuntime, ptx: &str) -> kiln::Result<Vec<u32>> {
    let kernel = gpu.kernel(ptx, "reverse")?;
    let (from, to) = (gpu.upload(&(0..256).collect::<Vec<u32>>())?, gpu.allocate::<u32>(256)?);
    // SAFETY: 256 threads touch 256 elements of both buffers and nothing else, and they end.
    unsafe { gpu.launch(&kernel).grid(1).block(256).read(&from).write(&to).submit()? };
    to.download()
}

fn main() -> Result<(), TestFailure> {
    let right = reverse("bar.sync 0;");
    check(0..8, |gpu| {
        assert_eq!(reversed(gpu, &right)?, (0..256).rev().collect::<Vec<u32>>());
        Ok(())
    })?;
    println!("with the barrier: right under 8 seeds");

    let wrong = reverse("");
    // No assertion is needed: the race itself fails the test.
    match check(0..8, |gpu| reversed(gpu, &wrong).map(drop)) {
        Err(failure) => println!("without it: {failure}"),
        Ok(()) => unreachable!("the race is found"),
    }
    Ok(())
}
