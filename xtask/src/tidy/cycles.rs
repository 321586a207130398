//! No import cycle between the modules of a crate.
//!
//! The modules at the root of a crate are its layers: `src/launch.rs` and everything below `src/launch/` are one of them. A
//! module that imports another, and is imported by it in turn, cannot be read, tested or moved without it. Tests are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::{File, Tree};
use crate::workspace::Package;

/// Crates whose modules still import each other. One that no longer does is a finding too, so that the list shrinks.
const EXEMPT: &[&str] = &[
    "kiln-bench",
    "kiln-conform",
    "kiln-cuda",
    "kiln-driver",
    "kiln-ir",
    "kiln-mem",
    "kiln-order",
    "kiln-ptx",
    "kiln-sim",
];

/// Where a module imports another: the first place.
type Edges = BTreeMap<String, BTreeMap<String, Place>>;

/// A line of a file.
#[derive(Clone, Debug)]
struct Place {
    path: String,
    line: usize,
}

/// No two modules at the root of a crate import each other, by way of others or not.
pub(crate) fn modules(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| in_package(tree, package)).collect()
}

fn in_package(tree: &Tree, package: &Package) -> Vec<Finding> {
    let manifest = package.manifest.to_string_lossy();
    let source = package.manifest.parent().map(|folder| format!("{}/src/", folder.to_string_lossy()));
    let edges = source.map(|source| edges(tree, &source)).unwrap_or_default();
    let cycles = cycles(&edges);
    match (EXEMPT.contains(&package.name.as_str()), cycles.is_empty()) {
        (true, true) => {
            let text =
                format!("{} has no import cycle; take it out of EXEMPT in tidy/cycles.rs", package.name);
            vec![Finding::new(&manifest, 1, text)]
        }
        (true, false) => Vec::new(),
        (false, _) => cycles.iter().map(|members| finding(&edges, members)).collect(),
    }
}

/// A cycle with a place for each of its imports.
fn finding(edges: &Edges, members: &BTreeSet<String>) -> Finding {
    let path = shortest_cycle(edges, members);
    let place = |from: &String, to: &String| edges.get(from).and_then(|targets| targets.get(to));
    let imports: Vec<String> = path
        .iter()
        .zip(path.iter().cycle().skip(1))
        .filter_map(|(from, to)| {
            place(from, to).map(|at| format!("{from} imports {to} ({}:{})", at.path, at.line))
        })
        .collect();
    let (count, names) = (members.len(), members.iter().cloned().collect::<Vec<_>>().join(", "));
    let text =
        format!("{count} modules import each other: {names}; {}; move one of these", imports.join(", "));
    match path.first().zip(path.get(1)).and_then(|(from, to)| place(from, to)) {
        Some(at) => Finding::new(&at.path, at.line, text),
        None => Finding::new("Cargo.toml", 1, text),
    }
}

/// What each module imports of the others.
fn edges(tree: &Tree, source: &str) -> Edges {
    let files: Vec<(&File, Vec<&str>)> = tree
        .ending(".rs")
        .filter_map(|file| Some((file, file.path.strip_prefix(source)?.split('/').collect())))
        .collect();
    let is_root = |parts: &[&str]| matches!(parts, ["lib.rs" | "main.rs"] | ["bin", ..]);
    let names: BTreeSet<&str> =
        files.iter().filter(|(_, parts)| !is_root(parts)).map(|(_, parts)| module_of(parts)).collect();
    let root =
        tree.file(&format!("{source}lib.rs")).map(|file| exports(&file.text, &names)).unwrap_or_default();
    let mut edges = Edges::new();
    for (file, parts) in files.iter().filter(|(_, parts)| !is_root(parts) && !is_test(parts)) {
        let own = module_of(parts);
        let depth = if parts.last() == Some(&"mod.rs") { parts.len() - 1 } else { parts.len() };
        for (line, item) in imports(&file.text, depth) {
            let target = if names.contains(item.as_str()) { Some(item) } else { root.get(&item).cloned() };
            if let Some(target) = target.filter(|target| target != own) {
                let place = || Place { path: file.path.clone(), line };
                edges.entry(own.to_owned()).or_default().entry(target).or_insert_with(place);
            }
        }
    }
    edges
}

/// The module at the root that a file belongs to.
fn module_of<'a>(parts: &[&'a str]) -> &'a str {
    parts.first().map_or("", |first| first.strip_suffix(".rs").unwrap_or(first))
}

fn is_test(parts: &[&str]) -> bool {
    parts.last().is_some_and(|name| name.ends_with("_tests.rs") || *name == "tests.rs")
}

/// What the root of a crate exports, and from which of its modules.
fn exports(text: &str, modules: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let code = Masked::new(text).code;
    let mut exports = BTreeMap::new();
    for statement in code.split(';') {
        let Some((_, path)) = statement.rsplit_once("use ") else { continue };
        let path = path.trim();
        let module = first_word(path);
        if modules.contains(module) {
            let words = path.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
            exports.extend(words.skip(1).map(|word| (word.to_owned(), module.to_owned())));
        }
    }
    exports
}

/// What a file names at the root of its crate, with the lines.
fn imports(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code = Masked::new(text).code;
    let code = without_tests(&code);
    let above = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", above.as_str()] {
        for (at, _) in code.match_indices(root) {
            let before = code.get(..at).unwrap_or_default();
            // A part of another word, of a longer chain of `super`s, or of a visibility.
            if before.ends_with(is_word) || before.ends_with("::") || before.ends_with("(in ") {
                continue;
            }
            let line = before.matches('\n').count() + 1;
            let rest = code.get(at + root.len()..).unwrap_or_default();
            found.extend(heads(rest).into_iter().map(|head| (line, head)));
        }
    }
    found.sort();
    found
}

/// The first word of a path, or of each path in a group.
fn heads(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else { return vec![first_word(rest).to_owned()] };
    let (mut heads, mut depth, mut begins) = (Vec::new(), 1_usize, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => begins = true,
            c if begins && is_word(c) => {
                heads.push(first_word(group.get(at..).unwrap_or_default()).to_owned());
                begins = false;
            }
            _ => {}
        }
    }
    heads
}

/// The code before the tests of a file.
fn without_tests(code: &str) -> &str {
    let marks = code.match_indices("#[cfg(test)]");
    let tests =
        marks.map(|(at, mark)| (at, code.get(at + mark.len()..).unwrap_or_default())).find(|(_, rest)| {
            let rest = rest.trim_start();
            rest.starts_with("mod ")
                && rest.find('{').is_some_and(|open| rest.find(';').is_none_or(|end| open < end))
        });
    tests.and_then(|(at, _)| code.get(..at)).unwrap_or(code)
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !is_word(c)).next().unwrap_or_default()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Groups of modules that all reach each other.
fn cycles(edges: &Edges) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|from| (from, reach(edges, from))).collect();
    let mut groups = BTreeSet::new();
    for (from, targets) in &reached {
        if targets.contains(from) {
            let back = |to: &&&String| reached.get(**to).is_some_and(|its| its.contains(*from));
            groups.insert(
                targets.iter().filter(back).map(|name| (**name).clone()).collect::<BTreeSet<String>>(),
            );
        }
    }
    groups.into_iter().collect()
}

/// Everything a module imports, also by way of others.
fn reach<'a>(edges: &'a Edges, from: &'a String) -> BTreeSet<&'a String> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(next) = left.pop() {
        let targets = edges.get(next).into_iter().flat_map(BTreeMap::keys);
        left.extend(targets.filter(|to| reached.insert(*to)));
    }
    reached
}

/// The shortest way around within a group.
fn shortest_cycle(edges: &Edges, members: &BTreeSet<String>) -> Vec<String> {
    let ways = members.iter().filter_map(|start| way_back(edges, start));
    ways.min_by_key(Vec::len).unwrap_or_default()
}

/// The shortest way from a module back to itself, without its end.
fn way_back(edges: &Edges, start: &String) -> Option<Vec<String>> {
    let mut ways = VecDeque::from([vec![start.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for to in way.last().and_then(|last| edges.get(last)).into_iter().flat_map(BTreeMap::keys) {
            if to == start {
                return Some(way);
            }
            if seen.insert(to.clone()) {
                ways.push_back(way.iter().chain([to]).cloned().collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let package = Package {
            name: "a".into(),
            manifest: PathBuf::from("crates/a/Cargo.toml"),
            license: None,
            published: true,
            features: Default::default(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        modules(&Tree::of(&files), &[package]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn layers_that_import_downwards_are_fine() {
        let files = [
            ("lib.rs", "mod low;\nmod high;\npub use high::High;\npub use low::Low;\n"),
            ("low.rs", "use std::fmt;\n"),
            ("high.rs", "use crate::low::Low;\nmod part;\n"),
            ("high/part.rs", "use super::other;\nuse crate::high::High;\nuse crate::Low;\n"),
        ];
        assert_eq!(found(&files), [] as [String; 0]);
    }

    #[test]
    fn a_cycle_is_found_with_a_place_for_each_import() {
        let files = [
            ("one.rs", "use std::fmt;\nuse crate::two::Two;\n"),
            ("two.rs", ""),
            ("two/deep.rs", "use crate::{three::{A, B}, four};\n"),
            ("three.rs", "fn f() { crate::one::g(); }\n"),
            ("four.rs", ""),
        ];
        let findings = found(&files);
        assert_eq!(findings.len(), 1);
        let text = &findings[0];
        assert!(
            text.starts_with("crates/a/src/one.rs:2: 3 modules import each other: one, three, two;"),
            "{text}"
        );
        for part in
            ["one imports two (crates/a/src/one.rs:2)", "two imports three (crates/a/src/two/deep.rs:1)"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains("three imports one (crates/a/src/three.rs:1)"), "{text}");
    }

    #[test]
    fn imports_by_way_of_the_root_and_of_super_count() {
        let by_root = [
            ("lib.rs", "pub use one::{Inner as One, inner::Deep};\n"),
            ("one.rs", "use super::two::Two;\n"),
            ("two.rs", "use crate::Deep;\n"),
        ];
        assert_eq!(found(&by_root).len(), 1);
        let by_super =
            [("one/part.rs", "use super::super::two::Two;\n"), ("two.rs", "use crate::one::One;\n")];
        assert_eq!(found(&by_super).len(), 1);
    }

    #[test]
    fn tests_comments_texts_and_visibilities_do_not_count() {
        let back = "// crate::one\n/// [`One`](crate::one::One)\npub(in crate::one) const TEXT: &str = \"crate::one::One\";\n\
                    #[cfg(test)]\nmod two_tests;\nuse std::fmt;\n#[cfg(test)]\nmod tests {\n    use crate::one::One;\n}\n";
        let files = [
            ("one.rs", "use crate::two::Two;\n"),
            ("two.rs", back),
            ("two/two_tests.rs", "use crate::one::One;\n"),
        ];
        assert_eq!(found(&files), [] as [String; 0]);
    }

    #[test]
    fn an_exempt_crate_without_a_cycle_is_found() {
        let [exempt, ..] = EXEMPT else { return };
        let package = |name: &str| Package {
            name: name.into(),
            manifest: PathBuf::from("crates/a/Cargo.toml"),
            license: None,
            published: true,
            features: Default::default(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        let cyclic =
            [("crates/a/src/one.rs", "use crate::two;\n"), ("crates/a/src/two.rs", "use crate::one;\n")];
        let count = |name, files: &[(&str, &str)]| modules(&Tree::of(files), &[package(name)]).len();
        assert_eq!([count(exempt, &cyclic), count("a", &cyclic)], [0, 1]);
        assert_eq!([count(exempt, &cyclic[..1]), count("a", &cyclic[..1])], [1, 0]);
    }

    #[test]
    fn two_cycles_are_two_findings() {
        let files = [
            ("a.rs", "use crate::b;\n"),
            ("b.rs", "use crate::a;\n"),
            ("c.rs", "use crate::d;\nuse crate::a;\n"),
            ("d.rs", "use crate::c;\n"),
        ];
        assert_eq!(found(&files).len(), 2);
    }
}
