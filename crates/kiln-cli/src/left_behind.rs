//! Hidden files beside a place, and those that commands leave which are killed.
//!
//! Such a file is called `.NAME.PROCESS.ENDING`. That of a process which is gone is no one's.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_watch::FilePattern;

use crate::console::complain;
use crate::live_process::is_alive;

/// The hidden name of this process beside a place; none if the place has no name.
pub(crate) fn hidden(place: &Path, ending: &str) -> Option<PathBuf> {
    let (mut name, behind) = around(place, ending)?;
    name.push(std::process::id().to_string());
    name.push(behind);
    Some(place.with_file_name(name))
}

/// The hidden files that processes left beside a place which are gone. One of a process that lives is told.
pub(crate) fn found(place: &Path, ending: &str) -> Vec<PathBuf> {
    let Some((before, behind)) = around(place, ending) else { return Vec::new() };
    let pattern = FilePattern::around(place, &before, &behind);
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut gone: Vec<PathBuf> = Vec::new();
    for (process, path) in entries.filter_map(|path| Some((pattern.number(&path)?, path))) {
        // This process has not made its own yet: one with its number did.
        if process != std::process::id() && is_alive(process) {
            let path = path.display();
            complain(format_args!(
                "{path}: note: process {process} is writing it, or a command that was killed left it; remove it if that process is no kiln"
            ));
        } else {
            gone.push(path);
        }
    }
    gone.sort();
    gone
}

/// Removes what was left beside a place, and tells it.
pub(crate) fn remove(place: &Path, ending: &str) {
    for path in found(place, ending) {
        if fs::remove_file(&path).is_ok() {
            complain(format_args!("{}: note: removed; a command that was killed left it", path.display()));
        }
    }
}

fn around(place: &Path, ending: &str) -> Option<(OsString, OsString)> {
    let mut before = OsString::from(".");
    before.push(place.file_name()?);
    before.push(".");
    Some((before, format!(".{ending}").into()))
}
