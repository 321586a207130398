//! Calls: frames, arguments, results.

use super::lane_group::LaneGroup;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{Actual, Call, Callee, Op, PredSource, Reg, Slot, Source};
use crate::exec::memory::generic_address::function_at;
use crate::exec::options::LaunchShape;
use crate::exec::path_tree::Decision;
use crate::exec::warp_register::{Column, LANES, first_lane, lanes_where};

/// The deepest nesting of calls.
const MAX_DEPTH: u32 = 4096;
/// The largest stack of a thread, as on hardware.
const MAX_STACK_BYTES: u64 = LaunchShape::MAX_LOCAL_BYTES;

impl Warp {
    pub(super) fn call(&mut self, cta: &mut Cta<'_>, at: usize, call: &Call) -> Done<Flow> {
        let code = Self::code(cta);
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let (function, lanes) = match call.callee {
            Callee::Function(function) => (function, mask),
            Callee::Address(source) => {
                let addresses = self.frames[frame].column(source, &cta.launch.constants);
                let lane = first_lane(mask);
                let address = addresses[lane];
                let found = function_at(address).and_then(|id| code.function_of(id));
                let function = found.ok_or_else(|| Trouble::new(lane, ExecFindingKind::BadCall(address)))?;
                (function, lanes_where(mask, |lane| addresses[lane] == address))
            }
        };
        if lanes != mask {
            // The others call their own function afterwards, from the same place.
            self.split(at, mask & !lanes, pc);
        }
        let (depth, base) = (self.frames[frame].depth + 1, self.frames[frame].top);
        let top = base + code.functions[function as usize].frame_bytes;
        let gaps = code.functions[function as usize].gaps.as_slice();
        let used = base - self.frames[frame].gap_bytes + code.functions[function as usize].used_frame_bytes();
        if depth > MAX_DEPTH || used > MAX_STACK_BYTES {
            let why = match depth > MAX_DEPTH {
                true => format!("stack overflow: calls are nested deeper than {MAX_DEPTH}"),
                false => format!("stack overflow: the stack of the thread exceeds {MAX_STACK_BYTES} bytes"),
            };
            return Err(Trouble::new(first_lane(lanes), ExecFindingKind::StackOverflow(why)));
        }
        let inner = self.frames.enter(code, function, Some(frame), pc + 1, lanes, base);
        self.local.reserve(top);
        self.local.forget(base, top - base, lanes);
        // What lies in a gap is reported as that.
        gaps.iter().for_each(|gap| self.local.define(base + gap.start, gap.end - gap.start, lanes));
        self.forget_origins(base, top);
        self.mark_unassigned(cta, inner, function, lanes);
        let callee = &code.functions[function as usize];
        for (actual, slot) in call.arguments.iter().zip(&callee.parameters) {
            self.pass(cta, at, (*actual, frame), (*slot, inner), lanes);
        }
        if code.steps.get(pc as usize).is_some_and(|step| step.decides != 0) {
            self.decide(cta, at, Decision::call(pc));
        }
        self.lane_groups[at].frame = inner;
        self.lane_groups[at].pc = callee.start;
        Ok(if lanes == mask { Flow::Stay } else { Flow::Switch })
    }

    /// Returns from a function; what the entry returns from is the end of the thread.
    pub(super) fn return_lanes(&mut self, cta: &mut Cta<'_>, at: usize) -> Flow {
        let code = Self::code(cta);
        let LaneGroup { mask, frame, pc, .. } = self.lane_groups[at];
        let Some(parent) = self.frames[frame].parent else { return self.exit(cta, at) };
        let return_to = self.frames[frame].return_to;
        let callee = &code.functions[self.frames[frame].function as usize];
        if let Some(Op::Call(call)) = code.steps.get(return_to as usize - 1).map(|step| &step.op) {
            for (slot, actual) in callee.returns.iter().zip(&call.returns) {
                self.receive(cta, at, (*slot, frame), (*actual, parent), mask);
            }
        }
        if code.steps.get(pc as usize).is_some_and(|step| step.decides != 0) {
            self.decide(cta, at, Decision::RETURN);
        }
        self.frames.leave(frame, mask);
        self.products.forget(frame);
        self.lane_groups[at].frame = parent;
        self.lane_groups[at].pc = return_to;
        Flow::Stay
    }

    /// Copies an argument into the callee.
    fn pass(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        (actual, outer): (Actual, u32),
        (slot, inner): (Slot, u32),
        lanes: u32,
    ) {
        match (actual, slot) {
            (Actual::Memory { offset, bytes }, Slot::Memory { offset: to, bytes: room }) => {
                let (from, to) = (self.frames[outer].base + offset, self.frames[inner].base + to);
                self.local.copy(from, to, bytes.min(room), lanes);
                self.copy_origins(from, to, bytes.min(room), lanes);
            }
            (Actual::Memory { offset, bytes }, Slot::Register(reg)) => {
                let value = self.read_frame(outer, offset, bytes, lanes);
                self.frames[inner].write(reg, &value, lanes);
                let carried = self.frame_bits(cta, at, (outer, offset, bytes), lanes);
                self.mark_register(inner, reg, carried, lanes);
            }
            (Actual::Value(source), Slot::Register(reg)) => {
                let value = *self.frames[outer].column(source, &cta.launch.constants);
                self.frames[inner].write(reg, &value, lanes);
                let carried = self.frames[outer].undefined.column(source).cloned();
                self.mark_register(inner, reg, carried, lanes);
            }
            (Actual::Value(source), Slot::Memory { offset, bytes }) => {
                let value = *self.frames[outer].column(source, &cta.launch.constants);
                self.write_frame(inner, offset, bytes, &value, lanes);
                let carried = self.frames[outer].undefined.column(source).cloned();
                self.mark_frame((inner, offset, bytes), carried, lanes);
            }
            (Actual::Predicate(source), Slot::Predicate(pred)) => {
                let value = self.frames[outer].test(source);
                self.frames[inner].set(pred, value, lanes);
                self.mark_predicate((source, outer), (pred, inner), lanes);
            }
            _ => {}
        }
    }

    /// Copies a result back to the caller.
    fn receive(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        (slot, inner): (Slot, u32),
        (actual, outer): (Actual, u32),
        lanes: u32,
    ) {
        match (slot, actual) {
            (Slot::Memory { offset, bytes }, Actual::Memory { offset: to, bytes: room }) => {
                let (from, to) = (self.frames[inner].base + offset, self.frames[outer].base + to);
                self.local.copy(from, to, bytes.min(room), lanes);
                self.copy_origins(from, to, bytes.min(room), lanes);
            }
            (Slot::Memory { offset, bytes }, Actual::Value(to)) => {
                let value = self.read_frame(inner, offset, bytes, lanes);
                self.frames[outer].write(Reg(to.0), &value, lanes);
                let carried = self.frame_bits(cta, at, (inner, offset, bytes), lanes);
                self.mark_register(outer, Reg(to.0), carried, lanes);
            }
            (Slot::Register(reg), Actual::Value(to)) => {
                let value = *self.frames[inner].column(Source::from(reg), &[]);
                self.frames[outer].write(Reg(to.0), &value, lanes);
                let carried = self.frames[inner].undefined.column(reg.into()).cloned();
                self.mark_register(outer, Reg(to.0), carried, lanes);
            }
            (Slot::Register(reg), Actual::Memory { offset, bytes }) => {
                let value = *self.frames[inner].column(Source::from(reg), &[]);
                self.write_frame(outer, offset, bytes, &value, lanes);
                let carried = self.frames[inner].undefined.column(reg.into()).cloned();
                self.mark_frame((outer, offset, bytes), carried, lanes);
            }
            (Slot::Predicate(pred), Actual::Predicate(to)) => {
                let source = PredSource { pred, negated: false };
                let value = self.frames[inner].test(source);
                self.frames[outer].set(to.pred, value, lanes);
                self.mark_predicate((source, inner), (to.pred, outer), lanes);
            }
            _ => {}
        }
    }

    /// A value in a frame on the stacks.
    pub(super) fn read_frame(&self, frame: u32, offset: u64, bytes: u64, lanes: u32) -> Column {
        let mut value = [0; LANES];
        let address = self.frames[frame].base + offset;
        self.local.load(&[address; LANES], lanes, bytes.clamp(1, 8) as u32, &mut value);
        value
    }

    /// Writes a value into a frame on the stacks.
    pub(super) fn write_frame(&mut self, frame: u32, offset: u64, bytes: u64, value: &Column, lanes: u32) {
        let address = self.frames[frame].base + offset;
        self.local.store(&[address; LANES], lanes, bytes.clamp(1, 8) as u32, value);
    }

    /// `alloca`: the frame grows by as much as the lane that needs most.
    pub(super) fn allocate(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        to: Reg,
        bytes: Source,
        align: u32,
        lanes: u32,
    ) -> Done<()> {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let wanted = frame.column(bytes, &cta.launch.constants);
        let most =
            (0..LANES).filter(|lane| lanes >> lane & 1 != 0).map(|lane| wanted[lane]).max().unwrap_or(0);
        let start = frame.top.next_multiple_of(u64::from(align));
        let end = start.saturating_add(most).checked_next_multiple_of(16).unwrap_or(u64::MAX);
        if end > MAX_STACK_BYTES {
            let why =
                format!("stack overflow: alloca of {most} bytes exceeds {MAX_STACK_BYTES} bytes of stack");
            return Err(Trouble::new(first_lane(lanes), ExecFindingKind::StackOverflow(why)));
        }
        frame.top = end;
        frame.write(to, &[start; LANES], lanes);
        self.local.reserve(end);
        self.local.forget(start, end - start, lanes);
        self.forget_origins(start, end);
        Ok(())
    }
}
