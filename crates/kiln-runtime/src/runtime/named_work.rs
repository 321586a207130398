//! Work of a call that has a name: a crate above says which call, at which line of the program, and on which operands.

use std::ops::Range;
use std::panic::Location;

use super::DeviceRuntime;
use crate::findings::named_call::{CallScope, begin};

/// What this thread submits to a runtime until the answer is dropped belongs to the named call, or to one around it: findings are told with it. Operands are asked
/// for only if the device checks what work does: names, and the addresses of their bytes.
#[inline]
pub fn in_call(
    gpu: &DeviceRuntime,
    name: &'static str,
    line: &'static Location<'static>,
    operands: impl FnOnce() -> Vec<(&'static str, Range<u64>)>,
) -> CallScope {
    match gpu.inner().findings() {
        None => CallScope::unnoted(),
        Some(_) => begin(name, line, operands),
    }
}
