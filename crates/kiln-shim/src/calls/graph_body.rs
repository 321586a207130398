//! The nodes of a graph and their edges, and how they are laid out for the device below.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kiln_driver::{Code, Command, Driver, GraphId, GraphNode};

use crate::boundary::{Answer, OrCode};
use crate::calls::graph_work::NodeWork;

/// The nodes of a graph, by numbers that are not used again.
#[derive(Clone, Default)]
pub(crate) struct GraphBody {
    nodes: BTreeMap<u32, BodyNode>,
    next: u32,
}

/// One node.
#[derive(Clone)]
pub(crate) struct BodyNode {
    pub(crate) work: NodeWork,
    /// The nodes it comes after.
    pub(crate) after: Vec<u32>,
    /// Whether it does its work; one that does not is a place where edges meet.
    pub(crate) is_enabled: bool,
}

impl GraphBody {
    /// Adds a node, and says its number.
    pub(crate) fn add(&mut self, work: NodeWork, after: Vec<u32>) -> u32 {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, BodyNode { work, after, is_enabled: true });
        number
    }

    pub(crate) fn get(&self, number: u32) -> Answer<&BodyNode> {
        self.nodes.get(&number).ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Answer<&mut BodyNode> {
        self.nodes.get_mut(&number).ok_or(Code::INVALID_VALUE)
    }

    /// Takes a node and its edges out.
    pub(crate) fn remove(&mut self, number: u32) -> Answer {
        self.nodes.remove(&number).ok_or(Code::INVALID_VALUE)?;
        self.nodes.values_mut().for_each(|node| node.after.retain(|before| *before != number));
        Ok(())
    }

    /// All nodes with their numbers, in the order in which they were added.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u32, &BodyNode)> {
        self.nodes.iter().map(|(number, node)| (*number, node))
    }

    /// All edges: from one node to another.
    pub(crate) fn edges(&self) -> Vec<(u32, u32)> {
        self.nodes().flat_map(|(to, node)| node.after.iter().map(move |from| (*from, to))).collect()
    }

    /// Adds an edge. An edge that is there, and one that closes a circle, are errors.
    pub(crate) fn connect(&mut self, from: u32, to: u32) -> Answer {
        self.get(from)?;
        if from == to || self.get(to)?.after.contains(&from) || self.comes_after(from, to) {
            return Err(Code::INVALID_VALUE);
        }
        self.get_mut(to)?.after.push(from);
        Ok(())
    }

    /// Removes an edge that is there.
    pub(crate) fn disconnect(&mut self, from: u32, to: u32) -> Answer {
        let after = &mut self.get_mut(to)?.after;
        let at = after.iter().position(|before| *before == from).ok_or(Code::INVALID_VALUE)?;
        after.remove(at);
        Ok(())
    }

    fn comes_after(&self, later: u32, earlier: u32) -> bool {
        let (mut open, mut seen) = (vec![later], BTreeSet::new());
        while let Some(number) = open.pop() {
            if number == earlier {
                return true;
            }
            if seen.insert(number) {
                open.extend(self.nodes.get(&number).map(|node| node.after.as_slice()).unwrap_or_default());
            }
        }
        false
    }

    /// The nodes in an order in which each stands behind those it comes after.
    fn in_order(&self) -> Vec<u32> {
        let mut missing: HashMap<u32, usize> =
            self.nodes().map(|(number, node)| (number, node.after.len())).collect();
        let mut behind: HashMap<u32, Vec<u32>> = HashMap::new();
        self.edges().into_iter().for_each(|(from, to)| behind.entry(from).or_default().push(to));
        let is_first = |number: &u32| missing.get(number) == Some(&0);
        let mut open: BTreeSet<u32> = self.nodes.keys().copied().filter(is_first).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(number) = open.pop_first() {
            order.push(number);
            for later in behind.get(&number).map(Vec::as_slice).unwrap_or_default() {
                if let Some(missing) = missing.get_mut(later) {
                    *missing -= 1;
                    if *missing == 0 {
                        open.insert(*later);
                    }
                }
            }
        }
        order
    }

    /// Builds it below; nothing if it has nothing to do, or work that is no graph below.
    pub(crate) fn build(&self, driver: &dyn Driver) -> Answer<Option<GraphId>> {
        let steps = self.steps();
        let mut nodes: Vec<GraphNode<'_>> = Vec::with_capacity(steps.len());
        for LaidOut { what, after } in &steps {
            match what {
                GraphStep::Command(command) => nodes.push(GraphNode { command: *command, after }),
                GraphStep::Work(_) => return Ok(None),
            }
        }
        if nodes.is_empty() { Ok(None) } else { driver.build_graph(&nodes).or_code().map(Some) }
    }

    /// Whether it, or a graph in it, has work that is no graph below.
    pub(crate) fn needs_streams(&self) -> bool {
        self.has(NodeWork::needs_stream)
    }

    /// Whether it, or a graph in it, makes or frees memory.
    pub(crate) fn has_memory(&self) -> bool {
        self.has(NodeWork::is_of_memory)
    }

    /// Whether it, or a graph in it, has a node with a condition.
    pub(crate) fn has_conditions(&self) -> bool {
        self.has(NodeWork::is_conditional)
    }

    /// Whether it has what belongs to one graph alone: memory or conditions.
    pub(crate) fn has_one_owner(&self) -> bool {
        self.has_memory() || self.has_conditions()
    }

    fn has(&self, is_meant: fn(&NodeWork) -> bool) -> bool {
        self.nodes.values().any(|node| {
            is_meant(&node.work) || node.work.children().iter().any(|child| child.body().has(is_meant))
        })
    }

    /// Its work and that of the graphs in it, in an order in which each step stands behind those it comes after. It is a copy that no program
    /// has a handle for.
    pub(crate) fn steps(&self) -> Vec<LaidOut<'_>> {
        let mut layout = Layout::default();
        layout.add(self, &[]);
        layout.steps
    }
}

/// A step with the numbers of those it comes after.
pub(crate) struct LaidOut<'a> {
    pub(crate) what: GraphStep<'a>,
    pub(crate) after: Vec<u32>,
}

/// What a step does.
#[derive(Clone, Copy)]
pub(crate) enum GraphStep<'a> {
    /// A command of the device below.
    Command(Command<'a>),
    /// Work that is no command of a graph.
    Work(&'a NodeWork),
}

/// Steps as they are found.
#[derive(Default)]
struct Layout<'a> {
    steps: Vec<LaidOut<'a>>,
}

impl<'a> Layout<'a> {
    /// Adds all nodes of a graph, after some commands, and says which commands are its last.
    fn add(&mut self, body: &'a GraphBody, before: &[u32]) -> Vec<u32> {
        let mut ends: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut followed: BTreeSet<u32> = BTreeSet::new();
        for number in body.in_order() {
            let Some(node) = body.nodes.get(&number) else { continue };
            let mut after: Vec<u32> = match node.after.as_slice() {
                [] => before.to_vec(),
                some => some.iter().filter_map(|before| ends.get(before)).flatten().copied().collect(),
            };
            after.sort_unstable();
            after.dedup();
            followed.extend(&node.after);
            let last = match &node.work {
                _ if !node.is_enabled => after,
                NodeWork::Child(child) => self.add(child.copied(), &after),
                work => self.push(work, after),
            };
            ends.insert(number, last);
        }
        let is_last = |number: &&u32| !followed.contains(*number);
        let mut last: Vec<u32> = body
            .nodes
            .keys()
            .filter(is_last)
            .filter_map(|number| ends.get(number))
            .flatten()
            .copied()
            .collect();
        last.sort_unstable();
        last.dedup();
        if last.is_empty() { before.to_vec() } else { last }
    }

    fn push(&mut self, work: &'a NodeWork, after: Vec<u32>) -> Vec<u32> {
        let mut after = after;
        if work.needs_stream() {
            self.steps.push(LaidOut { what: GraphStep::Work(work), after });
            return vec![self.steps.len() as u32 - 1];
        }
        for stage in work.stages().into_iter().filter(|stage| !stage.is_empty()) {
            let first = self.steps.len() as u32;
            let step = |command| LaidOut { what: GraphStep::Command(command), after: after.clone() };
            self.steps.extend(stage.into_iter().map(step));
            after = (first..self.steps.len() as u32).collect();
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_added_once_and_make_no_circle() {
        let mut body = GraphBody::default();
        let [a, b, c] = [(); 3].map(|()| body.add(NodeWork::Empty, Vec::new()));
        body.connect(a, b).unwrap();
        body.connect(b, c).unwrap();
        for (from, to) in [(a, b), (c, a), (a, a), (a, 9), (9, a)] {
            assert_eq!(body.connect(from, to), Err(Code::INVALID_VALUE), "{from} to {to}");
        }
        assert_eq!(body.edges(), [(a, b), (b, c)]);
        body.disconnect(a, b).unwrap();
        assert_eq!(body.disconnect(a, b), Err(Code::INVALID_VALUE));
        body.connect(c, a).unwrap();
        assert_eq!(body.in_order(), [b, c, a]);
        body.remove(c).unwrap();
        assert!(body.edges().is_empty());
    }
}
