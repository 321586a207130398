//! What a launch is called in a recording.

use kiln_driver::Dim3;
use kiln_trace::{LaunchSize, SubmissionKind};

use super::kernel::Kernel;
use super::shape::Shape;
use crate::runtime::WorkLabel;

/// What a launch is called in a recording. The operation of a library has no shape: the library chooses that of its kernels.
#[inline]
pub(super) fn labelled(kernel: &Kernel, shape: &Shape) -> WorkLabel {
    if kernel.is_library() {
        return WorkLabel::new(SubmissionKind::Library, kernel.recorded_name(), 0);
    }
    let size = Some(launch_size(shape));
    WorkLabel { size, ..WorkLabel::new(SubmissionKind::Kernel, kernel.recorded_name(), 0) }
}

/// Its grid, its blocks and their shared memory.
#[inline]
pub(super) fn launch_size(shape: &Shape) -> LaunchSize {
    let extents = |dim: Dim3| [dim.x, dim.y, dim.z];
    let (grid, block) = (extents(shape.grid), extents(shape.block));
    LaunchSize { grid, block, shared_bytes: shape.dynamic_shared_bytes }
}
