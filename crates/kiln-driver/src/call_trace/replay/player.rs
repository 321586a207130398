//! Makes one recorded call after the other.

use crate::fd::{AsFd, OwnedFd};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::handles::{Handles, Known, Skip};
use crate::call::{Answer, Answered};
use crate::call_trace::call::{RecordedEvent, RecordedMemory, RecordedStream};
use crate::call_trace::command::{RecordedCommand, RecordedLaunch, RecordedNode, RecordedSpan};
use crate::call_trace::handle_name::Name;
use crate::call_trace::{Entry, RecordedAnswer, RecordedCall};
use crate::clock::Timeout;
use crate::command::{Command, DeclaredSpan, Dim3, LaunchCommand, Submission, Vouched};
use crate::concurrent_bytes::SharedBytes;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::graph::GraphNode;
use crate::handle::{FunctionId, PagesId, StreamId};
use crate::host_memory::HostBlock;
use crate::memory::{DeviceAddress, MemoryRequest, PageRequest, ReserveRequest};
use crate::stream::{EventRequest, StreamRequest, WaitTarget};
use crate::suballocation::{MemoryPart, PartLabel};

const ADDRESS_BYTES: usize = size_of::<u64>();
/// A file may say anything; the host's memory has an end.
const MAX_REGISTERED_BYTES: u64 = 1 << 30;

/// The driver, and what was made on it so far.
pub(super) struct Player<'a> {
    driver: &'a dyn Driver,
    vouched: Option<Vouched>,
    handles: Handles,
    /// Bytes live while the block is held, and the program may have held it to the end.
    hosts: Vec<HostBlock>,
    page_bytes: HashMap<PagesId, u64>,
    exported: Vec<(u64, OwnedFd)>,
    /// Offset and size of the parameters, where the driver can tell.
    parameters: HashMap<FunctionId, Vec<[u32; 2]>>,
    /// Recorded number to number now, per stream.
    numbers: HashMap<StreamId, BTreeMap<u64, u64>>,
}

impl<'a> Player<'a> {
    pub(super) fn new(driver: &'a dyn Driver, vouched: Option<Vouched>) -> Self {
        Self {
            driver,
            vouched,
            handles: Handles::default(),
            hosts: Vec::new(),
            page_bytes: HashMap::new(),
            exported: Vec::new(),
            parameters: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// Makes a recorded call; an error says why it cannot be made.
    pub(super) fn play(&mut self, entry: &Entry) -> std::result::Result<RecordedAnswer, Skip> {
        use RecordedCall as Recorded;
        let driver = self.driver;
        let handles = &self.handles;
        Ok(match &entry.call {
            Recorded::MemoryInfo => self.seen(entry, driver.memory_info()),
            Recorded::Health => self.seen(entry, Ok(driver.health())),
            Recorded::Findings => self.seen(entry, driver.wait(WaitTarget::Findings, Timeout::Poll)),
            Recorded::Reserve { bytes, at } => {
                let at = at.map(|address| DeviceAddress(address.0));
                self.seen(entry, driver.reserve(ReserveRequest { bytes: *bytes, at }))
            }
            Recorded::CreatePages { bytes, exportable } => {
                let request = PageRequest { bytes: *bytes, exportable: *exportable };
                self.pages_made(entry, driver.create_pages(request), *bytes)
            }
            Recorded::Map { into, offset, pages, protection } => {
                let pages = pages.iter().map(|name| handles.pages(*name));
                let pages = pages.collect::<std::result::Result<Vec<_>, _>>()?;
                let into = handles.reservation(*into)?;
                self.seen(entry, driver.map(into, *offset, &pages, (*protection).into()))
            }
            Recorded::Unmap { from, offset, bytes } => {
                let from = handles.reservation(*from)?;
                self.seen(entry, driver.unmap(from, *offset, *bytes))
            }
            Recorded::Protect { reservation, offset, bytes, protection } => {
                let reservation = handles.reservation(*reservation)?;
                self.seen(entry, driver.protect(reservation, *offset, *bytes, (*protection).into()))
            }
            Recorded::ExportPages { pages } => self.export(*pages)?,
            Recorded::ImportPages { bytes } => self.import(entry, *bytes)?,
            Recorded::Allocate { request } => {
                let request = self.memory_request(request)?;
                self.seen(entry, driver.allocate(request))
            }
            Recorded::Free { memory, stream } => {
                let stream = stream.map(|stream| handles.stream(stream)).transpose()?;
                let answer = driver.free(handles.memory(*memory)?, stream);
                self.gone(entry, *memory, answer)
            }
            Recorded::TrimPool { keep_bytes } => self.seen(entry, driver.trim_pool(*keep_bytes)),
            Recorded::AllocateHost { bytes } => self.host_made(entry, driver.allocate_host(*bytes)),
            Recorded::RegisterHost { bytes } => {
                let memory = Arc::new(SharedBytes::zeroed(registered_len(*bytes)?));
                self.host_made(entry, driver.register_host(memory))
            }
            _ => self.play_work(entry)?,
        })
    }

    /// Streams, code, work and graphs.
    fn play_work(&mut self, entry: &Entry) -> std::result::Result<RecordedAnswer, Skip> {
        use RecordedCall as Recorded;
        let driver = self.driver;
        let handles = &self.handles;
        Ok(match &entry.call {
            Recorded::CreateStream { request: RecordedStream::New { priority } } => {
                self.seen(entry, driver.create_stream(StreamRequest::New { priority: *priority }))
            }
            Recorded::CreateEvent { request: RecordedEvent::Plain } => {
                self.seen(entry, driver.create_event(EventRequest::Plain))
            }
            Recorded::CreateEvent { request: RecordedEvent::Timed } => {
                self.seen(entry, driver.create_event(EventRequest::Timed))
            }
            Recorded::Wait { target, .. } => {
                let target = self.wait_target(*target)?;
                self.seen(entry, driver.wait(target, timeout_for(&entry.answer)))
            }
            Recorded::Elapsed { from, to } => {
                let (from, to) = (handles.event(*from)?, handles.event(*to)?);
                self.seen(entry, driver.elapsed(from, to))
            }
            Recorded::Load { image } => self.seen(entry, driver.load(&image.image())),
            Recorded::Function { module, name } => {
                let module = handles.module(*module)?;
                self.seen(entry, driver.function(module, name))
            }
            Recorded::Global { module, name } => {
                let module = handles.module(*module)?;
                self.seen(entry, driver.global(module, name))
            }
            Recorded::Occupancy { function, block_threads, dynamic_shared_bytes } => {
                let function = handles.function(*function)?;
                self.seen(entry, driver.occupancy(function, *block_threads, *dynamic_shared_bytes))
            }
            Recorded::Submit { stream, command } => {
                let stream = handles.stream(*stream)?;
                let answer = self.with_command(command, |command| driver.submit(stream, command))?;
                self.submitted(entry, stream, answer)
            }
            Recorded::Progress { stream } => {
                let stream = handles.stream(*stream)?;
                self.catch_up(stream, &entry.answer);
                self.seen(entry, driver.progress(stream))
            }
            Recorded::BuildGraph { nodes } => self.build_graph(entry, nodes)?,
            Recorded::UpdateGraph { graph, node, command } => {
                let graph = handles.graph(*graph)?;
                let update = |command: &Command<'_>| driver.update_graph(graph, *node, command);
                let answer = self.with_command(command, update)?;
                self.seen(entry, answer)
            }
            Recorded::Destroy { object } => {
                let answer = driver.destroy(handles.object(*object)?);
                self.gone(entry, *object, answer)
            }
            Recorded::Native { object } => {
                let object = handles.object(*object)?;
                self.seen(entry, driver.native(object))
            }
            _ => return Err("it belongs to another library".into()),
        })
    }

    /// Waits for everything that is still queued.
    pub(super) fn settle(&self) {
        for stream in self.handles.streams() {
            // Gone, lost or failed: in each case nothing is left to wait for.
            let _ = self.driver.wait(WaitTarget::Stream(stream), Timeout::Never);
        }
    }

    /// Takes note of what a call made, under the name it had in the recording.
    fn seen<R: Answered>(&mut self, entry: &Entry, result: Result<R>) -> RecordedAnswer {
        let here = self.driver.info().key;
        let answer = result.as_ref().map(Answered::answer);
        if let Ok(answer) = answer {
            self.learn(&entry.answer, answer);
        }
        RecordedAnswer::of(answer, here)
    }

    fn learn(&mut self, recorded: &RecordedAnswer, now: Answer<'_>) {
        use RecordedAnswer as Recorded;
        let handles = &mut self.handles;
        match (recorded, now) {
            (Recorded::Reservation { reservation, address, bytes }, Answer::Reservation(made)) => {
                handles.add(*reservation, Known::Reservation(made.id));
                handles.add_block(*reservation, address.0, *bytes, made.address.0);
            }
            (Recorded::Memory { memory, address, bytes }, Answer::Memory(made)) => {
                handles.add(*memory, Known::Memory(made.id));
                handles.add_block(*memory, address.0, *bytes, made.address.0);
            }
            (Recorded::Pages { pages }, Answer::Pages(id)) => handles.add(*pages, Known::Pages(id)),
            (Recorded::Host { host, .. }, Answer::Host(made)) => handles.add(*host, Known::Host(made.id())),
            (Recorded::Stream { stream }, Answer::Stream(id)) => handles.add(*stream, Known::Stream(id)),
            (Recorded::Event { event }, Answer::Event(id)) => handles.add(*event, Known::Event(id)),
            (Recorded::Module { module }, Answer::Module(id)) => handles.add(*module, Known::Module(id)),
            (Recorded::Graph { graph }, Answer::Graph(id)) => handles.add(*graph, Known::Graph(id)),
            (Recorded::Function(recorded), Answer::Function(made)) => {
                handles.add(recorded.function, Known::Function(made.id));
                if let Some(parameters) = &recorded.parameters {
                    self.parameters.insert(made.id, parameters.clone());
                }
            }
            _ => {}
        }
    }

    fn pages_made(&mut self, entry: &Entry, result: Result<PagesId>, bytes: u64) -> RecordedAnswer {
        if let Ok(pages) = &result {
            self.page_bytes.insert(*pages, bytes);
        }
        self.seen(entry, result)
    }

    fn host_made(&mut self, entry: &Entry, result: Result<HostBlock>) -> RecordedAnswer {
        if let Ok(block) = &result {
            self.hosts.push(block.clone());
        }
        self.seen(entry, result)
    }

    fn gone(&mut self, entry: &Entry, name: Name, result: Result<()>) -> RecordedAnswer {
        if result.is_ok() {
            self.handles.drop_block(name);
        }
        self.seen(entry, result)
    }

    fn export(&mut self, pages: Name) -> std::result::Result<RecordedAnswer, Skip> {
        let pages = self.handles.pages(pages)?;
        let result = self.driver.export_pages(pages);
        let answer = RecordedAnswer::of(result.as_ref().map(Answered::answer), self.driver.info().key);
        if let (Ok(descriptor), Some(bytes)) = (result, self.page_bytes.get(&pages)) {
            self.exported.push((*bytes, descriptor));
        }
        Ok(answer)
    }

    fn import(&mut self, entry: &Entry, bytes: u64) -> std::result::Result<RecordedAnswer, Skip> {
        let exported = self.exported.iter().rev().find(|(size, _)| *size == bytes);
        let (_, descriptor) = exported.ok_or("the replay exported no pages of that size")?;
        let result = self.driver.import_pages(descriptor.as_fd(), bytes);
        Ok(self.pages_made(entry, result, bytes))
    }

    fn memory_request(&self, request: &RecordedMemory) -> std::result::Result<MemoryRequest, Skip> {
        match request {
            RecordedMemory::Direct { bytes } => Ok(MemoryRequest::Direct { bytes: *bytes }),
            RecordedMemory::Pool { bytes, stream } => {
                Ok(MemoryRequest::Pool { bytes: *bytes, stream: self.handles.stream(*stream)? })
            }
            RecordedMemory::Foreign { .. } => Err("it belongs to another library".into()),
            RecordedMemory::Part { .. } if !self.driver.info().features.access_checks => {
                Err("this device does not check accesses".into())
            }
            RecordedMemory::Part { place, bytes, stream, kind, label } => {
                Ok(MemoryRequest::Part(MemoryPart {
                    place: self.handles.device_place(*place)?,
                    bytes: *bytes,
                    stream: stream.map(|stream| self.handles.stream(stream)).transpose()?,
                    kind: (*kind).into(),
                    label: PartLabel::new(label),
                }))
            }
        }
    }

    fn wait_target(&self, name: Name) -> std::result::Result<WaitTarget, Skip> {
        match self.handles.event(name) {
            Ok(event) => Ok(WaitTarget::Event(event)),
            Err(_) => self.handles.stream(name).map(WaitTarget::Stream),
        }
    }

    fn build_graph(
        &mut self,
        entry: &Entry,
        nodes: &[RecordedNode],
    ) -> std::result::Result<RecordedAnswer, Skip> {
        let arguments: Vec<_> = nodes.iter().map(|node| self.arguments(&node.command)).collect();
        let mut built = Vec::with_capacity(nodes.len());
        for (node, arguments) in nodes.iter().zip(&arguments) {
            built.push(GraphNode { command: self.command(&node.command, arguments)?, after: &node.after });
        }
        let result = self.driver.build_graph(&built);
        Ok(self.seen(entry, result))
    }

    fn submitted(&mut self, entry: &Entry, stream: StreamId, result: Result<Submission>) -> RecordedAnswer {
        if let (RecordedAnswer::Submission { number }, Ok(now)) = (&entry.answer, &result) {
            self.numbers.entry(stream).or_default().insert(*number, now.0);
        }
        self.seen(entry, result)
    }

    /// Waits until what the recording knew to be done is done here.
    fn catch_up(&self, stream: StreamId, recorded: &RecordedAnswer) {
        let RecordedAnswer::Progress { completed, .. } = recorded else { return };
        let numbers = self.numbers.get(&stream);
        let wanted = numbers.and_then(|numbers| numbers.range(..=completed).next_back());
        let behind = |wanted: u64| self.driver.progress(stream).is_ok_and(|now| now.completed.0 < wanted);
        if wanted.is_some_and(|(_, wanted)| behind(*wanted)) {
            // How it ended is seen by the call that follows.
            let _ = self.driver.wait(WaitTarget::Stream(stream), Timeout::Never);
        }
    }

    fn with_command<R>(
        &self,
        recorded: &RecordedCommand,
        call: impl FnOnce(&Command<'_>) -> std::result::Result<R, Error>,
    ) -> std::result::Result<Result<R>, Skip> {
        let arguments = self.arguments(recorded);
        Ok(call(&self.command(recorded, &arguments)?))
    }

    fn command<'b>(
        &self,
        recorded: &RecordedCommand,
        arguments: &'b Arguments,
    ) -> std::result::Result<Command<'b>, Skip> {
        let handles = &self.handles;
        Ok(match recorded {
            RecordedCommand::Copy { from, to, bytes } => {
                Command::Copy { from: handles.place(*from)?, to: handles.place(*to)?, bytes: *bytes }
            }
            RecordedCommand::Fill { to, pattern, count } => {
                Command::Fill { to: handles.device_place(*to)?, pattern: (*pattern).into(), count: *count }
            }
            RecordedCommand::Launch(launch) => self.launch(launch, arguments)?,
            RecordedCommand::Signal { event } => Command::Signal(handles.event(*event)?),
            RecordedCommand::Wait { event } => Command::Wait(handles.event(*event)?),
            RecordedCommand::Graph { graph } => Command::Graph(handles.graph(*graph)?),
        })
    }

    fn launch<'b>(
        &self,
        recorded: &RecordedLaunch,
        arguments: &'b Arguments,
    ) -> std::result::Result<Command<'b>, Skip> {
        Ok(Command::Launch(LaunchCommand {
            function: self.handles.function(recorded.function)?,
            grid: extents(recorded.grid),
            block: extents(recorded.block),
            cluster: recorded.cluster.map(extents),
            dynamic_shared_bytes: recorded.dynamic_shared_bytes,
            cooperative: recorded.cooperative,
            arguments: &arguments.packed,
            declared: arguments.declared.as_deref(),
            vouched: self.vouched.ok_or("the launches of this trace were not vouched for")?,
        }))
    }

    /// The arguments of a launch, with the addresses of the recording's blocks replaced.
    fn arguments(&self, command: &RecordedCommand) -> Arguments {
        let RecordedCommand::Launch(launch) = command else { return Arguments::default() };
        // Memory that the replay did not make leaves it unknown what the launch may touch.
        let declared =
            launch.declared.as_ref().and_then(|spans| spans.iter().map(|span| self.span(span)).collect());
        Arguments { packed: self.packed(launch), declared }
    }

    fn span(&self, recorded: &RecordedSpan) -> Option<DeclaredSpan> {
        let address = DeviceAddress(self.handles.translate(recorded.address.0)?);
        let RecordedSpan { bytes, access, parameter, .. } = *recorded;
        Some(DeclaredSpan { address, bytes, access: access.into(), parameter })
    }

    fn packed(&self, launch: &RecordedLaunch) -> Vec<u8> {
        let mut bytes = launch.arguments.0.clone();
        let function = self.handles.function(launch.function).ok();
        let known = function.and_then(|function| self.parameters.get(&function));
        let offsets: Vec<usize> = match known {
            Some(spans) => spans
                .iter()
                .filter(|[_, size]| *size as usize == ADDRESS_BYTES)
                .map(|[offset, _]| *offset as usize)
                .collect(),
            None => (0..bytes.len()).step_by(ADDRESS_BYTES).collect(),
        };
        for offset in offsets {
            let word = bytes.get_mut(offset..offset + ADDRESS_BYTES);
            if let Some(word) = word.and_then(|word| <&mut [u8; ADDRESS_BYTES]>::try_from(word).ok())
                && let Some(now) = self.handles.translate(u64::from_le_bytes(*word))
            {
                *word = now.to_le_bytes();
            }
        }
        bytes
    }
}

/// What a launch points to.
#[derive(Default)]
struct Arguments {
    packed: Vec<u8>,
    declared: Option<Vec<DeclaredSpan>>,
}

fn registered_len(bytes: u64) -> std::result::Result<usize, Skip> {
    if bytes > MAX_REGISTERED_BYTES {
        return Err(format!("a replay registers no more than {MAX_REGISTERED_BYTES} bytes at once"));
    }
    usize::try_from(bytes).map_err(|_| "the host cannot name so many bytes".into())
}

fn extents([x, y, z]: [u32; 3]) -> Dim3 {
    Dim3::new(x, y, z)
}

/// What the program saw done is waited for; what it saw unfinished is only looked at.
fn timeout_for(recorded: &RecordedAnswer) -> Timeout {
    match recorded {
        RecordedAnswer::WaitTimedOut => Timeout::Poll,
        _ => Timeout::Never,
    }
}
