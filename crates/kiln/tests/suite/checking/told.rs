//! What an error says about a mistake in a kernel: the most telling finding first, where, by which thread, near which argument.

use kiln::{DeviceRuntime, Error};

use super::kernels::KERNELS;

/// `copy(x, y, n)` copies `n + 1` elements; `all(y)` lets every thread write its number to the first element; `spin(flag)` waits until the
/// flag is not 0; `late(y)` reads two elements at an address that is no multiple of their size.
const MISTAKES: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.gt.u32 %p, %r2, %r1;
    @%p ret;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r3, [%rd4];
    st.global.u32 [%rd5], %r3;
    ret;
}
.visible .entry all(.param .u64 y) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %ctaid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry spin(.param .u64 flag) {
    .reg .pred %p; .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    ret;
}
.visible .entry late(.param .u64 y) {
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [y];
    ld.global.u64 %rd2, [%rd1+4];
    st.global.u64 [%rd1], %rd2;
    ret;
}
";

fn gpu() -> DeviceRuntime {
    DeviceRuntime::simulated(1).unwrap()
}

#[track_caller]
fn check(error: &Error, parts: &[&str]) {
    let text = format!("{error:#}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}

#[test]
fn an_access_that_was_not_declared_is_told_and_not_that_its_bytes_were_never_written() {
    let gpu = gpu();
    let copy = gpu.kernel(MISTAKES, "copy").unwrap();
    let x = gpu.upload(&[1_u32; 100]).unwrap();
    let y = gpu.zeros::<u32>(100).unwrap();
    let _neighbour = gpu.zeros::<u32>(100).unwrap();
    // SAFETY: the simulator checks every access; the access past the end is what this is about.
    unsafe { gpu.launch(&copy).grid(1).block(128).read(&x).write(&y).value(100_u32).submit().unwrap() };
    let error = y.download().unwrap_err();
    check(&error, &["just past the end of argument 0 (`x`)", "thread (100,0,0)"]);
    let findings = gpu.findings().findings;
    assert!(findings.iter().all(|finding| !finding.to_string().contains("never written")), "{findings:#?}");
    let text = error.to_string();
    assert_eq!(text.matches("undeclared access").count(), 1, "{text}");
}

#[test]
fn the_error_of_a_lost_device_says_where_and_near_which_argument() {
    let gpu = gpu();
    let load = gpu.kernel(KERNELS, "load").unwrap();
    let (data, out) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
    // SAFETY: as above.
    unsafe { gpu.launch(&load).grid(1).block(1).read(&data).write(&out).value(-1_i32).submit().unwrap() };
    let error = out.download().unwrap_err();
    assert!(error.is_lost());
    check(
        &error,
        &["(700)", "4 bytes before the start of argument 0 (`data`)", "load at PTX line", "thread (0,0,0)"],
    );
    assert_eq!(gpu.findings().findings.len(), 1, "{:#?}", gpu.findings().findings);
}

#[test]
fn an_endless_wait_is_told_as_the_command_tells_it() {
    let gpu = gpu();
    let spin = gpu.kernel(MISTAKES, "spin").unwrap();
    let flag = gpu.zeros::<u32>(1).unwrap();
    // SAFETY: as above.
    unsafe { gpu.launch(&spin).grid(1).block(1).read(&flag).submit().unwrap() };
    let error = flag.download().unwrap_err();
    check(
        &error,
        &[
            "(702)",
            "waits here in a loop for memory that no thread of the launch will change",
            "spin at PTX line",
        ],
    );
}

#[test]
fn a_race_is_told_once_with_its_argument_and_what_mends_it() {
    let gpu = gpu();
    let all = gpu.kernel(MISTAKES, "all").unwrap();
    let y = gpu.zeros::<u32>(1).unwrap();
    // SAFETY: as above.
    unsafe { gpu.launch(&all).grid(4).block(1).write(&y).submit().unwrap() };
    let error = y.download().unwrap_err();
    check(&error, &["race: ", "0 bytes into argument 0 (`y`)", "let one thread access these bytes"]);
    assert_eq!(gpu.findings().findings.len(), 1, "{:#?}", gpu.findings().findings);
}

#[test]
fn bytes_that_were_never_written_and_wrong_addresses_are_told_with_their_argument() {
    let gpu = gpu();
    let copy = gpu.kernel(MISTAKES, "copy").unwrap();
    let (x, y) = (gpu.allocate::<u32>(100).unwrap(), gpu.zeros::<u32>(100).unwrap());
    // SAFETY: as above.
    unsafe { gpu.launch(&copy).grid(1).block(32).read(&x).write(&y).value(99_u32).submit().unwrap() };
    check(
        &y.download().unwrap_err(),
        &[
            "uninitialised",
            "to which a kernel stored an undefined value",
            "element 0 of argument 1 (`y`)",
            "copy at PTX line",
        ],
    );
    let late = gpu.kernel(MISTAKES, "late").unwrap();
    let z = gpu.zeros::<u32>(100).unwrap();
    // SAFETY: as above.
    unsafe { gpu.launch(&late).grid(1).block(1).read_write(&z).submit().unwrap() };
    check(&z.download().unwrap_err(), &["misaligned", "4 bytes into argument 0 (`y`)"]);
}

#[test]
fn a_name_that_is_not_there_is_told_with_the_nearest_names() {
    let mut text = String::from(".version 7.0\n.target sm_70\n.address_size 64\n");
    for at in 0..20 {
        text += &format!(".visible .entry a{at:02}() {{ ret; }}\n");
    }
    text += ".visible .entry scale() { ret; }\n";
    let error = gpu().kernel(text.as_str(), "scal").unwrap_err();
    check(&error, &["no kernel named `scal`; it has scale, ", "and 13 more"]);
    assert!(!error.to_string().contains("module:"), "{error}");
}

#[test]
fn text_that_is_no_ptx_is_told_once() {
    let error = gpu().kernel(".version 7.0\n.target sm_70\n.address_size 64\nnonsense", "k").unwrap_err();
    let text = format!("{error:#}");
    assert_eq!(text.matches("nonsense").count(), 1, "{text}");
}

#[test]
fn findings_in_cuda_c_name_the_line_of_the_source() {
    if crate::skip::without_nvrtc("findings_in_cuda_c_name_the_line_of_the_source") {
        return;
    }
    const TEXT: &str = "extern \"C\" __global__ void over(int* y)\n{\n    y[threadIdx.x] = 1;\n}\n";
    let named = kiln::code::Source::CudaC { name: "over.cu", text: TEXT };
    for (source, place) in
        [(TEXT.into(), "over at <kernel source>:3 (PTX"), (named, "over at over.cu:3 (PTX")]
    {
        let gpu = gpu();
        let over = gpu.kernel(source, "over").unwrap();
        let y = gpu.zeros::<u32>(16).unwrap();
        // SAFETY: as above.
        unsafe { gpu.launch(&over).grid(1).block(32).write(&y).submit().unwrap() };
        check(&y.download().unwrap_err(), &[place, "thread (16,0,0)", "past the end of argument 0"]);
    }
}
