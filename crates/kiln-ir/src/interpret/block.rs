//! A block of threads in the interpreter.

use super::bytecode::Step;
use super::launch::{ThreadOrder, World};
use super::outcome::InterpretError;
use super::thread::{State, Surroundings, Thread};
use super::warp::{Brought, combine};
use crate::declaration::ValueId;
use crate::operation::{BlockVote, Op};
use crate::statement::BarrierScope;

/// Lanes of a warp.
const LANES: usize = 32;

/// A block of threads, in the order of their numbers.
pub(super) struct Block {
    threads: Vec<Thread>,
    around: Surroundings,
}

/// How far a block got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// Its threads wait for the other blocks.
    AtGridBarrier,
}

impl Block {
    pub(super) fn new(block: [u32; 3], world: &World<'_>) -> Self {
        let [width, height, depth] = world.draft.block;
        let places =
            (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])));
        let bytes = |shared: &crate::Shared| match shared.count {
            Some(count) => count * shared.element.bytes(),
            None => u64::from(world.dynamic_shared_bytes) / shared.element.bytes() * shared.element.bytes(),
        };
        let shared = world.draft.shared.iter().map(|shared| vec![0; bytes(shared) as usize]).collect();
        Self {
            threads: places.map(|at| Thread::new(at, world)).collect(),
            around: Surroundings { block, shared },
        }
    }

    /// Runs until all threads are done or wait for other blocks.
    pub(super) fn run(&mut self, world: &mut World<'_>) -> Result<Progress, InterpretError> {
        loop {
            for number in 0..self.threads.len() {
                let number = match world.order {
                    ThreadOrder::Ascending => number,
                    ThreadOrder::Descending => self.threads.len() - 1 - number,
                };
                self.threads[number].run(world, &mut self.around)?;
            }
            if self.threads.iter().all(|thread| thread.state == State::Done) {
                return Ok(Progress::Done);
            }
            if self.meet_in_warps(world) {
                continue;
            }
            match self.meet_in_block(world) {
                Some(progress) => return Ok(progress),
                None if self.threads.iter().any(|thread| thread.state == State::Ready) => {}
                None => return Err(InterpretError::Deadlock { block: self.around.block }),
            }
        }
    }

    /// Resumes the threads that waited for other blocks.
    pub(super) fn release(&mut self) {
        let waiting = self.threads.iter_mut().filter(|thread| thread.state == State::Waiting);
        waiting.for_each(|thread| thread.resume(None));
    }

    /// Executes the warp operations that all threads of a warp have reached; whether there were any.
    fn meet_in_warps(&mut self, world: &World<'_>) -> bool {
        let mut any = false;
        for warp in self.threads.chunks_mut(LANES) {
            let step = warp.first().map_or(0, |thread| thread.step);
            let Some(Step::Compute(value, Op::Warp { op, ty, a, by })) = world.code.get(step) else {
                continue;
            };
            if !warp.iter().all(|thread| thread.state == State::Waiting && thread.step == step) {
                continue;
            }
            let bring = |thread: &Thread| Brought {
                a: thread.operand(*a),
                by: by.map_or(0, |by| thread.operand(by)),
            };
            let brought: Vec<Brought> = warp.iter().map(bring).collect();
            let received = combine(*op, *ty, &brought, world.mode);
            warp.iter_mut().zip(received).for_each(|(thread, bits)| thread.resume(Some((*value, bits))));
            any = true;
        }
        any
    }

    /// Completes the barrier that all threads of the block have reached, if there is one.
    fn meet_in_block(&mut self, world: &World<'_>) -> Option<Progress> {
        let waiting = || self.threads.iter().filter(|thread| thread.state == State::Waiting);
        let step = waiting().next().map_or(0, |thread| thread.step);
        if !waiting().all(|thread| thread.step == step) {
            return None;
        }
        match world.code.get(step) {
            Some(Step::Barrier(BarrierScope::Grid)) => Some(Progress::AtGridBarrier),
            Some(Step::Barrier(BarrierScope::Block)) => {
                self.release();
                None
            }
            Some(Step::Compute(value, Op::BlockVote { vote, a })) => {
                let votes: Vec<bool> = waiting().map(|thread| thread.operand(*a) != 0).collect();
                let yes = votes.iter().filter(|vote| **vote).count();
                let bits = match vote {
                    BlockVote::Any => u64::from(yes > 0),
                    BlockVote::All => u64::from(yes == votes.len()),
                    BlockVote::Count => yes as u64,
                };
                self.resume_all(*value, bits);
                None
            }
            _ => None,
        }
    }

    fn resume_all(&mut self, value: ValueId, bits: u64) {
        let waiting = self.threads.iter_mut().filter(|thread| thread.state == State::Waiting);
        waiting.for_each(|thread| thread.resume(Some((value, bits))));
    }
}
