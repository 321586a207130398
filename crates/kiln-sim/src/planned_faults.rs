//! Which faults of a plan have come.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use crate::fault_plan::{FaultPlan, PlannedFault};

/// A plan while it is carried out.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFaults {
    plan: FaultPlan,
    /// In the order of the plan.
    has_come: Vec<Cell<bool>>,
    log: Option<PathBuf>,
}

impl PlannedFaults {
    pub(crate) fn new(plan: FaultPlan, log: Option<PathBuf>) -> Self {
        Self { has_come: vec![Cell::new(false); plan.faults.len()], plan, log }
    }

    pub(crate) fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// What a device meets now: the first fault of it that `is_due` has an answer for comes.
    pub(crate) fn meet<T>(&self, device: u32, is_due: impl Fn(&PlannedFault) -> Option<T>) -> Option<T> {
        let mut faults = self.plan.faults.iter().enumerate();
        let (at, met) = faults.find_map(|(at, (of, fault))| {
            let met = is_due(fault).filter(|_| *of == device);
            Some((at, met?))
        })?;
        self.come(at);
        Some(met)
    }

    /// The link that is cut with so many transfers between two devices: which device is lost by that, the other one, and the transfer.
    pub(crate) fn meet_cut_link(&self, pair: (u32, u32), passed: u64) -> Option<(u32, u32, u64)> {
        let mut faults = self.plan.faults.iter().enumerate();
        let (at, cut) = faults.find_map(|(at, (device, fault))| match fault {
            PlannedFault::LinkCut { to, transfer } => {
                let is_cut = (*device.min(to), *device.max(to)) == pair && *transfer == passed;
                is_cut.then_some((at, (*device, *to, *transfer)))
            }
            _ => None,
        })?;
        self.come(at);
        Some(cut)
    }

    /// How many times as long a copy of a device takes.
    pub(crate) fn meet_slow_copy(&self, device: u32) -> u64 {
        let factor = self.plan.copy_factor(device);
        if factor != 1 {
            self.all_come(|of, fault| of == device && matches!(fault, PlannedFault::SlowCopies { .. }));
        }
        factor
    }

    /// How many times as long what passes the link between two devices takes.
    pub(crate) fn meet_slow_link(&self, one: u32, other: u32) -> u64 {
        let factor = self.plan.link_factor(one, other);
        if factor != 1 {
            self.all_come(|of, fault| match fault {
                PlannedFault::SlowLink { to, .. } => (of, *to) == (one, other) || (of, *to) == (other, one),
                _ => false,
            });
        }
        factor
    }

    /// Those that have not come, in the order of the plan.
    pub(crate) fn to_come(&self) -> Vec<(u32, PlannedFault)> {
        let faults = self.plan.faults.iter().zip(&self.has_come);
        faults.filter(|(_, has_come)| !has_come.get()).map(|(fault, _)| fault.clone()).collect()
    }

    fn all_come(&self, is_one: impl Fn(u32, &PlannedFault) -> bool) {
        let faults = self.plan.faults.iter().enumerate();
        let come: Vec<usize> =
            faults.filter(|(_, (of, fault))| is_one(*of, fault)).map(|(at, _)| at).collect();
        come.into_iter().for_each(|at| self.come(at));
    }

    fn come(&self, at: usize) {
        if self.has_come.get(at).is_none_or(|known| known.replace(true)) {
            return;
        }
        let Some(log) = &self.log else { return };
        // Processes may write to one file: a line at a time, at its end.
        let _ = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .and_then(|mut file| file.write_all(format!("{at}\n").as_bytes()));
    }
}
