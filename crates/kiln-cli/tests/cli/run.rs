//! `kiln run`: arrays in, arrays out, and everything that is refused on the way.

use serde_json::json;

use crate::folder::Folder;
use crate::kernels::{CUDA_C, STORE_BYTE, faulty, right, tensor};
use crate::outcome::{Outcome, run, without_driver};
use crate::skip;

/// `kiln run` on the simulated device with more words.
fn launch(file: &str, kernel: &str, shape: [&str; 2], arguments: &[&str], more: &[&str]) -> Outcome {
    let mut words = vec!["run", file, "--kernel", kernel, "--grid", shape[0], "--block", shape[1]];
    words.extend(arguments.iter().flat_map(|argument| ["--arg", *argument]));
    words.extend(["--device", "sim"]);
    words.extend(more);
    run(without_driver(&words))
}

/// saxpy over four elements, with other arguments.
fn saxpy(arguments: &[&str]) -> Outcome {
    launch(&right("elementwise"), "saxpy", ["1", "32"], arguments, &[])
}

#[test]
fn arrays_go_through_a_kernel() {
    let folder = Folder::new();
    let x: Vec<f32> = (0..1000).map(|i| i as f32 * 0.5).collect();
    let y: Vec<f32> = (0..1000).map(|i| 7.0 - i as f32).collect();
    let (from, to) = (folder.floats("x.npy", &x), folder.path("z.npy"));
    let inout = format!("inout:{}:{to}", folder.floats("y.npy", &y));
    let arguments = ["f32:2.5", &format!("in:{from}"), &inout, "i32:1000"];
    let outcome = launch(&right("elementwise"), "saxpy", ["4", "256"], &arguments, &["--json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let (header, data) = folder.read("z.npy");
    assert_eq!(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }");
    let expected: Vec<u8> =
        x.iter().zip(&y).flat_map(|(x, y)| 2.5_f32.mul_add(*x, *y).to_le_bytes()).collect();
    assert_eq!(data, expected);
    assert_eq!(folder.names(), ["x.npy", "y.npy", "z.npy"], "nothing is left over");
    let report = outcome.json();
    assert_eq!(
        (&report["kernel"], &report["exit"], &report["seed"]),
        (&json!("saxpy"), &json!(0), &json!(0))
    );
    assert_eq!(report["findings"], json!([]));
    assert_eq!(report["written"], json!([{"file": to, "element": "f32", "elements": 1000}]));
    let effects: Vec<_> =
        report["arguments"].as_array().unwrap().iter().map(|each| &each["effect"]).collect();
    assert_eq!(effects, [&json!(null), &json!("reads"), &json!("both"), &json!(null)]);
    let text = launch(&right("elementwise"), "saxpy", ["4", "256"], &arguments, &[]);
    assert_eq!(text.code, Some(0));
    assert!(text.stdout.contains("wrote") && text.stdout.contains("1000 x f32"), "{}", text.stdout);
}

#[test]
fn every_element_type_and_shape_comes_back_as_it_went() {
    let folder = Folder::new();
    let bytes_kernel = folder.write("store.ptx", STORE_BYTE);
    let to = folder.path("to.npy");
    for (descr, bytes) in [
        ("|b1", 1),
        ("|i1", 1),
        ("|u1", 1),
        ("<i2", 2),
        ("<u2", 2),
        ("<f2", 2),
        ("<i4", 4),
        ("<u4", 4),
        ("<f4", 4),
        ("<i8", 8),
        ("<u8", 8),
        ("<f8", 8),
        ("<c8", 8),
        ("<c16", 16),
    ] {
        for (shape, len) in [("(64,)", 64), ("(4, 2, 8)", 64), ("()", 1)] {
            let mut data: Vec<u8> = (0..len * bytes).map(|at| at as u8 | 1).collect();
            let from = folder.write("from.npy", crate::folder::npy(descr, "False", shape, &data));
            let spec = format!("inout:{from}:{to}");
            let outcome = launch(&bytes_kernel, "store", ["1", "1"], &[&spec, "i32:0"], &[]);
            assert_eq!(outcome.code, Some(0), "{descr} {shape}: {}{}", outcome.stdout, outcome.stderr);
            let (header, back) = folder.read("to.npy");
            assert_eq!(header, format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"));
            data[0] = 7;
            assert_eq!(back, data, "{descr} {shape}");
        }
    }
}

#[test]
fn outputs_begin_as_zeros_and_types_have_two_names() {
    let folder = Folder::new();
    let bytes_kernel = folder.write("store.ptx", STORE_BYTE);
    for (name, descr, bytes) in [
        ("f16", "<f2", 2),
        ("float16", "<f2", 2),
        ("bf16", "<u2", 2),
        ("uint64", "<u8", 8),
        ("i32", "<i4", 4),
    ] {
        let spec = format!("out:{name}:16:{}", folder.path("o.npy"));
        let outcome = launch(&bytes_kernel, "store", ["1", "1"], &[&spec, "int32:4"], &[]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        let (header, data) = folder.read("o.npy");
        assert!(header.contains(descr), "{header}");
        let mut expected = vec![0; 16 * bytes];
        expected[4] = 7;
        assert_eq!(data, expected);
    }
}

#[test]
fn a_file_may_be_replaced_by_what_became_of_it() {
    let folder = Folder::new();
    let path = folder.integers("a.npy", &[1, 2, 3, 4]);
    let spec = format!("inout:{path}:{path}");
    assert_eq!(launch(&faulty(), "store_at", ["1", "1"], &[&spec, "i32:8"], &[]).code, Some(0));
    assert_eq!(folder.read("a.npy").1, [1, 2, 7, 4].map(i32::to_le_bytes).concat());
    assert_eq!(folder.names(), ["a.npy"]);
}

#[test]
fn what_does_not_fit_the_signature_is_refused_with_3() {
    let folder = Folder::new();
    let x = format!("in:{}", folder.floats("x.npy", &[1.0; 4]));
    let y = format!("inout:{}:{}", folder.floats("y.npy", &[1.0; 4]), folder.path("z.npy"));
    let read_y = format!("in:{}", folder.path("y.npy"));
    let write_x = format!("inout:{}:{}", folder.path("x.npy"), folder.path("z.npy"));
    let out_x = format!("out:f32:4:{}", folder.path("z.npy"));
    assert_eq!(saxpy(&["f32:2", &x, &y, "i32:4"]).code, Some(0), "what fits is run");
    std::fs::remove_file(folder.path("z.npy")).unwrap();
    for (arguments, word) in [
        (&["f32:2", &x, &y][..], "takes 4 arguments, and 3 were given"),
        (&["f32:2", &x, &y, "i32:4", "i32:4"], "takes 4 arguments, and 5 were given"),
        (&["f64:2", &x, &y, "i32:4"], "has 4 bytes, and the value 8"),
        (&["i32:2", &x, &y, "i32:4"], "is a floating-point number (.f32)"),
        (&["f32:2", &x, &y, "f32:4"], "is an integer"),
        (&["f32:2", "u64:4096", &y, "i32:4"], "is a pointer"),
        (&[&x, &x, &y, "i32:4"], "is a value of 4 bytes"),
        (&["f32:2", &x, &read_y, "i32:4"], "the kernel writes it; declare it with inout:"),
        (&["f32:2", &write_x, &read_y, "i32:4"], "the kernel only reads it; declare it with in:"),
        (&["f32:2", &out_x, &read_y, "i32:4"], "the kernel only reads it"),
    ] {
        let outcome = saxpy(arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{arguments:?}");
        assert!(outcome.stderr.contains(word), "{word} is not in {}", outcome.stderr);
    }
    assert_eq!(folder.names(), ["x.npy", "y.npy"]);
}

#[test]
fn a_launch_no_device_can_make_is_refused_with_3() {
    let folder = Folder::new();
    let out = format!("out:i32:64:{}", folder.path("o.npy"));
    let arguments = [&out, "i32:64", "i32:1"];
    for (shape, more, word) in [
        (["0", "32"], &[][..], "grid"),
        (["1", "1025"], &[], "block"),
        (["1", "64,64"], &[], "block"),
        (["1", "32"], &["--shared", "1000000"], "shared memory"),
    ] {
        let outcome = launch(&faulty(), "fill", shape, &arguments, more);
        assert_eq!(outcome.code, Some(3), "{shape:?} {more:?}: {}", outcome.stdout);
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
    let missing = launch(&faulty(), "file", ["1", "32"], &arguments, &[]);
    assert_eq!(missing.code, Some(3));
    assert!(missing.stderr.contains("`file`") && missing.stderr.contains("fill"), "{}", missing.stderr);
    let huge = format!("out:u8:1000000000000000:{}", folder.path("o.npy"));
    assert_eq!(launch(&faulty(), "fill", ["1", "32"], &[&huge, "i32:1", "i32:1"], &[]).code, Some(2));
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_3_and_the_reason() {
    let folder = Folder::new();
    let out = format!("out:i32:64:{}", folder.path("o.npy"));
    let words = ["run", &faulty(), "--kernel", "fill", "--grid", "1", "--block", "32", "--arg", &out];
    let words = [&words[..], &["--arg", "i32:64", "--arg", "i32:1", "--device", "cuda"]].concat();
    let outcome = run(without_driver(&words));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    assert!(outcome.stderr.contains("KILN_LIBCUDA names"), "{}", outcome.stderr);
    assert_eq!(folder.names(), [] as [&str; 0]);
}

#[test]
fn wrong_words_and_files_end_with_2() {
    let folder = Folder::new();
    let good = folder.integers("good.npy", &[0; 64]);
    let out = format!("out:i32:64:{}", folder.path("o.npy"));
    let twice = format!("inout:{good}:{}", folder.path("o.npy"));
    for (arguments, word) in [
        (["in", "i32:64", "i32:1"], "no colon"),
        (["out:i33:64:o.npy", "i32:64", "i32:1"], "element type"),
        (["in:/nonexistent/a.npy", "i32:64", "i32:1"], "/nonexistent/a.npy"),
        (["out:i32:64:/nonexistent/o.npy", "i32:64", "i32:1"], "folder does not exist"),
        (["out:i32:64:/", "i32:64", "i32:1"], "not the name of a file"),
        ([&out, &twice, "i32:1"], "two arguments"),
        ([&out, "i32:4294967296", "i32:1"], "not a value of type i32"),
    ] {
        let outcome = launch(&faulty(), "fill", ["1", "32"], &arguments, &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(outcome.stderr.contains(word), "{word} is not in {}", outcome.stderr);
    }
    for words in [
        &["run", "k.ptx"][..],
        &["run", "--kernel", "k", "--grid", "1", "--block", "1"],
        &["run", "k.ptx", "--kernel", "k", "--grid", "1,2,3,4", "--block", "1"],
        &["run", "k.ptx", "--kernel", "k", "--grid", "1", "--block", "x"],
        &["run", "k.txt", "--kernel", "k", "--grid", "1", "--block", "1"],
        &["run", "/nonexistent/k.ptx", "--kernel", "k", "--grid", "1", "--block", "1"],
        &["run", "k.ptx", "--kernel", "k", "--grid", "1", "--block", "1", "--step-limit", "0"],
    ] {
        assert_eq!(run(without_driver(words)).code, Some(2), "{words:?}");
    }
    let binary = folder.write("k.ptx", [0xff, 0xfe]);
    assert_eq!(launch(&binary, "k", ["1", "1"], &[], &[]).code, Some(2));
}

#[test]
fn a_kernel_without_name_or_shape_is_told_which_flag_is_missing() {
    for (words, flag) in [
        (&[][..], "--grid X[,Y[,Z]] and --block X[,Y[,Z]]"),
        (&["--kernel", "saxpy", "--grid", "1"], "--block"),
        (&["--grid", "1", "--block", "1"], "choose one with --kernel NAME: "),
    ] {
        for command in ["run", "check"] {
            let outcome =
                run(without_driver(&[&[command, &right("elementwise"), "--device", "sim"], words].concat()));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{words:?}");
            assert!(outcome.stderr.contains(flag), "{flag} is not in {}", outcome.stderr);
        }
    }
}

#[test]
fn ptx_with_mistakes_ends_with_4_and_its_place() {
    let folder = Folder::new();
    let file =
        folder.write("bad.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( { ret; }");
    let outcome = launch(&file, "k", ["1", "1"], &[], &[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(4), ""));
    assert!(outcome.stderr.contains("bad.ptx") && outcome.stderr.contains("4:"), "{}", outcome.stderr);
}

#[test]
fn a_fault_ends_with_5_and_writes_nothing() {
    let folder = Folder::new();
    let out = format!("out:i32:40:{}", folder.path("o.npy"));
    let outcome = launch(&faulty(), "fill", ["2", "32"], &[&out, "i32:40", "i32:0"], &["--json"]);
    assert_eq!(outcome.code, Some(5));
    let report = outcome.json();
    assert_eq!((&report["exit"], &report["written"]), (&json!(5), &json!([])));
    assert!(report["fault"].as_str().unwrap().contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{report}");
    assert_eq!(report["findings"][0]["kind"], "out-of-bounds");
    assert_eq!(folder.names(), [] as [&str; 0]);
    let text = launch(&faulty(), "fill", ["2", "32"], &[&out, "i32:40", "i32:0"], &[]);
    assert!(text.stdout.contains("no file was written"), "{}", text.stdout);
}

#[test]
fn an_instruction_only_a_gpu_has_is_refused_by_name() {
    let folder = Folder::new();
    let inspected = run(without_driver(&["inspect", &tensor(), "--json"])).json();
    let entry = &inspected["entries"][0];
    let specs: Vec<String> = (0..entry["parameters"].as_array().unwrap().len())
        .map(|at| match entry["parameters"][at]["access"].as_str() {
            Some("reads") => format!("in:{}", folder.array("a.npy", "|u1", 4096, &[0; 4096])),
            Some(_) => format!("out:u8:4096:{}", folder.path(&format!("{at}.npy"))),
            None => format!("u{}:1", entry["parameters"][at]["bytes"].as_u64().unwrap() * 8),
        })
        .collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let outcome = launch(&tensor(), entry["name"].as_str().unwrap(), ["1", "32"], &specs, &["--json"]);
    assert_eq!(outcome.code, Some(3), "{}{}", outcome.stdout, outcome.stderr);
    let message = outcome.json()["error"]["message"].as_str().unwrap().to_owned();
    let instruction = entry["unsupported"][0]["instruction"].as_str().unwrap();
    let place = format!("PTX line {}", entry["unsupported"][0]["ptx_line"]);
    assert!(message.contains(instruction) && message.contains(&place), "{message}");
    let words = ["check", &tensor(), "--grid", "1", "--block", "32", "--json"];
    let arguments: Vec<&str> = specs.iter().flat_map(|spec| ["--arg", *spec]).collect();
    let kernel = ["--kernel", entry["name"].as_str().unwrap()];
    let checked = run(without_driver(&[&words[..], &arguments, &kernel].concat()));
    let report = checked.json();
    let is_unsupported = |finding: &serde_json::Value| finding["kind"] == "unsupported";
    assert!(!report["findings"].as_array().unwrap().iter().any(is_unsupported), "{report}");
    assert!(report["refused"].as_array().unwrap().iter().all(is_unsupported), "{report}");
    assert!(report["refused"][0]["text"].as_str().unwrap().contains(instruction), "{report}");
}

#[test]
fn what_a_kernel_prints_is_shown() {
    let outcome = launch(&right("output"), "print_some", ["1", "4"], &["i32:3"], &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("0%\nprint_some on "), "{}", outcome.stdout);
    let json = launch(&right("output"), "print_some", ["1", "4"], &["i32:3"], &["--json"]).json();
    assert_eq!(json["printed"], "0%\n");
}

#[test]
fn cuda_c_is_compiled_with_its_headers_names_and_templates() {
    if skip::without_nvrtc("cuda_c_is_compiled_with_its_headers_names_and_templates") {
        return;
    }
    let folder = Folder::new();
    folder.write("factor.h", "#define FACTOR 2.0f\n");
    let file = folder.write("kernels.cu", CUDA_C);
    let out = folder.path("o.npy");
    let cache = folder.path("cache");
    let launch = |kernel: &str, block: &str, arguments: &[&str]| {
        let mut words =
            vec!["run", &file, "--kernel", kernel, "--grid", "1", "--block", block, "--device", "sim"];
        words.extend(arguments.iter().flat_map(|argument| ["--arg", *argument]));
        let mut command = without_driver(&words);
        command.env("XDG_CACHE_HOME", &cache);
        run(command)
    };
    let x = format!("in:{}", folder.floats("x.npy", &[1.0, 2.0, 3.0]));
    let y = format!("inout:{}:{out}", folder.floats("y.npy", &[10.0, 20.0, 30.0]));
    let floats = |list: &[f32]| list.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let done = launch("saxpy", "32", &["f32:0.5", &x, &y, "u32:3"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(folder.read("o.npy").1, floats(&[11.0, 22.0, 33.0]));
    assert_eq!(launch("lib::twice", "3", &[&y]).code, Some(0));
    assert_eq!(folder.read("o.npy").1, floats(&[20.0, 40.0, 60.0]));
    let fill = format!("out:f64:8:{out}");
    assert_eq!(launch("fill<double>", "8", &[&fill, "f64:1.25"]).code, Some(0));
    assert_eq!(folder.read("o.npy").1, [1.25_f64; 8].map(f64::to_le_bytes).concat());
    let printed = launch("greet", "4", &["i32:2"]);
    assert!(printed.stdout.starts_with("thread 0 of 2\nthread 1 of 2\ngreet on "), "{}", printed.stdout);
    let ambiguous = launch("same", "8", &[&format!("out:i32:8:{out}")]);
    assert_eq!(ambiguous.code, Some(3));
    assert!(ambiguous.stderr.contains("'same(int*)' or 'same(float*)'"), "{}", ambiguous.stderr);
    for name in ["_Z4samePi", "same(int*)"] {
        assert_eq!(launch(name, "8", &[&format!("out:i32:8:{out}")]).code, Some(0), "{name}");
    }
    let wrong = launch("fill<nonsense>", "8", &[&fill, "f64:1.25"]);
    assert_eq!(wrong.code, Some(4), "{}", wrong.stderr);
}

#[test]
fn cuda_c_with_mistakes_ends_with_4_and_its_line() {
    if skip::without_nvrtc("cuda_c_with_mistakes_ends_with_4_and_its_line") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("bad.cu", "__global__ void k() {\n    int x = y;\n}\n");
    let outcome = launch(&file, "k", ["1", "1"], &[], &[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(4), ""));
    assert!(outcome.stderr.contains("bad.cu") && outcome.stderr.contains('2'), "{}", outcome.stderr);
}

#[test]
fn cuda_c_without_its_compiler_is_refused_with_3_and_how_to_get_it() {
    let folder = Folder::new();
    let file = folder.write("k.cu", "__global__ void k() {}");
    for words in [
        &["inspect", &file][..],
        &["run", &file, "--kernel", "k", "--grid", "1", "--block", "1", "--device", "sim"],
    ] {
        let mut command = without_driver(words);
        command.env("KILN_NVRTC", "/nonexistent/libnvrtc.so");
        let outcome = run(command);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("pip install nvidia-cuda-nvrtc"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(": KILN_NVRTC is set to a wrong place"), "{}", outcome.stderr);
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_replaced_and_a_file_keeps_its_name_and_permissions() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let folder = Folder::new();
    let file = folder.write("fill.ptx", FILL);
    let run = |out: &str| {
        run(without_driver(&["run", &file, "--grid", "1", "--block", "4", "--device", "sim", "--arg", out]))
    };
    // A pipe stands for a device such as /dev/null, which would be gone for every program of the machine.
    let pipe = folder.path("pipe.npy");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = run(&format!("out:u32:4:{pipe}"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("not a regular file"), "{}", refused.stderr);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());

    let (secret, link) = (folder.write("secret.npy", ""), folder.path("link.npy"));
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&secret, &link).unwrap();
    let outcome = run(&format!("out:u32:4:{link}"));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::metadata(&secret).unwrap().len() > 16);
}

/// `fill(out)`: each thread writes its number.
#[cfg(unix)]
const FILL: &str = "
    .version 7.0
    .target sm_70
    .address_size 64
    .visible .entry fill(.param .u64 out) {
        .reg .b32 %r<2>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
        st.global.u32 [%rd3], %r1;
        ret;
    }";

#[test]
fn statistics_count_what_was_executed() {
    let folder = Folder::new();
    let numbers: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let (x, y) = (folder.floats("x.npy", &numbers), folder.floats("y.npy", &numbers));
    let arguments = ["f32:2.5", &format!("in:{x}"), &format!("inout:{y}"), "i32:1000"];
    let kernel = |more: &[&str]| launch(&right("elementwise"), "saxpy", ["4", "256"], &arguments, more);
    let outcome = kernel(&["--stats", "--json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let statistics = outcome.json()["statistics"][0].clone();
    // Of 1024 threads 1000 load two words and store one; the words of a warp are four sectors, those of the last 8 threads one.
    assert_eq!(statistics["kernel"], json!("saxpy"));
    assert_eq!(statistics["bytes"]["global_loaded"], json!(8000));
    assert_eq!(statistics["bytes"]["global_stored"], json!(4000));
    assert_eq!((&statistics["global_requests"], &statistics["barriers"]), (&json!(96), &json!(0)));
    assert_eq!((&statistics["global_sectors"], &statistics["ideal_sectors"]), (&json!(375), &json!(375)));
    assert_eq!(statistics["shared_requests"], json!(0));
    let kinds = statistics["kinds"].as_array().unwrap();
    let f32s = kinds.iter().find(|kind| kind["kind"] == "f32").unwrap();
    assert_eq!((&f32s["thread_instructions"], &f32s["warp_instructions"]), (&json!(1000), &json!(32)));
    let text = kernel(&["--stats"]).stdout;
    for words in
        ["executed by saxpy", "96 requests, 3.9 sectors of 32 bytes for each, 3.9 would hold", "global"]
    {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
    }
    assert_eq!(kernel(&["--json"]).json().get("statistics"), None);
}

/// Device code as it is written for nvcc, with the headers of C and C++.
const WITH_HEADERS: &str = r#"#include <assert.h>
#include <cstdint>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stddef.h>
#include <type_traits>

template <typename T>
__device__ typename std::enable_if<std::is_integral<T>::value, T>::type largest() { return T(INT_MAX); }

extern "C" __global__ void bounds(uint64_t* out, int32_t n) {
    size_t i = threadIdx.x;
    assert(n == 4);
    uint64_t all[] = {UINT64_MAX, (uint64_t)largest<int64_t>(), (uint64_t)(M_PI * 1000), (uint64_t)(FLT_EPSILON == ldexpf(1, -23))};
    if (i == 0) printf("%d values\n", n);
    out[i] = all[i];
}
"#;

#[test]
fn cuda_c_includes_headers_of_c_and_cpp() {
    if skip::without_nvrtc("cuda_c_includes_headers_of_c_and_cpp") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("bounds.cu", WITH_HEADERS);
    let out = format!("out:u64:4:{}", folder.path("o.npy"));
    for command in ["run", "check"] {
        let words = [
            command, &file, "--grid", "1", "--block", "4", "--device", "sim", "--arg", &out, "--arg", "i32:4",
        ];
        let mut command = without_driver(&words);
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        let outcome = run(command);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.contains("4 values"), "{}", outcome.stdout);
        let expected = [u64::MAX, 0x7fff_ffff, 3141, 1].map(u64::to_le_bytes).concat();
        assert_eq!(folder.read("o.npy").1, expected);
    }
}
