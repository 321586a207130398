//! Which findings do not say their kind.

use kiln_ptx::exec::ExecFindingKind;

/// Whether the text of a finding does not begin with its kind.
pub(super) fn has_no_kind(kind: &ExecFindingKind) -> bool {
    matches!(
        kind,
        ExecFindingKind::Barrier(_)
            | ExecFindingKind::Mask(_)
            | ExecFindingKind::Warpgroup(_)
            | ExecFindingKind::BadOperand(_)
            | ExecFindingKind::ReadOnly(_)
            | ExecFindingKind::Trap
            | ExecFindingKind::BadCall(_)
            | ExecFindingKind::BadFree(_)
    )
}
