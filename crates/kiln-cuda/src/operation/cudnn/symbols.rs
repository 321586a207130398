//! The entry points of cuDNN: its backend API, through which graphs of operations are described.

use std::ffi::{c_char, c_void};

use cudarc::driver::sys;

use crate::libraries::LibraryKind;
use crate::operation::symbol_lookup::entry_points;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;

entry_points! {
    /// The entry points of cuDNN.
    DnnApi of LibraryKind::Cudnn => {
        version = "cudnnGetVersion"() -> usize;
        error_string = "cudnnGetErrorString"(i32) -> *const c_char;
        last_error_string = "cudnnGetLastErrorString"(*mut c_char, usize) -> ();
        create = "cudnnCreate"(*mut Handle);
        destroy = "cudnnDestroy"(Handle);
        set_stream = "cudnnSetStream"(Handle, sys::CUstream);
        create_descriptor = "cudnnBackendCreateDescriptor"(i32, *mut Handle);
        destroy_descriptor = "cudnnBackendDestroyDescriptor"(Handle);
        set_attribute = "cudnnBackendSetAttribute"(Handle, i32, i32, i64, In);
        get_attribute = "cudnnBackendGetAttribute"(Handle, i32, i32, i64, *mut i64, Out);
        finalize = "cudnnBackendFinalize"(Handle);
        execute = "cudnnBackendExecute"(Handle, Handle, Handle);
    }
}
