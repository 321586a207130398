//! Builds and updates graphs.

use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::graph::{check_node_command, check_nodes};
use kiln_driver::{Command, Error, GraphId, GraphNode, Refusal, Result};

use crate::device::objects::{Graph, Objects, Users};
use crate::schedule::graph::{GraphPlan, Listed};
use crate::schedule::machine_core::Core;

impl Core {
    pub(crate) fn build_graph(&self, objects: &Objects, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        const CALL: &str = "build_graph";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        check_nodes(nodes)?;
        let mut plan = GraphPlan::default();
        for node in nodes {
            match node.command {
                Command::Graph(id) => {
                    let nested = self.plan_of(objects, CALL, id)?;
                    self.check_size(CALL, plan.nodes.len().saturating_add(nested.nodes.len()))?;
                    plan.push_graph(&nested, node.after);
                }
                command => {
                    self.check_size(CALL, plan.nodes.len() + 1)?;
                    plan.push_task(self.task(&mut state, objects, CALL, &command)?, node.after);
                }
            }
        }
        let graph = Graph { plan: Arc::new(plan), users: Users::default() };
        objects.graphs.insert(|_| Mutex::new(graph)).map(|(id, _)| id)
    }

    pub(crate) fn update_graph(
        &self,
        objects: &Objects,
        graph: GraphId,
        node: u32,
        command: &Command<'_>,
    ) -> Result<()> {
        const CALL: &str = "update_graph";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        let found = objects.graphs.find(CALL, graph)?;
        check_node_command(CALL, command)?;
        let listed = {
            let graph = found.lock().unwrap_or_else(PoisonError::into_inner);
            graph.plan.listed.get(node as usize).cloned()
        };
        let Some(listed) = listed else {
            return Err(Error::invalid(CALL, format!("{graph} has no node {node}"), "name one of its nodes"));
        };
        let differs = || {
            let what = format!("node {node} of {graph} is not a {}", command.name());
            Error::invalid(CALL, what, "replace a node by one of the same kind and shape")
        };
        let changes = match (&listed, command) {
            (Listed::Task(at), Command::Copy { .. } | Command::Fill { .. } | Command::Launch(_)) => {
                vec![(*at, self.task(&mut state, objects, CALL, command)?)]
            }
            (Listed::Nested { first, plan, .. }, Command::Graph(id)) => {
                let other = self.plan_of(objects, CALL, *id)?;
                if !plan.has_shape_of(&other) {
                    return Err(differs());
                }
                let tasks = other.nodes.iter().enumerate();
                tasks.map(|(at, node)| (first + at, node.task.clone())).collect()
            }
            _ => return Err(differs()),
        };
        let mut graph = found.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, task) in &changes {
            let (is, wanted) = (graph.plan.nodes[*at].task.shape(), task.shape());
            if is != wanted {
                let what = format!("a node that is {is:?} cannot become {wanted:?}");
                return Err(Error::invalid(CALL, what, "build another graph"));
            }
        }
        let plan = Arc::make_mut(&mut graph.plan);
        for (at, task) in changes {
            plan.nodes[at].task = task;
        }
        Ok(())
    }

    fn plan_of(&self, objects: &Objects, call: &'static str, id: GraphId) -> Result<Arc<GraphPlan>> {
        let graph = objects.graphs.find(call, id)?;
        let graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(graph.plan.clone())
    }

    fn check_size(&self, call: &'static str, nodes: usize) -> Result<()> {
        let limit = self.config.limits.graph_nodes;
        if nodes <= limit {
            return Ok(());
        }
        Err(Error::refused(call, Refusal::Limit { what: "nodes in a graph", limit: limit as u64 }))
    }
}
