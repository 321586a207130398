//! Registers that a function may read before it has assigned them.
//!
//! Most functions have none: every path to a read assigns the register first. The others start with these registers marked as undefined, and which lanes
//! read one is seen while they run.

use std::collections::HashMap;

use super::super::lowered_code::{FunctionCode, Op, OperandUse, Pred, PredSource, Reg, Slot, Source, Step};
use super::reconvergence::leads_to;

/// Words of sets that are kept for one function at most; a larger one is not looked at.
const LIMIT_WORDS: usize = 1 << 24;

/// A register or a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Register {
    Column(u32),
    Predicate(u32),
}

/// The registers that some path of a function reads before it has assigned them.
pub(super) fn read_before_assigned(steps: &[Step], function: &FunctionCode) -> Vec<Register> {
    let Some(own) = steps.get(function.start as usize..) else { return Vec::new() };
    let blocks = Blocks::new(own, function);
    let words = blocks.candidates.len().div_ceil(64);
    if words == 0 || words.saturating_mul(blocks.list.len()) > LIMIT_WORDS {
        return Vec::new();
    }
    let first = blocks.read_at_entry(words);
    let all = blocks.candidates.iter().filter(|(_, at)| first[**at / 64] >> (**at % 64) & 1 != 0);
    let mut found: Vec<(usize, Register)> = all.map(|(register, at)| (*at, *register)).collect();
    found.sort_unstable_by_key(|(at, _)| *at);
    let is_passed = |register: &Register| {
        function.parameters.iter().any(|slot| match slot {
            Slot::Register(reg) => *register == Register::Column(reg.0),
            Slot::Predicate(pred) => *register == Register::Predicate(pred.0),
            Slot::Memory { .. } => false,
        })
    };
    found.into_iter().map(|(_, register)| register).filter(|register| !is_passed(register)).collect()
}

/// What a block reads before it assigns it, what it assigns for certain, and where it leads.
struct Block {
    reads: Vec<Register>,
    assigns: Vec<Register>,
    next: Vec<usize>,
}

struct Blocks {
    list: Vec<Block>,
    /// Numbers of the registers that any block reads before it assigns them.
    candidates: HashMap<Register, usize>,
}

impl Blocks {
    fn new(steps: &[Step], function: &FunctionCode) -> Self {
        let within = |target: u32| (target as usize).checked_sub(function.start as usize);
        let mut leaders = vec![false; steps.len() + 1];
        leaders[0] = true;
        for (at, step) in steps.iter().enumerate() {
            let (targets, falls) = leads_to(&step.op);
            for target in targets.iter().filter_map(|target| within(*target)).filter(|t| *t < steps.len()) {
                leaders[target] = true;
            }
            if !falls || !targets.is_empty() {
                leaders[at + 1] = true;
            }
        }
        let starts: Vec<usize> = (0..steps.len()).filter(|at| leaders[*at]).collect();
        let ends = starts.iter().skip(1).copied().chain([steps.len()]);
        let mut candidates = HashMap::new();
        let list = starts.iter().zip(ends).map(|(start, end)| {
            let (reads, assigns) = block(&steps[*start..end], function);
            for register in &reads {
                let next = candidates.len();
                candidates.entry(*register).or_insert(next);
            }
            let (targets, falls) =
                steps[end - 1..end].first().map_or((Vec::new(), false), |s| leads_to(&s.op));
            let next = targets.into_iter().filter_map(within).chain(falls.then_some(end));
            Block { reads, assigns, next: next.filter_map(|at| starts.binary_search(&at).ok()).collect() }
        });
        Self { list: list.collect(), candidates }
    }

    /// Goes backward through the blocks until nothing changes: what is read from the start of the first one on.
    fn read_at_entry(&self, words: usize) -> Vec<u64> {
        let set = |registers: &[Register]| {
            let mut bits = vec![0u64; words];
            for at in registers.iter().filter_map(|register| self.candidates.get(register)) {
                bits[at / 64] |= 1 << (at % 64);
            }
            bits
        };
        let assigns: Vec<Vec<u64>> = self.list.iter().map(|block| set(&block.assigns)).collect();
        let mut live: Vec<Vec<u64>> = self.list.iter().map(|block| set(&block.reads)).collect();
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for at in (0..self.list.len()).rev() {
                for word in 0..words {
                    let behind = self.list[at].next.iter().fold(0, |bits, next| bits | live[*next][word]);
                    let new = live[at][word] | (behind & !assigns[at][word]);
                    changed |= new != live[at][word];
                    live[at][word] = new;
                }
            }
        }
        live.into_iter().next().unwrap_or_default()
    }
}

fn block(steps: &[Step], function: &FunctionCode) -> (Vec<Register>, Vec<Register>) {
    let (mut reads, mut assigns) = (Vec::new(), std::collections::HashSet::new());
    for step in steps {
        let mut read = |register: Option<Register>| {
            reads.extend(register.filter(|register| !assigns.contains(register)));
        };
        read(of_predicate(step.guard.pred));
        let mut written = Vec::new();
        step.op.operands(&mut |operand| match operand {
            OperandUse::Uses(source) | OperandUse::Carries(source) => read(of_source(source)),
            OperandUse::UsesPredicate(source) | OperandUse::CarriesPredicate(source) => {
                read(of_predicate(source.pred));
            }
            OperandUse::Writes(reg) => written.extend(of_source(reg.into())),
            OperandUse::WritesPredicate(pred) => written.extend(of_predicate(pred)),
        });
        if matches!(step.op, Op::Return) {
            for slot in &function.returns {
                match slot {
                    Slot::Register(reg) => read(of_source((*reg).into())),
                    Slot::Predicate(pred) => read(of_predicate(*pred)),
                    Slot::Memory { .. } => {}
                }
            }
        }
        if step.guard == PredSource::ALWAYS {
            assigns.extend(written);
        }
    }
    reads.dedup();
    (reads, assigns.into_iter().collect())
}

pub(super) fn of_source(source: Source) -> Option<Register> {
    source.split().err().filter(|column| *column != Reg::default().0).map(Register::Column)
}

pub(super) fn of_predicate(pred: Pred) -> Option<Register> {
    (pred.0 >= Pred::FIRST).then_some(Register::Predicate(pred.0))
}
