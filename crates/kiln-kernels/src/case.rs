//! A case: a kernel, its launch, its inputs and what must come out.

use crate::launch_arguments::CaseArguments;
use crate::seeded_inputs::Random;
use crate::source::CaseSource;

/// One kernel with everything needed to run and judge it.
///
/// ```
/// let case = kiln_kernels::cases().iter().find(|case| case.name == "saxpy").unwrap();
/// let arguments = case.arguments(1);
/// let expected = case.expected(&arguments);
/// assert!(expected.compare(&expected).is_ok());
/// assert!(expected.compare(&arguments).is_err(), "the kernel changes something");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, unique in the table.
    pub name: &'static str,
    /// The file it stands in.
    pub source: &'static CaseSource,
    /// The name of the kernel in the PTX.
    pub entry: &'static str,
    /// How it is launched.
    pub shape: CaseShape,
    /// How it ends.
    pub ending: Ending,
    pub(crate) make: fn(&mut Random) -> Vec<crate::CaseArgument>,
    pub(crate) oracle: fn(&mut CaseArguments),
    pub(crate) prints: Option<fn(&CaseArguments) -> Vec<String>>,
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseShape {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared_bytes: u32,
    /// Whether the blocks wait for each other.
    pub cooperative: bool,
}

/// How a kernel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It runs to its end.
    Done,
    /// It faults with this CUDA error; on a GPU the process is lost with it.
    Fault(u32),
}

impl Case {
    /// Its arguments, the same for the same seed.
    pub fn arguments(&self, seed: u64) -> CaseArguments {
        CaseArguments::new((self.make)(&mut Random::new(seed)))
    }

    /// What the buffers must hold after the launch.
    pub fn expected(&self, arguments: &CaseArguments) -> CaseArguments {
        let mut expected = arguments.clone();
        (self.oracle)(&mut expected);
        expected
    }

    /// Whether it prints anything.
    pub fn prints(&self) -> bool {
        self.prints.is_some()
    }

    /// The lines it prints, in any order; `None` if it prints nothing.
    pub fn printed(&self, arguments: &CaseArguments) -> Option<Vec<String>> {
        self.prints.map(|prints| prints(arguments))
    }
}

impl CaseShape {
    /// A grid and a block of one dimension.
    pub const fn linear(blocks: u32, threads: u32) -> Self {
        Self::cubic([blocks, 1, 1], [threads, 1, 1])
    }

    /// A grid and a block of three dimensions.
    pub const fn cubic(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, shared_bytes: 0, cooperative: false }
    }

    /// The same with dynamic shared memory.
    pub const fn shared(self, shared_bytes: u32) -> Self {
        Self { shared_bytes, ..self }
    }

    /// The same with blocks that wait for each other.
    pub const fn cooperative(self) -> Self {
        Self { cooperative: true, ..self }
    }
}

/// A case that ends normally and prints nothing.
macro_rules! case {
    ($source:expr, $name:literal, $shape:expr, $make:expr, $oracle:expr) => {
        $crate::case::case!($source, $name, $name, $shape, $make, $oracle)
    };
    ($source:expr, $name:literal, $entry:literal, $shape:expr, $make:expr, $oracle:expr) => {
        $crate::Case {
            name: $name,
            source: $source,
            entry: $entry,
            shape: $shape,
            ending: $crate::Ending::Done,
            make: $make,
            oracle: $oracle,
            prints: None,
        }
    };
}
pub(crate) use case;
