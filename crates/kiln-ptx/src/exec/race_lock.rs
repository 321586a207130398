//! Locks around two accesses that race: whether fences are missing that would make them order memory.

use super::lowered_code::{Address, Base, Code, Op, PredSource, Step};

/// A lock in the code: where it is taken and where it is released.
#[derive(Clone, Copy)]
struct Lock {
    take: u32,
    release: u32,
}

impl Code {
    /// Whether both steps stand between the taking and the release of one lock, with no fence on one of the two sides of either.
    pub(super) fn lacks_lock_fence(&self, first: u32, second: u32) -> bool {
        self.locks().into_iter().any(|lock| {
            let sections = [first, second].map(|step| self.is_in_section(lock, step));
            let is_unfenced = |step: u32| self.is_unfenced(lock, step);
            sections == [true, true] && (is_unfenced(first) || is_unfenced(second))
        })
    }

    /// The locks: an atomic that is tried again until it holds, and a later write of the same place.
    fn locks(&self) -> Vec<Lock> {
        let waits = self.waits();
        let takes = (0u32..).zip(&waits).filter(|(_, is_wait)| **is_wait).map(|(at, _)| at);
        let mut locks = Vec::new();
        for take in takes {
            let Some(Op::Atomic(taken)) = self.steps.get(take as usize).map(|step| &step.op) else {
                continue;
            };
            for (release, step) in (0u32..).zip(&self.steps) {
                let address = match &step.op {
                    Op::Atomic(atomic) => atomic.address,
                    Op::Store(store) => store.address,
                    _ => continue,
                };
                if release != take && address.is_same(&taken.address) && self.leads_to(take, release) {
                    locks.push(Lock { take, release });
                }
            }
        }
        locks
    }

    /// Whether a step is only reached with the lock, and before its release.
    fn is_in_section(&self, lock: Lock, step: u32) -> bool {
        let start = self.functions.iter().map(|function| function.start).filter(|start| *start <= step).max();
        let is_without = self.reaches(start.unwrap_or(0), step, |at, _| at == lock.take);
        !is_without
            && self.reaches(lock.take, step, |at, _| at == lock.release)
            && self.reaches(step, lock.release, |_, _| false)
    }

    /// Whether a fence is missing between the taking of the lock and a step, or between the step and the release.
    fn is_unfenced(&self, lock: Lock, step: u32) -> bool {
        let strength = |at: u32| match self.steps.get(at as usize).map(|step| &step.op) {
            Some(Op::Atomic(atomic)) => Some(atomic.strength),
            Some(Op::Store(store)) => Some(store.strength),
            _ => None,
        };
        let acquires = strength(lock.take).is_some_and(|strength| strength.acquire);
        let releases = strength(lock.release).is_some_and(|strength| strength.release);
        let is_fence = |_: u32, step: &Step| matches!(step.op, Op::Fence(_) | Op::Barrier(_));
        !acquires && self.reaches(lock.take, step, is_fence)
            || !releases && self.reaches(step, lock.release, is_fence)
    }

    /// Whether a thread can get from one step to another inside of a function without one that stops it.
    fn reaches(&self, from: u32, to: u32, stops: impl Fn(u32, &Step) -> bool) -> bool {
        let mut seen = vec![false; self.steps.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            let Some(step) = self.steps.get(at as usize) else { continue };
            if std::mem::replace(&mut seen[at as usize], true) || stops(at, step) {
                continue;
            }
            open.extend(step.op.targets());
            if step.op.falls_through() || step.guard != PredSource::ALWAYS {
                open.push(at + 1);
            }
        }
        false
    }
}

impl Address {
    /// Whether the code writes both addresses in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let base = match (self.base, other.base) {
            (Base::Value(a), Base::Value(b)) => a == b,
            (Base::Zero, Base::Zero) => true,
            _ => false,
        };
        base && self.offset == other.offset
    }
}
