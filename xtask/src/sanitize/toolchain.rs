//! A toolchain: a compiler, what it was published with, and how cargo is made to use it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::Workspace;

/// A toolchain.
#[derive(Clone, Debug)]
pub(super) struct Toolchain {
    /// Where it lies.
    pub(super) sysroot: PathBuf,
    /// What it builds for by itself.
    pub(super) host: String,
    /// Its version, such as `1.97.0-nightly (e50aa6fba 2026-05-19)`.
    pub(super) version: String,
    /// Whether it is the one that runs us, which cargo uses without being told.
    pub(super) is_ours: bool,
}

/// What is published with a toolchain and not always installed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Component {
    /// The interpreter.
    Miri,
    /// The source of the standard library.
    Source,
}

impl Toolchain {
    /// The one that runs us.
    pub(super) fn ours() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        Ok(Self { is_ours: true, ..Self::of(Path::new(&rustc))? })
    }

    /// The one that runs us if it is a nightly, else the nightly of rustup.
    pub(super) fn nightly() -> Result<Self> {
        let ours = Self::ours()?;
        if ours.is_nightly() {
            return Ok(ours);
        }
        let mut which = Command::new("rustup");
        // Asking must not install anything.
        which.args(["which", "--toolchain", "nightly", "rustc"]).env("RUSTUP_AUTO_INSTALL", "0");
        let rustc = process::output(&mut which).map_err(|_| {
            Failure::new(format!(
                "miri comes with nightly toolchains only; this is {}, and rustup has no nightly; \
                 run `rustup toolchain install nightly --profile minimal`, the rest is fetched from here",
                ours.version
            ))
        })?;
        Self::of(Path::new(rustc.trim()))
    }

    /// Asks a compiler.
    fn of(rustc: &Path) -> Result<Self> {
        let sysroot = process::output(Command::new(rustc).args(["--print", "sysroot"]))?;
        let version = process::output(Command::new(rustc).arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let first = version.lines().find_map(|line| line.strip_prefix("rustc "));
        let (Some(host), Some(first)) = (host, first) else {
            return Err(Failure::new(format!("`{} -vV` names no version or no host", rustc.display())));
        };
        let (host, version) = (host.to_owned(), first.to_owned());
        Ok(Self { sysroot: PathBuf::from(sysroot.trim()), host, version, is_ours: false })
    }

    /// Whether it is a nightly.
    pub(super) fn is_nightly(&self) -> bool {
        self.version.contains("-nightly")
    }

    /// Whether it has the runtime of a sanitizer.
    pub(super) fn has_runtime(&self, short: &str) -> bool {
        let ending = format!("_rt.{short}.a");
        let files = self.libraries().read_dir().into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().ends_with(&ending))
    }

    /// Where its libraries are.
    pub(super) fn libraries(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("lib")
    }

    /// A program of the toolchain, run in the root of the workspace. What it starts comes from the same toolchain.
    pub(super) fn command(&self, workspace: &Workspace, program: &str) -> Command {
        if self.is_ours && program == "cargo" {
            return workspace.cargo();
        }
        let bin = self.sysroot.join("bin");
        let mut command = Command::new(bin.join(program));
        command.current_dir(&workspace.root).env("CARGO", bin.join("cargo"));
        if !self.is_ours {
            command.env("RUSTC", bin.join("rustc")).env("RUSTDOC", bin.join("rustdoc"));
            let before = std::env::var_os("PATH").unwrap_or_default();
            let paths = std::iter::once(bin).chain(std::env::split_paths(&before));
            command.env("PATH", std::env::join_paths(paths).unwrap_or_else(|_| OsString::from(&before)));
            // Both would lead back to the toolchain that runs us; the second is set by `cargo run`.
            command.env_remove("RUSTUP_TOOLCHAIN").env_remove("LD_LIBRARY_PATH");
        }
        command
    }
}

impl Component {
    /// Its name in the list of what was published.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Miri => "miri-preview",
            Self::Source => "rust-src",
        }
    }

    /// Its name in what rustup is told.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Miri => "miri",
            Self::Source => "rust-src",
        }
    }

    /// What it is published for.
    pub(super) fn target(self, host: &str) -> &str {
        match self {
            Self::Miri => host,
            Self::Source => "*",
        }
    }

    /// Whether a toolchain has it.
    pub(super) fn is_in(self, sysroot: &Path) -> bool {
        match self {
            Self::Miri => sysroot.join("bin/cargo-miri").is_file() && sysroot.join("bin/miri").is_file(),
            Self::Source => sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file(),
        }
    }
}
