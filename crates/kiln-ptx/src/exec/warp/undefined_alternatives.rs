//! Results for other values of the undefined bits: a byte that is the same in all of them does not depend on these.

use super::Warp;
use super::undefined::known_flow;
use crate::exec::alu::{Alu, Input, Mode};
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::lowered_code::Source;
use crate::exec::undefined::{ALTERNATIVES, Alternatives, Carried, whole_bytes};
use crate::exec::warp_register::{Column, LANES, each};

impl Warp {
    /// The undefined bits of a result, less the bytes that are the same for other values of the undefined bits.
    pub(super) fn compared(
        &self,
        cta: &Cta<'_>,
        at: usize,
        (run, mode): (Alu, Mode),
        from: &[Source; 4],
        mut carried: Carried,
    ) -> Carried {
        let (frame, rules) = (&self.frames[self.lane_groups[at].frame], cta.launch.rules);
        let (flow, lanes) = (known_flow(mode.flow, rules), carried.lanes());
        if !flow.has_alternatives() || !rules.has(ValueRule::Alternatives) || lanes == 0 {
            return carried;
        }
        let values = from.map(|source| frame.column(source, &cta.launch.constants));
        let result = |[a, b, c, d]: [&Column; 4]| {
            let mut out = [0; LANES];
            run(&Input { set: cta.launch.set, mask: lanes, mode: &mode, a, b, c, d }, &mut out);
            out
        };
        let actual = result(values);
        let mut others = Box::new(Alternatives { lanes, ..Alternatives::UNKNOWN });
        let mut differ = [0; LANES];
        for number in 0..ALTERNATIVES {
            let operands: [Column; 4] =
                std::array::from_fn(|place| frame.undefined.alternative(from[place], number, values[place]));
            others.values[number] = result(operands.each_ref());
            each(lanes, |lane| differ[lane] |= others.values[number][lane] ^ actual[lane]);
        }
        let has_two = |lane: usize| {
            let bits = |source: &&Source| frame.undefined.lanes(**source, 1 << lane, u64::MAX) != 0;
            from.iter().filter(bits).count() > 1
        };
        if flow.is_compared() {
            each(lanes, |lane| {
                if has_two(lane) {
                    carried.bits[lane] &= whole_bytes(differ[lane]);
                }
            });
        }
        carried.alternatives = Some(others);
        carried
    }

    /// The undefined bits of a copy, which holds the alternatives of the original.
    pub(super) fn copied(&self, cta: &Cta<'_>, at: usize, from: Source) -> Option<Carried> {
        let frame = &self.frames[self.lane_groups[at].frame];
        let mut carried = frame.undefined.column(from)?.clone();
        let value = frame.column(from, &cta.launch.constants);
        let values = std::array::from_fn(|number| frame.undefined.alternative(from, number, value));
        carried.alternatives = Some(Box::new(Alternatives { lanes: u32::MAX, values }));
        Some(carried)
    }
}
