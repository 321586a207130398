//! The tests under model checkers.
//!
//! They look at the same crates as all other tests, built once more with a `cfg` that puts a checker's atomics and locks below them. A `cfg`
//! is for a whole build, so that each checker has its own target directory and nothing else is built again because of it.

use std::process::Command;

use crate::workspace::Workspace;

/// The package with the tests.
pub(crate) const PACKAGE: &str = "kiln-models";

/// The checkers, by the `cfg` that asks for each and the tests that are for it.
pub(crate) const CHECKERS: [Checker; 2] = [
    Checker { cfg: "kiln_loom", tests: &["biased_lock", "budget"] },
    Checker { cfg: "kiln_shuttle", tests: &["submission"] },
];

/// One of them.
pub(crate) struct Checker {
    cfg: &'static str,
    tests: &'static [&'static str],
}

impl Checker {
    /// Cargo, about to test under this checker.
    pub(crate) fn cargo_test(&self, workspace: &Workspace) -> Command {
        let mut command = workspace.cargo();
        command.args(["test", "--package", PACKAGE]);
        command.args(self.tests.iter().flat_map(|test| ["--test", test]));
        command.env("CARGO_TARGET_DIR", workspace.target.join(self.cfg));
        command.env("RUSTFLAGS", self.flags(std::env::var("RUSTFLAGS").ok().as_deref()));
        command
    }

    /// The flags of the caller and this checker's.
    fn flags(&self, given: Option<&str>) -> String {
        format!("{} --cfg {}", given.unwrap_or_default(), self.cfg).trim_start().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_caller_are_kept() {
        assert_eq!(CHECKERS[0].flags(Some("-C debuginfo=1")), "-C debuginfo=1 --cfg kiln_loom");
        assert_eq!(CHECKERS[1].flags(None), "--cfg kiln_shuttle");
    }
}
