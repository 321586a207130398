//! Which branches decide whether a barrier is reached.
//!
//! A barrier is control dependent on a branch if one side of the branch leads to the barrier for certain and another side does not. Those branches, and
//! the branches that they depend on in turn, are the ones that all threads of a block must decide alike, in every pass of a loop.
//!
//! A side of a branch from which no barrier can be reached any more *leaves*. It is an early `return`, the end of a loop with a barrier in it, or the way
//! around the last barrier. Threads that leave do not take part any more, so what the others decide afterwards does not depend on them: an
//! early `return` in a loop does not make the barrier behind the loop depend on the number of passes. Only the condition of a loop with a barrier in it
//! counts as a decision and not as an early `return`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::lowered_code::{Callee, Code, Op, Step};
use super::super::path_tree::Decision;
use super::post_dominators::PostDominators;
use super::reconvergence::Graph;

/// Loops that are looked at in one kernel: each takes time in proportion to the length of the kernel.
const MOST_LOOPS: usize = 1024;
/// Dependences of blocks on branches that are kept, per block of the code.
const MOST_LOOKS: usize = 64;

/// The branches of some code that decide whether a barrier is reached.
pub(crate) struct BarrierDecisions {
    pub(super) graph: Graph,
    /// The same without the sides that leave.
    kept: Graph,
    kept_post_dominators: PostDominators,
    pub(super) post_dominators: PostDominators,
    /// The blocks from which a barrier can be reached.
    leads: Vec<bool>,
    /// The blocks whose last step decides whether a barrier is reached.
    controls: Vec<bool>,
    /// The blocks whose last step decides about another pass of a loop with a barrier in it.
    loop_conditions: Vec<bool>,
    /// For each block that was asked for: the blocks that its branch decides about.
    regions: Mutex<HashMap<usize, Arc<[bool]>>>,
    /// What is known of threads that left at a branch and others that wait at a barrier.
    pub(super) known: Mutex<HashMap<(u32, u32, bool), bool>>,
}

impl BarrierDecisions {
    /// Whether a decision is one of those that all threads must make alike.
    pub(crate) fn controls(&self, decision: Decision) -> bool {
        self.controls.get(self.graph.block_at(decision.at)).copied().unwrap_or(false)
    }

    /// Whether no barrier can be reached behind a decision.
    pub(crate) fn leaves(&self, decision: Decision) -> bool {
        !decision.is_call() && !self.leads.get(self.graph.block_at(decision.to)).copied().unwrap_or(true)
    }

    /// Whether a branch decides about another pass of a loop with a barrier in it.
    pub(crate) fn is_loop_condition(&self, step: u32) -> bool {
        self.loop_conditions.get(self.graph.block_at(step)).copied().unwrap_or(false)
    }

    /// Whether a step lies behind a branch and before the place where its sides meet again.
    pub(crate) fn is_decided_by(&self, branch: u32, step: u32) -> bool {
        self.region(self.graph.block_at(branch)).get(self.graph.block_at(step)).copied().unwrap_or(false)
    }

    fn region(&self, block: usize) -> Arc<[bool]> {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let region = regions.entry(block).or_insert_with(|| {
            let end = self.kept_post_dominators.from(block).nth(1);
            reach(&self.kept.successors, &self.kept.successors[block], end).into()
        });
        Arc::clone(region)
    }
}

/// Marks the branches and calls that are kept in the ways of threads.
pub(super) fn mark(code: &mut Code) {
    let starts: Vec<u32> = code.functions.iter().map(|function| function.start).collect();
    let meets = Meets::new(code, &starts);
    if !meets.functions.contains(&true) {
        return;
    }
    let graph = Graph::new(&code.steps, &starts);
    let has_site: Vec<bool> = graph
        .blocks
        .iter()
        .map(|block| block.clone().any(|at| meets.is_site(&code.steps[at as usize])))
        .collect();
    let own = starts.get(1).map_or(graph.blocks.len(), |next| graph.block_at(*next));
    let leads = leading(&graph, &has_site, |block| {
        block >= own && meets.functions[function_at(&starts, graph.blocks[block].start)]
    });
    let loop_conditions = loop_conditions(&graph, &code.steps, &has_site, own);
    let (kept, ends) = without_leaving(&graph, &code.steps, &leads, &loop_conditions, own);
    let kept_post_dominators = PostDominators::new(&kept, |block| ends[block]);
    let controls = controlling(&kept, &ends, &kept_post_dominators, &has_site);
    let post_dominators = PostDominators::to_returns(&graph, &code.steps);
    for (number, block) in graph.blocks.iter().enumerate() {
        let Some(last) = block.end.checked_sub(1) else { continue };
        let is_kept = |to: u32| controls[number] || leads[number] && !leads[graph.block_at(to)];
        let step = &mut code.steps[last as usize];
        step.decides = match &step.op {
            Op::Branch { target, .. } => u8::from(is_kept(*target)) | u8::from(is_kept(last + 1)) << 1,
            Op::Table { targets, .. } => u8::from(targets.iter().any(|to| is_kept(*to))),
            _ => 0,
        };
    }
    // A call through a pointer may go to any function, so all calls and returns are kept then.
    let is_pointer =
        |step: &Step| matches!(&step.op, Op::Call(call) if matches!(call.callee, Callee::Address(_)));
    let keeps_all = meets.any_called && code.steps.iter().any(is_pointer);
    for at in 0..code.steps.len() {
        let function = function_at(&starts, at as u32);
        let step = &code.steps[at];
        let is_kept = match step.op {
            Op::Call(_) => keeps_all || meets.is_site(step),
            Op::Return => function > 0 && (keeps_all || meets.functions[function]),
            _ => false,
        };
        if is_kept {
            code.steps[at].decides = 1;
        }
    }
    code.barrier_decisions = Some(Box::new(BarrierDecisions {
        graph,
        kept,
        kept_post_dominators,
        post_dominators,
        leads,
        controls,
        loop_conditions,
        regions: Mutex::default(),
        known: Mutex::default(),
    }));
}

/// The functions in which threads may come to a barrier of the whole block.
struct Meets {
    functions: Vec<bool>,
    any_called: bool,
}

impl Meets {
    fn new(code: &Code, starts: &[u32]) -> Self {
        let mut meets = Self { functions: vec![false; starts.len()], any_called: false };
        loop {
            let before = meets.functions.clone();
            for (at, step) in (0..).zip(&code.steps) {
                if meets.is_site(step) {
                    meets.functions[function_at(starts, at)] = true;
                }
            }
            meets.any_called = meets.functions.iter().skip(1).any(|meets| *meets);
            if meets.functions == before {
                return meets;
            }
        }
    }

    /// Whether a step is a barrier of the whole block, or a call that may come to one.
    fn is_site(&self, step: &Step) -> bool {
        match &step.op {
            Op::Barrier(barrier) => barrier.aligned && barrier.count.is_none(),
            Op::Call(call) => match call.callee {
                Callee::Function(function) => self.functions.get(function as usize).copied().unwrap_or(false),
                Callee::Address(_) => self.any_called,
            },
            _ => false,
        }
    }
}

/// The function that a step belongs to. Functions stand behind each other.
fn function_at(starts: &[u32], step: u32) -> usize {
    starts.partition_point(|start| *start <= step).saturating_sub(1)
}

/// The blocks from which a barrier can be reached, and those for which `always` holds.
fn leading(graph: &Graph, has_site: &[bool], always: impl Fn(usize) -> bool) -> Vec<bool> {
    let sites: Vec<u32> = (0..).zip(has_site).filter(|(_, has)| **has).map(|(block, _)| block).collect();
    let mut leads = reach(&graph.predecessors, &sites, None);
    leads.iter_mut().enumerate().for_each(|(block, leads)| *leads |= always(block));
    leads
}

/// The blocks that can be reached from some blocks, without those behind another one.
pub(super) fn reach(edges: &[Vec<u32>], from: &[u32], without: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut open: Vec<usize> = from.iter().map(|block| *block as usize).collect();
    while let Some(block) = open.pop() {
        if Some(block) != without && !std::mem::replace(&mut seen[block], true) {
            open.extend(edges[block].iter().map(|block| *block as usize));
        }
    }
    seen
}

/// The blocks of the entry whose last step decides about another pass of a loop with a barrier in it: the branch that leads back, or else the one at the
/// head of the loop.
fn loop_conditions(graph: &Graph, steps: &[Step], has_site: &[bool], own: usize) -> Vec<bool> {
    let mut found = vec![false; graph.blocks.len()];
    let decides = |block: usize| {
        let last = graph.blocks[block].end.checked_sub(1);
        last.is_some_and(|last| matches!(steps[last as usize].op, Op::Branch { .. }))
    };
    let back = (0..own).flat_map(|from| {
        let heads = graph.successors[from].iter().map(|head| *head as usize);
        heads.filter(move |head| *head <= from).map(move |head| (from, head))
    });
    for (from, head) in back.take(MOST_LOOPS) {
        let inside = loop_blocks(graph, head, from);
        let is_loop = head == 0 || !inside[0];
        if !is_loop || !inside.iter().zip(has_site).any(|(inside, has)| *inside && *has) {
            continue;
        }
        let is_jump_alone = graph.blocks[from].len() == 1;
        if decides(from) {
            found[from] = true;
        } else if is_jump_alone {
            let before = graph.predecessors[from].iter().map(|block| *block as usize);
            before.filter(|block| decides(*block)).for_each(|block| found[block] = true);
        } else if decides(head) {
            found[head] = true;
        }
    }
    found
}

/// The blocks of the loop that `last` leads back to the head of: those from which `last` is reached without the head.
fn loop_blocks(graph: &Graph, head: usize, last: usize) -> Vec<bool> {
    let mut inside = reach(&graph.predecessors, &[last as u32], Some(head));
    inside[head] = true;
    inside
}

/// The graph without the sides that leave, and the blocks at which ways end there.
fn without_leaving(
    graph: &Graph,
    steps: &[Step],
    leads: &[bool],
    loop_conditions: &[bool],
    own: usize,
) -> (Graph, Vec<bool>) {
    let count = graph.blocks.len();
    let keep = |edges: &[Vec<u32>]| -> Vec<Vec<u32>> {
        let kept = |block: usize| {
            let others = edges[block].iter().copied().filter(move |_| leads[block]);
            others.filter(|other| leads[*other as usize]).collect()
        };
        (0..count).map(kept).collect()
    };
    let blocks = graph.blocks.clone();
    let kept = Graph { blocks, successors: keep(&graph.successors), predecessors: keep(&graph.predecessors) };
    let leaves = |block: usize| kept.successors[block].len() < graph.successors[block].len();
    let returns = |block: usize| {
        let last = graph.blocks[block].end.saturating_sub(1);
        matches!(steps.get(last as usize).map(|step| &step.op), Some(Op::Return | Op::Exit))
    };
    let mut ends: Vec<bool> = (0..count)
        .map(|block| {
            let is_last = if block < own { kept.successors[block].is_empty() } else { returns(block) };
            leads[block] && (is_last || loop_conditions[block] && leaves(block))
        })
        .collect();
    // A loop that only early returns leave ends with those.
    let all: Vec<u32> = (0..).zip(&ends).filter(|(_, ends)| **ends).map(|(block, _)| block).collect();
    let has_end = reach(&kept.predecessors, &all, None);
    for block in 0..count {
        ends[block] |= leads[block] && !has_end[block] && leaves(block);
    }
    (kept, ends)
}

/// The blocks whose last step decides whether a barrier is reached.
fn controlling(
    graph: &Graph,
    ends: &[bool],
    post_dominators: &PostDominators,
    has_site: &[bool],
) -> Vec<bool> {
    let count = graph.blocks.len();
    let mut decided_by = vec![Vec::new(); count];
    let mut looks = MOST_LOOKS.saturating_mul(count);
    for (from, sides) in graph.successors.iter().enumerate() {
        if sides.len() + usize::from(ends[from]) < 2 {
            continue;
        }
        // What one side leads to for certain, up to where all sides meet.
        let meeting = post_dominators.from(from).nth(1);
        for to in sides {
            let certain = post_dominators.from(*to as usize).take_while(|block| Some(*block) != meeting);
            for block in certain.take(looks) {
                decided_by[block].push(from);
                looks -= 1;
            }
        }
    }
    let mut controls = vec![false; count];
    let mut open: Vec<usize> = (0..count).filter(|block| has_site[*block]).collect();
    while let Some(block) = open.pop() {
        for from in std::mem::take(&mut decided_by[block]) {
            if !std::mem::replace(&mut controls[from], true) {
                open.push(from);
            }
        }
    }
    controls
}
