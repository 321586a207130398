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
    losses: BTreeMap<u32, Losses>,
}

/// How often a device was lost, and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Losses {
    pub(super) lost: u64,
    pub(super) brought_back: u64,
    /// Whether it is being made again, or was when the recording ends.
    is_rebuilt: bool,
}

impl TakeoverSteps {
    pub(super) fn add(&mut self, step: TakeoverRecord) {
        let (ns, times) = self.sums.entry((step.device, step.phase as u8)).or_default();
        (*ns, *times) = (ns.saturating_add(step.span.ns()), *times + 1);
        let losses = self.losses.entry(step.device).or_default();
        match step.phase {
            TakeoverPhase::Lost => (losses.lost, losses.is_rebuilt) = (losses.lost + 1, false),
            _ if losses.is_rebuilt => {}
            _ => (losses.brought_back, losses.is_rebuilt) = (losses.brought_back + 1, true),
        }
        if self.last.len() >= MAX_STEPS {
            self.last.drain(..MAX_STEPS / 2);
        }
        self.last.push(step);
    }

    /// The device was given up: what was begun to bring it back came to nothing.
    pub(super) fn given_up(&mut self, device: u32) {
        let losses = self.losses.entry(device).or_default();
        losses.brought_back -= u64::from(std::mem::take(&mut losses.is_rebuilt));
    }

    /// How often a device was lost, and brought back.
    pub(super) fn losses(&self, device: u32) -> Losses {
        self.losses.get(&device).copied().unwrap_or_default()
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
