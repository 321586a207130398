//! The headers a source reads, so that a change in one of them is noticed.
//!
//! NVRTC does not tell which files it read. Every `#include` is looked for here where NVRTC would look, also those a condition
//! leaves out: a header too many costs a compilation that was not needed, and none is missed. A file that cannot be found is one the
//! compiler brings along or will complain about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Headers of one source before the search gives up; then what was read so far is the key's business, and the rest is not.
const MAX_HEADERS: usize = 4096;

/// The files a source includes, directly and through each other, with their contents.
pub(super) fn read_headers(text: &str, folders: &[PathBuf]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(Option<PathBuf>, String)> = names(text).map(|name| (None, name.to_owned())).collect();
    while let Some((from, name)) = open.pop() {
        let beside = from.iter().map(PathBuf::as_path);
        let candidates = beside.chain(folders.iter().map(PathBuf::as_path)).map(|folder| folder.join(&name));
        let Some((path, contents)) = candidates
            .into_iter()
            .find_map(|path| std::fs::read(&path).ok().map(|contents| (path, contents)))
        else {
            continue;
        };
        if found.len() >= MAX_HEADERS || found.contains_key(&path) {
            continue;
        }
        let folder = path.parent().map(Path::to_owned);
        let text = String::from_utf8_lossy(&contents);
        open.extend(names(&text).map(|name| (folder.clone(), name.to_owned())));
        found.insert(path, contents);
    }
    found
}

/// The names behind `#include`, in either kind of quotes.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        let end = match name.chars().next()? {
            '"' => '"',
            '<' => '>',
            _ => return None,
        };
        name[1..].split_once(end).map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_followed_through_each_other_and_circles_end() {
        let folder = std::env::temp_dir().join(format!("kiln-includes-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        std::fs::write(folder.join("a.h"), "#pragma once\n#  include \"inner/b.h\"\n").unwrap();
        std::fs::write(folder.join("inner/b.h"), "#include \"c.h\"\n#include <missing.h>\n").unwrap();
        std::fs::write(folder.join("inner/c.h"), "#include \"b.h\"\n").unwrap();
        let found =
            read_headers("#include <a.h>\n#include\n#include \"open\n", std::slice::from_ref(&folder));
        let names: Vec<_> =
            found.keys().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["a.h", "b.h", "c.h"]);
    }
}
