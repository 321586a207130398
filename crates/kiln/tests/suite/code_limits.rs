//! Code that asks for more than a device has is refused as `ptxas` refuses it, and large modules are read in linear time.

use std::fmt::Write;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// What loading a kernel `k` with this body answers.
fn refusal(body: &str) -> String {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let text = format!("{HEAD}.visible .entry k(.param .u64 out) {{ {body} ret; }}");
    let answer = gpu.kernel(text.as_str(), "k");
    gpu.zeros::<u32>(8).unwrap().download().expect("the device lives on");
    format!("{:#}", answer.expect_err("this is refused"))
}

#[test]
fn local_memory_has_a_limit() {
    for bytes in [600_000_u64, 1 << 40, (1 << 62) - 8] {
        let text = refusal(&format!(
            ".local .align 8 .b8 large[{bytes}]; .reg .b64 %rd<2>; mov.u64 %rd1, large; st.local.u32 [%rd1], 1;"
        ));
        assert!(text.contains("kernel k declares") && text.contains("local memory"), "{text}");
        assert!(text.contains("524288"), "{text}");
    }
}

#[test]
fn static_shared_memory_has_a_limit() {
    for bytes in [49_153_u64, 120 << 10, 1 << 40, (1 << 62) - 8] {
        let text = refusal(&format!(
            ".shared .align 4 .b8 tile[{bytes}]; .reg .b64 %rd<2>; mov.u64 %rd1, tile; st.shared.u32 [%rd1], 1;"
        ));
        assert!(text.contains("static shared memory") && text.contains("49152"), "{text}");
    }
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let fits =
        ".shared .align 4 .b8 tile[49152]; .reg .b64 %rd<2>; mov.u64 %rd1, tile; st.shared.u32 [%rd1], 1;";
    let text = format!("{HEAD}.visible .entry k(.param .u64 out) {{ {fits} ret; }}");
    let kernel = gpu.kernel(text.as_str(), "k").unwrap();
    // SAFETY: it touches no memory but its own.
    unsafe { gpu.launch(&kernel).grid(1).block(1).value(0u64).submit() }.unwrap();
    gpu.synchronize().unwrap();
}

/// The time to load so many kernels.
fn load_time(entries: usize) -> Duration {
    let mut text = HEAD.to_owned();
    for at in 0..entries {
        let _ = writeln!(
            text,
            ".visible .entry kernel_{at}(.param .u64 out) {{ .shared .u32 s; .reg .b64 %rd<2>;
             ld.param.u64 %rd1, [out]; st.shared.u32 [s], {at}; st.global.u32 [%rd1], {at}; ret; }}"
        );
    }
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let start = Instant::now();
    gpu.kernel(text.as_str(), &format!("kernel_{}", entries - 1)).unwrap();
    start.elapsed()
}

#[test]
fn many_entries_are_read_in_linear_time() {
    // Ten times the entries take ten times as long, or a hundred times if each is compared with all others. The machine may be busy,
    // so that one good ratio of three is enough.
    let ratios = (0..3).map(|_| load_time(8000).as_secs_f64() / load_time(800).as_secs_f64());
    let ratios: Vec<f64> = ratios.take_while(|ratio| *ratio > 35.0).collect();
    assert!(ratios.len() < 3, "10 times the entries took {ratios:?} times as long");
}
