//! What a graph refuses. Nothing was queued, and the graph is as it was.

/// Why a graph was not recorded or changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A node, an input or an output of another graph.
    #[error("the {what} belongs to another graph; use one that was given out while this graph was recorded")]
    ForeignHandle {
        /// "node", "input" or "output".
        what: &'static str,
    },
    /// A node that is changed as something it is not.
    #[error("node {node} is {is}, and a change for {wanted} was given; the kind of a node stays")]
    Kind {
        /// The node, counted from 0.
        node: u32,
        /// What it is, in words.
        is: &'static str,
        /// What it was taken for.
        wanted: &'static str,
    },
    /// A change that would let two nodes use the same bytes at once.
    #[error(
        "node {node} would use {owner} beside node {other}, and the graph orders neither before the other; record it anew"
    )]
    Unordered {
        /// The node that was to change, counted from 0.
        node: u32,
        /// The node it would meet.
        other: u32,
        /// Where they would meet.
        owner: String,
    },
    /// A node without bytes or one that would lose them; a driver can change neither in place.
    #[error(
        "node {node} would go between no bytes and some, which cannot be changed in place; record the graph anew"
    )]
    Empty {
        /// The node, counted from 0.
        node: u32,
    },
    /// More apart ranges of memory than one submission may name.
    #[error(
        "the graph uses {ranges} separate ranges of memory, and {limit} are allowed; use fewer, larger buffers"
    )]
    TooManyRanges {
        /// What it uses.
        ranges: usize,
        /// What is allowed.
        limit: usize,
    },
}
