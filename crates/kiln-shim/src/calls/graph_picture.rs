//! A graph as a drawing in the language of Graphviz.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::fmt::Write;

use cudarc::driver::sys::CUgraphNodeType as Kind;
use kiln_driver::{Code, FunctionId};

use crate::caller_memory::Text;
use crate::calls::graph_body::GraphBody;
use crate::calls::graph_work::NodeWork;
use crate::calls::graphs::graph;
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

/// Writes what nodes have, too.
const VERBOSE: c_uint = 1;
const KERNEL_PARAMETERS: c_uint = 1 << 2;

struct Picture<'a> {
    state: &'a ProcessState,
    host: Option<FunctionId>,
    flags: c_uint,
    text: String,
    /// Graphs that are drawn so far.
    graphs: usize,
}

impl Picture<'_> {
    /// Draws a graph, and then the graphs in it.
    fn draw(&mut self, body: &GraphBody) {
        let own = self.graphs;
        self.graphs += 1;
        // A text takes everything that is written.
        let _ =
            writeln!(self.text, "subgraph cluster_{own} {{\nlabel=\"graph_{own}\" graph[style=\"dashed\"];");
        let mut children = Vec::new();
        for (place, (_, node)) in body.nodes().enumerate() {
            let label = match &node.work {
                NodeWork::Child(child) => {
                    children.push(child);
                    format!("graph_{}", own + children.len())
                }
                work => {
                    children.extend(work.children());
                    self.label(work)
                }
            };
            let _ = writeln!(
                self.text,
                "\"graph_{own}_node_{place}\"[style=\"solid\" shape=\"rectangle\" label=\"{place}\n{label}\n\"];"
            );
        }
        let places: BTreeMap<u32, usize> =
            body.nodes().enumerate().map(|(place, (number, _))| (number, place)).collect();
        for (from, to) in body.edges() {
            if let (Some(from), Some(to)) = (places.get(&from), places.get(&to)) {
                let _ = writeln!(self.text, "\"graph_{own}_node_{from}\" -> \"graph_{own}_node_{to}\";");
            }
        }
        self.text.push_str("}\n");
        for child in children {
            self.draw(&child.body());
        }
    }

    fn label(&self, work: &NodeWork) -> String {
        let name = match work.kind(self.host) {
            Kind::CU_GRAPH_NODE_TYPE_KERNEL => "KERNEL",
            Kind::CU_GRAPH_NODE_TYPE_MEMCPY => "MEMCPY",
            Kind::CU_GRAPH_NODE_TYPE_MEMSET => "MEMSET",
            Kind::CU_GRAPH_NODE_TYPE_HOST => "HOST",
            Kind::CU_GRAPH_NODE_TYPE_EVENT_RECORD => "EVENT_RECORD",
            Kind::CU_GRAPH_NODE_TYPE_WAIT_EVENT => "EVENT_WAIT",
            Kind::CU_GRAPH_NODE_TYPE_MEM_ALLOC => "MEM_ALLOC",
            Kind::CU_GRAPH_NODE_TYPE_MEM_FREE => "MEM_FREE",
            Kind::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => "BATCH_MEM_OP",
            Kind::CU_GRAPH_NODE_TYPE_CONDITIONAL => "CONDITIONAL",
            _ => "EMPTY",
        };
        match work {
            NodeWork::Launch(launch) if name == "KERNEL" => {
                let function = self.state.functions.find_object(|known| known.below.id == launch.function);
                let kernel =
                    function.map(|function| function.name.to_string_lossy().into_owned()).unwrap_or_default();
                let is_long = self.flags & (VERBOSE | KERNEL_PARAMETERS) != 0;
                let shape =
                    if is_long { format!("\n{} {}", launch.grid, launch.block) } else { String::new() };
                format!("{name}\n{kernel}{shape}")
            }
            NodeWork::Allocate(memory) | NodeWork::Free(memory) => format!("{name}\n{:#x}", memory.address),
            _ => name.to_owned(),
        }
    }
}

driver_api! {
    fn cuGraphDebugDotPrint(handle: RawHandle, file: Text, flags: c_uint) {
        let state = state()?;
        let graph = graph(state, handle)?;
        let file = file.get()?;
        let host = state.device(graph.context.device as c_int)?.host_function();
        let mut picture = Picture { state, host, flags, text: "digraph dot {\n".to_owned(), graphs: 0 };
        picture.draw(&graph.body().clone());
        picture.text.push_str("}\n");
        std::fs::write(file, picture.text).map_err(|_| Code::OPERATING_SYSTEM)
    }
}
