//! The assembler, where there is one.

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_ir::PtxTarget;

/// `KILN_PTXAS`, or what is on the path.
pub(crate) fn find_ptxas() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("KILN_PTXAS") {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("ptxas")).find(|path| path.is_file())
}

/// Assembles a module. An architecture the assembler no longer makes code for is assembled for the next one it does.
pub(crate) fn assemble(ptxas: &Path, name: &str, text: &str, target: PtxTarget) -> (bool, String) {
    let file = std::env::temp_dir().join(format!("kiln-ir-{}-{name}-{target}.ptx", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let output = file.with_extension("cubin");
    let code = match target.number() {
        70 | 72 => 75,
        101 => 103,
        number => number,
    };
    let run = Command::new(ptxas)
        .args(["--compile-only", "--opt-level", "0", "--gpu-name", &format!("sm_{code}"), "--output-file"])
        .args([&output, &file])
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&output);
    (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
}
