//! Manifests that inherit what the workspace decided, and say why each dependency is there.

use super::finding::Finding;
use super::tree::{File, Tree};
use crate::workspace::Package;

const LICENSE: &str = "MIT OR Apache-2.0";
const LICENSE_FILES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
const ROOT: &str = "Cargo.toml";

/// Every package inherits the workspace's lints.
pub(crate) fn lints(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let without = manifests(tree, packages).filter(|(_, file)| {
        !entries(&file.text).any(|entry| entry.section == "lints" && entry.text == "workspace = true")
    });
    without.map(|(_, file)| Finding::new(&file.path, 1, "add `[lints]` with `workspace = true`")).collect()
}

/// Every package has the project's license, and the texts are there.
pub(crate) fn licenses(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let other = manifests(tree, packages).filter(|(package, _)| package.license.as_deref() != Some(LICENSE));
    let fields = other.map(|(_, file)| Finding::new(&file.path, 1, "add `license.workspace = true`"));
    let absent = LICENSE_FILES.iter().filter(|path| tree.file(path).is_none());
    fields.chain(absent.map(|path| Finding::new(path, 1, "put the license's text here"))).collect()
}

/// A member takes every dependency from the workspace, so that there is one version and one reason. Examples in the
/// documentation of a crate may need a crate above it: that is a dev-dependency by path, without a version, because a
/// published crate cannot name a version of a crate that depends on it.
pub(crate) fn shared_versions(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, file) in manifests(tree, packages) {
        for entry in entries(&file.text).filter(|entry| entry.section.ends_with("dependencies")) {
            let from_above = entry.section == "dev-dependencies"
                && entry.text.contains("path = ")
                && !entry.text.contains("version");
            if !entry.text.contains("workspace = true") && !from_above {
                let text = format!("take `{}` from [workspace.dependencies]", entry.name());
                findings.push(Finding::new(&file.path, entry.line, text));
            }
        }
    }
    findings
}

/// Each dependency from outside has a comment above it that says what it is for. One comment is enough for
/// neighbours of one family, such as `serde` and `serde_json`.
pub(crate) fn reasons(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let Some(file) = tree.file(ROOT) else { return Vec::new() };
    let ours = |name: &str| packages.iter().any(|package| package.name == name) || name.starts_with("kiln");
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    let mut family = "";
    for entry in entries(&file.text).filter(|entry| entry.section == "workspace.dependencies") {
        let above = entry.line.checked_sub(2).and_then(|index| lines.get(index));
        let explained = above.is_some_and(|line| line.starts_with('#'));
        let name = entry.name();
        let inherited = !family.is_empty() && name.starts_with(family);
        if explained {
            family = name;
        } else if !inherited && !ours(name) {
            let text = format!("say in a comment above what `{name}` is for");
            findings.push(Finding::new(ROOT, entry.line, text));
        }
    }
    findings
}

/// The manifests of the members.
fn manifests<'a>(tree: &'a Tree, packages: &'a [Package]) -> impl Iterator<Item = (&'a Package, &'a File)> {
    packages.iter().filter_map(|package| {
        let path = package.manifest.to_string_lossy();
        Some((package, tree.file(&path)?))
    })
}

/// One `name = value` line of a manifest.
struct Entry<'a> {
    section: &'a str,
    line: usize,
    text: &'a str,
}

impl<'a> Entry<'a> {
    /// What stands before the first `=` or `.`.
    fn name(&self) -> &'a str {
        self.text.split(['=', '.']).next().unwrap_or_default().trim()
    }
}

/// The entries of a manifest with the sections they stand in.
fn entries(text: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut section = "";
    (1..).zip(text.lines()).filter_map(move |(line, text)| {
        let text = text.trim();
        if let Some(name) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            return None;
        }
        (text.contains('=') && !text.starts_with('#')).then_some(Entry { section, line, text })
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::tidy::finding::{NONE, lines};

    const MEMBER: &str = "crates/a/Cargo.toml";

    fn package(license: Option<&str>) -> Package {
        Package {
            name: "a".into(),
            manifest: PathBuf::from(MEMBER),
            license: license.map(str::to_owned),
            published: true,
            features: Default::default(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        }
    }

    fn found(rule: super::super::Rule, path: &str, text: &str) -> Vec<usize> {
        lines(&rule(&Tree::of(&[(path, text)]), &[package(Some(LICENSE))]))
    }

    #[test]
    fn a_package_with_separate_lints_is_found() {
        assert_eq!(found(lints, MEMBER, "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"), NONE);
        assert_eq!(
            found(lints, MEMBER, "[package]\nworkspace = true\n[lints.rust]\nunsafe_code = \"warn\"\n"),
            [1]
        );
    }

    #[test]
    fn another_license_and_a_missing_text_are_found() {
        let whole = [(MEMBER, ""), (LICENSE_FILES[0], ""), (LICENSE_FILES[1], "")];
        assert_eq!(licenses(&Tree::of(&whole), &[package(Some(LICENSE))]).len(), 0);
        assert_eq!(licenses(&Tree::of(&whole), &[package(Some("MIT"))]).len(), 1);
        assert_eq!(licenses(&Tree::of(&whole), &[package(None)]).len(), 1);
        assert_eq!(licenses(&Tree::of(&whole[..2]), &[package(Some(LICENSE))]).len(), 1);
    }

    #[test]
    fn a_version_in_a_member_is_found() {
        let good = "[dependencies]\nb.workspace = true\nc = { workspace = true, optional = true }\n";
        let bad = "[dependencies]\nb = \"1\"\n[dev-dependencies]\nc = { version = \"1\" }\n\
                   [target.'cfg(unix)'.dependencies]\nd = { path = \"../d\" }\n[features]\ne = []\n";
        assert_eq!(found(shared_versions, MEMBER, good), NONE);
        assert_eq!(found(shared_versions, MEMBER, bad), [2, 4, 6]);
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let good = "[workspace.dependencies]\nkiln-a = { path = \"a\" }\n\n# Text in and out.\nserde = \"1\"\nserde_json = \"1\"\n";
        let bad =
            "[workspace.dependencies]\n# Text in and out.\nserde = \"1\"\nclap = \"4\"\n\nhalf = \"2\"\n";
        assert_eq!(found(reasons, ROOT, good), NONE);
        assert_eq!(found(reasons, ROOT, bad), [4, 6]);
    }
}
