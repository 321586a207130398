//! Every kind of fault, without and with a standby: what was lost, what was kept, and how long each phase took.

use std::fmt::Write;
use std::time::Duration;

use kiln::recovery::{DeviceSpec, Isolation, PostMortem, Process};
use kiln::{DeviceRuntime, RuntimeConfig, buffer::Stale};

use crate::{kernels, rig};

/// How the worker's end is brought about; all but the last by a kernel of that name.
const FAULTS: [&str; 6] = ["illegal", "misaligned", "traps", "asserts", "endless", "killed"];
/// Longer than any honest launch here takes.
const WATCHDOG: Duration = Duration::from_secs(2);

/// Runs the table on a device and returns it as text. `words` is the size of what has to be kept.
pub(crate) fn run(backend: &DeviceSpec, words: usize, standby_pause: Duration) -> String {
    let mut table = format!(
        "{:<11} {:<8} {:>24} {:>5} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "fault",
        "worker",
        "code",
        "lost",
        "kept",
        "kill ms",
        "start ms",
        "pages ms",
        "code ms",
        "queues ms",
        "judge ms",
        "total ms"
    );
    for standby in [false, true] {
        let process = Process { standby, watchdog: Some(WATCHDOG), ..rig::process() };
        let isolation = Isolation::Process(process);
        let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::open(backend, config).unwrap();
        let large: Vec<u32> = (0..words as u32).collect();
        let kept = gpu.upload(&large).unwrap();
        gpu.synchronize().unwrap();
        for fault in FAULTS {
            if standby {
                // For the next one to become ready. Too short a pause shows as a fresh worker in the table.
                std::thread::sleep(standby_pause);
            }
            let report = survive(&gpu, fault);
            assert_eq!(kept.download().unwrap(), large, "{fault}: what was finished is kept");
            row(&mut table, fault, &report);
        }
    }
    table
}

fn survive(gpu: &DeviceRuntime, fault: &str) -> std::sync::Arc<PostMortem> {
    let generation = gpu.generation().0;
    let touched = gpu.zeros::<u32>(16).unwrap();
    gpu.synchronize().unwrap();
    if fault == "killed" {
        let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
        // SAFETY: it writes one element, for ever.
        unsafe { gpu.launch(&endless).grid(1).block(1).write(&touched).submit() }.unwrap();
        gpu.isolated_device().unwrap().kill_worker();
    } else {
        let kernel = gpu.kernel(kernels::PTX, fault).unwrap();
        // SAFETY: it is to fault.
        let ticket = unsafe { gpu.launch(&kernel).grid(1).block(1).write(&touched).submit() }.unwrap();
        assert!(ticket.wait().unwrap_err().is_lost(), "{fault}");
    }
    let report = rig::recovered(gpu, generation);
    assert_eq!(touched.access(), Err(Stale::Lost), "{fault}");
    assert_eq!(report.lost().count(), 1, "{fault}: {report}");
    report
}

fn row(table: &mut String, fault: &str, report: &PostMortem) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let phases = &report.phases;
    let code = report.cause.code().map_or_else(String::new, |code| code.to_string());
    let worker = if report.standby { "standby" } else { "fresh" };
    let (lost, kept) = (report.lost().count(), report.kept().count());
    let _ = write!(table, "{fault:<11} {worker:<8} {code:>24.24} {lost:>5} {kept:>5}");
    for time in
        [phases.kill, phases.start, phases.pages, phases.code, phases.queues, report.decided, report.total]
    {
        let _ = write!(table, " {:>9.3}", ms(time));
    }
    table.push('\n');
}
