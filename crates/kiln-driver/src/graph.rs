//! Graphs: commands with edges, built once and submitted as one command.

use crate::command::{Command, Dim3};
use crate::error::Error;

/// One node of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphNode<'a> {
    /// A copy, fill, launch or graph; signals and waits are edges here.
    pub command: Command<'a>,
    /// The nodes it runs after, by their place in the list; each stands before it.
    pub after: &'a [u32],
}

/// What cannot change in a node once it is built. An update with another one is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeShape {
    /// A copy or fill of no bytes.
    Nothing,
    /// A copy from one kind of memory to one kind of memory.
    Copy {
        /// Whether it begins in host memory.
        from_host: bool,
        /// Whether it ends in host memory.
        to_host: bool,
    },
    /// A fill.
    Fill,
    /// A launch.
    Launch {
        /// The blocks of its clusters, if it has some.
        cluster: Option<Dim3>,
        /// Whether all its blocks are resident at once.
        cooperative: bool,
    },
    /// Another graph.
    Graph,
}

/// Refuses what no driver can build: nothing to do, an edge to a node that does not stand before, or a command that
/// is an edge by nature.
///
/// # Errors
/// Refused, naming the node.
pub fn check_nodes(nodes: &[GraphNode<'_>]) -> Result<(), Error> {
    const CALL: &str = "build_graph";
    if nodes.is_empty() {
        return Err(Error::invalid(CALL, "a graph without nodes", "give it at least one command"));
    }
    for (at, node) in nodes.iter().enumerate() {
        check_node_command(CALL, &node.command)?;
        if let Some(edge) = node.after.iter().find(|edge| **edge as usize >= at) {
            return Err(Error::invalid(
                CALL,
                format!("node {at} runs after node {edge}, which does not stand before it"),
                "list nodes in an order in which they can run",
            ));
        }
    }
    Ok(())
}

/// Refuses commands that cannot be nodes.
///
/// # Errors
/// Refused for signals and waits, which are edges in a graph.
pub fn check_node_command(call: &'static str, command: &Command<'_>) -> Result<(), Error> {
    match command {
        Command::Signal(_) | Command::Wait(_) => Err(Error::invalid(
            call,
            format!("a {} as a node", command.name()),
            "say what a node runs after instead",
        )),
        _ => Ok(()),
    }
}
