//! What came of all kernels.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use kiln_ptx::EntryFacts;

use crate::trial::Trial;

/// Counts of kernels and findings.
#[derive(Default)]
pub(crate) struct Tally {
    files: u64,
    unread: u64,
    clean: u64,
    unsupported: u64,
    not_launched: u64,
    with_findings: u64,
    /// Kernels by kind of finding.
    kinds: BTreeMap<String, u64>,
    last_file: Option<std::path::PathBuf>,
}

impl Tally {
    /// Counts a kernel, and prints a line about it unless it is clean.
    pub(crate) fn add(&mut self, path: &Path, kernel: &EntryFacts, trial: Trial) {
        if self.last_file.as_deref() != Some(path) {
            self.files += 1;
            self.last_file = Some(path.to_owned());
        }
        let say = |what: &str| println!("{}: {}: {what}", path.display(), kernel.name);
        match trial {
            Trial::Ran(found) if found.is_empty() => self.clean += 1,
            Trial::Ran(found) => {
                self.with_findings += 1;
                for found in found {
                    *self.kinds.entry(found.kind).or_default() += 1;
                    say(&found.text.replace('\n', " "));
                }
            }
            Trial::Unsupported => self.unsupported += 1,
            Trial::NotLaunched(why) => {
                self.not_launched += 1;
                say(&format!("not launched: {}", why.replace('\n', " ")));
            }
        }
    }

    /// Counts a file that could not be read or compiled.
    pub(crate) fn add_unread(&mut self, path: &Path, why: &str) {
        self.unread += 1;
        println!("{}: {}", path.display(), why.lines().take(3).collect::<Vec<_>>().join(" "));
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, unread, clean, unsupported, not_launched, with_findings, kinds, .. } = self;
        let kernels = clean + unsupported + not_launched + with_findings;
        writeln!(f, "{files} files with kernels, {unread} that do not compile")?;
        for (kind, count) in kinds {
            writeln!(f, "  {kind}: {count} kernels")?;
        }
        write!(
            f,
            "{kernels} kernels: {} executed, {clean} clean, {with_findings} with findings; {unsupported} only on a GPU, {not_launched} not launched",
            clean + with_findings
        )
    }
}
