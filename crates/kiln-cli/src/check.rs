//! `kiln check`: a launch on the simulated device with every check on, in several orders of blocks and warps.

mod array_difference;
mod expected_result;
mod given_tolerance;
mod not_checked;
mod report;
mod text;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use kiln_sim::KernelLog;

use crate::code_file::CodeFile;
use crate::console::Console;
use crate::device_choice::Where;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::launch::{Attempt, KernelFinding, LaunchFlags, Plan, check_memory, count_out_of_range};
use crate::note_kind::NoteKind;
use crate::progress_line::ProgressLine;
use crate::run::findings_setting;
use expected_result::{ExpectSpec, ExpectedResult};
use given_tolerance::GivenTolerance;
use not_checked::Unchecked;
use report::Report;

/// The flags of `kiln check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) launch: LaunchFlags,
    /// How many orders of blocks and warps to run the kernel in: one for each seed from --seed on. Without this flag 4, and a kernel with atomics or volatile accesses and
    /// at most 16,384 threads also runs in up to 12 orders without checks, to compare its results.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// What an array argument holds when the launch is over, in every order: N is its number, counted from 0. Elements that differ are a finding. Repeat the flag
    /// for each array.
    #[arg(long = "expect", value_name = "N=FILE", value_parser = OsStringValueParser::new().try_map(|word| ExpectSpec::of_word(&word)))]
    expected: Vec<ExpectSpec>,
    /// How far floats may lie from what is expected: by RELATIVE for each unit of the expected value, by ABSOLUTE besides, and by the rounding to their type. Results of two orders may
    /// differ by twice as much. Without this flag they are equal.
    #[arg(long, value_name = "RELATIVE[,ABSOLUTE]", value_parser = GivenTolerance::of_word, allow_hyphen_values = true)]
    tolerance: Option<GivenTolerance>,
    // The help comes from the kinds of notes.
    #[arg(long, help = NoteKind::strict_help())]
    strict: bool,
}

/// Seeds of a check that does not say how many.
const DEFAULT_SEEDS: u64 = 4;
/// Further seeds that a check without a number of seeds runs to compare results.
const COMPARED_SEEDS: u64 = 12;
/// A larger launch is not run again to compare results.
const MAX_COMPARED_THREADS: u64 = 16_384;

const EXAMPLES: &str = "Examples:
  kiln check saxpy.cu --grid 4 --block 256 \\
      --arg f32:2.5 --arg in:x.npy --arg inout:y.npy:z.npy --arg u32:1000
  kiln check saxpy.kir --arg in:x.npy --arg inout:y.npy:z.npy --arg f32:2.5
  kiln check saxpy.kir --arg in:x.npy --arg inout:y.npy --arg f32:2.5 \\
      --expect 1=numpy.npy --tolerance 1e-6

`kiln check` takes the arguments of `kiln run` and writes no files. It finds accesses outside of \
     an array, to freed memory and at misaligned addresses, reads of memory that was never written \
     (an out: array holds nothing at first; zeros: holds zeros), elements of outputs that are \
     undefined afterwards and elements of an out: array that no thread wrote, races, barriers that \
     not all threads reach, deadlocks, failed assertions, traps, and kernels that do not end. The \
     report ends with what was not checked.

A check always runs on the simulated device and refuses --device cuda: a GPU does not check \
     accesses. KILN_POLICY and KILN_FINDINGS make no difference to it, but an invalid value of either \
     is refused.

An index out of range in a program (.kir) is no finding: a load gives 0 and a store does \
     nothing. A note counts them. Threads past the end of the buffer that the program runs over are \
     not counted.

Exit codes: 0 no finding, 2 wrong usage or file, 3 refused (arguments that do not fit, or an \
     instruction that the simulated device does not execute and nothing found before it), 4 compile \
     error, 5 findings.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let (report, exit) = perform(arguments)?;
    if arguments.launch.json {
        console.json(&report)?;
    } else {
        console.line(text::render(&report));
    }
    Ok(exit)
}

fn perform(arguments: &Arguments) -> Result<(Report, Exit), Failure> {
    let flags = &arguments.launch;
    if flags.device == Where::Cuda {
        let message = "a GPU does not check the accesses of its kernels";
        return Err(Failure::refused(message).next("use --device sim, on which checks run"));
    }
    // The variables make no difference to a check: it is for findings, and uses no GPU. An invalid value is refused here, too.
    findings_setting()?;
    kiln::probe::policy()?;
    let seeds = arguments.seeds.unwrap_or(DEFAULT_SEEDS);
    check_seeds(flags.seed, seeds)?;
    let code = CodeFile::read(&flags.source)?;
    // The results of the first seed are compared with those of the others.
    check_memory(&flags.arguments, 2)?;
    let plan = Plan::read(&flags.arguments, &flags.constants, &flags.source.file)?;
    let expected = ExpectedResult::read(&arguments.expected, &plan)?;
    let log = KernelLog::default();
    let mut report = Report::new(arguments.strict, arguments.tolerance.unwrap_or_default());
    let mut expected = Some(expected);
    for at in 0..seeds {
        let seed = flags.seed + at;
        let attempt = Attempt::checked(flags, seed, arguments.strict, &log)?;
        let prefix = format!("seed {} of {seeds}: ", at + 1);
        let progress = attempt.progress().map(|progress| ProgressLine::start(progress, prefix));
        let outcome = attempt.launch(&code, flags, &plan)?;
        drop(progress);
        // A launch that faulted has no results, and nothing is expected of it.
        if outcome.fault.is_none()
            && let Some(expected) = expected.take()
        {
            let converted = expected.into_iter().map(|one| one.converted(&outcome.results, flags.cast));
            report.expected = converted.collect::<Result<_, _>>()?;
        }
        let endless = outcome.findings.iter().any(KernelFinding::is_endless);
        report.add(outcome, seed);
        if endless && at + 1 < seeds {
            report.remark(format!("the kernel does not end with seed {seed}; the other seeds were not run"));
            break;
        }
    }
    if arguments.seeds.is_none()
        && report.may_differ(MAX_COMPARED_THREADS)
        && let Some(seed) = compare(&mut report, &code, flags, &plan)?
    {
        // Run again with checks, so that the fault becomes a finding with its cause.
        let attempt = Attempt::checked(flags, seed, arguments.strict, &log)?;
        report.add(attempt.launch(&code, flags, &plan)?, seed);
    }
    if let CodeFile::Program(file) = &code {
        // The interpreter would not end where the device did not.
        let ends = !report.findings.iter().any(KernelFinding::is_endless);
        match ends.then(|| count_out_of_range(&file.program, flags, &plan)).transpose()?.flatten() {
            Some(counts) => report.note_indices(counts),
            None => report.indices_not_counted = true,
        }
    }
    report.place_notes();
    report.separate_refused();
    report.keep(flags.max_findings as usize);
    report.not_checked = Unchecked::new(&report, &log);
    let exit = match (report.findings.is_empty(), report.refused.is_empty()) {
        (false, _) => Exit::Fault,
        (true, false) => Exit::Absent,
        (true, true) => Exit::Done,
    };
    report.exit = exit.code();
    Ok((report, exit))
}

/// Runs a kernel in further orders until its results differ from those of the first. Returns the seed of an order in which it faults.
fn compare(
    report: &mut Report,
    code: &CodeFile,
    flags: &LaunchFlags,
    plan: &Plan,
) -> Result<Option<u64>, Failure> {
    for at in DEFAULT_SEEDS..DEFAULT_SEEDS + COMPARED_SEEDS {
        let Some(seed) = flags.seed.checked_add(at) else { break };
        let outcome = Attempt::unchecked(flags, seed)?.launch(code, flags, plan)?;
        if outcome.fault.is_some() {
            return Ok(Some(seed));
        }
        report.compared_seeds.push(seed);
        report.judge(&outcome, seed);
        if report.compare(&outcome, seed) {
            break;
        }
    }
    Ok(None)
}

/// Whether there are so many seeds from the first one on.
fn check_seeds(first: u64, count: u64) -> Result<(), Failure> {
    match first.checked_add(count - 1) {
        Some(_) => Ok(()),
        None => {
            let message = format!("--seed {first} --seeds {count}: the last seed is {}", u64::MAX);
            let most = u64::MAX - first + 1;
            Err(Failure::usage(message).next(format!("give --seeds {most} at most, or a smaller --seed")))
        }
    }
}
