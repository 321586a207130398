//! Waits for phases of `mbarrier` objects that a thread repeats until the phase is complete.
//!
//! A wait that fails is followed on all ways through the code: what follows from its result is computed, and where a branch depends on something
//! else, both ways are taken. If all of them lead back to the wait, and a thread does nothing on them that others see, then only the end of the phase
//! lets it go on. Timers, counters and sleeps in between make no difference, a limit of time or of rounds does.

use std::collections::{BTreeMap, HashSet};

use kiln_lanes::InstructionSet;

use super::*;
use crate::exec::alu::Input;
use crate::exec::warp_register::LANES;
use OperandUse::{Writes, WritesPredicate};

/// The most places and values that are followed for one wait.
const MOST_STATES: usize = 1024;

/// Registers of a thread whose values follow from the result of the wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    columns: BTreeMap<u32, u64>,
    predicates: BTreeMap<u32, bool>,
}

impl Code {
    /// The waits at `mbarrier` objects that only the end of the phase ends, by rising number.
    pub(crate) fn find_mbarrier_spins(&self) -> Vec<u32> {
        let waits = (0..).zip(&self.steps).filter_map(|(at, step)| match &step.op {
            Op::Mbarrier(wait) if matches!(wait.action, MbarrierAction::Wait { .. }) => {
                Some((at, wait.to_pred))
            }
            _ => None,
        });
        waits.filter(|(at, failed)| self.always_comes_back(*at, *failed)).map(|(at, _)| at).collect()
    }

    /// Whether a thread whose wait failed comes back to it whatever happens, unseen by other threads.
    fn always_comes_back(&self, wait: u32, failed: Pred) -> bool {
        let mut known = Known::default();
        known.predicates.insert(failed.0, false);
        let mut seen = HashSet::new();
        let mut open = vec![(wait + 1, known)];
        while let Some(state) = open.pop() {
            if state.0 == wait || seen.contains(&state) {
                continue;
            }
            let Some(ways) = self.ways(state.0, &state.1) else { return false };
            open.extend(ways);
            seen.insert(state);
            if seen.len() > MOST_STATES {
                return false;
            }
        }
        true
    }

    /// Where a thread may be after a step, and what is known then; `None` if others may see the step, or it ends the thread.
    fn ways(&self, at: u32, known: &Known) -> Option<Vec<(u32, Known)>> {
        let step = self.steps.get(at as usize)?;
        let guard = known.test(step.guard);
        let mut ways = Vec::new();
        if guard != Some(true) {
            ways.push((at + 1, known.clone()));
        }
        if guard == Some(false) {
            return Some(ways);
        }
        match &step.op {
            Op::Branch { target, when } => {
                let taken = known.test(*when);
                ways.extend((taken != Some(false)).then(|| (*target, known.clone())));
                ways.extend((taken != Some(true)).then(|| (at + 1, known.clone())));
            }
            Op::Jump { .. } | Op::Table { .. } => {
                ways.extend(step.op.targets().iter().map(|target| (*target, known.clone())));
            }
            op if op.is_unseen() => {
                let mut after = known.clone();
                after.forget_written(op);
                self.compute(op, known, &mut after);
                ways.push((at + 1, after));
            }
            _ => return None,
        }
        Some(ways)
    }

    /// Adds the results of a step whose operands are known.
    fn compute(&self, op: &Op, known: &Known, after: &mut Known) {
        let value = |source: Source| match source.split() {
            Ok(constant) => match self.constants.get(constant as usize)? {
                Constant::Bits(bits) => Some(*bits),
                Constant::Variable(..) => None,
            },
            // The sink, which operands are that an operation does not have.
            Err(0) => Some(0),
            Err(column) => known.columns.get(&column).copied(),
        };
        match op {
            Op::Alu { run, mode, to, from } => {
                let [Some(a), Some(b), Some(c), Some(d)] = from.map(value) else { return };
                let [a, b, c, d] = [a, b, c, d].map(|value| [value; LANES]);
                let mut out = [0; LANES];
                run(
                    &Input { set: InstructionSet::PORTABLE, mask: 1, mode, a: &a, b: &b, c: &c, d: &d },
                    &mut out,
                );
                after.columns.insert(to.0, out[0]);
            }
            Op::Compare(compare) => {
                let (Some(a), Some(b)) = (value(compare.a), value(compare.b)) else { return };
                let (a, b) = ([a; LANES], [b; LANES]);
                let holds = (compare.test)(&Input {
                    set: InstructionSet::PORTABLE,
                    mask: 1,
                    mode: &compare.mode,
                    a: &a,
                    b: &b,
                    c: &b,
                    d: &b,
                });
                let with = |holds: u32| match &compare.combine {
                    Some((combine, source)) => Some(combine.apply(holds, u32::from(known.test(*source)?))),
                    None => Some(holds),
                };
                for (to, holds) in [(compare.to, with(holds)), (compare.opposite, with(!holds))] {
                    after.predicates.extend(holds.map(|holds| (to.0, holds & 1 != 0)));
                }
            }
            Op::Select { to, a, b, pick } => {
                let picked = known.test(*pick).and_then(|pick| value(if pick { *a } else { *b }));
                after.columns.extend(picked.map(|value| (to.0, value)));
            }
            Op::Logic { to, a, b, table } => {
                let (Some(a), Some(b)) = (known.test(*a), known.test(*b)) else { return };
                after.predicates.insert(to.0, table >> (2 * u8::from(a) + u8::from(b)) & 1 != 0);
            }
            Op::Copy { to, from } => after.columns.extend(value(*from).map(|value| (to.0, value))),
            _ => {}
        }
    }
}

impl Known {
    fn test(&self, source: PredSource) -> Option<bool> {
        let holds = if source.pred == Pred::TRUE { true } else { *self.predicates.get(&source.pred.0)? };
        Some(holds != source.negated)
    }

    fn forget_written(&mut self, op: &Op) {
        op.operands(&mut |operand| match operand {
            Writes(to) => drop(self.columns.remove(&to.0)),
            WritesPredicate(to) => drop(self.predicates.remove(&to.0)),
            _ => {}
        });
    }
}

impl Op {
    /// Whether other threads see nothing of it, and the thread goes on behind it without them.
    fn is_unseen(&self) -> bool {
        match self {
            Self::Mbarrier(mbarrier) => matches!(mbarrier.action, MbarrierAction::Wait { .. }),
            Self::Store(store) => store.place == Place::Local,
            Self::Alu { .. }
            | Self::Compare(_)
            | Self::Select { .. }
            | Self::Logic { .. }
            | Self::Copy { .. }
            | Self::Carry(_)
            | Self::Split { .. }
            | Self::Join { .. }
            | Self::Special { .. }
            | Self::FrameAddress { .. }
            | Self::IsSpace { .. }
            | Self::ClusterAddress(_)
            | Self::Load(_)
            | Self::ActiveMask { .. }
            | Self::Fence(_)
            | Self::Yield
            | Self::Nothing => true,
            _ => false,
        }
    }
}
