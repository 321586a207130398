//! Submits commands: looks up handles, checks ranges and shapes, and queues tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError};

use kiln_driver::{
    Base, Command, DeclaredSpan, DeviceAddress, DevicePlace, Dim3, Error, LaunchCommand, Pattern, Place,
    Refusal, Result, StreamId, Submission,
};

use crate::check::access_origin::{Action, Actor, Mark};
use crate::check::declared_memory::LaunchFootprint;
use crate::check::vector_clock::Lane;
use crate::code::kernel::KernelShape;
use crate::code::occupancy::resident_blocks;
use crate::collective::collective_launch::CollectiveRun;
use crate::device::objects::{LoadedFunction, Objects, Origin, Signal};
use crate::schedule::graph::{GraphPlan, GraphRun};
use crate::schedule::machine_core::Core;
use crate::schedule::machine_state::State;
use crate::schedule::stream_queue::Step;
use crate::schedule::task::{End, LaunchTask, Task};

impl Core {
    pub(crate) fn submit(
        &self,
        objects: &Objects,
        stream: StreamId,
        command: &Command<'_>,
    ) -> Result<Submission> {
        const CALL: &str = "submit";
        let measures = matches!(command, Command::Signal(event) if objects.is_timed(*event));
        let mut state = self.enter_in_time(objects.info.ordinal, CALL, !measures)?;
        let lane = *objects.streams.find(CALL, stream)?;
        let limit = self.config.limits.queued_commands;
        if state.streams.get(&lane).is_none_or(|stream| stream.queue.len() >= limit) {
            let what = "commands queued on a stream";
            return Err(Error::refused(CALL, Refusal::Limit { what, limit: limit as u64 }));
        }
        let gone = || Error::refused(CALL, Refusal::Stale { handle: stream.to_string() });
        match command {
            Command::Signal(event) => {
                let event = objects.events.find(CALL, *event)?;
                let mark = state.stream_mark(lane, Action::Signal, true).ok_or_else(gone)?;
                let signal = Arc::new(Signal { mark: mark.clone(), done_ns: OnceLock::new() });
                *event.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(signal.clone());
                state.queue(lane, mark, Step::Signal(signal));
            }
            Command::Wait(event) => {
                let event = objects.events.find(CALL, *event)?;
                let signal = event.last();
                if let (Some(signal), Some(stream)) = (&signal, state.streams.get_mut(&lane)) {
                    stream.clock.join(&signal.mark.clock);
                }
                let mark = state.stream_mark(lane, Action::Wait, true).ok_or_else(gone)?;
                if signal.is_some() {
                    let mut waiters = event.waiters.lock().unwrap_or_else(PoisonError::into_inner);
                    waiters.add(&mark, &state.host);
                }
                state.queue(lane, mark, Step::Wait(signal));
            }
            Command::Graph(id) => {
                let graph = objects.graphs.find(CALL, *id)?;
                let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
                let plan = graph.plan.clone();
                let tasks: Vec<&Task> = plan.nodes.iter().map(|node| &node.task).collect();
                let runs = state.submit_collectives(CALL, objects.info.ordinal, &tasks, true)?;
                let runs = runs.into_iter().enumerate().filter_map(|(at, run)| Some((at, run?))).collect();
                let (mark, run) = state.start_graph(lane, &plan, runs).ok_or_else(gone)?;
                graph.users.add(&mark, &state.host);
                state.host_functions.expect(tasks.into_iter());
                state.queue(lane, mark, Step::Graph(run));
            }
            _ => {
                let task = self.task(&mut state, objects, CALL, command)?;
                let runs = state.submit_collectives(CALL, objects.info.ordinal, &[&task], false)?;
                let run = runs.into_iter().next().flatten();
                if let Some(rank) = task.aborts() {
                    state.abort_rank(&rank);
                }
                let mark = state.stream_mark(lane, task.action(), true).ok_or_else(gone)?;
                use_module(&task, &mark, &state);
                state.check_parts(objects.info.ordinal, &task, &mark);
                state.host_functions.expect(std::iter::once(&task));
                state.queue_collective(lane, mark, Step::Task(task), run);
            }
        }
        let number = state.streams.get(&lane).map_or(0, |stream| stream.submitted);
        state.note_movement();
        self.notify();
        Ok(Submission(number))
    }

    /// A command that touches memory, with its handles looked up.
    pub(crate) fn task(
        &self,
        state: &mut State,
        objects: &Objects,
        call: &'static str,
        command: &Command<'_>,
    ) -> Result<Task> {
        match command {
            Command::Copy { from, to, bytes } => {
                let (from, to) = (
                    self.end(state, objects, call, from, *bytes)?,
                    self.end(state, objects, call, to, *bytes)?,
                );
                if overlap(&from, &to, *bytes) {
                    let what = "the two ranges of a copy overlap";
                    return Err(Error::invalid(call, what, "copy through another block"));
                }
                Ok(Task::Copy { from, to, bytes: *bytes })
            }
            Command::Fill { to, pattern, count } => fill(state, objects, call, to, *pattern, *count),
            Command::Launch(launch) => {
                launch_task(state, objects, call, launch).map(Arc::new).map(Task::Launch)
            }
            _ => Err(Error::unsupported(call, "this command", "the simulator does not know it")),
        }
    }

    fn end(
        &self,
        state: &mut State,
        objects: &Objects,
        call: &'static str,
        place: &Place,
        bytes: u64,
    ) -> Result<End> {
        match place {
            Place::Device(place) => {
                let (address, is_part) = address(state, objects, call, place, bytes)?;
                Ok(End::Device { device: objects.info.ordinal, address, is_part })
            }
            Place::Host { block, offset } => {
                let memory = objects.hosts.find(call, *block)?;
                let size = memory.physical.bytes.len() as u64;
                if offset.checked_add(bytes).is_none_or(|end| end > size) {
                    let (handle, offset) = (block.to_string(), *offset);
                    return Err(Error::refused(call, Refusal::OutOfRange { handle, offset, bytes, size }));
                }
                Ok(End::Host { memory, offset: *offset })
            }
            Place::Peer(place) => {
                let key = match place.base {
                    Base::Memory(id) => id.device(),
                    Base::Reservation(id) => id.device(),
                };
                let peer = self.devices.iter().find(|peer| peer.info.key == key);
                let Some(peer) = peer.filter(|peer| peer.info.key != objects.info.key) else {
                    let handle = place.base.to_string();
                    return Err(Error::refused(call, Refusal::Foreign { handle }));
                };
                let device = peer.info.ordinal;
                if !self.config.links.connects(objects.info.ordinal, device) {
                    let own = objects.info.ordinal;
                    let why = format!("devices {own} and {device} are not connected; copy through the host");
                    return Err(Error::unsupported(call, "a copy between two devices", why));
                }
                if let Some(lost) = &state.device(device).lost {
                    let why = format!("its device cannot be used any more: {lost}");
                    return Err(Error::refused(call, Refusal::Busy { handle: place.base.to_string(), why }));
                }
                let (address, is_part) = address(state, peer, call, place, bytes)?;
                Ok(End::Device { device, address, is_part })
            }
        }
    }
}

impl State {
    /// Puts a graph's nodes into the order: each after those it names, all after what the stream and the host did.
    fn start_graph(
        &mut self,
        lane: Lane,
        plan: &Arc<GraphPlan>,
        collectives: BTreeMap<usize, CollectiveRun>,
    ) -> Option<(Arc<Mark>, GraphRun)> {
        let start = self.stream_mark(lane, Action::Graph, true)?;
        let host = self.host.clone();
        let missing = plan.branches().saturating_sub(self.streams.get(&lane)?.branches.len());
        let fresh: Vec<Lane> = (0..missing).map(|_| self.lanes.take(&host)).collect();
        self.streams.get_mut(&lane)?.branches.extend(fresh);
        let branches = self.streams.get(&lane)?.branches.clone();
        let end_tick = self.lanes.next_tick(lane);
        let mut marks: Vec<Arc<Mark>> = Vec::with_capacity(plan.nodes.len());
        for (at, node) in plan.nodes.iter().enumerate() {
            let mut clock = (*start.clock).clone();
            node.after.iter().for_each(|before| clock.join(&marks[*before].clock));
            let actor = Actor { node: Some(at as u32), action: node.task.action(), ..start.actor.clone() };
            let mark = self.node_mark(branches[node.branch], (lane, end_tick), clock, actor);
            use_module(&node.task, &mark, self);
            self.check_parts(mark.actor.device, &node.task, &mark);
            marks.push(mark);
        }
        // What comes after the end comes after every node: the nodes say so themselves, and clocks stay short.
        let stream = self.streams.get_mut(&lane)?;
        stream.clock.set(lane, end_tick);
        stream.last_tick = end_tick;
        let clock = Arc::new(stream.clock.clone());
        let end =
            Mark { lane, tick: end_tick, end: None, clock, order: start.order, actor: start.actor.clone() };
        Some((Arc::new(end), GraphRun::new(plan.clone(), marks, collectives)))
    }
}

fn use_module(task: &Task, mark: &Arc<Mark>, state: &State) {
    if let Task::Launch(launch) = task {
        launch.function.users.lock().unwrap_or_else(PoisonError::into_inner).add(mark, &state.host);
    }
}

/// The address of a place, if so many bytes from there on have memory behind them, and whether it is named by a block that a resource
/// handed out.
pub(crate) fn address(
    state: &mut State,
    objects: &Objects,
    call: &'static str,
    place: &DevicePlace,
    bytes: u64,
) -> Result<(u64, bool)> {
    match place.base {
        Base::Memory(id) => {
            let block = objects.memory.find(call, id)?;
            Ok((block.check_range(call, place.offset, bytes)?, block.origin == Origin::Part))
        }
        Base::Reservation(id) => {
            let reservation = objects.reservations.find(call, id)?;
            let address = reservation.check_range(call, place.offset, bytes)?;
            let map = &state.device(objects.info.ordinal).map;
            if let Some(hole) = map.first_hole(address..address + bytes) {
                let what = format!("nothing is mapped at {:#x} of {id}", hole - reservation.address);
                return Err(Error::invalid(call, what, "map pages there first"));
            }
            Ok((address, false))
        }
    }
}

fn overlap(from: &End, to: &End, bytes: u64) -> bool {
    let apart = |a: u64, b: u64| a.abs_diff(b) >= bytes;
    match (from, to) {
        (End::Device { address: from, .. }, End::Device { address: to, .. }) => !apart(*from, *to),
        (End::Host { memory: from, offset: a }, End::Host { memory: to, offset: b }) => {
            from.id == to.id && !apart(*a, *b)
        }
        _ => false,
    }
}

fn fill(
    state: &mut State,
    objects: &Objects,
    call: &'static str,
    to: &DevicePlace,
    pattern: Pattern,
    count: u64,
) -> Result<Task> {
    let Some(bytes) = pattern.bytes().checked_mul(count) else {
        let what = format!("{count} elements of {} bytes", pattern.bytes());
        return Err(Error::invalid(call, what, "fill less than 2^64 bytes"));
    };
    let (address, is_part) = address(state, objects, call, to, bytes)?;
    if !address.is_multiple_of(pattern.bytes()) {
        let what = format!("a fill of {}-byte elements at {address:#x}", pattern.bytes());
        return Err(Error::invalid(call, what, "align the place to the pattern"));
    }
    Ok(Task::Fill { address, is_part, pattern, count })
}

fn launch_task(
    state: &mut State,
    objects: &Objects,
    call: &'static str,
    launch: &LaunchCommand<'_>,
) -> Result<LaunchTask> {
    let function = objects.functions.find(call, launch.function)?;
    if let Some(why) = function.loaded.kernel.unsupported() {
        return Err(Error::unsupported(call, "the kernel", why));
    }
    let limits = &objects.info.limits;
    launch.grid.check_extents(call, "grid", limits.max_grid)?;
    launch.block.check_extents(call, "block", limits.max_block)?;
    if let Err(what) = function.loaded.kernel.check_shape(&shape_of(launch)) {
        return Err(Error::invalid(call, what, "fit the launch to the kernel"));
    }
    let threads = u32::try_from(launch.block.count()).unwrap_or(u32::MAX);
    let attributes = &function.loaded.attributes;
    let shared = launch.dynamic_shared_bytes;
    let resident = resident_blocks(limits, attributes, threads, shared).filter(|blocks| *blocks > 0);
    let Some(resident) = resident else {
        let what = format!(
            "a block of {threads} threads with {shared} bytes of dynamic shared memory does not fit kernel {}",
            function.loaded.name
        );
        return Err(Error::invalid(call, what, "use a smaller block"));
    };
    if launch.cooperative {
        let limit = u64::from(resident) * u64::from(limits.multiprocessors);
        check_cooperative(call, objects, launch.grid, limit)?;
    }
    if let Some(cluster) = launch.cluster {
        check_cluster(call, objects, launch.grid, cluster)?;
    }
    let wanted = function.loaded.kernel.signature().argument_bytes() as usize;
    let given = launch.arguments.len();
    let limit = u64::from(limits.max_argument_bytes);
    if given as u64 > limit {
        return Err(Error::refused(call, Refusal::Limit { what: "bytes of arguments", limit }));
    }
    if given != wanted {
        let what = format!("kernel {} takes {wanted} bytes of arguments, not {given}", function.loaded.name);
        return Err(Error::invalid(call, what, "pack the arguments as its parameters say"));
    }
    let footprint = launch.declared.filter(|_| state.checks.declarations);
    let footprint = footprint
        .map(|spans| footprint_of(state, objects, call, &function, (launch.arguments, spans)))
        .transpose()?;
    let collective = function.loaded.collective.as_ref();
    let collectives =
        collective.map(|kernel| kernel.call(call, launch.arguments).map(Arc::new)).transpose()?;
    Ok(LaunchTask {
        collectives,
        aborts: function.loaded.aborts,
        footprint,
        function,
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared_bytes: shared,
        cooperative: launch.cooperative,
        arguments: launch.arguments.into(),
    })
}

fn shape_of(launch: &LaunchCommand<'_>) -> KernelShape {
    KernelShape {
        grid: launch.grid,
        block: launch.block,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        cooperative: launch.cooperative,
        cluster: launch.cluster,
    }
}

/// What a launch may touch. Everything it declares must be memory of the device now.
fn footprint_of(
    state: &mut State,
    objects: &Objects,
    call: &'static str,
    function: &LoadedFunction,
    (arguments, spans): (&[u8], &[DeclaredSpan]),
) -> Result<Arc<LaunchFootprint>> {
    let map = &state.device(objects.info.ordinal).map;
    for DeclaredSpan { address, bytes, parameter, .. } in spans {
        let end = address.0.checked_add(*bytes);
        if !end.is_some_and(|end| map.covers(address.0..end)) {
            let of = parameter.map_or_else(String::new, |index| format!(" for argument {index}"));
            let what = format!("{bytes} bytes declared at {address}{of} are not memory of this device");
            return Err(Error::invalid(call, what, "declare memory that is mapped and not freed"));
        }
    }
    let variable = |address: &DeviceAddress| {
        let at = map.index_of(address.0)?;
        Some(map.segments()[at].start..map.segments()[at].end)
    };
    let variables: Vec<_> = function.globals.iter().filter_map(variable).collect();
    Ok(Arc::new(LaunchFootprint::new(function.loaded.clone(), arguments, spans, &variables)))
}

fn check_cooperative(call: &'static str, objects: &Objects, grid: Dim3, limit: u64) -> Result<()> {
    if !objects.info.features.cooperative_launch {
        return Err(Error::unsupported(call, "a cooperative launch", "this device has none"));
    }
    let blocks = u64::try_from(grid.count()).unwrap_or(u64::MAX);
    if blocks > limit {
        return Err(Error::refused(call, Refusal::CooperativeResidencyExceeded { blocks, limit }));
    }
    Ok(())
}

fn check_cluster(call: &'static str, objects: &Objects, grid: Dim3, cluster: Dim3) -> Result<()> {
    if !objects.info.features.cluster_launch {
        return Err(Error::unsupported(call, "a launch in clusters", "this device has none"));
    }
    let divides = |grid: u32, cluster: u32| cluster >= 1 && grid.is_multiple_of(cluster);
    let whole = divides(grid.x, cluster.x) && divides(grid.y, cluster.y) && divides(grid.z, cluster.z);
    if !whole || cluster.count() > u128::from(objects.info.limits.max_cluster_blocks) {
        let what = format!("clusters of {cluster} in a grid of {grid}");
        return Err(Error::invalid(call, what, "use clusters that divide the grid and fit the limit"));
    }
    Ok(())
}
