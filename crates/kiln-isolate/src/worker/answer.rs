//! Questions and their answers.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use kiln_driver::{
    Error, GraphNode, Image, Memory, MemoryRequest, PageRequest, Refusal, ReserveRequest, Result,
};

use super::Step;
use super::mirror::{ModuleEntry, find};
use super::serve::Server;
use crate::area::REPLY_LIMIT_BYTES;
use crate::shared_file::SharedFile;
use crate::wire::{Ask, Put, WireNode, Writer};

/// The kinds of images, as they travel.
pub(crate) const IMAGE_PTX: u8 = 0;
pub(crate) const IMAGE_CUBIN: u8 = 1;
pub(crate) const IMAGE_HOST_KERNELS: u8 = 2;
/// PTX whose machine code the answer brings: its length, and a descriptor unless it is 0.
pub(crate) const IMAGE_PTX_TO_KEEP: u8 = 3;

/// No more is answered at once when the answers are this long; the longest single one fits behind them.
const BATCH_ANSWER_BYTES: usize = REPLY_LIMIT_BYTES / 4;

impl Server {
    /// An answer, and a descriptor that goes with it.
    pub(super) fn answer(&mut self, ask: &Ask<'_>) -> (Vec<u8>, Option<OwnedFd>) {
        let mut writer = Writer::new();
        let mut descriptor = None;
        // Taken back if there is a descriptor or an error.
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
                self.reporter.examine(&error);
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
            Ask::MemoryInfo => self.driver.memory_info().map(|info| info.put(to)),
            Ask::Allocate { id, bytes, stream } => {
                let request = match stream {
                    None => MemoryRequest::Direct { bytes: *bytes },
                    Some(stream) => {
                        let stream = find(&self.mirror.streams, *stream, "allocate")?.id;
                        MemoryRequest::Pool { bytes: *bytes, stream }
                    }
                };
                let memory = self.driver.allocate(request)?;
                self.mirror.memory.insert(*id, memory.id);
                put_memory(&memory, to);
                Ok(())
            }
            Ask::TrimPool { keep_bytes } => self.driver.trim_pool(*keep_bytes),
            Ask::RegisterHost { id, bytes } => self.register_host(*id, *bytes),
            Ask::Elapsed { from, to: until } => {
                let from = find(&self.mirror.events, *from, "elapsed")?.id;
                let until = find(&self.mirror.events, *until, "elapsed")?.id;
                self.driver.elapsed(from, until).map(|elapsed| elapsed.put(to))
            }
        }
    }

    /// Answers one after the other, up to the first that fails, or until the answers are long. Who asked asks again
    /// for the rest.
    fn act_on_all(&mut self, asks: &[Ask<'_>], to: &mut Writer) {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        for ask in asks {
            let (answer, _) = self.answer(ask);
            (self.observe)(Step::Did);
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
        let mirror = &mut self.mirror;
        match ask {
            Ask::Reserve { id, bytes, at } => {
                let reservation = self.driver.reserve(ReserveRequest { bytes: *bytes, at: *at })?;
                mirror.reservations.insert(*id, reservation.id);
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
                mirror.pages.insert(*id, pages);
                Ok(())
            }
            Ask::ImportPages { id, bytes } => {
                let theirs = self.descriptor().map_err(|violation| missing("import_pages", &violation))?;
                let pages = self.driver.import_pages(theirs.as_fd(), *bytes)?;
                self.mirror.pages.insert(*id, pages);
                Ok(())
            }
            Ask::Map { reservation, offset, pages, protection } => {
                let into = *find(&mirror.reservations, *reservation, "map")?;
                let pages: Result<Vec<_>> =
                    pages.iter().map(|id| find(&mirror.pages, *id, "map").copied()).collect();
                self.driver.map(into, *offset, &pages?, *protection)
            }
            Ask::Unmap { reservation, offset, bytes } => {
                let from = *find(&mirror.reservations, *reservation, "unmap")?;
                self.driver.unmap(from, *offset, *bytes)
            }
            Ask::Protect { reservation, offset, bytes, protection } => {
                let reservation = *find(&mirror.reservations, *reservation, "protect")?;
                self.driver.protect(reservation, *offset, *bytes, *protection)
            }
            Ask::DestroyReservation { id } => {
                self.driver.destroy((*find(&mirror.reservations, *id, "destroy")?).into())?;
                mirror.reservations.remove(id);
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
                let machine_code = OnceLock::new();
                self.load(*id, *kind, *bytes, &machine_code)?;
                if *kind == IMAGE_PTX_TO_KEEP {
                    put_code(machine_code.get(), to, descriptor);
                }
                Ok(())
            }
            Ask::Function { id, module, name } => {
                let found = find(&self.mirror.modules, *module, "function")?.id;
                let function = self.driver.function(found, name)?;
                self.mirror.functions.insert(*id, function.id);
                if let Some(entry) = self.mirror.modules.get_mut(module) {
                    entry.functions.push(*id);
                }
                function.attributes.put(to);
                Ok(())
            }
            Ask::Global { id, module, name } => {
                let found = find(&self.mirror.modules, *module, "global")?.id;
                let memory = self.driver.global(found, name)?;
                self.mirror.memory.insert(*id, memory.id);
                if let Some(entry) = self.mirror.modules.get_mut(module) {
                    entry.variables.push(*id);
                }
                put_memory(&memory, to);
                Ok(())
            }
            Ask::Occupancy { function, block_threads, dynamic_shared_bytes } => {
                let function = *find(&self.mirror.functions, *function, "occupancy")?;
                let fit = self.driver.occupancy(function, *block_threads, *dynamic_shared_bytes)?;
                fit.put(to);
                Ok(())
            }
            Ask::BuildGraph { id, nodes } => self.build_graph(*id, nodes),
            Ask::UpdateGraph { graph, node, command } => {
                let graph = *find(&self.mirror.graphs, *graph, "update_graph")?;
                self.driver.update_graph(graph, *node, &self.mirror.command(command)?)
            }
            _ => Ok(()),
        }
    }

    fn register_host(&mut self, id: u64, bytes: u64) -> Result<()> {
        const CALL: &str = "allocate_host";
        let theirs = self.descriptor().map_err(|violation| missing(CALL, &violation))?;
        let file = SharedFile::adopt(theirs, bytes);
        let memory = file.and_then(|file| file.map());
        let memory = memory.map_err(|_| Error::out_of_memory(CALL, bytes, None))?;
        let block = self.driver.register_host(Arc::new(memory)).map_err(|error| error.seen_by(CALL))?;
        self.mirror.hosts.insert(id, block);
        Ok(())
    }

    fn load(&mut self, id: u64, kind: u8, bytes: u64, machine_code: &OnceLock<Vec<u8>>) -> Result<()> {
        const CALL: &str = "load";
        let theirs = self.descriptor().map_err(|violation| missing(CALL, &violation))?;
        let contents = SharedFile::adopt(theirs, bytes).and_then(|file| file.read());
        let contents = contents.map_err(|_| Error::out_of_memory(CALL, bytes, None))?;
        let text = || {
            std::str::from_utf8(&contents)
                .map_err(|_| Error::invalid(CALL, "an image that is no text", "send PTX as UTF-8"))
        };
        let image = match kind {
            IMAGE_PTX => Image::Ptx(text()?),
            IMAGE_PTX_TO_KEEP => Image::PtxToKeep { text: text()?, machine_code },
            IMAGE_CUBIN => Image::Cubin(&contents),
            IMAGE_HOST_KERNELS => Image::HostKernels(text()?),
            _ => return Err(Error::unsupported(CALL, "this kind of image", "the worker does not know it")),
        };
        let module = self.driver.load(&image)?;
        let entry = ModuleEntry { id: module, functions: Vec::new(), variables: Vec::new() };
        self.mirror.modules.insert(id, entry);
        Ok(())
    }

    fn build_graph(&mut self, id: u64, nodes: &[WireNode<'_>]) -> Result<()> {
        let nodes = nodes.iter().map(|WireNode { command, after }| {
            Ok(GraphNode { command: self.mirror.command(command)?, after })
        });
        let nodes: Result<Vec<GraphNode<'_>>> = nodes.collect();
        let graph = self.driver.build_graph(&nodes?)?;
        self.mirror.graphs.insert(id, graph);
        Ok(())
    }
}

fn put_memory(memory: &Memory, to: &mut Writer) {
    memory.address.put(to);
    to.u64(memory.bytes);
}

/// Writes how long machine code is and hands it over as a file. What cannot be handed over is not kept, which loses
/// nothing but time.
fn put_code(code: Option<&Vec<u8>>, to: &mut Writer, descriptor: &mut Option<OwnedFd>) {
    let file = code.and_then(|code| SharedFile::holding(code).ok());
    to.u64(file.as_ref().map_or(0, SharedFile::bytes));
    *descriptor = file.map(SharedFile::into_descriptor);
}

fn missing(call: &'static str, violation: &crate::violation::Violation) -> Error {
    let why = violation.to_string();
    Error::refused(call, Refusal::Busy { handle: "the descriptor".into(), why })
}
