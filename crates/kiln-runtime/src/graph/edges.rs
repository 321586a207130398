//! The edges of a graph, kept few: one that others imply is left out.

/// Nodes looked at before the rest of a node's edges are kept as they are. An edge too many costs a little when the graph runs; a
/// graph whose recording takes forever costs more.
const VISITS_PER_NODE: usize = 4096;

/// For each node, those it comes after. Every one of them stands before it.
#[derive(Clone, Default, Debug)]
pub(super) struct Edges {
    after: Vec<Vec<u32>>,
    /// The node during whose addition each node was last seen.
    seen_for: Vec<u32>,
}

impl Edges {
    /// Adds a node that has to come after some of those before it.
    pub(super) fn push(&mut self, mut candidates: Vec<u32>) {
        let node = self.after.len() as u32;
        candidates.retain(|candidate| *candidate < node);
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.dedup();
        let mut kept = Vec::with_capacity(candidates.len());
        let mut visits = VISITS_PER_NODE;
        if let Some(earliest) = candidates.last().copied() {
            for candidate in candidates {
                if self.seen_for[candidate as usize] != node {
                    kept.push(candidate);
                    self.see_all_before(candidate, earliest, node, &mut visits);
                }
            }
        }
        self.after.push(kept);
        self.seen_for.push(u32::MAX);
    }

    /// The nodes a node comes directly after.
    pub(super) fn of(&self, node: usize) -> &[u32] {
        self.after.get(node).map_or(&[], Vec::as_slice)
    }

    /// All edges as (before, after).
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = self.after.iter().zip(0..);
        all.flat_map(|(after, node)| after.iter().map(move |before| (*before, node)))
    }

    /// For each node, whether it is ordered against this one, before or after.
    pub(super) fn ordered_with(&self, node: usize) -> Vec<bool> {
        let mut before = vec![false; self.after.len()];
        let mut open: Vec<u32> = self.of(node).to_vec();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut before[at as usize], true) {
                open.extend(self.of(at as usize));
            }
        }
        let mut after = vec![false; self.after.len()];
        if let Some(own) = after.get_mut(node) {
            *own = true;
        }
        // Every edge leads forwards, so one pass finds everything behind.
        for at in node + 1..self.after.len() {
            after[at] = self.of(at).iter().any(|edge| after[*edge as usize]);
        }
        before.iter().zip(after).map(|(before, after)| *before || after).collect()
    }

    /// Marks everything before a node, down to the earliest that matters.
    fn see_all_before(&mut self, node: u32, earliest: u32, for_node: u32, visits: &mut usize) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for place in 0..self.after[at as usize].len() {
                let before = self.after[at as usize][place];
                if before < earliest || self.seen_for[before as usize] == for_node || *visits == 0 {
                    continue;
                }
                *visits -= 1;
                self.seen_for[before as usize] = for_node;
                open.push(before);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(nodes: &[&[u32]]) -> Edges {
        let mut edges = Edges::default();
        nodes.iter().for_each(|after| edges.push(after.to_vec()));
        edges
    }

    #[test]
    fn an_edge_that_others_imply_is_left_out() {
        let edges = edges(&[&[], &[0], &[1, 0], &[0], &[3, 2, 1, 0, 2]]);
        assert_eq!(edges.iter().collect::<Vec<_>>(), [(0, 1), (1, 2), (0, 3), (3, 4), (2, 4)]);
    }

    #[test]
    fn order_is_found_through_other_nodes_in_both_directions() {
        let edges = edges(&[&[], &[0], &[], &[1], &[2], &[3, 4]]);
        assert_eq!(edges.ordered_with(1), [true, true, false, true, false, true]);
        assert_eq!(edges.ordered_with(4), [false, false, true, false, true, true]);
    }
}
