//! Runs every kernel below some folders on the simulated device with every check on, and counts what is found.
//!
//! `cargo xtask corpus PATH…` runs this. It shows whether kernels that are right are reported. The arguments are invented (large arrays, small
//! sizes); where those do not fit a kernel, `launches.txt` has a launch that does, and the mistakes that kernels of public projects are known to
//! have. The last line has the totals, and any other finding is a failure.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a command; printing is what it does")]

mod invented;
mod kernel_file;
mod known_launch;
mod tally;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kernel_file::KernelFile;
use tally::Tally;

fn main() -> ExitCode {
    let mut includes = Vec::new();
    let mut paths = Vec::new();
    for word in std::env::args().skip(1) {
        match word.strip_prefix("-I") {
            Some(folder) => includes.push(PathBuf::from(folder)),
            None => paths.push(PathBuf::from(word)),
        }
    }
    let mut files = Vec::new();
    for path in &paths {
        if let Err(error) = collect(path, &mut files) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    files.sort();
    let mut tally = Tally::default();
    for path in &files {
        match KernelFile::read(path, &includes) {
            Ok(file) => {
                file.kernels().iter().for_each(|kernel| tally.add(path, kernel, trial::run(&file, kernel)))
            }
            Err(why) => tally.add_unread(path, &why),
        }
    }
    println!("{tally}");
    if tally.is_as_known() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The files with kernels at or below a path. Links are not followed.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else if path.extension().is_some_and(|end| end == "cu" || end == "ptx") {
        files.push(path.to_owned());
    }
    Ok(())
}
