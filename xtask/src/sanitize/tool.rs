//! The tools: what each needs of the toolchain, and how cargo is told to build for it.
//!
//! The sanitizers are unstable options of a stable compiler, whose runtimes come with it; `RUSTC_BOOTSTRAP` lets it take them. What they
//! are built with differs from what is shipped, so each has a separate target directory.

use std::process::Command;

use super::test_set::{self, Part};
use super::toolchain::{Component, Toolchain};
use crate::failure::{Failure, Result};
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
            Self::Address => test_set::ADDRESS,
            Self::Thread => test_set::THREAD,
            Self::Miri => test_set::MIRI,
        }
    }

    /// The toolchain it runs with.
    pub(super) fn toolchain(self) -> Result<Toolchain> {
        let toolchain = match self {
            Self::Address | Self::Thread => Toolchain::ours()?,
            Self::Miri => Toolchain::nightly()?,
        };
        self.check(&toolchain)?;
        Ok(toolchain)
    }

    /// What it needs that a toolchain may lack and can be given.
    pub(super) fn components(self) -> &'static [Component] {
        match self {
            Self::Address => &[],
            Self::Thread => &[Component::Source],
            Self::Miri => &[Component::Miri, Component::Source],
        }
    }

    /// Refuses a toolchain that lacks what it cannot be given, before anything is built.
    fn check(self, toolchain: &Toolchain) -> Result {
        let short = match self {
            Self::Address => "asan",
            Self::Thread => "tsan",
            Self::Miri => return Ok(()),
        };
        if toolchain.has_runtime(short) {
            return Ok(());
        }
        let (name, host, place) = (self.name(), &toolchain.host, toolchain.libraries());
        Err(Failure::new(format!(
            "this toolchain has no {name} for {host}: there is no librustc-*_rt.{short}.a in {}; \
             take a toolchain of rustup for x86_64-unknown-linux-gnu, which has it",
            place.display()
        )))
    }

    /// A cargo that is about to build a part for it, up to what it is told of the part.
    pub(super) fn command(self, workspace: &Workspace, toolchain: &Toolchain, part: &Part) -> Command {
        let mut command = match self {
            Self::Address => sanitized(workspace, toolchain, "address"),
            Self::Thread => {
                let mut command = sanitized(workspace, toolchain, "thread");
                // The standard library's own locks and counters are seen only if it is built the same way.
                command.arg("-Zbuild-std").env("TSAN_OPTIONS", "halt_on_error=1");
                command
            }
            Self::Miri => {
                // Not through cargo, which may find that of another toolchain first. Its compiler is the interpreter beside it.
                let mut command = toolchain.command(workspace, "cargo-miri");
                command.env_remove("RUSTC");
                // The tests look at the clock and at their files.
                let flags = format!("-Zmiri-disable-isolation -Zmiri-strict-provenance {}", part.flags);
                command.args(["miri", "test"]).env("MIRIFLAGS", flags).env("PROPTEST_CASES", "4");
                command
            }
        };
        command.env("CARGO_TARGET_DIR", workspace.target.join("sanitize").join(self.directory()));
        command
    }

    fn directory(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
            Self::Miri => "miri",
        }
    }
}

fn sanitized(workspace: &Workspace, toolchain: &Toolchain, which: &str) -> Command {
    let mut command = toolchain.command(workspace, "cargo");
    // With the target named, build scripts and macros are built without it.
    command.args(["test", "--target", &toolchain.host]);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", format!("-Zsanitizer={which}"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(is_ours: bool) -> Toolchain {
        let host = "riscv64gc-unknown-linux-gnu".into();
        Toolchain { sysroot: "/nowhere".into(), host, version: "1.97.0-nightly".into(), is_ours }
    }

    #[test]
    fn a_toolchain_without_a_runtime_is_told_what_it_lacks() {
        for (tool, file) in [(Tool::Address, "_rt.asan.a"), (Tool::Thread, "_rt.tsan.a")] {
            let text = tool.check(&toolchain(true)).unwrap_err().to_string();
            assert!(text.contains(tool.name()) && text.contains(file), "{text}");
            assert!(text.contains("riscv64gc") && text.contains("rustup"), "{text}");
        }
    }

    #[test]
    fn each_tool_builds_where_nothing_else_does_with_its_own_toolchain() {
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages: Vec::new() };
        let of = |tool: Tool, is_ours| {
            let command = tool.command(&workspace, &toolchain(is_ours), &tool.parts()[0]);
            let environment: Vec<_> = command
                .get_envs()
                .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_str()?.to_owned())))
                .collect();
            let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            (command.get_program().to_owned(), environment, arguments)
        };
        let has = |environment: &[(String, String)], name: &str, value: &str| {
            environment.iter().any(|known| known.0 == name && known.1 == value)
        };
        for (tool, directory) in [(Tool::Address, "address"), (Tool::Thread, "thread"), (Tool::Miri, "miri")]
        {
            let (program, environment, _) = of(tool, false);
            let target = format!("/w/target/sanitize/{directory}");
            assert!(has(&environment, "CARGO_TARGET_DIR", &target), "{environment:?}");
            assert!(has(&environment, "CARGO", "/nowhere/bin/cargo"), "{environment:?}");
            let has_rustc = has(&environment, "RUSTC", "/nowhere/bin/rustc");
            assert_eq!(has_rustc, tool != Tool::Miri, "{environment:?}");
            let name = if tool == Tool::Miri { "/nowhere/bin/cargo-miri" } else { "/nowhere/bin/cargo" };
            assert_eq!(program, name);
        }
        let (_, environment, arguments) = of(Tool::Address, true);
        assert!(has(&environment, "RUSTFLAGS", "-Zsanitizer=address"));
        assert!(!environment.iter().any(|known| known.0 == "RUSTC"), "what runs us is used as it is");
        assert_eq!(arguments, ["test", "--target", "riscv64gc-unknown-linux-gnu"]);
        assert_eq!(of(Tool::Miri, true).2, ["miri", "test"]);
    }
}
