//! `cuGetProcAddress`: functions by name and version.
//!
//! A name without a suffix stands for the newest form of the function that the version has: `cuMemAlloc` of 3.2 and later is `cuMemAlloc_v2`,
//! `cuCtxGetDevice` before 13.0 is the form without a suffix.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::api_table::{ENTRY_POINTS, EntryPoint};
use crate::boundary::Answer;
use crate::caller_memory::{Out, Text};
use crate::calls::short_addresses;

const PER_THREAD: u64 = sys::CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM as u64;
const ALL_FLAGS: u64 = PER_THREAD | sys::CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_LEGACY_STREAM as u64;

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Entry(usize),
    Unknown,
    TooOld,
}

/// The form of a function that a version has.
fn search(name: &str, version: c_int, per_thread: bool) -> Found {
    let forms = || ENTRY_POINTS.iter().filter(|entry| base(entry.name) == name);
    let newest = forms().filter(|entry| entry.since <= version).max_by_key(|entry| (entry.since, entry.name));
    match newest {
        None if forms().next().is_none() => Found::Unknown,
        None => short_addresses::find(name, version).map_or(Found::TooOld, Found::Entry),
        Some(entry) if per_thread => Found::Entry(per_thread_form(entry).unwrap_or(entry).address()),
        Some(entry) => Found::Entry(entry.address()),
    }
}

fn per_thread_form(entry: &EntryPoint) -> Option<&'static EntryPoint> {
    let is_form = |other: &&EntryPoint| {
        let rest = other.name.strip_prefix(entry.name);
        matches!(rest, Some("_ptsz" | "_ptds"))
    };
    ENTRY_POINTS.iter().find(is_form)
}

/// The name without the suffix of its form. The forms with a thread's stream are found by a flag and have no base name.
fn base(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, digits)) if digits.bytes().all(|digit| digit.is_ascii_digit()) => base,
        _ => name,
    }
}

/// A function that is not there is no error: the address is null, and the status says why.
fn missing(status: Out<c_uint>, why: sys::CUdriverProcAddressQueryResult) -> Answer {
    status.set_if_wanted(why as c_uint);
    Ok(())
}

fn look_up(name: Text, out: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_uint>) -> Answer {
    use sys::CUdriverProcAddressQueryResult as Q;
    out.check()?;
    out.set(std::ptr::null_mut())?;
    if flags & !ALL_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    match search(&name.get()?, version, flags & PER_THREAD != 0) {
        Found::Entry(address) => {
            status.set_if_wanted(Q::CU_GET_PROC_ADDRESS_SUCCESS as c_uint);
            out.set(address as *mut c_void)
        }
        Found::Unknown => missing(status, Q::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
        Found::TooOld => missing(status, Q::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
    }
}

driver_api! {
    fn cuGetProcAddress(name: Text, out: Out<*mut c_void>, version: c_int, flags: u64) {
        look_up(name, out, version, flags, Out::at(std::ptr::null_mut()))
    }

    fn cuGetProcAddress_v2(name: Text, out: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_uint>) {
        look_up(name, out, version, flags, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Found {
        Found::Entry(ENTRY_POINTS.iter().find(|entry| entry.name == name).unwrap().address())
    }

    #[test]
    fn a_version_selects_the_form() {
        assert_eq!(search("cuCtxGetDevice", 2000, false), of("cuCtxGetDevice"));
        assert_eq!(search("cuCtxGetDevice", 12_090, false), of("cuCtxGetDevice"));
        assert_eq!(search("cuCtxGetDevice", 13_000, false), of("cuCtxGetDevice_v2"));
        assert_eq!(search("cuMemAlloc", 3020, false), of("cuMemAlloc_v2"));
        let first = short_addresses::find("cuMemAlloc", 3010).unwrap();
        assert_eq!(search("cuMemAlloc", 3010, false), Found::Entry(first));
        assert_eq!(search("cuMemAlloc", 1000, false), Found::TooOld);
        assert_eq!(search("cuCtxCreate", 4000, false), of("cuCtxCreate_v2"));
        assert_eq!(search("cuCtxCreate", 11_040, false), of("cuCtxCreate_v3"));
        assert_eq!(search("cuCtxCreate", 13_000, false), of("cuCtxCreate_v4"));
        assert_eq!(search("cuEventElapsedTime", 12_040, false), of("cuEventElapsedTime"));
        assert_eq!(search("cuEventElapsedTime", 12_080, false), of("cuEventElapsedTime_v2"));
        assert_eq!(search("cuGetProcAddress", 11_030, false), of("cuGetProcAddress"));
        assert_eq!(search("cuGetProcAddress", 12_000, false), of("cuGetProcAddress_v2"));
        assert_eq!(search("cuNothing", 13_000, false), Found::Unknown);
        // A program that asks for a version before the function gets none, and takes its way for older drivers.
        for (name, before, since) in [
            ("cuGraphCreate", 9020, 10_000),
            ("cuMemAllocAsync", 11_010, 11_020),
            ("cuLaunchKernel", 3020, 4000),
            ("cuStreamWaitValue32", 7050, 8000),
            ("cuProfilerStart", 3020, 4000),
        ] {
            assert_eq!(search(name, before, false), Found::TooOld, "{name}");
            assert!(matches!(search(name, since, false), Found::Entry(_)), "{name}");
        }
        // Programs ask with the versions of `cudaTypedefs.h`, which are before those of some bindings.
        assert_eq!(search("cuLaunchKernelEx", 11_060, false), of("cuLaunchKernelEx"));
        assert_eq!(search("cuLaunchKernelEx", 11_060, true), of("cuLaunchKernelEx_ptsz"));
        assert_eq!(search("cuOccupancyMaxActiveClusters", 11_070, false), of("cuOccupancyMaxActiveClusters"));
    }

    #[test]
    fn a_flag_selects_the_stream_of_the_thread() {
        assert_eq!(search("cuLaunchKernel", 13_000, true), of("cuLaunchKernel_ptsz"));
        assert_eq!(search("cuMemcpyHtoD", 13_000, true), of("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(search("cuMemAlloc", 13_000, true), of("cuMemAlloc_v2"));
    }
}
