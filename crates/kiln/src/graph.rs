//! Recording and changing graphs. [`Graph`](crate::Graph) is what is replayed.

pub use kiln_runtime::{GraphBuilder, GraphError, Input, IntoGraph, LaunchUpdate, NodeId, Output};
