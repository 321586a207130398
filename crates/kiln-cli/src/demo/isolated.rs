//! `kiln demo --isolate`: a device whose worker process is killed in the middle of its work.
//!
//! Some blocks are finished first, and a row of launches is queued on another one. The worker is killed, another takes over at the same
//! addresses, and every block is compared: finished blocks must be unchanged, bit by bit; the interrupted one must report that it is
//! lost, or hold the result if the worker had finished. Then the lost work is done again on the same device.

use std::fmt::Write;
use std::time::Duration;

use kiln::recovery::{Isolation, PostMortem, Process};
use kiln::recovery::{Phase, Status};
use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig, Ticket};
use serde::Serialize;

use super::kernels::{AXPY, BLOCK_THREADS, PTX};
use crate::device_choice::Where;
use crate::exit_code::Exit;
use crate::line_wrap::wrap_behind;

/// Elements of a block.
const ELEMENTS: usize = 1 << 16;
/// Blocks that are finished before the worker is killed.
const FINISHED: usize = 6;
/// Launches that are queued when it is.
const QUEUED: usize = 64;
/// How long another worker may take to start.
const LIMIT: Duration = Duration::from_secs(60);
/// How long work may make no progress.
const WATCHDOG: Duration = Duration::from_secs(10);

/// The report.
#[derive(Serialize)]
pub(super) struct Report {
    device: String,
    chosen: String,
    seed: u64,
    generation: u64,
    cause: String,
    standby: bool,
    lost_blocks: usize,
    kept_blocks: usize,
    takeover_ms: f64,
    checks: Vec<Check>,
    exit: u8,
    #[serde(skip)]
    page: String,
}

/// A check and its result.
#[derive(Serialize)]
struct Check {
    what: &'static str,
    passed: bool,
    detail: String,
}

/// Runs the demo.
///
/// # Errors
/// The device failed, or no worker took over.
pub(super) fn run(wanted: Where, seed: u64) -> kiln::Result<Report> {
    let (backend, chosen) = wanted.backend(seed)?;
    let process = Process { standby: true, watchdog: Some(WATCHDOG), ..Process::default() };
    let isolation = Isolation::Process(process);
    let gpu = DeviceRuntime::open(&backend, RuntimeConfig { isolation, ..RuntimeConfig::default() })?;
    let mut show = Show::prepare(&gpu, seed)?;
    show.queue()?;
    if let Some(device) = gpu.isolated_device() {
        device.kill_worker();
    }
    let came_back = |status: &Status| status.generation.0 > 0 && status.phase() == Phase::Ready;
    let status = gpu.watch().wait_until(|status| came_back(status) || status.phase().is_over(), Some(LIMIT));
    if let Some(cause) = status.state.cause().filter(|_| status.phase() == Phase::Failed) {
        return Err(cause.error().clone().into());
    }
    let checks = vec![show.check_finished()?, show.check_interrupted()?, show.go_on()?];
    let reports = gpu.post_mortems();
    Ok(Report::new(&gpu, chosen, seed, reports.last().map(|report| &**report), checks))
}

/// The blocks of the demo and what they hold.
struct Show<'a> {
    gpu: &'a DeviceRuntime,
    axpy: Kernel,
    x: GpuRef<f32>,
    finished: Vec<GpuRef<f32>>,
    interrupted: GpuRef<f32>,
    seed: u64,
    tickets: Vec<Ticket>,
}

impl<'a> Show<'a> {
    /// Finishes some work, and waits for it.
    fn prepare(gpu: &'a DeviceRuntime, seed: u64) -> kiln::Result<Self> {
        let axpy = gpu.kernel(PTX, AXPY)?;
        let x = gpu.upload(&vec![1.0; ELEMENTS])?;
        let finished = (0..FINISHED).map(|at| gpu.upload(&data(seed, at))).collect::<kiln::Result<_>>()?;
        let interrupted = gpu.upload(&data(seed, FINISHED))?;
        let show = Self { gpu, axpy, x, finished, interrupted, seed, tickets: Vec::new() };
        for y in &show.finished {
            show.add_one(y)?;
        }
        gpu.synchronize()?;
        Ok(show)
    }

    /// Queues more than the worker can do before it is killed.
    fn queue(&mut self) -> kiln::Result<()> {
        for _ in 0..QUEUED {
            self.tickets.push(self.add_one(&self.interrupted)?);
        }
        Ok(())
    }

    fn add_one(&self, y: &GpuRef<f32>) -> kiln::Result<Ticket> {
        let n = ELEMENTS as u32;
        let mut launch = self.gpu.launch(&self.axpy);
        launch.grid(n.div_ceil(BLOCK_THREADS)).block(BLOCK_THREADS);
        launch.value(1.0_f32).read(&self.x).read_write(y).value(n);
        // SAFETY: `axpy` touches the first `n` elements of its two buffers and nothing else, and both have `n`.
        unsafe { launch.submit() }
    }

    fn check_finished(&self) -> kiln::Result<Check> {
        let mut wrong = 0;
        for (at, y) in self.finished.iter().enumerate() {
            wrong += count_wrong(&y.download()?, &data(self.seed, at), 1.0);
        }
        let detail = match wrong {
            0 => format!("{} elements are unchanged, bit by bit", FINISHED * ELEMENTS),
            _ => format!("{wrong} elements changed"),
        };
        Ok(Check { what: "finished before", passed: wrong == 0, detail })
    }

    fn check_interrupted(&self) -> kiln::Result<Check> {
        let failed = self.tickets.iter().filter(|ticket| ticket.is_done().is_err()).count();
        let done = QUEUED - failed;
        let (passed, detail) = match self.interrupted.access() {
            Err(_) => (
                failed > 0,
                format!("{failed} of {QUEUED} launches failed, and their block reports that it is lost"),
            ),
            Ok(_) => {
                let wrong =
                    count_wrong(&self.interrupted.download()?, &data(self.seed, FINISHED), QUEUED as f32);
                (
                    wrong == 0 && failed == 0,
                    format!("all {done} launches were done already; {wrong} elements are wrong"),
                )
            }
        };
        Ok(Check { what: "under way", passed, detail })
    }

    /// Does the lost work again, on the same device.
    fn go_on(&self) -> kiln::Result<Check> {
        let again = self.gpu.upload(&data(self.seed, FINISHED))?;
        for _ in 0..QUEUED {
            self.add_one(&again)?;
        }
        let wrong = count_wrong(&again.download()?, &data(self.seed, FINISHED), QUEUED as f32);
        let detail = format!("{QUEUED} launches in the new worker; {wrong} of {ELEMENTS} elements are wrong");
        Ok(Check { what: "done again", passed: wrong == 0, detail })
    }
}

/// Whole numbers that depend on the seed, small enough to be added to without rounding.
fn data(seed: u64, block: usize) -> Vec<f32> {
    let start = seed.wrapping_mul(31).wrapping_add(block as u64);
    (0..ELEMENTS as u64).map(|at| (start.wrapping_add(at * 7) % 100_000) as f32).collect()
}

fn count_wrong(found: &[f32], before: &[f32], added: f32) -> usize {
    found.iter().zip(before).filter(|(found, before)| found.to_bits() != (*before + added).to_bits()).count()
}

/// Removes the places of the launches, which are lines of this file and mean nothing to a user of the command.
fn without_lines_of_the_demo(page: &str) -> String {
    let mut parts = page.split(concat!(" at ", file!(), ":"));
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit())));
    text
}

impl Report {
    fn new(
        gpu: &DeviceRuntime,
        chosen: String,
        seed: u64,
        report: Option<&PostMortem>,
        mut checks: Vec<Check>,
    ) -> Self {
        let detail = match report {
            Some(_) => "another worker took over".to_owned(),
            None => "no worker took over".to_owned(),
        };
        checks.insert(0, Check { what: "the takeover", passed: report.is_some(), detail });
        let exit = if checks.iter().all(|check| check.passed) { Exit::Done } else { Exit::Fault };
        let info = gpu.info();
        Self {
            device: format!("{} device {}: {}", info.kind, info.ordinal, info.name),
            chosen,
            seed,
            generation: gpu.generation().0,
            cause: report.map(|report| report.worker.to_string()).unwrap_or_default(),
            standby: report.is_some_and(|report| report.standby),
            lost_blocks: report.map_or(0, |report| report.lost().count()),
            kept_blocks: report.map_or(0, |report| report.kept().count()),
            // Microseconds are enough.
            takeover_ms: report.map_or(0.0, |report| report.total.as_micros() as f64 / 1e3),
            checks,
            exit: exit.code(),
            page: report.map(|report| without_lines_of_the_demo(&report.to_string())).unwrap_or_default(),
        }
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        if self.exit == Exit::Done.code() { Exit::Done } else { Exit::Fault }
    }

    /// The report as text.
    pub(super) fn text(&self, columns: usize) -> String {
        let Self { device, chosen, page, .. } = self;
        let mut text = format!(
            "kiln demo in a worker process on {device} ({chosen})\n{FINISHED} blocks finished, {QUEUED} launches queued on another, \
             then the worker was killed\n\n{page}\n\nChecks:"
        );
        for Check { what, passed, detail } in &self.checks {
            let mark = if *passed { "ok    " } else { "FAILED" };
            let _ = write!(
                text,
                "\n{}",
                wrap_behind(&format!("  {mark} "), &format!("{what}: {detail}"), columns)
            );
        }
        text
    }
}
