//! Strands: lanes of a warp that are at the same place, and which of them runs.

use super::frame::FrameId;
use super::{PATIENCE, TURN, Warp};
use crate::exec::code::Code;

/// Lanes at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strand {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) frame: FrameId,
    pub(crate) state: State,
    /// The step of the warp at which it last started to run.
    pub(crate) last_run: u64,
    /// Set when it was found to do the same again and again until memory changes: how often memory had changed until then.
    pub(crate) repeats: Option<u64>,
}

/// Whether a strand can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// It waits at a collective for other lanes of the warp.
    Collective,
    /// It waits at a barrier of the block.
    Barrier(u8),
}

impl Warp {
    /// The strand to run next, after those at the same place are joined.
    pub(super) fn pick(&mut self, code: &Code) -> Option<usize> {
        self.join_ready();
        let ready = |(_, strand): &(usize, &Strand)| strand.state == State::Ready;
        let fair = self.strands.len() > 1 && self.is_turn_due();
        let all = self.strands.iter().enumerate().filter(ready);
        let (at, _) = match fair {
            true => all.min_by_key(|(_, strand)| strand.last_run)?,
            false => all.min_by_key(|(_, strand)| self.key(code, strand))?,
        };
        let others = self.strands.iter().enumerate().filter(ready).filter(|(other, _)| *other != at);
        self.threshold = others.map(|(_, strand)| self.key(code, strand)).min().unwrap_or(u64::MAX);
        self.strands[at].last_run = self.steps;
        self.slice = (self.steps, fair);
        if self.strands.len() > 1 {
            self.watch.restart(self.steps);
        }
        Some(at)
    }

    /// Whether another strand should run than the present one.
    #[inline]
    pub(super) fn must_switch(&self, code: &Code, at: usize) -> bool {
        if self.threshold == u64::MAX {
            return false;
        }
        let (start, out_of_order) = self.slice;
        let run = self.steps - start;
        if out_of_order {
            let strand = &self.strands[at];
            let meets = |other: &Strand| other.pc == strand.pc && other.frame == strand.frame;
            return run > TURN || self.strands.iter().filter(|other| meets(other)).count() > 1;
        }
        run > PATIENCE || self.key(code, &self.strands[at]) >= self.threshold
    }

    /// Splits off the lanes of `mask` as a separate strand at another place.
    pub(super) fn split(&mut self, at: usize, mask: u32, pc: u32) {
        let strand = self.strands[at];
        self.strands[at].mask &= !mask;
        self.strands[at].repeats = None;
        self.strands.push(Strand { mask, pc, repeats: None, ..strand });
    }

    /// Whether a ready strand has been passed over for long.
    fn is_turn_due(&self) -> bool {
        let starved =
            |strand: &Strand| strand.state == State::Ready && self.steps - strand.last_run > PATIENCE;
        !self.slice.1 && self.strands.iter().any(starved)
    }

    /// Who runs first: called functions before their callers, then by rank.
    fn key(&self, code: &Code, strand: &Strand) -> u64 {
        let depth = self.frames[strand.frame].depth;
        let rank = code.ranks.get(strand.pc as usize).copied().unwrap_or(u32::MAX);
        u64::from(u32::MAX - depth) << 32 | u64::from(rank)
    }

    fn join_ready(&mut self) {
        if self.strands.len() < 2 {
            return;
        }
        let mut at = 0;
        while at < self.strands.len() {
            let strand = self.strands[at];
            let same = |other: &Strand| {
                other.state == State::Ready && other.pc == strand.pc && other.frame == strand.frame
            };
            if strand.state == State::Ready {
                let mut other = at + 1;
                while other < self.strands.len() {
                    if same(&self.strands[other]) {
                        self.strands[at].mask |= self.strands[other].mask;
                        self.strands[at].repeats = None;
                        self.strands.swap_remove(other);
                    } else {
                        other += 1;
                    }
                }
            }
            at += 1;
        }
    }
}
