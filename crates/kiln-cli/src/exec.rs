//! `kiln exec`: runs a program that calls the CUDA driver API on the simulated device, or checked on a GPU.
//!
//! ```text
//! a private folder with libcuda.so.1 ─► the program, with the folder on its loader path ─► one file of findings for each process ─► report
//! ```
//!
//! The folder is the only way by which the library comes into a process, and it is gone when the command ends.

mod left_processes;
mod private_folder;
mod record;
mod recorded;
mod shim_library;
mod simulation;
mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use clap::Args;
use serde::Serialize;

use crate::console::{Console, complain};
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::plural::counted;
use crate::program_end::ProgramEnd;
use crate::program_signals::ProgramSignals;
use left_processes::{LeftBehind, LeftProcesses};
use private_folder::PrivateFolder;
use record::{Finding, Records, Statistics};
use recorded::RunRecording;
use simulation::{Check, FaultsCome};
use target::Target;

/// The memory of each device, in bytes.
const MEMORY: &str = "KILN_EXEC_MEMORY";
/// Devices of a run.
const MAX_DEVICES: i64 = 16;

/// The flags of `kiln exec`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How often to run the program, each time with the next seed: another order of its streams, blocks and warps.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000), allow_negative_numbers = true)]
    seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// The devices that the program gets: simulated ones, or the GPUs of this machine.
    #[arg(long, value_name = "DEVICE", value_enum, default_value_t = Target::Sim)]
    device: Target,
    /// Keep the devices in worker processes: what a kernel breaks there does not reach the program.
    #[arg(long)]
    isolate: bool,
    /// Count what the program has not given back at its end as a finding.
    #[arg(long)]
    leaks: bool,
    /// Count what may be a mistake as a finding: work on a GPU that touches the same block in no order, perhaps not the same bytes.
    #[arg(long)]
    strict: bool,
    /// How many devices the program sees; the default is 1, and with `--device cuda` all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_DEVICES), allow_negative_numbers = true)]
    devices: Option<u32>,
    /// Stop a kernel when one warp has executed N instructions, or all its warps together have since the last thread exited (simulated device only).
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STEP_LIMIT, value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    step_limit: u64,
    /// What goes wrong on the simulated devices, such as `oom@3` (the third allocation finds no memory), `fault@10` or `1:hang@2`, with commas between them.
    #[arg(long, value_name = "PLAN")]
    fault: Option<String>,
    /// The checks that are made, with commas between them; the default is all but leaks.
    #[arg(long, value_name = "CHECKS", value_enum, value_delimiter = ',')]
    check: Vec<Check>,
    /// Record the processes of the run to FILE, for `kiln explain`, `kiln watch` and `kiln trace --perfetto`; %p stands for the number of the process.
    #[arg(long, value_name = "FILE", value_parser = crate::trace::file_name())]
    trace: Option<PathBuf>,
    /// Print what the library itself did for each process: stacks that it walked, and pinned memory that it made for copies of pageable memory.
    #[arg(long)]
    stats: bool,
    /// What to do with processes that outlive the program.
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = LeftBehind::Leave)]
    left_behind: LeftBehind,
    /// The shared library, if it is not beside this command.
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Print the report as JSON. The program's standard output goes to the standard error then.
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Some minutes of the simulated device: programs as they are have longer kernels than those that are tried by `kiln run`.
const DEFAULT_STEP_LIMIT: u64 = 1 << 30;

const EXAMPLES: &str = "Examples:
  kiln exec -- ./my_cuda_program
  kiln exec --seeds 10 -- cargo test
  kiln exec --json -- python3 train.py
  kiln exec --device cuda -- ./my_cuda_program
  kiln exec --fault oom@3 -- ./my_cuda_program
  kiln exec --trace run.kiln -- ./my_cuda_program

The program finds a libcuda.so.1 of kiln instead of NVIDIA's, and with it a simulated device \
     that checks what its kernels, copies and calls do. All processes that the program starts get it, \
     too. With --device cuda the program runs on the GPU, and the library checks what it can see: \
     the order of copies, fills and launches, use of memory outside of its life, leaks (--leaks), and \
     faults. The library has the documented driver API alone: programs that use NVIDIA's runtime library \
     (libcudart) do not run with it. Kernels must come as PTX.

Exit codes: 5 if something was found, otherwise that of the program, or 128 and the number of \
     its signal. The command itself ends with 2 for wrong usage, a program that cannot be started or \
     a full folder for temporary files, 3 if its library or the GPU is missing. A finding that could not be \
     written is printed by its process, and counts.";

/// What all runs found.
#[derive(Serialize)]
struct Report {
    runs: u64,
    /// How this command ends.
    exit_code: u8,
    /// How the program ended, for each run.
    exit_codes: Vec<u8>,
    findings: Vec<Finding>,
    /// Sentences about what is missing or was refused.
    notes: Vec<String>,
    /// The numbers of processes that outlive the program and still run.
    left_behind: Vec<u32>,
    /// The files that the processes were recorded to.
    recordings: Vec<String>,
    /// What the library itself did in each process, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statistics: Vec<Statistics>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let library = shim_library::find(arguments.library.as_deref())?;
    check_memory()?;
    let last = last_seed(arguments)?;
    let of_simulation = simulation::variables(arguments)?;
    let mut variables = arguments.device.variables(arguments.isolate)?;
    variables.extend(of_simulation.into_iter().map(|(name, value)| (name, value.into())));
    let recorded = arguments.trace.as_deref().map(RunRecording::new).transpose()?;
    let (recording, _earlier) = recorded.unzip();
    variables.extend(recording.iter().flat_map(RunRecording::variables));
    let mut records = Records::default();
    let mut faults_come = FaultsCome::default();
    let (mut exit_codes, mut left_behind) = (Vec::new(), Vec::new());
    let mut signals = ProgramSignals::hold().map_err(|error| Failure::fault(format!("signals: {error}")))?;
    for seed in arguments.seed..=last {
        let folder = PrivateFolder::new(&library, arguments.device.has_management())?;
        Records::expect(folder.path())?;
        leave_command(folder.path())?;
        let ended = start(arguments, &variables, (&folder, seed), &mut signals)?;
        exit_codes.push(code_of(ended.status));
        let left = LeftProcesses::settle(arguments.left_behind, folder.path(), &signals);
        records.read(folder.path())?;
        faults_come.read(folder.path());
        left.notes().for_each(|note| records.note(note));
        left_behind.extend(left.running.iter().map(|process| process.number));
        if ended.is_signalled {
            break;
        }
    }
    let recordings = recording.as_ref().map(RunRecording::files).unwrap_or_default();
    if let Some(file) = arguments.trace.as_deref().filter(|_| recordings.is_empty()) {
        records.note(format!(
            "nothing is recorded to {}: no process of the program called cuInit with a device",
            file.display()
        ));
    }
    faults_come.note(arguments.fault.as_deref()).into_iter().for_each(|note| records.note(note));
    let is_wrong = records.has_findings();
    let statistics = records.take_statistics();
    let (findings, notes) = records.take();
    let failed = exit_codes.iter().copied().find(|code| *code != 0);
    let exit = match failed {
        _ if is_wrong => Exit::Fault,
        Some(code) => Exit::Program(code),
        None => Exit::Done,
    };
    let report = Report {
        runs: exit_codes.len() as u64,
        exit_code: exit.code(),
        exit_codes,
        findings,
        notes,
        left_behind,
        recordings: recordings.iter().map(|file| file.display().to_string()).collect(),
        statistics,
    };
    if arguments.json {
        console.json(&report)?;
    } else {
        tell(&report);
    }
    Ok(exit)
}

/// The last seed, for runs that several seeds make sense for.
fn last_seed(arguments: &Arguments) -> Result<u64, Failure> {
    if arguments.device == Target::Cuda && arguments.seeds > 1 {
        let message = "--seeds picks orders of the simulated device, and a GPU takes none";
        return Err(Failure::usage(message).next("leave --seeds or --device cuda out"));
    }
    if arguments.trace.is_some() && arguments.seeds > 1 {
        let message = "--trace records one run, and --seeds asks for several";
        return Err(
            Failure::usage(message).next("name the seed of the run that is to be recorded with --seed")
        );
    }
    arguments.seed.checked_add(arguments.seeds - 1).ok_or_else(|| {
        let message =
            format!("--seeds {} from --seed {} goes beyond the last seed", arguments.seeds, arguments.seed);
        Failure::usage(message).next("give a smaller --seed")
    })
}

/// Refuses a size of memory that is no number, which the program would not be told of.
fn check_memory() -> Result<(), Failure> {
    let Some(given) = std::env::var_os(MEMORY) else { return Ok(()) };
    let is_number = given.to_str().is_some_and(|text| text.parse::<u64>().is_ok_and(|bytes| bytes > 0));
    if is_number {
        return Ok(());
    }
    let message = format!("{MEMORY} is `{}`, and no number of bytes", given.to_string_lossy());
    Err(Failure::usage(message).next("set it to a number such as 1073741824, or remove it"))
}

/// Leaves the words of this command in the folder of a run, for its recordings.
fn leave_command(folder: &Path) -> Result<(), Failure> {
    let words: Vec<u8> = std::env::args_os()
        .flat_map(|word| word.as_encoded_bytes().iter().copied().chain([0]).collect::<Vec<_>>())
        .collect();
    let path = folder.join("command");
    std::fs::write(&path, words).map_err(|error| Failure::file(&path, error))
}

/// Starts the program and waits for its end.
fn start(
    arguments: &Arguments,
    variables: &[(&'static str, OsString)],
    (folder, seed): (&PrivateFolder, u64),
    signals: &mut ProgramSignals,
) -> Result<ProgramEnd, Failure> {
    let Some((name, rest)) = arguments.program.split_first() else {
        return Err(Failure::usage("no program is named").next("name it after --"));
    };
    let mut command = Command::new(name);
    command
        .args(rest)
        .env("LD_LIBRARY_PATH", folder.loader_path())
        .env("KILN_EXEC_FOLDER", folder.path())
        .env("KILN_EXEC_SEED", seed.to_string())
        .env("KILN_EXEC_STEPS", arguments.step_limit.to_string())
        .envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(devices) = arguments.devices {
        command.env("KILN_EXEC_DEVICES", devices.to_string());
    }
    let switches = [
        ("KILN_EXEC_LEAKS", arguments.leaks),
        ("KILN_EXEC_STRICT", arguments.strict),
        ("KILN_EXEC_STATS", arguments.stats),
    ];
    for (name, is_set) in switches {
        if is_set {
            command.env(name, "1");
        }
    }
    if arguments.json {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let cannot = |error: std::io::Error| {
        let message = format!("{} cannot be started: {error}", name.to_string_lossy());
        Failure::usage(message).next("name a program that is on the path, or its file")
    };
    signals.run(&mut command).map_err(cannot)
}

/// The program's exit code, or 128 and the number of its signal.
fn code_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 | signal as u8;
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Prints what was found after the program's own output.
fn tell(report: &Report) {
    for note in &report.notes {
        complain(format_args!("kiln exec: note: {note}"));
    }
    for file in &report.recordings {
        complain(format_args!("kiln exec: recorded to {file}; `kiln explain` says what it shows"));
    }
    for statistics in &report.statistics {
        complain(format_args!("kiln exec: {statistics}"));
    }
    if report.findings.is_empty() {
        return;
    }
    let (findings, runs) = (counted(report.findings.len() as u64, "finding"), counted(report.runs, "run"));
    complain(format_args!("kiln exec: {findings} in {runs}"));
    for (at, finding) in report.findings.iter().enumerate() {
        complain(format_args!("{:3}. process {}: {}", at + 1, finding.process, finding.text));
    }
}
