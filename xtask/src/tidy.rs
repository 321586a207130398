//! `cargo xtask tidy`: the project's style rules that the compiler does not check.
//!
//! A rule is a function from the tree and its packages to findings; it reads nothing else, so its test is a few
//! lines of text. A finding names file and line, and says what to do.

mod banned_words;
mod boundaries;
mod changelog;
mod cycles;
mod driver_size;
mod file_layout;
mod file_names;
mod finding;
mod function_length;
mod links;
mod local_paths;
mod manifests;
mod source_text;
mod test_features;
mod todo_marks;
mod tree;
mod type_names;
mod whitespace;

use crate::failure::{Failure, Result};
use crate::workspace::{Package, Workspace};
use finding::Finding;
use tree::Tree;

/// One house rule.
type Rule = fn(&Tree, &[Package]) -> Vec<Finding>;

/// All of them.
const RULES: &[Rule] = &[
    file_layout::file_length,
    file_layout::header,
    file_layout::crate_root,
    function_length::length,
    file_names::file_names,
    todo_marks::unfinished,
    manifests::lints,
    manifests::licenses,
    manifests::shared_versions,
    manifests::reasons,
    boundaries::dependencies,
    boundaries::unsafe_code,
    test_features::reach,
    links::relative_links,
    whitespace::line_ends,
    local_paths::machine_paths,
    banned_words::unwanted,
    type_names::unique,
    changelog::unreleased,
    cycles::modules,
    driver_size::methods,
    driver_size::commands,
];

/// Applies every rule and prints what they find.
pub(crate) fn run(workspace: &Workspace) -> Result {
    let tree = Tree::load(&workspace.root)?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree, &workspace.packages)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("{} files keep {} rules", tree.files.len(), RULES.len());
            Ok(())
        }
        count => Err(Failure::new(format!("tidy has {count} findings"))),
    }
}
