//! Where a seed lets other threads run: before strong accesses, by which threads synchronise.
//!
//! What a thread knows of the others follows from the order of strong accesses alone: where else it is preempted makes no difference to the
//! race check. Without preemption a thread runs until it waits or ends, those that wait for it see its last release only, and a ring
//! buffer without back-pressure or a grid barrier that is one short look right.
//!
//! Each instruction has countdowns to its next preemptions: by other lanes, other warps, other blocks. The first ones are short. After each
//! [`OFTEN`] preemptions the next ones are twice as long, so that an instruction that runs a million times is preempted a few hundred times,
//! and one that runs twice is likely to be. Now and then a block runs undisturbed for a while, and a preempted block or warp is held back for
//! some turns: a mistake may need one of them far ahead of the others.

use super::random::Random;

/// The longest first countdowns of instructions that write, and of those that only read.
const WRITES: u64 = 2;
const READS: u64 = 4;
/// Preemptions at one instruction until its countdowns double.
const OFTEN: u32 = 16;
/// The most a countdown doubles.
const MAX_DOUBLINGS: u32 = 32;

/// Decides where threads are preempted. The decisions follow from the seed and from what was executed.
pub(crate) struct Preemption {
    random: Random,
    /// For each instruction its place in the list of points, counted from one; zero for none.
    places: Vec<u32>,
    points: Vec<[Point; 3]>,
    /// Strong accesses that are not preempted, whatever the countdowns say.
    undisturbed: u64,
    held: u32,
}

/// An instruction before which threads are preempted in favour of one kind of others.
struct Point {
    /// Executions until the next preemption.
    left: u64,
    taken: u32,
    /// Whether it only reads. Others learn more before a write than before a read.
    reads: bool,
}

impl Point {
    fn new(random: &mut Random, reads: bool) -> Self {
        let left = if reads { random.below(READS) } else { u64::from(random.below(8) == 0) };
        Self { left, taken: 0, reads }
    }

    /// Starts the next countdown. It is at least one: a thread that was preempted gets past the instruction before the next preemption there.
    fn start_again(&mut self, random: &mut Random) {
        self.taken = self.taken.saturating_add(1);
        let range = if self.reads { READS } else { WRITES };
        self.left = 1 + random.below(range << (self.taken / OFTEN).min(MAX_DOUBLINGS));
    }

    /// For how many turns others go first, beyond the next one: a thread that is about to release something may be late.
    fn turns_held(&self, random: &mut Random) -> u32 {
        match random.below(2) {
            0 if !self.reads => 1 << random.below(4),
            _ => 0,
        }
    }
}

/// What runs instead of the threads that are preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Another block.
    Block,
    /// Another warp of the block.
    Warp,
    /// Other lanes of the warp.
    Lanes,
}

impl Switch {
    const ALL: [Self; 3] = [Self::Block, Self::Warp, Self::Lanes];
}

impl Preemption {
    /// For one of the host threads that run blocks.
    pub(crate) fn new(seed: u64, worker: u64) -> Self {
        let random = Random::new(Random::new(seed.rotate_left(23) ^ worker).next());
        Self { random, places: Vec::new(), points: Vec::new(), undisturbed: 0, held: 0 }
    }

    /// What runs before the instruction at `pc` is executed, if something does. `possible`: whether other blocks, other warps of the block and
    /// other lanes of the warp could. `reads`: the instruction changes nothing.
    pub(crate) fn at(&mut self, pc: u32, reads: bool, possible: [bool; 3]) -> Option<Switch> {
        if self.undisturbed > 0 {
            self.undisturbed -= 1;
            return None;
        }
        let place = self.place(pc, reads);
        let points = self.points.get_mut(place)?;
        let due = points.iter().zip(possible).position(|(point, possible)| possible && point.left == 0);
        let Some(due) = due else {
            // It is executed now.
            let counted = points.iter_mut().zip(possible).filter(|(_, possible)| *possible);
            counted.for_each(|(point, _)| point.left = point.left.saturating_sub(1));
            return None;
        };
        let point = points.get_mut(due)?;
        point.start_again(&mut self.random);
        self.held = point.turns_held(&mut self.random);
        Switch::ALL.get(due).copied()
    }

    /// Where the points of an instruction are in the list.
    fn place(&mut self, pc: u32, reads: bool) -> usize {
        let pc = pc as usize;
        if self.places.len() <= pc {
            self.places.resize(pc + 1, 0);
        }
        if self.places[pc] == 0 {
            self.points.push([(); 3].map(|()| Point::new(&mut self.random, reads)));
            self.places[pc] = self.points.len() as u32;
        }
        self.places[pc] as usize - 1
    }

    /// Another block goes on: now and then it runs undisturbed for a while.
    pub(crate) fn start_turn(&mut self) {
        self.undisturbed = match self.random.below(8) {
            0 => 2 << self.random.below(4),
            _ => 0,
        };
    }

    /// For how many turns of other blocks the block that was preempted last is held back.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// True once in `count`, about.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    /// A place in a queue.
    pub(crate) fn place_in(&mut self, len: usize) -> usize {
        self.random.below(len.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: [bool; 3] = [true, false, false];
    const ALL: [bool; 3] = [true; 3];

    #[test]
    fn a_rare_instruction_is_preempted_and_a_frequent_one_ever_less() {
        for seed in 1..20 {
            let mut preemption = Preemption::new(seed, 0);
            let frequent = (0..1 << 20).filter(|_| preemption.at(7, false, BLOCK).is_some()).count();
            assert!((100..400).contains(&frequent), "{frequent} with seed {seed}");
            let rare = (0..8).filter(|_| preemption.at(8, false, BLOCK).is_some()).count();
            assert!(rare >= 2, "{rare} with seed {seed}");
        }
    }

    #[test]
    fn an_instruction_is_executed_after_each_switch_was_taken_once() {
        for seed in 1..20 {
            let mut preemption = Preemption::new(seed, 0);
            let taken: Vec<bool> = (0..1000).map(|_| preemption.at(7, false, ALL).is_some()).collect();
            assert!(taken.windows(4).all(|run| run != [true; 4]), "seed {seed}");
            let taken: Vec<bool> = (0..1000).map(|_| preemption.at(8, false, BLOCK).is_some()).collect();
            assert!(taken.windows(2).all(|pair| pair != [true; 2]), "seed {seed}");
        }
    }

    #[test]
    fn nothing_happens_where_nothing_else_can_run() {
        let mut preemption = Preemption::new(5, 0);
        assert!((0..1000).all(|_| preemption.at(7, false, [false; 3]).is_none()));
    }
}
