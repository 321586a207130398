//! The newest launch of an executable graph: launches of one come one after the other, in whatever streams they are.

use kiln_driver::{Command, EventId, StreamId};

use crate::boundary::Answer;
use crate::calls::context::Context;
use crate::calls::stream_order::StreamChoice;

/// The end of the newest launch.
#[derive(Default)]
pub(crate) struct LastLaunch {
    event: Option<EventId>,
    /// Where it was queued: work there comes after it in any case.
    stream: Option<StreamId>,
}

impl LastLaunch {
    /// Queues a launch behind the one before.
    pub(crate) fn then(
        &mut self,
        context: &Context,
        choice: &StreamChoice,
        launch: impl FnOnce() -> Answer,
    ) -> Answer {
        let mut order = context.order()?;
        let streams = order.get()?;
        let below = streams.look(choice);
        if let Some(event) = self.event.filter(|_| self.stream.is_some_and(|stream| stream != below)) {
            streams.submit(choice, &Command::Wait(event))?;
        }
        drop(order);
        launch()?;
        let mut order = context.order()?;
        let streams = order.get()?;
        let event = match self.event {
            Some(event) => event,
            None => *self.event.insert(streams.event()?),
        };
        streams.submit(choice, &Command::Signal(event))?;
        self.stream = Some(below);
        Ok(())
    }

    /// The event, which is not needed any more.
    pub(crate) fn take(&mut self) -> Option<EventId> {
        self.stream = None;
        self.event.take()
    }
}
