//! What `kiln exec` tells a process, in variables of its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use kiln_sim::{FaultPlan, SimChecks};

/// The check that is made at the end of a process.
const LEAKS: &str = "leaks";
/// As `kiln exec` has it.
const DEFAULT_STEP_LIMIT: u64 = 1 << 30;

/// Which devices a program sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Simulated,
    Cuda,
}

/// Which devices this program sees.
pub(crate) fn target() -> Target {
    match std::env::var("KILN_EXEC_TARGET").as_deref() {
        Ok("cuda") => Target::Cuda,
        _ => Target::Simulated,
    }
}

/// The program whose processes have the devices, if this one should not.
pub(crate) fn worker() -> Option<PathBuf> {
    std::env::var_os("KILN_EXEC_WORKER").map(PathBuf::from)
}

/// Whether what the program does not give back is a finding.
pub(crate) fn reports_leaks() -> bool {
    number("KILN_EXEC_LEAKS") == Some(1)
        || chosen_checks().is_some_and(|checks| checks.iter().any(|check| check == LEAKS))
}

/// Whether the run asks for what the library counts.
pub(crate) fn reports_statistics() -> bool {
    number("KILN_EXEC_STATS") == Some(1)
}

/// What the simulated devices check. A launch says nothing about what it touches, and programs leave much to the end of the process.
pub(crate) fn checks() -> SimChecks {
    let all = SimChecks { declarations: false, leaks: false, ..SimChecks::default() };
    let Some(chosen) = chosen_checks() else { return all };
    let has = |name: &str| chosen.iter().any(|chosen| chosen == name);
    SimChecks { races: has("races"), lifetimes: has("lifetimes"), uninitialised: has("uninit"), ..all }
}

/// The names of the checks that were chosen, if the run chooses.
fn chosen_checks() -> Option<Vec<String>> {
    let names = std::env::var("KILN_EXEC_CHECKS").ok().filter(|names| !names.is_empty())?;
    Some(names.split(',').map(str::to_owned).collect())
}

/// What goes wrong on the simulated devices; the command has refused a plan that cannot be read.
pub(crate) fn faults() -> FaultPlan {
    let plan = std::env::var("KILN_EXEC_FAULT").ok().filter(|plan| !plan.is_empty());
    plan.and_then(|plan| plan.parse().ok()).unwrap_or_default()
}

/// Where it is written which of these have come.
pub(crate) fn fault_log() -> Option<PathBuf> {
    folder().map(|folder| folder.join("faults-come"))
}

/// Whether what may be a mistake is a finding.
pub(crate) fn is_strict() -> bool {
    number("KILN_EXEC_STRICT") == Some(1)
}

/// The folder of the run, for what is found.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("KILN_EXEC_FOLDER").map(PathBuf::from)
}

/// The file that the processes of the run are recorded to, if they are.
pub(crate) fn trace_file() -> Option<PathBuf> {
    std::env::var_os("KILN_EXEC_TRACE").filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// The command that started the run, as it left it in the folder.
pub(crate) fn command() -> Option<Vec<OsString>> {
    let words = std::fs::read(folder()?.join("command")).ok()?;
    let words = words.strip_suffix(&[0])?.split(|byte| *byte == 0);
    Some(words.map(|word| OsStr::from_bytes(word).to_owned()).collect())
}

/// The seed of the run.
pub(crate) fn seed() -> u64 {
    number("KILN_EXEC_SEED").unwrap_or(0)
}

/// How many instructions one warp may execute, or all together until a thread exits.
pub(crate) fn step_limit() -> u64 {
    number("KILN_EXEC_STEPS").unwrap_or(DEFAULT_STEP_LIMIT)
}

/// How many devices there are.
pub(crate) fn devices() -> Option<u64> {
    number("KILN_EXEC_DEVICES")
}

/// The memory of each device.
pub(crate) fn memory_bytes() -> Option<u64> {
    number("KILN_EXEC_MEMORY")
}

/// A number that is the same for all processes of a run, and another one for other runs.
pub(crate) fn run_number() -> u64 {
    let folder = std::env::var_os("KILN_EXEC_FOLDER").unwrap_or_default();
    // The hash FNV-1a of 64 bits.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    folder.as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
