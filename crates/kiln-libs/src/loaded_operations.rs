//! Operations that are loaded on a device.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::Image;
use kiln_operation::{ARGUMENT_BYTES, OperandEffect, Operation, OperationOperand};
use kiln_runtime::{DeviceRuntime, Kernel, Number, Parameter, ParameterKind, Signature};

use crate::Result;
use crate::kept_workspace::KeptWorkspaces;
use crate::needed_capability::check_capability;
use crate::operation_hasher::OperationHasher;
use crate::scaling::ScalingKernels;

/// The operations of one device that were used, each loaded once.
pub(crate) struct LoadedOperations {
    gpu: DeviceRuntime,
    by_operation: Mutex<Known>,
    pub(crate) scaling: ScalingKernels,
    pub(crate) workspaces: KeptWorkspaces,
}

type Known = HashMap<Operation, Arc<LoadedOperation>, BuildHasherDefault<OperationHasher>>;

/// An operation that passed its checks and is loaded.
pub(crate) struct LoadedOperation {
    pub(crate) kernel: Kernel,
    pub(crate) operands: Box<[OperationOperand]>,
    pub(crate) name: &'static str,
    /// Whether the library waits for the device while it queues the operation.
    pub(crate) waits_for_device: bool,
}

impl LoadedOperations {
    pub(crate) fn new(gpu: &DeviceRuntime) -> Self {
        Self {
            gpu: gpu.clone(),
            by_operation: Mutex::default(),
            scaling: ScalingKernels::default(),
            workspaces: KeptWorkspaces::new(gpu),
        }
    }

    pub(crate) fn gpu(&self) -> &DeviceRuntime {
        &self.gpu
    }

    /// An operation that was used before.
    pub(crate) fn find(&self, operation: &Operation) -> Option<Arc<LoadedOperation>> {
        self.known().get(operation).cloned()
    }

    /// Loads an operation. If two threads load it at once, the first one is kept.
    pub(crate) fn load(
        &self,
        operation: &Operation,
        operands: Vec<OperationOperand>,
    ) -> Result<Arc<LoadedOperation>> {
        if let Some(loaded) = self.find(operation) {
            return Ok(loaded);
        }
        check_capability(operation, self.gpu.info().capability)?;
        let module = self.gpu.load_module(&Image::Library(&operation.to_string()))?;
        // Whether there is a workspace is known once the operation is loaded.
        let workspace = module.kernel(operation.name(), None)?.attributes().workspace_bytes;
        let kernel = module.kernel(operation.name(), Some(signature(&operands, workspace > 0)))?;
        let (name, waits_for_device) = (operation.name(), operation.waits_for_device());
        let loaded = Arc::new(LoadedOperation { kernel, operands: operands.into(), name, waits_for_device });
        Ok(Arc::clone(self.known().entry(*operation).or_insert(loaded)))
    }

    /// Calls of an operation use another one from now on, which has the same arguments.
    pub(crate) fn replace(&self, operation: &Operation, by: &Operation) -> Result<()> {
        let loaded = self.load(by, by.checked_operands()?)?;
        self.known().insert(*operation, loaded);
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.by_operation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parameters of an operation, as launches are compared with them.
fn signature(operands: &[OperationOperand], has_workspace: bool) -> Signature {
    let names = operands.iter().map(|operand| (operand.name, operand.effect));
    let all = names.chain(has_workspace.then_some(("workspace", OperandEffect::Writes)));
    let parameter = |(at, (name, effect)): (u32, (&str, OperandEffect))| Parameter {
        name: Some(name.to_owned()),
        offset: at * ARGUMENT_BYTES,
        bytes: ARGUMENT_BYTES,
        kind: match effect {
            OperandEffect::Scalar => ParameterKind::Value,
            OperandEffect::Reads => ParameterKind::Pointer(kiln_runtime::Effect::Reads),
            OperandEffect::Overwrites | OperandEffect::Writes => {
                ParameterKind::Pointer(kiln_runtime::Effect::Writes)
            }
            OperandEffect::ReadsAndWrites => ParameterKind::Pointer(kiln_runtime::Effect::ReadsAndWrites),
        },
        number: if effect == OperandEffect::Scalar { Number::Float } else { Number::Unknown },
    };
    Signature::new((0..).zip(all).map(parameter).collect())
}

impl std::fmt::Debug for LoadedOperations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} operations on {:?}", self.known().len(), self.gpu)
    }
}
