//! `kiln run`: one launch, from arrays in files to arrays in files.

mod statistics;
mod text;

use clap::Args;
use kiln::checking::{FINDINGS_VARIABLE, Findings, UnknownFindings};
use kiln_sim::KernelLog;
use serde::Serialize;

use crate::argument_spec::Spec;
use crate::code_file::CodeFile;
use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::launch::{
    ArgumentSheet, Attempt, ConstantSheet, KernelFinding, LaunchFlags, LeftOut, Outcome, Plan, check_memory,
};
use crate::new_file::check_writable;
use crate::npy::Outputs;
use crate::progress_line::ProgressLine;
use statistics::KernelStatistics;

/// The flags of `kiln run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) launch: LaunchFlags,
    /// Count what the kernel executes: instructions by kind and line, bytes by memory, divergence, sectors, bank conflicts (simulated device only).
    #[arg(long)]
    pub(crate) stats: bool,
}

const EXAMPLES: &str = "Examples:
  kiln run saxpy.cu --grid 4 --block 256 \\
      --arg f32:2.5 --arg in:x.npy --arg inout:y.npy:z.npy --arg u32:1000
  kiln run scale.cu --kernel 'scale<float>' --grid 1 --block 32 \\
      --arg out:float32:32:a.npy
  kiln run view.cu --grid 1 --block 32 \\
      --arg 'struct:{in:x.npy,i32:32}' --arg null
  kiln run saxpy.kir --arg in:x.npy --arg inout:y.npy:z.npy --arg f32:2.5

A program (.kir) takes its buffers first and its scalars after them. It has its own block, and \
     its grid follows from the buffer it runs over unless --grid says otherwise.

Arrays are .npy files in C order and little-endian. A file whose element type is not the \
     kernel's is refused; --cast converts it. Output files are written as a whole, and only if the \
     kernel ran to its end without findings. With KILN_FINDINGS=report findings are listed and the \
     files written anyway, and the command ends with 0; with KILN_FINDINGS=ignore they are not listed \
     either. A kernel that faults ends with 5 and writes no file under every setting: the device is \
     lost, and its memory with it.

Exit codes: 0 done, 2 wrong usage, or a file that cannot be read or written, 3 refused \
     (arguments that do not fit, an instruction that the simulated device does not execute, or a \
     missing device), 4 compile error, 5 fault or finding.";

/// The report of a run.
#[derive(Serialize)]
struct Report {
    kernel: String,
    device: String,
    reason: String,
    /// On the simulated device.
    seed: Option<u64>,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: Vec<ArgumentSheet>,
    /// Variables that were given a value.
    constants: Vec<ConstantSheet>,
    warnings: Vec<String>,
    /// None on a GPU, where the driver prints.
    printed: Option<String>,
    fault: Option<String>,
    findings: Vec<KernelFinding>,
    /// The instructions that this device does not execute and that a thread reached: why the kernel did not run to its end. They are no mistakes.
    refused: Vec<KernelFinding>,
    /// What was found or printed beyond the limits.
    left_out: LeftOut,
    /// What the kernels executed, with `--stats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Vec<KernelStatistics>>,
    written: Vec<Written>,
    /// Why the output files were not written.
    not_written: Option<&'static str>,
    exit: u8,
}

/// A file that was written.
#[derive(Serialize)]
struct Written {
    file: String,
    element: String,
    elements: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let flags = &arguments.launch;
    let (report, exit) = perform(flags, arguments.stats, console)?;
    if flags.json {
        console.json(&report)?;
    } else {
        let columns = console.columns();
        console.line(text::render(&report, columns));
    }
    Ok(exit)
}

fn perform(flags: &LaunchFlags, counts: bool, console: &mut Console) -> Result<(Report, Exit), Failure> {
    let setting = findings_setting()?;
    let code = CodeFile::read(&flags.source)?;
    let plan = Plan::read(&flags.arguments, &flags.constants, &flags.source.file)?;
    for path in flags.arguments.iter().flat_map(Spec::outputs) {
        check_writable(path).map_err(|error| {
            Failure::file(path, format!("it cannot be written: {error}")).next("nothing was launched")
        })?;
    }
    let choice = flags.device.choose()?;
    if counts && choice.gpu.is_some() {
        let message = "--stats counts on the simulated device, and this run is on a GPU";
        return Err(Failure::usage(message.to_owned()).next("add --device sim"));
    }
    let log = if counts { KernelLog::counting() } else { KernelLog::default() };
    let attempt = match choice.gpu {
        Some(runtime) => {
            if flags.json {
                console.reserve_stdout().map_err(Failure::output)?;
            }
            Attempt::on(runtime)
        }
        None => {
            check_memory(&flags.arguments, 1)?;
            Attempt::simulated(flags, flags.seed, &log)?
        }
    };
    let progress = attempt.progress().map(|progress| ProgressLine::start(progress, String::new()));
    let mut outcome = attempt.launch(&code, flags, &plan)?;
    drop(progress);
    if setting == Findings::Ignore {
        outcome.findings.retain(KernelFinding::is_unsupported);
        outcome.left_out.findings = 0;
    }
    let exit = exit(&outcome, setting);
    let not_written = not_written(&outcome, exit);
    let written = if not_written.is_none() { write(&outcome)? } else { Vec::new() };
    let simulated = choice.gpu.is_none();
    let findings = outcome.findings.into_iter();
    let findings = findings.map(|finding| KernelFinding { seeds: vec![flags.seed], ..finding });
    let (refused, findings) = findings.partition(KernelFinding::is_unsupported);
    let report = Report {
        kernel: outcome.kernel,
        device: attempt.device(),
        reason: choice.reason,
        seed: simulated.then_some(flags.seed),
        grid: [outcome.grid.x, outcome.grid.y, outcome.grid.z],
        block: [outcome.block.x, outcome.block.y, outcome.block.z],
        shared_bytes: flags.shared,
        arguments: outcome.arguments,
        constants: outcome.constants,
        warnings: outcome.warnings,
        printed: simulated.then_some(outcome.printed),
        fault: outcome.fault,
        left_out: outcome.left_out,
        statistics: counts.then(|| statistics_of(&log)),
        findings,
        refused,
        written,
        not_written,
        exit: exit.code(),
    };
    Ok((report, exit))
}

/// What the kernels of a log executed.
fn statistics_of(log: &KernelLog) -> Vec<KernelStatistics> {
    log.statistics().into_iter().map(|(kernel, report)| KernelStatistics::new(kernel, &report)).collect()
}

/// What the variable `KILN_FINDINGS` says about findings.
pub(crate) fn findings_setting() -> Result<Findings, Failure> {
    let value = std::env::var_os(FINDINGS_VARIABLE).filter(|value| !value.is_empty());
    let word = value.map(|value| value.to_string_lossy().parse());
    word.unwrap_or(Ok(Findings::Fail)).map_err(|error: UnknownFindings| Failure::usage(error.to_string()))
}

/// How a launch ended. A kernel that this device cannot run is refused; it may be right.
fn exit(outcome: &Outcome, setting: Findings) -> Exit {
    let Outcome { fault, findings, .. } = outcome;
    match (fault, &findings[..]) {
        (None, []) => Exit::Done,
        (None, _) if setting != Findings::Fail => Exit::Done,
        (_, [only]) if only.is_unsupported() => Exit::Absent,
        _ => Exit::Fault,
    }
}

/// Why no files are written, if none are. `KILN_FINDINGS` decides what becomes of results beside findings; a launch that ended early has none.
fn not_written(outcome: &Outcome, exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Done => None,
        Exit::Absent => Some("this device does not run the kernel"),
        _ if outcome.fault.is_some() => Some(
            "the kernel did not run to its end, so the arrays have no results; KILN_FINDINGS does not change that",
        ),
        _ => Some("there are findings; KILN_FINDINGS=report writes the results beside them"),
    }
}

fn write(outcome: &Outcome) -> Result<Vec<Written>, Failure> {
    let mut outputs = Outputs::default();
    let mut written = Vec::new();
    for result in &outcome.results {
        let (Some(path), array) = (&result.to, &result.array) else { continue };
        outputs.add(path, array).map_err(|error| {
            let message = format!("the kernel ran to its end, and its results were not written: {error}");
            Failure::file(path, message)
                .next("no output file was changed; free space or name another file, and run it again")
        })?;
        written.push(Written {
            file: path.display().to_string(),
            element: array.element.to_string(),
            elements: array.elements(),
        });
    }
    outputs.publish().map_err(|error| {
        let message = format!(
            "the kernel ran to its end, and its results could not be renamed to their files: {error}"
        );
        Failure::output(message).next("see whether the folders can be written, and run it again")
    })?;
    Ok(written)
}
