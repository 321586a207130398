//! One operation that is loaded.

use kiln_operation::Operation;
use kiln_runtime::Kernel;
use smallvec::SmallVec;

use crate::operand_fit::OperandFit;

/// An operation that passed its checks and is loaded.
// In this order: every call reads what comes before the operation.
#[repr(C)]
#[derive(Clone)]
pub(crate) struct LoadedOperation {
    pub(crate) kernel: Kernel,
    pub(crate) workspace_bytes: u64,
    pub(crate) operands: SmallVec<[OperandFit; INLINE_OPERANDS]>,
    /// What is loaded: the operation that was asked for, or the one that replaced it.
    pub(crate) operation: Operation,
}

/// Operands beside the operation; few have more.
const INLINE_OPERANDS: usize = 5;
