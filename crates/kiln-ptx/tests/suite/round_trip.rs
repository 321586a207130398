//! What is printed parses to the same module, and `ptxas` accepts it.

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_ptx::PtxModule;

#[test]
fn every_module_survives_printing() {
    for (name, text) in texts() {
        let module = PtxModule::parse(&text).unwrap_or_else(|e| panic!("{name}:{e}"));
        let printed = module.to_string();
        let again = PtxModule::parse(&printed).unwrap_or_else(|e| panic!("{name} printed:{e}\n{printed}"));
        assert!(again == module, "{name} is another module after printing");
        assert_eq!(again.to_string(), printed, "{name} prints differently the second time");
    }
}

#[test]
fn ptxas_accepts_what_is_printed() {
    let Some(ptxas) = find_ptxas() else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path, or put it on PATH");
        return;
    };
    for (name, text) in texts() {
        // A module newer than the assembler cannot be judged by it.
        if !assemble(&ptxas, &name, &text) {
            println!("skipped: this ptxas does not accept {name} as the compiler wrote it");
            continue;
        }
        let printed = PtxModule::parse(&text).unwrap().to_string();
        assert!(assemble(&ptxas, &name, &printed), "ptxas refuses {name} as printed:\n{printed}");
    }
}

/// The names and contents of all test modules.
fn texts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "ptx") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            texts.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    texts.sort();
    assert!(texts.len() >= 23, "only {} test modules found", texts.len());
    for version in ["7.8", "8.4", "9.0"] {
        let line = format!(".version {version}");
        assert!(texts.iter().any(|(_, text)| text.contains(&line)), "no module of PTX {version}");
    }
    texts
}

fn find_ptxas() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("KILN_PTXAS") {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("ptxas")).find(|path| path.is_file())
}

fn assemble(ptxas: &Path, name: &str, text: &str) -> bool {
    let architecture = PtxModule::parse(text).unwrap().target.architecture;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let output = file.with_extension("cubin");
    let status = Command::new(ptxas)
        .args(["--compile-only", "--opt-level", "0", "--gpu-name", &architecture, "--output-file"])
        .args([&output, &file])
        .output()
        .unwrap()
        .status;
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&output);
    status.success()
}
