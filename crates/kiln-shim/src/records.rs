//! What this process found, for `kiln exec`: one file of JSON lines for each process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kiln_driver::{Code, DeviceFinding, Driver, FindingRule, Site, Timeout, WaitTarget};
use serde::Serialize;

use crate::statistics::{self, Statistics};
use crate::{program_lines, run_settings};

/// Notes that are kept apart by their subject.
const NOTED_SUBJECTS: usize = 4096;

/// A file of the folder that is there as long as everything could be written.
const COMPLETE: &str = "complete";

static RECORDS: Mutex<Records> =
    Mutex::new(Records { file: None, opened: false, has_loss: false, noted: BTreeSet::new() });
/// What devices found and was written down.
static COLLECTED: AtomicU64 = AtomicU64::new(0);
/// Whether a lost device is a finding.
static TELLS_LOSSES: AtomicBool = AtomicBool::new(false);

/// Who is told of findings: with the device, and the work if that is known.
pub(crate) type FindingListener = fn(&DeviceFinding, (u32, Option<&Site>));

static LISTENER: OnceLock<FindingListener> = OnceLock::new();

struct Records {
    file: Option<File>,
    opened: bool,
    has_loss: bool,
    noted: BTreeSet<String>,
}

/// One line of the file.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Record<'a> {
    Finding {
        process: u32,
        seed: u64,
        rule: String,
        kernel: Option<&'a str>,
        line: Option<String>,
        fatal: bool,
        text: &'a str,
        /// The places of the program from which the work was queued.
        queued_at: &'a [String],
    },
    Note {
        process: u32,
        text: &'a str,
    },
    Statistics {
        process: u32,
        seed: u64,
        #[serde(flatten)]
        counts: Statistics,
    },
}

/// Keeps what a device found since the last call; whether work that never ends is part of it.
pub(crate) fn collect(driver: &dyn Driver) -> bool {
    take_findings(driver, |finding| finding)
}

fn take_findings(driver: &dyn Driver, told: impl Fn(DeviceFinding) -> DeviceFinding) -> bool {
    let mut is_hung = false;
    // The limit is what the device keeps; a device that always has something to say must not hold a call for ever.
    for _ in 0..1024 {
        let Err(error) = driver.wait(WaitTarget::Findings, Timeout::Poll) else { break };
        let Some(finding) = error.finding() else { break };
        is_hung |= finding.rule == FindingRule::Hang;
        COLLECTED.fetch_add(1, Ordering::Relaxed);
        keep(&told(finding.clone()), (driver.info().ordinal, error.site()));
    }
    is_hung
}

/// Keeps what a device found since the last call. Those that have a name, which the program does not know, are told with what it is.
pub(crate) fn collect_about(driver: &dyn Driver, name: &str, what: &str) {
    take_findings(driver, |mut finding| {
        if finding.text.contains(name) {
            finding.text = format!("{} ({what})", finding.text);
        }
        finding
    });
}

/// Says how many findings of devices were not kept, of so many.
pub(crate) fn note_left_out(all: u64) {
    let left_out = all.saturating_sub(COLLECTED.load(Ordering::Relaxed));
    if left_out > 0 {
        note(&format!(
            "{left_out} more findings of process {} were left out; mend some of those that are listed, and run it again",
            std::process::id()
        ));
    }
}

/// A sentence for the user.
pub(crate) fn note(text: &str) {
    write(&Record::Note { process: std::process::id(), text });
}

/// The same, once for each subject.
pub(crate) fn note_once(subject: &str, text: &str) {
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = records.noted.len() < NOTED_SUBJECTS && records.noted.insert(subject.to_owned());
    drop(records);
    if is_new {
        note(text);
    }
}

/// Keeps what the library itself found.
pub(crate) fn find(rule: FindingRule, fatal: bool, text: &str) {
    let finding =
        DeviceFinding { rule, kernel: None, line: None, address: None, fatal, text: text.to_owned() };
    keep(&finding, (0, None));
}

/// Keeps what the library counted, if the run asks for it.
pub(crate) fn keep_statistics() {
    if run_settings::reports_statistics() {
        let (process, seed) = (std::process::id(), run_settings::seed());
        write(&Record::Statistics { process, seed, counts: statistics::counts() });
    }
}

/// From here on a device that is lost is a finding, unless one was told that says why; a simulated one in this process tells by itself.
pub(crate) fn expect_losses() {
    TELLS_LOSSES.store(true, Ordering::Relaxed);
}

/// A device was lost: told once for each text.
pub(crate) fn note_loss(code: Code, text: &str) {
    if !TELLS_LOSSES.load(Ordering::Relaxed) {
        return;
    }
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = !std::mem::replace(&mut records.has_loss, true);
    drop(records);
    if is_new {
        let rule = match code {
            Code::ILLEGAL_ADDRESS => FindingRule::OutOfBounds,
            Code::LAUNCH_TIMEOUT => FindingRule::Hang,
            _ => FindingRule::InKernel,
        };
        find(rule, true, text);
    }
}

/// From here on a function is told of each finding, before it is written.
pub(crate) fn listen(listener: FindingListener) {
    // There is one recording in a process.
    let _ = LISTENER.set(listener);
}

fn keep(finding: &DeviceFinding, place: (u32, Option<&Site>)) {
    let (text, queued_at) = program_lines::with_places(&finding.text);
    let finding = &DeviceFinding { text, ..finding.clone() };
    if let Some(listener) = LISTENER.get() {
        listener(finding, place);
    }
    if finding.fatal {
        // It says why the device is lost.
        RECORDS.lock().unwrap_or_else(PoisonError::into_inner).has_loss = true;
    }
    write(&Record::Finding {
        process: std::process::id(),
        seed: run_settings::seed(),
        rule: format!("{:?}", finding.rule),
        kernel: finding.kernel.as_deref(),
        line: finding.line.as_ref().map(ToString::to_string),
        fatal: finding.fatal,
        text: &finding.text,
        queued_at: &queued_at,
    });
}

fn write(record: &Record<'_>) {
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if !records.opened {
        records.opened = true;
        records.file = run_settings::folder().and_then(|folder| open(&folder));
    }
    let text = match record {
        Record::Finding { text, .. } | Record::Note { text, .. } => *text,
        Record::Statistics { .. } => "what the library counted",
    };
    let Some(folder) = run_settings::folder() else {
        let _ = writeln!(std::io::stderr(), "kiln: {text}");
        return;
    };
    let written = match (&mut records.file, serde_json::to_vec(record)) {
        (Some(file), Ok(mut line)) => {
            line.push(b'\n');
            // One call for a whole line, so that lines stay whole.
            file.write_all(&line).is_ok()
        }
        _ => false,
    };
    if !written {
        // The command looks whether this file is there; to remove it needs no room.
        let _ = std::fs::remove_file(folder.join(COMPLETE));
        let _ =
            writeln!(std::io::stderr(), "kiln: this could not be written to {}: {text}", folder.display());
    }
}

fn open(folder: &Path) -> Option<File> {
    let path = folder.join(format!("process-{}.jsonl", std::process::id()));
    File::options().append(true).create(true).mode(0o600).open(path).ok()
}
