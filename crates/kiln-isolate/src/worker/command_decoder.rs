//! Decodes commands of the client into commands of the `Driver` trait.

use kiln_driver::{
    Base, Command, DeclaredSpan, DevicePlace, Error, LaunchCommand, MemoryPart, PartLabel, Place, Result,
    Vouched,
};

use super::object_table::{ObjectTable, find};
use crate::protocol::wire::{WireCommand, WireLaunch, WirePart, WirePlace};

const CALL: &str = "submit";

/// The spans that a command declares.
pub(super) fn declared(command: &WireCommand<'_>) -> Result<Option<Vec<DeclaredSpan>>> {
    let WireCommand::Launch(launch) = command else { return Ok(None) };
    launch.declared().map_err(|malformed| Error::invalid(CALL, malformed.what, "declare spans as they are"))
}

impl ObjectTable {
    /// The command with the driver's handles, and the spans that were read from it. Signals go another way, because their tickets are
    /// recorded.
    pub(super) fn command<'a>(
        &self,
        command: &WireCommand<'a>,
        declared: Option<&'a [DeclaredSpan]>,
    ) -> Result<Command<'a>> {
        Ok(match *command {
            WireCommand::Copy { from, to, bytes } => {
                Command::Copy { from: self.place(from)?, to: self.place(to)?, bytes }
            }
            WireCommand::Fill { to, pattern, count } => {
                let Place::Device(to) = self.place(to)? else {
                    return Err(super::object_table::unknown(CALL, 0));
                };
                Command::Fill { to, pattern, count }
            }
            WireCommand::Launch(launch) => {
                Command::Launch(LaunchCommand { declared, ..self.launch(&launch)? })
            }
            WireCommand::Signal { event, .. } => Command::Signal(find(&self.events, event, CALL)?.id),
            WireCommand::Wait { event } => Command::Wait(find(&self.events, event, CALL)?.id),
            WireCommand::Graph { graph } => Command::Graph(*find(&self.graphs, graph, CALL)?),
        })
    }

    /// A block that begins, with the driver's handles.
    pub(super) fn part(&self, part: &WirePart<'_>) -> Result<MemoryPart> {
        let Place::Device(place) = self.place(part.place)? else {
            return Err(super::object_table::unknown("allocate", 0));
        };
        let stream = part.stream.map(|stream| find(&self.streams, stream, "allocate").map(|entry| entry.id));
        let label = PartLabel::new(part.label);
        Ok(MemoryPart { place, bytes: part.bytes, stream: stream.transpose()?, kind: part.kind, label })
    }

    fn place(&self, place: WirePlace) -> Result<Place> {
        Ok(match place {
            WirePlace::Memory { id, offset } => {
                let base = Base::Memory(*find(&self.memory, id, CALL)?);
                Place::Device(DevicePlace { base, offset })
            }
            WirePlace::Reservation { id, offset } => {
                let base = Base::Reservation(*find(&self.reservations, id, CALL)?);
                Place::Device(DevicePlace { base, offset })
            }
            WirePlace::Host { id, offset } => {
                Place::Host { block: find(&self.hosts, id, CALL)?.id(), offset }
            }
        })
    }

    fn launch<'a>(&self, launch: &WireLaunch<'a>) -> Result<LaunchCommand<'a>> {
        Ok(LaunchCommand {
            function: *find(&self.functions, launch.function, CALL)?,
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            cooperative: launch.cooperative,
            arguments: launch.arguments,
            declared: None,
            // SAFETY: a launch gets into the ring only through the client's `submit` or its graphs, which take a `Launch`
            // that its caller vouched for. The memory it names is mapped here at the addresses the client was told, and
            // is freed here only at the client's request, in the order of the same ring.
            vouched: unsafe { Vouched::new() },
        })
    }
}
