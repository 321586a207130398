//! Frames: the registers of called functions.
//!
//! Lanes that called a function together share a frame and go on sharing it when they diverge inside; each touches
//! only its own lane. A frame is free again when its last lane has returned or exited.

use std::ops::{Index, IndexMut};

use super::register::{Known, Register};
use crate::exec::lane_pattern::LanePattern;
use crate::exec::lowered_code::{Base, Code, Op, OperandUse, Pred, PredSource, Reg, Source, Step};
use crate::exec::undefined::UndefinedRegisters;
use crate::exec::warp_register::{Column, FULL, blend};

/// The number of a frame within its warp.
pub(crate) type FrameId = u32;

/// The frame of the kernel itself.
pub(crate) const ENTRY: FrameId = 0;

/// Registers and stack of one call.
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) parent: Option<FrameId>,
    /// The step behind the call.
    pub(crate) return_to: u32,
    /// The lanes that are in this frame or in one it called.
    pub(crate) live: u32,
    /// Where it starts on the stacks, and where the next one may.
    pub(crate) base: u64,
    pub(crate) top: u64,
    pub(crate) depth: u32,
    /// Bytes of the gaps in it and in the frames below it.
    pub(crate) gap_bytes: u64,
    pub(crate) carry: u32,
    pub(super) registers: Vec<Register>,
    predicates: Vec<u32>,
    /// What of the registers is undefined.
    pub(crate) undefined: UndefinedRegisters,
}

impl Frame {
    /// The lanes for which a predicate holds.
    #[inline(always)]
    pub(crate) fn test(&self, source: PredSource) -> u32 {
        let lanes = self.predicates[source.pred.0 as usize];
        if source.negated { !lanes } else { lanes }
    }

    /// Sets a predicate in the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn set(&mut self, pred: Pred, value: u32, mask: u32) {
        let lanes = &mut self.predicates[pred.0 as usize];
        *lanes = (*lanes & !mask) | (value & mask);
        if self.undefined.any() {
            self.undefined.define_predicate(pred, mask);
        }
    }

    #[inline(always)]
    pub(crate) fn column<'a>(&'a self, source: Source, constants: &'a [Column]) -> &'a Column {
        match source.split() {
            Ok(constant) => &constants[constant as usize],
            Err(column) => {
                let register = &self.registers[column as usize];
                debug_assert!(register.known.has(Known::LANES), "a step reads what was settled");
                &register.column
            }
        }
    }

    /// All registers, which were settled.
    pub(crate) fn columns(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.registers.iter().map(|register| &*register.column)
    }

    /// Lets the columns hold what a step reads.
    #[inline]
    pub(crate) fn settle(&mut self, step: &Step) {
        if step.watched {
            return self.settle_all();
        }
        match &step.op {
            Op::Branch { .. }
            | Op::Jump { .. }
            | Op::Exit
            | Op::Nothing
            | Op::Special { .. }
            | Op::Fence(_) => {}
            Op::Load(load) => self.settle_base(load.address.base),
            Op::Store(store) => {
                self.settle_base(store.address.base);
                store.from.iter().for_each(|source| self.settle_source(*source));
            }
            op @ (Op::Alu { .. }
            | Op::Compare(_)
            | Op::Select { .. }
            | Op::Logic { .. }
            | Op::Copy { .. }) => {
                self.settle_operands(op);
            }
            op @ (Op::Barrier(_) | Op::Atomic(_)) => self.settle_operands(op),
            _ => self.settle_all(),
        }
    }

    /// Lets all columns hold the values of their registers.
    pub(crate) fn settle_all(&mut self) {
        self.registers.iter_mut().for_each(Register::settle);
    }

    fn settle_base(&mut self, base: Base) {
        if let Base::Value(source) = base {
            self.settle_source(source);
        }
    }

    fn settle_source(&mut self, source: Source) {
        if let Err(column) = source.split() {
            self.registers[column as usize].settle();
        }
    }

    fn settle_operands(&mut self, op: &Op) {
        op.operands(&mut |operand| match operand {
            OperandUse::Uses(source) | OperandUse::Carries(source) => self.settle_source(source),
            _ => {}
        });
    }

    /// The pattern of what a step reads, if it is known.
    #[inline(always)]
    pub(super) fn pattern(&self, source: Source, constants: &[Column]) -> Option<LanePattern> {
        match source.split() {
            Ok(constant) => Some(LanePattern::uniform(constants[constant as usize][0])),
            Err(column) => {
                let register = &self.registers[column as usize];
                register.known.has(Known::PATTERN).then_some(register.pattern)
            }
        }
    }

    /// All predicates.
    pub(crate) fn predicates(&self) -> &[u32] {
        &self.predicates
    }

    /// Takes a result in the lanes of `mask`. With all lanes it changes places with what was there.
    #[inline(always)]
    pub(crate) fn take(&mut self, reg: Reg, result: &mut Box<Column>, mask: u32) {
        let register = &mut self.registers[reg.0 as usize];
        if mask == FULL {
            register.take_lanes(result);
        } else {
            register.settle_to_write();
            blend(&mut register.column, result, mask);
        }
        if self.undefined.any() {
            self.undefined.define(reg, mask);
        }
    }

    #[inline(always)]
    pub(crate) fn write(&mut self, reg: Reg, value: &Column, mask: u32) {
        let register = &mut self.registers[reg.0 as usize];
        if mask == FULL {
            *register.column = *value;
            register.known = Known::LANES;
        } else {
            register.settle_to_write();
            blend(&mut register.column, value, mask);
        }
        if self.undefined.any() {
            self.undefined.define(reg, mask);
        }
    }
}

/// The frames of a warp.
#[derive(Default)]
pub(crate) struct Frames {
    list: Vec<Frame>,
    free: Vec<FrameId>,
}

impl Frames {
    /// Whether there is none, used or free.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Frees all frames: they are given out in the order of new ones.
    pub(crate) fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.list.len() as FrameId).rev());
    }

    /// A new frame for `lanes`; `base` is where the stacks of its caller end.
    pub(crate) fn enter(
        &mut self,
        code: &Code,
        function: u32,
        parent: Option<FrameId>,
        return_to: u32,
        lanes: u32,
        base: u64,
    ) -> FrameId {
        let callee = &code.functions[function as usize];
        let (columns, predicates) = (callee.columns as usize, callee.predicates as usize);
        let depth = parent.map_or(0, |parent| self.list[parent as usize].depth + 1);
        let below = parent.map_or(0, |parent| self.list[parent as usize].gap_bytes);
        let gap_bytes = below + (callee.frame_bytes - callee.used_frame_bytes());
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(Frame::empty());
            self.list.len() as FrameId - 1
        });
        let frame = &mut self.list[id as usize];
        frame.registers.truncate(columns);
        frame.registers.iter_mut().for_each(|register| register.set_uniform(0));
        frame.registers.resize_with(columns, Register::zero);
        frame.predicates.clear();
        frame.predicates.resize(predicates, 0);
        frame.predicates[Pred::TRUE.0 as usize] = FULL;
        let top = base + callee.frame_bytes;
        frame.undefined.clear();
        (frame.function, frame.parent, frame.return_to) = (function, parent, return_to);
        (frame.live, frame.carry, frame.depth) = (lanes, 0, depth);
        (frame.base, frame.top, frame.gap_bytes) = (base, top, gap_bytes);
        id
    }

    /// Lanes leave a frame by returning.
    pub(crate) fn leave(&mut self, id: FrameId, lanes: u32) {
        let frame = &mut self.list[id as usize];
        frame.live &= !lanes;
        if frame.live == 0 {
            self.free.push(id);
        }
    }

    /// Lanes exit: they leave a frame and all above it.
    pub(crate) fn exit(&mut self, id: FrameId, lanes: u32) {
        let mut next = Some(id);
        while let Some(id) = next {
            next = self.list[id as usize].parent;
            self.leave(id, lanes);
        }
    }
}

impl Frame {
    fn empty() -> Self {
        Self {
            function: 0,
            parent: None,
            return_to: 0,
            live: 0,
            base: 0,
            top: 0,
            depth: 0,
            gap_bytes: 0,
            carry: 0,
            registers: Vec::new(),
            predicates: Vec::new(),
            undefined: UndefinedRegisters::default(),
        }
    }
}

impl Index<FrameId> for Frames {
    type Output = Frame;

    #[inline(always)]
    fn index(&self, id: FrameId) -> &Frame {
        &self.list[id as usize]
    }
}

impl IndexMut<FrameId> for Frames {
    #[inline(always)]
    fn index_mut(&mut self, id: FrameId) -> &mut Frame {
        &mut self.list[id as usize]
    }
}
