//! Initialisation, versions, and calls that change nothing here.

use std::ffi::{c_char, c_int, c_uint, c_void};

use kiln_driver::Code;

use crate::caller_memory::Out;
use crate::calls::backend::API_VERSION;
use crate::calls::process_state::{current, initialize, state};
use crate::records;

driver_api! {
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        initialize()?;
        if state()?.devices.is_empty() { Err(Code::NO_DEVICE) } else { Ok(()) }
    }

    fn cuDriverGetVersion(version: Out<c_int>) {
        version.set((API_VERSION.major * 1000 + API_VERSION.minor * 10) as c_int)
    }

    fn cuGetExportTable(table: Out<*const c_void>, _id: *const c_void) {
        table.set_if_wanted(std::ptr::null());
        records::note_once(
            "cuGetExportTable",
            "the program asked for private tables of NVIDIA's driver, as the runtime library libcudart does; kiln has the documented driver API \
             alone, so such programs cannot run with it",
        );
        Err(Code::NOT_SUPPORTED)
    }

    fn cuProfilerStart() {
        current().map(|_| ())
    }

    fn cuProfilerStop() {
        current().map(|_| ())
    }

    fn cuProfilerInitialize(_configuration: *const c_char, _output: *const c_char, _mode: c_uint) {
        Err(Code::NOT_SUPPORTED)
    }
}
