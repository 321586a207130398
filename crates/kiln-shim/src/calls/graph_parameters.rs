//! What a program says about a node of a graph, made into work.

use std::ffi::c_int;

use kiln_driver::{Code, Pattern, Place};

use crate::boundary::Answer;
use crate::caller_memory::In;
use crate::calls::context::Context;
use crate::calls::copies::Copy3D;
use crate::calls::copy_rows::graph_copy;
use crate::calls::functions::function;
use crate::calls::graph_work::{CopyWork, FillParameters, NodeWork, OwnedLaunch};
use crate::calls::host_callbacks;
use crate::calls::launch::{Shape, checked_arguments, command};
use crate::calls::process_state::ProcessState;
use crate::handle_table::RawHandle;

/// The structure `CUDA_KERNEL_NODE_PARAMS` in its first form.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParameters {
    pub(crate) function: RawHandle,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) parameters: In<usize>,
    pub(crate) extra: In<usize>,
}

/// The second form, which has kernels of libraries, too.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParameters2 {
    pub(crate) first: KernelParameters,
    pub(crate) kernel: RawHandle,
    pub(crate) context: RawHandle,
}

/// The structure `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HostParameters {
    pub(crate) function: usize,
    pub(crate) data: usize,
}

const _: () = assert!(size_of::<KernelParameters>() == 56);
const _: () =
    assert!(size_of::<KernelParameters2>() == size_of::<cudarc::driver::sys::CUDA_KERNEL_NODE_PARAMS_v2>());
const _: () = assert!(size_of::<HostParameters>() == size_of::<cudarc::driver::sys::CUDA_HOST_NODE_PARAMS>());
const _: () =
    assert!(size_of::<FillParameters>() == size_of::<cudarc::driver::sys::CUDA_MEMSET_NODE_PARAMS>());

impl KernelParameters2 {
    /// The parameters with the one function that they name.
    pub(crate) fn checked(self) -> Answer<KernelParameters> {
        match (self.first.function, self.kernel) {
            (0, 0) => Err(Code::INVALID_VALUE),
            (0, kernel) => Ok(KernelParameters { function: kernel, ..self.first }),
            (_, 0) => Ok(self.first),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// A kernel.
pub(crate) fn kernel(state: &ProcessState, context: &Context, given: &KernelParameters) -> Answer<NodeWork> {
    let function = function(state, given.function)?;
    if function.device != context.device {
        return Err(Code::INVALID_CONTEXT);
    }
    let [x, y, z] = given.grid;
    let [u, v, w] = given.block;
    let shape = Shape {
        grid: (x, y, z).into(),
        block: (u, v, w).into(),
        cluster: None,
        shared_bytes: given.shared_bytes,
        cooperative: false,
    };
    if shape.grid.count() == 0 || shape.block.count() == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let arguments = checked_arguments(state, &function, shape, (given.parameters, given.extra))?;
    let launch = OwnedLaunch::new(&command(&function, shape, &arguments));
    Ok(NodeWork::Launch(Box::new(OwnedLaunch { given: given.function, ..launch })))
}

/// A function of the program.
pub(crate) fn host(state: &ProcessState, context: &Context, given: HostParameters) -> Answer<NodeWork> {
    if given.function == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let below = state.device(context.device as c_int)?.host_functions()?.function;
    let arguments = host_callbacks::pack([given.function, given.data]);
    Ok(NodeWork::Launch(Box::new(OwnedLaunch::new(&host_callbacks::command(below, &arguments)))))
}

/// A copy.
pub(crate) fn copy(state: &ProcessState, context: &Context, given: &Copy3D) -> Answer<NodeWork> {
    let (ends, extent) = given.ends(state)?;
    let copy = graph_copy(state, context, ends, extent)?;
    let launches = |triples: Vec<[usize; 3]>| -> Answer<Vec<OwnedLaunch>> {
        let launch = |triple| {
            let below = state.device(context.device as c_int)?.host_functions()?.copy;
            Ok(OwnedLaunch::new(&host_callbacks::command(below, &host_callbacks::pack(triple))))
        };
        triples.into_iter().map(launch).collect()
    };
    let (before, after) = (launches(copy.before)?, launches(copy.after)?);
    if let Some(block) = copy.block {
        context.order()?.get()?.keep_for_graphs(block);
    }
    Ok(NodeWork::Copy(Box::new(CopyWork {
        before,
        rows: copy.rows,
        bytes: extent.row_bytes,
        after,
        given: Some(*given),
    })))
}

/// A fill.
pub(crate) fn fill(state: &ProcessState, context: &Context, given: FillParameters) -> Answer<NodeWork> {
    let pattern = match given.element_bytes {
        1 => Pattern::U8(given.value as u8),
        2 => Pattern::U16(given.value as u16),
        4 => Pattern::U32(given.value),
        _ => return Err(Code::INVALID_VALUE),
    };
    let row_bytes = pattern.bytes().checked_mul(given.width as u64).ok_or(Code::INVALID_VALUE)?;
    let is_aligned = given.to.is_multiple_of(pattern.bytes());
    if !is_aligned
        || row_bytes == 0
        || given.height == 0
        || given.height > 1 && (given.pitch as u64) < row_bytes
    {
        return Err(Code::INVALID_VALUE);
    }
    let mut rows = Vec::new();
    for row in 0..given.height as u64 {
        let address = row.checked_mul(given.pitch as u64).and_then(|offset| given.to.checked_add(offset));
        let (allocation, offset) =
            state.memory.find_in(true, address.ok_or(Code::INVALID_VALUE)?, row_bytes)?;
        match allocation.place(context.device, offset) {
            Place::Device(place) => rows.push(place),
            // Memory of another device, or registered host memory, which fills do not reach.
            _ => return Err(Code::NOT_SUPPORTED),
        }
    }
    Ok(NodeWork::Fill { rows, pattern, count: given.width as u64, given: Some(given) })
}
