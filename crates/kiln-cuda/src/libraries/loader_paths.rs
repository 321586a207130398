//! The folders the system's loader looks into, from `LD_LIBRARY_PATH` and the loader's configuration.

use std::path::{Path, PathBuf};

use super::search_environment::{SearchEnvironment, entries, file_name};

/// Folders every loader looks into, besides those of its configuration.
const STANDARD: [&str; 8] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "lib",
    "usr/lib",
];

/// Configurations include each other; deeper than this they include themselves.
const DEEPEST_INCLUDE: u32 = 8;

impl SearchEnvironment {
    /// The folders, in the loader's order.
    pub(crate) fn loader_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        if let Some(list) = self.variable("LD_LIBRARY_PATH") {
            folders.extend(std::env::split_paths(list).filter(|folder| !folder.as_os_str().is_empty()));
        }
        self.read_configuration(&self.system_path("etc/ld.so.conf"), 0, &mut folders);
        folders.extend(STANDARD.map(|folder| self.system_path(folder)));
        folders
    }

    fn read_configuration(&self, file: &Path, depth: u32, folders: &mut Vec<PathBuf>) {
        let Ok(text) = std::fs::read_to_string(file) else { return };
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            match line.strip_prefix("include").map(str::trim) {
                Some(pattern) if depth < DEEPEST_INCLUDE => {
                    for included in self.matching(pattern) {
                        self.read_configuration(&included, depth + 1, folders);
                    }
                }
                Some(_) => {}
                None if line.is_empty() => {}
                None => folders.push(self.system_path(line)),
            }
        }
    }

    /// The files of an include line, which may have one star in the name.
    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let path = match pattern.starts_with('/') {
            true => self.system_path(pattern),
            false => self.system_path("etc").join(pattern),
        };
        let (Some(folder), Some((before, after))) = (path.parent(), file_name(&path).split_once('*')) else {
            return vec![path];
        };
        let fits = |name: &str| {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        };
        entries(folder).into_iter().filter(|entry| fits(file_name(entry))).collect()
    }
}
