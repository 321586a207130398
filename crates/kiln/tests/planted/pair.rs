//! A file with a planted bug and its fixed twin.

use std::path::Path;

/// A pair of kernels, and what is to be found in the first.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) ptx: String,
    pub(crate) arguments: Vec<Argument>,
    /// What must be found, by line.
    pub(crate) expected: Vec<(String, u32)>,
    launch: Shape,
    bug_launch: Option<Shape>,
}

/// The shape of a launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) grid: u32,
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) cooperative: bool,
}

/// An argument; `pairs/README.md` says what each is. All elements have four bytes.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    In(usize),
    InOut(usize),
    Out(usize),
    Returned(usize),
    Beside(usize),
    Reused(usize),
    Value([u8; 4]),
    Null,
    Address(usize),
    Freed(usize),
    AddressOf(usize),
}

impl Pair {
    /// Every pair, by name.
    pub(crate) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted/pairs");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut sources: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|end| end == "cu")).collect();
        sources.sort();
        sources.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let source = std::fs::read_to_string(path).unwrap();
        let head = |word: &str| source.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(word));
        let launch = head("launch: ").unwrap_or_else(|| panic!("{name} does not say how it is launched"));
        let arguments = head("args: ").unwrap_or_else(|| panic!("{name} does not say its arguments"));
        let marked = |(line, text): (u32, &str)| Some((text.split_once("// expect: ")?.1.to_owned(), line));
        let pair = Self {
            ptx: std::fs::read_to_string(path.with_extension("ptx")).unwrap(),
            arguments: arguments.split("; ").map(Argument::read).collect(),
            expected: (1..).zip(source.lines()).filter_map(marked).collect(),
            launch: Shape::read(launch),
            bug_launch: head("launch bug: ").map(Shape::read),
            name,
        };
        assert!(!pair.expected.is_empty(), "{} expects nothing", pair.name);
        assert!(pair.ptx.contains(&format!("\"{}.cu\"", pair.name)), "{} has PTX without lines", pair.name);
        pair
    }

    /// The shape in which one of the kernels is launched.
    pub(crate) fn shape(&self, kernel: &str) -> &Shape {
        self.bug_launch.as_ref().filter(|_| kernel.starts_with("bug_")).unwrap_or(&self.launch)
    }

    /// Whether a finding of that kind at those lines is one that was planted.
    pub(crate) fn expects(&self, kind: &str, lines: &[u32]) -> bool {
        let planted = |line: &u32| self.expected.iter().any(|(word, at)| word == kind && at == line);
        !lines.is_empty() && lines.iter().all(planted)
    }
}

impl Shape {
    fn read(text: &str) -> Self {
        let mut shape = Self { grid: 1, block: [1; 3], ..Self::default() };
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap();
            match word {
                "grid" => shape.grid = number().parse().unwrap(),
                "block" => {
                    let sizes = number().split(',').map(|size| size.parse().unwrap());
                    shape.block.iter_mut().zip(sizes).for_each(|(extent, size)| *extent = size);
                }
                "shared" => shape.shared_bytes = number().parse().unwrap(),
                "cooperative" => shape.cooperative = true,
                other => panic!("`{other}` in `{text}`"),
            }
        }
        shape
    }
}

impl Argument {
    fn read(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let count = || words.last().unwrap().parse().unwrap();
        match words[..] {
            ["in", "u32", _] => Self::In(count()),
            ["inout", "u32", _] => Self::InOut(count()),
            ["out", "u32", _] => Self::Out(count()),
            ["returned", "u32", _] => Self::Returned(count()),
            ["beside", "u32", _] => Self::Beside(count()),
            ["reused", "u32", _] => Self::Reused(count()),
            ["value", "u32", value] => Self::Value(value.parse::<u32>().unwrap().to_le_bytes()),
            ["value", "i32", value] => Self::Value(value.parse::<i32>().unwrap().to_le_bytes()),
            ["null"] => Self::Null,
            ["address", "u32", _] => Self::Address(count()),
            ["freed", "u32", _] => Self::Freed(count()),
            ["addressof", _] => Self::AddressOf(count()),
            _ => panic!("`{text}` is not an argument"),
        }
    }
}
