//! Exhaustive exploration of the schedules of small programs.

use std::collections::BTreeMap;

use crate::check::finding::Finding;
use crate::machine::Machine;
use crate::machine_config::{MachineConfig, Mode};
use crate::schedule::scheduling_choice::{Choice, Schedule};

/// What came of trying all orders.
#[derive(Clone, Debug)]
#[must_use]
pub struct Exploration<R> {
    /// How many runs were made.
    pub runs: u64,
    /// Whether they were all there are.
    pub verdict: ExploreCoverage,
    /// What the program gave, each value once, with the first schedule that gave it.
    pub outcomes: BTreeMap<R, Schedule>,
    /// What the first run that found anything found.
    pub findings: Vec<Finding>,
    /// How many runs found something.
    pub runs_with_findings: u64,
}

/// Whether all orders were tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExploreCoverage {
    /// All of them.
    Complete,
    /// There are more; the limit was reached first.
    LimitReached,
}

/// Runs a program again and again, on a new machine each time, until every choice of the machine was tried or the
/// limit is reached. The program must do the same whenever the machine does.
///
/// ```
/// use kiln_driver::{Driver, DriverExt, MemoryRequest, Result, StreamRequest};
/// use kiln_sim::{SimChecks, Machine, MachineConfig, ExploreCoverage, explore};
///
/// // Two streams write the same byte, and nothing orders them.
/// fn program(machine: &Machine) -> Result<u8> {
///     let device = machine.device(0)?;
///     let memory = device.allocate(MemoryRequest::Direct { bytes: 1 })?;
///     let host = device.allocate_host(1)?;
///     let one = device.create_stream(StreamRequest::New { priority: 0 })?;
///     let two = device.create_stream(StreamRequest::New { priority: 0 })?;
///     device.fill(one, memory.id.into(), 1, 1)?;
///     device.fill(two, memory.id.into(), 2, 1)?;
///     device.synchronize(one)?;
///     device.synchronize(two)?;
///     device.download(one, memory.id.into(), &host, 1)?;
///     device.synchronize(one)?;
///     let mut byte = [0];
///     assert!(host.read(0, &mut byte));
///     Ok(byte[0])
/// }
///
/// let config = MachineConfig::seeded(0).checks(SimChecks::off());
/// let seen = explore(config, 1_000, |machine| program(machine).unwrap());
/// assert_eq!(seen.verdict, ExploreCoverage::Complete);
/// assert_eq!(seen.outcomes.into_keys().collect::<Vec<_>>(), [1, 2]);
/// ```
pub fn explore<R: Ord>(
    config: MachineConfig,
    limit_runs: u64,
    program: impl Fn(&Machine) -> R,
) -> Exploration<R> {
    let mut seen = Exploration {
        runs: 0,
        verdict: ExploreCoverage::LimitReached,
        outcomes: BTreeMap::new(),
        findings: Vec::new(),
        runs_with_findings: 0,
    };
    let mut script = Vec::new();
    while seen.runs < limit_runs {
        let machine = Machine::new(config.clone().mode(Mode::Scheduled(Schedule(script))));
        let result = program(&machine);
        let report = machine.finish();
        let taken = machine.core().lock().chooser.taken().to_vec();
        seen.runs += 1;
        seen.runs_with_findings += u64::from(!report.is_clean());
        if seen.findings.is_empty() {
            seen.findings = report.findings;
        }
        let schedule = || Schedule(taken.iter().map(|choice| choice.taken).collect());
        seen.outcomes.entry(result).or_insert_with(schedule);
        match next_script(&taken) {
            Some(next) => script = next,
            None => {
                seen.verdict = ExploreCoverage::Complete;
                break;
            }
        }
    }
    seen
}

/// The last choice that has a way not taken yet, with that way; everything before it stays.
fn next_script(taken: &[Choice]) -> Option<Vec<u32>> {
    let at = taken.iter().rposition(|choice| choice.taken + 1 < choice.of)?;
    let mut script: Vec<u32> = taken[..at].iter().map(|choice| choice.taken).collect();
    script.push(taken[at].taken + 1);
    Some(script)
}
