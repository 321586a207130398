//! A communicator of one rank: its collectives are copies, and need no library.

use kiln_runtime::{GpuRef, GraphBuilder, NodeId, Stream, Ticket};

use crate::collective_part::Part;
use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};

/// Queues collectives of a rank that is alone.
pub(crate) fn submit(
    communicator: &DeviceCommunicator,
    parts: &[Part],
    stream: Option<&Stream>,
) -> Result<Ticket> {
    let failed = |source| GroupError::Rank { rank: 0, source };
    let copy = |from: &GpuRef<u8>, to: &GpuRef<u8>| match stream {
        Some(stream) => to.copy_from_on(stream, from).map_err(failed),
        None => to.copy_from(from).map_err(failed),
    };
    let mut last = None;
    for part in parts {
        last = Some(match copied(part) {
            Copied::To { from, to } => copy(from, to)?,
            // The ticket of work that changes nothing is still one of work after what wrote the buffer.
            Copied::InPlace(byte) => copy(&byte?, communicator.scratch())?,
            Copied::Nothing => match stream {
                Some(stream) => communicator.scratch().fill_on(stream, 0).map_err(failed)?,
                None => communicator.scratch().fill(0).map_err(failed)?,
            },
        });
    }
    last.ok_or_else(no_parts)
}

/// Records collectives of a rank that is alone. Returns the last node.
pub(crate) fn record(
    communicator: &DeviceCommunicator,
    parts: &[Part],
    graph: &mut GraphBuilder,
) -> Result<NodeId> {
    let failed = |source| GroupError::Rank { rank: 0, source };
    let mut last = None;
    for part in parts {
        last = Some(match copied(part) {
            Copied::To { from, to } => graph.copy(from, to).map_err(failed)?,
            Copied::InPlace(byte) => graph.copy(&byte?, communicator.scratch()).map_err(failed)?,
            Copied::Nothing => graph.fill(communicator.scratch(), 0).map_err(failed)?,
        });
    }
    last.ok_or_else(no_parts)
}

/// What is left of a collective of one rank.
enum Copied<'p> {
    To {
        from: &'p GpuRef<u8>,
        to: &'p GpuRef<u8>,
    },
    /// The buffer stays as it is; its first byte.
    InPlace(Result<GpuRef<u8>>),
    Nothing,
}

fn copied(part: &Part) -> Copied<'_> {
    match part.buffers.both() {
        (Some(from), Some(to)) => Copied::To { from, to },
        (Some(buffer), None)
            if part.collective.kind() != kiln_operation::CollectiveKind::Barrier && !buffer.is_empty() =>
        {
            Copied::InPlace(buffer.view(..1).map_err(|source| GroupError::Rank { rank: 0, source }))
        }
        _ => Copied::Nothing,
    }
}

fn no_parts() -> GroupError {
    GroupError::Collective { what: "a group of no collectives".into(), next: "put a collective into it" }
}
