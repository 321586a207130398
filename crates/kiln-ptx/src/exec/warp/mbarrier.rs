//! Threads at `mbarrier` objects.
//!
//! An arrival releases and a wait that finds its phase complete acquires, unless the instruction is `.relaxed`. `init` and `inval` count as
//! plain writes of the object and everything else as atomic accesses, so that threads must be ordered behind the one that initialises it.

use std::ops::Range;

use super::access::Access;
use super::memory::check_aligned;
use super::{Done, Flow, LaneGroup, MAX_POLLS, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::check::{Acquired, BulkEnd, PendingBulk, Touch, Touching};
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{Address, Base, Mbarrier, MbarrierAction, Pred, Reg, Source, Strength};
use crate::exec::mbarrier_table::{MBARRIER_BYTES, MbarrierArrival, MbarrierUse, Misuse, PhaseWait};
use crate::exec::memory::generic_address::Place;
use crate::exec::warp_register::{Column, LANES, each, first_lane};

impl Mbarrier {
    /// What it does to memory. An object is one for all threads of a cluster.
    fn access(&self) -> Access {
        let bytes = MBARRIER_BYTES as u32;
        let (kind, strong) = match self.action {
            MbarrierAction::Start | MbarrierAction::Invalidate => (AccessKind::Write, false),
            MbarrierAction::Wait { .. } => (AccessKind::Read, true),
            _ => (AccessKind::Atomic, true),
        };
        let strength = Strength { strong, cluster: true, ..Strength::default() };
        Access { kind, place: self.place, bytes, part_bytes: bytes, strength, halves: None, block: None }
    }
}

impl Warp {
    pub(super) fn mbarrier(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &Mbarrier,
        lanes: u32,
    ) -> Done<Flow> {
        let is_wait = matches!(step.action, MbarrierAction::Wait { .. });
        if is_wait {
            self.watch.read();
        } else {
            self.watch.drop_state();
            cta.changes += 1;
        }
        let mut addresses = self.addresses(cta, at, step.address);
        let mut access = step.access();
        check_aligned(&access, &addresses, lanes)?;
        let frame = self.lane_groups[at].frame;
        let values = *self.frames[frame].column(step.value, &cta.launch.constants);
        let pc = self.lane_groups[at].pc;
        let mut states = [0; LANES];
        let mut holds = 0;
        let mut rest = lanes;
        while rest != 0 {
            let group = self.resolve(cta, at, &mut access, step.place, &mut addresses, rest)?;
            self.reach_mbarriers(cta, at, step, &access, &addresses, group)?;
            if !is_wait {
                cta.note_mbarrier_change();
            }
            for lane in (0..LANES).filter(|lane| group >> lane & 1 != 0) {
                let done = match step.action {
                    MbarrierAction::Start => {
                        cta.mbarriers.start(addresses[lane], i64::from(values[lane] as u32))
                    }
                    MbarrierAction::Invalidate => cta.mbarriers.end(addresses[lane], pc),
                    _ => self.use_mbarrier(
                        cta,
                        step,
                        (addresses[lane], values[lane]),
                        (lane, pc),
                        (&mut states, &mut holds),
                    ),
                };
                if let Some(misuse) = done {
                    return Err(Trouble::new(lane, ExecFindingKind::Mbarrier(misuse.text(cta.launch.code))));
                }
            }
            rest &= !group;
        }
        cta.visit(None);
        if let Some(races) = cta.races.as_mut().filter(|_| !is_wait && step.orders) {
            races.clocks.tick(self.index);
        }
        self.frames[frame].write(step.to, &states, lanes);
        self.frames[frame].set(step.to_pred, holds, lanes);
        let suspends = matches!(step.action, MbarrierAction::Wait { suspends: true, .. });
        let fails = is_wait && self.note_phase_wait(cta, at, &addresses, lanes, holds);
        // A wait with a limit may be for another block of the cluster, which must get its turn before the limit is reached.
        let polls = is_wait && holds != lanes && cta.is_clustered();
        cta.polls += u32::from(polls);
        let lets_blocks = polls && cta.polls > MAX_POLLS;
        Ok(if fails || lets_blocks || suspends && holds != lanes { Flow::Yield } else { Flow::Next })
    }

    /// Completes bytes of an object for one lane, as a copy to a part of shared memory does. The copy is pending until a thread sees the phase complete.
    pub(super) fn complete_copy(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (place, address): (Place, u64),
        (bytes, range): (u64, Range<u64>),
        lane: usize,
    ) -> Done<()> {
        let step = Mbarrier {
            action: MbarrierAction::Complete,
            place,
            address: Address { base: Base::Zero, offset: 0 },
            value: Source::default(),
            to: Reg(0),
            to_pred: Pred::SINK,
            orders: true,
        };
        let (mut access, mut addresses, mask) = (step.access(), [address; LANES], 1 << lane);
        check_aligned(&access, &addresses, mask)?;
        self.resolve(cta, at, &mut access, place, &mut addresses, mask)?;
        self.reach_mbarriers(cta, at, &step, &access, &addresses, mask)?;
        cta.note_mbarrier_change();
        let (pc, object) = (self.lane_groups[at].pc, addresses[lane]);
        if let (Some(races), Some(barrier)) = (&mut cta.races, cta.mbarriers.at(object)) {
            let warp = u64::from(races.clocks.number(self.index));
            let end = BulkEnd::Phase { object, phase: barrier.phase() };
            races.copies.bulk.start(PendingBulk { pc, warp, lane, range, end });
        }
        let done = self.use_mbarrier(cta, &step, (object, bytes), (lane, pc), (&mut [0; LANES], &mut 0));
        if let Some(misuse) = done {
            return Err(Trouble::new(lane, ExecFindingKind::Mbarrier(misuse.text(cta.launch.code))));
        }
        cta.visit(None);
        if let Some(races) = &mut cta.races {
            races.clocks.tick(self.index);
        }
        Ok(())
    }

    /// Notes a wait that failed in all lanes of a lane group, which repeat it until it holds: others run first, other lanes of the warp among them.
    fn note_phase_wait(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        addresses: &Column,
        lanes: u32,
        holds: u32,
    ) -> bool {
        let LaneGroup { mask, pc, .. } = self.lane_groups[at];
        let fails = holds == 0 && lanes == mask && cta.launch.code.mbarrier_spins.binary_search(&pc).is_ok();
        let (address, changes) = (addresses[first_lane(lanes)], cta.mbarriers.changes());
        self.lane_groups[at].phase_wait = fails.then_some(PhaseWait { pc, address, changes });
        if fails && self.lane_groups.len() > 1 {
            self.pass_over(at);
        }
        fails
    }

    /// What one lane does with an object that must be there.
    fn use_mbarrier(
        &self,
        cta: &mut Cta<'_>,
        step: &Mbarrier,
        (address, value): (u64, u64),
        (lane, pc): (usize, u32),
        (states, holds): (&mut Column, &mut u32),
    ) -> Option<Misuse> {
        let absent = cta.mbarriers.absent(address);
        let Some(object) = cta.mbarriers.at(address) else { return Some(absent) };
        let amount = i64::from(value as u32);
        let is_own = cta.visited.is_none();
        let mut races = cta.races.as_mut();
        if let Some(races) = races.as_ref().filter(|_| is_own) {
            let waits = matches!(step.action, MbarrierAction::Wait { .. });
            let time = races.clocks.now(self.index);
            object.note_use(MbarrierUse { warp: self.index, lane, time, pc, waits });
        }
        let misuse = match step.action {
            MbarrierAction::Wait { parity, .. } => {
                let is_complete = match parity {
                    true => Ok(object.is_parity_complete(value)),
                    false => object.is_complete(value),
                };
                match is_complete {
                    Err(misuse) => return Some(misuse),
                    Ok(false) => return None,
                    Ok(true) => *holds |= 1 << lane,
                }
                if let Some(races) = &mut races {
                    races.copies.bulk.see(address, object.phase());
                }
                if let Some(races) = races.filter(|_| step.orders) {
                    let found = Acquired { narrow: object.released(), wide: None };
                    races.clocks.end_polls(self.index, 1 << lane);
                    races.clocks.acquired(self.index, lane, &found, true);
                }
                return None;
            }
            MbarrierAction::Expect => object.announce(amount),
            MbarrierAction::Complete => object.announce(-amount),
            MbarrierAction::Arrive { drops, expects, completes } => {
                states[lane] = object.state();
                let (count, bytes) = if expects { (1, amount) } else { (amount, 0) };
                object.arrive(MbarrierArrival { count, bytes, drops, completes })
            }
            MbarrierAction::ArriveAfterCopies { counts } => {
                if !counts {
                    object.expect_one();
                }
                if let Some(races) = &mut races {
                    object.add_copies(self.index, lane, races.copies.started(self.index, lane));
                }
                object.arrive(MbarrierArrival { count: 1, bytes: 0, drops: false, completes: true })
            }
            MbarrierAction::Start | MbarrierAction::Invalidate => None,
        };
        if let Some(races) = races.as_mut().filter(|_| step.orders) {
            races.clocks.end_polls(self.index, 1 << lane);
            object.gather(races.clocks.released(self.index, lane, true, false).narrow.as_ref());
        }
        let copied = object.advance();
        if let Some(races) = races {
            for (warp, lane, until) in copied {
                races.copies.finish(warp, lane, until);
            }
        }
        misuse
    }

    /// Where the objects lie, after a look at alignment, bounds and order.
    fn reach_mbarriers(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &Mbarrier,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let lane = first_lane(lanes);
        if access.place != Place::Shared {
            let text = format!(
                "an mbarrier object must lie in shared memory, and {:#x} is an address of {} memory",
                addresses[lane],
                access.place.name()
            );
            return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
        }
        if let (Some([x, y, z]), false) = (access.block, step.action.reaches_other_blocks()) {
            let text = format!(
                "this instruction does not reach the mbarrier object of block ({x},{y},{z}): threads of other blocks may arrive at it and announce or complete \
                 bytes; initialise it and wait for it in its own block"
            );
            return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
        }
        self.check_shared(cta, at, access, addresses, lanes)?;
        if matches!(step.action, MbarrierAction::ArriveAfterCopies { .. }) {
            self.write_copies(cta, lanes);
        }
        if step.action == MbarrierAction::Invalidate {
            self.watch_mbarrier_ends(cta, at, access, addresses, lanes);
        } else {
            self.watch_order(cta, at, access, addresses, lanes, |_, _| false);
        }
        Ok(())
    }

    /// Copies that a thread has started are written before its arrival, as those see it that wait for the phase. An earlier arrival may have told of some.
    fn write_copies(&self, cta: &mut Cta<'_>, lanes: u32) {
        let Some(races) = &mut cta.races else { return };
        each(lanes, |lane| {
            for copy in races.copies.tell(self.index, lane) {
                let touch = Touch {
                    warp: self.index,
                    mask: 1 << lane,
                    pc: copy.pc,
                    bytes: copy.bytes,
                    element_bytes: 4,
                    kind: Touching::Write,
                    wide: false,
                    cluster: false,
                    halves: None,
                };
                // What was read or written in between is told as use of a pending copy.
                races.touch_shared(&touch, &[copy.address; LANES]);
            }
        });
    }

    /// Reports plain accesses to an object.
    #[cold]
    pub(super) fn report_mbarrier_access(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) {
        let touched =
            |lane: &usize| cta.mbarriers.touched(addresses[*lane], u64::from(access.bytes)).is_some();
        let Some(lane) = (0..LANES).filter(|lane| lanes >> lane & 1 != 0).find(touched) else { return };
        let text = format!(
            "{} of {} bytes at shared address {:#x}, where an mbarrier object is: only `mbarrier` instructions may use it \
             until `mbarrier.inval`",
            access.kind, access.bytes, addresses[lane]
        );
        cta.report(self.index, lane, self.lane_groups[at].pc, ExecFindingKind::Barrier(text));
    }
}
