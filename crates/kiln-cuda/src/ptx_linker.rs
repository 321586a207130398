//! Machine code of PTX, by the linker inside the driver.
//!
//! A loaded module does not give its machine code back. PTX whose machine code is to be kept therefore goes through
//! the driver's linker first, and what comes out is loaded.

use std::ffi::{c_char, c_uint, c_void};

use cudarc::driver::sys;

use crate::image_check::Checked;
use crate::libcuda_symbols::{Api, Status};

/// The name of the input in the linker's messages.
const INPUT_NAME: &std::ffi::CStr = c"kiln.ptx";

/// The machine code of PTX for the device of the current context. None where the driver has no linker or its linker
/// does not take the text: loading the text as it is then says why, or works.
pub(crate) fn machine_code(api: &Api, ptx: &Checked) -> Option<Vec<u8>> {
    let linker = Linker::new(api)?;
    linker.add(ptx)?;
    linker.complete()
}

/// A link in progress; dropping it gives up what the driver holds for it.
struct Linker {
    state: sys::CUlinkState,
    add: AddData,
    complete: unsafe extern "C" fn(sys::CUlinkState, *mut *mut c_void, *mut usize) -> Status,
    destroy: unsafe extern "C" fn(sys::CUlinkState) -> Status,
}

type AddData = unsafe extern "C" fn(
    sys::CUlinkState,
    c_uint,
    *mut c_void,
    usize,
    *const c_char,
    c_uint,
    *mut c_uint,
    *mut *mut c_void,
) -> Status;

impl Linker {
    fn new(api: &Api) -> Option<Self> {
        let (create, add) = (api.link_create?, api.link_add?);
        let (complete, destroy) = (api.link_complete?, api.link_destroy?);
        let mut state = std::ptr::null_mut();
        // SAFETY: the out-parameter is a live local; no options are given, so their lists may be null.
        let status = unsafe { create(0, std::ptr::null_mut(), std::ptr::null_mut(), &mut state) };
        (status == 0 && !state.is_null()).then_some(Self { state, add, complete, destroy })
    }

    fn add(&self, ptx: &Checked) -> Option<()> {
        let (start, bytes) = (ptx.start().cast_mut().cast::<c_void>(), ptx.len());
        let kind = sys::CUjitInputType::CU_JIT_INPUT_PTX as c_uint;
        // SAFETY: the text and its name outlive the call, end in a zero, and are not written by the driver although
        // its declaration does not say so; no options are given.
        let status = unsafe {
            (self.add)(
                self.state,
                kind,
                start,
                bytes,
                INPUT_NAME.as_ptr(),
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        (status == 0).then_some(())
    }

    fn complete(&self) -> Option<Vec<u8>> {
        let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the out-parameters are live locals and the state is one that `new` made.
        let status = unsafe { (self.complete)(self.state, &mut start, &mut bytes) };
        if status != 0 || start.is_null() || bytes == 0 {
            return None;
        }
        let mut code = Vec::new();
        code.try_reserve_exact(bytes).ok()?;
        // SAFETY: the driver says that so many bytes lie there; they stay until the state is destroyed, which is when
        // `self` is dropped.
        code.extend_from_slice(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes) });
        Some(code)
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: the state was made by `new` and is destroyed only here.
        let _ = unsafe { (self.destroy)(self.state) };
    }
}
