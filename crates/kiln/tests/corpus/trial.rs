//! One kernel with invented arguments.

use std::sync::Arc;

use kiln::driver::Dim3;
use kiln::sim::{KernelChecks, KernelLog, Machine, MachineConfig, PtxEngine};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_ptx::{EntryFacts, Feature};

use crate::invented::{Invented, arguments};
use crate::kernel_file::KernelFile;
use crate::known_launch::KnownLaunch;

/// The seeds every kernel runs with.
const SEEDS: std::ops::Range<u64> = 0..3;
const BLOCKS: u32 = 3;
const THREADS: u32 = 128;
const DYNAMIC_SHARED_BYTES: u32 = 96 << 10;
const STEP_LIMIT: u64 = 1 << 20;

/// What became of a kernel.
pub(crate) enum Trial {
    /// It ran with every seed: what was found, each kind once, and how many of its lines were executed.
    Ran(Vec<Found>, Lines),
    /// It has an instruction that the simulated device does not execute: the first one.
    Unsupported(String),
    /// It needs more than arguments.
    Needs(String),
    /// It could not be launched with invented arguments.
    NotLaunched(String),
}

/// Lines of kernels, and how many of them were executed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lines {
    pub(crate) executed: usize,
    pub(crate) all: usize,
}

/// A finding: its kind, the text, and whether it is known as a mistake of the kernel.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) is_known: bool,
}

/// Runs a kernel with every seed.
pub(crate) fn run(file: &KernelFile, facts: &EntryFacts) -> Trial {
    let known = KnownLaunch::of(&facts.name);
    if let Some(needs) = known.needs {
        return Trial::Needs(needs);
    }
    if let Some(refused) = file.refused(&facts.name) {
        return Trial::Unsupported(refused.opcode);
    }
    let mut found: Vec<Found> = Vec::new();
    let log = KernelLog::default();
    for seed in SEEDS {
        match launch(file, facts, &known, seed, &log) {
            Ok(more) => {
                for more in more {
                    if !found.iter().any(|known| known.kind == more.kind) {
                        found.push(Found { is_known: known.mistakes.contains(&more.kind), ..more });
                    }
                }
            }
            Err(error) => return Trial::NotLaunched(format!("{error:#}")),
        }
    }
    let lines = log.lines(&facts.name).unwrap_or_default();
    let executed = lines.iter().filter(|line| line.executed).count();
    Trial::Ran(found, Lines { executed, all: lines.len() })
}

fn launch(
    file: &KernelFile,
    facts: &EntryFacts,
    known: &KnownLaunch,
    seed: u64,
    log: &KernelLog,
) -> kiln::Result<Vec<Found>> {
    let engine = PtxEngine::with_checks(KernelChecks::ALL).step_limit(STEP_LIMIT).stall_limit(8 * STEP_LIMIT);
    let mut config = MachineConfig::seeded(seed).engine(Arc::new(engine.sole_writer().log(log)));
    config.checks.leaks = false;
    let machine = Machine::new(config);
    // What the machine found is judged by the caller.
    let config = RuntimeConfig { findings: kiln::checking::Findings::Ignore, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0)?, config)?;
    let kernel = gpu.kernel(file.ptx.as_str(), &facts.name)?;
    let arguments = arguments(&gpu, facts, &known.arguments, seed)?;
    gpu.synchronize()?;
    let mut launch = gpu.launch(&kernel);
    launch.grid(known.grid.unwrap_or(Dim3::new(BLOCKS, 1, 1)));
    launch.block(known.block.unwrap_or_else(|| block(facts)));
    if facts.shared.is_dynamic() {
        launch.shared(known.shared_bytes.unwrap_or(DYNAMIC_SHARED_BYTES));
    }
    if known.cooperative || facts.requirements.needs(Feature::CooperativeLaunch) {
        launch.cooperative();
    }
    for argument in &arguments {
        match argument {
            Invented::Array(array) => launch.read_write(array),
            Invented::Bytes(bytes, _) => launch.value_bytes(bytes),
        };
    }
    // Arrays whose addresses lie in a struct are no arguments.
    for argument in &arguments {
        if let Invented::Bytes(_, arrays) = argument {
            for array in arrays {
                launch.also_write(array);
            }
        }
    }
    // SAFETY: the simulated device checks every access.
    unsafe { launch.submit() }?;
    // A finding may fail the launch; what was found is asked of the machine.
    let _ = gpu.synchronize();
    Ok(machine.findings().iter().map(Found::of).collect())
}

/// The block a kernel asks for; one with a bound is most often written for blocks of that size.
fn block(facts: &EntryFacts) -> Dim3 {
    match (facts.bounds.required_threads, facts.bounds.max_threads_per_block()) {
        (Some([x, y, z]), _) => Dim3::new(x, y, z),
        (None, most) => Dim3::new(most.and_then(|most| u32::try_from(most).ok()).unwrap_or(THREADS), 1, 1),
    }
}

impl Found {
    fn of(finding: &kiln::sim::Finding) -> Self {
        let text = finding.code.as_ref().map_or_else(|| finding.to_string(), ToString::to_string);
        let word = finding.code.as_ref().map(|code| format!("{:?}", code.kind));
        let word = word.unwrap_or_else(|| format!("{:?}", finding.kind));
        let end = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
        Self { kind: word[..end].to_owned(), text, is_known: false }
    }
}
