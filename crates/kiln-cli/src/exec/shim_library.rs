//! Where the shared library is.

use std::path::{Path, PathBuf};

use crate::exit_code::Exit;
use crate::failure::{Failure, FailureKind};

/// As cargo names it.
const NAME: &str = "libkiln_shim.so";
/// Part of every such library, and of no other.
const MARK: &[u8] = b"KILN_EXEC_FOLDER";
/// From the folder of this command: where cargo builds, and where it is installed beside a `bin`.
const PLACES: [&str; 3] = [".", "deps", "../lib"];

/// The library that was named, or the one beside this command.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if !cfg!(target_os = "linux") {
        return Err(absent("the library is for Linux alone".into(), "run it on Linux"));
    }
    if let Some(path) = named {
        let path = path.canonicalize().map_err(|error| Failure::file(path, error))?;
        if !has_mark(&path).map_err(|error| Failure::file(&path, error))? {
            let message = format!("{} is not the library of kiln", path.display());
            return Err(Failure::usage(message).next("name libkiln_shim.so, or leave --library out"));
        }
        return Ok(path);
    }
    let command = std::env::current_exe().and_then(|path| path.canonicalize());
    let folder = command.as_deref().ok().and_then(Path::parent).unwrap_or(Path::new("."));
    let found = PLACES.iter().find_map(|place| folder.join(place).join(NAME).canonicalize().ok());
    found.ok_or_else(|| {
        let message = format!("{NAME} is not beside this command, in {}", folder.display());
        absent(
            message,
            "build it in the folder of kiln's sources with `cargo build --release --package kiln-shim`, and put target/release/libkiln_shim.so \
             there, or name it with --library",
        )
    })
}

/// Whether a file is such a library: it reads this variable, so that its name is among its bytes.
pub(super) fn has_mark(path: &Path) -> std::io::Result<bool> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.windows(MARK.len()).any(|window| window == MARK))
}

fn absent(message: String, next: &str) -> Failure {
    Failure { exit: Exit::Absent, kind: FailureKind::Absent, ..Failure::refused(message) }.next(next)
}
