//! Checks commands and encodes them. What a driver would refuse is refused here, at the call.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use kiln_driver::{
    Base, Command, DeclaredSpan, DevicePlace, Dim3, Error, LaunchCommand, Pinned, Place, Refusal, Result,
    kind,
};

use super::connection::Link;
use super::objects::{Block, Host, Kernel, Range, check_range};
use super::proxy::DeviceProxy;
use crate::protocol::wire::{Ask, Take, WireCommand, WireLaunch, WirePlace, put_declared};
use std::sync::Arc;

/// The call that queues a command. Others encode nodes of graphs.
pub(super) const SUBMIT: &str = "submit";

/// A kernel's arguments may end in padding up to this alignment.
const ARGUMENT_ALIGNMENT: usize = 16;

/// Spans that one launch can declare, so that it fits into a message with its arguments.
const MAX_DECLARED_SPANS: usize = 8192;

/// Keeps the memory of a place from being destroyed until the command is in the ring.
#[allow(dead_code, reason = "held, not read")]
pub(super) enum Hold<'a> {
    Memory(Pinned<'a, kind::Memory, Block>),
    Reservation(Pinned<'a, kind::Reservation, Arc<Range>>),
    Host(Pinned<'a, kind::Host, Host>),
}

impl DeviceProxy {
    /// Checks a command, encodes it and passes it on. Everything it names is held meanwhile.
    pub(crate) fn with_command<R>(
        &self,
        call: &'static str,
        link: &Link,
        command: &Command<'_>,
        then: impl FnOnce(&WireCommand<'_>) -> Result<R>,
    ) -> Result<R> {
        match command {
            Command::Copy { from, to, bytes } => {
                let (from, _held_from, _) = self.place(call, from, *bytes)?;
                let (to, _held_to, _) = self.place(call, to, *bytes)?;
                if overlap(from, to, *bytes) {
                    let what = "the two ranges of a copy overlap";
                    return Err(Error::invalid(call, what, "copy through another buffer"));
                }
                then(&WireCommand::Copy { from, to, bytes: *bytes })
            }
            Command::Fill { to, pattern, count } => {
                let bytes = pattern.bytes().checked_mul(*count);
                let Some(bytes) = bytes else {
                    let what = format!("{count} elements of {} bytes", pattern.bytes());
                    return Err(Error::invalid(call, what, "fill less than 2^64 bytes"));
                };
                let (to, _held, address) = self.place(call, &Place::Device(*to), bytes)?;
                if !address.is_multiple_of(pattern.bytes()) {
                    let what = format!("a fill of {}-byte elements at {address:#x}", pattern.bytes());
                    return Err(Error::invalid(call, what, "align the place to the pattern"));
                }
                then(&WireCommand::Fill { to, pattern: *pattern, count: *count })
            }
            Command::Launch(launch) => {
                let kernel =
                    self.objects.functions.pin(launch.function).map_err(|error| error.seen_by(call))?;
                if kernel.aborts() {
                    self.check_arguments(call, &kernel, launch.arguments.len())?;
                    if call == SUBMIT {
                        // First, and beside the ring: the worker may read the ring only once this is done.
                        link.abort(kernel.code.remote.id);
                    }
                } else {
                    self.check_launch(call, link, &kernel, launch)?;
                }
                let declared = launch.declared.map(|spans| declared(call, spans)).transpose()?;
                then(&WireCommand::Launch(WireLaunch {
                    function: kernel.wire,
                    grid: launch.grid,
                    block: launch.block,
                    cluster: launch.cluster,
                    dynamic_shared_bytes: launch.dynamic_shared_bytes,
                    cooperative: launch.cooperative,
                    arguments: launch.arguments,
                    declared: declared.as_deref(),
                }))
            }
            Command::Wait(event) => {
                let event = self.objects.events.pin(*event).map_err(|error| error.seen_by(call))?;
                then(&WireCommand::Wait { event: event.remote.id })
            }
            Command::Graph(graph) => {
                let graph = self.objects.graphs.pin(*graph).map_err(|error| error.seen_by(call))?;
                then(&WireCommand::Graph { graph: graph.remote.id })
            }
            _ => Err(Error::unsupported(call, "this command", "a worker does not take it")),
        }
    }

    /// An encoded place, what holds its memory, and its address on the device (zero on the host).
    pub(super) fn place(
        &self,
        call: &'static str,
        place: &Place,
        bytes: u64,
    ) -> Result<(WirePlace, Hold<'_>, u64)> {
        let seen = |error: Error| error.seen_by(call);
        match *place {
            Place::Device(DevicePlace { base: Base::Memory(id), offset }) => {
                let block = self.objects.memory.pin(id).map_err(seen)?;
                check_range(call, &id, offset, bytes, block.bytes)?;
                let address = block.address.0.saturating_add(offset);
                Ok((WirePlace::Memory { id: block.wire, offset }, Hold::Memory(block), address))
            }
            Place::Device(DevicePlace { base: Base::Reservation(id), offset }) => {
                let range = self.objects.reservations.pin(id).map_err(seen)?;
                range.check_mapped(call, &id, offset, bytes)?;
                let address = range.address.0.saturating_add(offset);
                Ok((WirePlace::Reservation { id: range.wire, offset }, Hold::Reservation(range), address))
            }
            Place::Host { block: id, offset } => {
                let block = self.objects.hosts.pin(id).map_err(seen)?;
                check_range(call, &id, offset, bytes, block.bytes.len() as u64)?;
                Ok((WirePlace::Host { id: block.remote.id, offset }, Hold::Host(block), 0))
            }
            Place::Peer(place) => {
                let key = match place.base {
                    Base::Memory(id) => id.device(),
                    Base::Reservation(id) => id.device(),
                };
                if key == self.info.key {
                    let handle = place.base.to_string();
                    return Err(Error::refused(call, Refusal::Foreign { handle }));
                }
                let why = "an isolated device shares no process with another; copy through a host block";
                Err(Error::unsupported(call, "a copy between devices", why))
            }
        }
    }

    fn check_launch(
        &self,
        call: &'static str,
        link: &Link,
        kernel: &Kernel,
        launch: &LaunchCommand<'_>,
    ) -> Result<()> {
        let limits = &self.info.limits;
        launch.grid.check_extents(call, "grid", limits.max_grid)?;
        launch.block.check_extents(call, "block", limits.max_block)?;
        let threads = u32::try_from(launch.block.count()).unwrap_or(u32::MAX);
        let most = kernel.attributes.max_threads_per_block.min(limits.max_threads_per_block);
        if threads > most {
            let what = format!("a block of {threads} threads; kernel {} takes {most}", kernel.name);
            return Err(Error::invalid(call, what, "use a smaller block"));
        }
        self.check_arguments(call, kernel, launch.arguments.len())?;
        if let Some(cluster) = launch.cluster {
            self.check_cluster(call, launch.grid, cluster)?;
        }
        let shape = (threads, launch.dynamic_shared_bytes);
        let packed = u64::from(shape.0) << 32 | u64::from(shape.1);
        if !launch.cooperative && kernel.fits.load(Ordering::Relaxed) == packed {
            return Ok(());
        }
        let resident = self.resident(call, link, kernel, shape)?;
        if resident == 0 {
            let what = format!("{threads} threads with {} shared bytes do not fit", shape.1);
            return Err(Error::invalid(call, what, "use a smaller block"));
        }
        kernel.fits.store(packed, Ordering::Relaxed);
        if !launch.cooperative {
            return Ok(());
        }
        if !self.info.features.cooperative_launch {
            return Err(Error::unsupported(call, "a cooperative launch", "this device has none"));
        }
        let blocks = u64::try_from(launch.grid.count()).unwrap_or(u64::MAX);
        let limit = u64::from(resident) * u64::from(limits.multiprocessors);
        if blocks > limit {
            return Err(Error::refused(call, Refusal::CooperativeResidencyExceeded { blocks, limit }));
        }
        Ok(())
    }

    fn check_arguments(&self, call: &'static str, kernel: &Kernel, given: usize) -> Result<()> {
        let limit = u64::from(self.info.limits.max_argument_bytes);
        if given as u64 > limit {
            return Err(Error::refused(call, Refusal::Limit { what: "bytes of arguments", limit }));
        }
        let Some(wanted) = kernel.argument_bytes().map(|bytes| bytes as usize) else { return Ok(()) };
        if given < wanted || given > wanted.next_multiple_of(ARGUMENT_ALIGNMENT) {
            let what = format!("kernel {} takes {wanted} bytes of arguments, not {given}", kernel.name);
            return Err(Error::invalid(call, what, "pack the arguments as its parameters say"));
        }
        Ok(())
    }

    fn check_cluster(&self, call: &'static str, grid: Dim3, cluster: Dim3) -> Result<()> {
        if !self.info.features.cluster_launch {
            return Err(Error::unsupported(call, "a launch in clusters", "this device has none"));
        }
        let divides = |grid: u32, cluster: u32| cluster >= 1 && grid.is_multiple_of(cluster);
        let whole = divides(grid.x, cluster.x) && divides(grid.y, cluster.y) && divides(grid.z, cluster.z);
        if !whole || cluster.count() > u128::from(self.info.limits.max_cluster_blocks) {
            let what = format!("clusters of {cluster} in a grid of {grid}");
            return Err(Error::invalid(call, what, "use clusters that divide the grid and fit the limit"));
        }
        Ok(())
    }

    /// How many blocks of a shape fit on a multiprocessor. The worker is asked once for each shape.
    fn resident(&self, call: &'static str, link: &Link, kernel: &Kernel, shape: (u32, u32)) -> Result<u32> {
        let known = kernel.resident.lock().unwrap_or_else(PoisonError::into_inner).get(&shape).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let ask =
            Ask::Occupancy { function: kernel.wire, block_threads: shape.0, dynamic_shared_bytes: shape.1 };
        let (fit, _) = link.ask(call, &ask, None, kiln_driver::Occupancy::take)?;
        let blocks = fit.blocks_per_multiprocessor;
        kernel.resident.lock().unwrap_or_else(PoisonError::into_inner).insert(shape, blocks);
        Ok(blocks)
    }
}

/// Declared spans as a message has them; more than a message holds are refused.
fn declared(call: &'static str, spans: &[DeclaredSpan]) -> Result<Vec<u8>> {
    if spans.len() > MAX_DECLARED_SPANS {
        let (what, limit) = ("buffers declared by one launch in a worker process", MAX_DECLARED_SPANS as u64);
        return Err(Error::refused(call, Refusal::Limit { what, limit }));
    }
    Ok(put_declared(spans))
}

fn overlap(from: WirePlace, to: WirePlace, bytes: u64) -> bool {
    let apart = |a: u64, b: u64| a.abs_diff(b) >= bytes;
    match (from, to) {
        (WirePlace::Memory { id: a, offset: from }, WirePlace::Memory { id: b, offset: to })
        | (WirePlace::Reservation { id: a, offset: from }, WirePlace::Reservation { id: b, offset: to })
        | (WirePlace::Host { id: a, offset: from }, WirePlace::Host { id: b, offset: to }) => {
            a == b && !apart(from, to)
        }
        _ => false,
    }
}
