//! `cargo xtask book`: builds the book with mdBook, into `target/book`.
//!
//! The Rust listings are compiled and run by `cargo xtask test` (package `kiln-book`). This builds the pages and fails on a chapter that
//! is listed and missing.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::Result;
use crate::process;
use crate::workspace::Workspace;

/// The version that is installed if none is found.
const VERSION: &str = "0.5.4";

/// Builds the book.
pub(crate) fn run(workspace: &Workspace) -> Result {
    let program = match found() {
        Some(program) => program,
        None => install(workspace)?,
    };
    process::succeed(Command::new(program).arg("build").arg(workspace.root.join("docs/book")))?;
    println!("the book: {}", workspace.target.join("book/index.html").display());
    Ok(())
}

/// mdBook on the search path.
fn found() -> Option<PathBuf> {
    let mut command = Command::new("mdbook");
    let answers = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    answers.is_ok_and(|status| status.success()).then(|| "mdbook".into())
}

/// mdBook below `target`, built there once, without its server and its search.
fn install(workspace: &Workspace) -> Result<PathBuf> {
    let root = workspace.target.join("mdbook");
    let program = root.join("bin/mdbook");
    if !program.exists() {
        let mut command = workspace.cargo();
        command.args([
            "install",
            "mdbook",
            "--version",
            VERSION,
            "--locked",
            "--no-default-features",
            "--root",
        ]);
        process::succeed(command.arg(&root))?;
    }
    Ok(program)
}
