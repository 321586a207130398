//! Operations on registers in the forms they are held in.

use kiln_lanes::{InstructionSet, first_words_mut};

use super::frame::Frame;
use super::register::{Known, Register};
use super::word_steps::WordSteps;
use crate::exec::alu::simple_op::{CompareWords, OnWords, Words, shared_word};
use crate::exec::alu::{Alu, Input, Mode};
use crate::exec::lane_pattern::LanePattern;
use crate::exec::launch::Launch;
use crate::exec::lowered_code::{Compare, Op, Pred, PredSource, QuickKind, QuickStep, Reg, Source};
use crate::exec::warp_register::{Column, FULL, blend};

/// Where results are computed, and operands that all lanes share.
pub(super) type Room<'a> = (&'a mut Box<Column>, &'a mut [Column; 4]);

impl Frame {
    /// An operand as a register.
    #[inline(always)]
    fn register<'a>(&'a self, source: Source, launch: &'a Launch<'_>) -> &'a Register {
        match source.split() {
            Ok(constant) => &launch.constant_registers[constant as usize],
            Err(column) => &self.registers[column as usize],
        }
    }

    /// Lets the column of an operand hold the values.
    #[inline(always)]
    pub(super) fn settle_operand(&mut self, source: Source) {
        if let Err(column) = source.split() {
            self.registers[column as usize].settle();
        }
    }

    /// Lets the column of an operand hold words; false if it has wider values. Of a constant the low words are there, whatever it is: that is all that
    /// operations on 32-bit values read.
    #[inline(always)]
    pub(super) fn narrow(&mut self, source: Source) -> bool {
        match source.split() {
            Ok(_) => true,
            Err(column) => self.registers[column as usize].narrow(),
        }
    }

    /// The same for an operand that is handed on whole: false for a constant with more than 32 bits, too.
    fn narrow_whole(&mut self, source: Source, launch: &Launch<'_>) -> bool {
        match source.split() {
            Ok(constant) => launch.constant_registers[constant as usize].pattern.starts[0] >> 32 == 0,
            Err(column) => self.registers[column as usize].narrow(),
        }
    }

    /// The words of an operand that was narrowed, or of a constant.
    #[inline(always)]
    pub(super) fn words<'a>(&'a self, source: Source, launch: &'a Launch<'_>) -> &'a Words {
        self.register(source, launch).words()
    }

    #[inline(always)]
    fn set_pattern(&mut self, to: Reg, pattern: LanePattern) {
        self.registers[to.0 as usize].set_pattern(pattern);
    }

    /// Runs operations on words in all lanes, until another step comes: how many, and how many instructions those are.
    #[inline]
    pub(super) fn simple_steps(
        &mut self,
        launch: &Launch<'_>,
        steps: &[QuickStep],
        result: &mut Box<Column>,
    ) -> (u32, u64) {
        let (mut ran, mut instructions) = (0, 0);
        while let Some(step) = steps.get(ran as usize).filter(|step| step.kind == QuickKind::Simple) {
            // Operands in other forms: they are words then, or the result is a pattern.
            self.simple(launch, step, result);
            (ran, instructions) = (ran + 1, instructions + u64::from(step.first));
            let (registers, constants) = (&mut *self.registers, &*launch.constant_registers);
            let steps = steps.get(ran as usize..).unwrap_or(&[]);
            let (more, first) = launch.set.run(WordSteps { steps, registers, constants, result });
            (ran, instructions) = (ran + more, instructions + first);
        }
        (ran, instructions)
    }

    /// Runs an operation on words in all lanes.
    #[inline(always)]
    fn simple(&mut self, launch: &Launch<'_>, step: &QuickStep, result: &mut Box<Column>) {
        let [a, b, c] = step.from;
        let known = {
            let (a, b, c) = (self.register(a, launch), self.register(b, launch), self.register(c, launch));
            a.known.and(b.known).and(c.known)
        };
        if known.has(Known::PATTERN) && self.simple_pattern(launch, step) {
            return;
        }
        if !(known.has(Known::WORDS) || self.narrow(a) && self.narrow(b) && self.narrow(c)) {
            return self.simple_lanes(launch, step, result);
        }
        let from = [self.words(a, launch), self.words(b, launch), self.words(c, launch)];
        launch.set.run(OnWords { op: step.op, from, out: first_words_mut(result) });
        self.registers[step.to.0 as usize].take_words(result);
    }

    /// Runs an operation on patterns in all lanes, if all operands and the result have one.
    #[inline(always)]
    pub(super) fn pattern_step(&mut self, launch: &Launch<'_>, step: &QuickStep) -> bool {
        let [a, b, c] = step.from.map(|source| self.register(source, launch));
        let is_known = a.known.and(b.known).and(c.known).has(Known::PATTERN);
        let found = LanePattern::computed(step.op, a.pattern, b.pattern, c.pattern).filter(|_| is_known);
        found.is_some_and(|pattern| {
            self.set_pattern(step.to, pattern);
            true
        })
    }

    /// Runs an operation on words on patterns instead, if the result has one.
    #[inline(never)]
    fn simple_pattern(&mut self, launch: &Launch<'_>, step: &QuickStep) -> bool {
        let [a, b, c] = step.from;
        let [a, b, c] = [
            self.register(a, launch).pattern,
            self.register(b, launch).pattern,
            self.register(c, launch).pattern,
        ];
        let found = match LanePattern::computed(step.op, a, b, c) {
            Some(pattern) => pattern,
            None if a.is_uniform() && b.is_uniform() && c.is_uniform() => {
                let from = [a.starts[0] as u32, b.starts[0] as u32, c.starts[0] as u32];
                LanePattern::uniform(u64::from(shared_word(step.op, from)))
            }
            None => return false,
        };
        self.set_pattern(step.to, found);
        true
    }

    /// The same on values of which some have more than 32 bits.
    #[cold]
    fn simple_lanes(&mut self, launch: &Launch<'_>, step: &QuickStep, result: &mut Box<Column>) {
        let Some(Op::Alu { run, mode, to, from }) =
            launch.code.steps.get(step.at as usize).map(|step| &step.op)
        else {
            return;
        };
        self.alu_lanes(launch, (*run, mode), (*to, from), FULL, result);
    }

    /// An operation that has no name, or runs in some lanes only.
    pub(super) fn alu(
        &mut self,
        launch: &Launch<'_>,
        (run, mode): (Alu, &Mode),
        (to, from): (Reg, &[Source; 4]),
        lanes: u32,
        (result, scalars): &mut Room<'_>,
    ) {
        if lanes == FULL {
            let [a, b, c, d] = *from;
            let first = self.register(a, launch).known.and(self.register(b, launch).known);
            let known = first.and(self.register(c, launch).known).and(self.register(d, launch).known);
            if known.has(Known::PATTERN) {
                let pattern = |source: Source| self.register(source, launch).pattern;
                if let Some(pattern) = LanePattern::computed(mode.simple, pattern(a), pattern(b), pattern(c))
                {
                    return self.set_pattern(to, pattern);
                }
            }
            if known.has(Known::UNIFORM) {
                for (scalar, source) in scalars.iter_mut().zip(from) {
                    scalar[0] = self.register(*source, launch).pattern.starts[0];
                }
                let [a, b, c, d] = &**scalars;
                run(&Input { set: InstructionSet::PORTABLE, mask: 1, mode, a, b, c, d }, result);
                return self.registers[to.0 as usize].set_uniform(result[0]);
            }
        }
        self.alu_lanes(launch, (run, mode), (to, from), lanes, result);
    }

    fn alu_lanes(
        &mut self,
        launch: &Launch<'_>,
        (run, mode): (Alu, &Mode),
        (to, from): (Reg, &[Source; 4]),
        lanes: u32,
        result: &mut Box<Column>,
    ) {
        let (constants, set): (&[Column], _) = (&launch.constants, launch.set);
        from.iter().for_each(|source| self.settle_operand(*source));
        let (a, b) = (self.column(from[0], constants), self.column(from[1], constants));
        let (c, d) = (self.column(from[2], constants), self.column(from[3], constants));
        run(&Input { set, mask: lanes, mode, a, b, c, d }, result);
        self.take(to, result, lanes);
    }

    /// The lanes for which a comparison holds.
    pub(super) fn compare(
        &mut self,
        launch: &Launch<'_>,
        compare: &Compare,
        lanes: u32,
        scalars: &mut [Column; 4],
    ) -> u32 {
        let (constants, set): (&[Column], _) = (&launch.constants, launch.set);
        let Compare { test, mode, a, b, .. } = compare;
        if lanes == FULL {
            let (first, second) = (self.register(*a, launch), self.register(*b, launch));
            let (known, x, y) = (first.known.and(second.known), first.pattern, second.pattern);
            if known.has(Known::PATTERN) {
                if mode.simple.is_comparison()
                    && let Some(holds) = LanePattern::compared(mode.simple, x, y)
                {
                    return holds;
                }
                if known.has(Known::UNIFORM) {
                    let [first, second, ..] = scalars;
                    (first[0], second[0]) = (x.starts[0], y.starts[0]);
                    let (a, b) = (&*first, &*second);
                    let set = InstructionSet::PORTABLE;
                    let holds = test(&Input { set, mask: 1, mode, a, b, c: b, d: b });
                    return if holds & 1 != 0 { FULL } else { 0 };
                }
            }
            if mode.simple.is_comparison() && self.narrow(*a) && self.narrow(*b) {
                let (a, b) = (self.words(*a, launch), self.words(*b, launch));
                return set.run(CompareWords { op: mode.simple, a, b });
            }
        }
        self.settle_operand(*a);
        self.settle_operand(*b);
        let (a, b) = (self.column(*a, constants), self.column(*b, constants));
        test(&Input { set, mask: lanes, mode, a, b, c: b, d: b })
    }

    #[inline(always)]
    pub(super) fn logic(&mut self, to: Pred, (a, b): (PredSource, PredSource), table: u8, lanes: u32) {
        let (a, b) = (self.test(a), self.test(b));
        let bit = |place: u8, lanes: u32| if table >> place & 1 != 0 { lanes } else { 0 };
        self.set(to, bit(0, !a & !b) | bit(1, !a & b) | bit(2, a & !b) | bit(3, a & b), lanes);
    }

    pub(super) fn copy(
        &mut self,
        launch: &Launch<'_>,
        to: Reg,
        from: Source,
        lanes: u32,
        result: &mut Box<Column>,
    ) {
        let constants = &launch.constants;
        if lanes == FULL {
            if let Some(pattern) = self.pattern(from, constants) {
                return self.set_pattern(to, pattern);
            }
            if let Err(column) = from.split()
                && self.registers[column as usize].known.has(Known::WORDS)
            {
                *first_words_mut(result) = *self.registers[column as usize].words();
                return self.registers[to.0 as usize].take_words(result);
            }
        }
        self.settle_operand(from);
        **result = *self.column(from, constants);
        self.take(to, result, lanes);
    }

    pub(super) fn select(
        &mut self,
        launch: &Launch<'_>,
        to: Reg,
        (a, b, pick): (Source, Source, PredSource),
        lanes: u32,
        result: &mut Box<Column>,
    ) {
        let constants = &launch.constants;
        if lanes == FULL {
            match self.test(pick) {
                0 => return self.copy(launch, to, b, lanes, result),
                FULL => return self.copy(launch, to, a, lanes, result),
                picked if self.narrow_whole(a, launch) && self.narrow_whole(b, launch) => {
                    let (a, b) = (self.words(a, launch), self.words(b, launch));
                    let out = first_words_mut(result);
                    for (lane, out) in out.iter_mut().enumerate() {
                        *out = if picked >> lane & 1 != 0 { a[lane] } else { b[lane] };
                    }
                    return self.registers[to.0 as usize].take_words(result);
                }
                _ => {}
            }
        }
        self.settle_operand(a);
        self.settle_operand(b);
        **result = *self.column(b, constants);
        blend(result, self.column(a, constants), lanes & self.test(pick));
        self.take(to, result, lanes);
    }
}
