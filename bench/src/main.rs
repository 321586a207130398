//! kiln and its peers on the same workloads, in one run on one machine.
//!
//! Each workload prints one row per subject: the median and the 99th percentile of an operation in nanoseconds, and the ratio to the
//! first subject, which on a GPU is the raw driver call. `--json FILE` keeps the rows, `--peers FILE` adds those that programs in
//! other languages measured in the same run (`bench/peers`), `--from FILE --markdown` prints kept rows as a table for a page, and
//! `--chart FILE.svg --chart-workloads NAMES` draws them. The memory workloads M1 to M5 and M7 also run on the simulated device: what kiln's
//! heap costs on the host does not depend on the GPU, and its peers need one.

mod chart;
mod fastest_core;
mod markdown;
mod memory;
mod raw_driver;
mod raw_graph;
mod raw_library;
mod result_table;
mod timing;
mod workload {
    pub(crate) mod all_reduce;
    pub(crate) mod attention;
    pub(crate) mod awaited_launch;
    pub(crate) mod checksum;
    pub(crate) mod event_recording;
    pub(crate) mod fake_libcuda;
    pub(crate) mod fault_recovery;
    pub(crate) mod first_launch;
    pub(crate) mod fourier_transforms;
    pub(crate) mod generated_code;
    pub(crate) mod graph_replay;
    pub(crate) mod launch;
    pub(crate) mod library_comparison;
    pub(crate) mod lock_cost;
    pub(crate) mod matmul_device_time;
    pub(crate) mod matmul_host_cost;
    pub(crate) mod primitives;
    pub(crate) mod recorded_work;
    pub(crate) mod simulator_speed;
    pub(crate) mod solvers;
    pub(crate) mod sparse;
    pub(crate) mod stream_overlap;
    pub(crate) mod submission_cost;
    pub(crate) mod threaded_launches;
    pub(crate) mod transfer;
    pub(crate) mod two_streams;
    pub(crate) mod untracked_graph;
    pub(crate) mod worker_process;
}

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use kiln_mem::workload::RandomLives;

use memory::Bench;
use result_table::Table;

/// Counts what a warm path allocates on the host, for M7.
#[global_allocator]
static ALLOCATOR: memory::CountedAllocator = memory::CountedAllocator;

/// Runs workloads on the first CUDA device, or on the simulated one, and prints a table.
#[derive(Parser)]
#[command(after_help = workload_list())]
struct Arguments {
    /// Workloads to run, by name (listed below); all that the device can run if none is named.
    workloads: Vec<String>,
    /// Repeats of each measurement; the median of their medians is what counts. A point of m2 is run at least so often, and
    /// until its runs fill 50 ms together.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Where to run.
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    device: Device,
    /// In m1 and m2, counts the time the thread ran instead of the time that passed; for machines that others use too.
    #[arg(long)]
    cpu_time: bool,
    /// Numbers of blocks, separated by commas: m2 runs the points that have so many, and no others.
    #[arg(long, value_delimiter = ',')]
    blocks: Vec<usize>,
    /// Leaves kiln's own rows out and measures its peers alone.
    #[arg(long)]
    peers_only: bool,
    /// Adds rows that other programs measured, a JSON object a line.
    #[arg(long)]
    peers: Option<std::path::PathBuf>,
    /// Keeps the rows as JSON; `-` prints them instead of the table.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
    /// Takes the rows of an earlier run, which `--json` kept, and measures nothing.
    #[arg(long, conflicts_with = "workloads")]
    from: Option<std::path::PathBuf>,
    /// Prints the rows as a table in Markdown, with medians and 99th percentiles.
    #[arg(long)]
    markdown: bool,
    /// Draws the workloads that `--chart-workloads` names as a picture (SVG).
    #[arg(long, requires = "chart_workloads")]
    chart: Option<std::path::PathBuf>,
    /// Workloads to draw, named as in the table and separated by commas.
    #[arg(long, value_delimiter = ',', requires = "chart")]
    chart_workloads: Vec<String>,
    /// Measures one first launch in this process: what, and the folder of its code.
    #[arg(long, hide = true, num_args = 2)]
    first_launch: Vec<String>,
    /// Measures l0 in this process, which has a library in place of libcuda: how often.
    #[arg(long, hide = true)]
    empty_driver: Option<usize>,
    /// Does one operation of l0 over and over in such a process, for tools that count: which, and how often.
    #[arg(long, hide = true, num_args = 2)]
    empty_driver_repeat: Vec<String>,
    /// Measures n1 in this process, which is one of its ranks: how often.
    #[arg(long, hide = true)]
    all_reduce: Option<usize>,
}

/// Where workloads run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Device {
    /// CUDA if there is a device, else the simulated one.
    Auto,
    /// The first CUDA device.
    Cuda,
    /// The simulated device.
    Sim,
}

type Failure = Box<dyn std::error::Error>;

/// What a workload needs.
#[derive(Clone, Copy)]
enum Workload {
    /// A GPU.
    Cuda(fn(&mut Table, usize) -> Result<(), Failure>),
    /// No GPU, though one is used if it is there.
    Any(fn(&mut Table, usize) -> Result<(), Failure>),
    /// Any device.
    Memory(fn(&Bench, &mut Table) -> Result<(), Failure>),
}

/// Each workload: its name, what it measures, and its code.
const WORKLOADS: &[(&str, &str, Workload)] = &[
    ("a1", "await a launch, against blocking on it", Workload::Cuda(workload::awaited_launch::awaited)),
    (
        "b1",
        "square matrix products: host time of a call and device time",
        Workload::Cuda(workload::matmul_device_time::products),
    ),
    (
        "b1-call",
        "matrix products: a call, against cuBLASLt called directly",
        Workload::Cuda(workload::matmul_host_cost::submitted),
    ),
    (
        "b2",
        "fast Fourier transforms, against cuFFT",
        Workload::Cuda(workload::fourier_transforms::transformed),
    ),
    ("b3", "Cholesky and SVD, against cuSOLVER", Workload::Cuda(workload::solvers::solved)),
    ("b4", "sparse matrix times vector, against cuSPARSE", Workload::Cuda(workload::sparse::multiplied)),
    (
        "b5",
        "graphs of 100 matrix products, against cuBLASLt in a graph",
        Workload::Cuda(workload::matmul_host_cost::replayed_by_the_hundred),
    ),
    ("b6", "attention forward", Workload::Cuda(workload::attention::attended)),
    (
        "c1",
        "the first launch of a new process, with and without compiled code on disk",
        Workload::Any(workload::first_launch::launch),
    ),
    ("chunks", "pageable copies with chunks of several sizes", Workload::Cuda(workload::transfer::chunks)),
    (
        "f1",
        "from a fault until the next kernel has run",
        Workload::Memory(workload::fault_recovery::taken_over),
    ),
    ("f2", "a launch handed to a worker process", Workload::Memory(workload::worker_process::driver_launch)),
    ("f3", "checksums of device memory", Workload::Memory(workload::checksum::summed)),
    (
        "f4",
        "from a fault until the next matrix product has run",
        Workload::Memory(workload::fault_recovery::taken_over_with_a_library),
    ),
    ("fa1", "a1 with the device in a worker process", Workload::Memory(workload::worker_process::awaited)),
    (
        "fl1",
        "l1 with the device in a worker process",
        Workload::Memory(workload::worker_process::four_buffers),
    ),
    ("ft1", "copies with the device in a worker process", Workload::Memory(workload::worker_process::copies)),
    ("g1", "graph replay", Workload::Cuda(workload::graph_replay::replayed)),
    (
        "l0",
        "host time of launches over a driver library that does nothing",
        Workload::Any(workload::submission_cost::launches),
    ),
    ("l1", "a launch with 4 buffers and a scalar", Workload::Cuda(workload::launch::four_buffers)),
    (
        "l2",
        "two streams that launch in turn on one buffer",
        Workload::Cuda(workload::two_streams::two_streams),
    ),
    ("l3", "a launch with 32 buffers", Workload::Cuda(workload::launch::many_buffers)),
    (
        "l4",
        "launches from 8 threads, each on its own stream",
        Workload::Cuda(workload::threaded_launches::eight),
    ),
    ("l5", "the bookkeeping of a submission without a kernel", Workload::Cuda(workload::launch::no_kernel)),
    (
        "l6",
        "what recording adds to a launch with 4 buffers and a scalar, kernels of 10 us and graphs",
        Workload::Cuda(workload::launch::recorded),
    ),
    ("lk", "5 uncontended locks: mutex against biased lock", Workload::Any(workload::lock_cost::uncontended)),
    ("m1", "64 KiB allocated and freed, one thread", Workload::Memory(memory::alloc_free_pairs::one_thread)),
    (
        "m2",
        "blocks of random sizes and lifetimes: time, and space (m4)",
        Workload::Memory(memory::random_lifetimes::time_and_space),
    ),
    (
        "m2-anew",
        "m2 with sizes and lifetimes that never repeat",
        Workload::Memory(memory::random_lifetimes::never_twice),
    ),
    (
        "m3",
        "64 KiB allocated and freed, several threads",
        Workload::Memory(memory::alloc_free_pairs::many_threads),
    ),
    (
        "m5",
        "requests refused with nine tenths of a limit in use",
        Workload::Memory(memory::fragmentation::nine_tenths),
    ),
    ("m6", "4 streams that allocate, against 1", Workload::Cuda(workload::stream_overlap::spinning)),
    (
        "m7",
        "driver calls and host allocations of a warm allocation",
        Workload::Memory(memory::warm_call_counts::warm),
    ),
    (
        "n1",
        "all-reduce, one rank and two on one GPU, against NCCL called directly",
        Workload::Cuda(workload::all_reduce::ranks),
    ),
    ("p1", "device-wide reduction", Workload::Cuda(workload::primitives::reduced)),
    ("p2", "device-wide scan", Workload::Cuda(workload::primitives::scanned)),
    ("p3", "device-wide radix sort", Workload::Cuda(workload::primitives::sorted)),
    (
        "q1",
        "kernels from programs (.kir), against the same in CUDA C",
        Workload::Cuda(workload::generated_code::programs),
    ),
    (
        "record",
        "when to record the event that another stream waits for",
        Workload::Cuda(workload::event_recording::on_demand_and_at_once),
    ),
    ("mapping", "time and host memory of a mapped frame", Workload::Memory(memory::mapping_cost::cost)),
    (
        "s1",
        "instructions a second of the simulated device",
        Workload::Any(workload::simulator_speed::instructions),
    ),
    ("t1", "pageable and pinned copies", Workload::Cuda(workload::transfer::pageable_and_pinned)),
    ("t2", "a pinned block of 1 MiB from the pool", Workload::Cuda(workload::transfer::pinned_block)),
];

/// The names and titles of the workloads, for `--help`.
fn workload_list() -> String {
    let lines = WORKLOADS.iter().map(|(name, title, workload)| {
        let needs = if matches!(workload, Workload::Cuda(_)) { " (needs a GPU)" } else { "" };
        format!("  {name:<8} {title}{needs}")
    });
    format!("Workloads:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn main() -> ExitCode {
    // The workloads that begin with f start this program again as a worker.
    kiln_isolate::worker_entry();
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            #[expect(clippy::print_stderr, reason = "the command speaks to its user")]
            {
                eprintln!("kiln-bench: {failure}");
            }
            ExitCode::from(3)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let [what, folder] = &arguments.first_launch[..] {
        return workload::first_launch::in_this_process(what, std::path::Path::new(folder));
    }
    if let [operation, times] = &arguments.empty_driver_repeat[..] {
        return workload::submission_cost::repeat(operation, times.parse()?);
    }
    if let Some(repeats) = arguments.empty_driver {
        return workload::submission_cost::in_this_process(repeats);
    }
    if let Some(repeats) = arguments.all_reduce {
        return workload::all_reduce::in_this_process(repeats);
    }
    let is_quiet = arguments.markdown || arguments.json.as_deref() == Some(std::path::Path::new("-"));
    let mut table = match &arguments.from {
        Some(path) => Table::kept(&std::fs::read_to_string(path)?, is_quiet, arguments.kept_rows())?,
        None => measure(arguments, is_quiet)?,
    };
    if let Some(path) = &arguments.peers {
        table.add_peers(&std::fs::read_to_string(path)?)?;
    }
    if arguments.json.is_some() && arguments.kept_rows().is_none() {
        table.print_json()?;
    }
    table.keep()?;
    if arguments.markdown {
        table.print_markdown();
    }
    if let Some(path) = &arguments.chart {
        std::fs::write(path, table.chart(&arguments.chart_workloads)?)?;
    }
    match &table.failed[..] {
        [] => Ok(()),
        failed => Err(format!("not all could be measured: {}", failed.join(", ")).into()),
    }
}

/// Runs the workloads.
fn measure(arguments: &Arguments, is_quiet: bool) -> Result<Table, Failure> {
    // M4 is the space that M2 takes, and is measured with it.
    let wanted: Vec<&str> =
        arguments.workloads.iter().map(|name| if name == "m4" { "m2" } else { name.as_str() }).collect();
    if let Some(unknown) = wanted.iter().find(|name| WORKLOADS.iter().all(|(known, ..)| known != *name)) {
        return Err(format!("there is no workload `{unknown}`; see --help").into());
    }
    if let Some(unknown) = arguments.blocks.iter().find(|count| !RandomLives::COUNTS.contains(count)) {
        return Err(format!("m2 has no point with {unknown} blocks; it has {:?}", RandomLives::COUNTS).into());
    }
    let mut table = Table::new(is_quiet, arguments.kept_rows());
    let bench = Bench::open(arguments)?;
    table.note(bench.describe());
    for (name, _, workload) in WORKLOADS {
        let is_named = wanted.contains(name);
        if !wanted.is_empty() && !is_named {
            continue;
        }
        let measured = match workload {
            Workload::Memory(run) => run(&bench, &mut table),
            Workload::Any(run) => run(&mut table, arguments.repeats),
            Workload::Cuda(run) if bench.is_cuda() => run(&mut table, arguments.repeats),
            Workload::Cuda(_) if is_named => Err("it needs a GPU".into()),
            Workload::Cuda(_) => {
                table.note(format!("{name} needs a GPU and was left out"));
                Ok(())
            }
        };
        // The others may well be measured.
        if let Err(failure) = measured {
            table.note(format!("{name} could not be measured: {failure}"));
            table.failed.push(name);
        }
    }
    Ok(table)
}

impl Arguments {
    /// The file that keeps the rows; `-` is none.
    fn kept_rows(&self) -> Option<&std::path::Path> {
        self.json.as_deref().filter(|path| *path != std::path::Path::new("-"))
    }
}
