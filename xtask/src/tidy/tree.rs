//! The files the rules look at.
//!
//! Everything below the root that is text, except what git and cargo keep for themselves. The tree is walked rather
//! than asked from git, so that a file counts before it is added and an unpacked archive can be checked too.

use std::path::Path;

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
        let mut files = Vec::new();
        walk(root, root, &mut files)?;
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

fn walk(root: &Path, directory: &Path, files: &mut Vec<File>) -> Result {
    let entries = directory.read_dir().map_err(|error| Failure::file("read", directory, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| Failure::file("read", directory, &error))?.path();
        let kept_away = path.file_name().is_some_and(|name| name == ".git") || path.join(CACHE_MARK).exists();
        if path.is_dir() && !path.is_symlink() && !kept_away {
            walk(root, &path, files)?;
        } else if path.is_file() {
            read(root, &path, files);
        }
    }
    Ok(())
}

/// Takes a file in unless it is not text, or was removed while we looked.
fn read(root: &Path, path: &Path, files: &mut Vec<File>) {
    let relative = path.strip_prefix(root).unwrap_or(path);
    if let Ok(text) = std::fs::read_to_string(path) {
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        files.push(File { path: parts.join("/"), text });
    }
}
