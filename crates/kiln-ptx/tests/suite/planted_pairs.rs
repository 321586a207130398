//! Planted bugs of undefined values, run by the executor alone. The whole set runs on a simulated device, in the tests of `kiln`.

use std::path::Path;

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, DeviceHeap, ExecFindingKind, ExecProgram, GlobalMemory, LaunchShape, Options, SimpleMemory,
};

/// A kernel with a planted bug, and its fixed twin.
pub(crate) struct PlantedPair {
    pub(crate) name: String,
    program: ExecProgram,
    block: u32,
    arguments: Vec<String>,
}

impl PlantedPair {
    /// The pairs whose names begin with one of these.
    pub(crate) fn all(prefixes: &[&str]) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln/tests/planted/pairs");
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let wanted = |path: &&std::path::PathBuf| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            path.extension().is_some_and(|end| end == "cu")
                && prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        files.iter().filter(wanted).map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let source = std::fs::read_to_string(path).unwrap();
        let head = |word: &str| {
            source.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(word)).unwrap()
        };
        let launch: Vec<&str> = head("launch: ").split_whitespace().collect();
        let ["grid", "1", "block", block] = launch[..] else { panic!("{path:?} is launched as {launch:?}") };
        let ptx = std::fs::read_to_string(path.with_extension("ptx")).unwrap();
        Self {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            program: ExecProgram::new(PtxModule::parse(&ptx).unwrap()),
            block: block.parse().unwrap(),
            arguments: head("args: ").split("; ").map(str::to_owned).collect(),
        }
    }

    /// Whether a use of an undefined value, a bad use of the heap, or an undefined result is found under any of four seeds.
    pub(crate) fn is_found(&self, kernel: &str, options: &Options<'_>) -> bool {
        (0..4).any(|seed| self.found(kernel, &Options { seed, ..*options }))
    }

    fn found(&self, kernel: &str, options: &Options<'_>) -> bool {
        let mut memory = SimpleMemory::new();
        let (mut bytes, mut returned, mut structs) = (Vec::new(), Vec::new(), Vec::new());
        for argument in &self.arguments {
            let words: Vec<&str> = argument.split_whitespace().collect();
            let len: u64 = words[2].parse().unwrap();
            let content: Vec<u8> = (0..len as u32).flat_map(u32::to_le_bytes).collect();
            let address = match words[0] {
                "in" => memory.allocate_with(&content),
                "inout" => memory.allocate(4 * len),
                "out" | "reused" => memory.allocate_uninitialised(4 * len),
                "returned" => memory.allocate_uninitialised(4 * len),
                other => panic!("{other}"),
            };
            if words[0] == "returned" {
                returned.push((address, len));
            }
            if words[0] == "out" {
                structs.push(address);
            }
            bytes.extend(address.to_le_bytes());
        }
        let mut globals = Vec::new();
        for (at, variable) in self.program.variables().iter().enumerate() {
            globals.push(memory.allocate(variable.bytes));
            memory.write(globals[at], &self.program.contents(at, &[]));
        }
        let heap = DeviceHeap::default();
        let options = Options { checks: Checks::ALL, heap: Some(&heap), ..*options };
        let entry = self.program.entry(&format!("{kernel}_{}", self.name)).unwrap();
        let shape = LaunchShape::linear(1, self.block);
        let outcome = entry.launch(&shape, &bytes, &globals, &memory, &options).unwrap();
        let is_meant = |kind: &ExecFindingKind| match kind {
            ExecFindingKind::OutOfBounds(access) => matches!(access.memory, "shared" | "local"),
            kind => matches!(
                kind,
                ExecFindingKind::Uninitialised { .. }
                    | ExecFindingKind::Unassigned { .. }
                    | ExecFindingKind::UseAfterFree(_)
                    | ExecFindingKind::BadFree(_)
                    | ExecFindingKind::Race { .. }
            ),
        };
        let undefined = returned.iter().any(|(address, len)| {
            let span = memory.span(*address).unwrap();
            (0..*len).any(|word| span.cells.undefined_bits(4 * word, 4) != 0)
        });
        let is_value =
            |address: &u64| memory.undefined_stores(*address).iter().any(|(_, store)| !store.may_be_padding);
        let undefined = undefined || structs.iter().any(is_value);
        undefined || outcome.findings.iter().any(|finding| is_meant(&finding.kind))
    }
}

/// The pairs that the executor judges alone.
pub(crate) const PREFIXES: [&str; 5] =
    ["undefined_", "uninitialised_", "heap_", "bounds_shared_neighbour", "bounds_local_before_callee"];

#[test]
fn uses_of_undefined_values_are_found_and_their_twins_are_clean() {
    let pairs = PlantedPair::all(&PREFIXES);
    assert!(pairs.len() >= 25, "{} pairs", pairs.len());
    let options = Options::default();
    let missed: Vec<&str> =
        pairs.iter().filter(|pair| !pair.is_found("bug", &options)).map(|pair| &*pair.name).collect();
    let invented: Vec<&str> =
        pairs.iter().filter(|pair| pair.is_found("fixed", &options)).map(|pair| &*pair.name).collect();
    // What leaves a block of the heap is out of bounds and no matter of undefined values.
    assert_eq!((missed, invented), (vec!["heap_past_the_end"], vec![]));
}
