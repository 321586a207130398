//! Graphs: a flat list of tasks with edges, and one run of it.
//!
//! A graph inside a graph is laid out flat when it is built: its first nodes run after what the node runs after, and
//! what runs after the node runs after its last ones. Nodes are put on branches so that those on one branch are in a
//! row; a branch is a lane of the stream, and lanes can be used again by the next run, which comes after.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::access_origin::Mark;
use crate::collective::collective_launch::CollectiveRun;
use crate::schedule::task::Task;

/// What a graph does.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphPlan {
    pub(crate) nodes: Vec<PlanNode>,
    /// For each node the caller listed, the flat ones that came of it: one, or a nested graph's.
    pub(crate) listed: Vec<Listed>,
    /// The last node of each branch.
    tips: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlanNode {
    pub(crate) task: Task,
    /// Nodes it comes after.
    pub(crate) after: Vec<usize>,
    /// Nodes that come after it.
    before: Vec<usize>,
    pub(crate) branch: usize,
}

/// What a listed node became.
#[derive(Clone, Debug)]
pub(crate) enum Listed {
    Task(usize),
    Nested { first: usize, count: usize, plan: Arc<GraphPlan> },
}

impl GraphPlan {
    /// Adds a listed node that is a task, after other listed nodes.
    pub(crate) fn push_task(&mut self, task: Task, after: &[u32]) {
        let after = self.ends_of(after);
        self.listed.push(Listed::Task(self.nodes.len()));
        self.push_node(task, after);
    }

    /// Adds a listed node that is a graph.
    pub(crate) fn push_graph(&mut self, plan: &Arc<Self>, after: &[u32]) {
        let before = self.ends_of(after);
        let first = self.nodes.len();
        self.listed.push(Listed::Nested { first, count: plan.nodes.len(), plan: plan.clone() });
        for node in &plan.nodes {
            let inner: Vec<usize> = node.after.iter().map(|at| at + first).collect();
            self.push_node(node.task.clone(), if inner.is_empty() { before.clone() } else { inner });
        }
    }

    /// Whether two plans have the same kinds of tasks with the same edges.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let same = |(mine, theirs): (&PlanNode, &PlanNode)| {
            mine.task.shape() == theirs.task.shape() && mine.after == theirs.after
        };
        self.nodes.len() == other.nodes.len() && self.nodes.iter().zip(&other.nodes).all(same)
    }

    /// Rows of nodes that may run side by side.
    pub(crate) fn branches(&self) -> usize {
        self.tips.len()
    }

    /// The flat nodes that come last in what the listed ones became.
    fn ends_of(&self, listed: &[u32]) -> Vec<usize> {
        let ends = |listed: &Listed| match listed {
            Listed::Task(at) => vec![*at],
            Listed::Nested { first, count, .. } => {
                let is_inside = |at: &usize| (*first..first + count).contains(at);
                let is_end = |at: &usize| !self.nodes[*at].before.iter().any(is_inside);
                (*first..first + count).filter(is_end).collect()
            }
        };
        let mut ends: Vec<usize> =
            listed.iter().filter_map(|at| self.listed.get(*at as usize)).flat_map(ends).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// A node goes on the branch of the first of its predecessors that is the last there, or on a new one.
    fn push_node(&mut self, task: Task, after: Vec<usize>) {
        let at = self.nodes.len();
        let free = after.iter().map(|before| (*before, self.nodes[*before].branch));
        let branch = match free.into_iter().find(|(before, branch)| self.tips[*branch] == *before) {
            Some((_, branch)) => branch,
            None => {
                self.tips.push(at);
                self.tips.len() - 1
            }
        };
        self.tips[branch] = at;
        after.iter().for_each(|before| self.nodes[*before].before.push(at));
        self.nodes.push(PlanNode { task, after, before: Vec::new(), branch });
    }
}

/// One run of a graph.
#[derive(Debug)]
pub(crate) struct GraphRun {
    pub(crate) plan: Arc<GraphPlan>,
    pub(crate) marks: Vec<Arc<Mark>>,
    /// Nodes that can run now.
    open: BTreeSet<usize>,
    /// For each node, how many of those it comes after are not done.
    missing: Vec<usize>,
    /// When each node that is done was.
    ends_ns: Vec<u64>,
    left: usize,
    /// Runs of launches of collectives, by node.
    pub(crate) collectives: BTreeMap<usize, CollectiveRun>,
}

impl GraphRun {
    pub(crate) fn new(
        plan: Arc<GraphPlan>,
        marks: Vec<Arc<Mark>>,
        collectives: BTreeMap<usize, CollectiveRun>,
    ) -> Self {
        let missing: Vec<usize> = plan.nodes.iter().map(|node| node.after.len()).collect();
        let open = (0..missing.len()).filter(|at| missing[*at] == 0).collect();
        let left = missing.len();
        Self { plan, marks, open, missing, ends_ns: vec![0; left], left, collectives }
    }

    /// Nodes that can run now.
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> {
        self.open.iter().copied()
    }

    /// Takes a node that can run; no other worker gets it.
    pub(crate) fn take(&mut self, node: usize) {
        self.open.remove(&node);
    }

    /// A node that was taken can run again.
    pub(crate) fn put_back(&mut self, node: usize) {
        self.open.insert(node);
    }

    /// Nodes that did not begin.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Task> {
        let is_waiting = |at: &usize| self.missing[*at] > 0 || self.open.contains(at);
        (0..self.missing.len()).filter(is_waiting).map(|at| &self.plan.nodes[at].task)
    }

    /// When a node can begin, given when the graph can.
    pub(crate) fn earliest_ns(&self, node: usize, start_ns: u64) -> u64 {
        self.plan.nodes[node].after.iter().map(|at| self.ends_ns[*at]).fold(start_ns, u64::max)
    }

    /// Writes down that a node is done; when the last one was, once all are.
    pub(crate) fn finish(&mut self, node: usize, end_ns: u64) -> Option<u64> {
        self.ends_ns[node] = end_ns;
        self.left -= 1;
        for after in &self.plan.nodes[node].before {
            self.missing[*after] -= 1;
            if self.missing[*after] == 0 {
                self.open.insert(*after);
            }
        }
        (self.left == 0).then(|| self.ends_ns.iter().copied().max().unwrap_or(0))
    }
}
