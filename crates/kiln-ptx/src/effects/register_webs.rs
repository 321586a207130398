//! Splits registers that are reused for unrelated values (webs), so that each is analysed alone.
//!
//! A register that is assigned in several places may hold unrelated values there: the address of one array first, of another one later.
//! The analysis keeps one value for each slot and follows no order, so the two would become one. Here every use of a register is given
//! the assignments that reach it along the flow of control. Assignments that reach a common use stay together; each such group gets a
//! slot for itself.
//!
//! A guarded assignment does not end the ones before it. A use that no assignment reaches keeps all of them together. Registers that go
//! through calls, parts of vector registers, and functions with branches that cannot be followed stay whole.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::step::{Code, Slot, Step};
use crate::body::Body;
use crate::call::Formal;
use crate::function::PtxFunction;
use crate::module::PtxModule;
use crate::opcode::Opcode;
use crate::operand::PtxOperand;
use crate::register::RegisterId;

/// The most bits of the table of assignments and blocks: code that needs more keeps its registers whole.
const MAX_TABLE_BITS: usize = 1 << 28;

/// Gives each group of assignments that belong together a separate slot.
pub(super) fn split_registers(code: &mut Code, module: &PtxModule, function: &PtxFunction) {
    let Some(body) = &function.body else { return };
    let definitions = Definitions::new(code, &whole_slots(code, function, body));
    if definitions.all.is_empty() {
        return;
    }
    let Some(flow) = Flow::new(module, body) else { return };
    if flow.blocks.len().saturating_mul(definitions.all.len()) > MAX_TABLE_BITS {
        return;
    }
    let guarded: Vec<bool> = body.instructions().iter().map(|at| at.guard.is_some()).collect();
    let webs = Webs::new(code, &definitions, &flow, &guarded);
    webs.rename(code, &definitions);
}

/// The slots whose registers are named outside of the steps, or assigned in part.
fn whole_slots(code: &Code, function: &PtxFunction, body: &Body) -> HashSet<Slot> {
    let mut whole = HashSet::new();
    let mut keep = |register: RegisterId| whole.extend(code.find(register));
    for formal in function.parameters.iter().chain(&function.returns) {
        if let Formal::Register(register) = formal {
            keep(*register);
        }
    }
    let calls = body.calls.iter().flat_map(|call| call.arguments.iter().chain(&call.returns));
    for operand in calls {
        match *operand {
            PtxOperand::Register(register) | PtxOperand::Not(register) => keep(register),
            PtxOperand::Pair(first, second) => first.into_iter().chain(second).for_each(&mut keep),
            _ => {}
        }
    }
    for operand in body.operands.iter().chain(&body.elements) {
        match operand {
            PtxOperand::Element(register, _) => keep(*register),
            PtxOperand::Selected(selected) => keep(selected.register),
            _ => {}
        }
    }
    whole
}

/// The assignments of the slots that have several, slot by slot.
struct Definitions {
    /// Slot and instruction, sorted.
    all: Vec<(Slot, u32)>,
    of: HashMap<Slot, Range<usize>>,
}

impl Definitions {
    fn new(code: &Code, whole: &HashSet<Slot>) -> Self {
        let written = |step: &Step| Some((step.action.written()?, step.instruction));
        let mut all: Vec<(Slot, u32)> = code.steps.iter().filter_map(written).collect();
        all.sort_unstable();
        all.dedup();
        let several = |group: &&[(Slot, u32)]| {
            group.len() > 1 && group.first().is_some_and(|(slot, _)| !whole.contains(slot))
        };
        let all: Vec<_> = all.chunk_by(|a, b| a.0 == b.0).filter(several).flatten().copied().collect();
        let mut of: HashMap<Slot, Range<usize>> = HashMap::new();
        for (at, (slot, _)) in all.iter().enumerate() {
            of.entry(*slot).or_insert(at..at).end = at + 1;
        }
        Self { all, of }
    }

    /// The number of an assignment.
    fn find(&self, slot: Slot, instruction: u32) -> Option<usize> {
        self.all.binary_search(&(slot, instruction)).ok()
    }
}

/// Blocks of instructions and where each leads.
struct Flow {
    blocks: Vec<Range<u32>>,
    successors: Vec<Vec<usize>>,
}

impl Flow {
    /// None if a branch cannot be followed.
    fn new(module: &PtxModule, body: &Body) -> Option<Self> {
        let count = body.instructions().len() as u32;
        let mut starts: Vec<u32> = body.labels().iter().map(|label| label.target.min(count)).collect();
        let mut leads = Vec::with_capacity(count as usize);
        for (at, instruction) in (0u32..).zip(body.instructions()) {
            let (targets, falls) = successors(module, body, at)?;
            if !targets.is_empty() || !falls {
                starts.push(at + 1);
            }
            leads.push((targets, falls || instruction.guard.is_some()));
        }
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|start| *start < count);
        let ends = starts.iter().skip(1).copied().chain([count]);
        let blocks: Vec<Range<u32>> = starts.iter().copied().zip(ends).map(|(from, to)| from..to).collect();
        let block_of = |at: u32| starts.binary_search(&at).ok();
        let successors = blocks
            .iter()
            .map(|block| {
                let Some((targets, falls)) = leads.get(block.end as usize - 1) else { return Vec::new() };
                targets.iter().copied().chain(falls.then_some(block.end)).filter_map(block_of).collect()
            })
            .collect();
        Some(Self { blocks, successors })
    }
}

/// Where an instruction branches to, and whether control also goes on behind it without regard to its guard.
fn successors(module: &PtxModule, body: &Body, at: u32) -> Option<(Vec<u32>, bool)> {
    let instruction = body.instructions().get(at as usize)?;
    let opcode = module.form(instruction.form)?.opcode();
    let operands = body.operands(instruction);
    let labels = operands.iter().filter_map(|operand| match operand {
        PtxOperand::Label(label) => Some(vec![body.target(*label) as u32]),
        PtxOperand::Table(table) => {
            Some(body.table(*table)?.targets.iter().map(|label| body.target(*label) as u32).collect())
        }
        _ => None,
    });
    let targets: Vec<u32> = labels.flatten().collect();
    match opcode {
        Opcode::Bra | Opcode::Brx if targets.is_empty() => None,
        Opcode::Bra | Opcode::Brx => Some((targets, false)),
        Opcode::Ret | Opcode::Exit => Some((Vec::new(), false)),
        _ if targets.is_empty() => Some((targets, true)),
        _ => None,
    }
}

/// A set of assignments.
#[derive(Clone, PartialEq, Eq)]
struct Reaching(Vec<u64>);

impl Reaching {
    fn empty(definitions: &Definitions) -> Self {
        Self(vec![0; definitions.all.len().div_ceil(64)])
    }

    fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn remove(&mut self, range: &Range<usize>) {
        for (word, bits) in Self::words(range) {
            if let Some(word) = self.0.get_mut(word) {
                *word &= !bits;
            }
        }
    }

    /// Those of a range.
    fn in_range(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        Self::words(range).flat_map(|(word, bits)| {
            let mut set = self.0.get(word).copied().unwrap_or(0) & bits;
            std::iter::from_fn(move || {
                let bit = (set != 0).then(|| set.trailing_zeros())?;
                set &= set - 1;
                Some(word * 64 + bit as usize)
            })
        })
    }

    /// The words of a range, each with the bits that belong to it.
    fn words(range: &Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let Range { start, end } = *range;
        (start / 64..end.div_ceil(64)).map(move |word| {
            let first = start.saturating_sub(word * 64).min(63);
            let behind = (end - word * 64).min(64);
            (word, (u64::MAX << first) & (u64::MAX >> (64 - behind)))
        })
    }

    /// True when that changed anything.
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            changed |= *theirs & !*mine != 0;
            *mine |= *theirs;
        }
        changed
    }
}

/// What a block does to the assignments that reach it.
struct BlockEffect {
    /// The assignments of the slots that the block assigns without a guard.
    ended: Vec<Range<usize>>,
    /// Its own assignments that reach its end.
    reaching_end: Vec<usize>,
}

impl BlockEffect {
    fn new(assignments: &Assignments<'_>, block: Range<u32>) -> Self {
        let mut slots: HashMap<Slot, (bool, Vec<usize>)> = HashMap::new();
        for instruction in block {
            for (slot, at) in assignments.of(instruction) {
                let (ends, own) = slots.entry(slot).or_default();
                if !assignments.is_guarded(instruction) {
                    *ends = true;
                    own.clear();
                }
                own.push(at);
            }
        }
        let ended = slots.iter().filter(|(_, (ends, _))| *ends);
        let ended = ended.filter_map(|(slot, _)| assignments.definitions.of.get(slot).cloned()).collect();
        Self { ended, reaching_end: slots.into_values().flat_map(|(_, own)| own).collect() }
    }

    fn apply(&self, reaching: &mut Reaching) {
        self.ended.iter().for_each(|range| reaching.remove(range));
        self.reaching_end.iter().for_each(|at| reaching.insert(*at));
    }
}

/// The assignments of each instruction.
struct Assignments<'c> {
    code: &'c Code,
    steps: Steps,
    definitions: &'c Definitions,
    guarded: &'c [bool],
}

impl Assignments<'_> {
    /// The slots that an instruction assigns, with the numbers of the assignments.
    fn of(&self, instruction: u32) -> impl Iterator<Item = (Slot, usize)> {
        let written = self.steps.of(self.code, instruction).filter_map(|step| step.action.written());
        written.filter_map(move |slot| Some((slot, self.definitions.find(slot, instruction)?)))
    }

    fn is_guarded(&self, instruction: u32) -> bool {
        self.guarded.get(instruction as usize).is_some_and(|guarded| *guarded)
    }
}

/// The assignments that reach a place inside of a block, for one slot.
struct Reached {
    /// Whether those that reach the block are among them.
    has_before: bool,
    /// Those of the block, and one for each group that is known to belong together.
    own: Vec<usize>,
}

/// Assignments that belong together.
struct Webs {
    /// For each assignment another one of its group; the first of a group is its name.
    parents: Vec<usize>,
    /// An assignment that reaches a use, by slot and instruction.
    uses: HashMap<(Slot, u32), usize>,
}

impl Webs {
    fn new(code: &Code, definitions: &Definitions, flow: &Flow, guarded: &[bool]) -> Self {
        let assignments = Assignments { code, steps: Steps::new(code), definitions, guarded };
        let effects: Vec<BlockEffect> =
            flow.blocks.iter().map(|block| BlockEffect::new(&assignments, block.clone())).collect();
        let mut before = vec![Reaching::empty(definitions); flow.blocks.len()];
        let mut waiting: Vec<usize> = (0..flow.blocks.len()).rev().collect();
        let mut queued = vec![true; flow.blocks.len()];
        while let Some(block) = waiting.pop() {
            queued[block] = false;
            let mut reaching = before[block].clone();
            effects[block].apply(&mut reaching);
            for next in &flow.successors[block] {
                if before[*next].join(&reaching) && !std::mem::replace(&mut queued[*next], true) {
                    waiting.push(*next);
                }
            }
        }
        let mut webs = Self { parents: (0..definitions.all.len()).collect(), uses: HashMap::new() };
        for (block, before) in flow.blocks.iter().zip(&before) {
            webs.read_block(&assignments, before, block.clone());
        }
        webs
    }

    /// Puts the assignments that reach each use of a block together. Each assignment is looked at once for each block that it reaches, however many uses follow.
    fn read_block(&mut self, assignments: &Assignments<'_>, before: &Reaching, block: Range<u32>) {
        let mut slots: HashMap<Slot, Reached> = HashMap::new();
        for instruction in block {
            for step in assignments.steps.of(assignments.code, instruction) {
                for slot in step.action.read() {
                    let Some(range) = assignments.definitions.of.get(&slot) else { continue };
                    let reached = slots.entry(slot).or_insert(Reached { has_before: true, own: Vec::new() });
                    let one = self.unite_all(before, range, reached);
                    self.uses.insert((slot, instruction), one);
                    // They are one group from here on.
                    *reached = Reached { has_before: false, own: vec![one] };
                }
            }
            for (slot, at) in assignments.of(instruction) {
                let reached = slots.entry(slot).or_insert(Reached { has_before: true, own: Vec::new() });
                if !assignments.is_guarded(instruction) {
                    *reached = Reached { has_before: false, own: Vec::new() };
                }
                reached.own.push(at);
            }
        }
    }

    /// Puts the assignments that reach a place together, all of the slot if there are none, and names one of them.
    fn unite_all(&mut self, before: &Reaching, range: &Range<usize>, reached: &Reached) -> usize {
        let from_before = reached.has_before.then(|| before.in_range(range)).into_iter().flatten();
        let mut members = from_before.chain(reached.own.iter().copied());
        let Some(one) = members.next() else {
            range.clone().for_each(|at| self.unite(range.start, at));
            return range.start;
        };
        members.for_each(|at| self.unite(one, at));
        one
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.name(a), self.name(b));
        self.parents[a.max(b)] = a.min(b);
    }

    fn name(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    /// Gives every group a slot.
    fn rename(mut self, code: &mut Code, definitions: &Definitions) {
        let mut slots: HashMap<usize, Slot> = HashMap::new();
        for (at, (slot, _)) in definitions.all.iter().enumerate() {
            let first = definitions.of.get(slot).map_or(at, |range| range.start);
            let name = self.name(at);
            // The group of the first assignment keeps the slot.
            slots.entry(name).or_insert_with(|| if name == first { *slot } else { code.new_slot() });
        }
        let slot_of = |slot: Slot, at: Option<usize>| {
            at.and_then(|at| slots.get(&name_of(&self.parents, at)).copied()).unwrap_or(slot)
        };
        let mut steps = std::mem::take(&mut code.steps);
        for Step { action, instruction } in &mut steps {
            // What is written is looked up first: both names of a register are the same until then.
            let to = action.written().map(|to| slot_of(to, definitions.find(to, *instruction)));
            action.rename(&mut |slot| slot_of(slot, self.uses.get(&(slot, *instruction)).copied()));
            if let (Some(place), Some(to)) = (action.written_mut(), to) {
                *place = to;
            }
        }
        code.steps = steps;
        code.find_readers();
    }
}

/// The name of a group.
fn name_of(parents: &[usize], mut at: usize) -> usize {
    while parents[at] != at {
        at = parents[at];
    }
    at
}

/// The steps of each instruction.
struct Steps(Vec<Range<usize>>);

impl Steps {
    fn new(code: &Code) -> Self {
        let count = code.steps.last().map_or(0, |step| step.instruction as usize + 1);
        let mut ranges = vec![0..0; count];
        for (at, step) in code.steps.iter().enumerate() {
            if let Some(range) = ranges.get_mut(step.instruction as usize) {
                if range.end == 0 {
                    range.start = at;
                }
                range.end = at + 1;
            }
        }
        Self(ranges)
    }

    fn of<'c>(&self, code: &'c Code, instruction: u32) -> impl Iterator<Item = &'c Step> {
        let range = self.0.get(instruction as usize).cloned().unwrap_or_default();
        code.steps.get(range).unwrap_or_default().iter()
    }
}
