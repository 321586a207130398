//! What the simulated devices of a run check, and what goes wrong on them.

use std::collections::BTreeSet;
use std::path::Path;

use clap::ValueEnum;
use kiln_sim::FaultPlan;

use super::Arguments;
use super::target::Target;
use crate::failure::Failure;
use crate::fault_log::{self, NOT_COME};

/// A check that can be chosen. Accesses outside of memory, calls with bad handles and work that never ends are found in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Check {
    /// Accesses to the same bytes that nothing orders.
    Races,
    /// Memory used outside of its life, and objects destroyed while work needs them.
    Lifetimes,
    /// Bytes read that were never written.
    Uninit,
    /// What the program has not given back at its end, as with --leaks.
    Leaks,
    /// None of these.
    None,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Races => "races",
            Self::Lifetimes => "lifetimes",
            Self::Uninit => "uninit",
            Self::Leaks => "leaks",
            Self::None => "none",
        }
    }
}

/// The variables of the program that say so.
///
/// # Errors
/// A fault plan that cannot be read or is about a device that the program does not see; both without simulated devices in the program's process.
pub(super) fn variables(arguments: &Arguments) -> Result<Vec<(&'static str, String)>, Failure> {
    let is_here = arguments.device == Target::Sim && !arguments.isolate;
    let given = [("--fault", arguments.fault.is_some()), ("--check", !arguments.check.is_empty())];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given && !is_here) {
        let message = format!("{flag} is for simulated devices in the program's own process");
        return Err(Failure::usage(message).next("leave --device cuda and --isolate out"));
    }
    let mut variables = Vec::new();
    if let Some(text) = &arguments.fault {
        let plan: FaultPlan = text.parse().map_err(|error| Failure::usage(format!("--fault: {error}")))?;
        let devices = arguments.devices.unwrap_or(1);
        let of_plan = plan.faults.iter().flat_map(|(device, fault)| [Some(*device), fault.other_device()]);
        if let Some(device) = of_plan.flatten().find(|device| *device >= devices) {
            let message =
                format!("--fault: the plan is about device {device}, and the program sees {devices}");
            return Err(Failure::usage(message).next("name a device that is there, or give --devices"));
        }
        variables.push(("KILN_EXEC_FAULT", text.clone()));
    }
    if let [_, _, ..] = arguments.check[..]
        && arguments.check.contains(&Check::None)
    {
        let message = "--check none leaves all checks out, and others are named with it";
        return Err(Failure::usage(message).next("leave `none` out, or the others"));
    }
    if !arguments.check.is_empty() {
        let names: Vec<&str> = arguments.check.iter().map(|check| check.name()).collect();
        variables.push(("KILN_EXEC_CHECKS", names.join(",")));
    }
    Ok(variables)
}

/// Where the processes of a run write which faults of the plan have come.
const FAULT_LOG: &str = "faults-come";

/// Which faults of the plan have come in the runs so far.
#[derive(Default)]
pub(super) struct FaultsCome(BTreeSet<usize>);

impl FaultsCome {
    /// Reads what the processes of a run have written to its folder.
    pub(super) fn read(&mut self, folder: &Path) {
        self.0.extend(fault_log::read(&folder.join(FAULT_LOG)));
    }

    /// What is said of the faults of a plan that came in no run, if there are any.
    pub(super) fn note(&self, plan: Option<&str>) -> Option<String> {
        let plan: FaultPlan = plan?.parse().ok()?;
        let faults = plan.faults.into_iter().enumerate().filter(|(at, _)| !self.0.contains(at));
        let left = FaultPlan { faults: faults.map(|(_, fault)| fault).collect() };
        (!left.faults.is_empty()).then(|| format!("{NOT_COME}{left}"))
    }
}
