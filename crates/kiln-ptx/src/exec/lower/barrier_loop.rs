//! Loops with a barrier in them.

use super::super::lowered_code::{Op, Step};
use super::reconvergence::Graph;

/// Marks the branches that begin another round of a loop with a barrier in it.
pub(super) fn mark_rounds(steps: &mut [Step], starts: &[u32]) {
    if !steps.iter().any(|step| matches!(step.op, Op::Barrier(_))) {
        return;
    }
    let graph = Graph::new(steps, starts);
    let has_barrier: Vec<bool> = graph
        .blocks
        .iter()
        .map(|block| {
            steps[block.start as usize..block.end as usize]
                .iter()
                .any(|step| matches!(step.op, Op::Barrier(_)))
        })
        .collect();
    for (number, block) in graph.blocks.iter().enumerate() {
        let last = block.end.saturating_sub(1);
        let Some(step) = steps.get(last as usize) else { continue };
        let mut heads =
            step.op.targets().iter().filter(|target| **target <= last).map(|target| graph.block_at(*target));
        if heads.any(|head| loop_blocks(&graph, head, number).any(|block| has_barrier[block])) {
            steps[last as usize].is_round = true;
        }
    }
}

/// The blocks of the loop that `last` leads back to the head of: those from which `last` is reached without the head.
fn loop_blocks(graph: &Graph, head: usize, last: usize) -> impl Iterator<Item = usize> {
    let mut inside = vec![false; graph.blocks.len()];
    inside[head] = true;
    let mut open = vec![last];
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut inside[block], true) {
            open.extend(graph.predecessors[block].iter().map(|block| *block as usize));
        }
    }
    inside.into_iter().enumerate().filter(|(_, is_inside)| *is_inside).map(|(block, _)| block)
}
