//! One step of a lane group.

use super::{Done, Flow, Warp};
use crate::ScalarType;
use crate::exec::alu::Input;
use crate::exec::alu::integer::{add_with_carry, product_half};
use crate::exec::block::Cta;
use crate::exec::cluster_block::Owner;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{Carry, CarryKind, Compare, Op, PredSource, Reg, Source, Step};
use crate::exec::memory::generic_address::Place;
use crate::exec::warp_register::{Column, LANES, blend, each, first_lane, lanes_where};

impl Warp {
    /// Runs a step in the lanes whose guard holds.
    #[inline]
    pub(super) fn execute(&mut self, cta: &mut Cta<'_>, at: usize, step: &Step, lanes: u32) -> Done<Flow> {
        let (constants, set): (&[Column], _) = (&cta.launch.constants, cta.launch.set);
        let frame = &mut self.frames[self.lane_groups[at].frame];
        match &step.op {
            Op::Alu { run, mode, to, from } => {
                let (a, b) = (frame.column(from[0], constants), frame.column(from[1], constants));
                let (c, d) = (frame.column(from[2], constants), frame.column(from[3], constants));
                run(&Input { set, mask: lanes, mode, a, b, c, d }, &mut self.result);
                frame.take(*to, &mut self.result, lanes);
            }
            Op::Compare(compare) => {
                let Compare { test, mode, a, b, combine, to, opposite } = &**compare;
                let (a, b) = (frame.column(*a, constants), frame.column(*b, constants));
                let holds = test(&Input { set, mask: lanes, mode, a, b, c: b, d: b });
                let with = |holds: u32| match combine {
                    Some((combine, source)) => combine.apply(holds, frame.test(*source)),
                    None => holds,
                };
                let (yes, no) = (with(holds), with(!holds));
                frame.set(*to, yes, lanes);
                frame.set(*opposite, no, lanes);
            }
            Op::Select { to, a, b, pick } => {
                *self.result = *frame.column(*b, constants);
                blend(&mut self.result, frame.column(*a, constants), lanes & frame.test(*pick));
                frame.take(*to, &mut self.result, lanes);
            }
            Op::Copy { to, from } => {
                *self.result = *frame.column(*from, constants);
                frame.take(*to, &mut self.result, lanes);
            }
            Op::Logic { to, a, b, table } => {
                let (a, b) = (frame.test(*a), frame.test(*b));
                let bit = |place: u8, lanes: u32| if table >> place & 1 != 0 { lanes } else { 0 };
                frame.set(*to, bit(0, !a & !b) | bit(1, !a & b) | bit(2, a & !b) | bit(3, a & b), lanes);
            }
            Op::Load(load) => return self.load(cta, at, load, lanes),
            Op::Store(store) => return self.store(cta, at, store, lanes),
            Op::Branch { target, when } => return Ok(self.branch(cta, at, *target, *when, step)),
            Op::Jump { target } => return Ok(Flow::Jump(*target)),
            op => return self.execute_other(cta, at, op, lanes),
        }
        Ok(Flow::Next)
    }

    /// The steps that are rarer.
    fn execute_other(&mut self, cta: &mut Cta<'_>, at: usize, op: &Op, lanes: u32) -> Done<Flow> {
        match op {
            op if op.only_computes() => {}
            Op::Collective(_) if self.lane_groups.len() == 1 => self.watch.drop_loop(),
            _ => self.watch.drop_state(),
        }
        match op {
            Op::Carry(carry) => self.carry(cta, at, carry, lanes),
            Op::Split { to, from, bits } => self.split_value(cta, at, to, *from, *bits, lanes),
            Op::Join { to, from, bits } => self.join_values(cta, at, *to, from, *bits, lanes),
            Op::Special { to, which } => self.special(cta, at, *to, *which, lanes),
            Op::FrameAddress { to, offset } => {
                let frame = &mut self.frames[self.lane_groups[at].frame];
                let address = frame.base.wrapping_add_signed(*offset);
                frame.write(*to, &[address; LANES], lanes);
            }
            Op::Allocate { to, bytes, align } => self.allocate(cta, at, *to, *bytes, *align, lanes)?,
            Op::StackSave { to } => {
                let frame = &mut self.frames[self.lane_groups[at].frame];
                let top = frame.top;
                frame.write(*to, &[top; LANES], lanes);
            }
            Op::StackRestore { from } => {
                let frame = &mut self.frames[self.lane_groups[at].frame];
                let saved = frame.column(*from, &cta.launch.constants)[first_lane(lanes)];
                frame.top = saved.clamp(frame.base, frame.top);
            }
            Op::IsSpace { to, address, place, constant } => {
                self.is_space(cta, at, *to, *address, (*place, *constant), lanes);
            }
            Op::Atomic(atomic) => return self.atomic(cta, at, atomic, lanes),
            Op::CopyAsync(copy) => return self.copy_async(cta, at, copy, lanes),
            Op::BulkCopy(copy) => return self.bulk_copy(cta, at, copy, lanes),
            Op::TensorCopy(copy) => return self.tensor_copy(cta, at, copy, lanes),
            Op::TensorMapEdit(edit) => return self.edit_tensor_map(cta, at, edit, lanes),
            Op::Texture(texture) => return self.texture(cta, at, texture, lanes),
            Op::Mbarrier(mbarrier) => return self.mbarrier(cta, at, mbarrier, lanes),
            Op::CheckMetadata { sparse, metadata } => {
                self.check_metadata(cta, at, *sparse, *metadata, lanes)?
            }
            Op::Warpgroup(step) => return self.warpgroup(cta, at, step, lanes),
            Op::TileAddresses(tile) => self.tile_addresses(cta, at, tile, lanes)?,
            Op::Collective(collective) => return Ok(self.collective(cta, at, collective)),
            Op::Barrier(barrier) => return self.barrier(cta, at, barrier),
            Op::ClusterBarrier(step) => return Ok(self.cluster_barrier(cta, at, *step)),
            Op::ClusterAddress(step) => self.cluster_address(cta, at, step, lanes),
            Op::ActiveMask { to } => {
                let lane_group = self.lane_groups[at];
                self.frames[lane_group.frame].write(*to, &[u64::from(lanes); LANES], lanes);
            }
            Op::Table { index, targets } => return self.table(cta, at, *index, targets),
            Op::Call(call) => return self.call(cta, at, call),
            Op::Builtin(call) => return self.builtin(cta, at, call),
            Op::Return => return Ok(self.return_lanes(cta, at)),
            Op::Exit => return Ok(self.exit(cta, at)),
            Op::Trap => return Err(super::Trouble::new(self.first_lane(at), ExecFindingKind::Trap)),
            Op::Fence(fence) => self.fence(cta, *fence, lanes),
            Op::CommitCopies => self.commit_copies(cta, lanes),
            Op::WaitForCopies { open } => self.wait_for_copies(cta, at, *open, lanes),
            Op::CommitBulkCopies => self.commit_bulk_copies(cta, lanes),
            Op::WaitForBulkCopies { open } => self.wait_for_bulk_copies(cta, at, *open, lanes),
            Op::Yield => return Ok(Flow::Yield),
            Op::Unsupported(why) => {
                let pc = self.lane_groups[at].pc;
                return Err(super::Trouble::new(self.first_lane(at), cta.unsupported(pc, *why)));
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn carry(&mut self, cta: &Cta<'_>, at: usize, carry: &Carry, lanes: u32) {
        let constants = &cta.launch.constants;
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let wide = matches!(carry.ty, ScalarType::U64 | ScalarType::S64 | ScalarType::B64);
        let [a, b, c] = carry.from.map(|source| *frame.column(source, constants));
        let before = if carry.reads { frame.carry } else { 0 };
        let (mut out, mut after) = ([0; LANES], 0);
        each(lanes, |lane| {
            let set = before >> lane & 1 != 0;
            let (value, overflow) = match carry.kind {
                CarryKind::Add => add_with_carry(wide, a[lane], b[lane], set),
                // a - b is a + !b + 1: the flag is set when nothing was borrowed.
                CarryKind::Subtract => add_with_carry(wide, a[lane], !b[lane], set || !carry.reads),
                CarryKind::MultiplyAdd { high } => {
                    let product = product_half(carry.ty, high, a[lane], b[lane]);
                    add_with_carry(wide, product, c[lane], set)
                }
            };
            out[lane] = value;
            after |= u32::from(overflow) << lane;
        });
        frame.write(carry.to, &out, lanes);
        if carry.writes {
            frame.carry = (frame.carry & !lanes) | after;
        }
    }

    fn split_value(&mut self, cta: &Cta<'_>, at: usize, to: &[Reg], from: Source, bits: u8, lanes: u32) {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let value = *frame.column(from, &cta.launch.constants);
        let ones = u64::MAX >> (64 - u32::from(bits));
        for (part, to) in (0u32..).zip(to) {
            let shift = part * u32::from(bits);
            let out = value.map(|x| x.checked_shr(shift).unwrap_or(0) & ones);
            frame.write(*to, &out, lanes);
        }
    }

    fn join_values(&mut self, cta: &Cta<'_>, at: usize, to: Reg, from: &[Source], bits: u8, lanes: u32) {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let ones = u64::MAX >> (64 - u32::from(bits));
        let mut out = [0; LANES];
        for (part, source) in (0u32..).zip(from) {
            let value = frame.column(*source, &cta.launch.constants);
            let shift = part * u32::from(bits);
            each(lanes, |lane| out[lane] |= (value[lane] & ones).checked_shl(shift).unwrap_or(0));
        }
        frame.write(to, &out, lanes);
    }

    fn is_space(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        to: crate::exec::lowered_code::Pred,
        address: Source,
        (place, constant): (Place, bool),
        lanes: u32,
    ) {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let addresses = frame.column(address, &cta.launch.constants);
        let inside = lanes_where(lanes, |lane| {
            let address = addresses[lane];
            let reached = if place == Place::Cluster { Place::Shared } else { place };
            Place::at(address) == reached
                && (place != Place::Shared || cta.owner(Place::Shared, address).0 == Owner::Own)
                && (place != Place::Cluster
                    || matches!(cta.owner(Place::Shared, address).0, Owner::Own | Owner::Peer(_)))
                && (place != Place::Global || cta.launch.is_constant(address) == constant)
        });
        frame.set(to, inside, lanes);
    }

    /// The lanes of a lane group for which a predicate holds.
    pub(super) fn holds(&self, at: usize, source: PredSource) -> u32 {
        let lane_group = self.lane_groups[at];
        self.frames[lane_group.frame].test(source) & lane_group.mask
    }
}
