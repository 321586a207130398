//! Counts what can be told about kernels without launching them: whether they parse, whether their effects are known, whether they can be
//! executed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use kiln_ptx::EntryFacts;

use crate::kernel_file::{KernelFile, Unread};

/// Counts for one of the paths on the command line, which is a project.
#[derive(Default)]
struct Project {
    path: PathBuf,
    files: u64,
    /// Files of CUDA C that do not compile; their kernels are not counted.
    not_compiled: u64,
    entries: u64,
    parsed: u64,
    /// Parsed, and no access that cannot be followed.
    effects_known: u64,
    /// Parsed, and without an instruction that is refused.
    executable: u64,
    /// Parsed, effects known and executable.
    all: u64,
}

/// Counts for all projects.
#[derive(Default)]
pub(crate) struct Count {
    projects: Vec<Project>,
    /// Entries by the first instruction that is refused.
    refused: BTreeMap<String, u64>,
    /// Entries by the reason of their first doubt.
    doubts: BTreeMap<&'static str, u64>,
}

impl Count {
    /// What follows belongs to this path.
    pub(crate) fn begin(&mut self, path: &Path) {
        self.projects.push(Project { path: path.to_owned(), ..Project::default() });
    }

    /// Counts the kernels of a file, and prints a line for each that falls short.
    pub(crate) fn add(&mut self, path: &Path, file: Result<&KernelFile, &Unread>) {
        let Some(project) = self.projects.last_mut() else { return };
        project.files += 1;
        match file {
            Ok(file) => file.kernels().iter().for_each(|kernel| self.add_kernel(path, file, kernel)),
            Err(unread) => {
                println!("{}: {}", path.display(), unread.why.lines().next().unwrap_or_default());
                project.not_compiled += u64::from(unread.entries.is_none());
                project.entries += unread.entries.unwrap_or(0);
            }
        }
    }

    fn add_kernel(&mut self, path: &Path, file: &KernelFile, kernel: &EntryFacts) {
        let Some(project) = self.projects.last_mut() else { return };
        let say = |what: String| println!("{}: {}: {what}", path.display(), kernel.name);
        let doubt = kernel.doubts.first();
        let refused = file.refused(&kernel.name);
        project.entries += 1;
        project.parsed += 1;
        project.effects_known += u64::from(doubt.is_none());
        project.executable += u64::from(refused.is_none());
        project.all += u64::from(doubt.is_none() && refused.is_none());
        if let Some(doubt) = doubt {
            *self.doubts.entry(doubt.reason).or_default() += 1;
            say(format!("cannot tell: {}, PTX line {}", doubt.reason, doubt.position.line));
        }
        if let Some(refused) = refused {
            say(format!("refused: {}, PTX line {}", refused.what, refused.line));
            *self.refused.entry(refused.what).or_default() += 1;
        }
    }

    /// Whether every file and every kernel was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.projects.iter().all(|project| project.not_compiled == 0 && project.parsed == project.entries)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| project | files | not compiled | entries | parse | effects known | can execute | all three |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        let mut total = Project { path: PathBuf::from("all"), ..Project::default() };
        for project in &self.projects {
            total.files += project.files;
            total.not_compiled += project.not_compiled;
            total.entries += project.entries;
            total.parsed += project.parsed;
            total.effects_known += project.effects_known;
            total.executable += project.executable;
            total.all += project.all;
        }
        for project in self.projects.iter().chain([&total]) {
            let Project { path, files, not_compiled, entries, parsed, effects_known, executable, all } =
                project;
            let path = path.display();
            write!(
                f,
                "| {path} | {files} | {not_compiled} | {entries} | {parsed} | {effects_known} | {executable} | {all}"
            )?;
            writeln!(f, " ({:.1} %) |", 100.0 * *all as f64 / (*entries).max(1) as f64)?;
        }
        for (reason, count) in &self.doubts {
            writeln!(f, "cannot tell: {count} entries: {reason}")?;
        }
        for (what, count) in &self.refused {
            writeln!(f, "refused: {count} entries: {what}")?;
        }
        Ok(())
    }
}
