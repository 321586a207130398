//! `kiln run`: one launch, from arrays in files to arrays in files.

use std::fmt::Write;

use clap::Args;
use kiln_ptx::exec::Checks;
use serde::Serialize;

use crate::code_file::CodeFile;
use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::launch::{ArgumentSheet, Attempt, KernelFinding, LaunchFlags, Outcome, Plan};
use crate::npy::Outputs;
use crate::source_file::readable;
use crate::table::Table;

/// The flags of `kiln run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    launch: LaunchFlags,
}

const EXAMPLES: &str = "Examples:
  kiln run saxpy.cu --kernel saxpy --grid 4 --block 256 \\
      --arg f32:2.5 --arg in:x.npy --arg inout:y.npy:z.npy --arg u32:1000
  kiln run scale.cu --kernel 'scale<float>' --grid 1 --block 32 --arg out:float32:32:a.npy
  kiln run saxpy.kir --arg in:x.npy --arg inout:y.npy:z.npy --arg f32:2.5

A program (.kir) takes its buffers first and its scalars after them; it has its own block, and its grid follows from the
buffer it runs over unless --grid says otherwise.

Arrays are .npy files in C order and little-endian. Output files are written whole, and only if the kernel ran to its end
and nothing was found.

Exit codes: 0 done, 2 wrong usage or input file, 3 refused (arguments that do not fit the kernel, a device that is not
there), 4 compile error, 5 fault or finding.";

/// What a run says.
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
    /// None on a GPU, whose driver prints by itself.
    printed: Option<String>,
    fault: Option<String>,
    findings: Vec<KernelFinding>,
    written: Vec<Written>,
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
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    let flags = &arguments.launch;
    match perform(flags, console) {
        Ok((report, exit)) if flags.json => console.json("run", &report).max(exit),
        Ok((report, exit)) => {
            console.line(render(&report));
            exit
        }
        Err(failure) => {
            complain(format_args!("kiln run: {}", failure.text));
            failure.exit
        }
    }
}

fn perform(flags: &LaunchFlags, console: &mut Console) -> Result<(Report, Exit), Failure> {
    let code = CodeFile::read(&flags.source)?;
    let plan = Plan::read(&flags.arguments)?;
    let choice = flags.device.choose()?;
    let attempt = match choice.gpu {
        Some(runtime) => {
            if flags.json {
                console.keep_for_itself().map_err(|error| Failure::fault(error.to_string()))?;
            }
            Attempt::on(runtime)
        }
        None => Attempt::simulated(flags, flags.seed, Checks::default())?,
    };
    let outcome = attempt.launch(&code, flags, &plan)?;
    let exit = judge(&outcome);
    let written = if exit == Exit::Done { write(flags, &outcome)? } else { Vec::new() };
    let simulated = choice.gpu.is_none();
    let report = Report {
        kernel: outcome.kernel,
        device: attempt.device(),
        reason: choice.reason,
        seed: simulated.then_some(flags.seed),
        grid: [outcome.grid.x, outcome.grid.y, outcome.grid.z],
        block: [outcome.block.x, outcome.block.y, outcome.block.z],
        shared_bytes: flags.shared,
        arguments: outcome.arguments,
        printed: simulated.then_some(outcome.printed),
        fault: outcome.fault,
        findings: outcome
            .findings
            .into_iter()
            .map(|finding| KernelFinding { seeds: vec![flags.seed], ..finding })
            .collect(),
        written,
        exit: exit.code(),
    };
    Ok((report, exit))
}

/// How a launch ended. A kernel that this device cannot run is refused; it may be right.
fn judge(outcome: &Outcome) -> Exit {
    let Outcome { fault, findings, .. } = outcome;
    match (fault, &findings[..]) {
        (None, []) => Exit::Done,
        (_, [only]) if only.is_unsupported() => Exit::Absent,
        _ => Exit::Fault,
    }
}

fn write(flags: &LaunchFlags, outcome: &Outcome) -> Result<Vec<Written>, Failure> {
    let mut outputs = Outputs::default();
    let mut written = Vec::new();
    for (index, array) in &outcome.arrays {
        let Some(path) = flags.arguments.get(*index).and_then(|spec| spec.output()) else { continue };
        outputs.add(path, array).map_err(|error| Failure::fault(format!("{}: {error}", path.display())))?;
        written.push(Written {
            file: path.display().to_string(),
            element: array.element.to_string(),
            elements: array.elements(),
        });
    }
    outputs
        .publish()
        .map_err(|error| Failure::fault(format!("the results could not be moved into place: {error}")))?;
    Ok(written)
}

fn render(report: &Report) -> String {
    let mut text = String::new();
    if let Some(printed) = report.printed.as_deref().filter(|printed| !printed.is_empty()) {
        let _ = writeln!(text, "{}", printed.strip_suffix('\n').unwrap_or(printed));
    }
    let [gx, gy, gz] = report.grid;
    let [bx, by, bz] = report.block;
    let seed = report.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
    let _ = write!(text, "{} on {}{seed} ({})", readable(&report.kernel), report.device, report.reason);
    let _ = write!(text, "\n  grid {gx} x {gy} x {gz}, block {bx} x {by} x {bz}");
    if report.shared_bytes > 0 {
        let _ = write!(text, ", {} bytes of dynamic shared memory", report.shared_bytes);
    }
    let names = report.arguments.iter().any(|sheet| sheet.name.is_some());
    let head: &[_] = match names {
        true => &["##", "name", "given", "element", "shape", "#bytes", "the program"],
        false => &["##", "given", "element", "shape", "#bytes", "the kernel"],
    };
    let mut table = Table::new(head);
    for sheet in &report.arguments {
        let first = std::iter::once(sheet.index.to_string()).chain(sheet.name.clone());
        table.row(first.chain([
            sheet.given.clone(),
            sheet.element.clone(),
            sheet.shape.as_ref().map_or_else(String::new, |shape| format!("{shape:?}")),
            sheet.bytes.to_string(),
            sheet.effect.unwrap_or("takes it").to_owned(),
        ]));
    }
    if !report.arguments.is_empty() {
        let _ = write!(text, "\n{table}");
    }
    for (at, finding) in report.findings.iter().enumerate() {
        let _ = write!(text, "\n{:3}. {finding}", at + 1);
    }
    if let Some(fault) =
        report.fault.as_ref().filter(|fault| report.findings.iter().all(|found| found.text != **fault))
    {
        let _ = write!(text, "\nfault: {fault}");
    }
    for written in &report.written {
        let _ = write!(text, "\nwrote {}: {} x {}", written.file, written.elements, written.element);
    }
    if report.exit != Exit::Done.code() {
        text.push_str("\nnothing was written");
    }
    text
}
