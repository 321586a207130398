//! Operations on words, one behind the other, in one function compiled for an instruction set.
//!
//! What an operation costs beside its vectors is the way to it. So the loop over steps is inside of that function: no step is a call.

use kiln_lanes::{LaneLoop, first_words_mut};

use super::register::{Known, Register};
use crate::exec::alu::simple_op::OnWords;
use crate::exec::lowered_code::{QuickKind, QuickStep, Source};
use crate::exec::warp_register::Column;

/// Steps of a warp whose lanes all run.
pub(super) struct WordSteps<'a> {
    pub(super) steps: &'a [QuickStep],
    pub(super) registers: &'a mut [Register],
    pub(super) constants: &'a [Register],
    /// Where the next result is computed: it changes places with the column it goes to.
    pub(super) result: &'a mut Box<Column>,
}

impl LaneLoop for WordSteps<'_> {
    /// How many steps ran, and how many instructions those are. The next one is not on words, or its operands are held in other forms.
    type Output = (u32, u64);

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> (u32, u64) {
        let (mut ran, mut instructions) = (0, 0);
        for step in self.steps {
            if step.kind != QuickKind::Simple {
                break;
            }
            let register = |source: Source| match source.split() {
                Ok(constant) => self.constants.get(constant as usize),
                Err(column) => self.registers.get(column as usize),
            };
            let [a, b, c] = step.from;
            let (Some(a), Some(b), Some(c)) = (register(a), register(b), register(c)) else { break };
            let known = a.known.and(b.known).and(c.known);
            // Where all are patterns, the result mostly is one as well.
            if known.has(Known::PATTERN) || !known.has(Known::WORDS) {
                break;
            }
            let from = [a.words(), b.words(), c.words()];
            OnWords { op: step.op, from, out: first_words_mut(self.result) }.run::<FUSED>();
            let Some(to) = self.registers.get_mut(step.to.0 as usize) else { break };
            to.take_words(self.result);
            instructions += u64::from(step.first);
            ran += 1;
        }
        (ran, instructions)
    }
}
