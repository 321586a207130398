//! Operations of neural networks by cuDNN.
//!
//! An operation is a graph of cuDNN's backend API. Loading describes the graph, asks the heuristics for engines, and makes a plan with the first one that is allowed: its
//! results are as exact as the operation promises, and its workspace is not larger than the limit. A launch gives the plan addresses and workspace.

mod attention;
mod convolution;
mod descriptor;
mod enum_values;
mod graph;
mod plan;
mod symbols;

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Error, Result};
use kiln_operation::{ElementType, Math, Operation};

use super::PreparedOperation;
use super::arguments::OperationArguments;
use super::symbol_lookup;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::{LibraryKind, LibraryVersion};
use crate::native_handle::Native;
use descriptor::{Descriptor, DnnResult, Raw, check};
use enum_values::{Named, attribute, data_type, descriptor_type};
use graph::ScalarSource;
use plan::{EngineRules, ExecutionPlan};
use symbols::DnnApi;

/// The handle of a device.
pub(crate) struct DnnHandle {
    api: &'static DnnApi,
    raw: Native<c_void>,
    version: usize,
    context: Arc<Context>,
    /// Held while its stream is set and a call uses it.
    turn: Mutex<()>,
}

/// An operation with its plan.
pub(super) struct DnnCall {
    /// Taken when it is dropped.
    plan: Option<ExecutionPlan>,
    /// How many operands are tensors; they are named from 1 on.
    tensors: usize,
    /// Numbers that a launch gives by value, with their names.
    scalars: Vec<(i64, ScalarSource)>,
    workspace_bytes: u64,
    handle: Arc<DnnHandle>,
}

impl DnnHandle {
    fn create(call: &'static str, context: &Arc<Context>) -> Result<Arc<Self>> {
        let api = DnnApi::load(call)?;
        // SAFETY: the call takes nothing.
        let version = unsafe { (api.version)() };
        let number = LibraryVersion::of_number(u32::try_from(version).unwrap_or(u32::MAX));
        symbol_lookup::check_version(call, LibraryKind::Cudnn, number)?;
        // cuDNN opens these by name, and finds those that the process has. Without cuBLASLt it ends the process; only some engines use the others.
        let _ = symbol_lookup::open(call, LibraryKind::CublasLt)?;
        for kind in [LibraryKind::Cublas, LibraryKind::Nvrtc] {
            let _ = symbol_lookup::open(call, kind);
        }
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local, and the context is current.
        let status = unsafe { (api.create)(raw.slot()) };
        check(api, "cudnnCreate", status, || "a handle".to_owned())
            .map_err(|failure| failure.error(call, "a handle"))?;
        Ok(Arc::new(Self { api, raw, version, context: context.clone(), turn: Mutex::new(()) }))
    }
}

impl Drop for DnnHandle {
    fn drop(&mut self) {
        let (api, raw) = (self.api, self.raw);
        self.context.free_when_idle(move |_| {
            // SAFETY: this was the only owner.
            unsafe { (api.destroy)(raw.raw()) };
            0
        });
    }
}

impl DnnCall {
    pub(super) fn prepare(call: &'static str, device: &CudaDevice, operation: &Operation) -> Result<Self> {
        let mut known = device.cudnn.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*known {
            Some(handle) => handle.clone(),
            None => known.insert(DnnHandle::create(call, &device.context)?).clone(),
        };
        drop(known);
        let text = operation.to_string();
        let turn = handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (described, rules) = match operation {
            Operation::Convolution(convolution) => (
                convolution::describe(&handle, convolution),
                EngineRules {
                    element: convolution.element,
                    math: convolution.math,
                    order: convolution.order,
                    workspace_limit_bytes: convolution.workspace,
                },
            ),
            Operation::Attention(attention) => (
                attention::describe(&handle, attention),
                EngineRules {
                    element: attention.element,
                    math: Math::Ieee,
                    order: attention.order,
                    workspace_limit_bytes: attention.workspace,
                },
            ),
            other => {
                return Err(Error::unsupported(call, "an operation that cuDNN does not have", other.name()));
            }
        };
        let graph = described.map_err(|failure| failure.error(call, &text))?;
        let scalars = graph.scalars.clone();
        let (operations, parts) = graph.into_parts();
        let plan = ExecutionPlan::search(call, &handle, operations, parts, rules, &text)?;
        drop(turn);
        let tensors = operation.operands().iter().filter(|operand| operand.effect.is_memory()).count();
        let workspace_bytes = plan.workspace_bytes;
        Ok(Self { plan: Some(plan), tensors, scalars, workspace_bytes, handle })
    }

    /// The bits of the numbers that a launch gives by value.
    fn values(&self, arguments: &OperationArguments<'_>) -> Vec<u32> {
        let value = |source: &ScalarSource| match *source {
            ScalarSource::Argument(index) => (arguments.scalar(index) as f32).to_bits(),
            ScalarSource::Constant(value) => value.to_bits(),
            ScalarSource::Integer(value) => value.cast_unsigned(),
        };
        self.scalars.iter().map(|(_, source)| value(source)).collect()
    }

    /// The addresses of a launch.
    fn variant_pack(&self, arguments: &OperationArguments<'_>, values: &[u32]) -> DnnResult<Descriptor> {
        let pack = Descriptor::new(self.handle.api, descriptor_type::VARIANT_PACK)?;
        let ids: Vec<i64> = (1..).take(self.tensors).chain(self.scalars.iter().map(|(id, _)| *id)).collect();
        let tensors = (0..self.tensors).map(|index| arguments.address(index));
        let values = values.iter().map(|value| std::ptr::from_ref(value).cast_mut().cast());
        let addresses: Vec<Raw> = tensors.chain(values).collect();
        let workspace: Raw = match self.workspace_bytes {
            0 => std::ptr::null_mut(),
            _ => arguments.workspace(),
        };
        pack.set_pointers(attribute::VARIANT_PACK_DATA_POINTERS, &addresses)?;
        pack.set_integers(attribute::VARIANT_PACK_UNIQUE_IDS, &ids)?;
        pack.set_pointers(attribute::VARIANT_PACK_WORKSPACE, &[workspace])?;
        pack.finalize()
    }
}

impl Drop for DnnCall {
    fn drop(&mut self) {
        let Some(plan) = self.plan.take() else { return };
        // A plan owns kernels, which may still run.
        let descriptors = plan.into_descriptors();
        self.handle.context.free_when_idle(move |_| {
            drop(ManuallyDrop::into_inner(descriptors));
            0
        });
    }
}

impl PreparedOperation for DnnCall {
    fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes
    }

    unsafe fn queue(&self, stream: sys::CUstream, arguments: &OperationArguments<'_>) -> DnnResult<()> {
        let Some(plan) = &self.plan else { return Ok(()) };
        let handle = &self.handle;
        let _turn = handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // They are read while the plan is executed.
        let values = self.values(arguments);
        let pack = self.variant_pack(arguments, &values)?;
        // SAFETY: here and below, the lock keeps others from the handle, and the caller vouches for stream and addresses.
        let status = unsafe { (handle.api.set_stream)(handle.raw.raw(), stream) };
        check(handle.api, "cudnnSetStream", status, || "the stream of a launch".to_owned())?;
        // SAFETY: as above; the plan and the addresses belong to the same graph.
        let status = unsafe { (handle.api.execute)(handle.raw.raw(), plan.plan.raw(), pack.raw()) };
        check(handle.api, "cudnnBackendExecute", status, || "a plan".to_owned())
    }
}

/// `cudnnDataType_t` of the elements of a tensor in memory. Operations are checked to have one of these.
fn element_kind(element: ElementType) -> Named {
    match element {
        ElementType::F16 => data_type::HALF,
        ElementType::Bf16 => data_type::BFLOAT16,
        _ => data_type::FLOAT,
    }
}
