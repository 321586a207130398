//! What to change in a kernel because of a finding, and which findings do not say their kind.

use kiln_ptx::exec::ExecFindingKind;

/// Whether the text of a finding does not begin with its kind.
pub(super) fn has_no_kind(kind: &ExecFindingKind) -> bool {
    matches!(
        kind,
        ExecFindingKind::Barrier(_)
            | ExecFindingKind::Deadlock(_)
            | ExecFindingKind::Mask(_)
            | ExecFindingKind::BadOperand(_)
            | ExecFindingKind::ReadOnly(_)
            | ExecFindingKind::Trap
            | ExecFindingKind::StackOverflow(_)
            | ExecFindingKind::BadCall(_)
            | ExecFindingKind::BadFree(_)
    )
}

/// What to change in the kernel, in the words of the library's errors.
pub(super) fn advice(kind: &ExecFindingKind) -> Option<&'static str> {
    match kind {
        ExecFindingKind::Race { .. } | ExecFindingKind::SameValue { .. } => {
            Some("order them: `__syncthreads()` inside a block, a fence and an atomic between blocks")
        }
        ExecFindingKind::OutOfBounds(_) => Some("check indices against the length of the buffer"),
        ExecFindingKind::Barrier(_) | ExecFindingKind::Deadlock(_) => {
            Some("let all threads of the block reach the same barrier")
        }
        _ => None,
    }
}
