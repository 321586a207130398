//! Streams.

use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, DriverExt, StreamId, StreamRequest};

use crate::boundary::{Answer, OrCode, null_is_per_thread};
use crate::caller_memory::Out;
use crate::calls::capture::{self, CaptureMode};
use crate::calls::context::{Context, Current};
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::staging_pool::Finished;
use crate::calls::stream_attributes::StreamAttributes;
use crate::calls::stream_order::StreamChoice;
use crate::handle_table::RawHandle;

const NON_BLOCKING: u32 = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
/// The handles of the two default streams, beside null.
const LEGACY: RawHandle = 1;
const PER_THREAD: RawHandle = 2;

/// A stream of a program.
pub(crate) struct Stream {
    pub(crate) context: Arc<Context>,
    pub(crate) id: StreamId,
    flags: u32,
    number: u64,
    attributes: Mutex<StreamAttributes>,
}

impl Stream {
    fn create(context: &Arc<Context>, flags: u32, priority: i32) -> Answer<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(3);
        // A priority outside of the range is the next one inside, as for the driver.
        let range = context.driver.info().limits.priorities;
        let priority = priority.clamp(range.highest, range.lowest);
        let id = context.driver.create_stream(StreamRequest::New { priority }).or_code()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let attributes = Mutex::new(StreamAttributes::new(priority));
        Ok(Arc::new(Self { context: context.clone(), id, flags, number, attributes }))
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

/// The attributes of a stream.
pub(crate) fn attributes_of<'a>(
    context: &'a Context,
    choice: &'a StreamChoice,
) -> &'a Mutex<StreamAttributes> {
    match choice {
        StreamChoice::Legacy => &context.stream_attributes,
        StreamChoice::Stream(stream) => &stream.attributes,
    }
}

/// Whether a handle names the default stream in the call that runs.
pub(crate) fn is_default(handle: RawHandle) -> bool {
    handle == LEGACY || handle == 0 && !null_is_per_thread()
}

/// The stream that a call names, with its context.
pub(crate) struct Chosen {
    /// The current context, for its default stream; other streams have theirs.
    current: Option<Arc<Context>>,
    pub(crate) choice: StreamChoice,
}

impl Chosen {
    /// The context of the stream.
    #[inline]
    pub(crate) fn context(&self) -> Answer<&Arc<Context>> {
        match (&self.choice, &self.current) {
            (StreamChoice::Stream(stream), _) => Ok(&stream.context),
            (StreamChoice::Legacy, Some(context)) => Ok(context),
            (StreamChoice::Legacy, None) => Err(Code::INVALID_CONTEXT),
        }
    }
}

/// The stream of a handle.
#[inline]
pub(crate) fn choose(state: &ProcessState, handle: RawHandle) -> Answer<Chosen> {
    if handle <= PER_THREAD {
        return choose_default(state, handle);
    }
    let stream = state.streams.get(handle).ok_or(Code::INVALID_HANDLE)?;
    Ok(Chosen { current: None, choice: StreamChoice::Stream(stream) })
}

/// The default stream of a handle.
fn choose_default(state: &ProcessState, handle: RawHandle) -> Answer<Chosen> {
    let context = Current::get(state)?;
    if is_default(handle) {
        return Ok(Chosen { current: Some(context), choice: StreamChoice::Legacy });
    }
    let mut order = context.order()?;
    let stream = match order.get()?.of_thread() {
        Some(stream) => stream,
        None => {
            let stream = Stream::create(&context, 0, 0)?;
            order.get()?.add_of_thread(stream.clone());
            stream
        }
    };
    Ok(Chosen { current: None, choice: StreamChoice::Stream(stream) })
}

/// The stream of a handle, with its context.
pub(crate) fn chosen(state: &ProcessState, handle: RawHandle) -> Answer<(Arc<Context>, StreamChoice)> {
    let chosen = choose(state, handle)?;
    Ok((chosen.context()?.clone(), chosen.choice))
}

/// Waits for the stream of a choice.
pub(crate) fn wait(state: &ProcessState, context: &Context, choice: &StreamChoice) -> Answer {
    let mut order = context.order()?;
    let id = match choice {
        // Work of blocking streams is part of what the default stream waits for.
        StreamChoice::Legacy => order.get()?.enter(choice)?,
        StreamChoice::Stream(stream) => {
            order.get()?.refuse_capture(choice)?;
            stream.id
        }
    };
    let covered = order.get()?.staged_so_far(choice);
    drop(order);
    let waited = context.driver.synchronize(id).or_code();
    if let (Ok(()), Some((what, before))) = (waited, covered) {
        context.finish_staged(what, before)?;
    }
    state.collect();
    waited
}

/// Waits until copies of pageable memory have room again: for the stream, or for all if others have it.
pub(crate) fn wait_for_room(state: &ProcessState, context: &Context, choice: &StreamChoice) -> Answer {
    wait(state, context, choice)?;
    if context.order()?.get()?.staging.is_full() { context.synchronize() } else { Ok(()) }
}

fn create(out: Out<RawHandle>, flags: u32, priority: i32) -> Answer {
    let (state, context) = current()?;
    out.check()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let stream = Stream::create(&context, flags, priority)?;
    context.order()?.get()?.add(&stream);
    out.set(state.streams.insert(stream).ok_or(Code::OUT_OF_MEMORY)?)
}

/// A property of a stream, or what the default streams have.
fn ask<T: Copy>(handle: RawHandle, out: Out<T>, default: T, of: impl Fn(&Stream) -> T) -> Answer {
    let state = state()?;
    match chosen(state, handle)?.1 {
        StreamChoice::Legacy => out.set(default),
        StreamChoice::Stream(stream) => out.set(of(&stream)),
    }
}

driver_api! {
    fn cuStreamCreate(stream: Out<RawHandle>, flags: c_uint) {
        create(stream, flags, 0)
    }

    fn cuStreamCreateWithPriority(stream: Out<RawHandle>, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    fn cuStreamDestroy_v2(stream: RawHandle) = cuStreamDestroy {
        let state = state()?;
        if stream <= PER_THREAD {
            return Err(Code::INVALID_HANDLE);
        }
        let gone = state.streams.remove(stream).ok_or(Code::INVALID_HANDLE)?;
        gone.context.order()?.get()?.remove(gone.id)
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz (stream: RawHandle) {
        let state = state()?;
        let (context, choice) = chosen(state, stream)?;
        wait(state, &context, &choice)
    }

    fn cuStreamQuery | cuStreamQuery_ptsz (stream: RawHandle) {
        let state = state()?;
        let (context, choice) = chosen(state, stream)?;
        let mut order = context.order()?;
        order.get()?.refuse_capture(&choice)?;
        let (id, staged) = (order.get()?.look(&choice), order.get()?.staging.queued());
        drop(order);
        let progress = context.driver.progress(id).or_code();
        state.collect();
        let progress = progress?;
        if progress.completed == progress.submitted {
            return context.finish_staged(Finished::Stream(id), staged);
        }
        if state.device(context.device as c_int)?.is_hung() {
            // A wait answers why the device is lost.
            context.driver.synchronize(id).or_code()?;
        }
        Err(Code::NOT_READY)
    }

    fn cuStreamGetFlags | cuStreamGetFlags_ptsz (stream: RawHandle, flags: Out<c_uint>) {
        ask(stream, flags, 0, |stream| stream.flags)
    }

    fn cuStreamGetPriority | cuStreamGetPriority_ptsz (stream: RawHandle, priority: Out<c_int>) {
        let (context, choice) = chosen(state()?, stream)?;
        let attributes = attributes_of(&context, &choice).lock().unwrap_or_else(PoisonError::into_inner);
        priority.set(attributes.priority)
    }

    fn cuStreamGetId | cuStreamGetId_ptsz (stream: RawHandle, id: Out<c_ulonglong>) {
        ask(stream, id, LEGACY as u64, |stream| stream.number)
    }

    fn cuStreamGetDevice | cuStreamGetDevice_ptsz (stream: RawHandle, device: Out<c_int>) {
        let (context, _) = chosen(state()?, stream)?;
        device.set(context.device as c_int)
    }

    fn cuStreamGetCtx | cuStreamGetCtx_ptsz (stream: RawHandle, context: Out<RawHandle>) {
        context.set(context_of(stream)?)
    }

    fn cuStreamGetCtx_v2 | cuStreamGetCtx_v2_ptsz (stream: RawHandle, context: Out<RawHandle>, green: Out<RawHandle>) {
        green.set_if_wanted(0);
        context.set(context_of(stream)?)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_uint>) {
        let wanted = CaptureMode::of(mode.get()?)?;
        mode.set(capture::exchange_mode(wanted) as c_uint)
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz (stream: RawHandle, address: u64, _bytes: usize, _flags: c_uint) {
        let state = state()?;
        chosen(state, stream)?;
        // Which stream may use managed memory makes no difference to the order here.
        state.memory.find(address, 1).map(|_| ())
    }
}

fn context_of(stream: RawHandle) -> Answer<RawHandle> {
    let state = state()?;
    match chosen(state, stream)? {
        (_, StreamChoice::Legacy) => Ok(Current::handle()),
        (context, StreamChoice::Stream(_)) if context.is_primary => {
            Ok(state.device(context.device as i32)?.primary_handle)
        }
        (context, StreamChoice::Stream(_)) => {
            state.contexts.find(|other| other.number == context.number).ok_or(Code::INVALID_CONTEXT)
        }
    }
}
