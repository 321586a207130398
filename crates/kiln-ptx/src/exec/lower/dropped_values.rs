//! Loads whose value some lanes drop.
//!
//! For `if (t == 0 && m > best) best = m;` compilers load `best` in all lanes, where its address is valid for certain, and combine the comparison with
//! `t == 0`. In the other lanes the value decides nothing, whatever it is, so they do not race with the thread that writes it. Such a load names the
//! predicate of the lanes that use the value, and the race check sees it in these alone.

use std::cell::Cell;

use super::super::lowered_code::{
    Combine, FunctionCode, Load, Op, OperandUse, Origin, Pred, PredSource, Slot, Source, Step,
};
use super::super::memory::generic_address::Place;
use super::unassigned::{Register, of_predicate, of_source};

/// Steps behind a load that are looked at.
const LONGEST: usize = 64;
/// Steps of a function that are looked at for later uses of loaded values, all loads together.
const LIMIT_STEPS: usize = 1 << 20;
/// Loads that are moved away from one place.
const MOST_MOVES: u32 = 8;

/// Marks the loads of a function, the last one of the code. A load moves behind the step that sets its predicate, if only steps that compute and
/// plain loads are between them.
pub(super) fn mark(steps: &mut [Step], origins: &mut [Origin], function: &FunctionCode) {
    let mut is_target = vec![false; steps.len()];
    let own = steps.iter().skip(function.start as usize);
    for target in own.flat_map(|step| step.op.targets()) {
        if let Some(is_target) = is_target.get_mut(*target as usize) {
            *is_target = true;
        }
    }
    let left = Cell::new(LIMIT_STEPS);
    let (mut at, mut moves) = (function.start as usize, 0);
    while at < steps.len() {
        let found = match &steps[at].op {
            Op::Load(load) if may_race(load) => {
                Search { steps, function, left: &left, is_target: &is_target }.look(at as u32, load)
            }
            _ => None,
        };
        match found {
            Some(Found { behind, .. }) if !behind.is_empty() => {
                for (to, from) in (at..).zip(behind) {
                    steps[to..=from].rotate_right(1);
                    origins[to..=from].rotate_right(1);
                }
                moves += 1;
                // The step that is here now may be such a load, too.
                if moves < MOST_MOVES {
                    continue;
                }
            }
            Some(Found { used_where, .. }) => {
                if let Op::Load(load) = &mut steps[at].op {
                    load.used_where = used_where;
                }
            }
            None => {}
        }
        moves = 0;
        at += 1;
    }
}

/// What was found for a load.
struct Found {
    used_where: PredSource,
    /// Steps that the load must move behind first.
    behind: Vec<usize>,
}

fn may_race(load: &Load) -> bool {
    !load.strength.strong
        && matches!(load.place, Place::Shared | Place::Cluster | Place::Global | Place::Generic)
}

/// What a lane does behind a step.
enum Next {
    Follows,
    Goes(u32),
    /// It uses the value.
    Uses,
    /// What it does depends on something else.
    Unknown,
}

/// Where a value goes in one lane.
struct Trace {
    /// The registers that depend on it.
    depend: Vec<Register>,
    /// Predicates whose value in the lane is known. None of them depends on the value.
    known: Vec<(Pred, bool)>,
}

impl Trace {
    fn new(load: &Load) -> Self {
        let depend = load.parts().filter_map(|(_, to)| of_source((*to).into())).collect();
        Self { depend, known: Vec::new() }
    }

    fn value(&self, source: PredSource) -> Option<bool> {
        let known = self.known.iter().find(|(pred, _)| *pred == source.pred).map(|(_, value)| *value);
        let always = (source.pred == Pred::TRUE).then_some(true);
        known.or(always).map(|value| value != source.negated)
    }

    fn has(&self, source: Source) -> bool {
        of_source(source).is_some_and(|register| self.depend.contains(&register))
    }

    fn has_predicate(&self, source: PredSource) -> bool {
        of_predicate(source.pred).is_some_and(|register| self.depend.contains(&register))
    }

    fn reads(&self, op: &Op) -> bool {
        let mut found = false;
        op.operands(&mut |operand| found |= self.is_read(operand));
        found
    }

    fn is_read(&self, operand: OperandUse) -> bool {
        match operand {
            OperandUse::Uses(source) | OperandUse::Carries(source) => self.has(source),
            OperandUse::UsesPredicate(source) | OperandUse::CarriesPredicate(source) => {
                self.has_predicate(source)
            }
            OperandUse::Writes(_) | OperandUse::WritesPredicate(_) => false,
        }
    }

    /// Calls `add` for each predicate that can decide what a step computes without the value, and what it has to be.
    fn deciding(&self, op: &Op, add: &mut dyn FnMut(PredSource, bool)) {
        match op {
            Op::Select { a, b, pick, .. } if self.has(*a) != self.has(*b) => add(*pick, self.has(*b)),
            Op::Logic { a, b, table, .. } => {
                for value in [false, true] {
                    if self.has_predicate(*a) && decided(*table, None, Some(value)).is_some() {
                        add(*b, value);
                    }
                    if self.has_predicate(*b) && decided(*table, Some(value), None).is_some() {
                        add(*a, value);
                    }
                }
            }
            Op::Compare(compare) if self.has(compare.a) || self.has(compare.b) => match compare.combine {
                Some((Combine::And, with)) => add(with, false),
                Some((Combine::Or, with)) => add(with, true),
                _ => {}
            },
            _ => {}
        }
    }

    /// Takes a step.
    fn step(&mut self, step: &Step) -> Next {
        let runs = self.value(step.guard);
        if runs == Some(false) {
            return Next::Follows;
        }
        let mut result = None;
        let depends = self.has_predicate(step.guard)
            || match &step.op {
                Op::Select { a, b, pick, .. } => match self.value(*pick) {
                    Some(picks_a) => self.has(if picks_a { *a } else { *b }),
                    None => self.reads(&step.op),
                },
                Op::Logic { a, b, table, .. } => {
                    result = decided(*table, self.value(*a), self.value(*b));
                    result.is_none() && self.reads(&step.op)
                }
                Op::Compare(compare) => {
                    result = compare.combine.and_then(|(combine, with)| {
                        let decides = match combine {
                            Combine::And => false,
                            Combine::Or => true,
                            Combine::Xor => return None,
                        };
                        self.value(with).filter(|value| *value == decides)
                    });
                    result.is_none() && self.reads(&step.op)
                }
                op => self.reads(op),
            };
        match &step.op {
            Op::Jump { target } if runs == Some(true) => return Next::Goes(*target),
            Op::Branch { target, when } if runs == Some(true) => match self.value(*when) {
                Some(true) => return Next::Goes(*target),
                Some(false) => return Next::Follows,
                None => {}
            },
            _ => {}
        }
        if depends && !only_computes(&step.op) {
            return Next::Uses;
        }
        if !step.op.targets().is_empty() || !step.op.falls_through() {
            return Next::Unknown;
        }
        self.write(&step.op, depends, runs == Some(true), result);
        Next::Follows
    }

    /// Takes what a step writes: whether it depends on the value, whether it is written for certain, and a predicate that is known.
    fn write(&mut self, op: &Op, depends: bool, is_certain: bool, result: Option<bool>) {
        op.operands(&mut |operand| {
            let register = match operand {
                OperandUse::Writes(to) => of_source(to.into()),
                OperandUse::WritesPredicate(to) => of_predicate(to),
                _ => None,
            };
            let Some(register) = register else { return };
            if depends || is_certain {
                self.depend.retain(|other| *other != register);
            }
            if depends {
                self.depend.push(register);
            }
            if let OperandUse::WritesPredicate(to) = operand {
                self.known.retain(|(pred, _)| *pred != to);
                self.known.extend(result.filter(|_| is_certain && !depends).map(|value| (to, value)));
            }
        });
    }
}

/// The registers that a step writes.
fn written(op: &Op) -> Vec<Register> {
    let mut written = Vec::new();
    op.operands(&mut |operand| match operand {
        OperandUse::Writes(to) => written.extend(of_source(to.into())),
        OperandUse::WritesPredicate(to) => written.extend(of_predicate(to)),
        _ => {}
    });
    written
}

/// The result of a function of two predicates, as far as those that are known decide it.
fn decided(table: u8, a: Option<bool>, b: Option<bool>) -> Option<bool> {
    let may_be = |known: Option<bool>, value: u8| known.is_none_or(|known| u8::from(known) == value);
    let places = (0..4u8).filter(|place| may_be(a, place >> 1) && may_be(b, place & 1));
    let mut results = places.map(|place| table >> place & 1 != 0);
    let first = results.next()?;
    results.all(|result| result == first).then_some(first)
}

/// Whether a step does nothing but compute registers from registers.
fn only_computes(op: &Op) -> bool {
    matches!(
        op,
        Op::Alu { .. }
            | Op::Compare(_)
            | Op::Select { .. }
            | Op::Logic { .. }
            | Op::Copy { .. }
            | Op::Split { .. }
            | Op::Join { .. }
    )
}

/// A predicate that may decide that a loaded value is dropped.
struct Decider {
    pred: Pred,
    /// With this value.
    value: bool,
    /// It has its value from this step on.
    from: u32,
}

struct Search<'a> {
    steps: &'a [Step],
    function: &'a FunctionCode,
    /// Steps that may still be looked at for later uses.
    left: &'a Cell<usize>,
    /// The steps that branches go to.
    is_target: &'a [bool],
}

impl Search<'_> {
    fn look(&self, at: u32, load: &Load) -> Option<Found> {
        self.deciders(at, load).into_iter().find_map(|decider| {
            let behind = self.steps_to_pass(at, load, decider.from)?;
            let used_where = PredSource { pred: decider.pred, negated: decider.value };
            self.is_dropped(at, load, &decider).then_some(Found { used_where, behind })
        })
    }

    /// Predicates that may decide, with a value, that what a load reads is dropped.
    fn deciders(&self, at: u32, load: &Load) -> Vec<Decider> {
        let mut trace = Trace::new(load);
        let mut found = Vec::new();
        let mut written: Vec<(Pred, u32)> = Vec::new();
        let mut next = at + 1;
        for _ in 0..LONGEST {
            let Some(step) = self.steps.get(next as usize).filter(|_| !trace.depend.is_empty()) else {
                break;
            };
            trace.deciding(&step.op, &mut |source, value| {
                if source.pred.0 >= Pred::FIRST && !trace.has_predicate(source) {
                    let last = written.iter().rev().find(|(pred, _)| *pred == source.pred);
                    let from = last.map_or(at + 1, |(_, step)| step + 1);
                    found.push(Decider { pred: source.pred, value: value != source.negated, from });
                }
            });
            step.op.operands(&mut |operand| {
                if let OperandUse::WritesPredicate(to) = operand {
                    written.push((to, next));
                }
            });
            match trace.step(step) {
                Next::Follows => next += 1,
                Next::Goes(target) => next = target,
                Next::Uses | Next::Unknown => break,
            }
        }
        found
    }

    /// The steps before `end` that do not depend on a load, if it and those that depend on it can move behind them.
    fn steps_to_pass(&self, at: u32, load: &Load, end: u32) -> Option<Vec<usize>> {
        let mut trace = Trace::new(load);
        let (mut pass, mut stay) = (Vec::new(), vec![self.steps.get(at as usize)?]);
        for next in at as usize + 1..end as usize {
            let step = self.steps.get(next)?;
            let is_plain_load = matches!(&step.op, Op::Load(load) if !load.strength.strong);
            let is_special = matches!(step.op, Op::Special { .. });
            if self.is_target[next] || !(only_computes(&step.op) || is_plain_load || is_special) {
                return None;
            }
            if trace.reads(&step.op) || trace.has_predicate(step.guard) {
                stay.push(step);
            } else {
                let written = Trace { depend: written(&step.op), known: Vec::new() };
                let is_needed = |stays: &&Step| {
                    let mut again = self::written(&stays.op).into_iter();
                    written.reads(&stays.op)
                        || written.has_predicate(stays.guard)
                        || again.any(|register| written.depend.contains(&register))
                };
                if stay.iter().any(is_needed) {
                    return None;
                }
                pass.push(next);
            }
            match trace.step(step) {
                Next::Follows => {}
                Next::Goes(_) | Next::Uses | Next::Unknown => return None,
            }
        }
        Some(pass)
    }

    /// Whether a lane in which a predicate has a value drops what a load reads.
    fn is_dropped(&self, at: u32, load: &Load, decider: &Decider) -> bool {
        let mut trace = Trace::new(load);
        let mut known = Some((decider.pred, decider.value));
        let mut next = at + 1;
        for _ in 0..LONGEST {
            if next == decider.from {
                trace.known.extend(known.take());
            }
            let Some(step) = self.steps.get(next as usize).filter(|_| !trace.depend.is_empty()) else {
                break;
            };
            match trace.step(step) {
                Next::Follows => next += 1,
                Next::Goes(target) => next = target,
                Next::Uses => return false,
                Next::Unknown => break,
            }
        }
        !trace.depend.iter().any(|register| self.may_be_read(next, *register))
    }

    /// Whether a thread may read a register from a step on before it is written.
    fn may_be_read(&self, from: u32, register: Register) -> bool {
        let start = self.function.start;
        let mut seen = vec![false; self.steps.len().saturating_sub(start as usize)];
        let value = Trace { depend: vec![register], known: Vec::new() };
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let (Some(step), Some(seen)) =
                (self.steps.get(at as usize), at.checked_sub(start).and_then(|at| seen.get_mut(at as usize)))
            else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            let Some(left) = self.left.get().checked_sub(1) else { return true };
            self.left.set(left);
            let is_returned = matches!(step.op, Op::Return) && self.is_result(register);
            if value.has_predicate(step.guard) || value.reads(&step.op) || is_returned {
                return true;
            }
            let is_written = written(&step.op).contains(&register);
            let is_guarded = step.guard != PredSource::ALWAYS;
            if is_written && !is_guarded {
                continue;
            }
            open.extend(step.op.targets());
            if step.op.falls_through() || is_guarded {
                open.push(at + 1);
            }
        }
        false
    }

    fn is_result(&self, register: Register) -> bool {
        self.function.returns.iter().any(|slot| match slot {
            Slot::Register(to) => of_source((*to).into()) == Some(register),
            Slot::Predicate(to) => of_predicate(*to) == Some(register),
            Slot::Memory { .. } => false,
        })
    }
}
