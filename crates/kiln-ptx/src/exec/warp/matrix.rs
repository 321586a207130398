//! Matrices whose elements are spread over the lanes of a warp.

use super::Warp;
use super::lane_group::LaneGroup;
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{Collective, MatrixStep, Op};
use crate::exec::matrix::{Multiply, distribute, gather_rows, transpose};
use crate::exec::undefined::Carried;
use crate::exec::warp_register::{Column, FULL, LANES, each, first_lane, lanes_where};

impl Warp {
    /// Does one step for the lanes of these lane groups. All 32 lanes should be there; those that are not bring zeros.
    pub(super) fn perform_matrix(
        &mut self,
        cta: &mut Cta<'_>,
        step: MatrixStep,
        lanes: u32,
        lane_groups: &[usize],
    ) {
        if step == MatrixStep::Meet {
            return;
        }
        self.report_missing_lanes(cta, lanes, lane_groups);
        if step == MatrixStep::SameTile {
            return self.report_unlike_tiles(cta, lane_groups);
        }
        let code = Self::code(cta);
        let operation = |at: usize, warp: &Self| -> Option<&Collective> {
            match code.steps.get(warp.lane_groups[at].pc as usize).map(|step| &step.op) {
                Some(Op::Collective(collective)) => Some(collective),
                _ => None,
            }
        };
        let mut from: Vec<Column> = Vec::new();
        for at in lane_groups {
            let LaneGroup { mask, frame, .. } = self.lane_groups[*at];
            let Some(collective) = operation(*at, self) else { continue };
            from.resize(collective.fragments_from.len(), [0; LANES]);
            for (column, source) in from.iter_mut().zip(&collective.fragments_from) {
                let held = self.frames[frame].column(*source, &cta.launch.constants);
                each(mask, |lane| column[lane] = held[lane]);
            }
        }
        let given = result(step, &from);
        let undefined = self.undefined_fragments(cta, step, lane_groups);
        for at in lane_groups {
            let LaneGroup { mask, frame, .. } = self.lane_groups[*at];
            let Some(collective) = operation(*at, self) else { continue };
            for (to, column) in collective.fragments_to.iter().zip(&given) {
                self.frames[frame].write(*to, column, mask);
            }
            for (to, carried) in collective.fragments_to.iter().zip(&undefined) {
                self.frames[frame].undefined.set(*to, carried, mask);
            }
        }
    }

    /// The undefined bits of fragments that are moved or multiplied, with the origin of the first of them.
    fn undefined_fragments(&self, cta: &Cta<'_>, step: MatrixStep, lane_groups: &[usize]) -> Vec<Carried> {
        let (mut bits, mut origin) = (Vec::new(), None);
        for at in lane_groups {
            let LaneGroup { mask, pc, frame, .. } = self.lane_groups[*at];
            let Some(Op::Collective(collective)) = Self::code(cta).steps.get(pc as usize).map(|s| &s.op)
            else {
                continue;
            };
            bits.resize(collective.fragments_from.len(), [0; LANES]);
            for (column, source) in bits.iter_mut().zip(&collective.fragments_from) {
                let Some(known) = self.frames[frame].undefined.column(*source) else { continue };
                each(mask & known.lanes(), |lane| {
                    column[lane] = known.bits[lane];
                    origin.get_or_insert(known.origins[lane]);
                });
            }
        }
        let Some(origin) = origin else { return Vec::new() };
        let (given, origin) = match step {
            MatrixStep::Multiply(_) | MatrixStep::WarpMultiply(_) | MatrixStep::SparseMultiply(_)
                if !cta.launch.rules.has(ValueRule::Matrices) =>
            {
                return Vec::new();
            }
            MatrixStep::Multiply(multiply) => {
                let (a, b, c) = factors(&multiply, &bits);
                (multiply.undefined_product(a, b, c), origin.computed())
            }
            MatrixStep::SparseMultiply(multiply) => (multiply.undefined_product(&bits), origin.computed()),
            MatrixStep::WarpMultiply(multiply) => (multiply.undefined_product(&bits), origin.computed()),
            step => (result(step, &bits), origin),
        };
        given.into_iter().map(|bits| Carried { bits, origins: [origin; LANES], alternatives: None }).collect()
    }

    /// Lanes that name different matrices.
    fn report_unlike_tiles(&self, cta: &Cta<'_>, lane_groups: &[usize]) {
        let mut first = None;
        for at in lane_groups {
            let LaneGroup { mask, pc, frame, .. } = self.lane_groups[*at];
            let Some(Op::Collective(collective)) = Self::code(cta).steps.get(pc as usize).map(|s| &s.op)
            else {
                continue;
            };
            let [pointer, stride] = *collective.fragments_from else { continue };
            let column = |source| self.frames[frame].column(source, &cta.launch.constants);
            let (pointers, strides) = (column(pointer), column(stride));
            let named = |lane: usize| (pointers[lane], strides[lane]);
            let wanted = *first.get_or_insert(named(first_lane(mask)));
            let unlike = lanes_where(mask, |lane| named(lane) != wanted);
            if unlike != 0 && cta.launch.options.checks.barriers {
                let (what, of, here) = match named(first_lane(unlike)).0 == wanted.0 {
                    true => ("stride", wanted.1, strides[first_lane(unlike)]),
                    false => ("address", wanted.0, pointers[first_lane(unlike)]),
                };
                let text = format!(
                    "threads of the warp name different matrices: the {what} {of:#x} and {here:#x}; \
                     all 32 must give this instruction the same address and stride"
                );
                return cta.report(self.index, first_lane(unlike), pc, ExecFindingKind::Mask(text));
            }
        }
    }

    fn report_missing_lanes(&self, cta: &Cta<'_>, lanes: u32, lane_groups: &[usize]) {
        let Some(group) = lane_groups.first().map(|at| self.lane_groups[*at]) else { return };
        if !cta.launch.options.checks.barriers {
            return;
        }
        let apart = lane_groups.iter().any(|at| self.lane_groups[*at].pc != group.pc);
        let text = if apart {
            "threads of the warp execute this instruction at different places: all 32 must execute the same one".to_owned()
        } else if lanes != FULL {
            format!("only the lanes {lanes:#010x} execute this instruction: all 32 threads of the warp must")
        } else {
            return;
        };
        cta.report(self.index, first_lane(lanes), group.pc, ExecFindingKind::Mask(text));
    }
}

/// The registers of A, of B and of C.
fn factors<'f>(multiply: &Multiply, from: &'f [Column]) -> (&'f [Column], &'f [Column], &'f [Column]) {
    let [a, b, _] = multiply.registers();
    let (a, rest) = from.split_at(a.min(from.len()));
    let (b, c) = rest.split_at(b.min(rest.len()));
    (a, b, c)
}

fn result(step: MatrixStep, from: &[Column]) -> Vec<Column> {
    match step {
        MatrixStep::Multiply(multiply) => {
            let (a, b, c) = factors(&multiply, from);
            multiply.product(a, b, c)
        }
        MatrixStep::WarpMultiply(multiply) => multiply.product(from),
        MatrixStep::SparseMultiply(multiply) => multiply.product(from),
        MatrixStep::SameTile | MatrixStep::Meet => Vec::new(),
        MatrixStep::Distribute { matrices, transposed } => distribute(from, matrices, transposed),
        MatrixStep::GatherRows { transposed } => gather_rows(from, transposed),
        MatrixStep::Transpose => from.first().map(transpose).into_iter().collect(),
    }
}
