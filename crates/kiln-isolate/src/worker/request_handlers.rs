//! Handles the client's requests.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use kiln_driver::{
    DeviceMemory, Error, GraphNode, Image, MemoryRequest, PageRequest, Refusal, ReserveRequest, Result,
    Timeout, WaitTarget,
};

use super::WorkerStep;
use super::command_decoder::declared;
use super::object_table::{ModuleEntry, find};
use super::server::Server;
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::segment::REPLY_LIMIT_BYTES;
use crate::protocol::wire::{
    Ask, IMAGE_COMMUNICATOR, IMAGE_COMMUNICATOR_ID, IMAGE_CUBIN, IMAGE_HOST_KERNELS, IMAGE_LIBRARY,
    IMAGE_PTX, IMAGE_PTX_TO_KEEP, Put, WireNode, Writer,
};

/// A batch ends when its answers are longer than this, so that the next answer still fits.
const BATCH_ANSWER_BYTES: usize = REPLY_LIMIT_BYTES / 4;

impl Server {
    /// The answer to a question, and the descriptor to send with it.
    pub(super) fn answer(&mut self, ask: &Ask<'_>) -> (Vec<u8>, Option<OwnedFd>) {
        let mut writer = Writer::new();
        let mut descriptor = None;
        // Changed below if there is a descriptor or an error.
        writer.u8(1);
        match self.act(ask, &mut writer, &mut descriptor) {
            Ok(()) => {
                let mut bytes = writer.into_bytes();
                if let (Some(first), true) = (bytes.first_mut(), descriptor.is_some()) {
                    *first = 2;
                }
                (bytes, descriptor)
            }
            Err(error) => {
                self.reporter.report_if_lost(&error);
                let mut bytes = vec![0];
                bytes.extend(self.reporter.encode(&error));
                (bytes, None)
            }
        }
    }

    fn act(&mut self, ask: &Ask<'_>, to: &mut Writer, descriptor: &mut Option<OwnedFd>) -> Result<()> {
        match ask {
            Ask::Reserve { .. }
            | Ask::CreatePages { .. }
            | Ask::ImportPages { .. }
            | Ask::Map { .. }
            | Ask::Unmap { .. }
            | Ask::Protect { .. }
            | Ask::DestroyReservation { .. } => self.act_on_pages(ask, to, descriptor),
            Ask::Load { .. }
            | Ask::Function { .. }
            | Ask::Global { .. }
            | Ask::Occupancy { .. }
            | Ask::BuildGraph { .. }
            | Ask::UpdateGraph { .. } => self.act_on_code(ask, to, descriptor),
            Ask::Batch { asks } => {
                self.act_on_all(asks, to);
                Ok(())
            }
            Ask::Ready => Ok(()),
            Ask::Findings => self.driver.wait(WaitTarget::Findings, Timeout::Poll).map(|_| ()),
            Ask::Times(ask) => {
                let told = self.times.answer(*ask, self.driver.info().kind)?;
                if let Some(told) = told {
                    told.put(to);
                }
                Ok(())
            }
            Ask::TensorMap(map) => {
                let bytes = self.driver.tensor_map(&map.request())?;
                bytes.iter().for_each(|byte| to.u8(*byte));
                Ok(())
            }
            Ask::MemoryInfo => self.driver.memory_info().map(|info| info.put(to)),
            Ask::Allocate { id, bytes, stream } => {
                let request = match stream {
                    None => MemoryRequest::Direct { bytes: *bytes },
                    Some(stream) => {
                        let stream = find(&self.table.streams, *stream, "allocate")?.id;
                        MemoryRequest::Pool { bytes: *bytes, stream }
                    }
                };
                let memory = self.driver.allocate(request)?;
                self.table.memory.insert(*id, memory.id);
                put_memory(&memory, to);
                Ok(())
            }
            Ask::TrimPool { keep_bytes } => self.driver.trim_pool(*keep_bytes),
            Ask::RegisterHost { id, bytes } => self.register_host(*id, *bytes),
            Ask::Elapsed { from, to: until } => {
                let from = find(&self.table.events, *from, "elapsed")?.id;
                let until = find(&self.table.events, *until, "elapsed")?.id;
                self.driver.elapsed(from, until).map(|elapsed| elapsed.put(to))
            }
        }
    }

    /// Answers questions in order, up to the first that fails, or until the answers are long. The client asks the rest again.
    fn act_on_all(&mut self, asks: &[Ask<'_>], to: &mut Writer) {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        for ask in asks {
            let (answer, _) = self.answer(ask);
            (self.observe)(WorkerStep::Did);
            let is_refused = answer.first() == Some(&0);
            bytes += answer.len();
            answers.push(answer);
            if is_refused || bytes > BATCH_ANSWER_BYTES {
                break;
            }
        }
        to.u32(answers.len() as u32);
        answers.iter().for_each(|answer| to.slice(answer));
    }

    fn act_on_pages(
        &mut self,
        ask: &Ask<'_>,
        to: &mut Writer,
        descriptor: &mut Option<OwnedFd>,
    ) -> Result<()> {
        let table = &mut self.table;
        match ask {
            Ask::Reserve { id, bytes, at } => {
                let reservation = self.driver.reserve(ReserveRequest { bytes: *bytes, at: *at })?;
                table.reservations.insert(*id, reservation.id);
                reservation.address.put(to);
                to.u64(reservation.bytes);
                Ok(())
            }
            Ask::CreatePages { id, bytes, keep } => {
                let pages = self.driver.create_pages(PageRequest { bytes: *bytes, exportable: *keep })?;
                if *keep {
                    let exported = self.driver.export_pages(pages);
                    *descriptor = Some(exported.inspect_err(|_| drop(self.driver.destroy(pages.into())))?);
                }
                table.pages.insert(*id, pages);
                Ok(())
            }
            Ask::ImportPages { id, bytes } => {
                let theirs = self.descriptor().map_err(|violation| missing("import_pages", &violation))?;
                let pages = self.driver.import_pages(theirs.as_fd(), *bytes)?;
                self.table.pages.insert(*id, pages);
                Ok(())
            }
            Ask::Map { reservation, offset, pages, protection } => {
                let into = *find(&table.reservations, *reservation, "map")?;
                let pages: Result<Vec<_>> =
                    pages.iter().map(|id| find(&table.pages, *id, "map").copied()).collect();
                self.driver.map(into, *offset, &pages?, *protection)
            }
            Ask::Unmap { reservation, offset, bytes } => {
                let from = *find(&table.reservations, *reservation, "unmap")?;
                self.driver.unmap(from, *offset, *bytes)
            }
            Ask::Protect { reservation, offset, bytes, protection } => {
                let reservation = *find(&table.reservations, *reservation, "protect")?;
                self.driver.protect(reservation, *offset, *bytes, *protection)
            }
            Ask::DestroyReservation { id } => {
                self.driver.destroy((*find(&table.reservations, *id, "destroy")?).into())?;
                table.reservations.remove(id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn act_on_code(
        &mut self,
        ask: &Ask<'_>,
        to: &mut Writer,
        descriptor: &mut Option<OwnedFd>,
    ) -> Result<()> {
        match ask {
            Ask::Load { id, kind, bytes } => {
                let made = OnceLock::new();
                self.load(*id, *kind, *bytes, &made)?;
                match *kind {
                    IMAGE_PTX_TO_KEEP => put_code(made.get(), to, descriptor),
                    IMAGE_COMMUNICATOR_ID => to.slice(made.get().map_or(&[], Vec::as_slice)),
                    _ => {}
                }
                Ok(())
            }
            Ask::Function { id, module, name } => {
                let found = find(&self.table.modules, *module, "function")?.id;
                let function = self.driver.function(found, name)?;
                self.table.functions.insert(*id, function.id);
                if let Some(entry) = self.table.modules.get_mut(module) {
                    entry.functions.push(*id);
                }
                function.attributes.put(to);
                Ok(())
            }
            Ask::Global { id, module, name } => {
                let found = find(&self.table.modules, *module, "global")?.id;
                let memory = self.driver.global(found, name)?;
                self.table.memory.insert(*id, memory.id);
                if let Some(entry) = self.table.modules.get_mut(module) {
                    entry.variables.push(*id);
                }
                put_memory(&memory, to);
                Ok(())
            }
            Ask::Occupancy { function, block_threads, dynamic_shared_bytes } => {
                let function = *find(&self.table.functions, *function, "occupancy")?;
                let fit = self.driver.occupancy(function, *block_threads, *dynamic_shared_bytes)?;
                fit.put(to);
                Ok(())
            }
            Ask::BuildGraph { id, nodes } => self.build_graph(*id, nodes),
            Ask::UpdateGraph { graph, node, command } => {
                let graph = *find(&self.table.graphs, *graph, "update_graph")?;
                let declared = declared(command)?;
                self.driver.update_graph(graph, *node, &self.table.command(command, declared.as_deref())?)
            }
            _ => Ok(()),
        }
    }

    fn register_host(&mut self, id: u64, bytes: u64) -> Result<()> {
        const CALL: &str = "allocate_host";
        let theirs = self.descriptor().map_err(|violation| missing(CALL, &violation))?;
        let file = MemoryFile::adopt(theirs, bytes);
        let memory = file.and_then(|file| file.map());
        let memory = memory.map_err(|_| Error::out_of_memory(CALL, bytes, None))?;
        let block = self.driver.register_host(Arc::new(memory)).map_err(|error| error.seen_by(CALL))?;
        self.table.hosts.insert(id, block);
        Ok(())
    }

    /// Loads an image; `made` gets the machine code of one that is to be kept, or the id of a communicator.
    fn load(&mut self, id: u64, kind: u8, bytes: u64, made: &OnceLock<Vec<u8>>) -> Result<()> {
        const CALL: &str = "load";
        let theirs = self.descriptor().map_err(|violation| missing(CALL, &violation))?;
        let contents = MemoryFile::adopt(theirs, bytes).and_then(|file| file.read());
        let contents = contents.map_err(|_| Error::out_of_memory(CALL, bytes, None))?;
        let text = || {
            std::str::from_utf8(&contents)
                .map_err(|_| Error::invalid(CALL, "an image that is not text", "send PTX as UTF-8"))
        };
        let image = match kind {
            IMAGE_PTX => Image::Ptx(text()?),
            IMAGE_PTX_TO_KEEP => Image::PtxToKeep { text: text()?, machine_code: made },
            IMAGE_CUBIN => Image::Cubin(&contents),
            IMAGE_HOST_KERNELS => Image::HostKernels(text()?),
            IMAGE_LIBRARY => Image::Library(text()?),
            IMAGE_COMMUNICATOR => Image::Communicator(text()?),
            IMAGE_COMMUNICATOR_ID => Image::CommunicatorId { id: made },
            _ => return Err(Error::unsupported(CALL, "this kind of image", "the worker does not know it")),
        };
        let module = self.driver.load(&image)?;
        if kind == IMAGE_COMMUNICATOR {
            self.ranks.loaded(id, module);
        }
        let entry = ModuleEntry { id: module, functions: Vec::new(), variables: Vec::new() };
        self.table.modules.insert(id, entry);
        Ok(())
    }

    fn build_graph(&mut self, id: u64, nodes: &[WireNode<'_>]) -> Result<()> {
        let spans: Result<Vec<_>> = nodes.iter().map(|node| declared(&node.command)).collect();
        let spans = spans?;
        let nodes = nodes.iter().zip(&spans).map(|(WireNode { command, after }, declared)| {
            Ok(GraphNode { command: self.table.command(command, declared.as_deref())?, after })
        });
        let nodes: Result<Vec<GraphNode<'_>>> = nodes.collect();
        let graph = self.driver.build_graph(&nodes?)?;
        self.table.graphs.insert(id, graph);
        Ok(())
    }
}

fn put_memory(memory: &DeviceMemory, to: &mut Writer) {
    memory.address.put(to);
    to.u64(memory.bytes);
}

/// Writes the length of machine code, and sends the code as a file. If it cannot be sent, the client does not keep it and compiles again.
fn put_code(code: Option<&Vec<u8>>, to: &mut Writer, descriptor: &mut Option<OwnedFd>) {
    let file = code.and_then(|code| MemoryFile::holding(code).ok());
    to.u64(file.as_ref().map_or(0, MemoryFile::bytes));
    *descriptor = file.map(MemoryFile::into_descriptor);
}

fn missing(call: &'static str, violation: &crate::protocol::protocol_error::ProtocolViolation) -> Error {
    let why = violation.to_string();
    Error::refused(call, Refusal::Busy { handle: "the descriptor".into(), why })
}
