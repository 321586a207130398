//! A chain of launches as a graph, by the driver's calls without dependency tracking. What a replay costs beyond this is the
//! price of dependency tracking; what this costs beyond the raw call is the price of checked handles.

use std::sync::Arc;

use kiln_driver::{
    Command, Dim3, Driver, EventId, EventRequest, GraphId, GraphNode, Image, LaunchCommand, StreamId,
    StreamRequest, Timeout, Vouched, WaitTarget,
};

use crate::Failure;
use crate::raw_driver::KERNELS;

/// A graph of launches in a row, on a separate stream.
pub(crate) struct Untracked {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    event: EventId,
    graph: GraphId,
}

impl Untracked {
    pub(crate) fn chain(driver: &Arc<dyn Driver>, arguments: &[u8], count: usize) -> Result<Self, Failure> {
        let module = driver.load(&Image::Ptx(KERNELS))?;
        let function = driver.function(module, "one")?.id;
        let one = Dim3::new(1, 1, 1);
        // SAFETY: the kernel touches nothing when its last argument is not negative, and the arguments are packed as it takes them.
        let vouched = unsafe { Vouched::new() };
        let launch = LaunchCommand {
            function,
            grid: one,
            block: one,
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments,
            declared: None,
            vouched,
        };
        let before: Vec<Vec<u32>> =
            (0..count as u32).map(|at| at.checked_sub(1).into_iter().collect()).collect();
        let nodes: Vec<GraphNode<'_>> =
            before.iter().map(|after| GraphNode { command: Command::Launch(launch), after }).collect();
        Ok(Self {
            graph: driver.build_graph(&nodes)?,
            stream: driver.create_stream(StreamRequest::New { priority: 0 })?,
            event: driver.create_event(EventRequest::Plain)?,
            driver: driver.clone(),
        })
    }

    pub(crate) fn replay(&self) -> Result<(), Failure> {
        self.driver.submit(self.stream, &Command::Graph(self.graph))?;
        Ok(())
    }

    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.driver.submit(self.stream, &Command::Signal(self.event))?;
        let waited = self.driver.wait(WaitTarget::Event(self.event), Timeout::Never)?;
        if waited.is_done() { Ok(()) } else { Err("a wait without a limit ended early".into()) }
    }
}
