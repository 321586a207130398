//! Results for other values of the undefined bits: a byte that is the same in all of them does not depend on these.

use super::Warp;
use super::undefined::known_flow;
use crate::exec::alu::{Alu, Input, Mode};
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::lowered_code::Source;
use crate::exec::undefined::{Carried, whole_bytes};
use crate::exec::warp_register::{Column, LANES, each};

impl Warp {
    /// The undefined bits of a result, less the bytes that are the same for other values of the undefined bits.
    pub(super) fn compared(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        (run, mode): (Alu, Mode),
        from: &[Source; 4],
        mut carried: Carried,
    ) -> Carried {
        let (frame, rules) = (&mut self.frames[self.lane_groups[at].frame], cta.launch.rules);
        let (flow, lanes) = (known_flow(mode.flow, rules), carried.lanes());
        if !flow.has_alternatives() || !rules.has(ValueRule::Alternatives) || lanes == 0 {
            return carried;
        }
        let mut others = frame.undefined.room(lanes);
        let frame = &*frame;
        let values = from.map(|source| frame.column(source, &cta.launch.constants));
        let (mut differ, mut actual) = ([0; LANES], [0; LANES]);
        let [a, b, c, d] = values;
        run(&Input { set: cta.launch.set, mask: lanes, mode: &mode, a, b, c, d }, &mut actual);
        let sources: [_; 4] =
            std::array::from_fn(|place| frame.undefined.others(from[place], values[place], lanes));
        let mut room: [Column; 4] = [[0; LANES]; 4];
        for (number, out) in others.values.iter_mut().enumerate() {
            let [first, second, third, fourth] = &mut room;
            let a = sources[0].numbered(number, first);
            let b = sources[1].numbered(number, second);
            let c = sources[2].numbered(number, third);
            let d = sources[3].numbered(number, fourth);
            run(&Input { set: cta.launch.set, mask: lanes, mode: &mode, a, b, c, d }, out);
            each(lanes, |lane| differ[lane] |= out[lane] ^ actual[lane]);
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
    pub(super) fn copied(&mut self, cta: &Cta<'_>, at: usize, from: Source) -> Option<Carried> {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let mut carried = frame.undefined.column(from)?.without_alternatives();
        let mut copy = frame.undefined.room(u32::MAX);
        let value = frame.column(from, &cta.launch.constants);
        let others = frame.undefined.others(from, value, u32::MAX);
        let mut room = [0; LANES];
        { copy.values.iter_mut().enumerate() }
            .for_each(|(number, values)| *values = *others.numbered(number, &mut room));
        carried.alternatives = Some(copy);
        Some(carried)
    }
}
