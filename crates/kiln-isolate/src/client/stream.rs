//! Streams and events: created without an answer, waited for in shared memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kiln_driver::{
    Clock, Command, Error, EventId, EventRequest, Progress, Refusal, Result, StreamId, StreamRequest,
    Submission, Timeout, WaitTarget, Waited,
};

use super::client_state::Remote;
use super::command_encoder::SUBMIT;
use super::connection::Link;
use super::loss_cause::LossCause;
use super::objects::{Event, Signal, Stream};
use super::proxy::DeviceProxy;
use super::stream_table::StreamCount;
use crate::protocol::protocol_error::ProtocolViolation;
use crate::protocol::wire::{Ask, Request, Take, WireCommand, WireObject};

/// What is waited for.
enum Goal<'a> {
    Stream { count: &'a StreamCount, number: u64 },
    Event { event: &'a Event, signal: Signal },
}

impl Goal<'_> {
    fn is_done(&self, link: &Link) -> bool {
        match self {
            Self::Stream { count, number } => count.completed(&link.segment) >= *number,
            Self::Event { event, signal } => {
                signal.known_done
                    || event.cell.read(&link.segment) == Some(signal.ticket)
                    || signal.stream.completed(&link.segment) >= signal.number
            }
        }
    }

    /// Records that everything before a signal that is done is done as well.
    fn learn(&self) {
        if let Self::Event { signal, .. } = self {
            signal.stream.learn(signal.number);
        }
    }

    /// Makes sure that the worker queries it.
    fn watch(&self, call: &'static str, link: &Link) -> Result<()> {
        match self {
            Self::Stream { count, number } => watch_stream(call, link, count, *number),
            Self::Event { event, signal } => {
                let newest = event.last().as_ref().is_none_or(|last| last.ticket == signal.ticket);
                if !newest {
                    // The event has a later signal now; the stream tells when this one is done.
                    return watch_stream(call, link, &signal.stream, signal.number);
                }
                let ticket = signal.ticket;
                if event.watched.fetch_max(ticket, Ordering::AcqRel) < ticket {
                    link.send(call, &Request::WatchEvent { event: event.remote.id, ticket })?;
                }
                Ok(())
            }
        }
    }
}

fn watch_stream(call: &'static str, link: &Link, count: &StreamCount, number: u64) -> Result<()> {
    if count.needs_watch(number) {
        link.send(call, &Request::WatchStream { stream: count.wire, number })?;
    }
    Ok(())
}

impl DeviceProxy {
    pub(crate) fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        const CALL: &str = "create_stream";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let StreamRequest::New { priority } = request else {
            return Err(Error::unsupported(CALL, "a stream of another library", "it lives in this process"));
        };
        let range = self.info.limits.priorities;
        if priority < range.highest || priority > range.lowest {
            let what = format!("priority {priority}, where {} to {} is allowed", range.highest, range.lowest);
            return Err(Error::invalid(CALL, what, "choose one in that range"));
        }
        let cell = self.shared.stream_cells.take(CALL, &link.segment)?;
        let remote = Remote::new(&self.shared, WireObject::Stream, self.shared.new_id());
        let id = remote.id;
        let made = Request::CreateStream { id, cell: cell.index(), priority, start: 0 };
        link.send(CALL, &made)?;
        let count = Arc::new(StreamCount::new(id, cell));
        let handle = self.objects.streams.insert(Stream { remote, count: count.clone(), priority })?;
        self.shared.streams.insert(handle, count);
        self.shared.standby.objects_changed();
        Ok(handle)
    }

    pub(crate) fn create_event(&self, request: EventRequest) -> Result<EventId> {
        const CALL: &str = "create_event";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let timed = match request {
            EventRequest::Plain => false,
            EventRequest::Timed => true,
            _ => {
                let what = "an event of another library";
                return Err(Error::unsupported(CALL, what, "it lives in this process"));
            }
        };
        let cell = self.shared.event_cells.take(CALL, &link.segment)?;
        let remote = Remote::new(&self.shared, WireObject::Event, self.shared.new_id());
        link.send(CALL, &Request::CreateEvent { id: remote.id, cell: cell.index(), timed })?;
        self.objects.events.insert(Event::new(remote, cell, timed))
    }

    pub(crate) fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        const CALL: &str = SUBMIT;
        let link = self.shared.link();
        link.check(CALL)?;
        let stream = self.objects.streams.pin(stream).map_err(|error| error.seen_by(CALL))?;
        let count = &stream.count;
        let push = |command: &WireCommand<'_>| {
            let mut sender = link.sender();
            let number = count.submitted.load(Ordering::Relaxed) + 1;
            sender.push(CALL, &Request::Submit { stream: count.wire, number, command: *command })?;
            count.submitted.store(number, Ordering::Release);
            Ok(number)
        };
        let number = match command {
            Command::Signal(event) => {
                let event = self.objects.events.pin(*event).map_err(|error| error.seen_by(CALL))?;
                let ticket = self.shared.new_ticket();
                // Held until the signal is in the ring, so that both sides agree on the last signal.
                let mut last = event.last();
                let number = push(&WireCommand::Signal { event: event.remote.id, ticket })?;
                *last = Some(Signal { ticket, stream: count.clone(), number, known_done: false });
                number
            }
            command => self.with_command(CALL, &link, command, push)?,
        };
        Ok(Submission(number))
    }

    pub(crate) fn progress(&self, stream: StreamId) -> Result<Progress> {
        const CALL: &str = "progress";
        let link = self.shared.link();
        link.check(CALL)?;
        let stream = self.objects.streams.pin(stream).map_err(|error| error.seen_by(CALL))?;
        let progress = possible_progress(CALL, &link, &stream.count)?;
        if progress.completed < progress.submitted {
            watch_stream(CALL, &link, &stream.count, progress.submitted.0)?;
        }
        self.shared.late_failure(&link, CALL, stream.count.wire)?;
        Ok(progress)
    }

    /// See [`IsolatedDevice::known_progress`](crate::IsolatedDevice::known_progress).
    pub(crate) fn known_progress(&self, stream: StreamId) -> Option<Progress> {
        let stream = self.objects.streams.pin(stream).ok()?;
        let mut progress = stream.count.progress(&self.shared.link().segment);
        // A worker that breaks the protocol may have written any number.
        progress.completed = progress.completed.min(progress.submitted);
        Some(progress)
    }

    /// See [`IsolatedDevice::poll_streams`](crate::IsolatedDevice::poll_streams).
    pub(crate) fn poll_streams(&self) -> bool {
        let link = self.shared.link();
        for (_, count) in self.shared.streams.all() {
            let progress = count.progress(&link.segment);
            if progress.completed < progress.submitted {
                // A lost worker shows below.
                let _ = watch_stream("poll_streams", &link, &count, progress.submitted.0);
            }
        }
        link.lost().is_some()
    }

    pub(crate) fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        const CALL: &str = "wait";
        let link = self.shared.link();
        link.check(CALL)?;
        let seen = |error: Error| error.seen_by(CALL);
        match target {
            WaitTarget::Stream(stream) => {
                let stream = self.objects.streams.pin(stream).map_err(seen)?;
                let number = stream.count.submitted.load(Ordering::Acquire);
                let waited = self.wait_for(&link, &Goal::Stream { count: &stream.count, number }, timeout)?;
                possible_progress(CALL, &link, &stream.count)?;
                if waited.is_done() {
                    self.shared.late_failure(&link, CALL, stream.count.wire)?;
                }
                Ok(waited)
            }
            WaitTarget::Event(event) => {
                let event = self.objects.events.pin(event).map_err(seen)?;
                let Some(signal) = event.last().clone() else { return Ok(Waited::Done) };
                self.wait_for(&link, &Goal::Event { event: &event, signal }, timeout)
            }
            WaitTarget::Findings => link.ask(CALL, &Ask::Findings, None, |_| Ok(())).map(|_| Waited::Done),
        }
    }

    fn wait_for(&self, link: &Link, goal: &Goal<'_>, timeout: Timeout) -> Result<Waited> {
        const CALL: &str = "wait";
        let limit = match timeout {
            Timeout::Poll => Some(Duration::ZERO),
            Timeout::After(limit) => Some(limit),
            Timeout::Never => None,
        };
        let started = self.clock.now();
        loop {
            if goal.is_done(link) {
                link.check(CALL)?;
                goal.learn();
                return Ok(Waited::Done);
            }
            link.check(CALL)?;
            goal.watch(CALL, link)?;
            let left = limit.map(|limit| limit.saturating_sub(self.clock.now().saturating_sub(started)));
            if left == Some(Duration::ZERO) {
                return Ok(Waited::TimedOut);
            }
            link.wait_for(left, || goal.is_done(link));
        }
    }

    pub(crate) fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        const CALL: &str = "elapsed";
        let link = self.shared.link();
        link.check(CALL)?;
        let pin = |event| self.objects.events.pin(event).map_err(|error: Error| error.seen_by(CALL));
        let (from, to) = (pin(from)?, pin(to)?);
        let tickets = [&from, &to].map(|event| event.last().as_ref().map(|signal| signal.ticket));
        let ask = Ask::Elapsed { from: from.remote.id, to: to.remote.id };
        let (elapsed, _) = link.ask(CALL, &ask, None, Duration::take)?;
        // The answer implies that both are done, which later calls must see.
        for (event, ticket) in [&from, &to].into_iter().zip(tickets) {
            if let Some(last) = event.last().as_mut().filter(|last| Some(last.ticket) == ticket) {
                last.known_done = true;
            }
        }
        Ok(elapsed)
    }
}

/// How far the stream is. Refuses progress beyond what was submitted.
fn possible_progress(call: &'static str, link: &Link, count: &StreamCount) -> Result<Progress> {
    let mut progress = count.progress(&link.segment);
    if progress.completed > progress.submitted {
        // A request is in the ring, and perhaps done, before its sender counts it. It does both under this lock.
        drop(link.sender());
        progress.submitted = Submission(count.submitted.load(Ordering::Acquire));
    }
    if progress.completed <= progress.submitted {
        return Ok(progress);
    }
    link.mark_lost(LossCause::Violation(ProtocolViolation::new("more work done than was submitted")));
    link.check(call)?;
    Err(Error::refused(call, Refusal::Busy { handle: "the worker".into(), why: "it is ending".into() }))
}
