//! Code and graphs. Images are sent as memory files, which are kept for the next worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::graph::{check_node_command, check_nodes};
use kiln_driver::{
    Command, DeviceMemory, Error, Function, FunctionAttributes, FunctionId, GraphId, GraphNode, Image,
    ModuleId, Occupancy, Result, TENSOR_MAP_BYTES, TensorMapRequest,
};

use super::client_state::Remote;
use super::connection::Link;
use super::memory::take_memory;
use super::objects::{Block, Code, Graph, Kernel, Module, Origin};
use super::proxy::DeviceProxy;
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::wire::{
    ABORT, Ask, IMAGE_COMMUNICATOR, IMAGE_COMMUNICATOR_ID, IMAGE_CUBIN, IMAGE_HOST_KERNELS, IMAGE_LIBRARY,
    IMAGE_PTX, IMAGE_PTX_TO_KEEP, Put, Reader, Take, WireCommand, WireNode, WireObject, WireTensorMap,
    Writer, take_tensor_map,
};

impl DeviceProxy {
    pub(crate) fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        let module = self.load_image(image)?;
        if matches!(image, Image::Communicator(_)) {
            // Looked up now, because the worker may be busy with a collective when the rank is to be ended. If it cannot be, who asks for it is told.
            let _ = self.function(module, ABORT);
        }
        Ok(module)
    }

    fn load_image(&self, image: &Image<'_>) -> Result<ModuleId> {
        const CALL: &str = "load";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let (kind, contents) = match image {
            Image::Ptx(text) => (IMAGE_PTX, text.as_bytes()),
            Image::PtxToKeep { text, .. } => (IMAGE_PTX_TO_KEEP, text.as_bytes()),
            Image::Cubin(bytes) => (IMAGE_CUBIN, *bytes),
            Image::HostKernels(name) => (IMAGE_HOST_KERNELS, name.as_bytes()),
            Image::Library(text) => (IMAGE_LIBRARY, text.as_bytes()),
            Image::Communicator(text) => (IMAGE_COMMUNICATOR, text.as_bytes()),
            // No image is empty.
            Image::CommunicatorId { .. } => (IMAGE_COMMUNICATOR_ID, &b"id"[..]),
            _ => return Err(Error::unsupported(CALL, "this kind of image", "a worker does not take it")),
        };
        let bytes = contents.len() as u64;
        let sent = MemoryFile::holding(contents).map_err(|_| Error::out_of_memory(CALL, bytes, None))?;
        let id = self.shared.new_id();
        let ask = Ask::Load { id, kind, bytes };
        let ((code_bytes, made_id), theirs) =
            link.ask(CALL, &ask, Some(sent.descriptor()), |reader| match kind {
                IMAGE_PTX_TO_KEEP => Ok((reader.u64()?, Vec::new())),
                IMAGE_COMMUNICATOR_ID => Ok((0, reader.slice()?.to_vec())),
                _ => Ok((0, Vec::new())),
            })?;
        if let Image::CommunicatorId { id } = image {
            // A cell that is full already stays as it is.
            let _ = id.set(made_id);
        }
        let remote = Remote::new(&self.shared, WireObject::Module, id);
        // Machine code that cannot be read is not kept; the next worker compiles the text again.
        let code = theirs.and_then(|theirs| MemoryFile::adopt(theirs, code_bytes).ok());
        let code = code.and_then(|file| Some((file.read().ok()?, file)));
        let (kind, image) = match (image, code) {
            (Image::PtxToKeep { machine_code, .. }, Some((code, file))) => {
                // Only the first value is kept.
                let _ = machine_code.set(code);
                // The next worker loads the machine code and does not compile the text.
                (IMAGE_CUBIN, file)
            }
            (Image::PtxToKeep { .. }, None) => (IMAGE_PTX, sent),
            _ => (kind, sent),
        };
        let code = Arc::new(Code { remote, kind, image });
        let module = Module { code, functions: Mutex::default(), variables: Mutex::default() };
        let made = self.objects.modules.insert(module);
        self.shared.standby.objects_changed();
        made
    }

    pub(crate) fn function(&self, module: ModuleId, name: &str) -> Result<Function> {
        const CALL: &str = "function";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let module = self.objects.modules.pin(module).map_err(|error| error.seen_by(CALL))?;
        let mut known = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = known.get(name) {
            return Ok(function.clone());
        }
        let wire = self.shared.new_id();
        let ask = Ask::Function { id: wire, module: module.code.remote.id, name };
        let (attributes, _) = link.ask(CALL, &ask, None, FunctionAttributes::take)?;
        let kernel = Kernel {
            wire,
            name: name.into(),
            code: module.code.clone(),
            attributes: attributes.clone(),
            fits: AtomicU64::new(0),
            resident: Mutex::default(),
        };
        let id = self.objects.functions.insert(Arc::new(kernel))?;
        self.shared.standby.objects_changed();
        let function = Function { id, attributes };
        known.insert(name.into(), function.clone());
        Ok(function)
    }

    pub(crate) fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory> {
        const CALL: &str = "global";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let module = self.objects.modules.pin(module).map_err(|error| error.seen_by(CALL))?;
        let mut known = module.variables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = known.get(name) {
            return Ok(*memory);
        }
        let wire = self.shared.new_id();
        let ask = Ask::Global { id: wire, module: module.code.remote.id, name };
        let ((address, bytes), _) = link.ask(CALL, &ask, None, take_memory)?;
        let id = self.objects.memory.insert(Block { wire, address, bytes, origin: Origin::Variable })?;
        let memory = DeviceMemory { id, address, bytes };
        known.insert(name.into(), memory);
        Ok(memory)
    }

    pub(crate) fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        const CALL: &str = "occupancy";
        let link = self.shared.link();
        link.check(CALL)?;
        let kernel = self.objects.functions.pin(function).map_err(|error| error.seen_by(CALL))?;
        let ask = Ask::Occupancy { function: kernel.wire, block_threads, dynamic_shared_bytes };
        link.ask(CALL, &ask, None, Occupancy::take).map(|(fit, _)| fit)
    }

    /// The worker writes it: addresses are the same on both sides.
    pub(crate) fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        const CALL: &str = "tensor_map";
        let link = self.shared.link();
        link.check(CALL)?;
        let ask = Ask::TensorMap(WireTensorMap::of(request));
        link.ask(CALL, &ask, None, take_tensor_map).map(|(map, _)| map)
    }

    pub(crate) fn destroy_module(&self, id: ModuleId) -> Result<()> {
        let seen = |error: Error| error.seen_by("destroy");
        let module = self.objects.modules.pin(id).map_err(seen)?;
        let functions = std::mem::take(&mut *module.functions.lock().unwrap_or_else(PoisonError::into_inner));
        let variables = std::mem::take(&mut *module.variables.lock().unwrap_or_else(PoisonError::into_inner));
        let removed = self.objects.modules.remove(id).map_err(seen);
        drop(module);
        functions.values().for_each(|function| drop(self.objects.functions.remove(function.id)));
        variables.values().for_each(|memory| drop(self.objects.memory.remove(memory.id)));
        removed.map(drop)
    }

    pub(crate) fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        const CALL: &str = "build_graph";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        check_nodes(nodes)?;
        let encode = |node: &GraphNode<'_>| self.encode_node(CALL, &link, &node.command, node.after);
        let encoded: Vec<Vec<u8>> = nodes.iter().map(encode).collect::<Result<_>>()?;
        let id = self.shared.new_id();
        ask_to_build(CALL, &link, id, &encoded)?;
        let remote = Remote::new(&self.shared, WireObject::Graph, id);
        let graph = Graph { remote, nodes: Mutex::new(encoded), version: AtomicU64::new(0) };
        let made = self.objects.graphs.insert(graph);
        self.shared.standby.objects_changed();
        made
    }

    pub(crate) fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        const CALL: &str = "update_graph";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let graph = self.objects.graphs.pin(graph).map_err(|error| error.seen_by(CALL))?;
        check_node_command(CALL, command)?;
        let mut nodes = graph.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = nodes.get_mut(node as usize) else {
            let what = format!("node {node} of a graph of {}", nodes.len());
            return Err(Error::invalid(CALL, what, "name one of its nodes"));
        };
        let after = decode_node(old).map_err(|_| Error::invalid(CALL, "a damaged node", "build it again"))?;
        self.with_command(CALL, &link, command, |command| {
            let ask = Ask::UpdateGraph { graph: graph.remote.id, node, command: *command };
            link.ask(CALL, &ask, None, |_| Ok(()))
        })?;
        *old = self.encode_node(CALL, &link, command, &after.after)?;
        graph.version.fetch_add(1, Ordering::AcqRel);
        self.shared.standby.objects_changed();
        Ok(())
    }

    fn encode_node(
        &self,
        call: &'static str,
        link: &Link,
        command: &Command<'_>,
        after: &[u32],
    ) -> Result<Vec<u8>> {
        self.with_command(call, link, command, |command: &WireCommand<'_>| {
            let mut writer = Writer::new();
            command.put(&mut writer);
            after.to_vec().put(&mut writer);
            Ok(writer.into_bytes())
        })
    }
}

/// Has a worker build a graph from encoded nodes.
pub(crate) fn ask_to_build(call: &'static str, link: &Link, id: u64, encoded: &[Vec<u8>]) -> Result<()> {
    let nodes: std::result::Result<Vec<WireNode<'_>>, _> =
        encoded.iter().map(|node| decode_node(node)).collect();
    let nodes = nodes.map_err(|_| Error::invalid(call, "a damaged node", "build the graph again"))?;
    link.ask(call, &Ask::BuildGraph { id, nodes }, None, |_| Ok(())).map(drop)
}

fn decode_node(encoded: &[u8]) -> std::result::Result<WireNode<'_>, crate::protocol::wire::Malformed> {
    let mut reader = Reader::new(encoded);
    let node = WireNode { command: WireCommand::take(&mut reader)?, after: Take::take(&mut reader)? };
    reader.end()?;
    Ok(node)
}
