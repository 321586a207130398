//! No two public types of the library crates share a name.
//!
//! A reader who meets `Memory` in an error, a signature or a search result must know which one is meant without its path.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::tree::Tree;
use crate::workspace::Package;

/// Every crate has these, as Rust's crates do.
const EVERYWHERE: [&str; 3] = ["Error", "ErrorKind", "Result"];

const KEYWORDS: [&str; 5] = ["pub struct ", "pub enum ", "pub trait ", "pub type ", "pub union "];

/// Public types have different names.
pub(crate) fn unique(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let mut names: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in tree.ending(".rs").filter(|file| is_library(&file.path)) {
        for (number, line) in file.lines() {
            if let Some(name) = declared(line).filter(|name| !EVERYWHERE.contains(name)) {
                names.entry(name).or_default().push((&file.path, number));
            }
        }
    }
    names
        .iter()
        .filter(|(_, places)| places.iter().any(|(path, _)| crate_of(path) != crate_of(places[0].0)))
        .map(|(name, places)| {
            let (path, line) = places[1];
            Finding::new(path, line, format!("`{name}` is also a public type in {}; rename one", places[0].0))
        })
        .collect()
}

/// Files of crates that others use; commands and benchmarks have no users.
fn is_library(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.starts_with("crates/kiln-cli/")
}

fn crate_of(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// The type that a line declares. Declarations inside of macros and modules are indented and left out.
fn declared(line: &str) -> Option<&str> {
    let rest = KEYWORDS.iter().find_map(|keyword| line.strip_prefix(keyword))?;
    Some(&rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_crates_is_found_and_one_of_two_files_of_a_crate_is_not() {
        let of = |files: &[(&str, &str)]| unique(&Tree::of(files), &[]).len();
        let (a, b) = ("crates/a/src/x.rs", "crates/b/src/x.rs");
        assert_eq!(of(&[(a, "pub struct Heap;\n"), (b, "pub enum Heap<T> {\n")]), 1);
        assert_eq!(of(&[(a, "pub struct Heap;\n"), ("crates/a/src/y.rs", "pub enum Heap {\n")]), 0);
        assert_eq!(of(&[(a, "pub struct Error;\n"), (b, "pub struct Error;\n")]), 0);
        assert_eq!(
            of(&[(a, "pub struct Heap;\n"), (b, "pub(crate) struct Heap;\n    pub struct Heap;\n")]),
            0
        );
    }
}
