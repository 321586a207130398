//! `kiln emit`.

use crate::folder::Folder;
use crate::outcome::{run, without_driver};

const SAXPY: &str = "kernel saxpy(in x: f32[], inout y: f32[like x], a: f32) block(32) over(y) {
    let i: u64 = global.x;
    y[i] = fma(a, x[i], y[i]);
}
";

#[test]
fn what_is_emitted_is_ptx_that_the_other_commands_read() {
    let folder = Folder::new();
    let program = folder.write("saxpy.kir", SAXPY);
    for arch in ["sm_70", "sm_90"] {
        let emitted = run(without_driver(&["emit", &program, "--arch", arch]));
        assert_eq!(emitted.code, Some(0), "{}", emitted.stderr);
        assert!(emitted.stdout.contains(&format!(".target {arch}")), "{}", emitted.stdout);
        let ptx = folder.write("saxpy.ptx", &emitted.stdout);
        let sheet = run(without_driver(&["inspect", &ptx, "--json"])).json();
        assert_eq!(sheet["entries"][0]["name"], "saxpy");
        let access: Vec<_> = sheet["entries"][0]["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|each| &each["access"])
            .collect();
        assert_eq!([access[0], access[2]], ["reads", "both"]);
    }
}

#[test]
fn wrong_files_architectures_and_programs_are_told_apart() {
    let folder = Folder::new();
    let program = folder.write("saxpy.kir", SAXPY);
    let cuda = folder.write("k.cu", "__global__ void k() {}");
    let ptx = folder.write("k.ptx", ".version 8.0");
    let broken = folder.write("broken.kir", SAXPY.replace("fma", "fmb"));
    for (words, code, said) in [
        (vec!["emit", &program, "--arch", "sm_1"], 2, "use one of sm_70"),
        (vec!["emit", "/nonexistent.kir"], 2, "/nonexistent.kir"),
        (vec!["emit", &broken], 4, "broken.kir:"),
        (
            vec!["emit", &cuda],
            2,
            "it is CUDA C, and `kiln emit` takes a program (.kir); `kiln inspect` lists",
        ),
        (vec!["emit", &ptx], 2, "it is PTX already"),
        (vec!["emit"], 2, "FILE"),
    ] {
        let outcome = run(without_driver(&words));
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{words:?}: {}", outcome.stderr);
    }
}
