//! What is done with a text: it is read, printed, read again, analysed and launched.

use kiln_ptx::exec::{Checks, DeviceHeap, ExecProgram, LaunchShape, Options, SimpleMemory};
use kiln_ptx::{PtxFunctionId, PtxModule};

use crate::resources::processor_time;

/// What a module may keep in variables; a damaged number makes them larger than any device.
const MAX_VARIABLE_BYTES: u64 = 1 << 20;
/// Steps of a thread before a launch is ended.
const STEP_LIMIT: u64 = 2000;

/// What became of a text.
#[derive(Default)]
pub(crate) struct Examined {
    /// Whether it is still PTX.
    pub(crate) is_ptx: bool,
    pub(crate) launched: u64,
    /// Processor time to read, print and analyse it, in nanoseconds.
    pub(crate) reading: u64,
}

/// Reads, prints, reads again, analyses and launches a text; what went wrong, if something did.
pub(crate) fn examine(text: &str) -> Result<Examined, String> {
    let start = processor_time();
    let mut examined = Examined::default();
    let module = analyse(text)?;
    examined.reading = processor_time().saturating_sub(start);
    if let Some(module) = module {
        examined.is_ptx = true;
        examined.launched = launch_all(module)?;
    }
    Ok(examined)
}

/// The module of a text, after its way through print; none if it is no PTX.
fn analyse(text: &str) -> Result<Option<PtxModule>, String> {
    let Ok(module) = PtxModule::parse(text) else { return Ok(None) };
    let printed = module.to_string();
    let again = PtxModule::parse(&printed).map_err(|e| format!("what was printed does not parse: {e}"))?;
    if again != module {
        return Err("what was printed parses to another module".to_owned());
    }
    for id in 0..module.functions().len() as u32 {
        let _ = module.facts(PtxFunctionId(id));
    }
    Ok(Some(module))
}

/// Launches every entry; how many took the launch.
fn launch_all(module: PtxModule) -> Result<u64, String> {
    let program = ExecProgram::new(module);
    let mut launched = 0;
    for entry in program.entries() {
        let mut memory = SimpleMemory::new();

        let globals: Vec<u64> =
            program.variables().iter().map(|v| memory.allocate(v.bytes.min(MAX_VARIABLE_BYTES))).collect();
        let buffer = memory.allocate_with(&[1; 4096]);
        let arguments =
            buffer.to_le_bytes().repeat(entry.parameter_bytes().min(1 << 16).div_ceil(8) as usize);
        let shape = LaunchShape {
            grid: [2, 1, 1],
            block: [33, 1, 1],
            dynamic_shared_bytes: 256,
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
        };
        let heap = DeviceHeap::new(1 << 16);
        let options =
            Options { checks: Checks::ALL, step_limit: STEP_LIMIT, heap: Some(&heap), ..Options::default() };
        // A refusal is an answer.
        let Ok(outcome) = entry.launch(&shape, &arguments, &globals, &memory, &options) else { continue };
        if outcome.findings.iter().any(|finding| finding.to_string().is_empty()) {
            return Err("a finding has no words".to_owned());
        }
        if outcome.fault.is_some() && outcome.findings.is_empty() {
            return Err("a launch ends with a fault that no finding explains".to_owned());
        }
        launched += 1;
    }
    Ok(launched)
}
