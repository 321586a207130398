//! What goes into the bundle, as data.

/// One binary.
pub(crate) struct Item {
    /// The package it belongs to.
    pub(crate) package: &'static str,
    /// Which of the package's targets it is.
    pub(crate) target: Target,
}

/// A target of a package.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// An integration test.
    Test(&'static str),
    /// A program.
    Program(&'static str),
    /// An example.
    Example(&'static str),
}

impl Target {
    /// Its name in the package.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Test(name) | Self::Program(name) | Self::Example(name) => name,
        }
    }
}

impl Item {
    /// Whether it measures, which only an optimised program can.
    pub(crate) fn measures(&self) -> bool {
        self.package == "kiln-bench"
    }

    /// Its name in the bundle: a test's begins with its package, because two packages may name a test alike.
    pub(crate) fn file_name(&self) -> String {
        match self.target {
            Target::Test(name) => format!("{}-{name}", self.package),
            Target::Program(name) | Target::Example(name) => name.to_owned(),
        }
    }
}

/// Test binaries with something in them that only a GPU can show.
pub(crate) const TESTS: &[Item] = &[
    Item { package: "kiln-conform", target: Target::Test("cuda") },
    Item { package: "kiln", target: Target::Test("cudarc") },
    Item { package: "kiln", target: Target::Test("kernels") },
    Item { package: "kiln", target: Target::Test("isolated_cuda") },
    Item { package: "kiln", target: Target::Test("programs") },
    Item { package: "kiln", target: Target::Test("recording") },
    Item { package: "kiln-group", target: Target::Test("suite") },
    Item { package: "kiln-ir", target: Target::Test("device") },
    Item { package: "kiln-isolate", target: Target::Test("cuda") },
    Item { package: "kiln-isolate", target: Target::Test("faults") },
    Item { package: "kiln-libs", target: Target::Test("operations") },
    Item { package: "kiln-mem", target: Target::Test("cuda") },
];

/// Programs.
pub(crate) const PROGRAMS: &[Item] = &[
    Item { package: "kiln-cli", target: Target::Program("kiln") },
    Item { package: "kiln-bench", target: Target::Program("kiln-bench") },
    Item { package: "kiln-group", target: Target::Example("collectives") },
    Item { package: "kiln-group", target: Target::Example("killed_rank") },
    Item { package: "kiln-libs", target: Target::Example("14_transformer") },
    Item { package: "kiln-libs", target: Target::Example("data_parallel") },
];

/// A program of a package outside of the workspace.
pub(crate) struct Outsider {
    /// Its manifest.
    pub(crate) manifest: &'static str,
    /// Its name, in its package and in the bundle.
    pub(crate) program: &'static str,
}

/// Peers whose dependencies cannot be built beside ours. `peers/run.sh` runs them where they are.
pub(crate) const OUTSIDERS: &[Outsider] = &[
    Outsider { manifest: "bench/cubecl/Cargo.toml", program: "kiln-bench-cubecl" },
    Outsider { manifest: "bench/cudarc/Cargo.toml", program: "kiln-bench-cudarc" },
];

/// A name, and the command as typed in the bundle's directory.
pub(crate) type Line = (&'static str, &'static str);

/// The command that runs the tests of cudarc, which are built from its sources.
pub(crate) const CUDARC: &str = "cudarc-suite";

/// Commands that must end well on a host with a GPU; each counts as one test.
pub(crate) const COMMANDS: &[Line] = &[
    ("doctor", "bin/kiln doctor --policy required"),
    ("demo", "bin/kiln demo --device cuda"),
    ("demo-isolate", "bin/kiln demo --device cuda --isolate"),
    ("commands", "sh samples/compare.sh"),
    ("transformer", "bin/14_transformer large 200"),
    ("ranks", "sh ranks/run.sh"),
    (CUDARC, "sh suites/run.sh"),
];

/// Benchmarks, in order. The peers in C++ are built on the host, if what they need is there, CubeCL's and cudarc's are in the bundle, and `kiln-bench`
/// puts their rows into its table.
pub(crate) const BENCHMARKS: &[Line] = &[
    ("peers", "sh peers/run.sh peers.jsonl"),
    ("kiln-bench", "bin/kiln-bench --device cuda --peers peers.jsonl --json kiln-bench.json"),
    (
        "thousand-faults",
        "env KILN_FAULTS=1000 tests/kiln-isolate-faults many_faults_in_a_row_on_cuda_leave_nothing --exact",
    ),
];

/// Files that go along as they are: name, text.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("peers/run.sh", include_str!("../../../bench/peers/run.sh")),
    ("peers/attention.py", include_str!("../../../bench/peers/attention.py")),
    ("peers/cub.cu", include_str!("../../../bench/peers/cub.cu")),
    ("peers/matmul.cu", include_str!("../../../bench/peers/matmul.cu")),
    ("peers/matmul.py", include_str!("../../../bench/peers/matmul.py")),
    ("peers/rmm.cpp", include_str!("../../../bench/peers/rmm.cpp")),
    ("peers/spin.cu", include_str!("../../../bench/peers/spin.cu")),
    ("peers/torch.cpp", include_str!("../../../bench/peers/torch.cpp")),
    ("peers/workloads.hpp", include_str!("../../../bench/peers/workloads.hpp")),
    ("suites/run.sh", include_str!("suites.sh")),
    ("ranks/run.sh", include_str!("ranks/run.sh")),
    ("ranks/one_gpu.sh", include_str!("ranks/one_gpu.sh")),
    ("samples/compare.sh", include_str!("samples/compare.sh")),
    ("samples/astray.kir", include_str!("samples/astray.kir")),
    ("samples/broken.kir", include_str!("samples/broken.kir")),
    ("samples/inputs.kir", include_str!("samples/inputs.kir")),
    ("samples/raced.kir", include_str!("samples/raced.kir")),
    ("samples/reversed.kir", include_str!("samples/reversed.kir")),
    ("samples/grid_barrier.kir", include_str!("samples/grid_barrier.kir")),
    ("samples/saxpy.kir", include_str!("samples/saxpy.kir")),
    ("samples/traps.kir", include_str!("samples/traps.kir")),
    ("samples/elementwise.cu", include_str!("../../../crates/kiln-kernels/kernels/elementwise.cu")),
    ("samples/elementwise.ptx", include_str!("../../../crates/kiln-kernels/kernels/elementwise.ptx")),
    ("samples/histogram.ptx", include_str!("../../../crates/kiln-kernels/kernels/histogram.ptx")),
];
