//! The steps by which devices were brought back.

use std::collections::BTreeMap;

use super::explanation::ExplainedTakeover;
use crate::record::{TakeoverPhase, TakeoverRecord};

/// Steps that are kept to explain idle time.
const MAX_STEPS: usize = 4096;
const PHASES: [TakeoverPhase; 3] =
    [TakeoverPhase::Lost, TakeoverPhase::Rebuilding, TakeoverPhase::Resubmitting];

/// The steps of all devices.
#[derive(Default)]
pub(super) struct TakeoverSteps {
    last: Vec<TakeoverRecord>,
    /// How long and how often, by device and phase.
    sums: BTreeMap<(u32, u8), (u64, u64)>,
}

impl TakeoverSteps {
    pub(super) fn add(&mut self, step: TakeoverRecord) {
        let (ns, times) = self.sums.entry((step.device, step.phase as u8)).or_default();
        (*ns, *times) = (ns.saturating_add(step.span.ns()), *times + 1);
        if self.last.len() >= MAX_STEPS {
            self.last.drain(..MAX_STEPS / 2);
        }
        self.last.push(step);
    }

    /// The last ones, which are enough for what is looked at.
    pub(super) fn last(&self) -> &[TakeoverRecord] {
        &self.last
    }

    /// The devices that were brought back.
    pub(super) fn devices(&self) -> impl Iterator<Item = u32> {
        self.sums.keys().map(|(device, _)| *device)
    }

    /// How long the steps of a device took.
    pub(super) fn of(&self, device: u32) -> Vec<ExplainedTakeover> {
        let step = |phase: TakeoverPhase| {
            let (ns, times) = *self.sums.get(&(device, phase as u8))?;
            Some(ExplainedTakeover { phase, ns, times })
        };
        PHASES.into_iter().filter_map(step).collect()
    }
}
