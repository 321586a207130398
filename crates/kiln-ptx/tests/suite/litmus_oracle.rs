//! The happens-before relation of a run, edge by edge as PTX defines it.

use crate::litmus::{Litmus, Order, Placed, Step};

/// An access of a thread: which of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) thread: usize,
    pub(crate) number: usize,
}

struct Relation {
    size: usize,
    holds: Vec<bool>,
}

impl Relation {
    fn new(size: usize) -> Self {
        Self { size, holds: vec![false; size * size] }
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.holds[a * self.size + b]
    }

    fn add(&mut self, a: usize, b: usize) {
        self.holds[a * self.size + b] = true;
    }

    fn close(&mut self) {
        for middle in 0..self.size {
            for a in 0..self.size {
                for b in 0..self.size {
                    if self.has(a, middle) && self.has(middle, b) {
                        self.add(a, b);
                    }
                }
            }
        }
    }
}

/// What the oracle asks about a step.
#[derive(Clone, Copy)]
struct Facts {
    place: Option<u64>,
    reads: bool,
    writes: bool,
    strong: bool,
    wide: bool,
    acquires: bool,
    releases: bool,
    fence: bool,
}

fn facts(step: Step) -> Facts {
    let of = |place, order: Order, wide, reads, writes| Facts {
        place: Some(place),
        reads,
        writes,
        strong: order != Order::Weak,
        wide,
        acquires: reads && matches!(order, Order::Acquire | Order::Both),
        releases: writes && matches!(order, Order::Release | Order::Both),
        fence: false,
    };
    match step {
        Step::Load { place, order, wide } => of(place, order, wide, true, false),
        Step::Store { place, order, wide } => of(place, order, wide, false, true),
        Step::Update { place, order, wide } => of(place, order, wide, true, true),
        Step::Fence { wide } => {
            Facts { place: None, strong: true, wide, fence: true, ..of(0, Order::Weak, wide, false, false) }
        }
        Step::Barrier => Facts { place: None, ..of(0, Order::Weak, false, false, false) },
    }
}

/// The place of the first access in a run that races with an earlier one.
pub(crate) fn first_race(litmus: &Litmus, events: &[Event]) -> Option<u64> {
    let steps: Vec<(usize, usize, Facts)> = litmus
        .threads
        .iter()
        .enumerate()
        .flat_map(|(thread, list)| {
            list.iter().enumerate().map(move |(number, step)| (thread, number, facts(*step)))
        })
        .collect();
    let at = |event: &Event| {
        steps
            .iter()
            .position(|(thread, number, _)| (*thread, *number) == (event.thread, event.number))
            .unwrap()
    };
    let order: Vec<usize> = events.iter().map(at).collect();
    let mut happens = barriers_and_programs(litmus, &steps);
    happens.close();
    let meets = |a: usize, b: usize| {
        let (one, other) = (&steps[a], &steps[b]);
        let same_block = one.0 == other.0 || litmus.placed != Placed::Blocks;
        one.2.strong && other.2.strong && (same_block || one.2.wide && other.2.wide)
    };
    let observed = observed(&steps, &order, &meets);
    let releases = patterns(&steps, &happens, true);
    let acquires = patterns(&steps, &happens, false);
    for (first, write) in &releases {
        for (read, last) in &acquires {
            if observed.has(*write, *read) && meets(*first, *last) {
                happens.add(*first, *last);
            }
        }
    }
    happens.close();
    // What was observed comes before all that comes after the read.
    let causes = |a: usize, b: usize| {
        happens.has(a, b) || (0..steps.len()).any(|read| observed.has(a, read) && happens.has(read, b))
    };
    for (later, b) in order.iter().enumerate() {
        for a in &order[..later] {
            let (one, other) = (&steps[*a], &steps[*b]);
            let conflict =
                one.0 != other.0 && one.2.place == other.2.place && (one.2.writes || other.2.writes);
            if conflict && !causes(*a, *b) && !meets(*a, *b) {
                return other.2.place;
            }
        }
    }
    None
}

/// Program order and barriers. The n-th barrier of every thread is one.
fn barriers_and_programs(litmus: &Litmus, steps: &[(usize, usize, Facts)]) -> Relation {
    let mut relation = Relation::new(steps.len());
    let is_barrier = |at: usize| litmus.threads[steps[at].0][steps[at].1] == Step::Barrier;
    let nth = |at: usize| {
        let before = &litmus.threads[steps[at].0][..steps[at].1];
        before.iter().filter(|step| **step == Step::Barrier).count()
    };
    for a in 0..steps.len() {
        for b in 0..steps.len() {
            let in_program = steps[a].0 == steps[b].0 && steps[a].1 < steps[b].1;
            let across = a != b && is_barrier(a) && is_barrier(b) && nth(a) == nth(b);
            if in_program || across {
                relation.add(a, b);
            }
        }
    }
    relation
}

/// Which read observes which write: what it reads from, also through updates.
fn observed(
    steps: &[(usize, usize, Facts)],
    order: &[usize],
    meets: &dyn Fn(usize, usize) -> bool,
) -> Relation {
    let mut relation = Relation::new(steps.len());
    for (later, read) in order.iter().enumerate().filter(|(_, read)| steps[**read].2.reads) {
        let from = order[..later]
            .iter()
            .rev()
            .find(|w| steps[**w].2.writes && steps[**w].2.place == steps[*read].2.place);
        if let Some(from) = from.filter(|from| meets(**from, *read)) {
            relation.add(*from, *read);
        }
    }
    // A read that is an update hands on what it observes.
    relation.close();
    relation
}

/// Release patterns as their first step and the write, or acquire patterns as the read and their last step.
///
/// What lies between a fence and its access may be a barrier as well as the program: CUDA code relies on it.
fn patterns(steps: &[(usize, usize, Facts)], before: &Relation, release: bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, (_, _, access)) in steps.iter().enumerate() {
        let own = if release { access.releases } else { access.acquires };
        if own {
            found.push((at, at));
        }
        let takes_part = access.strong && if release { access.writes } else { access.reads };
        for (other, (thread, _, earlier)) in steps.iter().enumerate().filter(|_| takes_part) {
            if release && earlier.fence && before.has(other, at) {
                found.push((other, at));
            }
            if !release && earlier.fence && before.has(at, other) {
                found.push((at, other));
            }
            // A release is followed by strong writes of the thread to the same place.
            let same = *thread == steps[at].0 && earlier.place == access.place;
            if release && earlier.releases && same && before.has(other, at) {
                found.push((other, at));
            }
        }
    }
    found
}
