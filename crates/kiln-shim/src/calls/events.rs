//! Events.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use kiln_driver::{
    Code, Command, Driver, DriverExt, EventId, EventRequest, ForeignHandle, Timeout, WaitTarget,
};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::Out;
use crate::calls::context::Context;
use crate::calls::covered_copies::{Covered, CoveredCopies};
use crate::calls::graph_event_nodes::NodeEvent;
use crate::calls::graph_work::NodeWork;
use crate::calls::host_callbacks::{command, pack};
use crate::calls::interprocess_event::{self, InterprocessEvent};
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;
use crate::records;

const DISABLE_TIMING: u32 = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
const INTERPROCESS: u32 = sys::CUevent_flags::CU_EVENT_INTERPROCESS as u32;
const ALL_FLAGS: u32 = DISABLE_TIMING | INTERPROCESS | sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;

/// The flag for events of captures that are nodes.
const EXTERNAL: u32 = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
/// How long the host waits for a record of a process that is gone.
const LOST_RECORD: Duration = Duration::from_secs(1);

/// What queues a command on a stream.
pub(crate) type Submit<'a> = &'a mut dyn FnMut(&Command<'_>) -> Answer;

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
    covered: CoveredCopies,
    /// What it has with other processes, if it can have that.
    pub(crate) shared: Option<Arc<InterprocessEvent>>,
}

impl Event {
    pub(crate) fn new(
        context: &Context,
        is_timed: bool,
        shared: Option<Arc<InterprocessEvent>>,
    ) -> Answer<Self> {
        Ok(Self {
            context: context.number,
            device: context.device,
            driver: context.driver.clone(),
            id: context.order()?.get()?.event()?,
            is_timed,
            is_recorded: AtomicBool::new(false),
            is_captured: AtomicBool::new(false),
            covered: CoveredCopies::default(),
            shared,
        })
    }

    /// Records it on a stream of its device.
    pub(crate) fn signal(&self, state: &ProcessState, submit: Submit<'_>) -> Answer {
        submit(&Command::Signal(self.id))?;
        if let Some(shared) = &self.shared {
            let below = state.device(self.device as c_int)?.host_functions()?.end_record;
            let record = shared.begin_record();
            submit(&Command::Launch(command(below, &pack([shared.number as usize, record as usize]))))?;
        }
        self.is_captured.store(false, Ordering::Relaxed);
        self.is_recorded.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Makes a stream of a device wait for it.
    pub(crate) fn wait(
        &self,
        state: &ProcessState,
        (device, driver): (u32, &dyn Driver),
        submit: Submit<'_>,
    ) -> Answer {
        if let Some(shared) = self.shared_record() {
            let (number, newest) = (shared.number as usize, shared.newest() as usize);
            if newest == 0 {
                return Ok(());
            }
            let below = state.device(device as c_int)?.value_kernels()?.wait_for_process;
            return submit(&Command::Launch(command(below, &pack([number, newest]))));
        }
        if !self.is_recorded() {
            return Ok(());
        }
        if device == self.device {
            return submit(&Command::Wait(self.id));
        }
        wait_for_foreign((&*self.driver, self.id), driver, submit)
    }

    /// What it has with other processes, if the newest record is not known below.
    fn shared_record(&self) -> Option<&Arc<InterprocessEvent>> {
        self.shared.as_ref().filter(|shared| !(shared.is_ours() && self.is_recorded()))
    }

    /// Waits for a record of another process.
    fn wait_for_process(&self, shared: &InterprocessEvent) -> Answer {
        let (newest, began) = (shared.newest(), Instant::now());
        while !shared.is_done(newest) {
            if !shared.has_recorder() && began.elapsed() > LOST_RECORD {
                records::note_once(
                    "lost record",
                    "cuEventSynchronize waited for an event that another process recorded; that process ended before its work was done",
                );
                return Err(Code::LAUNCH_TIMEOUT);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// The program destroyed it, or its context ends.
    pub(crate) fn leave(&self) {
        if let Some(shared) = &self.shared {
            interprocess_event::destroy(shared.number);
        }
    }

    fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Relaxed)
    }

    /// It was waited for, after what it covered was asked: copies that are done for that give back what they went through.
    fn finish_covered(&self, state: &ProcessState, covered: Option<Covered>) -> Answer {
        let Some((what, before)) = covered.filter(|_| self.covered.get() == covered) else { return Ok(()) };
        let context = state.contexts.find_object(|context| context.number == self.context);
        context.map_or(Ok(()), |context| context.finish_staged(what, before))
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

/// Makes a stream of one device wait for an event of another.
pub(crate) fn wait_for_foreign(
    (of, event): (&dyn Driver, EventId),
    driver: &dyn Driver,
    submit: Submit<'_>,
) -> Answer {
    let native = of.native(event.into()).or_code()?;
    // SAFETY: the event below is destroyed with its context alone; streams only wait for it.
    let foreign = unsafe { ForeignHandle::new(native) };
    let here = driver.create_event(EventRequest::Foreign(foreign)).or_code()?;
    let waited = submit(&Command::Wait(here));
    // The name for it is not needed any more; the wait keeps what it was signalled for.
    driver.destroy(here.into()).or_code()?;
    waited
}

pub(crate) fn event(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Event>> {
    state.events.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// Records an event on a stream of its device. In a capture an external record is a node, and another one says where a stream can join.
fn record(handle: RawHandle, stream: RawHandle, is_external: bool) -> Answer {
    let state = state()?;
    let event = event(state, handle)?;
    let (context, choice) = chosen(state, stream)?;
    if context.number != event.context {
        return Err(Code::INVALID_HANDLE);
    }
    let mut order = context.order()?;
    let order = order.get()?;
    if !order.is_capturing(&choice) {
        let covered = order.staged_so_far(&choice);
        return event
            .covered
            .record(covered, || event.signal(state, &mut |command| order.submit(&choice, command)));
    }
    if is_external {
        return order.record(&choice, NodeWork::Record(NodeEvent(handle)));
    }
    order.submit(&choice, &Command::Signal(event.id))?;
    event.is_captured.store(true, Ordering::Relaxed);
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
fn wait_on(state: &ProcessState, stream: RawHandle, handle: RawHandle, is_external: bool) -> Answer {
    let event = event(state, handle)?;
    let (context, choice) = chosen(state, stream)?;
    let mut order = context.order()?;
    let order = order.get()?;
    if is_external && order.is_capturing(&choice) {
        return order.record(&choice, NodeWork::WaitEvent(NodeEvent(handle)));
    }
    event.wait(state, (context.device, &*context.driver), &mut |command| order.submit(&choice, command))
}

driver_api! {
    fn cuEventCreate(out: Out<RawHandle>, flags: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        let is_timed = flags & DISABLE_TIMING == 0;
        if flags & !ALL_FLAGS != 0 || flags & INTERPROCESS != 0 && is_timed {
            return Err(Code::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            state.backend.machine("cuEventCreate with CU_EVENT_INTERPROCESS")?;
        }
        let shared = (flags & INTERPROCESS != 0).then(InterprocessEvent::create).transpose()?;
        let event = Event::new(&context, is_timed, shared)?;
        out.set(state.events.insert(Arc::new(event)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuEventDestroy_v2(handle: RawHandle) = cuEventDestroy {
        let state = state()?;
        let event = state.events.remove(handle).ok_or(Code::INVALID_HANDLE)?;
        event.leave();
        // Work may still wait for it, which is allowed: it is kept for the next event.
        let context = state.contexts.find_object(|context| context.number == event.context);
        if let Some(context) = context {
            context.order()?.get()?.give_back(event.id);
        }
        Ok(())
    }

    fn cuEventRecord | cuEventRecord_ptsz (event: RawHandle, stream: RawHandle) {
        record(event, stream, false)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz (event: RawHandle, stream: RawHandle, flags: c_uint) {
        if flags > EXTERNAL {
            return Err(Code::INVALID_VALUE);
        }
        record(event, stream, flags == EXTERNAL)
    }

    fn cuEventQuery(handle: RawHandle) {
        let state = state()?;
        let event = event(state, handle)?;
        if let Some(shared) = event.shared_record() {
            state.collect();
            return if shared.is_done(shared.newest()) { Ok(()) } else { Err(Code::NOT_READY) };
        }
        if !event.is_recorded() {
            return Ok(());
        }
        event.refuse_captured(state)?;
        let covered = event.covered.get();
        let done = event.driver.is_done(event.id).or_code();
        state.collect();
        if done? {
            return event.finish_covered(state, covered);
        }
        if state.device(event.device as c_int)?.is_hung() {
            // A wait answers why the device is lost.
            event.driver.wait(WaitTarget::Event(event.id), Timeout::Never).or_code().map(|_| ())?;
        }
        Err(Code::NOT_READY)
    }

    fn cuEventSynchronize(handle: RawHandle) {
        let state = state()?;
        let event = event(state, handle)?;
        if let Some(shared) = event.shared_record() {
            return event.wait_for_process(shared);
        }
        if !event.is_recorded() {
            return Ok(());
        }
        event.refuse_captured(state)?;
        let covered = event.covered.get();
        let waited = event.driver.wait(WaitTarget::Event(event.id), Timeout::Never).or_code();
        state.collect();
        waited.map(|_| ())?;
        event.finish_covered(state, covered)
    }

    fn cuEventElapsedTime(out: Out<f32>, from: RawHandle, to: RawHandle) {
        elapsed(out, from, to)
    }

    fn cuEventElapsedTime_v2(out: Out<f32>, from: RawHandle, to: RawHandle) {
        elapsed(out, from, to)
    }

    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz (stream: RawHandle, event: RawHandle, flags: c_uint) {
        if flags > EXTERNAL {
            return Err(Code::INVALID_VALUE);
        }
        wait_on(state()?, stream, event, flags == EXTERNAL)
    }
}
