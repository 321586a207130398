//! The first forms of functions, with addresses and lengths of 32 bits.
//!
//! A context of NVIDIA's driver of today has longer addresses, and these functions answer that there is no context for them, with zeros for results. So it is here.
//! Programs that look all functions up by name, or were built against a header of CUDA 3.1, find them.

use std::ffi::c_int;

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::Out;
use crate::calls::process_state::state;

/// The CUDA version that has them first.
const SINCE: c_int = 2000;

/// A function of the list, with its address.
type Short = (&'static str, unsafe extern "C" fn() -> c_int);

/// The address of a function, for programs of a version that has it.
pub(super) fn find(name: &str, version: c_int) -> Option<usize> {
    let found = SHORT.iter().find(|short| version >= SINCE && short.0 == name);
    found.map(|short| short.1 as usize)
}

/// What all of them answer, with a zero in so many results of a kind.
fn refuse<T: Copy + Default>(results: &[Out<T>]) -> Answer {
    state()?;
    results.iter().for_each(|result| result.set_if_wanted(T::default()));
    Err(Code::INVALID_CONTEXT)
}

macro_rules! short_addresses {
    (one: $($one:ident)* ; two: $($two:ident)* ; pointer: $($pointer:ident)* ; none: $($none:ident)* ;) => {
        driver_api! {
            $(fn $one(out: Out<u32>) { refuse(&[out]) })*
            $(fn $two(out: Out<u32>, other: Out<u32>) { refuse(&[out, other]) })*
            $(fn $pointer(out: Out<usize>) { refuse(&[out]) })*
            $(fn $none() { refuse::<u32>(&[]) })*

            fn cuDeviceTotalMem(out: Out<u32>, device: c_int) {
                let memory = state()?.device(device)?.driver.info().total_memory_bytes;
                out.set(u32::try_from(memory).unwrap_or(u32::MAX))
            }
        }

        /// The functions as symbols; the list needs their addresses alone.
        mod symbols {
            use std::ffi::c_int;

            unsafe extern "C" {
                pub(super) fn cuDeviceTotalMem() -> c_int;
                $(pub(super) fn $one() -> c_int;)*
                $(pub(super) fn $two() -> c_int;)*
                $(pub(super) fn $pointer() -> c_int;)*
                $(pub(super) fn $none() -> c_int;)*
            }
        }

        /// All of them.
        static SHORT: &[Short] = &[
            ("cuDeviceTotalMem", symbols::cuDeviceTotalMem),
            $((stringify!($one), symbols::$one),)*
            $((stringify!($two), symbols::$two),)*
            $((stringify!($pointer), symbols::$pointer),)*
            $((stringify!($none), symbols::$none),)*
        ];
    };
}

short_addresses! {
    one: cuMemAlloc cuMemHostGetDevicePointer;
    two: cuMemGetInfo cuMemAllocPitch cuModuleGetGlobal cuMemGetAddressRange;
    pointer: cuMemAllocHost cuArrayCreate cuArray3DCreate;
    none: cuMemFree cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyDtoA cuMemcpyAtoD cuMemcpyHtoA cuMemcpyAtoH cuMemcpyAtoA cuMemcpyHtoAAsync cuMemcpyAtoHAsync
        cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy3D cuMemcpy2DAsync cuMemcpy3DAsync cuMemsetD8 cuMemsetD16
        cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32 cuArrayGetDescriptor cuArray3DGetDescriptor;
}
