//! The tools: what each needs of the toolchain, and how cargo is told to build for it.
//!
//! The sanitizers are unstable options of a stable compiler, whose runtimes come with it; `RUSTC_BOOTSTRAP` lets it take them. What they
//! are built with differs from what is shipped, so each has a target directory of its own and the usual one is left alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::part::{self, Part};
use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::Workspace;

/// A tool that sees what a test cannot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tool {
    /// Memory that is not there any more, or never was.
    Address,
    /// Two threads at one place without an order.
    Thread,
    /// Whatever the language does not define.
    Miri,
}

/// The compiler that cargo will use.
pub(super) struct Toolchain {
    /// Where it lies.
    sysroot: PathBuf,
    /// What it builds for by itself.
    host: String,
}

impl Toolchain {
    /// Asks the compiler.
    pub(super) fn find() -> Result<Self> {
        let rustc = || Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let sysroot = process::output(rustc().args(["--print", "sysroot"]))?;
        let version = process::output(rustc().arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or_else(|| Failure::new("`rustc -vV` names no host"))?;
        Ok(Self { sysroot: PathBuf::from(sysroot.trim()), host: host.to_owned() })
    }

    /// Whether it has the runtime of a sanitizer.
    fn has_runtime(&self, short: &str) -> bool {
        let ending = format!("_rt.{short}.a");
        let files = self.libraries().read_dir().into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().ends_with(&ending))
    }

    fn libraries(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("lib")
    }

    /// Where the source of the standard library would be.
    fn source(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust/library/std")
    }
}

impl Tool {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Address => "AddressSanitizer",
            Self::Thread => "ThreadSanitizer",
            Self::Miri => "miri",
        }
    }

    /// What runs under it.
    pub(super) fn parts(self) -> &'static [Part] {
        match self {
            Self::Address => part::ADDRESS,
            Self::Thread => part::THREAD,
            Self::Miri => part::MIRI,
        }
    }

    /// Refuses a toolchain that lacks what it needs, before anything is built.
    pub(super) fn check(self, toolchain: &Toolchain) -> Result {
        match self {
            Self::Address => check_runtime(toolchain, self, "asan"),
            Self::Thread => {
                check_runtime(toolchain, self, "tsan")?;
                check_source(&toolchain.source())
            }
            Self::Miri => check_miri(),
        }
    }

    /// Everything of the command line and the environment up to the part.
    pub(super) fn prepare(
        self,
        command: &mut Command,
        workspace: &Workspace,
        toolchain: &Toolchain,
        part: &Part,
    ) {
        let directory = workspace.target.join("sanitize").join(self.directory());
        command.env("CARGO_TARGET_DIR", directory);
        match self {
            Self::Address => {
                sanitize(command, toolchain, "address");
            }
            Self::Thread => {
                sanitize(command, toolchain, "thread");
                // The standard library's own locks and counters are seen only if it is built the same way.
                command.arg("-Zbuild-std").env("TSAN_OPTIONS", "halt_on_error=1");
            }
            Self::Miri => {
                // The tests look at the clock and at files of their own.
                let flags = format!("-Zmiri-disable-isolation -Zmiri-strict-provenance {}", part.flags);
                command.args(["miri", "test"]).env("MIRIFLAGS", flags).env("PROPTEST_CASES", "4");
            }
        }
    }

    fn directory(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
            Self::Miri => "miri",
        }
    }
}

fn sanitize(command: &mut Command, toolchain: &Toolchain, which: &str) {
    // With the target named, build scripts and macros are built without it.
    command.args(["test", "--target", &toolchain.host]);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", format!("-Zsanitizer={which}"));
}

fn check_runtime(toolchain: &Toolchain, tool: Tool, short: &str) -> Result {
    if toolchain.has_runtime(short) {
        return Ok(());
    }
    let (name, host, place) = (tool.name(), &toolchain.host, toolchain.libraries());
    Err(Failure::new(format!(
        "this toolchain has no {name} for {host}: there is no librustc-*_rt.{short}.a in {}; \
         take a toolchain of rustup for x86_64-unknown-linux-gnu, which has it",
        place.display()
    )))
}

fn check_source(source: &Path) -> Result {
    if source.is_dir() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "ThreadSanitizer needs the source of the standard library, which is not at {}: what std does between threads would look \
         like a race if it were not built for it, too; run `rustup component add rust-src`",
        source.display()
    )))
}

fn check_miri() -> Result {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["miri", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::new(
            "this toolchain has no miri; run `rustup toolchain install nightly --component miri,rust-src`, \
             then `cargo +nightly xtask sanitize --miri`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_without_a_runtime_is_told_what_it_lacks() {
        let toolchain = Toolchain { sysroot: "/nowhere".into(), host: "riscv64gc-unknown-linux-gnu".into() };
        for (tool, file) in [(Tool::Address, "_rt.asan.a"), (Tool::Thread, "_rt.tsan.a")] {
            let text = tool.check(&toolchain).unwrap_err().to_string();
            assert!(text.contains(tool.name()) && text.contains(file), "{text}");
            assert!(text.contains("riscv64gc") && text.contains("rustup"), "{text}");
        }
        let text = check_source(&toolchain.source()).unwrap_err().to_string();
        assert!(text.contains("rustup component add rust-src"), "{text}");
    }

    #[test]
    fn each_tool_builds_where_nothing_else_does() {
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages: Vec::new() };
        let toolchain = Toolchain { sysroot: "/t".into(), host: "h".into() };
        let of = |tool: Tool| {
            let mut command = Command::new("cargo");
            tool.prepare(&mut command, &workspace, &toolchain, &tool.parts()[0]);
            let environment =
                command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)));
            (environment.collect::<Vec<_>>(), command.get_args().map(ToOwned::to_owned).collect::<Vec<_>>())
        };
        for (tool, directory) in [(Tool::Address, "address"), (Tool::Thread, "thread"), (Tool::Miri, "miri")]
        {
            let (environment, _) = of(tool);
            let target = format!("/w/target/sanitize/{directory}");
            assert!(
                environment.contains(&("CARGO_TARGET_DIR".into(), Some(target.into()))),
                "{environment:?}"
            );
        }
        let (environment, arguments) = of(Tool::Address);
        assert!(environment.contains(&("RUSTFLAGS".into(), Some("-Zsanitizer=address".into()))));
        assert_eq!(arguments, ["test", "--target", "h"]);
        assert_eq!(of(Tool::Miri).1, ["miri", "test"]);
    }
}
