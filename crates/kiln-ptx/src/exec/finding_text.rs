//! Parts of the texts of findings.

use std::fmt;

use super::code_location::{CodeSite, Line};
use super::finding::{AccessKind, BadAccess};

pub(super) fn write_uninitialised(
    f: &mut fmt::Formatter<'_>,
    access: &BadAccess,
    read_site: &CodeSite,
) -> fmt::Result {
    let near = &access.near;
    write!(f, "uninitialised: {access} by {}, ", Thread(read_site))?;
    if near.is_empty() { f.write_str("which was never written") } else { write!(f, "of which {near}") }
}

pub(super) fn write_leak(f: &mut fmt::Formatter<'_>, blocks: u64, bytes: u64) -> fmt::Result {
    let (s, were) = if blocks == 1 { ("", "was") } else { ("s", "were") };
    write!(f, "leak: {blocks} block{s} of malloc with {bytes} bytes {were} not freed")
}

pub(super) fn write_pending_copy(
    f: &mut fmt::Formatter<'_>,
    access: &BadAccess,
    copy_site: &CodeSite,
) -> fmt::Result {
    let thread = Thread(copy_site);
    match access.memory {
        "global" => write!(
            f,
            "pending copy: {access}, from where the asynchronous copy by {thread} still reads; wait for the copy first"
        ),
        _ => write!(
            f,
            "pending copy: {access}, where the asynchronous copy by {thread} has not been waited for"
        ),
    }
}

pub(super) fn write_unfinished_copy(
    f: &mut fmt::Formatter<'_>,
    access: &BadAccess,
    is_committed: bool,
) -> fmt::Result {
    let next = match is_committed {
        true => "end with cp.async.bulk.wait_group.read 0",
        false => "end with cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0",
    };
    write!(
        f,
        "pending copy: {access} by an asynchronous copy that its thread does not wait for before the block ends and its shared memory with it: {next}"
    )
}

pub(super) fn write_no_proxy_fence(
    f: &mut fmt::Formatter<'_>,
    access: &BadAccess,
    write_site: &CodeSite,
) -> fmt::Result {
    let thread = Thread(write_site);
    write!(
        f,
        "no proxy fence: {access} through the async proxy, where {thread} wrote, with no `fence.proxy.async` in between"
    )
}

pub(super) fn write_non_coherent(
    f: &mut fmt::Formatter<'_>,
    access: &BadAccess,
    earlier: AccessKind,
    earlier_site: &CodeSite,
) -> fmt::Result {
    let (constant, write) = match access.access {
        AccessKind::Read => ("this", "the other one"),
        _ => ("the other one", "this"),
    };
    write!(
        f,
        "non-coherent read: {access} and the {earlier} by {}: {constant} is a read as a constant, which need not see {write} in the same \
         launch; use a plain load",
        Thread(earlier_site)
    )
}

/// `block (0,0,0) thread (1,0,0) at kernel.cu:12`.
pub(super) struct Thread<'a>(pub(super) &'a CodeSite);

impl fmt::Display for Thread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [x, y, z]) = (self.0.block, self.0.thread);
        write!(f, "block ({bx},{by},{bz}) thread ({x},{y},{z})")?;
        if self.0.function != self.0.kernel {
            write!(f, " in {}", self.0.function)?;
        }
        write!(f, " at {}", Line(self.0))
    }
}
