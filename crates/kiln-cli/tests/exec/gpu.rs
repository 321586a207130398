//! Programs on a GPU, checked: here over the stand-in for the driver's library that kiln-cuda's tests have.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::{compiled, folder, library, text};

/// The library that stands in for the driver's; nothing where there is no C compiler.
fn stand_in() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = LIBRARY.get_or_init(|| {
        Command::new("cc").arg("--version").output().ok()?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-cuda/tests/on_fake/libcuda");
        let place = folder().join("stand-in");
        std::fs::create_dir_all(&place).unwrap();
        let file = place.join("libcuda.so.1");
        // What it calls of itself stays in it, as those of the driver's library do: the program's loader has others of these names.
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-Wl,-Bsymbolic", "-o"])
            .arg(&file)
            .args(
                ["start", "memory", "streams", "code", "graphs"]
                    .map(|name| sources.join(format!("{name}.c"))),
            )
            .arg("-lm")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(file)
    });
    made.as_deref()
}

/// The command that runs a case of the program over the stand-in.
fn command(flags: &[&str], case: &str) -> Option<Command> {
    command_of(flags, &compiled("gpu")?, &[case])
}

/// The same of any program.
pub(super) fn command_of(flags: &[&str], program: &Path, words: &[&str]) -> Option<Command> {
    let stand_in = stand_in()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.args(["exec", "--device", "cuda", "--library"]).arg(library()).args(flags);
    command.arg("--").arg(program).args(words).env("KILN_LIBCUDA", stand_in);
    Some(command)
}

fn run(flags: &[&str], case: &str) -> Option<Output> {
    Some(command(flags, case)?.output().unwrap())
}

/// Runs a case of which the report has the words.
fn tells(flags: &[&str], case: &str, code: i32, words: &[&str]) {
    let Some(output) = run(flags, case) else { return };
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{case}: {told}");
    assert!(words.iter().all(|words| told.contains(words)), "{case}: {told}");
}

#[test]
fn a_program_without_mistakes_runs_on_a_gpu_as_it_is() {
    for (flags, cases) in [
        ([].as_slice(), ["right", "gone", "functions", "registered"].as_slice()),
        (&["--leaks", "--strict"], &["right", "gone", "functions", "registered"]),
        (&["--isolate"], &["right", "gone"]),
    ] {
        for case in cases {
            let Some(output) = run(flags, case) else { return };
            // Those that are called inside of a function of the host on purpose.
            let told = super::said(&output);
            let told: Vec<&str> = told.lines().filter(|line| !line.contains("cuLaunchHostFunc or")).collect();
            assert_eq!((output.status.code(), told.as_slice()), (Some(0), [].as_slice()), "{flags:?} {case}");
        }
    }
}

#[test]
fn memory_that_the_host_has_is_filled_as_that_of_the_device() {
    for (flags, case) in [
        (&[][..], "fills"),
        (&["--leaks"], "fills"),
        // Memory that a program registers is not reached from a worker.
        (&["--isolate"], "fills in worker"),
    ] {
        let (Some(output), Some(program)) = (run(flags, case), compiled("gpu")) else { return };
        assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()), "{flags:?}");
        let output = super::kiln(flags, &program, &[case]);
        assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()), "sim {flags:?}");
    }
}

#[test]
fn a_call_that_waits_in_the_driver_holds_up_no_other_thread() {
    let Some(mut command) = command(&[], "held up") else { return };
    let output = command.env("FAKE_CUDA_FREE_HOST_MS", "3000").output().unwrap();
    assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()));
}

#[test]
fn commands_in_no_order_are_found_on_a_gpu() {
    for flags in [[].as_slice(), &["--isolate"]] {
        tells(
            flags,
            "copies",
            5,
            &["1 finding", "nothing orders stream", "writes bytes 0..4096", "bytes at 0x"],
        );
        // The kernel is known by its PTX to write, and the fill takes the whole block.
        tells(flags, "kernel", 5, &["1 finding", "the launch of set", "may write within bytes 0..4096"]);
    }
}

#[test]
fn what_may_touch_different_bytes_is_a_note_on_a_gpu() {
    for case in ["halves", "parts"] {
        tells(&[], case, 0, &["kiln exec: note: ", "launch of set", "unless they touch different bytes"]);
        tells(&["--strict"], case, 5, &["1 finding", "launch of set", "unless they touch different bytes"]);
    }
}

#[test]
fn faults_and_leaks_are_found_on_a_gpu() {
    tells(&[], "fault", 5, &["1 finding", "700"]);
    tells(&[], "leaves", 0, &[]);
    tells(
        &["--leaks"],
        "leaves",
        5,
        &["1 block of device memory, 4096 bytes", "cuMemFree", "modules not given back"],
    );
}

#[test]
fn functions_of_the_host_are_refused_with_the_devices_in_workers() {
    tells(
        &["--isolate"],
        "in worker",
        0,
        &["the order of a stream is not there with", "leave --isolate out"],
    );
}

#[test]
fn kernels_reach_memory_of_another_gpu_once_that_is_enabled() {
    let (Some(program), Some(stand_in)) = (compiled("gpu"), stand_in()) else { return };
    for (case, connected) in [("peers", "1"), ("no peers", "0")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
        command
            .args(["exec", "--device", "cuda", "--library"])
            .arg(library())
            .arg("--")
            .arg(&program)
            .arg(case);
        command.env("KILN_LIBCUDA", stand_in).env("FAKE_CUDA_DEVICES", "2").env("FAKE_CUDA_PEERS", connected);
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()), "{case}");
    }
}

#[test]
fn kernels_reach_registered_memory_and_memory_of_another_simulated_device_once_that_is_enabled() {
    let Some(program) = compiled("gpu") else { return };
    for case in ["registered", "peers"] {
        let output = super::kiln(&["--devices", "2", "--seeds", "3"], &program, &[case]);
        assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()), "{case}");
    }
    let output = super::kiln(&["--devices", "2", "--isolate"], &program, &["no peers"]);
    assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()));
    for case in ["peers before", "peers after"] {
        let output = super::kiln(&["--devices", "2"], &program, &[case]);
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(5) && told.contains("launch set (device 0"), "{case}: {told}");
    }
}

#[test]
fn what_only_the_simulated_device_has_is_refused_with_its_name() {
    tells(&[], "refused", 0, &["cuIpcGetMemHandle is there", "CU_EVENT_INTERPROCESS is there"]);
}

#[test]
fn a_missing_gpu_is_told_before_the_program_starts() {
    let Some(program) = compiled("gpu") else { return };
    let kiln = |flags: &[&str], libcuda: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
        command.args(["exec", "--library"]).arg(library()).args(flags).arg("--").arg(&program).arg("right");
        command.env("KILN_LIBCUDA", libcuda).output().unwrap()
    };
    for flags in [&["--device", "cuda"][..], &["--device", "cuda", "--isolate"]] {
        let output = kiln(flags, Path::new("/nonexistent/libcuda.so.1"));
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(3) && told.contains("KILN_LIBCUDA"), "{told}");
    }
    // The library of kiln is not that of the driver; and a GPU takes no seeds.
    let output = kiln(&["--device", "cuda"], &library());
    assert!(matches!(output.status.code(), Some(2 | 3)), "{}", text(&output.stderr));
    let output = kiln(&["--device", "cuda", "--seeds", "2"], Path::new("/nonexistent/libcuda.so.1"));
    assert!(
        output.status.code() == Some(2) && text(&output.stderr).contains("--seeds"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_simulated_device_in_a_worker_process_runs_the_same_program() {
    let Some(program) = compiled("gpu") else { return };
    let output = super::kiln(&["--isolate"], &program, &["right"]);
    assert_eq!((output.status.code(), super::said(&output)), (Some(0), String::new()));
    let output = super::kiln(&["--isolate"], &program, &["copies"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
}

#[test]
fn what_a_kernel_breaks_in_a_worker_process_is_found_once() {
    let Some(program) = compiled("mistakes") else { return };
    for flags in [&[][..], &["--isolate"]] {
        let output = super::kiln(flags, &program, &["bounds"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{flags:?}: {told}");
        let has_all =
            ["1 finding in 1 run", "out of bounds", "add_one"].iter().all(|words| told.contains(words));
        assert!(has_all, "{flags:?}: {told}");
    }
}

#[test]
fn a_recording_of_work_on_a_gpu_has_the_clock_of_the_host() {
    let file = folder().join("on a gpu.kiln");
    let Some(output) = run(&["--trace", file.to_str().unwrap()], "right") else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let explained = Command::new(env!("CARGO_BIN_EXE_kiln")).arg("explain").arg(&file).output().unwrap();
    let told = text(&explained.stdout);
    // How long its work took is known by that clock; which kernels are named depends on what took long.
    assert!(explained.status.success() && told.contains(" submissions in "), "{told}");
}
