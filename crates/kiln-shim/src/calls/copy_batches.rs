//! Lists of copies by one call.

use std::ffi::c_uint;

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::copies::line_between;
use crate::calls::process_state::state;
use crate::calls::streams::is_default;
use crate::handle_table::RawHandle;

/// The values of `CUmemcpySrcAccessOrder`: in the order of the stream, during the call, at any time.
const ORDERS: std::ops::RangeInclusive<c_uint> = 1..=3;
/// The only flag: that copies may overlap with other work.
const PREFER_OVERLAP: c_uint = 1;

/// The structure `CUmemcpyAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    order: c_uint,
    places: [u32; 4],
    flags: c_uint,
}

/// What a call gives for its list.
struct Batch {
    to: In<u64>,
    from: In<u64>,
    bytes: In<usize>,
    count: usize,
    attributes: In<Attributes>,
    /// The first copy that has each of the attributes.
    begins: In<usize>,
    kinds: usize,
}

impl Batch {
    /// Refuses lists that are not whole, before anything is copied.
    fn check(&self) -> Answer {
        if self.count == 0 || self.kinds == 0 || self.kinds > self.count {
            return Err(Code::INVALID_VALUE);
        }
        let mut before = None;
        for kind in 0..self.kinds {
            let Attributes { order, flags, .. } = self.attributes.at(kind)?;
            let begin = self.begins.at(kind)?;
            let is_next = before.map_or(begin == 0, |before| begin > before);
            if !ORDERS.contains(&order) || flags & !PREFER_OVERLAP != 0 || !is_next || begin >= self.count {
                return Err(Code::INVALID_VALUE);
            }
            before = Some(begin);
        }
        for copy in 0..self.count {
            self.to.at(copy)?;
            self.from.at(copy)?;
            if self.bytes.at(copy)? == 0 {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Copies, and says which copy failed. Copies run in the order of the list, which a program cannot rely on.
    fn run(&self, stream: RawHandle, failed: Out<usize>) -> Answer {
        failed.set_if_wanted(usize::MAX);
        state()?;
        if is_default(stream) {
            return Err(Code::INVALID_VALUE);
        }
        self.check()?;
        for copy in 0..self.count {
            let copied = line_between(self.to.at(copy)?, self.from.at(copy)?, self.bytes.at(copy)?, stream);
            if copied.is_err() {
                failed.set_if_wanted(copy);
                return copied;
            }
        }
        Ok(())
    }
}

driver_api! {
    fn cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz (
        to: In<u64>, from: In<u64>, bytes: In<usize>, count: usize,
        attributes: In<Attributes>, begins: In<usize>, kinds: usize, failed: Out<usize>, stream: RawHandle
    ) {
        Batch { to, from, bytes, count, attributes, begins, kinds }.run(stream, failed)
    }

    fn cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz (
        to: In<u64>, from: In<u64>, bytes: In<usize>, count: usize,
        attributes: In<Attributes>, begins: In<usize>, kinds: usize, stream: RawHandle
    ) {
        Batch { to, from, bytes, count, attributes, begins, kinds }.run(stream, Out::at(std::ptr::null_mut()))
    }
}
