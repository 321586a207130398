//! `kiln check`: a launch with every check on, in several orders.

use std::fmt::Write;

use clap::Args;
use kiln_ptx::exec::Checks;
use serde::Serialize;

use crate::code_file::CodeFile;
use crate::console::{Console, complain};
use crate::device::Where;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::launch::{ArgumentSheet, Attempt, KernelFinding, LaunchFlags, Outcome, Plan};
use crate::npy::Array;
use crate::source_file::readable;

/// The flags of `kiln check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    launch: LaunchFlags,
    /// In how many orders the kernel is run, beginning with that of --seed.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
}

const EXAMPLES: &str = "Examples:
  kiln check saxpy.cu --kernel saxpy --grid 4 --block 256 \\
      --arg f32:2.5 --arg in:x.npy --arg inout:y.npy:z.npy --arg u32:1000
  kiln check saxpy.kir --arg in:x.npy --arg inout:y.npy:z.npy --arg f32:2.5

It takes what `kiln run` takes, runs on the simulated device, and writes no files. Looked for are accesses outside of an
array, of freed and of misaligned memory, reads of memory nobody wrote, races in shared memory, barriers that not all
threads reach, traps, and kernels that do not end.

Exit codes: 0 nothing found, 2 wrong usage or input file, 3 refused, 4 compile error, 5 findings.";

/// What a check says.
#[derive(Serialize)]
struct Report {
    kernel: String,
    seeds: Vec<u64>,
    arguments: Vec<ArgumentSheet>,
    /// Of the first seed.
    printed: String,
    findings: Vec<KernelFinding>,
    /// What is no mistake by itself and worth knowing.
    notes: Vec<String>,
    exit: u8,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    match perform(arguments) {
        Ok((report, exit)) if arguments.launch.json => console.json("check", &report).max(exit),
        Ok((report, exit)) => {
            console.line(render(&report));
            exit
        }
        Err(failure) => {
            complain(format_args!("kiln check: {}", failure.text));
            failure.exit
        }
    }
}

fn perform(arguments: &Arguments) -> Result<(Report, Exit), Failure> {
    let flags = &arguments.launch;
    if flags.device == Where::Cuda {
        let text =
            "a GPU does not look at what its kernels do; checks run on the simulated device (--device sim)";
        return Err(Failure::refused(text));
    }
    let code = CodeFile::read(&flags.source)?;
    let plan = Plan::read(&flags.arguments)?;
    let mut report: Option<(Report, Vec<(usize, Array)>)> = None;
    for at in 0..arguments.seeds {
        let seed = flags.seed.wrapping_add(at);
        let outcome = Attempt::simulated(flags, seed, Checks::ALL)?.launch(&code, flags, &plan)?;
        match &mut report {
            None => report = Some(first(outcome, seed)),
            Some((report, arrays)) => report.add(outcome, seed, arrays),
        }
    }
    let (mut report, _) = report.ok_or_else(|| Failure::usage("no seed was asked for"))?;
    let exit = match &report.findings[..] {
        [] => Exit::Done,
        findings if findings.iter().all(KernelFinding::is_unsupported) => Exit::Absent,
        _ => Exit::Fault,
    };
    report.exit = exit.code();
    Ok((report, exit))
}

fn first(outcome: Outcome, seed: u64) -> (Report, Vec<(usize, Array)>) {
    let findings = stamped(&outcome, seed);
    let report = Report {
        kernel: outcome.kernel,
        seeds: vec![seed],
        arguments: outcome.arguments,
        printed: outcome.printed,
        findings,
        notes: Vec::new(),
        exit: 0,
    };
    (report, outcome.arrays)
}

/// The findings of a run, with its seed. A fault that nothing explains is a finding, too.
fn stamped(outcome: &Outcome, seed: u64) -> Vec<KernelFinding> {
    let mut findings = outcome.findings.clone();
    if let (Some(fault), true) = (&outcome.fault, findings.is_empty()) {
        findings.push(KernelFinding::of_fault(fault));
    }
    findings.into_iter().map(|finding| KernelFinding { seeds: vec![seed], ..finding }).collect()
}

impl Report {
    /// Takes over what another order showed.
    fn add(&mut self, outcome: Outcome, seed: u64, arrays: &[(usize, Array)]) {
        let first = self.seeds.first().copied().unwrap_or(seed);
        self.seeds.push(seed);
        for finding in stamped(&outcome, seed) {
            match self.findings.iter_mut().find(|known| known.is_like(&finding)) {
                Some(known) => known.seeds.push(seed),
                None => self.findings.push(finding),
            }
        }
        for ((index, one), (_, other)) in arrays.iter().zip(&outcome.arrays) {
            let begin = format!("argument {index} depends on the order of threads");
            if one.bytes != other.bytes && !self.notes.iter().any(|note| note.starts_with(&begin)) {
                let size = one.element.bytes().max(1) as usize;
                let differs = one.bytes.iter().zip(&other.bytes).position(|(one, other)| one != other);
                let element = differs.unwrap_or(0) / size;
                self.notes.push(format!(
                    "{begin}: element {element} is not the same with seeds {first} and {seed}"
                ));
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
    for note in &report.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    let verdict = match report.findings.len() {
        0 => "nothing found".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    let _ = write!(text, "\n{verdict}");
    text
}
