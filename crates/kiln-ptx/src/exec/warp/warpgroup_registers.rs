//! Registers of products that no `wgmma.wait_group` has waited for.
//!
//! Until then no other instruction may read or write the registers of D, nor write those of A. And what other instructions wrote there before
//! is ordered behind them by a `wgmma.fence` alone.

use std::collections::{HashMap, VecDeque};

use super::frame::FrameId;
use crate::exec::lowered_code::{Op, OperandUse, Reg, WarpgroupStep};
use crate::exec::matrix::MultiplyShape;

/// A register, by its frame and column.
type Key = (FrameId, u32);

/// A register of a product that is pending.
#[derive(Clone, Copy)]
pub(super) struct PendingRegister {
    /// The product.
    pub(super) pc: u32,
    group: u32,
    /// The shape of the product, if it is a register of D.
    result: Option<MultiplyShape>,
}

/// What is wrong with registers.
#[derive(Clone, Copy)]
pub(super) enum RegisterMisuse {
    /// A register of D is read.
    Read(u32),
    /// A register of D or A is written.
    Written(u32),
    /// A product reads or writes a register of another one, of another shape.
    Products(u32),
    /// No fence was executed.
    NoFence,
    /// A register was written here, and no fence was executed since.
    Unfenced(u32),
}

/// The pending registers of a warp.
#[derive(Default)]
pub(super) struct WarpgroupRegisters {
    pending: HashMap<Key, PendingRegister>,
    /// Where registers were written since the last fence.
    changed: HashMap<Key, u32>,
    committed: u32,
    /// How many instructions of the warpgroup the warp had executed at the commits of its pending groups.
    commits: VecDeque<u64>,
    /// How often the warp looked whether the others had issued the products that it waits for.
    pub(super) looks: u32,
    is_fenced: bool,
}

impl WarpgroupRegisters {
    pub(super) fn fence(&mut self) {
        self.is_fenced = true;
        self.changed.clear();
    }

    pub(super) fn commit(&mut self, count: u64) {
        self.committed += 1;
        self.commits.push_back(count);
    }

    /// How many instructions of the warpgroup all its warps must have executed when at most `open` groups are pending.
    pub(super) fn awaited(&self, open: u32) -> u64 {
        let done = self.commits.len().saturating_sub(open as usize);
        done.checked_sub(1).and_then(|last| self.commits.get(last)).copied().unwrap_or(0)
    }

    /// The group that the next product goes to.
    pub(super) fn group(&self) -> u32 {
        self.committed
    }

    /// Waits until at most `open` groups are pending; the first group that is.
    pub(super) fn wait(&mut self, open: u32) -> u32 {
        let first_open = self.committed.saturating_sub(open);
        let done = self.commits.len().saturating_sub(open as usize);
        self.commits.drain(..done);
        self.pending.retain(|_, register| register.group >= first_open);
        first_open
    }

    /// A function returns: its registers are gone.
    pub(super) fn forget(&mut self, frame: FrameId) {
        if !self.pending.is_empty() || !self.changed.is_empty() {
            self.pending.retain(|(of, _), _| *of != frame);
            self.changed.retain(|(of, _), _| *of != frame);
        }
    }

    /// Another instruction at `pc` is executed.
    pub(super) fn touch(&mut self, frame: FrameId, pc: u32, op: &Op) -> Option<RegisterMisuse> {
        let mut misuse = None;
        op.operands(&mut |operand| match operand {
            OperandUse::Uses(source) | OperandUse::Carries(source) => {
                let pending = source.split().err().and_then(|column| self.pending.get(&(frame, column)));
                if let Some(pending) = pending.filter(|pending| pending.result.is_some()) {
                    misuse.get_or_insert(RegisterMisuse::Read(pending.pc));
                }
            }
            OperandUse::Writes(register) => {
                if let Some(pending) = self.pending.get(&(frame, register.0)) {
                    misuse.get_or_insert(RegisterMisuse::Written(pending.pc));
                }
                self.changed.insert((frame, register.0), pc);
            }
            _ => {}
        });
        misuse
    }

    /// A product at `pc` is executed.
    pub(super) fn multiply(
        &mut self,
        frame: FrameId,
        pc: u32,
        step: &WarpgroupStep,
    ) -> Option<RegisterMisuse> {
        let key = |register: &Reg| (frame, register.0);
        let all = || step.a_registers().iter().chain(&step.d).map(key);
        let result = Some(step.multiply.shape());
        let of_a = step.a_registers().iter().map(key).filter_map(|key| self.pending.get(&key));
        let of_d = step.d.iter().map(key).filter_map(|key| self.pending.get(&key));
        // Products of one shape that add to the same registers are done in order.
        let mut unlike = of_a
            .filter(|pending| pending.result.is_some())
            .chain(of_d.filter(|pending| pending.result != result));
        let misuse = if let Some(pending) = unlike.next() {
            Some(RegisterMisuse::Products(pending.pc))
        } else if !self.is_fenced {
            Some(RegisterMisuse::NoFence)
        } else {
            all().find_map(|key| self.changed.get(&key)).map(|pc| RegisterMisuse::Unfenced(*pc))
        };
        // One finding is enough for what one fence would order.
        if matches!(misuse, Some(RegisterMisuse::NoFence | RegisterMisuse::Unfenced(_))) {
            self.fence();
        }
        let group = self.committed;
        for register in step.a_registers() {
            self.pending.insert(key(register), PendingRegister { pc, group, result: None });
        }
        for register in &step.d {
            self.pending.insert(key(register), PendingRegister { pc, group, result });
        }
        misuse
    }
}
