//! The nodes of a graph: a command in the form libcuda takes it.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{Command, Error, GraphId, LaunchCommand, NodeShape, Pattern, Pinned, Result, kind};

use crate::convert;
use crate::device::CudaDevice;
use crate::function::Kernel;
use crate::graph::Graph;
use crate::host_functions::offered;
use crate::launch::PackedArguments;
use crate::libcuda_symbols::{Api, Status};
use crate::module::LoadedCode;
use crate::native_handle::Native;
use crate::operation::{CapturedGraph, NcclReplay};
use crate::transfer::{Ends, Filled};

/// A node as it stands in a graph.
pub(crate) struct BuiltNode {
    raw: Native<sys::CUgraphNode_st>,
    shape: NodeShape,
    /// What a launch is.
    launched: Launched,
    /// The ranks whose collectives it has.
    ranks: NcclReplay,
    /// The code of a kernel stays loaded while the node may run it.
    _code: Option<Arc<LoadedCode>>,
}

/// What stands behind a launch. A node cannot become one with something else behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Launched {
    /// A kernel, or nothing is launched.
    Kernel,
    /// A library operation, which is a graph inside of this one.
    Operation,
    /// A function of the host.
    Host,
}

/// A command, checked, with everything it names held in place.
pub(crate) enum NodeParts<'a> {
    Nothing,
    Copy(Ends<'a>, usize),
    Fill(Filled<'a>),
    Launch(Pinned<'a, kind::Function, Kernel>, LaunchCommand<'a>),
    Operation(Pinned<'a, kind::Function, Kernel>, CapturedGraph),
    Host(Pinned<'a, kind::Function, Kernel>, sys::CUDA_HOST_NODE_PARAMS),
    Graph(Pinned<'a, kind::Graph, Graph>, GraphId),
}

impl CudaDevice {
    /// Checks a command as [`submit`](kiln_driver::Driver::submit) would.
    pub(crate) fn node_parts<'a>(
        &'a self,
        call: &'static str,
        api: &Api,
        command: &Command<'a>,
    ) -> Result<NodeParts<'a>> {
        Ok(match *command {
            Command::Copy { from, to, bytes } => match self.ends(call, from, to, bytes)? {
                _ if bytes == 0 => NodeParts::Nothing,
                ends => NodeParts::Copy(ends, bytes as usize),
            },
            Command::Fill { to, pattern, count } => match self.filled(call, to, pattern, count)? {
                _ if count == 0 => NodeParts::Nothing,
                filled => NodeParts::Fill(filled),
            },
            Command::Launch(launch) => {
                let kernel = self.functions.pin(launch.function).map_err(|error| error.seen_by(call))?;
                self.check_launch(call, api, &kernel, &launch)?;
                match (kernel.operation(), kernel.host()) {
                    (None, None) => NodeParts::Launch(kernel, launch),
                    (Some(operation), _) => {
                        let arguments = operation.arguments(call, launch.arguments)?;
                        let captured = self.capture_operation(call, api, operation, &arguments)?;
                        NodeParts::Operation(kernel, captured)
                    }
                    (None, Some(callee)) => {
                        let parameters = callee.node_parameters(call, launch.arguments)?;
                        NodeParts::Host(kernel, parameters)
                    }
                }
            }
            Command::Graph(id) => {
                NodeParts::Graph(self.graphs.pin(id).map_err(|error| error.seen_by(call))?, id)
            }
            ref other => {
                return Err(Error::invalid(call, format!("a {} as a node", other.name()), "submit it"));
            }
        })
    }

    /// Adds a command to a graph that is being built.
    pub(crate) fn add_node(
        &self,
        call: &'static str,
        api: &Api,
        graph: sys::CUgraph,
        after: &[sys::CUgraphNode],
        command: &Command<'_>,
    ) -> Result<BuiltNode> {
        let parts = self.node_parts(call, api, command)?;
        let mut raw = Native::NULL;
        let (edges, count) = (after.as_ptr(), after.len());
        let context = self.context.raw();
        let status = match &parts {
            // SAFETY: here and below, the graph is being built by this thread alone, the edges are nodes of it and as
            // many as the count says, the out-parameter is a live local, and the parameters are copied by the call.
            NodeParts::Nothing => unsafe { (api.graph_add_empty)(raw.slot(), graph, edges, count) },
            NodeParts::Copy(ends, bytes) => {
                let copy = copy_parameters(ends, *bytes);
                // SAFETY: as above; both ends are pinned.
                unsafe { (api.graph_add_copy)(raw.slot(), graph, edges, count, &copy, context) }
            }
            NodeParts::Fill(filled) => {
                let fill = fill_parameters(filled);
                // SAFETY: as above; the bytes are pinned.
                unsafe { (api.graph_add_fill)(raw.slot(), graph, edges, count, &fill, context) }
            }
            NodeParts::Launch(kernel, launch) => {
                let mut arguments = NodeArguments::new(kernel, launch);
                let parameters = kernel_parameters(kernel, launch, &mut arguments);
                // SAFETY: as above; the kernel is pinned, and the caller vouched that the arguments fit.
                unsafe { (api.graph_add_kernel)(raw.slot(), graph, edges, count, &parameters) }
            }
            // SAFETY: as above; the captured graph lives until the call returns, which copies it.
            NodeParts::Operation(_, captured) => unsafe {
                (api.graph_add_child)(raw.slot(), graph, edges, count, captured.raw())
            },
            NodeParts::Host(_, parameters) => {
                let add = offered(call, api.graph_add_host)?;
                // SAFETY: as above; what the parameters point to lives as long as the module.
                unsafe { add(raw.slot(), graph, edges, count, parameters) }
            }
            NodeParts::Graph(child, id) => child.with_template(call, *id, |template| {
                // SAFETY: as above; the child is pinned and its lock is held.
                unsafe { (api.graph_add_child)(raw.slot(), graph, edges, count, template) }
            })?,
        };
        self.context.check(call, status)?;
        if let NodeParts::Launch(_, launch) = &parts {
            self.set_attributes(call, api, raw.raw(), launch)?;
        }
        let (shape, launched, ranks) = (parts.shape(), parts.launched(), parts.ranks());
        Ok(BuiltNode { raw, shape, launched, ranks, _code: parts.code() })
    }

    /// Changes a node of a graph's executable, and of the template it came from where the driver can. The caller holds
    /// the executable's lock.
    pub(crate) fn change_node(
        &self,
        call: &'static str,
        api: &Api,
        graph: &Graph,
        executable: sys::CUgraphExec,
        node: &mut BuiltNode,
        parts: NodeParts<'_>,
    ) -> Result<()> {
        if node.shape != parts.shape() || node.launched != parts.launched() {
            let what = format!("a node that is {:?} cannot become {:?}", node.shape, parts.shape());
            return Err(Error::invalid(call, what, "build another graph"));
        }
        let raw = node.raw.raw();
        let context = self.context.raw();
        let (changed, followed): (Status, Status) = match &parts {
            NodeParts::Nothing => (0, 0),
            NodeParts::Copy(ends, bytes) => {
                let copy = copy_parameters(ends, *bytes);
                // SAFETY: here and below, the caller holds the executable's lock, `follow` takes the template's, the node
                // belongs to both, and the parameters are copied by the calls.
                let changed = unsafe { (api.graph_exec_set_copy)(executable, raw, &copy, context) };
                // SAFETY: as above.
                (changed, graph.follow(changed, || unsafe { (api.graph_set_copy)(raw, &copy) }))
            }
            NodeParts::Fill(filled) => {
                let fill = fill_parameters(filled);
                // SAFETY: as above.
                let changed = unsafe { (api.graph_exec_set_fill)(executable, raw, &fill, context) };
                // SAFETY: as above.
                (changed, graph.follow(changed, || unsafe { (api.graph_set_fill)(raw, &fill) }))
            }
            NodeParts::Launch(kernel, launch) => {
                let mut arguments = NodeArguments::new(kernel, launch);
                let parameters = kernel_parameters(kernel, launch, &mut arguments);
                // SAFETY: as above; the launch was vouched for.
                let changed = unsafe { (api.graph_exec_set_kernel)(executable, raw, &parameters) };
                // SAFETY: as above.
                (changed, graph.follow(changed, || unsafe { (api.graph_set_kernel)(raw, &parameters) }))
            }
            NodeParts::Operation(_, captured) => {
                // SAFETY: as above; the captured graph lives until the call returns, which copies it.
                let changed = unsafe { (api.graph_exec_set_child)(executable, raw, captured.raw()) };
                if changed == 0 {
                    graph.leave_template_behind();
                }
                (changed, 0)
            }
            NodeParts::Host(_, parameters) => change_host(call, api, graph, (executable, raw), parameters)?,
            NodeParts::Graph(child, id) => {
                let changed = child.with_template(call, *id, |template| {
                    // SAFETY: as above; the child is pinned and its template's lock is held.
                    unsafe { (api.graph_exec_set_child)(executable, raw, template) }
                })?;
                if changed == 0 {
                    graph.leave_template_behind();
                }
                (changed, 0)
            }
        };
        self.context.check(call, changed)?;
        (node.ranks, node._code) = (parts.ranks(), parts.code());
        self.context.check(call, followed)
    }

    /// Sets attributes of a kernel node that its parameters cannot express.
    fn set_attributes(
        &self,
        call: &'static str,
        api: &Api,
        node: sys::CUgraphNode,
        launch: &LaunchCommand<'_>,
    ) -> Result<()> {
        use sys::CUlaunchAttributeID as Id;
        let cooperative = launch.cooperative.then(convert::cooperative_value);
        let attributes = [
            (Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative),
            (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, convert::cluster_value(launch)),
        ];
        for (id, value) in attributes {
            if let Some(value) = value {
                // SAFETY: the node was just added to a graph of this thread, and the value is a live local of the size
                // every attribute has.
                let status = unsafe { (api.graph_kernel_attribute)(node, id as u32, &value) };
                self.context.check(call, status)?;
            }
        }
        Ok(())
    }
}

impl BuiltNode {
    /// The node as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUgraphNode {
        self.raw.raw()
    }

    /// The ranks whose collectives it has.
    pub(crate) fn ranks(&self) -> &NcclReplay {
        &self.ranks
    }
}

impl NodeParts<'_> {
    fn shape(&self) -> NodeShape {
        match self {
            Self::Nothing => NodeShape::Nothing,
            Self::Copy(ends, _) => NodeShape::Copy {
                from_host: matches!(ends, Ends::Up { .. } | Ends::Host { .. }),
                to_host: matches!(ends, Ends::Down { .. } | Ends::Host { .. }),
            },
            Self::Fill(_) => NodeShape::Fill,
            Self::Launch(_, launch) => {
                NodeShape::Launch { cluster: launch.cluster, cooperative: launch.cooperative }
            }
            Self::Operation(..) | Self::Host(..) => NodeShape::Launch { cluster: None, cooperative: false },
            Self::Graph(..) => NodeShape::Graph,
        }
    }

    fn launched(&self) -> Launched {
        match self {
            Self::Operation(..) => Launched::Operation,
            Self::Host(..) => Launched::Host,
            _ => Launched::Kernel,
        }
    }

    fn ranks(&self) -> NcclReplay {
        match self {
            Self::Operation(kernel, _) => kernel
                .operation()
                .and_then(|operation| operation.communicator())
                .map_or_else(NcclReplay::default, NcclReplay::of),
            Self::Graph(child, _) => child.ranks(),
            _ => NcclReplay::default(),
        }
    }

    fn code(&self) -> Option<Arc<LoadedCode>> {
        match self {
            Self::Launch(kernel, _) | Self::Operation(kernel, _) | Self::Host(kernel, _) => {
                Some(kernel.code().clone())
            }
            _ => None,
        }
    }
}

/// Changes which function of the host a node calls, or with what. The caller holds the executable's lock.
fn change_host(
    call: &'static str,
    api: &Api,
    graph: &Graph,
    (executable, node): (sys::CUgraphExec, sys::CUgraphNode),
    parameters: &sys::CUDA_HOST_NODE_PARAMS,
) -> Result<(Status, Status)> {
    let set = offered(call, api.graph_set_host)?;
    let set_executable = offered(call, api.graph_exec_set_host)?;
    // SAFETY: the node belongs to the executable, whose lock the caller holds; what the parameters point to lives as long as the module.
    let changed = unsafe { set_executable(executable, node, parameters) };
    // SAFETY: as above; `follow` takes the lock of the template.
    Ok((changed, graph.follow(changed, || unsafe { set(node, parameters) })))
}

/// One row of bytes from here to there.
fn copy_parameters(ends: &Ends<'_>, bytes: usize) -> sys::CUDA_MEMCPY3D {
    use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};
    let null = std::ptr::null_mut();
    let (from_type, from_host, from_device) = match ends {
        Ends::Up { from, .. } | Ends::Host { from, .. } => (HOST, from.start(), 0),
        Ends::Down { from, .. } | Ends::Across { from, .. } => (DEVICE, null, from.address()),
    };
    let (to_type, to_host, to_device) = match ends {
        Ends::Down { to, .. } | Ends::Host { to, .. } => (HOST, to.start(), 0),
        Ends::Up { to, .. } | Ends::Across { to, .. } => (DEVICE, null, to.address()),
    };
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from_type,
        srcHost: from_host.cast(),
        srcDevice: from_device,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to_type,
        dstHost: to_host.cast(),
        dstDevice: to_device,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

/// One row of elements.
fn fill_parameters(filled: &Filled<'_>) -> sys::CUDA_MEMSET_NODE_PARAMS {
    let value = match filled.pattern {
        Pattern::U8(value) => u32::from(value),
        Pattern::U16(value) => u32::from(value),
        Pattern::U32(value) => value,
    };
    sys::CUDA_MEMSET_NODE_PARAMS {
        dst: filled.to.address(),
        pitch: 0,
        value,
        elementSize: filled.pattern.bytes() as u32,
        width: filled.count,
        height: 1,
    }
}

fn kernel_parameters(
    kernel: &Kernel,
    launch: &LaunchCommand<'_>,
    arguments: &mut NodeArguments,
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    let (each, packed) = arguments.lists();
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: kernel.raw(),
        gridDimX: launch.grid.x,
        gridDimY: launch.grid.y,
        gridDimZ: launch.grid.z,
        blockDimX: launch.block.x,
        blockDimY: launch.block.y,
        blockDimZ: launch.block.z,
        sharedMemBytes: launch.dynamic_shared_bytes,
        kernelParams: each,
        extra: packed,
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// The arguments of a node, in one of two forms. CUDA documents that those of a cooperative kernel are given one by one. Driver 580
/// accepts packed ones for a launch, and refused a graph with such a node. Wide parameters are given one by one, as in a launch.
struct NodeArguments {
    each: Vec<*mut c_void>,
    packed: PackedArguments,
}

impl NodeArguments {
    /// They point into the launch's bytes.
    fn new(kernel: &Kernel, launch: &LaunchCommand<'_>) -> Self {
        let is_each = launch.cooperative || kernel.has_wide_parameters();
        let spans = kernel.attributes().parameters.as_deref().filter(|_| is_each).unwrap_or_default();
        let bytes = spans.iter().filter_map(|span| launch.arguments.get(span.offset as usize..));
        let each = bytes.map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        Self { each, packed: PackedArguments::new(kernel, launch.arguments) }
    }

    /// One by one, and packed, as libcuda takes them; one is null, and both point into `self`.
    fn lists(&mut self) -> (*mut *mut c_void, *mut *mut c_void) {
        match self.each.is_empty() {
            true => (std::ptr::null_mut(), self.packed.extra()),
            false => (self.each.as_mut_ptr(), std::ptr::null_mut()),
        }
    }
}
