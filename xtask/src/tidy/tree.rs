//! The files the rules look at.
//!
//! Everything below the root that is text, except git's own directory, build directories, and what the `.gitignore` of the
//! root names there. The tree is walked rather than asked from git, so that a file counts before it is added and an
//! unpacked archive can be checked too.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// A cargo target directory, wherever it is, holds this file.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// All files.
pub(crate) struct Tree {
    /// Sorted by path.
    pub(crate) files: Vec<File>,
}

/// One file.
pub(crate) struct File {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: String,
}

impl Tree {
    /// Reads a directory.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let ignored = std::fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut left_out: Vec<_> = ignored_paths(&ignored).map(|path| root.join(path)).collect();
        left_out.push(root.join(".git"));
        let mut files = Vec::new();
        walk(root, root, &left_out, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A tree out of paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect() }
    }

    /// The files whose name ends so.
    pub(crate) fn ending<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(suffix))
    }

    /// A file by its path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether there is a file or a directory of that path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty() || self.files.iter().any(|file| file.path == path || file.path.starts_with(&below))
    }
}

impl File {
    /// Its lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// The entries of an ignore file that name one place below the root; patterns stay what they are, for git.
fn ignored_paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim().strip_prefix('/')).map(|path| path.trim_end_matches('/'))
}

fn walk(root: &Path, directory: &Path, left_out: &[PathBuf], files: &mut Vec<File>) -> Result {
    let entries = directory.read_dir().map_err(|error| Failure::file("read", directory, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| Failure::file("read", directory, &error))?.path();
        if left_out.contains(&path) || path.join(CACHE_MARK).exists() {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            walk(root, &path, left_out, files)?;
        } else if path.is_file() {
            read(root, &path, files);
        }
    }
    Ok(())
}

/// Takes a file in unless it was removed while we looked; one that is not text has none.
fn read(root: &Path, path: &Path, files: &mut Vec<File>) {
    let relative = path.strip_prefix(root).unwrap_or(path);
    if let Ok(bytes) = std::fs::read(path) {
        let text = String::from_utf8(bytes).unwrap_or_default();
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        files.push(File { path: parts.join("/"), text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_places_are_taken_from_an_ignore_file() {
        let paths: Vec<_> = ignored_paths("/target\n# /comment\n*.log\n/out/\n").collect();
        assert_eq!(paths, ["target", "out"]);
    }
}
