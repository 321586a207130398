//! `kiln doctor` on machines of every kind.

use serde_json::Value;

use crate::machine::Machine;
use crate::outcome::{Outcome, command, run, without_driver};

/// The check of that name.
fn check<'a>(json: &'a Value, name: &str) -> &'a Value {
    let checks = json["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name} in {json}"))
}

/// Runs the doctor for JSON, holds the exit code in it against the real one, and every check that is not well against
/// having a next step.
fn examined(outcome: &Outcome) -> Value {
    let json = outcome.json();
    assert_eq!(json["exit"].as_i64(), outcome.code.map(i64::from));
    for check in json["checks"].as_array().unwrap() {
        let well = matches!(check["status"].as_str(), Some("ok" | "skipped"));
        assert_eq!(well, check["next_step"].is_null(), "{check}");
    }
    json
}

#[test]
fn the_policy_decides_whether_a_missing_gpu_matters() {
    for (policy, code, driver) in [("auto", 0, "missing"), ("required", 3, "needed")] {
        let outcome = run(without_driver(&["doctor", "--json", "--policy", policy]));
        assert_eq!(outcome.code, Some(code), "{policy}");
        let json = examined(&outcome);
        assert_eq!(json["policy"], policy);
        assert_eq!(check(&json, "driver")["status"], driver);
        assert_eq!(check(&json, "simulated device")["status"], "ok");
    }
    for policy in ["off", "simulate"] {
        let outcome = run(without_driver(&["doctor", "--json", "--policy", policy]));
        assert_eq!(outcome.code, Some(0));
        assert_eq!(check(&examined(&outcome), "CUDA")["status"], "skipped");
    }
}

#[test]
fn the_policy_off_is_told_as_the_commands_follow_it() {
    let mut doctor = without_driver(&["doctor", "--json"]);
    doctor.env("KILN_POLICY", "off");
    let json = examined(&run(doctor));
    let summary = json["summary"].as_str().unwrap();
    let told = "`DeviceRuntime::auto()`, `kiln run`, `check` and `demo` use the simulated device";
    assert!(summary.contains(told), "{summary}");
    let mut demo = without_driver(&["demo"]);
    demo.env("KILN_POLICY", "off");
    let demo = run(demo);
    assert_eq!(demo.code, Some(0), "{}", demo.stderr);
    assert!(demo.stdout.contains("simulated"), "{}", demo.stdout);
}

#[test]
fn the_first_line_says_whether_kernels_run_here() {
    for (policy, code, first) in [
        ("auto", 0, "Yes: kernels run on the simulated device"),
        ("simulate", 0, "Yes: kernels run on the simulated device"),
        ("required", 3, "No: the policy `required` needs a GPU"),
    ] {
        let text = run(without_driver(&["doctor", "--policy", policy]));
        assert_eq!(text.code, Some(code), "{policy}");
        assert!(text.stdout.starts_with(first), "{policy}: {}", text.stdout);
        let details = text.stdout.find("Details, for the policy").expect("the checks come after the answer");
        assert!(text.stdout[details..].contains("ok       simulated device"), "{policy}: {}", text.stdout);
    }
}

#[test]
fn the_environment_sets_the_policy_and_the_flag_overrides_it() {
    let mut required = without_driver(&["doctor"]);
    required.env("KILN_POLICY", "required");
    assert_eq!(run(required).code, Some(3));
    let mut overridden = without_driver(&["doctor", "--policy", "auto"]);
    overridden.env("KILN_POLICY", "required");
    assert_eq!(run(overridden).code, Some(0));
}

#[test]
fn libraries_that_need_a_gpu_are_not_missing_without_one() {
    let json = examined(&run(without_driver(&["doctor", "--json"])));
    let libraries = check(&json, "libraries");
    assert_eq!(libraries["status"], "skipped");
    assert!(
        libraries["detail"].as_str().unwrap().contains("cuBLAS, cuBLASLt, cuFFT, cuDNN, cuSOLVER, cuSPARSE"),
        "{libraries}"
    );
    let is_listed = |name: &str| json["checks"].as_array().unwrap().iter().any(|check| check["name"] == name);
    assert!(is_listed("NVRTC") && !is_listed("cuBLAS") && !is_listed("NCCL"), "{json}");
}

#[test]
fn a_variable_that_names_a_missing_file_is_told_without_a_gpu() {
    let mut doctor = without_driver(&["doctor", "--json"]);
    doctor.env("KILN_CUDNN", "/nonexistent/libcudnn.so.9");
    let json = examined(&run(doctor));
    let cudnn = check(&json, "cuDNN");
    assert_eq!(cudnn["status"], "missing");
    let detail = cudnn["detail"].as_str().unwrap();
    let text = "KILN_CUDNN names /nonexistent/libcudnn.so.9: No such file or directory";
    assert!(detail.starts_with(text), "{detail}");
    assert!(
        cudnn["next_step"].as_str().unwrap().starts_with("correct or unset KILN_CUDNN, or install"),
        "{cudnn}"
    );
}

#[test]
fn a_library_that_ends_too_early_is_told_without_a_gpu() {
    let folder = std::env::temp_dir().join(format!("kiln-doctor-incomplete-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A header for this machine, with program headers behind the end of the file.
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut header = [0_u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (header[16], header[18], header[32], header[56]) = (3, machine, 64, 2);
    std::fs::write(folder.join("libcufft.so.12"), header).unwrap();
    let mut doctor = without_driver(&["doctor", "--json"]);
    doctor.env("KILN_CUFFT", &folder);
    let json = examined(&run(doctor));
    std::fs::remove_dir_all(&folder).unwrap();
    let cufft = check(&json, "cuFFT");
    assert_eq!(cufft["status"], "missing");
    let detail = cufft["detail"].as_str().unwrap();
    assert!(detail.ends_with("incomplete: 64 of 176 bytes; install it again"), "{detail}");
}

#[test]
fn a_library_that_is_too_old_is_told_with_the_version_that_is_needed() {
    let folder = std::env::temp_dir().join(format!("kiln-doctor-old-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("empty.c");
    std::fs::write(&source, "int nothing;").unwrap();
    for (name, variable, file, needed) in [
        ("cuDNN", "KILN_CUDNN", "libcudnn.so.8.9.7", "8.9.7, kiln needs 9.0"),
        ("cuBLAS", "KILN_CUBLAS", "libcublas.so.11.11.3.6", "11.11.3, kiln needs 12.0"),
    ] {
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.join(file)).arg(&source);
        assert!(compiler.status().unwrap().success());
        let package = format!("pip install nvidia-{}", name.to_lowercase());
        // Named by a variable, and found where the loader looks.
        for by in [variable, "LD_LIBRARY_PATH"] {
            let mut doctor = without_driver(&["doctor", "--json"]);
            doctor.env(by, &folder);
            let json = examined(&run(doctor));
            let found = check(&json, name);
            assert_eq!(found["status"], "missing", "{found}");
            let detail = found["detail"].as_str().unwrap();
            assert!(detail.ends_with(&format!("too old: version {needed} or newer")), "{detail}");
            let next = found["next_step"].as_str().unwrap();
            assert!(next.contains(&package), "{next}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Libraries under names without a number: name, variable, source in C, status, and a part of what is told.
fn plain_libraries() -> [(&'static str, &'static str, String, &'static str, String); 8] {
    let property = |function: &str, [major, minor, patch]: [u32; 3]| {
        let values = format!("*v = part == 0 ? {major} : part == 1 ? {minor} : {patch}");
        format!("int {function}(int part, int *v) {{ {values}; return 0; }}")
    };
    let nccl = |number: u32| {
        format!(
            "int ncclGetVersion(int *v) {{ *v = {number}; return 0; }} int ncclGetUniqueId(void) {{ return 0; }}"
        )
    };
    let old = |text: &str| format!("too old: version {text} or newer");
    let lacking = "int no_such_function(void); int f(void) { return no_such_function(); }".to_owned();
    [
        (
            "cuBLAS",
            "KILN_CUBLAS",
            property("cublasGetProperty", [11, 11, 3]),
            "missing",
            old("11.11.3, kiln needs 12.0"),
        ),
        (
            "cuFFT",
            "KILN_CUFFT",
            property("cufftGetProperty", [10, 9, 0]),
            "missing",
            old("10.9.0, kiln needs 11.0"),
        ),
        (
            "cuDNN",
            "KILN_CUDNN",
            property("cudnnGetProperty", [8, 9, 7]),
            "missing",
            old("8.9.7, kiln needs 9.0"),
        ),
        ("NCCL", "KILN_NCCL", nccl(21_708), "missing", old("2.17.8, kiln needs 2.18")),
        ("NCCL", "KILN_NCCL", nccl(21_800), "ok", "2.18.0 at ".to_owned()),
        (
            "NVRTC",
            "KILN_NVRTC",
            "int nvrtcVersion(int *a, int *b) { *a = 11; *b = 1; return 0; }".to_owned(),
            "missing",
            old("11.1, kiln needs 11.2"),
        ),
        ("NVRTC", "KILN_NVRTC", lacking, "missing", "undefined symbol: no_such_function".to_owned()),
        (
            "cuSPARSE",
            "KILN_CUSPARSE",
            "int nothing;".to_owned(),
            "missing",
            "has no `cusparseCreate`".to_owned(),
        ),
    ]
}

/// Under a name without a number, a library tells its version when it is loaded, which needs no GPU.
#[test]
fn an_old_or_unusable_library_under_a_plain_name_is_told_without_a_gpu() {
    let folder = std::env::temp_dir().join(format!("kiln-doctor-plain-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, variable, text, status, detail) in plain_libraries() {
        let (source, file) = (folder.join("text.c"), folder.join(format!("plain-{name}.so")));
        std::fs::write(&source, text).unwrap();
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&source);
        assert!(compiler.status().unwrap().success());
        let mut doctor = without_driver(&["doctor", "--json"]);
        doctor.env(variable, &file);
        let outcome = run(doctor);
        assert_eq!(outcome.code, Some(0));
        let json = examined(&outcome);
        let found = check(&json, name);
        assert_eq!(found["status"], status, "{found}");
        assert!(found["detail"].as_str().unwrap().contains(&detail), "{detail}: {found}");
    }
    // What compiles CUDA C says the same.
    let kernel = folder.join("k.cu");
    std::fs::write(&kernel, "extern \"C\" __global__ void k() {}").unwrap();
    let mut inspect = without_driver(&["inspect", kernel.to_str().unwrap()]);
    inspect.env("KILN_NVRTC", folder.join("plain-NVRTC.so"));
    let inspected = run(inspect);
    assert_eq!(inspected.code, Some(3), "{}", inspected.stderr);
    let text = &inspected.stderr;
    assert!(text.contains("undefined symbol: no_such_function; install the CUDA toolkit or"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_cuda_headers_are_named_or_come_with_their_package() {
    let examined_with = |folder: &std::path::Path| {
        let mut command = without_driver(&["doctor", "--json"]);
        command.env("KILN_CUDA_INCLUDE", folder);
        check(&examined(&run(command)), "CUDA headers").clone()
    };
    let missing = examined_with(std::path::Path::new("/nonexistent"));
    assert_eq!(missing["status"], "missing");
    assert!(missing["next_step"].as_str().unwrap().contains("nvidia-cuda-runtime"), "{missing}");
    let folder = std::env::temp_dir().join(format!("kiln-doctor-headers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("cuda_fp16.h"), "").unwrap();
    std::fs::write(folder.join("cuda.h"), "#define CUDA_VERSION 13010\n").unwrap();
    let found = examined_with(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    let detail = found["detail"].as_str().unwrap();
    assert!(detail.starts_with("13.1 at") && detail.contains(folder.to_str().unwrap()), "{detail}");
}

#[test]
fn a_wrong_name_of_the_driver_is_told_with_what_to_do() {
    let file = std::env::temp_dir().join(format!("kiln-doctor-driver-{}", std::process::id()));
    std::fs::write(&file, "no library").unwrap();
    for (name, why) in [
        (file.to_str().unwrap(), "file too short"),
        ("/nonexistent/libcuda.so.1", "cannot open shared object file"),
        ("libc.so.6", "it has no `cuDriverGetVersion`"),
    ] {
        let mut doctor = command(&["doctor", "--json"]);
        doctor.env("KILN_LIBCUDA", name);
        let json = examined(&run(doctor));
        let driver = check(&json, "driver");
        let detail = driver["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("KILN_LIBCUDA names {name}, which cannot be used")), "{detail}");
        assert!(detail.contains(why), "{detail}");
        assert_eq!(driver["next_step"], "correct or unset KILN_LIBCUDA");
        let summary = json["summary"].as_str().unwrap();
        assert!(summary.contains("because there is no GPU (KILN_LIBCUDA names"), "{summary}");
    }
    std::fs::remove_file(&file).unwrap();
}

/// A pipe that nothing is written to: who opens it waits for ever.
#[test]
fn a_pipe_in_the_place_of_a_library_is_told_and_not_waited_for() {
    let pipe = std::env::temp_dir().join(format!("kiln-doctor-pipe-{}", std::process::id()));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (variable, name) in [("KILN_CUDNN", "cuDNN"), ("KILN_NVRTC", "NVRTC"), ("KILN_LIBCUDA", "driver")] {
        let mut doctor = without_driver(&["doctor", "--json"]);
        doctor.env(variable, &pipe);
        let json = examined(&run(doctor));
        let found = check(&json, name);
        assert_ne!(found["status"], "ok", "{found}");
        assert!(found["detail"].as_str().unwrap().contains(pipe.to_str().unwrap()), "{found}");
    }
    std::fs::remove_file(&pipe).unwrap();
}

#[test]
fn the_text_says_the_same_as_the_json() {
    let text = run(without_driver(&["doctor", "--policy", "required"]));
    assert_eq!(text.code, Some(3));
    for words in [
        "policy `required`",
        "needed ",
        "driver",
        "next: correct or unset KILN_LIBCUDA",
        "NVRTC",
        "there is none",
    ] {
        assert!(text.stdout.contains(words), "{words} is not in {}", text.stdout);
    }
}

#[test]
fn isolation_is_tried_and_not_only_looked_at() {
    let json = examined(&run(without_driver(&["doctor", "--json", "--policy", "simulate"])));
    for name in ["isolation: system", "isolation: simulated device"] {
        assert_eq!(check(&json, name)["status"], "ok", "{json}");
    }
    let detail = check(&json, "isolation: simulated device")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("killed") && detail.contains("unchanged"), "{detail}");
    let off = examined(&run(without_driver(&["doctor", "--json", "--policy", "off"])));
    let is_isolation = |check: &Value| check["name"].as_str().unwrap().starts_with("isolation");
    assert!(!off["checks"].as_array().unwrap().iter().any(is_isolation), "nothing is started under `off`");
}

#[test]
fn few_descriptors_are_told_with_what_to_do() {
    // No more than the trial itself needs, and then not even that.
    for (limit, works) in [("60", true), ("6", false)] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -n $0 && exec \"$@\"", limit, env!("CARGO_BIN_EXE_kiln")]);
        shell.args(["doctor", "--json", "--policy", "simulate"]).env_remove("KILN_POLICY");
        let json = examined(&run(shell));
        let descriptors = check(&json, "isolation: descriptors");
        assert_eq!(descriptors["status"], "missing");
        assert!(descriptors["next_step"].as_str().unwrap().contains("ulimit -n"));
        let worker = check(&json, "isolation: simulated device");
        assert_eq!(worker["status"] == "ok", works, "{limit}: {worker}");
    }
}

on_machine! {
    fn a_missing_library_comes_with_its_next_step() on Machine::fake().with("KILN_CUFFT", "/nonexistent/libcufft.so") => {
        let json = examined(&run(command(&["doctor", "--json"])));
        let cufft = check(&json, "cuFFT");
        assert_eq!(cufft["status"], "missing");
        assert!(cufft["next_step"].as_str().unwrap().contains("pip install nvidia-cufft"));
        assert!(cufft["searched"][0].as_str().unwrap().contains("/nonexistent"), "{cufft}");
    }

    fn packages_fit_the_driver_that_is_installed() on Machine::fake()
        .with("FAKE_CUDA_VERSION", "12040")
        .with("KILN_CUFFT", "/nonexistent/libcufft.so")
        .with("KILN_CUDA_INCLUDE", "/nonexistent")
        .with("KILN_NVRTC", "/nonexistent/libnvrtc.so") =>
    {
        let json = examined(&run(command(&["doctor", "--json"])));
        for (name, package) in [
            ("NVRTC", "pip install 'nvidia-cuda-nvrtc-cu12==12.4.*'"),
            ("cuFFT", "pip install nvidia-cufft-cu12`"),
            ("CUDA headers", "pip install 'nvidia-cuda-runtime-cu12==12.4.*'"),
        ] {
            let next = check(&json, name)["next_step"].as_str().unwrap();
            assert!(next.contains(package), "{name}: {next}");
        }
    }

    fn what_a_library_costs_is_measured()
        on Machine::fake().with_library("KILN_CUBLAS", include_str!("../../../kiln-cuda/tests/on_fake/libcublas/cublas.c")) =>
    {
        let json = examined(&run(command(&["doctor", "--json"])));
        let cublas = check(&json, "cuBLAS");
        assert_eq!(cublas["status"], "ok", "{cublas}");
        let detail = cublas["detail"].as_str().unwrap();
        assert!(detail.contains("the first use takes") && detail.contains("of device memory"), "{detail}");
        let found = json["libraries"].as_array().unwrap().iter().find(|library| library["name"] == "cuBLAS").unwrap();
        assert!(found["cost"]["load_ms"].is_u64() && found["cost"]["device_bytes"].is_u64(), "{found}");
    }

    fn a_library_that_cannot_be_used_does_not_hide_the_gpu() on Machine::fake()
        .with_library("KILN_CUBLAS", "int cublasGetProperty(int part, int *v) { *v = part == 0 ? 11 : 3; return 0; }")
        .with_library("KILN_CUSOLVER", "int no_such_function(void); int f(void) { return no_such_function(); }")
        .with_library("KILN_CUSPARSE", "int cusparseCreate(void **handle) { return 0; }")
        .with_library("KILN_NCCL", "int ncclGetVersion(int *v) { *v = 21708; return 0; }") =>
    {
        for policy in ["auto", "required"] {
            let outcome = run(command(&["doctor", "--json", "--policy", policy]));
            assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
            let json = examined(&outcome);
            assert!(json["summary"].as_str().unwrap().starts_with("Yes: kernels run on"), "{json}");
            assert_eq!((&json["runs_on"], &check(&json, "context on device 0")["status"]), (&"cuda".into(), &"ok".into()));
            for (name, detail, package) in [
                ("cuBLAS", "too old: version 11.3.3, kiln needs 12.0 or newer", "nvidia-cublas"),
                ("cuSOLVER", "undefined symbol: no_such_function", "nvidia-cusolver"),
                ("cuSPARSE", "has no `cusparseDestroy`, which CUDA 12 and newer have", "nvidia-cusparse"),
                ("NCCL", "too old: version 2.17.8, kiln needs 2.18 or newer", "nvidia-nccl"),
            ] {
                let found = check(&json, name);
                assert_eq!(found["status"], "missing", "{found}");
                let (told, next) = (found["detail"].as_str().unwrap(), found["next_step"].as_str().unwrap());
                assert!(told.ends_with(detail) && next.contains(package), "{found}");
            }
        }
    }

    fn a_gpu_is_examined_and_used() on Machine::fake().devices(2) => {
        let outcome = run(command(&["doctor", "--json", "--policy", "required"]));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
        let json = examined(&outcome);
        for name in ["driver", "device 0", "device 1", "context on device 0"] {
            assert_eq!(check(&json, name)["status"], "ok", "{name}");
        }
        assert!(check(&json, "driver")["detail"].as_str().unwrap().ends_with("/libcuda.so.1, CUDA 13.0"));
        let devices = json["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 3, "two on CUDA and the simulated one");
        assert!(devices[0]["uuid"].as_str().unwrap().starts_with("GPU-"));
    }

    fn a_driver_that_does_not_start_is_a_fault() on Machine::fake().plan("cuInit=3") => {
        for policy in ["auto", "required"] {
            let outcome = run(command(&["doctor", "--json", "--policy", policy]));
            assert_eq!(outcome.code, Some(5));
            let json = examined(&outcome);
            let driver = check(&json, "driver");
            assert_eq!(driver["status"], "fault");
            assert!(driver["detail"].as_str().unwrap().contains("CUDA_ERROR_NOT_INITIALIZED (3)"));
        }
        assert_eq!(run(command(&["doctor", "--policy", "off"])).code, Some(0));
    }

    fn a_context_without_memory_is_a_fault_with_its_own_next_step()
    on Machine::fake().plan("cuDevicePrimaryCtxRetain=2") => {
        let outcome = run(command(&["doctor", "--json"]));
        assert_eq!(outcome.code, Some(5));
        let json = examined(&outcome);
        assert!(check(&json, "context")["next_step"].as_str().unwrap().contains("free memory"));
    }

    fn a_broken_device_beside_a_working_one_is_a_fault() on Machine::fake().devices(2).with("FAKE_CUDA_BROKEN", "0") => {
        let outcome = run(command(&["doctor", "--json"]));
        assert_eq!(outcome.code, Some(5));
        let json = examined(&outcome);
        assert_eq!((&check(&json, "device 0")["status"], &check(&json, "device 1")["status"]), (&"fault".into(), &"ok".into()));
        assert_eq!(check(&json, "context on device 1")["status"], "ok");
    }

    fn a_mismatched_driver_is_an_absence() on Machine::fake().plan("cuInit=803") => {
        assert_eq!(run(command(&["doctor"])).code, Some(0));
        let outcome = run(command(&["doctor", "--policy", "required"]));
        assert_eq!(outcome.code, Some(3));
        assert!(outcome.stdout.contains("reboot"));
    }
}
