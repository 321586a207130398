//! The figures of GPUs in `kiln top`, told by a library that stands in for NVML.

#![cfg(target_os = "linux")]

use crate::folder::Folder;
use crate::outcome::{Outcome, command, run};

/// Two GPUs, of which the second tells its name alone, and one that does not answer. `nvmlInit_v2` answers what `STATUS` says.
const NVML: &str = r#"
typedef void *device;
int nvmlInit_v2(void) { return STATUS; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *to) { *to = (device)(1ul + index); return index == 2 ? 15 : 0; }
static int write_text(const char *text, device of, char *to, unsigned bytes) {
    unsigned at = 0;
    for (; text[at] && at + 2 < bytes; at++) to[at] = text[at];
    to[at++] = '0' + (char)((unsigned long)of - 1);
    to[at] = 0;
    return 0;
}
int nvmlDeviceGetName(device of, char *to, unsigned bytes) { return write_text("NVIDIA H200 no. ", of, to, bytes); }
int nvmlDeviceGetUUID(device of, char *to, unsigned bytes) { return write_text("GPU-000", of, to, bytes); }
static int known(device of) { return of == (device)1ul ? 0 : 3; }
int nvmlDeviceGetMemoryInfo(device of, unsigned long long *to) { to[0] = 1ull << 37; to[1] = 3ull << 35; to[2] = 1ull << 35; return known(of); }
int nvmlDeviceGetUtilizationRates(device of, unsigned *to) { to[0] = 63; to[1] = 7; return known(of); }
int nvmlDeviceGetTemperature(device of, int sensor, unsigned *to) { *to = sensor == 0 ? 41 : 99; return known(of); }
"#;
const POWER: &str =
    "int nvmlDeviceGetPowerUsage(device of, unsigned *to) { *to = 123456; return known(of); }";

/// What the command says beside a library made of this text.
fn beside(text: &str, words: &[&str]) -> Outcome {
    let folder = Folder::new();
    let (source, library) = (folder.write("nvml.c", text), folder.path("libnvidia-ml.so.1"));
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &library, &source]);
    assert!(compiler.status().unwrap().success());
    let mut top = command(&[&["top"], words].concat());
    top.env("XDG_RUNTIME_DIR", folder.path("")).env("LD_LIBRARY_PATH", folder.path(""));
    let outcome = run(top);
    assert_eq!(outcome.code, Some(0), "{words:?}: {}", outcome.stderr);
    outcome
}

#[test]
fn each_gpu_is_shown_with_the_figures_that_it_tells() {
    let library = format!("{}{POWER}", NVML.replace("STATUS", "0"));
    let json = beside(&library, &["--json"]).json();
    let expected = serde_json::json!([
        { "name": "NVIDIA H200 no. 0", "uuid": "GPU-0000", "used_bytes": 1_u64 << 35, "total_bytes": 1_u64 << 37,
          "busy_percent": 63, "temperature": 41, "power_milliwatts": 123_456 },
        { "name": "NVIDIA H200 no. 1", "uuid": "GPU-0001", "used_bytes": null, "total_bytes": null,
          "busy_percent": null, "temperature": null, "power_milliwatts": null },
    ]);
    assert_eq!((&json["gpus"], &json["gpus_absent"]), (&expected, &serde_json::Value::Null));
    let text = beside(&library, &["--once"]).stdout;
    for said in [
        "NVIDIA H200 no. 0 (GPU-0000)\n",
        "] 32 GiB of 128 GiB in use by all; busy 63 %, 41 °C, 123 W\n",
        "NVIDIA H200 no. 1 (GPU-0001)\n  busy ?, ?, ?\n",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("no. 2") && !text.contains("No figures of GPUs"), "{text}");
}

#[test]
fn a_library_that_does_not_work_is_told_with_the_next_step() {
    for (library, why) in [
        (
            format!("{}{POWER}", NVML.replace("STATUS", "9")),
            "NVML answers 9 to `nvmlInit`; run nvidia-smi to see why",
        ),
        (NVML.replace("STATUS", "0"), "NVML has no nvmlDeviceGetPowerUsage; install a newer driver"),
    ] {
        let json = beside(&library, &["--json"]).json();
        assert_eq!((&json["gpus"], &json["gpus_absent"]), (&serde_json::json!([]), &why.into()));
        let text = beside(&library, &["--once"]).stdout;
        assert!(text.contains(&format!("No figures of GPUs: {why}\n")), "{text}");
    }
}
