//! Splits a sequence into submissions: a loop ends a part, because the host decides whether it continues.
//!
//! The first turn of a loop is recorded with what comes before it. Further turns are the same work again: a few of them are recorded in place,
//! many are submitted in batches, and where a flag decides, the host looks at it between two batches.

use kiln_ir::Type;
use kiln_runtime::internal::RecordedWork;
use kiln_runtime::{GpuRef, GraphBuilder, NodeId, Output, Result};

use super::run_on_device_buffers::Placed;
use crate::dispatch_config::Converge;
use crate::error::ProgramError;

/// One submission, and the loop whose first turn is its end.
pub(crate) struct Part {
    pub(crate) builder: GraphBuilder,
    pub(crate) again: Option<Again>,
}

/// The turns of a loop behind the first one.
pub(crate) struct Again {
    pub(crate) works: RecordedWork,
    /// How many there are, or how many there may be.
    pub(crate) turns: u64,
    /// Programs that run in one.
    pub(crate) programs: u64,
    /// Where programs of the loop say that they trapped.
    pub(crate) statuses: Vec<(String, GpuRef<u8>)>,
    pub(crate) until: Option<Until>,
}

/// What ends a loop.
pub(crate) struct Until {
    pub(crate) program: String,
    pub(crate) flag: GpuRef<u8>,
    /// The flag as the first turn left it.
    pub(crate) look: Output<u8>,
}

/// The first turn of a loop as it is recorded.
#[derive(Default)]
pub(crate) struct FirstTurn<'a> {
    /// What is done again in each further turn; what only places buffers is not among it.
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) placed: Vec<Placed<'a>>,
    pub(crate) programs: u64,
}

/// The flag of a loop among the buffers of its program.
pub(crate) fn find_flag(placed: &Placed<'_>, converge: &Converge) -> Result<GpuRef<u8>> {
    let buffers = &placed.fitting.buffers;
    let Some(at) = buffers.iter().position(|binding| binding.name == converge.flag) else {
        let known: Vec<&str> = buffers.iter().map(|binding| binding.name.as_str()).collect();
        let (what, name) = ("buffer", converge.flag.clone());
        return Err(ProgramError::Unknown { what, name, known: known.join(", ") }.into());
    };
    let binding = &buffers[at];
    if binding.element == Type::U32 && binding.length == 1 && binding.role.is_writable() {
        Ok(placed.buffers[at].clone())
    } else {
        let why = "its flag must be a buffer of one u32 that the program writes";
        Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into())
    }
}
