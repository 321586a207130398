//! Functions of the program that run in the order of a stream.
//!
//! Below, each is a launch of a kernel that runs on a thread of the host ([`library`]), or a call that the driver of a GPU makes ([`functions`]): it comes after
//! what was queued before it, what is queued later waits for it, and the call that queued it does not. Captures and graphs have such launches like any others.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use kiln_driver::{Code, Command, Driver, FindingRule, FunctionId, Image, LaunchCommand, Vouched};
use kiln_sim::{HostKernel, KernelFault, KernelLibrary};

use crate::boundary::{Answer, OrCode, set_inside};
use crate::caller_memory::{fetch_slice, store};
use crate::calls::interprocess_event;
use crate::calls::process_state::state;
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;
use crate::records;

type HostFunction = Option<extern "C" fn(*mut c_void)>;
type StreamCallback = Option<extern "C" fn(RawHandle, c_int, *mut c_void)>;

const LIBRARY: &str = "functions of the program";
const FUNCTION: &str = "host_function";
const CALLBACK: &str = "stream_callback";
const COPY: &str = "host_copy";
const END_RECORD: &str = "end_interprocess_record";

/// How many functions run now, and whether the process ends.
static PRESENCE: Mutex<Presence> = Mutex::new(Presence { running: 0, has_ended: false });
static LEFT: Condvar = Condvar::new();

struct Presence {
    running: u32,
    has_ended: bool,
}

/// A function of the program runs while this lives.
struct Inside;

impl Inside {
    /// Nothing at the end of the process, when what the function needs may be gone.
    fn begin() -> Option<Self> {
        let mut presence = PRESENCE.lock().unwrap_or_else(PoisonError::into_inner);
        if presence.has_ended {
            return None;
        }
        presence.running += 1;
        set_inside(true);
        Some(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        set_inside(false);
        PRESENCE.lock().unwrap_or_else(PoisonError::into_inner).running -= 1;
        LEFT.notify_all();
    }
}

/// The process ends: no function is called any more. False if one still runs after the time.
pub(crate) fn end(limit: Duration) -> bool {
    let mut presence = PRESENCE.lock().unwrap_or_else(PoisonError::into_inner);
    presence.has_ended = true;
    let waited = LEFT.wait_timeout_while(presence, limit, |presence| presence.running > 0);
    waited.unwrap_or_else(PoisonError::into_inner).0.running == 0
}

/// The kernels that call the program.
pub(crate) fn library() -> KernelLibrary {
    let function = HostKernel::new(FUNCTION).value::<u64>().value::<u64>().on_host_thread().body(|launch| {
        call(launch.value(0)?, launch.value(1)?);
        Ok(())
    });
    let callback = HostKernel::new(CALLBACK)
        .value::<u64>()
        .value::<u64>()
        .value::<u64>()
        .on_host_thread()
        .body(|launch| {
            call_back([launch.value(0)?, launch.value(1)?, launch.value(2)?], Code::SUCCESS);
            Ok(())
        })
        // It is called after a failure, too, and told of it.
        .if_lost(|arguments, code| {
            let word = |at: usize| arguments.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok());
            if let (Some(function), Some(stream), Some(data)) = (word(0), word(1), word(2)) {
                call_back([function, stream, data].map(u64::from_le_bytes), code);
            }
        });
    let copy =
        HostKernel::new(COPY).value::<u64>().value::<u64>().value::<u64>().on_host_thread().body(|launch| {
            copy_on_host([launch.value(0)?, launch.value(1)?, launch.value(2)?])
                .map_err(|detail| KernelFault::Stopped { code: Code::ILLEGAL_ADDRESS, detail })
        });
    let end_record =
        HostKernel::new(END_RECORD).value::<u64>().value::<u64>().on_host_thread().body(|launch| {
            interprocess_event::end_record(launch.value(0)?, launch.value(1)?);
            Ok(())
        });
    KernelLibrary::new(LIBRARY).kernel(function).kernel(callback).kernel(copy).kernel(end_record)
}

/// The same for the driver of a GPU, which calls them on a separate thread.
pub(crate) fn functions() -> kiln_cuda::HostFunctions {
    kiln_cuda::HostFunctions::new(LIBRARY)
        .function(FUNCTION, 2, |words| {
            if let [function, data] = *words {
                call(function, data);
            }
        })
        .callback(CALLBACK, 3, |words, status| {
            if let [function, stream, data] = *words {
                call_back([function, stream, data], status);
            }
        })
        .function(COPY, 3, |words| {
            if let [to, from, bytes] = *words
                && let Err(detail) = copy_on_host([to, from, bytes])
            {
                records::find(FindingRule::OutOfBounds, false, &detail);
            }
        })
        .function(END_RECORD, 2, |words| {
            if let [first, second] = *words {
                interprocess_event::end_record(first, second);
            }
        })
}

/// Copies memory of the program, or says which addresses have none.
fn copy_on_host([to, from, bytes]: [u64; 3]) -> Result<(), String> {
    const STEP: usize = 64 << 10;
    // At the end of the process what it reads and writes may be gone.
    let Some(_inside) = Inside::begin() else { return Ok(()) };
    let mut buffer = vec![0; STEP.min(bytes as usize)];
    for at in (0..bytes as usize).step_by(STEP) {
        let part = buffer.get_mut(..STEP.min(bytes as usize - at)).unwrap_or_default();
        let copied = fetch_slice(from as usize + at, part)
            // SAFETY: the part has so many bytes.
            .and_then(|()| unsafe { store(to as usize + at, part.as_ptr(), part.len()) });
        if copied.is_err() {
            return Err(format!(
                "a copy of {bytes} bytes from {from:#x} to {to:#x}: there is no memory of the program"
            ));
        }
    }
    Ok(())
}

fn call(function: u64, data: u64) {
    if let Some(_inside) = Inside::begin() {
        // SAFETY: it was queued with a function that the program gave, and the API requires that it can be called until then.
        let function = unsafe { std::mem::transmute::<usize, extern "C" fn(*mut c_void)>(function as usize) };
        function(data as usize as *mut c_void);
    }
}

fn call_back([function, stream, data]: [u64; 3], status: Code) {
    type Callback = extern "C" fn(RawHandle, c_int, *mut c_void);
    if let Some(_inside) = Inside::begin() {
        // SAFETY: as for `call`.
        let function = unsafe { std::mem::transmute::<usize, Callback>(function as usize) };
        function(stream as usize, status.0, data as usize as *mut c_void);
    }
}

/// The kernels on a device.
#[derive(Clone, Copy)]
pub(crate) struct HostFunctions {
    pub(crate) function: FunctionId,
    callback: FunctionId,
    /// Copies memory of the program for graphs.
    pub(crate) copy: FunctionId,
    /// Says that a record of an event that processes share is done.
    pub(crate) end_record: FunctionId,
}

impl HostFunctions {
    pub(crate) fn load(driver: &dyn Driver) -> Answer<Self> {
        let module = driver.load(&Image::HostKernels(LIBRARY)).or_code()?;
        let of = |name: &str| driver.function(module, name).or_code().map(|function| function.id);
        Ok(Self {
            function: of(FUNCTION)?,
            callback: of(CALLBACK)?,
            copy: of(COPY)?,
            end_record: of(END_RECORD)?,
        })
    }
}

/// The launch that calls the program.
pub(crate) fn command(function: FunctionId, arguments: &[u8]) -> LaunchCommand<'_> {
    LaunchCommand {
        function,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments,
        declared: None,
        // SAFETY: the kernel touches no memory of the device.
        vouched: unsafe { Vouched::new() },
    }
}

/// The packed arguments of such a launch.
pub(crate) fn pack<const COUNT: usize>(words: [usize; COUNT]) -> Vec<u8> {
    words.iter().flat_map(|word| (*word as u64).to_le_bytes()).collect()
}

driver_api! {
    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz (stream: RawHandle, function: HostFunction, data: usize) {
        let state = state()?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        let (context, choice) = chosen(state, stream)?;
        let below = state.device(context.device as c_int)?.host_functions()?.function;
        let arguments = pack([function as usize, data]);
        context.order()?.get()?.submit(&choice, &Command::Launch(command(below, &arguments)))
    }

    fn cuStreamAddCallback | cuStreamAddCallback_ptsz (stream: RawHandle, callback: StreamCallback, data: usize, flags: c_uint) {
        let state = state()?;
        let callback = callback.ok_or(Code::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (context, choice) = chosen(state, stream)?;
        let below = state.device(context.device as c_int)?.host_functions()?.callback;
        let arguments = pack([callback as usize, stream, data]);
        let mut order = context.order()?;
        // A graph has no callbacks.
        order.get()?.refuse_capture(&choice)?;
        order.get()?.submit(&choice, &Command::Launch(command(below, &arguments)))
    }
}
