//! The order in which diverged lanes run, so that they reconverge early.
//!
//! Among the groups of lanes of a warp the one with the lowest rank runs. If every block ranks below all blocks it
//! leads to, and the blocks of a loop rank together, then a block runs only when no lane is left that could still
//! reach it: all lanes that will ever arrive have arrived, whatever the shape of the code and however many lanes left
//! early. The order is the weak topological order of the control flow graph: strongly connected parts in topological
//! order, each with its head first and the rest ordered the same way without the head.

use super::super::lowered_code::{Op, Step};

/// Loops nested deeper than this keep the order of the text.
const MAX_DEPTH: u32 = 64;

/// The rank of each step.
pub(super) fn ranks(steps: &[Step], starts: impl Iterator<Item = u32>) -> Vec<u32> {
    let starts: Vec<u32> = starts.collect();
    let graph = Graph::new(steps, &starts);
    let mut order = Vec::with_capacity(graph.blocks.len());
    let count = graph.blocks.len();
    let mut parts = Parts { graph: &graph, part: vec![0; count], next_part: 1, number: vec![0; count] };
    let all: Vec<u32> = (0..graph.blocks.len() as u32).collect();
    parts.order(&all, 0, &mut order);
    let mut ranks = vec![0; steps.len()];
    let mut rank = 0;
    for block in order {
        for step in graph.blocks[block as usize].clone() {
            ranks[step as usize] = rank;
            rank += 1;
        }
    }
    ranks
}

/// Blocks of steps and where each leads.
pub(super) struct Graph {
    pub(super) blocks: Vec<std::ops::Range<u32>>,
    pub(super) successors: Vec<Vec<u32>>,
    pub(super) predecessors: Vec<Vec<u32>>,
}

impl Graph {
    /// The block with a step.
    pub(super) fn block_at(&self, step: u32) -> usize {
        self.blocks.partition_point(|block| block.end <= step).min(self.blocks.len().saturating_sub(1))
    }

    pub(super) fn new(steps: &[Step], starts: &[u32]) -> Self {
        let mut leader = vec![false; steps.len() + 1];
        let mut mark = |at: u32| {
            if let Some(flag) = leader.get_mut(at as usize) {
                *flag = true;
            }
        };
        mark(0);
        starts.iter().for_each(|start| mark(*start));
        for (at, step) in (0..).zip(steps) {
            let (targets, falls) = leads_to(&step.op);
            targets.iter().for_each(|target| mark(*target));
            if !falls || !targets.is_empty() {
                mark(at + 1);
            }
        }
        let edges: Vec<u32> = (0..steps.len() as u32).filter(|at| leader[*at as usize]).collect();
        let ends = edges.iter().skip(1).copied().chain([steps.len() as u32]);
        let blocks: Vec<_> = edges.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
        let block_of = |step: u32| edges.binary_search(&step).ok().map(|at| at as u32);
        let successors: Vec<Vec<u32>> = blocks
            .iter()
            .map(|block| {
                let Some(last) = steps.get(block.end as usize - 1) else { return Vec::new() };
                let (targets, falls) = leads_to(&last.op);
                let next = falls.then_some(block.end);
                targets.iter().copied().chain(next).filter_map(block_of).collect()
            })
            .collect();
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (from, targets) in (0..).zip(&successors) {
            targets.iter().for_each(|to: &u32| predecessors[*to as usize].push(from));
        }
        Self { blocks, successors, predecessors }
    }
}

/// Where a step leads, and whether also to the next one.
pub(super) fn leads_to(op: &Op) -> (Vec<u32>, bool) {
    (op.targets().to_vec(), op.falls_through())
}

/// The parts the graph is taken apart into; an edge counts only inside one part.
struct Parts<'a> {
    graph: &'a Graph,
    part: Vec<u32>,
    next_part: u32,
    /// The number of each node within the part that is searched.
    number: Vec<u32>,
}

impl Parts<'_> {
    /// Appends `nodes`, which form one part, in their order.
    fn order(&mut self, nodes: &[u32], depth: u32, out: &mut Vec<u32>) {
        if depth > MAX_DEPTH {
            out.extend(nodes);
            return;
        }
        let mut components = self.components(nodes);
        // Components come out with those they lead to first.
        components.reverse();
        for component in components {
            let head = self.head(&component);
            out.push(head);
            if component.len() > 1 {
                let mut rest: Vec<u32> = component.into_iter().filter(|node| *node != head).collect();
                rest.sort_unstable();
                let part = self.next_part;
                self.next_part += 1;
                rest.iter().for_each(|node| self.part[*node as usize] = part);
                self.part[head as usize] = u32::MAX;
                self.order(&rest, depth + 1, out);
            }
        }
    }

    /// The node a component is entered by: the first with an edge from outside.
    fn head(&self, component: &[u32]) -> u32 {
        let mut sorted = component.to_vec();
        sorted.sort_unstable();
        let entered = |node: &&u32| {
            self.graph.predecessors[**node as usize].iter().any(|from| sorted.binary_search(from).is_err())
        };
        sorted.iter().find(entered).or(sorted.first()).copied().unwrap_or(0)
    }

    /// Strongly connected components of one part, each after those it leads to. Tarjan's algorithm, with a stack of
    /// its own because chains of blocks are long.
    fn components(&mut self, nodes: &[u32]) -> Vec<Vec<u32>> {
        let Some(first) = nodes.first() else { return Vec::new() };
        let part = self.part[*first as usize];
        for (number, node) in (0..).zip(nodes) {
            self.number[*node as usize] = number;
        }
        let successors = |from: u32| -> Vec<u32> {
            let all = &self.graph.successors[nodes[from as usize] as usize];
            let inside = all.iter().filter(|to| self.part[**to as usize] == part);
            inside.map(|to| self.number[*to as usize]).collect()
        };
        let mut search = Search::new(nodes.len());
        for number in 0..nodes.len() as u32 {
            if search.index[number as usize] == 0 {
                search.run(number, successors);
            }
        }
        let name = |component: Vec<u32>| component.into_iter().map(|n| nodes[n as usize]).collect();
        search.found.into_iter().map(name).collect()
    }
}

struct Search {
    index: Vec<u32>,
    low: Vec<u32>,
    open: Vec<bool>,
    path: Vec<u32>,
    next: u32,
    found: Vec<Vec<u32>>,
}

impl Search {
    fn new(len: usize) -> Self {
        let (index, low, open) = (vec![0; len], vec![0; len], vec![false; len]);
        Self { index, low, open, path: Vec::new(), next: 1, found: Vec::new() }
    }

    fn enter(&mut self, node: u32) {
        self.index[node as usize] = self.next;
        self.low[node as usize] = self.next;
        self.next += 1;
        self.open[node as usize] = true;
        self.path.push(node);
    }

    fn run(&mut self, root: u32, successors: impl Fn(u32) -> Vec<u32>) {
        let mut stack = vec![(root, successors(root), 0usize)];
        self.enter(root);
        while let Some((node, targets, at)) = stack.last_mut() {
            let node = *node;
            if let Some(target) = targets.get(*at).copied() {
                *at += 1;
                if self.index[target as usize] == 0 {
                    self.enter(target);
                    stack.push((target, successors(target), 0));
                } else if self.open[target as usize] {
                    self.low[node as usize] = self.low[node as usize].min(self.index[target as usize]);
                }
                continue;
            }
            stack.pop();
            if let Some((parent, ..)) = stack.last() {
                self.low[*parent as usize] = self.low[*parent as usize].min(self.low[node as usize]);
            }
            if self.low[node as usize] == self.index[node as usize] {
                self.close(node);
            }
        }
    }

    fn close(&mut self, root: u32) {
        let mut component = Vec::new();
        while let Some(node) = self.path.pop() {
            self.open[node as usize] = false;
            component.push(node);
            if node == root {
                break;
            }
        }
        self.found.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::lowered_code::PredSource;
    use super::*;

    fn code(ops: Vec<Op>) -> Vec<Step> {
        ops.into_iter()
            .map(|op| Step { guard: PredSource::ALWAYS, first: true, decides: 0, watched: false, op })
            .collect()
    }

    fn branch(target: u32) -> Op {
        Op::Branch { target, when: PredSource::ALWAYS }
    }

    #[test]
    fn what_follows_a_loop_ranks_behind_all_of_it() {
        // 0: to 4 or on; 1: loop exit placed first; 2: return; 3: -; 4: loop body; 5: back to 4 or on to 1.
        let steps = code(vec![
            branch(4),
            Op::Nothing,
            Op::Return,
            Op::Nothing,
            Op::Nothing,
            branch(4),
            Op::Jump { target: 1 },
        ]);
        let ranks = ranks(&steps, [0].into_iter());
        assert!(ranks[4] < ranks[1] && ranks[5] < ranks[1] && ranks[6] < ranks[1]);
    }

    #[test]
    fn both_sides_of_a_branch_rank_before_their_meeting() {
        // A cold side stands behind the return and jumps back.
        let steps = code(vec![branch(3), Op::Nothing, Op::Return, Op::Nothing, Op::Jump { target: 1 }]);
        let ranks = ranks(&steps, [0].into_iter());
        assert!(ranks[3] < ranks[1] && ranks[4] < ranks[1] && ranks[1] < ranks[2]);
    }

    #[test]
    fn a_long_chain_does_not_overflow() {
        let steps = code((0..200_000).map(|at| branch(at + 1)).chain([Op::Return]).collect());
        let ranks = ranks(&steps, [0].into_iter());
        assert!(ranks.is_sorted());
    }
}
