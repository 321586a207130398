//! One kernel with invented arguments.

use std::sync::Arc;

use kiln::driver::Dim3;
use kiln::sim::{KernelChecks, Machine, MachineConfig, PtxEngine};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_ptx::{EntryFacts, Feature};

use crate::invented::{Invented, arguments};
use crate::kernel_file::KernelFile;

/// The seeds every kernel runs with.
const SEEDS: std::ops::Range<u64> = 0..2;
const BLOCKS: u32 = 3;
const THREADS: u32 = 128;
const DYNAMIC_SHARED_BYTES: u32 = 16 << 10;
const STEP_LIMIT: u64 = 1 << 20;

/// What became of a kernel.
pub(crate) enum Trial {
    /// It ran with every seed; what was found, each once.
    Ran(Vec<Found>),
    /// It has instructions that the simulated device does not execute.
    Unsupported,
    /// It could not be launched with invented arguments.
    NotLaunched(String),
}

/// A finding: its kind, and the text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Runs a kernel with every seed.
pub(crate) fn run(file: &KernelFile, facts: &EntryFacts) -> Trial {
    let mut found: Vec<Found> = Vec::new();
    for seed in SEEDS {
        match launch(file, facts, seed) {
            Ok(more) => {
                let new = |more: &Found| !found.iter().any(|known| known.kind == more.kind);
                let new: Vec<Found> = more.into_iter().filter(new).collect();
                found.extend(new);
            }
            Err(error) if error.driver().is_some_and(|error| error.is_unsupported()) => {
                return Trial::Unsupported;
            }
            Err(error) => return Trial::NotLaunched(format!("{error:#}")),
        }
    }
    Trial::Ran(found)
}

fn launch(file: &KernelFile, facts: &EntryFacts, seed: u64) -> kiln::Result<Vec<Found>> {
    let engine = PtxEngine::with_checks(KernelChecks::ALL).step_limit(STEP_LIMIT).stall_limit(8 * STEP_LIMIT);
    let mut config = MachineConfig::seeded(seed).engine(Arc::new(engine.sole_writer()));
    config.checks.leaks = false;
    let machine = Machine::new(config);
    // What the machine found is judged by the caller.
    let config = RuntimeConfig { findings: kiln::checking::Findings::Ignore, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0)?, config)?;
    let kernel = gpu.kernel(file.ptx.as_str(), &facts.name)?;
    let arguments = arguments(&gpu, facts)?;
    gpu.synchronize()?;
    let mut launch = gpu.launch(&kernel);
    launch.grid(BLOCKS).block(block(facts));
    if facts.shared.is_dynamic() {
        launch.shared(DYNAMIC_SHARED_BYTES);
    }
    if facts.requirements.needs(Feature::CooperativeLaunch) {
        launch.cooperative();
    }
    for argument in &arguments {
        match argument {
            Invented::Array(array) => launch.read_write(array),
            Invented::Bytes(bytes, _) => launch.value_bytes(bytes),
        };
    }
    // SAFETY: the simulated device checks every access.
    unsafe { launch.submit() }?;
    // A finding may fail the launch; what was found is asked of the machine.
    let _ = gpu.synchronize();
    Ok(machine.findings().iter().map(Found::of).collect())
}

fn block(facts: &EntryFacts) -> Dim3 {
    match (facts.bounds.required_threads, facts.bounds.max_threads_per_block()) {
        (Some([x, y, z]), _) => Dim3::new(x, y, z),
        (None, most) => {
            let most = most.and_then(|most| u32::try_from(most).ok()).unwrap_or(THREADS);
            Dim3::new(most.min(THREADS), 1, 1)
        }
    }
}

impl Found {
    fn of(finding: &kiln::sim::Finding) -> Self {
        let text = finding.code.as_ref().map_or_else(|| finding.to_string(), ToString::to_string);
        let word = finding.code.as_ref().map(|code| format!("{:?}", code.kind));
        let word = word.unwrap_or_else(|| format!("{:?}", finding.kind));
        let end = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
        Self { kind: word[..end].to_owned(), text }
    }
}
