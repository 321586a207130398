//! Launches of graphs with nodes for events and memory: their nodes are queued on streams of the library itself.
//!
//! Such a graph is no graph below. Its nodes are laid out on the stream of the launch and, where they may run side by side, on streams that
//! the executable graph has for that. A node that comes after one of another stream waits for an event.

use std::sync::Arc;

use kiln_driver::{Code, Command, Driver, EventId, StreamId, StreamRequest};

use crate::boundary::{Answer, OrCode};
use crate::calls::context::Context;
use crate::calls::graph_body::{GraphBody, GraphStep, LaidOut};
use crate::calls::graph_work::NodeWork;
use crate::calls::process_state::ProcessState;
use crate::calls::stream_order::{StreamChoice, StreamOrder};

/// The streams of an executable graph.
#[derive(Default)]
pub(crate) struct GraphStreams {
    streams: Vec<StreamId>,
    /// The end of the last launch: launches of one executable graph come one after the other.
    last: Option<EventId>,
}

impl GraphStreams {
    /// Queues all nodes. With `frees_first` memory that an earlier launch left is freed.
    pub(crate) fn launch(
        &mut self,
        state: &ProcessState,
        context: &Context,
        choice: &StreamChoice,
        body: &GraphBody,
        frees_first: bool,
    ) -> Answer {
        let steps = body.steps();
        let mut order = context.order()?;
        let order = order.get()?;
        let first = order.enter(choice)?;
        free_left_memory(&steps, first, frees_first)?;
        let lanes = lanes_of(&steps);
        self.prepare(context, order, first, lanes.iter().copied().max().unwrap_or(0))?;
        let stream_of =
            |lane: usize| if lane == 0 { Some(first) } else { self.streams.get(lane - 1).copied() };
        let mut ends: Vec<Option<EventId>> = vec![None; steps.len()];
        for (index, step) in steps.iter().enumerate() {
            let lane = lanes.get(index).copied().unwrap_or(0);
            let stream = stream_of(lane).ok_or(Code::UNKNOWN)?;
            for event in step.after.iter().filter_map(|before| {
                let is_elsewhere = lanes.get(*before as usize) != Some(&lane);
                ends.get(*before as usize).copied().flatten().filter(|_| is_elsewhere)
            }) {
                context.driver.submit(stream, &Command::Wait(event)).or_code()?;
            }
            submit(state, context, stream, step)?;
            let is_waited_for = |(at, later): (usize, &LaidOut<'_>)| {
                later.after.contains(&(index as u32)) && lanes.get(at) != Some(&lane)
            };
            if steps.iter().enumerate().skip(index + 1).any(is_waited_for) {
                let event = order.event()?;
                context.driver.submit(stream, &Command::Signal(event)).or_code()?;
                if let Some(end) = ends.get_mut(index) {
                    *end = Some(event);
                }
            }
        }
        // What waits keeps what an event was signalled for, so that it can be used again.
        ends.into_iter().flatten().for_each(|event| order.give_back(event));
        for stream in &self.streams {
            order.edge(*stream, first)?;
        }
        if let Some(last) = self.last {
            context.driver.submit(first, &Command::Signal(last)).or_code()?;
        }
        Ok(())
    }

    /// Makes as many streams as there are lanes beside the first, and lets all begin after the launch.
    fn prepare(
        &mut self,
        context: &Context,
        order: &mut StreamOrder,
        first: StreamId,
        beside: usize,
    ) -> Answer {
        while self.streams.len() < beside {
            let request = StreamRequest::New { priority: 0 };
            self.streams.push(context.driver.create_stream(request).or_code()?);
        }
        match self.last {
            Some(last) => context.driver.submit(first, &Command::Wait(last)).or_code().map(|_| ())?,
            None => self.last = Some(order.event()?),
        }
        self.streams.iter().try_for_each(|stream| order.edge(first, *stream))
    }

    /// Takes the streams back; what is queued on them still runs.
    pub(crate) fn end(&mut self, driver: &Arc<dyn Driver>) {
        for stream in self.streams.drain(..) {
            // A lost device keeps nothing.
            let _ = driver.destroy(stream.into());
        }
    }
}

/// Memory that an earlier launch made and nothing freed is freed now, or is an error.
pub(crate) fn free_left_memory(steps: &[LaidOut<'_>], stream: StreamId, frees_first: bool) -> Answer {
    for step in steps {
        if let GraphStep::Work(NodeWork::Allocate(memory)) = step.what
            && memory.is_live()
        {
            if !frees_first {
                return Err(Code::INVALID_VALUE);
            }
            memory.end(Some(stream))?;
        }
    }
    Ok(())
}

/// Which steps are on one stream: each goes on behind the first of its predecessors that is the last there, or on a new one.
fn lanes_of(steps: &[LaidOut<'_>]) -> Vec<usize> {
    let mut tips: Vec<u32> = Vec::new();
    let mut lanes: Vec<usize> = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let behind = step.after.iter().find_map(|before| {
            let lane = *lanes.get(*before as usize)?;
            (tips.get(lane) == Some(before)).then_some(lane)
        });
        let lane = behind.unwrap_or(tips.len());
        match tips.get_mut(lane) {
            Some(tip) => *tip = index as u32,
            None => tips.push(index as u32),
        }
        lanes.push(lane);
    }
    lanes
}

/// Queues one step.
pub(crate) fn submit(
    state: &ProcessState,
    context: &Context,
    stream: StreamId,
    step: &LaidOut<'_>,
) -> Answer {
    let driver = &*context.driver;
    let mut queue = |command: &Command<'_>| driver.submit(stream, command).or_code().map(|_| ());
    match step.what {
        GraphStep::Command(command) => queue(&command),
        GraphStep::Work(NodeWork::Record(event)) => event.get(state)?.signal(state, &mut queue),
        GraphStep::Work(NodeWork::WaitEvent(event)) => {
            event.get(state)?.wait(state, (context.device, driver), &mut queue)
        }
        GraphStep::Work(NodeWork::Allocate(memory)) => memory.begin(stream),
        GraphStep::Work(NodeWork::Free(memory)) => memory.end(Some(stream)),
        GraphStep::Work(_) => Ok(()),
    }
}
