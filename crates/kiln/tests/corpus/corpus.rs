//! Runs every kernel below some folders on the simulated device with every check on, and counts what is found.
//!
//! `cargo xtask corpus PATH…` runs this. It shows whether kernels that are right are reported. The arguments are invented (large arrays, small
//! sizes); where those do not fit a kernel, `launches.txt` has a launch that does, and the mistakes that kernels of public projects are known to
//! have. The last line has the totals, and any other finding is a failure.
//!
//! With `--count` nothing is launched: it counts the kernels below each path that parse, whose effects are known and that can be executed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a command; printing is what it does")]

mod count;
mod invented;
mod kernel_file;
mod known_launch;
mod tally;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use count::Count;
use kernel_file::KernelFile;
use tally::Tally;

fn main() -> ExitCode {
    let mut includes = Vec::new();
    let mut paths = Vec::new();
    let mut counts = false;
    for word in std::env::args().skip(1) {
        match (word.strip_prefix("-I"), word.as_str()) {
            (Some(folder), _) => includes.push(PathBuf::from(folder)),
            (None, "--count") => counts = true,
            (None, path) => paths.push(PathBuf::from(path)),
        }
    }
    match if counts { count(&paths, &includes) } else { run(&paths, &includes) } {
        Ok(code) => code,
        Err((path, error)) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<ExitCode, (PathBuf, std::io::Error)>;

/// Runs every kernel.
fn run(paths: &[PathBuf], includes: &[PathBuf]) -> Outcome {
    let mut files = Vec::new();
    for path in paths {
        files.extend(files_below(path)?);
    }
    files.sort();
    let mut tally = Tally::default();
    for path in &files {
        match KernelFile::read(path, includes) {
            Ok(file) => {
                file.kernels().iter().for_each(|kernel| tally.add(path, kernel, trial::run(&file, kernel)))
            }
            Err(unread) => tally.add_unread(path, &unread.why),
        }
    }
    println!("{tally}");
    Ok(if tally.is_as_known() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts the kernels below each path.
fn count(paths: &[PathBuf], includes: &[PathBuf]) -> Outcome {
    let mut count = Count::default();
    for path in paths {
        count.begin(path);
        for file in files_below(path)? {
            count.add(&file, KernelFile::read(&file, includes).as_ref());
        }
    }
    print!("{count}");
    Ok(if count.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn files_below(path: &Path) -> Result<Vec<PathBuf>, (PathBuf, std::io::Error)> {
    let mut files = Vec::new();
    collect(path, &mut files).map_err(|error| (path.to_owned(), error))?;
    files.sort();
    Ok(files)
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
