//! Linking: several PTX texts become one.
//!
//! The result of a link is PTX, too, which a load takes; programs do not look into it. Of objects and archives the PTX of their fat binaries is taken. In the place
//! of NVIDIA's archive of the device runtime there are its functions for grids of a cooperative launch.

use std::borrow::Cow;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out, Text, fetch_slice};
use crate::calls::joined_ptx::{functions, join};
use crate::calls::process_state::{current, state};
use crate::handle_table::RawHandle;
use crate::image::{check_header, no_ptx, ptx_of_bytes, ptx_of_object};
use crate::records;

/// Input of a link; more is refused.
const MOST_BYTES: usize = 1 << 30;

/// A link that is under way.
#[derive(Default)]
pub(crate) struct Link {
    texts: Mutex<Vec<String>>,
    /// Whether the device runtime is part of it.
    has_device_runtime: AtomicBool,
    /// The result, which lives as long as the link.
    linked: Mutex<Option<Box<[u8]>>>,
}

fn link(handle: RawHandle) -> Answer<Arc<Link>> {
    state()?.links.get(handle).ok_or(Code::INVALID_HANDLE)
}

fn add(handle: RawHandle, kind: c_uint, bytes: &[u8]) -> Answer {
    use sys::CUjitInputType as I;
    let link = link(handle)?;
    let have = state()?.architecture();
    let is = |known: I| known as c_uint == kind;
    let texts = if is(I::CU_JIT_INPUT_PTX) || is(I::CU_JIT_INPUT_FATBINARY) {
        vec![ptx_of_bytes(bytes, have)?]
    } else if is(I::CU_JIT_INPUT_OBJECT) || is(I::CU_JIT_INPUT_LIBRARY) {
        let is_runtime = bytes.windows(DEVICE_RUNTIME.len()).any(|window| window == DEVICE_RUNTIME);
        let texts = if is_runtime { Vec::new() } else { ptx_of_object(bytes, have) };
        if texts.is_empty() && !is_runtime {
            return Err(no_ptx("an object or a library without PTX"));
        }
        link.has_device_runtime.fetch_or(is_runtime, Ordering::Relaxed);
        texts
    } else {
        let is_known = kind < I::CU_JIT_NUM_INPUT_TYPES as c_uint;
        return Err(if is_known { Code::NO_BINARY_FOR_GPU } else { Code::INVALID_VALUE });
    };
    let device = current()?.1;
    for text in &texts {
        check_header(text, device.driver.info())?;
    }
    link.texts.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
    Ok(())
}

/// The name of the object in the archive of the device runtime.
const DEVICE_RUNTIME: &[u8] = b"cuda_device_runtime.o";
/// What is there of the device runtime.
const COOPERATIVE_GROUPS: &str = include_str!("cooperative_groups.ptx");
/// The function that sets a condition, which the driver has without the device runtime.
const SET_CONDITION: &str = "cudaGraphSetConditional";
const CONDITION: &str = include_str!("condition.ptx");

/// Functions that devices have without a definition in PTX.
const OF_THE_SYSTEM: [&str; 7] = [
    "vprintf",
    "malloc",
    "free",
    "__assertfail",
    "cudaGetParameterBufferV2",
    "cudaLaunchDeviceV2",
    SET_CONDITION,
];

/// A text to load, with a definition of what the driver has and the devices below do not.
pub(crate) fn with_functions_of_the_driver(ptx: &str) -> Cow<'_, str> {
    let is_missing = ptx.contains(SET_CONDITION) && missing_functions(ptx).contains(&SET_CONDITION);
    if is_missing { Cow::Owned(format!("{ptx}{CONDITION}")) } else { Cow::Borrowed(ptx) }
}

/// Functions that the text calls, that it does not define, and that no device has.
fn unresolved(text: &str) -> Vec<&str> {
    let mut missing = missing_functions(text);
    missing.retain(|name| !OF_THE_SYSTEM.contains(name));
    missing
}

/// Functions that the text calls and does not define.
fn missing_functions(text: &str) -> Vec<&str> {
    let functions = functions(text);
    let is_defined = |name: &str| functions.iter().any(|other| other.is_defined && other.name == name);
    let declared = functions.iter().filter(|function| !function.is_defined);
    declared.map(|function| function.name).filter(|name| !is_defined(name)).collect()
}

/// Whether a function is one of those for grids.
fn is_of_grids(name: &str) -> bool {
    matches!(name, "cudaCGGetIntrinsicHandle" | "cudaCGSynchronize")
}

/// An error if functions are missing.
fn refuse_missing(names: &[&str]) -> Answer {
    let Some(first) = names.first() else { return Ok(()) };
    let text = format!("a link was not completed: nothing defines `{first}`");
    records::note_once(&text, &text);
    Err(Code::INVALID_SOURCE)
}

driver_api! {
    fn cuLinkCreate_v2(_count: c_uint, _keys: In<c_uint>, _values: In<*mut c_void>, out: Out<RawHandle>) = cuLinkCreate {
        let (state, _) = current()?;
        out.check()?;
        out.set(state.links.insert(Arc::new(Link::default())).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuLinkAddData_v2(
        handle: RawHandle,
        kind: c_uint,
        data: usize,
        bytes: usize,
        _name: Text,
        _count: c_uint,
        _keys: In<c_uint>,
        _values: In<*mut c_void>
    ) = cuLinkAddData {
        link(handle)?;
        if bytes == 0 || bytes > MOST_BYTES {
            return Err(Code::INVALID_VALUE);
        }
        let mut input = vec![0; bytes];
        fetch_slice(data, &mut input)?;
        add(handle, kind, &input)
    }

    fn cuLinkAddFile_v2(
        handle: RawHandle, kind: c_uint, path: Text, _count: c_uint, _keys: In<c_uint>, _values: In<*mut c_void>
    ) = cuLinkAddFile {
        link(handle)?;
        let input = std::fs::read(path.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
        add(handle, kind, &input)
    }

    fn cuLinkComplete(handle: RawHandle, out: Out<*const c_void>, bytes: Out<usize>) {
        let link = link(handle)?;
        out.check()?;
        let mut linked = link.linked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = join(&link.texts.lock().unwrap_or_else(PoisonError::into_inner));
        let mut missing = unresolved(&text);
        if link.has_device_runtime.load(Ordering::Relaxed) && missing.iter().any(|name| is_of_grids(name)) {
            missing.retain(|name| !is_of_grids(name));
            refuse_missing(&missing)?;
            text.push_str(COOPERATIVE_GROUPS);
        } else {
            refuse_missing(&missing)?;
        }
        let mut text = text.into_bytes();
        text.push(0);
        let text = linked.insert(text.into_boxed_slice());
        bytes.set_if_wanted(text.len());
        out.set(text.as_ptr().cast())
    }

    fn cuLinkDestroy(handle: RawHandle) {
        state()?.links.remove(handle).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }
}
