//! `wgmma`, from the side of a warp.
//!
//! A warp computes its 16 rows as soon as it issues a product. What a GPU would do later is left to the checks: registers and shared memory of
//! a product are pending until its group is waited for.

use super::access::Access;
use super::lane_group::LaneGroup;
use super::warpgroup_registers::RegisterMisuse;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::check::{BlockRaces, PendingMatrix, Touch, Touching, ValueRule};
use crate::exec::finding::{AccessKind, BadAccess, ExecFindingKind};
use crate::exec::lowered_code::{Op, Reg, Source, Step, Warpgroup, WarpgroupFactor, WarpgroupStep};
use crate::exec::matrix::{MatrixDescriptor, PIECE_BYTES, SharedMatrix, WARP_ROWS, negated};
use crate::exec::memory::generic_address::Place;
use crate::exec::undefined::{Carried, Origin};
use crate::exec::warp_register::{Column, FULL, LANES, each, first_lane, lanes_where};
use crate::exec::warpgroup_order::{Executed, GROUP_WARPS, Unlike};

/// Bytes that are looked at together.
const WORD_BYTES: u64 = 4;
/// How often a warp looks whether the others have issued a product. Others run in between; warps that wait for each other come to an end so.
const LOOKS_LIMIT: u32 = 1 << 20;

/// A or B: its elements line by line, and their undefined bits.
struct Factor {
    elements: Vec<u64>,
    undefined: Option<(Vec<u64>, Origin)>,
}

impl Warp {
    pub(super) fn warpgroup(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &Warpgroup,
        lanes: u32,
    ) -> Done<Flow> {
        let pc = self.lane_groups[at].pc;
        if lanes != FULL {
            let text = format!(
                "only the lanes {lanes:#010x} of the warp execute this instruction: all 128 threads of the warpgroup must"
            );
            if cta.launch.options.checks.barriers {
                cta.report(self.index, first_lane(lanes), pc, ExecFindingKind::Warpgroup(text));
            }
            return Ok(Flow::Next);
        }
        let descriptors = match step {
            Warpgroup::Multiply(step) => self.descriptors(cta, at, step),
            _ => [0; 2],
        };
        if self.products.looks == 0 {
            self.compare_warps(cta, Executed { pc, descriptors });
        }
        match step {
            Warpgroup::Fence => self.products.fence(),
            Warpgroup::Commit => self.commit_products(cta),
            Warpgroup::Wait(open) => return Ok(self.wait_for_products(cta, *open)),
            Warpgroup::Multiply(step) => self.multiply(cta, at, step, descriptors)?,
        }
        Ok(Flow::Next)
    }

    fn commit_products(&mut self, cta: &mut Cta<'_>) {
        self.products.commit(cta.warpgroups.count(self.index));
        if let Some(races) = &mut cta.races {
            let clock = races.clocks.bring(self.index, FULL, true);
            cta.warpgroups.bring(self.index, clock.as_ref());
        }
    }

    /// Waits for groups: for what the other warps have yet to issue of them, too.
    fn wait_for_products(&mut self, cta: &mut Cta<'_>, open: u32) -> Flow {
        let awaited = self.products.awaited(open);
        let is_reached = cta.warpgroups.is_reached(self.index, awaited, &cta.live);
        if !is_reached && self.products.looks < LOOKS_LIMIT {
            self.products.looks += 1;
            return Flow::Again;
        }
        self.products.looks = 0;
        let first_open = self.products.wait(open);
        if let Some(races) = &mut cta.races {
            if let Some(clock) = cta.warpgroups.brought(self.index) {
                races.clocks.take_over(self.index, FULL, clock);
            }
            for (pc, pieces) in races.copies.bulk.wait_for_matrices(self.index, first_open) {
                end_of_reads(races, self.index, pc, &pieces);
            }
        }
        Flow::Next
    }

    /// Another instruction reads or writes registers of products.
    pub(super) fn watch_products(&mut self, cta: &Cta<'_>, at: usize, step: &Step) {
        if matches!(step.op, Op::Warpgroup(_)) {
            return;
        }
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        if let Some(misuse) = self.products.touch(frame, pc, &step.op) {
            self.tell_misuse(cta, at, misuse);
        }
    }

    /// Reports a write to shared memory that a product still reads.
    pub(super) fn tell_pending_matrix(
        &self,
        cta: &Cta<'_>,
        (pc, lane): (u32, usize),
        bad: &BadAccess,
        matrix: &PendingMatrix,
    ) {
        let text = format!(
            "{bad}, which the product at {} still reads; wait for its group with `wgmma.wait_group` first",
            cta.line_of(matrix.pc)
        );
        cta.report(self.index, lane, pc, ExecFindingKind::Warpgroup(text));
    }

    fn tell_misuse(&self, cta: &Cta<'_>, at: usize, misuse: RegisterMisuse) {
        if !cta.launch.options.checks.races {
            return;
        }
        let line = |pc: u32| cta.line_of(pc);
        let text = match misuse {
            RegisterMisuse::Read(pc) => format!(
                "a register is read that the product at {} has yet to write; wait for its group with `wgmma.wait_group` first",
                line(pc)
            ),
            RegisterMisuse::Written(pc) => format!(
                "a register is written that the product at {} still uses; wait for its group with `wgmma.wait_group` first",
                line(pc)
            ),
            RegisterMisuse::Products(pc) => format!(
                "the product uses registers of the product at {}, which has another shape and was not waited for; only products of one shape \
                 that add to the same registers are in order",
                line(pc)
            ),
            RegisterMisuse::NoFence => {
                "no `wgmma.fence` comes before this product; execute one before the first product of a warpgroup".to_owned()
            }
            RegisterMisuse::Unfenced(pc) => format!(
                "a register of this product was written at {} with no `wgmma.fence` since; execute one in between",
                line(pc)
            ),
        };
        cta.report(
            self.index,
            self.first_lane(at),
            self.lane_groups[at].pc,
            ExecFindingKind::Warpgroup(text),
        );
    }

    /// The descriptors of A and B, which all lanes must give alike.
    fn descriptors(&self, cta: &Cta<'_>, at: usize, step: &WarpgroupStep) -> [u64; 2] {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let of = |source: Source| {
            let column = self.frames[frame].column(source, &cta.launch.constants);
            let own = column[first_lane(mask)];
            let other = lanes_where(mask, |lane| column[lane] != own);
            if other != 0 && cta.launch.options.checks.barriers {
                let lane = first_lane(other);
                let text = format!(
                    "threads of the warp give different matrix descriptors, {own:#018x} and {:#018x}; all threads of the warpgroup must give the same",
                    column[lane]
                );
                cta.report(self.index, lane, pc, ExecFindingKind::Warpgroup(text));
            }
            own
        };
        let a = match step.a {
            WarpgroupFactor::Descriptor(source) => of(source),
            WarpgroupFactor::Registers(_) => 0,
        };
        [a, of(step.b)]
    }

    /// Compares an instruction with what the other warps of the warpgroup execute.
    fn compare_warps(&self, cta: &mut Cta<'_>, executed: Executed) {
        let Some(unlike) = cta.warpgroups.execute(self.index, executed, &cta.existing) else { return };
        let text = match unlike {
            Unlike::Incomplete(threads) => format!(
                "the block has {threads} threads of this warpgroup, and a warpgroup has 128: four warps, of which the first has a number that is a multiple of 4"
            ),
            Unlike::Instruction { other_pc } => format!(
                "another warp of the warpgroup executes the instruction at {} instead: all 128 threads must execute the same one",
                cta.line_of(other_pc)
            ),
            Unlike::Descriptor { own, other } => format!(
                "warps of the warpgroup give different matrix descriptors, {own:#018x} and {other:#018x}; all threads must give the same"
            ),
        };
        if cta.launch.options.checks.barriers {
            cta.report(self.index, 0, executed.pc, ExecFindingKind::Warpgroup(text));
        }
    }

    fn multiply(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &WarpgroupStep,
        descriptors: [u64; 2],
    ) -> Done<()> {
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        if let Some(misuse) = self.products.multiply(frame, pc, step) {
            self.tell_misuse(cta, at, misuse);
        }
        let adds = self.frames[frame].test(step.adds);
        if adds != 0 && adds != FULL && cta.launch.options.checks.barriers {
            let text = format!(
                "only the lanes {adds:#010x} add to D: all threads of the warpgroup must give the same `scale-d`"
            );
            cta.report(self.index, first_lane(!adds), pc, ExecFindingKind::Warpgroup(text));
        }
        let rows = (self.index % GROUP_WARPS) as u64 * WARP_ROWS;
        let mut a = match &step.a {
            WarpgroupFactor::Registers(registers) => self.register_factor(cta, at, step, registers),
            WarpgroupFactor::Descriptor(_) => {
                let lines = rows..rows + WARP_ROWS;
                let descriptor = decoded(descriptors[0], "A")?;
                let (element, k_major) = (step.multiply.a(), !step.transposes_a);
                self.shared_factor(cta, at, &SharedMatrix { descriptor, lines, element, k_major })?
            }
        };
        let descriptor = decoded(descriptors[1], "B")?;
        let (lines, element) = (0..step.multiply.columns(), step.multiply.b());
        let mut b = self.shared_factor(
            cta,
            at,
            &SharedMatrix { descriptor, lines, element, k_major: !step.transposes_b },
        )?;
        if step.negates_a {
            negated(step.multiply.a(), &mut a.elements);
        }
        if step.negates_b {
            negated(element, &mut b.elements);
        }
        cta.untold += (a.elements.len() + b.elements.len()) as u64 / LANES as u64;
        let column = |of: &Self, register: Source| *of.frames[frame].column(register, &cta.launch.constants);
        let before: Option<Vec<Column>> =
            (adds != 0).then(|| step.d.iter().map(|d| column(self, (*d).into())).collect());
        let given = step.multiply.product(&a.elements, &b.elements, before.as_deref());
        let undefined = self.undefined_results(cta, at, step, (&a, &b), adds != 0);
        for (d, given) in step.d.iter().zip(&given) {
            self.frames[frame].write(*d, given, FULL);
        }
        for (d, carried) in step.d.iter().zip(&undefined) {
            self.frames[frame].undefined.set(*d, carried, FULL);
        }
        Ok(())
    }

    /// The undefined bits of D; none if nothing is undefined.
    fn undefined_results(
        &self,
        cta: &Cta<'_>,
        at: usize,
        step: &WarpgroupStep,
        (a, b): (&Factor, &Factor),
        adds: bool,
    ) -> Vec<Carried> {
        if !cta.launch.rules.has(ValueRule::Matrices) {
            return Vec::new();
        }
        let (before, before_origin) = self.undefined_registers(at, &step.d);
        let before = before.filter(|_| adds);
        let origin = [&a.undefined, &b.undefined].into_iter().flatten().map(|(_, origin)| *origin).next();
        let Some(origin) = origin.or(before_origin.filter(|_| before.is_some())) else { return Vec::new() };
        let bits = |factor: &Factor| {
            factor.undefined.as_ref().map_or_else(|| vec![0; factor.elements.len()], |(bits, _)| bits.clone())
        };
        let given = step.multiply.undefined_product(&bits(a), &bits(b), before.as_deref());
        let origins = [origin.computed(); LANES];
        given.into_iter().map(|bits| Carried { bits, origins, alternatives: None }).collect()
    }

    /// The undefined bits of registers, with the origin of the first.
    fn undefined_registers(&self, at: usize, registers: &[Reg]) -> (Option<Vec<Column>>, Option<Origin>) {
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        let (mut columns, mut origin) = (vec![[0; LANES]; registers.len()], None);
        for (column, register) in columns.iter_mut().zip(registers) {
            let Some(known) = undefined.column((*register).into()) else { continue };
            each(known.lanes(), |lane| {
                column[lane] = known.bits[lane];
                origin.get_or_insert(known.origins[lane]);
            });
        }
        (origin.is_some().then_some(columns), origin)
    }

    /// A in registers.
    fn register_factor(&self, cta: &Cta<'_>, at: usize, step: &WarpgroupStep, registers: &[Reg]) -> Factor {
        let frame = &self.frames[self.lane_groups[at].frame];
        let columns: Vec<Column> =
            registers.iter().map(|a| *frame.column((*a).into(), &cta.launch.constants)).collect();
        let (undefined, origin) = self.undefined_registers(at, registers);
        let undefined = undefined.map(|columns| step.multiply.rows(&columns)).zip(origin);
        Factor { elements: step.multiply.rows(&columns), undefined }
    }

    /// A or B in shared memory. It is read by the warp as a whole, a piece by each lane in turn.
    fn shared_factor(&mut self, cta: &mut Cta<'_>, at: usize, matrix: &SharedMatrix) -> Done<Factor> {
        let pieces = matrix.pieces();
        let access = Access::plain(AccessKind::Read, Place::Shared, PIECE_BYTES as u32, WORD_BYTES as u32);
        for some in pieces.chunks(LANES) {
            let addresses: Column = std::array::from_fn(|lane| some[lane % some.len()]);
            let lanes = FULL >> (LANES - some.len());
            self.check_shared(cta, at, &access, &addresses, lanes)?;
            self.watch(cta, at, &access, &addresses, lanes, |_, _| false);
        }
        let words = || {
            pieces
                .iter()
                .flat_map(|piece| (0..PIECE_BYTES / WORD_BYTES).map(move |at| piece + at * WORD_BYTES))
        };
        let bytes = |load: &dyn Fn(u64) -> u64| -> Vec<u8> {
            words().flat_map(|word| (load(word) as u32).to_le_bytes()).collect()
        };
        let elements = matrix.elements(&bytes(&|word| cta.shared.load(word, WORD_BYTES as u32)));
        let mut undefined = None;
        if cta.launch.options.checks.uninitialised {
            let look = |_: usize, at: u64, bytes: u32| cta.shared.undefined(at, bytes);
            if let Some(word) = words().find(|word| look(0, *word, WORD_BYTES as u32) != 0) {
                let place = [word; LANES];
                let found = self.undefined_in(cta, at, &access, (&place, &place), 1, look);
                let bits = bytes(&|word| look(0, word, WORD_BYTES as u32));
                undefined = Some((matrix.elements(&bits), found.origins[0]));
            }
        }
        self.keep_pending(cta, at, pieces);
        Ok(Factor { elements, undefined })
    }

    /// Remembers what a product reads until its group is waited for.
    fn keep_pending(&self, cta: &mut Cta<'_>, at: usize, mut pieces: Vec<u64>) {
        let (pc, group) = (self.lane_groups[at].pc, self.products.group());
        if let Some(races) = &mut cta.races {
            let first_warp = self.index - self.index % GROUP_WARPS;
            pieces.sort_unstable();
            races.copies.bulk.start_matrix(PendingMatrix { pc, first_warp, group, waited: 0, pieces });
        }
    }
}

impl Cta<'_> {
    /// Reports warps that did not execute what others of their warpgroup did, when the block is done.
    pub(crate) fn tell_missed_products(&self) {
        if !self.launch.options.checks.barriers {
            return;
        }
        for missed in self.warpgroups.missed() {
            let [x, y, z] = self.thread(missed.warp, 0);
            let text = format!(
                "the warp of thread ({x},{y},{z}) does not execute this instruction: all 128 threads of the warpgroup must"
            );
            self.report(missed.other, 0, missed.pc, ExecFindingKind::Warpgroup(text));
        }
    }
}

/// The first warp that waits for a product marks the end of its reads: whatever writes there must come after that wait. A write that came before is told where it is made.
fn end_of_reads(races: &mut BlockRaces<'_>, warp: usize, pc: u32, pieces: &[u64]) {
    for some in pieces.chunks(LANES) {
        let addresses: Column = std::array::from_fn(|lane| some[lane % some.len()]);
        let touch = Touch {
            warp,
            mask: FULL >> (LANES - some.len()),
            pc,
            bytes: PIECE_BYTES as u32,
            element_bytes: WORD_BYTES as u32,
            kind: Touching::Read,
            wide: false,
            cluster: false,
            halves: None,
        };
        drop(races.touch_shared(&touch, &addresses));
    }
}

fn decoded(bits: u64, name: &str) -> Done<MatrixDescriptor> {
    MatrixDescriptor::decode(bits)
        .map_err(|text| Trouble::new(0, ExecFindingKind::BadOperand(format!("{name}: {text}"))))
}
