//! A block of threads in the interpreter.

use std::sync::Arc;

use super::bytecode::Step;
use super::launch::{ThreadOrder, World};
use super::outcome::InterpretError;
use super::thread::{State, Surroundings, Thread};
use super::tile;
use super::warp::{Brought, combine};
use crate::declaration::ValueId;
use crate::operation::{BlockVote, Op};
use crate::statement::BarrierScope;

/// Lanes of a warp.
const LANES: usize = 32;

/// A block of threads, in the order of their numbers.
pub(super) struct Block {
    threads: Vec<Thread>,
    /// Of every warp its tiles, row by row.
    tiles: Vec<Vec<Vec<u64>>>,
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
        let threads: Vec<Thread> = places.map(|at| Thread::new(at, world)).collect();
        let elements = |tile: &crate::Tile| vec![0; tile.rows as usize * tile.columns as usize];
        let tiles: Vec<Vec<u64>> = world.draft.tiles.iter().map(elements).collect();
        Self {
            tiles: vec![tiles; threads.len().div_ceil(LANES)],
            threads,
            around: Surroundings { block, shared },
        }
    }

    /// Runs until all threads are done or wait for other blocks.
    pub(super) fn run(&mut self, world: &mut World<'_>) -> Result<Progress, InterpretError> {
        loop {
            let warps = self.threads.len().div_ceil(LANES);
            for warp in 0..warps {
                let warp = match world.order {
                    ThreadOrder::Ascending => warp,
                    ThreadOrder::Descending => warps - 1 - warp,
                };
                self.run_warp(warp, world)?;
            }
            if self.threads.iter().all(|thread| thread.state == State::Done) {
                return Ok(Progress::Done);
            }
            match self.meet_in_block(world) {
                Some(progress) => return Ok(progress),
                None if self.threads.iter().any(|thread| thread.state == State::Ready) => {}
                None => return Err(InterpretError::Deadlock { block: self.around.block }),
            }
        }
    }

    /// Runs a warp until its threads are done or wait for other warps. So it comes as far before the next one as it can,
    /// and what nothing orders between the two shows in the order of threads.
    fn run_warp(&mut self, warp: usize, world: &mut World<'_>) -> Result<(), InterpretError> {
        let end = self.threads.len().min((warp + 1) * LANES);
        let lanes = &mut self.threads[warp * LANES..end];
        loop {
            let around = &mut self.around;
            match world.order {
                ThreadOrder::Ascending => lanes.iter_mut().try_for_each(|lane| lane.run(world, around))?,
                ThreadOrder::Descending => {
                    lanes.iter_mut().rev().try_for_each(|lane| lane.run(world, around))?
                }
            }
            let step = lanes.first().map_or(0, |lane| lane.step);
            if !lanes.iter().all(|lane| lane.state == State::Waiting && lane.step == step) {
                return Ok(());
            }
            let code = Arc::clone(&world.code);
            match code.get(step) {
                Some(Step::Compute(value, Op::Warp { op, ty, a, by })) => {
                    let bring = |lane: &Thread| Brought {
                        a: lane.operand(*a),
                        by: by.map_or(0, |by| lane.operand(by)),
                    };
                    let brought: Vec<Brought> = lanes.iter().map(bring).collect();
                    let received = combine(*op, *ty, &brought, world.mode);
                    let both = lanes.iter_mut().zip(received);
                    both.for_each(|(lane, bits)| lane.resume(Some((*value, bits))));
                }
                Some(Step::Tile(op)) => {
                    if let (Some(lane), Some(tiles)) = (lanes.first(), self.tiles.get_mut(warp)) {
                        tile::execute(op, lane, tiles, world, around)?;
                    }
                    lanes.iter_mut().for_each(|lane| lane.resume(None));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Resumes the threads that waited for other blocks.
    pub(super) fn release(&mut self) {
        let waiting = self.threads.iter_mut().filter(|thread| thread.state == State::Waiting);
        waiting.for_each(|thread| thread.resume(None));
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
