//! Null pointers, structs, and arrays with the wrong elements.

use serde_json::json;

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};
use crate::skip;

/// `sum(const float* x, const float* y, float* out, int n)`: x plus y where y is not null.
const OPTIONAL: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry sum(.param .u64 x, .param .u64 y, .param .u64 out) {
        .reg .pred %p;
        .reg .f32 %f<4>;
        .reg .b32 %r<2>;
        .reg .b64 %rd<8>;
        ld.param.u64 %rd1, [x];
        ld.param.u64 %rd2, [y];
        ld.param.u64 %rd3, [out];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd4, %r1, 4;
        add.s64 %rd5, %rd1, %rd4;
        ld.global.f32 %f1, [%rd5];
        setp.eq.s64 %p, %rd2, 0;
        @%p bra STORE;
        add.s64 %rd6, %rd2, %rd4;
        ld.global.f32 %f2, [%rd6];
        add.f32 %f1, %f1, %f2;
    STORE:
        add.s64 %rd7, %rd3, %rd4;
        st.global.f32 [%rd7], %f1;
        ret;
    }";

/// `apply(struct { float* data; float factor; char shift; int n; } s, char* out)`: data[t] = data[t] * factor + shift, out[t] = n.
const STRUCT: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry apply(.param .align 8 .b8 s[24], .param .u64 out) {
        .reg .f32 %f<6>;
        .reg .b32 %r<5>;
        .reg .b64 %rd<8>;
        ld.param.u64 %rd1, [s];
        ld.param.f32 %f1, [s+8];
        ld.param.s8 %r1, [s+12];
        ld.param.u32 %r2, [s+16];
        ld.param.u64 %rd2, [out];
        mov.u32 %r3, %tid.x;
        mul.wide.u32 %rd3, %r3, 4;
        add.s64 %rd4, %rd1, %rd3;
        ld.global.f32 %f2, [%rd4];
        cvt.rn.f32.s32 %f3, %r1;
        fma.rn.f32 %f4, %f1, %f2, %f3;
        st.global.f32 [%rd4], %f4;
        cvt.u64.u32 %rd5, %r3;
        add.s64 %rd6, %rd2, %rd5;
        st.global.u8 [%rd6], %r2;
        ret;
    }";

fn launch(command: &str, file: &str, threads: &str, arguments: &[&str], more: &[&str]) -> Outcome {
    let mut words = vec![command, file, "--grid", "1", "--block", threads, "--device", "sim"];
    words.extend(arguments.iter().flat_map(|argument| ["--arg", *argument]));
    words.extend(more);
    run(without_driver(&words))
}

fn floats(list: &[f32]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn a_pointer_may_be_null() {
    let folder = Folder::new();
    let file = folder.write("sum.ptx", OPTIONAL);
    let x = format!("in:{}", folder.floats("x.npy", &[1.0, 2.0]));
    let out = format!("out:f32:2:{}", folder.path("o.npy"));
    for (y, expected) in [("null", [1.0, 2.0]), (&x, [2.0, 4.0])] {
        let outcome = launch("run", &file, "2", &[&x, y, &out], &[]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(folder.read("o.npy").1, floats(&expected));
    }
    assert_eq!(launch("check", &file, "2", &[&x, "null", &out], &[]).code, Some(0));
    // A null pointer that is used is a finding.
    let used = launch("check", &file, "2", &["null", &x, &out], &["--json"]);
    assert_eq!(used.code, Some(5));
    assert_eq!(used.json()["findings"][0]["kind"], "out-of-bounds");
    let text = used.json()["findings"][0]["text"].to_string();
    assert!(text.contains("a null pointer, argument 0 (`x`)"), "{text}");
}

#[test]
fn an_array_without_a_file_is_not_kept() {
    let folder = Folder::new();
    let file = folder.write("sum.ptx", OPTIONAL);
    let x = format!("in:{}", folder.floats("x.npy", &[1.0, 2.0]));
    for verb in ["run", "check"] {
        let outcome = launch(verb, &file, "2", &[&x, "zeros:f32:2", "out:f32:2"], &[]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert!(!outcome.stdout.contains("wrote"), "{}", outcome.stdout);
        // What they hold at first is the same as with a file.
        let unwritten = launch(verb, &file, "2", &["uninit:f32:2", &x, "out:f32:2"], &[]);
        assert_eq!(unwritten.code, Some(5), "{}{}", unwritten.stdout, unwritten.stderr);
    }
    assert_eq!(folder.names(), ["sum.ptx", "x.npy"]);
}

#[test]
fn a_struct_goes_by_value_with_the_arrays_it_points_at() {
    let folder = Folder::new();
    let file = folder.write("apply.ptx", STRUCT);
    let from = folder.floats("x.npy", &[1.0, 2.0]);
    let data = format!("inout:{from}:{}", folder.path("y.npy"));
    let out = format!("out:u8:2:{}", folder.path("o.npy"));
    let spec = format!("struct:{{{data},f32:10,i8:-3,i32:9}}");
    for command in ["run", "check"] {
        let outcome = launch(command, &file, "2", &[&spec, &out], &["--json"]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.json()["arguments"][0]["bytes"], 24);
    }
    assert_eq!(folder.read("y.npy").1, floats(&[7.0, 17.0]));
    assert_eq!(folder.read("o.npy").1, [9, 9]);
    // A null in place of the array is read, and bytes may be given as they are.
    for spec in ["struct:{null,f32:10,i8:-3,i32:9}", "bytes:000000000000000000000000000000000900000000000000"]
    {
        let outcome = launch("check", &file, "2", &[spec, &out], &["--json"]);
        assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.json()["findings"][0]["kind"], "out-of-bounds");
    }
    let read_only = format!("struct:{{in:{from},f32:10,i8:-3,i32:9}}");
    let short = format!("struct:{{{data},f32:10,i8:-3}}");
    let number = "struct:{u64:0,f32:10,i8:-3,i32:9}";
    let doubles = folder.array("d.npy", "<f8", 2, &[0; 16]);
    let wrong = format!("struct:{{inout:{doubles}:{},f32:10,i8:-3,i32:9}}", folder.path("w.npy"));
    for (spec, told) in [
        (read_only.as_str(), "the array at byte 0 of the struct: the kernel writes it"),
        (&short, "a struct of 24 bytes, and 16 bytes were given"),
        (number, "uses bytes 0 to 7 of the struct as a pointer"),
        ("f32:1", "a struct of 24 bytes; give its fields, such as 'struct:{f32:1.5,u32:2}'"),
        ("bytes:0011", "a struct of 24 bytes"),
        (&data, "a struct of 24 bytes"),
        (&wrong, "its elements are float64, and the kernel accesses f32"),
    ] {
        let outcome = launch("run", &file, "2", &[spec, &out], &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{spec}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(told), "{told} is not in {}", outcome.stderr);
    }
    let pointer = launch("run", &file, "2", &[&spec, "struct:{f32:1,f32:2}"], &[]);
    assert_eq!(pointer.code, Some(3), "{}", pointer.stderr);
}

#[test]
fn an_array_with_the_wrong_elements_is_refused_or_converted() {
    let folder = Folder::new();
    let file = folder.write("sum.ptx", OPTIONAL);
    let doubles: Vec<u8> = [1.5_f64, -2.5].iter().flat_map(|number| number.to_le_bytes()).collect();
    let double = format!("in:{}", folder.array("d.npy", "<f8", 2, &doubles));
    let integer = format!("in:{}", folder.integers("i.npy", &[3, 4]));
    let raw = format!("in:{}", folder.array("raw.npy", "|u1", 8, &floats(&[1.5, -2.5])));
    let out = format!("out:f32:2:{}", folder.path("o.npy"));
    for command in ["run", "check"] {
        for (given, name) in [(&double, "float64"), (&integer, "int32")] {
            let outcome = launch(command, &file, "2", &[given, "null", &out], &[]);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{given}");
            let told = format!(
                "its elements are {name}, and the kernel accesses f32; if the parameter is a pointer to f32, convert it with a.astype(numpy.float32), or give --cast; if it is one to"
            );
            assert!(outcome.stderr.contains(&told), "{told} is not in {}", outcome.stderr);
        }
    }
    for (given, expected) in [(&double, [1.5, -2.5]), (&integer, [3.0, 4.0]), (&raw, [1.5, -2.5])] {
        let outcome = launch("run", &file, "2", &[given, "null", &out], &["--cast", "--json"]);
        assert_eq!(outcome.code, Some(0), "{given}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(folder.read("o.npy").1, floats(&expected), "{given}");
    }
    let wrong = format!("out:f64:2:{}", folder.path("w.npy"));
    let outcome = launch("run", &file, "2", &[&raw, "null", &wrong], &[]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("write out:f32:..."), "{}", outcome.stderr);
    let huge: Vec<u8> = [1.0_f64, 1e300].iter().flat_map(|number| number.to_le_bytes()).collect();
    let huge = format!("in:{}", folder.array("h.npy", "<f8", 2, &huge));
    let lost = launch("run", &file, "2", &[&huge, "null", &out], &["--cast"]);
    assert_eq!(lost.code, Some(3));
    assert!(lost.stderr.contains("element 1 is 1"), "{}", lost.stderr);
    assert!(!folder.names().contains(&"w.npy".to_owned()));
}

/// `add2(__half2* out, const __half2* in)`: adds a pair of halves to the first of `out`, as `atomicAdd(__half2*)` does.
const PACKED: &str = "
    .version 8.0
    .target sm_90
    .address_size 64
    .visible .entry add2(.param .u64 out, .param .u64 in) {
        .reg .b32 %r<3>;
        .reg .b64 %rd<5>;
        ld.param.u64 %rd1, [out];
        ld.param.u64 %rd2, [in];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd3, %r1, 4;
        add.s64 %rd4, %rd2, %rd3;
        ld.global.u32 %r2, [%rd4];
        red.global.add.noftz.f16x2 [%rd1], %r2;
        ret;
    }";

#[test]
fn a_kernel_on_packed_halves_takes_an_array_of_halves() {
    let folder = Folder::new();
    let file = folder.write("packed.ptx", PACKED);
    let halves = folder.array("x.npy", "<f2", 64, &[0x00, 0x3c].repeat(64));
    let (from, to) = (format!("in:{halves}"), format!("zeros:f16:2:{}", folder.path("y.npy")));
    let launch = |out: &str| {
        let words =
            ["run", &file, "--device", "sim", "--grid", "1", "--block", "32", "--arg", out, "--arg", &from];
        run(without_driver(&words))
    };
    let outcome = launch(&to);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(folder.read("y.npy").1, [0x00, 0x50, 0x00, 0x50], "32 ones in each half");
    let refused = launch("zeros:f32:2");
    assert_eq!(refused.code, Some(3), "{}", refused.stdout);
    let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("its elements are float32, and the kernel takes f16; write zeros:f16:"), "{said}");
}

#[test]
fn an_array_that_is_changed_need_not_be_kept() {
    let folder = Folder::new();
    let file = folder.write("packed.ptx", PACKED);
    let array = folder.array("x.npy", "<f2", 64, &[0x00, 0x3c].repeat(64));
    let before = std::fs::read(&array).unwrap();
    let specs = [format!("inout:{array}"), format!("in:{array}")];
    for verb in ["run", "check"] {
        let words = [verb, &file, "--device", "sim", "--grid", "1", "--block", "1", "--arg", &specs[0]];
        let outcome = run(without_driver(&[&words[..], &["--arg", &specs[1]]].concat()));
        assert_eq!(outcome.code, Some(0), "{verb}: {}{}", outcome.stdout, outcome.stderr);
    }
    assert_eq!(std::fs::read(&array).unwrap(), before, "the file is as it was");
    assert_eq!(folder.names(), ["packed.ptx", "x.npy"]);
}

#[test]
fn elements_that_cannot_be_checked_are_a_warning() {
    // Through a pointer that was in memory the kernel may write anything.
    let text = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry chase(.param .u64 list) {
            .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [list];
            ld.global.u64 %rd2, [%rd1];
            st.global.u32 [%rd2], 1;
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("chase.ptx", text);
    let list = format!("inout:{}:{}", folder.array("l.npy", "<f8", 2, &[0; 16]), folder.path("m.npy"));
    let outcome = launch("run", &file, "1", &[&list], &["--json"]);
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let warnings = outcome.json()["warnings"].clone();
    let told = warnings[0].as_str().unwrap();
    assert!(told.contains("argument 0") && told.contains("float64 is not checked"), "{told}");
    assert!(launch("run", &file, "1", &[&list], &[]).stdout.contains("\nwarning: argument 0"));
}

#[test]
fn the_types_of_cuda_c_parameters_decide() {
    if skip::without_nvrtc("the_types_of_cuda_c_parameters_decide") {
        return;
    }
    let folder = Folder::new();
    let text = "struct Scale { float factor; char shift; int n; };
        __global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
        __global__ void scale(Scale s, float* y) { if (threadIdx.x < s.n) y[threadIdx.x] = y[threadIdx.x] * s.factor + s.shift; }";
    let file = folder.write("k.cu", text);
    let integers = format!("in:{}", folder.integers("i.npy", &[3, 4]));
    let out = format!("out:f32:2:{}", folder.path("o.npy"));
    let y = format!("inout:{}:{}", folder.floats("y.npy", &[1.0, 2.0]), folder.path("o.npy"));
    let cached = |words: &[&str]| {
        let mut command = without_driver(words);
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        run(command)
    };
    let shape = ["run", &file, "--grid", "1", "--block", "2", "--device", "sim"];
    let copied = cached(&[&shape[..], &["--kernel", "copy", "--arg", &integers, "--arg", &out]].concat());
    assert_eq!(copied.code, Some(3), "{}", copied.stdout);
    assert!(copied.stderr.contains("its elements are int32, and the kernel takes f32"), "{}", copied.stderr);
    let words = ["--kernel", "scale", "--arg", "struct:{f32:2,i8:3,i32:2}", "--arg", &y, "--json"];
    let scaled = cached(&[&shape[..], &words].concat());
    assert_eq!(scaled.code, Some(0), "{}{}", scaled.stdout, scaled.stderr);
    assert_eq!(scaled.json()["findings"], json!([]));
    assert_eq!(folder.read("o.npy").1, floats(&[5.0, 7.0]));
}

#[test]
fn elements_that_an_extern_c_kernel_takes_for_others_are_given_as_they_are() {
    if skip::without_nvrtc("elements_that_an_extern_c_kernel_takes_for_others_are_given_as_they_are") {
        return;
    }
    let folder = Folder::new();
    let text = "extern \"C\" __global__ void words(const double* x, double* y) { ((uint4*)y)[threadIdx.x] = ((const uint4*)x)[threadIdx.x]; }
        extern \"C\" __global__ void bits(const int* x, int* y) { y[threadIdx.x] = __float_as_int(__int_as_float(x[threadIdx.x]) * 2.0f); }
        typedef double real;
        extern \"C\" __global__ void alias(const real* x, real* y) { ((uint4*)y)[threadIdx.x] = ((const uint4*)x)[threadIdx.x]; }
        extern \"C\" __global__ void floats(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }";
    let file = folder.write("pun.cu", text);
    let doubles: Vec<u8> = [1.5_f64, -2.5, 3.0, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let double = format!("in:{}", folder.array("d.npy", "<f8", 4, &doubles));
    let integer = format!("in:{}", folder.integers("i.npy", &[0x3f80_0000, 0x4000_0000]));
    let launch = |verb: &str, kernel: &str, arguments: [&str; 2], more: &[&str]| {
        let words = [verb, &file, "--kernel", kernel, "--grid", "1", "--block", "2", "--device", "sim"];
        let arguments = ["--arg", arguments[0], "--arg", arguments[1]];
        let mut command = without_driver(&[&words[..], &arguments, more].concat());
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        run(command)
    };
    let (wide, narrow) =
        (format!("out:f64:4:{}", folder.path("o.npy")), format!("out:i32:2:{}", folder.path("o.npy")));
    for verb in ["check", "run"] {
        for (kernel, from, to) in
            [("words", &double, &wide), ("alias", &double, &wide), ("bits", &integer, &narrow)]
        {
            // The elements are those of the declaration, so --cast has nothing to convert.
            for more in [&[][..], &["--cast"]] {
                let outcome = launch(verb, kernel, [from, to], more);
                assert_eq!(outcome.code, Some(0), "{kernel}: {}{}", outcome.stdout, outcome.stderr);
                assert!(!outcome.stdout.contains("warning"), "{kernel}: {}", outcome.stdout);
            }
        }
    }
    assert_eq!(folder.read("o.npy").1, [0x4000_0000_i32, 0x4080_0000].map(i32::to_le_bytes).concat());
    let refused = launch("check", "floats", [&double, "out:f32:2"], &[]);
    assert_eq!(refused.code, Some(3), "{}", refused.stdout);
    let told = "its elements are float64, and the kernel takes f32; convert it with a.astype(numpy.float32), or give --cast";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
}
