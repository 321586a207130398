//! `cargo xtask gpu-bundle`: the GPU tests and benchmarks, ready for a host that has a driver but no Rust and no network.
//!
//! What goes in is data ([`contents`]), and so is what runs under compute-sanitizer ([`sanitized`]); how it is built is [`build`]; what its peers are built from on the host is
//! [`wheels`]; the script that runs it there is `run.sh`, plain POSIX shell. The bundle links only the C library, and the
//! manifest says which version of it the host needs.

mod build;
mod contents;
mod sanitized;
mod wheels;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::failure::{Failure, Result};
use crate::process;
use crate::suites;
use crate::workspace::Workspace;
use build::Profile;
use contents::{BENCHMARKS, COMMANDS, CUDARC, FILES, Line, OUTSIDERS, PROGRAMS, TESTS};

/// More does not travel well to a borrowed machine.
const SIZE_LIMIT_BYTES: u64 = 60 * 1024 * 1024;

/// What is compressed, and into which file; the script knows the name, too.
const LARGE: &[&str] = &["tests", "bin", "peers", "samples"];
const PACKED: &str = "packed.tar.xz";

/// The script on the host.
const RUN: &str = include_str!("gpu_bundle/run.sh");

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The tests and programs as `cargo xtask test` builds them, without benchmarks, peers and the tests of cudarc
    #[arg(long)]
    dev: bool,
}

/// Builds the binaries and writes the bundle.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    for item in TESTS.iter().chain(PROGRAMS) {
        build::check_exists(workspace, item)?;
    }
    let profile = if arguments.dev { Profile::Development } else { Profile::Optimised };
    let wanted: Vec<_> = TESTS.iter().collect();
    let tests = build::tests(workspace, profile, &wanted)?;
    let wanted: Vec<_> = PROGRAMS.iter().filter(|item| !(arguments.dev && item.measures())).collect();
    let programs = build::programs(workspace, profile, &wanted)?;

    let bundle = workspace.target.join("gpu-bundle");
    if bundle.exists() {
        std::fs::remove_dir_all(&bundle).map_err(|error| Failure::file("remove", &bundle, &error))?;
    }
    let mut files = Vec::new();
    for (item, executable) in TESTS.iter().zip(&tests) {
        files.push(copy(executable, &bundle, &format!("tests/{}", item.file_name()))?);
    }
    for (item, executable) in wanted.iter().zip(&programs) {
        files.push(copy(executable, &bundle, &format!("bin/{}", item.file_name()))?);
    }
    files.push(copy(&build::shim(workspace, profile)?, &bundle, "bin/libkiln_shim.so")?);
    if !arguments.dev {
        files.extend(others(workspace, &bundle)?);
    }
    for (name, text) in FILES {
        write(&bundle.join(name), text, name.ends_with(".sh"))?;
    }
    write(&bundle.join("run.sh"), RUN, true)?;
    let commands: Vec<_> = COMMANDS.iter().filter(|(name, _)| !(arguments.dev && *name == CUDARC)).collect();
    write(&bundle.join("commands"), &lines(commands), false)?;
    write(&bundle.join("benchmarks"), &lines(BENCHMARKS.iter().filter(|_| !arguments.dev)), false)?;
    write(&bundle.join("sanitized"), &sanitized::run_lines(), false)?;
    write(&bundle.join("left-out"), &sanitized::left_out_lines(), false)?;
    let manifest = manifest(workspace, &files)?;
    write(&bundle.join("MANIFEST"), &manifest, false)?;

    print!("{manifest}");
    let bytes = pack(&bundle)? + (RUN.len() + manifest.len()) as u64;
    println!("{}: {:.1} MiB", bundle.display(), bytes as f64 / (1024.0 * 1024.0));
    check_size(bytes)
}

/// What is built from other projects: the tests of cudarc, and peers to measure beside.
fn others(workspace: &Workspace, bundle: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    match suites::cudarc::prebuilt(workspace) {
        Ok((program, may_fail)) => {
            files.push(copy(&program, bundle, "bin/cudarc-tests")?);
            write(&bundle.join("suites/may-fail"), &may_fail, false)?;
        }
        Err(failure) => println!("left out: cudarc-tests: {failure}"),
    }
    for wheel in wheels::all(&workspace.target.join("wheels")) {
        let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(copy(&wheel, bundle, &format!("peers/wheels/{name}"))?);
    }
    for outsider in OUTSIDERS {
        match build::outsider(workspace, outsider) {
            Ok(executable) => files.push(copy(&executable, bundle, &format!("bin/{}", outsider.program))?),
            Err(failure) => println!("left out: {}: {failure}", outsider.program),
        }
    }
    Ok(files)
}

/// Puts everything large into one compressed file, which `run.sh` unpacks, and says how long that is.
fn pack(bundle: &Path) -> Result<u64> {
    let packed = bundle.join(PACKED);
    let large: Vec<_> = LARGE.iter().filter(|name| bundle.join(name).exists()).collect();
    let mut tar = Command::new("tar");
    // The binaries have most of their code in common: a dictionary that reaches from one into the next makes the file 40 % of what it is
    // without.
    tar.env("XZ_OPT", "-T1 --lzma2=preset=3,dict=192MiB")
        .arg("-cJf")
        .arg(&packed)
        .arg("-C")
        .arg(bundle)
        .args(&large);
    process::succeed(&mut tar)?;
    for name in large {
        let directory = bundle.join(name);
        std::fs::remove_dir_all(&directory).map_err(|error| Failure::file("remove", &directory, &error))?;
    }
    let facts = std::fs::metadata(&packed).map_err(|error| Failure::file("read", &packed, &error))?;
    Ok(facts.len())
}

/// One file of the bundle.
struct File {
    name: String,
    bytes: u64,
    glibc: Option<(u32, u32)>,
}

fn copy(executable: &Path, bundle: &Path, name: &str) -> Result<File> {
    let to = bundle.join(name);
    create_parent(&to)?;
    std::fs::copy(executable, &to).map_err(|error| Failure::file("write", &to, &error))?;
    remove_symbols(&to);
    let content = std::fs::read(&to).map_err(|error| Failure::file("read", &to, &error))?;
    Ok(File { name: name.to_owned(), bytes: content.len() as u64, glibc: newest_glibc(&content) })
}

/// Makes a file of the development profile a tenth of its size. Without the tool it stays as it is, and the size of the bundle is checked.
fn remove_symbols(file: &Path) {
    let is_program = std::fs::read(file).is_ok_and(|content| content.starts_with(b"\x7fELF"));
    if is_program {
        let mut command = Command::new("strip");
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.status();
    }
}

fn write(path: &Path, text: &str, executable: bool) -> Result {
    create_parent(path)?;
    std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    #[cfg(unix)]
    if executable {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
            .map_err(|error| Failure::file("make executable", path, &error))?;
    }
    Ok(())
}

fn create_parent(path: &Path) -> Result {
    let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    std::fs::create_dir_all(&parent).map_err(|error| Failure::file("create", &parent, &error))
}

/// One line each: the name, a tab, the command.
fn lines<'a>(commands: impl IntoIterator<Item = &'a Line>) -> String {
    commands.into_iter().map(|(name, command)| format!("{name}\t{command}\n")).collect()
}

/// What the bundle is, with nothing in it that changes when the same commit is built again.
fn manifest(workspace: &Workspace, files: &[File]) -> Result<String> {
    let rustc = process::output(Command::new("rustc").arg("-vV"))?;
    let field = |name: &str| rustc.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
    let (major, minor) = files.iter().filter_map(|file| file.glibc).max().unwrap_or_default();
    let mut text = format!(
        "commit  {}\nrustc   {}\nhost    {}\nglibc   {major}.{minor} or newer\n",
        commit(workspace),
        field("release: "),
        field("host: ")
    );
    for file in files {
        text.push_str(&format!("{:>9} {}\n", file.bytes, file.name));
    }
    Ok(text)
}

/// The commit, and whether the tree has more than it; a tree without git is `unknown`.
fn commit(workspace: &Workspace) -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&workspace.root).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain"])) {
        (Some(commit), Some(changes)) if changes.is_empty() => commit,
        (Some(commit), _) => format!("{commit} with changes"),
        (None, _) => "unknown".to_owned(),
    }
}

fn check_size(bytes: u64) -> Result {
    if bytes < SIZE_LIMIT_BYTES {
        return Ok(());
    }
    let limit = SIZE_LIMIT_BYTES / (1024 * 1024);
    Err(Failure::new(format!("the bundle must stay under {limit} MiB; take something out of contents.rs")))
}

/// The newest version of the C library a program asks for, from the names of symbol versions in it.
fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let places = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    places.filter_map(|(at, _)| version(program.get(at + MARK.len()..)?)).max()
}

/// The two numbers at the start of `2.34...`.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(text.len());
    let mut numbers = std::str::from_utf8(text.get(..end)?).ok()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_version_counts() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_PRIVATE\0GLIBC_2.9\0";
        assert_eq!(newest_glibc(program), Some((2, 34)));
        assert_eq!(newest_glibc(b"statically linked"), None);
    }

    #[test]
    fn a_bundle_that_is_too_large_is_refused() {
        assert!(check_size(SIZE_LIMIT_BYTES - 1).is_ok());
        assert!(check_size(SIZE_LIMIT_BYTES).is_err());
    }
}
