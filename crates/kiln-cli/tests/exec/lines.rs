//! The program's own lines in what is found: of a program in C with debug information, and of Python.

use std::path::Path;
use std::process::Command;

use super::{compiled, folder, kiln, text};

/// The line of a source that has a text, counted from 1.
fn line_of(source: &str, words: &str) -> usize {
    source.lines().position(|line| line.contains(words)).unwrap() + 1
}

#[test]
fn a_finding_names_the_lines_that_queued_the_work() {
    let Some(program) = compiled("mistakes") else { return };
    let source = include_str!("mistakes.c");
    let output = kiln(&[], &program, &["race"]);
    let told = text(&output.stderr);
    let first = line_of(source, "strcmp(which, \"race\")") + 1;
    for line in [first, first + 1] {
        let place = format!("mistakes.c:{line} in main");
        assert!(told.contains(&place), "{place}: {told}");
    }
    assert!(told.contains("was queued at "), "{told}");
    // The report for programs has them, too.
    let output = kiln(&["--json"], &program, &["bounds"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let place = report["findings"][0]["queued_at"][0].as_str().unwrap_or_default();
    let line = line_of(source, "strcmp(which, \"bounds\")") + 1;
    assert!(place.contains(&format!("mistakes.c:{line} in main")), "{report}");
}

/// Two kernels on two streams with nothing between them: with ctypes, that gives the interpreter's lock away and that keeps it.
const RACE: &str = r#"
import ctypes, sys

cuda = (ctypes.CDLL if sys.argv[1] == "free" else ctypes.PyDLL)("libcuda.so.1")

def ok(code):
    if code != 0:
        raise RuntimeError(code)

def add(function, p, stream):
    n = ctypes.c_uint(64)
    address = ctypes.c_uint64(p.value)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(n))
    ok(cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, values, None))  # the launch

def main():
    context, module, function, p = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    code = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n)
{
.reg .b32 %r<4>;
.reg .b64 %d<4>;
ld.param.u64 %d1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %d2, %r1, 4;
add.s64 %d3, %d1, %d2;
ld.global.u32 %r2, [%d3];
add.s32 %r3, %r2, 1;
st.global.u32 [%d3], %r3;
ret;
}
"""
    ok(cuda.cuModuleLoadData(ctypes.byref(module), code))
    ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"add"))
    ok(cuda.cuMemAlloc_v2(ctypes.byref(p), 256))
    ok(cuda.cuMemsetD32_v2(p, 0, 64))
    streams = [ctypes.c_void_p(), ctypes.c_void_p()]
    for stream in streams:
        ok(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    ok(cuda.cuCtxSynchronize())
    add(function, p, streams[0])  # the first
    add(function, p, streams[1])  # the second
    ok(cuda.cuCtxSynchronize())
    print("done")

main()
"#;

#[test]
fn a_finding_names_the_lines_of_python() {
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: there is no python3");
    }
    let script = folder().join("race.py");
    std::fs::write(&script, RACE).unwrap();
    for lock in ["free", "kept"] {
        let output = kiln(&[], Path::new("python3"), &[script.to_str().unwrap(), lock]);
        let told = text(&output.stderr);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(5), "done\n".into()),
            "{lock}: {told}"
        );
        for (words, function) in [("# the launch", "add"), ("# the first", "main"), ("# the second", "main")]
        {
            let place = format!("race.py:{} in {function}", line_of(RACE, words));
            assert!(told.contains(&place), "{lock}, {place}: {told}");
        }
    }
}

#[test]
fn threads_of_python_that_launch_at_once_do_not_wait_for_each_other_for_ever() {
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: there is no python3");
    }
    let script = folder().join("threads.py");
    let threads = RACE.replace(
        "    add(function, p, streams[0])  # the first\n    add(function, p, streams[1])  # the second\n",
        "    import threading\n    def run():\n        ok(cuda.cuCtxSetCurrent(context))\n        for _ in range(200):\n            add(function, p, streams[0])\n\
         \x20   threads = [threading.Thread(target=run) for _ in range(4)]\n    [thread.start() for thread in threads]\n    [thread.join() for thread in threads]\n",
    );
    std::fs::write(&script, threads).unwrap();
    for lock in ["free", "kept"] {
        let output = kiln(&[], Path::new("timeout"), &["100", "python3", script.to_str().unwrap(), lock]);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(0), "done\n".into()),
            "{lock}: {}",
            text(&output.stderr)
        );
    }
}

/// How many stacks the library walked in a run.
fn walks(program: &Path, words: &[&str]) -> u64 {
    let output = kiln(&["--stats", "--json"], program, words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    report["statistics"][0]["stack_walks"].as_u64().unwrap_or_else(|| panic!("{report}"))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_that_was_walked_is_not_walked_again() {
    let Some(program) = compiled("walks") else { return };
    assert_eq!(walks(&program, &["one", "1000"]), 1, "a thousand launches from one line");
    assert_eq!(walks(&program, &["forty", "25"]), 40, "a thousand from forty lines");
    assert_eq!(walks(&program, &["callers", "25"]), 40, "a thousand from one line that forty lines call");
    assert_eq!(walks(&program, &["orders", "1000"]), 5, "from five lines in no order");
    assert_eq!(walks(&program, &["threads", "1000"]), 4, "from one line in four threads");
    let output = kiln(&["--stats"], &program, &["one", "10"]);
    let told = text(&output.stderr);
    assert!(
        told.contains("walked 1 stack for lines of the program; made 0 blocks of pinned memory"),
        "{told}"
    );
}
