//! The end of `mbarrier` objects.
//!
//! `mbarrier.inval` is a plain write of the object: what follows must be ordered behind it. What came before are uses of the object, which must be
//! over. A thread whose use is over need not have released anything: lanes that met at a shuffle, a vote or a match have made theirs.

use super::Warp;
use super::access::Access;
use crate::exec::block::Cta;
use crate::exec::check::{Conflict, RaceCause, Touch, Touching};
use crate::exec::warp_register::{Column, LANES};

impl Warp {
    /// Lets the race check see that lanes end objects.
    pub(super) fn watch_mbarrier_ends(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) {
        let Cta { races: Some(races), mbarriers, .. } = cta else { return };
        let pc = self.lane_groups[at].pc;
        races.clocks.end_polls(self.index, lanes);
        let touch = Touch {
            warp: self.index,
            mask: lanes,
            pc,
            bytes: access.bytes,
            element_bytes: access.part_bytes,
            kind: Touching::Write,
            wide: false,
            cluster: false,
            halves: None,
        };
        let mut found = races.touch_shared(&touch, addresses);
        // Uses by threads of other blocks are known as accesses alone.
        let clocks = &races.clocks;
        let is_plain = |conflict: &Conflict| {
            matches!(conflict.earlier, Touching::Read | Touching::Write)
                || clocks.own_warp(conflict.earlier_warp as u32).is_none()
        };
        found.retain(is_plain);
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let Some(object) = mbarriers.at(addresses[lane]) else { continue };
            let open = object.uses().find(|used| {
                let by = (used.warp, used.lane);
                by != (self.index, lane) && !races.is_over(by, used.time, (self.index, lane))
            });
            found.extend(open.map(|used| Conflict {
                lane,
                earlier_warp: u64::from(races.clocks.number(used.warp)),
                earlier_lane: used.lane,
                pc: used.pc,
                earlier: if used.waits { Touching::StrongRead } else { Touching::Update },
                cause: RaceCause::Unordered,
                is_heard_of: false,
            }));
        }
        if !found.is_empty() {
            self.report_conflicts(cta, &touch, access, addresses, &found, |_, _| false);
        }
    }
}
