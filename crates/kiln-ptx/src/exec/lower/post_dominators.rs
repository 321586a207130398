//! Which blocks lie on all ways from a block to the end of a function.

use super::super::lowered_code::{Op, Step};
use super::reconvergence::Graph;

/// The immediate post-dominator of each block: the first block that every way from there to the end of the function goes through. Ways that end in a
/// trap do not count, nor those that never end.
pub(super) struct PostDominators {
    next: Vec<Option<usize>>,
}

impl PostDominators {
    /// Those of whole functions.
    pub(super) fn to_returns(graph: &Graph, steps: &[Step]) -> Self {
        Self::new(graph, |block| {
            let last = graph.blocks[block].end.saturating_sub(1);
            matches!(steps.get(last as usize).map(|step| &step.op), Some(Op::Exit | Op::Return))
        })
    }

    /// Those of a graph whose ways end at some blocks.
    pub(super) fn new(graph: &Graph, is_end: impl Fn(usize) -> bool) -> Self {
        let count = graph.blocks.len();
        // The end of the function is one more node.
        let end = count;
        let order = ends_first(graph, (0..count).filter(|block| is_end(*block)));
        let mut number = vec![usize::MAX; count + 1];
        number[end] = 0;
        order.iter().enumerate().for_each(|(at, block)| number[*block] = at + 1);
        let mut next = vec![None; count + 1];
        next[end] = Some(end);
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().copied() {
                let ends = is_end(block).then_some(end);
                let leads_to = graph.successors[block].iter().map(|block| *block as usize).chain(ends);
                let known = leads_to.filter(|to| next[*to].is_some());
                let meets = known.reduce(|a, b| meet(&next, &number, a, b));
                changed |= std::mem::replace(&mut next[block], meets) != meets;
            }
        }
        next.truncate(count);
        next.iter_mut().for_each(|next| *next = next.filter(|block| *block != end));
        Self { next }
    }

    /// The blocks that every way from a block to the end goes through, that block first.
    pub(super) fn from(&self, block: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(block), |block| self.next.get(*block).copied().flatten())
    }
}

/// The first node that both lead to for certain.
fn meet(next: &[Option<usize>], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let (later, other) = if number[a] > number[b] { (a, b) } else { (b, a) };
        let Some(before) = next[later] else { return other };
        (a, b) = (before, other);
    }
    a
}

/// The blocks from which these can be reached, in an order in which most stand behind those they lead to.
fn ends_first(graph: &Graph, ends: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = vec![false; graph.blocks.len()];
    let mut done = Vec::new();
    for end in ends {
        if std::mem::replace(&mut seen[end], true) {
            continue;
        }
        let mut stack = vec![(end, 0)];
        while let Some((block, at)) = stack.last_mut() {
            match graph.predecessors[*block].get(*at) {
                Some(from) => {
                    *at += 1;
                    let from = *from as usize;
                    if !std::mem::replace(&mut seen[from], true) {
                        stack.push((from, 0));
                    }
                }
                None => {
                    done.push(*block);
                    stack.pop();
                }
            }
        }
    }
    done.reverse();
    done
}

#[cfg(test)]
mod tests {
    use super::super::super::lowered_code::PredSource;
    use super::*;

    fn post_dominators(ops: Vec<Op>) -> (Graph, PostDominators) {
        let step = |op| Step { guard: PredSource::ALWAYS, first: true, decides: 0, watched: false, op };
        let steps: Vec<Step> = ops.into_iter().map(step).collect();
        let graph = Graph::new(&steps, &[0]);
        let found = PostDominators::to_returns(&graph, &steps);
        (graph, found)
    }

    fn branch(target: u32) -> Op {
        Op::Branch { target, when: PredSource::ALWAYS }
    }

    /// The first steps of the blocks that lie on all ways from a step.
    fn behind(ops: Vec<Op>, step: u32) -> Vec<u32> {
        let (graph, found) = post_dominators(ops);
        found.from(graph.block_at(step)).skip(1).map(|block| graph.blocks[block].start).collect()
    }

    #[test]
    fn the_meeting_of_two_sides_lies_on_all_ways_and_neither_side_does() {
        // 0: to 3 or on; 1, 2: one side; 3: the other; 4: the meeting, to 6 or on.
        let code = || {
            vec![
                branch(3),
                Op::Nothing,
                Op::Jump { target: 4 },
                Op::Nothing,
                branch(6),
                Op::Nothing,
                Op::Exit,
            ]
        };
        assert_eq!(behind(code(), 0), [4, 6]);
        assert_eq!(behind(code(), 1), [4, 6]);
        assert_eq!(behind(code(), 5), [6]);
    }

    #[test]
    fn an_early_end_leaves_nothing_and_a_trap_does_not_count() {
        assert_eq!(behind(vec![branch(2), Op::Exit, Op::Nothing, Op::Exit], 0), []);
        assert_eq!(behind(vec![branch(2), Op::Trap, Op::Nothing, Op::Exit], 0), [2]);
    }

    #[test]
    fn what_follows_a_loop_lies_on_all_ways_and_a_loop_without_end_on_none() {
        assert_eq!(behind(vec![Op::Nothing, branch(0), Op::Nothing, Op::Exit], 0), [2]);
        assert_eq!(behind(vec![branch(3), Op::Nothing, Op::Jump { target: 1 }, Op::Exit], 0), [3]);
    }

    #[test]
    fn a_long_chain_does_not_overflow() {
        let ops = (0..50_000).map(|at| branch(at + 1)).chain([Op::Exit]).collect();
        assert_eq!(behind(ops, 0).len(), 50_000);
    }
}
