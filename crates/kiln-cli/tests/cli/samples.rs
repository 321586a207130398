//! The script that compares the commands on a GPU with the simulated device, run where both sides are simulated.

use std::path::Path;
use std::process::{Command, Output};

use crate::folder::Folder;

/// The samples as the bundle for GPU hosts has them.
fn samples(folder: &Folder) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = root.join("xtask/src/gpu_bundle/samples");
    let kernels = root.join("crates/kiln-kernels/kernels");
    let lent = ["elementwise.cu", "elementwise.ptx", "histogram.ptx"].map(|name| kernels.join(name));
    let own = std::fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    for path in own.chain(lent) {
        let name = path.file_name().unwrap().to_str().unwrap();
        folder.write(name, std::fs::read(&path).unwrap());
    }
    folder.path("compare.sh")
}

fn compare(script: &str, kiln: &str) -> Output {
    let mut command = Command::new("sh");
    command.arg(script).env("KILN", kiln).env("DEVICE", "auto").env("KILN_POLICY", "simulate");
    command.env("KILN_LIBCUDA", "/nonexistent/libcuda.so.1").output().unwrap()
}

#[test]
fn nothing_differs_between_the_simulated_device_and_itself() {
    let folder = Folder::new();
    let script = samples(&folder);
    let outcome = compare(&script, env!("CARGO_BIN_EXE_kiln"));
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert!(outcome.status.success(), "{text}");
    let verdict = text.lines().last().unwrap();
    let same: u32 = verdict.split(' ').next().unwrap().parse().unwrap();
    assert!(same >= 22 && verdict.ends_with(" the same, 0 differ"), "{text}");
}

/// A command that gets something wrong wherever it is told `--device auto`.
fn lying(folder: &Folder, edit: &str) -> String {
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let text = format!("#!/bin/sh\ncase \"$*\" in *\"--device auto\"*) {edit} ;; esac\nexec {kiln} \"$@\"\n");
    let path = folder.write("lying", text);
    Command::new("chmod").args(["+x", &path]).status().unwrap();
    path
}

#[test]
fn another_result_and_another_end_are_noticed() {
    let folder = Folder::new();
    let script = samples(&folder);
    for (edit, name, why) in [
        // Another last argument of the program gives other numbers.
        (
            "case \"$*\" in *saxpy.kir*f32:2.5*) set -- $(echo \"$*\" | sed s/f32:2.5/f32:2.25/) ;; esac",
            "saxpy.kir: differs",
            "the files are not equal",
        ),
        ("case \"$*\" in *traps.kir*) exit 0 ;; esac", "traps: differs", "ended with 0 instead of 5"),
    ] {
        let outcome = compare(&script, &lying(&folder, edit));
        let text = String::from_utf8(outcome.stdout).unwrap();
        assert!(!outcome.status.success(), "{text}");
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains(why)), "{text}");
    }
}
