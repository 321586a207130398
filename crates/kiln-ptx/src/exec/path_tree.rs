//! The ways of threads since the last barrier of their block, as a tree of decisions.
//!
//! All threads of a block start at the root when a barrier of the whole block completes. Each decision leads to a child, so threads that decided the same
//! are at the same node, and to compare two ways is to compare two numbers. Only branches that decide whether a barrier is reached are kept, so a way is
//! short.

/// The most decisions of one way. A thread that makes more before its next barrier is not followed further.
const LONGEST: u32 = 4096;
/// The most nodes of one block.
const MOST_NODES: usize = 1 << 16;

/// A way: the number of its last decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path(u32);

impl Path {
    /// The way of a thread that has decided nothing yet.
    pub(crate) const START: Self = Self(0);
    /// A way that is not known: it was too long, or lanes that came on different ones went on together.
    pub(crate) const UNKNOWN: Self = Self(u32::MAX);
}

impl Default for Path {
    fn default() -> Self {
        Self::START
    }
}

/// A branch and where it went, or a call of a function with a barrier in it, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The step of the branch or call.
    pub(crate) at: u32,
    /// The step that the thread went to.
    pub(crate) to: u32,
}

impl Decision {
    /// Stands for the step that a call goes to, so that calls of different functions from one place compare by the place.
    const CALLED: u32 = u32::MAX;
    /// The end of a called function.
    pub(crate) const RETURN: Self = Self { at: u32::MAX, to: 0 };

    pub(crate) fn call(at: u32) -> Self {
        Self { at, to: Self::CALLED }
    }

    pub(crate) fn is_call(self) -> bool {
        self.to == Self::CALLED
    }
}

/// The ways of the threads of a block.
pub(crate) struct PathTree {
    nodes: Vec<Node>,
}

struct Node {
    parent: u32,
    decision: Decision,
    depth: u32,
    /// The last child, and the child of the same parent before this one; 0 for none.
    child: u32,
    sibling: u32,
}

impl Default for PathTree {
    fn default() -> Self {
        let root = Node { parent: 0, decision: Decision::RETURN, depth: 0, child: 0, sibling: 0 };
        Self { nodes: vec![root] }
    }
}

impl PathTree {
    /// The way that goes on with a decision.
    pub(crate) fn follow(&mut self, path: Path, decision: Decision) -> Path {
        let Some(node) = self.nodes.get(path.0 as usize) else { return Path::UNKNOWN };
        let (depth, last) = (node.depth + 1, node.child);
        let mut child = last;
        while child != 0 {
            let known = &self.nodes[child as usize];
            if known.decision == decision {
                return Path(child);
            }
            child = known.sibling;
        }
        if depth > LONGEST || self.nodes.len() >= MOST_NODES {
            return Path::UNKNOWN;
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node { parent: path.0, decision, depth, child: 0, sibling: last });
        self.nodes[path.0 as usize].child = new;
        Path(new)
    }

    /// The decisions of a way, in their order, if it is known.
    pub(crate) fn decisions(&self, path: Path) -> Option<Vec<Decision>> {
        let mut at = path.0;
        let mut decisions = Vec::with_capacity(self.nodes.get(at as usize)?.depth as usize);
        while at != 0 {
            let node = self.nodes.get(at as usize)?;
            decisions.push(node.decision);
            at = node.parent;
        }
        decisions.reverse();
        Some(decisions)
    }

    /// All threads start again.
    pub(crate) fn restart(&mut self) {
        self.nodes.truncate(1);
        if let Some(root) = self.nodes.first_mut() {
            root.child = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(at: u32, to: u32) -> Decision {
        Decision { at, to }
    }

    #[test]
    fn the_same_decisions_are_the_same_way() {
        let mut tree = PathTree::default();
        let steps = [decision(1, 5), decision(7, 8), decision(1, 5)];
        let go = |tree: &mut PathTree| steps.iter().fold(Path::START, |path, at| tree.follow(path, *at));
        let (first, second) = (go(&mut tree), go(&mut tree));
        assert_eq!(first, second);
        assert_eq!(tree.decisions(first).unwrap(), steps);
        let other = tree.follow(Path::START, decision(1, 2));
        assert_ne!(other, tree.follow(Path::START, decision(1, 5)));
        assert_eq!(tree.decisions(other).unwrap(), [decision(1, 2)]);
        tree.restart();
        assert_eq!(tree.decisions(Path::START).unwrap(), []);
        assert_eq!(tree.decisions(tree.nodes.len().try_into().map(Path).unwrap()), None);
    }

    #[test]
    fn a_way_that_is_too_long_is_not_known() {
        let mut tree = PathTree::default();
        let long = (0..LONGEST).fold(Path::START, |path, at| tree.follow(path, decision(at, 0)));
        assert_eq!(tree.decisions(long).unwrap().len(), LONGEST as usize);
        let longer = tree.follow(long, decision(0, 0));
        assert_eq!(longer, Path::UNKNOWN);
        assert_eq!(tree.follow(longer, decision(0, 0)), Path::UNKNOWN);
        assert_eq!(tree.decisions(longer), None);
    }
}
