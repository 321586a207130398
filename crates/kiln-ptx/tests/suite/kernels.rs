//! The kernels with planted mistakes, and a bench to run them on.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

const SOURCE: &str = include_str!("../kernels/checks.cu");
const PTX: &str = include_str!("../kernels/checks.ptx");

/// The line of the source that ends with `// marker`.
pub(crate) fn line(marker: &str) -> u32 {
    let end = format!("// {marker}");
    let at = SOURCE.lines().position(|line| line.ends_with(&end));
    at.unwrap_or_else(|| panic!("no line is marked {marker}")) as u32 + 1
}

/// The program, with memory to run it on.
pub(crate) struct Bench {
    pub memory: SimpleMemory,
    program: ExecProgram,
    globals: Vec<u64>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let program = ExecProgram::new(PtxModule::parse(PTX).unwrap());
        let mut memory = SimpleMemory::new();
        let globals: Vec<u64> = program.variables().iter().map(|v| memory.allocate(v.bytes)).collect();
        for (at, address) in globals.iter().enumerate() {
            assert!(memory.write(*address, &program.contents(at, &globals)));
        }
        Self { memory, program, globals }
    }

    /// Launches with the default checks.
    pub(crate) fn run(&self, entry: &str, shape: &LaunchShape, arguments: &[u64]) -> ExecOutcome {
        self.run_with(entry, shape, arguments, &Options::default())
    }

    /// Launches; each argument is cut to the size of its parameter.
    pub(crate) fn run_with(
        &self,
        entry: &str,
        shape: &LaunchShape,
        arguments: &[u64],
        options: &Options<'_>,
    ) -> ExecOutcome {
        let module = self.program.module();
        let parameters = &module.entry(entry).unwrap().parameters;
        assert_eq!(parameters.len(), arguments.len());
        let mut packed = Vec::new();
        for (formal, argument) in parameters.iter().zip(arguments) {
            let bytes = module.formal_variable(*formal).unwrap().shape.size_bytes() as usize;
            packed.resize(packed.len().next_multiple_of(bytes), 0);
            packed.extend(&argument.to_le_bytes()[..bytes]);
        }
        let entry = self.program.entry(entry).unwrap();
        entry.launch(shape, &packed, &self.globals, &self.memory, options).unwrap()
    }
}
