//! `cargo xtask toolkit` with a stand-in for python3: what is fetched, when, and what an interruption leaves.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says what it was asked for, leaves a package file, and unpacks it as the real packages look.
const PYTHON: &str = r#"#!/bin/sh
echo "$*" >> "$FAKE_LOG"
case "$2 $3" in
    "pip download")
        while [ "$1" != --dest ]; do shift; done
        echo wheel > "$2/$3.whl"
        ;;
    "zipfile -e")
        mkdir -p "$5/nvidia/cu13/lib" "$5/nvidia/cu13/bin" "$5/nvidia/cu13/include"
        echo > "$5/nvidia/cu13/lib/libnvrtc.so.13"
        echo > "$5/nvidia/cu13/bin/ptxas"
        echo > "$5/nvidia/cu13/include/cuda_fp16.h"
        echo > "$5/nvidia/cu13/lib/libcurand.so.10"
        ;;
esac
"#;

/// A made-up machine: a target directory and a python3.
struct Machine {
    directory: PathBuf,
}

impl Machine {
    fn new(name: &str, python: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("toolkit-{name}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("bin")).unwrap();
        let machine = Self { directory };
        machine.set_python(python);
        machine
    }

    fn set_python(&self, text: &str) {
        let path = self.directory.join("bin/python3");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Whether it succeeded, what it printed, and what it said.
    fn toolkit(&self, variables: &[(&str, &str)]) -> (bool, String, String) {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(["toolkit", "--pinned"]);
        for variable in ["KILN_NVRTC", "KILN_PTXAS", "KILN_CUDA_INCLUDE", "KILN_CURAND", "LD_LIBRARY_PATH"] {
            command.env_remove(variable);
        }
        command.env("PATH", format!("{}:{path}", self.directory.join("bin").display()));
        command.env("CARGO_TARGET_DIR", self.directory.join("target"));
        command.env("FAKE_LOG", self.directory.join("log")).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// How often python3 was started.
    fn calls(&self) -> usize {
        fs::read_to_string(self.directory.join("log")).map_or(0, |log| log.lines().count())
    }
}

#[test]
fn the_packages_are_fetched_once_and_with_pinned_versions() {
    let machine = Machine::new("once", PYTHON);
    let (done, printed, said) = machine.toolkit(&[]);
    assert!(done, "{said}");
    assert!(said.contains("nvidia-cuda-nvrtc==13.0.88"), "{said}");
    let log = fs::read_to_string(machine.directory.join("log")).unwrap();
    for requirement in [
        "nvidia-cuda-nvrtc==13.0.88",
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-curand==10.4.0.35",
    ] {
        assert!(log.contains(requirement), "{log}");
    }
    for line in printed.lines() {
        let (_, place) = line.split_once("='").unwrap();
        assert!(Path::new(place.trim_end_matches('\'')).exists(), "{line}");
    }
    let again = machine.toolkit(&[]);
    assert_eq!((again.0, again.1, machine.calls()), (true, printed, 8));
}

#[test]
fn ptxas_can_be_executed_and_the_loader_finds_nvrtc() {
    let machine = Machine::new("usable", PYTHON);
    let (_, printed, _) = machine.toolkit(&[("LD_LIBRARY_PATH", "before")]);
    let value = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(&format!("export {name}='"))).unwrap();
        line.trim_end_matches('\'').to_owned()
    };
    let mode = fs::metadata(value("KILN_PTXAS")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let directory = Path::new(&value("KILN_NVRTC")).parent().unwrap().display().to_string();
    assert_eq!(value("LD_LIBRARY_PATH"), format!("{directory}:before"));
    assert!(Path::new(&value("KILN_CUDA_INCLUDE")).join("cuda_fp16.h").exists());
}

#[test]
fn an_interrupted_download_is_not_taken_for_a_whole_one() {
    let machine = Machine::new("interrupted", PYTHON);
    machine.set_python(&PYTHON.replace("echo > \"$5/nvidia/cu13/bin/ptxas\"", "exit 1"));
    let (done, _, said) = machine.toolkit(&[]);
    assert!(!done && said.contains("not found: NVRTC, ptxas, the CUDA headers"), "{said}");
    let left: Vec<_> = fs::read_dir(machine.directory.join("target/nvrtc")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    machine.set_python(PYTHON);
    assert!(machine.toolkit(&[]).0);
}

#[test]
fn without_pip_the_next_step_is_said_once() {
    let machine = Machine::new("no-pip", "#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n");
    let (done, printed, said) = machine.toolkit(&[]);
    assert!(!done && printed.is_empty(), "{printed}");
    assert_eq!(said.matches("is not available: install pip").count(), 1, "{said}");
}

#[test]
fn a_variable_wins_and_one_that_leads_nowhere_is_refused() {
    let machine = Machine::new("variables", PYTHON);
    let own = machine.directory.join("own-ptxas");
    fs::write(&own, "").unwrap();
    let own = own.display().to_string();
    let (done, printed, said) = machine.toolkit(&[("KILN_PTXAS", &own)]);
    assert!(done && printed.contains(&format!("export KILN_PTXAS='{own}'")), "{printed}{said}");
    let (done, _, said) = machine.toolkit(&[("KILN_NVRTC", "does/not/exist")]);
    assert!(!done && said.contains("KILN_NVRTC names does/not/exist"), "{said}");
}
