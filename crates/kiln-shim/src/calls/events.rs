//! Events.

use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys;
use kiln_driver::{
    Code, Command, Driver, DriverExt, EventId, EventRequest, ForeignHandle, Timeout, WaitTarget,
};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::Out;
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

const DISABLE_TIMING: u32 = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
const INTERPROCESS: u32 = sys::CUevent_flags::CU_EVENT_INTERPROCESS as u32;
const ALL_FLAGS: u32 = DISABLE_TIMING | INTERPROCESS | sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;

/// An event of a program.
pub(crate) struct Event {
    /// The number of its context.
    pub(crate) context: u64,
    pub(crate) device: u32,
    driver: Arc<dyn Driver>,
    pub(crate) id: EventId,
    is_timed: bool,
    /// Below, the event may have been another one of the program before.
    is_recorded: AtomicBool,
    /// Whether it was last recorded in a capture.
    is_captured: AtomicBool,
}

impl Event {
    fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Relaxed)
    }

    /// An error for an event of a capture, which cannot be asked or waited for by the host.
    fn refuse_captured(&self, state: &ProcessState) -> Answer {
        if !self.is_captured.load(Ordering::Relaxed) {
            return Ok(());
        }
        let context = state.contexts.find_object(|context| context.number == self.context);
        let context = context.ok_or(Code::CONTEXT_IS_DESTROYED)?;
        let code = context.order()?.get()?.captures.spoil_by(self.id);
        Err(code)
    }
}

fn event(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Event>> {
    state.events.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// Records an event on a stream of its device.
fn record(handle: RawHandle, stream: RawHandle) -> Answer {
    let state = state()?;
    let event = event(state, handle)?;
    let (context, choice) = chosen(state, stream)?;
    if context.device != event.device {
        return Err(Code::INVALID_HANDLE);
    }
    let mut order = context.order()?;
    let order = order.get()?;
    order.submit(&choice, &Command::Signal(event.id))?;
    event.is_captured.store(order.is_capturing(&choice), Ordering::Relaxed);
    event.is_recorded.store(true, Ordering::Relaxed);
    Ok(())
}

fn elapsed(out: Out<f32>, from: RawHandle, to: RawHandle) -> Answer {
    let state = state()?;
    let (from, to) = (event(state, from)?, event(state, to)?);
    out.check().map_err(|_| Code::INVALID_HANDLE)?;
    let can_tell = |event: &Event| event.is_timed && event.is_recorded();
    if !can_tell(&from) || !can_tell(&to) || from.device != to.device {
        return Err(Code::INVALID_HANDLE);
    }
    for event in [&from, &to] {
        event.refuse_captured(state)?;
        if !event.driver.is_done(event.id).or_code()? {
            return Err(Code::NOT_READY);
        }
    }
    out.set(from.driver.elapsed(from.id, to.id).or_code()?.as_secs_f32() * 1e3)
}

/// Makes a stream wait for an event, also for one of another device.
fn wait_on(state: &ProcessState, stream: RawHandle, handle: RawHandle) -> Answer {
    let event = event(state, handle)?;
    let (context, choice) = chosen(state, stream)?;
    if !event.is_recorded() {
        return Ok(());
    }
    if context.device == event.device {
        return context.order()?.get()?.submit(&choice, &Command::Wait(event.id));
    }
    let native = event.driver.native(event.id.into()).or_code()?;
    // SAFETY: the event lives while its handle is in the table, which `event` holds; streams only wait for it.
    let foreign = unsafe { ForeignHandle::new(native) };
    let here = context.driver.create_event(EventRequest::Foreign(foreign)).or_code()?;
    let waited = context.order()?.get()?.submit(&choice, &Command::Wait(here));
    // The name for it is not needed any more; the wait keeps what it was signalled for.
    context.driver.destroy(here.into()).or_code()?;
    waited
}

driver_api! {
    fn cuEventCreate(out: Out<RawHandle>, flags: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        let is_timed = flags & DISABLE_TIMING == 0;
        if flags & !ALL_FLAGS != 0 || flags & INTERPROCESS != 0 && is_timed {
            return Err(Code::INVALID_VALUE);
        }
        let id = context.order()?.get()?.event()?;
        let event = Event {
            context: context.number,
            device: context.device,
            driver: context.driver.clone(),
            id,
            is_timed,
            is_recorded: AtomicBool::new(false),
            is_captured: AtomicBool::new(false),
        };
        out.set(state.events.insert(Arc::new(event)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuEventDestroy_v2(handle: RawHandle) {
        let state = state()?;
        let event = state.events.remove(handle).ok_or(Code::INVALID_HANDLE)?;
        // Work may still wait for it, which is allowed: it is kept for the next event.
        let context = state.contexts.find_object(|context| context.number == event.context);
        if let Some(context) = context {
            context.order()?.get()?.give_back(event.id);
        }
        Ok(())
    }

    fn cuEventRecord | cuEventRecord_ptsz (event: RawHandle, stream: RawHandle) {
        record(event, stream)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz (event: RawHandle, stream: RawHandle, flags: c_uint) {
        if flags > sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32 {
            return Err(Code::INVALID_VALUE);
        }
        record(event, stream)
    }

    fn cuEventQuery(handle: RawHandle) {
        let state = state()?;
        let event = event(state, handle)?;
        if !event.is_recorded() {
            return Ok(());
        }
        event.refuse_captured(state)?;
        let done = event.driver.is_done(event.id).or_code();
        state.collect();
        if done? { Ok(()) } else { Err(Code::NOT_READY) }
    }

    fn cuEventSynchronize(handle: RawHandle) {
        let state = state()?;
        let event = event(state, handle)?;
        if !event.is_recorded() {
            return Ok(());
        }
        event.refuse_captured(state)?;
        let waited = event.driver.wait(WaitTarget::Event(event.id), Timeout::Never).or_code();
        state.collect();
        waited.map(|_| ())
    }

    fn cuEventElapsedTime(out: Out<f32>, from: RawHandle, to: RawHandle) {
        elapsed(out, from, to)
    }

    fn cuEventElapsedTime_v2(out: Out<f32>, from: RawHandle, to: RawHandle) {
        elapsed(out, from, to)
    }

    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz (stream: RawHandle, event: RawHandle, flags: c_uint) {
        if flags > sys::CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL as u32 {
            return Err(Code::INVALID_VALUE);
        }
        wait_on(state()?, stream, event)
    }
}
