//! Launches of graphs with conditional nodes.
//!
//! Which graph of such a node runs is known when the work before it is done. The call that launches waits for that, node by node, and returns when the last one is
//! decided; what is behind that is queued as any other work. All nodes of such a graph run one after the other, on the stream of the launch.

use kiln_driver::{Command, DriverExt, HostBlock, Place};

use crate::boundary::{Answer, OrCode};
use crate::calls::context::Context;
use crate::calls::graph_body::{GraphBody, GraphStep};
use crate::calls::graph_conditions::{ConditionalKind, ConditionalWork};
use crate::calls::graph_streams::{free_left_memory, submit};
use crate::calls::graph_work::NodeWork;
use crate::calls::process_state::ProcessState;
use crate::calls::stream_order::StreamChoice;
use kiln_driver::Code;

/// A launch that is under way.
pub(crate) struct ConditionRun<'a> {
    pub(crate) state: &'a ProcessState,
    pub(crate) context: &'a Context,
    pub(crate) choice: &'a StreamChoice,
}

impl ConditionRun<'_> {
    /// Runs a graph. With `frees_first` memory that an earlier launch left is freed.
    pub(crate) fn launch(&self, body: &GraphBody, frees_first: bool) -> Answer {
        {
            let mut order = self.context.order()?;
            let stream = order.get()?.enter(self.choice)?;
            free_left_memory(&body.steps(), stream, frees_first)?;
        }
        self.begin(body)?;
        self.run(body)
    }

    /// Gives all conditions their first values.
    fn begin(&self, body: &GraphBody) -> Answer {
        for (_, node) in body.nodes() {
            match &node.work {
                NodeWork::Child(child) => self.begin(child.copied())?,
                NodeWork::Conditional(work) => {
                    if let Some(assignment) = work.condition.at_launch() {
                        self.context.order()?.get()?.submit(self.choice, &assignment)?;
                    }
                    work.bodies.iter().try_for_each(|body| self.begin(body.copied()))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn run(&self, body: &GraphBody) -> Answer {
        for step in body.steps() {
            if let GraphStep::Work(NodeWork::Conditional(work)) = step.what {
                self.decide(work)?;
                continue;
            }
            let mut order = self.context.order()?;
            let stream = order.get()?.enter(self.choice)?;
            submit(self.state, self.context, stream, &step)?;
        }
        Ok(())
    }

    /// Runs what the condition of a node selects.
    fn decide(&self, work: &ConditionalWork) -> Answer {
        let block = self.context.driver.allocate_host(4).or_code()?;
        let run = self.decide_by(work, &block);
        let _ = self.context.driver.destroy(block.id().into());
        run
    }

    fn decide_by(&self, work: &ConditionalWork, block: &HostBlock) -> Answer {
        loop {
            let Some(body) = work.body_of(self.value(work, block)?) else { return Ok(()) };
            self.run(body)?;
            if work.kind != ConditionalKind::While {
                return Ok(());
            }
        }
    }

    /// The value of a condition, when the work before is done. No lock is held meanwhile: other threads may have to queue what that work waits for.
    fn value(&self, work: &ConditionalWork, block: &HostBlock) -> Answer<u32> {
        let (from, to) =
            (Place::Device(work.condition.place()), Place::Host { block: block.id(), offset: 0 });
        let stream = {
            let mut order = self.context.order()?;
            let order = order.get()?;
            order.submit(self.choice, &Command::Copy { from, to, bytes: 4 })?;
            order.look(self.choice)
        };
        self.context.driver.synchronize(stream).or_code()?;
        let mut word = [0; 4];
        if block.read(0, &mut word) { Ok(u32::from_ne_bytes(word)) } else { Err(Code::UNKNOWN) }
    }
}
