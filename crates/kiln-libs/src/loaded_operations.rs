//! Operations that are loaded on a device.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kiln_driver::Image;
use kiln_operation::{ARGUMENT_BYTES, OperandEffect, Operation, OperationOperand};
use kiln_runtime::{DeviceRuntime, Kernel, Number, Parameter, ParameterKind, Signature};

use crate::Result;
use crate::scaling::ScalingKernels;

/// The operations of one device that were used, each loaded once.
pub(crate) struct LoadedOperations {
    gpu: DeviceRuntime,
    kernels: Mutex<HashMap<Operation, Kernel>>,
    pub(crate) scaling: ScalingKernels,
}

impl LoadedOperations {
    pub(crate) fn new(gpu: &DeviceRuntime) -> Self {
        Self { gpu: gpu.clone(), kernels: Mutex::default(), scaling: ScalingKernels::default() }
    }

    pub(crate) fn gpu(&self) -> &DeviceRuntime {
        &self.gpu
    }

    /// The function of an operation. If two threads load it at once, the first one is kept.
    pub(crate) fn kernel(&self, operation: &Operation, operands: &[OperationOperand]) -> Result<Kernel> {
        if let Some(kernel) = self.known().get(operation) {
            return Ok(kernel.clone());
        }
        let module = self.gpu.load_module(&Image::Library(&operation.to_string()))?;
        // Whether there is a workspace is known once the operation is loaded.
        let workspace = module.kernel(operation.name(), None)?.attributes().workspace_bytes;
        let kernel = module.kernel(operation.name(), Some(signature(operands, workspace > 0)))?;
        Ok(self.known().entry(*operation).or_insert(kernel).clone())
    }

    /// Calls of an operation use another one from now on, which has the same arguments.
    pub(crate) fn replace(&self, operation: &Operation, by: &Operation) -> Result<()> {
        let kernel = self.kernel(by, &by.checked_operands()?)?;
        self.known().insert(*operation, kernel);
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Operation, Kernel>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
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
