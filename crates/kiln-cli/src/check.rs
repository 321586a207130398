//! `kiln check`: a launch on the simulated device with every check on, in several orders of blocks and warps.

use std::fmt::Write;

use clap::Args;
use kiln_ptx::exec::Checks;
use serde::Serialize;

use crate::code_file::CodeFile;
use crate::console::Console;
use crate::device::Where;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::kernel_name::readable;
use crate::launch::{ArgumentSheet, Attempt, KernelFinding, LaunchFlags, Outcome, Plan, ResultArray};

/// The flags of `kiln check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) launch: LaunchFlags,
    /// The number of orders in which the kernel is run: the seeds from --seed on.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
}

const EXAMPLES: &str = "Examples:
  kiln check saxpy.cu --grid 4 --block 256 \\
      --arg f32:2.5 --arg in:x.npy --arg inout:y.npy:z.npy --arg u32:1000
  kiln check saxpy.kir --arg in:x.npy --arg inout:y.npy:z.npy --arg f32:2.5

`kiln check` takes the arguments of `kiln run` and writes no files. It finds
accesses outside of an array, to freed memory and at misaligned addresses,
reads of memory that was never written, races in shared memory, barriers that
not all threads reach, deadlocks, failed assertions, traps, and kernels that
do not end.

Exit codes: 0 no finding, 2 wrong usage or input file, 3 refused, 4 compile
error, 5 findings.";

/// The report of a check.
#[derive(Serialize)]
struct Report {
    kernel: String,
    seeds: Vec<u64>,
    arguments: Vec<ArgumentSheet>,
    warnings: Vec<String>,
    /// With the first seed.
    printed: String,
    findings: Vec<KernelFinding>,
    /// What is worth knowing and may be right.
    notes: Vec<String>,
    exit: u8,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let (report, exit) = perform(arguments)?;
    if arguments.launch.json {
        console.json(&report)?;
    } else {
        console.line(render(&report));
    }
    Ok(exit)
}

fn perform(arguments: &Arguments) -> Result<(Report, Exit), Failure> {
    let flags = &arguments.launch;
    if flags.device == Where::Cuda {
        let message = "a GPU does not check the accesses of its kernels";
        return Err(Failure::refused(message).next("use --device sim, on which checks run"));
    }
    let code = CodeFile::read(&flags.source)?;
    let plan = Plan::read(&flags.arguments)?;
    let mut report: Option<(Report, Vec<ResultArray>)> = None;
    for at in 0..arguments.seeds {
        let seed = flags.seed.wrapping_add(at);
        let outcome = Attempt::simulated(flags, seed, Checks::ALL)?.launch(&code, flags, &plan)?;
        let endless = outcome.findings.iter().any(KernelFinding::is_endless);
        match &mut report {
            None => report = Some(first(outcome, seed)),
            Some((report, results)) => report.add(outcome, seed, results),
        }
        if let (true, Some((report, _))) = (endless && at + 1 < arguments.seeds, &mut report) {
            report
                .notes
                .push(format!("the kernel does not end with seed {seed}; the other seeds were not run"));
            break;
        }
    }
    let (mut report, _) = report.ok_or_else(|| Failure::usage("give at least one seed"))?;
    let exit = match &report.findings[..] {
        [] => Exit::Done,
        findings if findings.iter().all(KernelFinding::is_unsupported) => Exit::Absent,
        _ => Exit::Fault,
    };
    report.exit = exit.code();
    Ok((report, exit))
}

fn first(outcome: Outcome, seed: u64) -> (Report, Vec<ResultArray>) {
    let findings = stamped(&outcome, seed);
    let report = Report {
        kernel: outcome.kernel,
        seeds: vec![seed],
        arguments: outcome.arguments,
        warnings: outcome.warnings,
        printed: outcome.printed,
        findings,
        notes: Vec::new(),
        exit: 0,
    };
    (report, outcome.results)
}

/// The findings of a run, with its seed. A fault that no finding explains is a finding itself.
fn stamped(outcome: &Outcome, seed: u64) -> Vec<KernelFinding> {
    let mut findings = outcome.findings.clone();
    if let (Some(fault), true) = (&outcome.fault, findings.is_empty()) {
        findings.push(KernelFinding::of_fault(fault));
    }
    findings.into_iter().map(|finding| KernelFinding { seeds: vec![seed], ..finding }).collect()
}

impl Report {
    /// Adds what another seed showed.
    fn add(&mut self, outcome: Outcome, seed: u64, results: &[ResultArray]) {
        let first = self.seeds.first().copied().unwrap_or(seed);
        self.seeds.push(seed);
        for finding in stamped(&outcome, seed) {
            match self.findings.iter_mut().find(|known| known.is_like(&finding)) {
                Some(known) => known.seeds.push(seed),
                None => self.findings.push(finding),
            }
        }
        for (one, other) in results.iter().zip(&outcome.results) {
            let begin = format!("argument {} depends on the order of threads", one.argument);
            let (one, other) = (&one.array, &other.array);
            if one.bytes != other.bytes && !self.notes.iter().any(|note| note.starts_with(&begin)) {
                let size = one.element.bytes().max(1) as usize;
                let differs = one.bytes.iter().zip(&other.bytes).position(|(one, other)| one != other);
                let element = differs.unwrap_or(0) / size;
                self.notes
                    .push(format!("{begin}: element {element} differs between seeds {first} and {seed}"));
            }
        }
    }
}

fn render(report: &Report) -> String {
    let mut text = String::new();
    if !report.printed.is_empty() {
        let _ = writeln!(text, "{}", report.printed.strip_suffix('\n').unwrap_or(&report.printed));
    }
    let orders = match &report.seeds[..] {
        [only] => format!("seed {only}"),
        [first, .., last] => format!("seeds {first} to {last}"),
        [] => String::new(),
    };
    let _ = write!(text, "{} on the simulated device, {orders}, every check on", readable(&report.kernel));
    for (at, finding) in report.findings.iter().enumerate() {
        let _ = write!(text, "\n{:3}. {finding}", at + 1);
        if finding.seeds.len() < report.seeds.len() {
            let seeds: Vec<String> = finding.seeds.iter().map(u64::to_string).collect();
            let _ = write!(text, "\n     only with seed {}", seeds.join(", "));
        }
    }
    for warning in &report.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    for note in &report.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    let summary = match report.findings.len() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    let _ = write!(text, "\n{summary}");
    text
}
