//! Streams.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{
    Clock, Code, Error, Progress, Result, StreamId, StreamRequest, Submission, Timeout, Waited,
};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::event_pool::OwnedEvent;
use crate::host_wait::wait_until;
use crate::libcuda_symbols::{Api, Status};
use crate::native_handle::Native;
use crate::stream_progress::{SubmissionKind, SubmissionLog};

/// A stream as a handle finds it.
// In this order and alignment: every submission reads all but the marker, in one cache line.
#[repr(C, align(32))]
pub(crate) struct Stream {
    raw: Native<sys::CUstream_st>,
    /// Whether it is ours. Another library's stream is not destroyed, and may have work that was not submitted here.
    owned: bool,
    submissions: Arc<SubmissionLog>,
    context: Arc<Context>,
    marker: Mutex<Option<Marker>>,
}

/// An event recorded after a submission, to see how far a stream is that never runs empty.
struct Marker {
    event: OwnedEvent,
    number: u64,
}

impl CudaDevice {
    pub(crate) fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        const CALL: &str = "create_stream";
        let api = self.context.enter(CALL)?;
        let (raw, owned) = match request {
            StreamRequest::New { priority } => {
                let range = self.info.limits.priorities;
                if !(range.highest..=range.lowest).contains(&priority) {
                    return Err(Error::invalid(
                        CALL,
                        format!("priority {priority} lies outside of {}..={}", range.highest, range.lowest),
                        "take one of the device's limits",
                    ));
                }
                let mut raw = Native::NULL;
                // SAFETY: the out-parameter is a live local and the context is current.
                let status = unsafe { (api.stream_create)(raw.slot(), convert::NON_BLOCKING, priority) };
                self.context.check(CALL, status)?;
                (raw, true)
            }
            StreamRequest::Foreign(handle) => (Native::from_number(handle.raw()), false),
            other => return Err(Error::unsupported(CALL, "this kind of stream", format!("{other:?}"))),
        };
        let submissions = Arc::new(SubmissionLog::new());
        let stream = Arc::new(Stream {
            raw,
            owned,
            submissions: submissions.clone(),
            marker: Mutex::new(None),
            context: self.context.clone(),
        });
        self.context.watch_stream(&stream);
        let id = self.streams.insert(stream)?;
        submissions.name(id);
        self.context.faults().watch(&submissions);
        Ok(id)
    }

    pub(crate) fn wait_stream(&self, call: &'static str, id: StreamId, timeout: Timeout) -> Result<Waited> {
        let api = self.context.enter(call)?;
        let stream = self.streams.pin(id).map_err(|error| error.seen_by(call))?;
        let waited = stream.wait(call, api, &self.clock, timeout)?;
        if waited.is_done() {
            self.context.run_deferred_frees();
        }
        Ok(waited)
    }

    pub(crate) fn progress(&self, id: StreamId) -> Result<Progress> {
        const CALL: &str = "progress";
        let api = self.context.enter(CALL)?;
        let stream = self.streams.pin(id).map_err(|error| error.seen_by(CALL))?;
        if stream.submissions.completed() < stream.submissions.submitted() && !stream.query(CALL, api)? {
            stream.advance(CALL, api)?;
        }
        Ok(stream.submissions.progress())
    }
}

impl Stream {
    /// The stream as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUstream {
        self.raw.raw()
    }

    /// Whether it is ours and not another library's.
    #[inline]
    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    /// The driver for a call that finds its context by the handles it is given, unless the stream is another library's: that may be the
    /// default one of whatever context is current.
    #[inline(always)]
    pub(crate) fn api(&self, call: &'static str) -> Result<&Api> {
        if self.owned { self.context.pass(call) } else { self.context.enter(call) }
    }

    /// The stream as a number.
    pub(crate) fn number(&self) -> u64 {
        self.raw.number()
    }

    /// What was submitted to it.
    pub(crate) fn submissions(&self) -> &Arc<SubmissionLog> {
        &self.submissions
    }

    /// Gives work to the driver as the next submission. `give` gets the number it will have if the driver accepts it, and is called again if the
    /// driver refused it because another context was current.
    #[inline(always)]
    pub(crate) fn queue(
        &self,
        call: &'static str,
        entry: SubmissionKind,
        give: impl Fn(u64) -> Status,
    ) -> Result<Submission> {
        let turn = self.submissions.turn();
        let mut is_again = false;
        let status = loop {
            let status = give(turn.submitted() + 1);
            if status == 0 {
                return Ok(turn.queued(entry));
            }
            if is_again || !self.context.was_elsewhere(status) {
                break status;
            }
            is_again = true;
        };
        // Finding the suspect takes the turns of all streams.
        drop(turn);
        Err(self.context.failure(call, status, Some(&self.submissions)))
    }

    /// Waits for everything submitted before this call. Asking the stream itself would also wait for what others submit
    /// meanwhile, so an event is recorded behind what is there now.
    fn wait(&self, call: &'static str, api: &Api, clock: &dyn Clock, timeout: Timeout) -> Result<Waited> {
        let target = self.submissions.submitted();
        if self.is_done(call, api, target)? {
            return Ok(Waited::Done);
        }
        if timeout == Timeout::Poll {
            self.advance(call, api)?;
            let done = self.owned && self.submissions.completed() >= target;
            return Ok(if done { Waited::Done } else { Waited::TimedOut });
        }
        let marker = self.mark(call, api, None)?;
        let waited = wait_until(clock, timeout, || self.has_passed(call, api, &marker))?;
        if waited.is_done() {
            self.submissions.complete(marker.number);
        }
        Ok(waited)
    }

    /// Asks the stream whether it is idle, which completes everything the driver had before the question.
    pub(crate) fn query(&self, call: &'static str, api: &Api) -> Result<bool> {
        let submitted = self.submissions.submitted();
        // SAFETY: the caller pins the stream, so it is not destroyed meanwhile.
        match unsafe { (api.stream_query)(self.raw()) } {
            0 => {
                self.submissions.complete(submitted);
                Ok(true)
            }
            status if Code(status) == Code::NOT_READY => Ok(false),
            status => Err(self.context.failure(call, status, Some(&self.submissions))),
        }
    }

    /// Whether nothing that was submitted is left to do, as far as can be told.
    pub(crate) fn is_idle(&self, call: &'static str, api: &Api) -> bool {
        self.submissions.completed() >= self.submissions.submitted() || self.query(call, api).unwrap_or(false)
    }

    /// Whether everything up to a submission is done. Another library's stream is always asked, because it may hold
    /// work that was not submitted here.
    fn is_done(&self, call: &'static str, api: &Api, target: u64) -> Result<bool> {
        Ok((self.owned && self.submissions.completed() >= target) || self.query(call, api)?)
    }

    /// Finds out how far a busy stream is, from a marker that an earlier call recorded, which is then recorded again at the end.
    fn advance(&self, call: &'static str, api: &Api) -> Result<()> {
        let mut marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner);
        let used = match marker.take() {
            Some(pending) if !self.has_passed(call, api, &pending)? => {
                *marker = Some(pending);
                return Ok(());
            }
            Some(passed) => {
                self.submissions.complete(passed.number);
                Some(passed.event)
            }
            None => None,
        };
        *marker = Some(self.mark(call, api, used)?);
        Ok(())
    }

    /// Records an event behind everything that was submitted.
    fn mark(&self, call: &'static str, api: &Api, event: Option<OwnedEvent>) -> Result<Marker> {
        let event = match event {
            Some(event) => event,
            None => OwnedEvent::take(call, api, &self.context)?,
        };
        let turn = self.submissions.turn();
        let number = turn.submitted();
        // SAFETY: the event is ours and the caller pins the stream, so neither is destroyed meanwhile.
        let status = unsafe { (api.event_record)(event.raw(), self.raw()) };
        drop(turn);
        if status == 0 {
            Ok(Marker { event, number })
        } else {
            Err(self.context.failure(call, status, Some(&self.submissions)))
        }
    }

    fn has_passed(&self, call: &'static str, api: &Api, marker: &Marker) -> Result<bool> {
        marker.event.query(api).map_err(|status| self.context.failure(call, status, Some(&self.submissions)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        self.context.release(|api| {
            if !self.is_idle("destroy", api)
                && let Ok(end) = self.mark("destroy", api, None)
            {
                self.context.watch_stream_end(end.event.into_raw());
            }
            // SAFETY: this is the only owner and nothing pins it any more; queued work still runs.
            unsafe { (api.stream_destroy)(self.raw.raw()) }
        });
    }
}
