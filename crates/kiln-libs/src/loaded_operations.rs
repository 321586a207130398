//! Operations that are loaded on a device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::Image;
use kiln_operation::{ARGUMENT_BYTES, OperandEffect, Operation, OperationOperand};
use kiln_runtime::{DeviceRuntime, Number, Parameter, ParameterKind, Signature};

use crate::Result;
use crate::kept_workspace::KeptWorkspaces;
use crate::loaded_operation::LoadedOperation;
use crate::needed_capability::check_capability;
use crate::operand_fit::OperandFit;
use crate::operation_table::OperationTable;
use crate::scaling::ScalingKernels;

/// The operations of one device that were used, each loaded once.
pub(crate) struct LoadedOperations {
    gpu: DeviceRuntime,
    table: OperationTable,
    /// Taken to change the table.
    changing: Mutex<()>,
    pub(crate) scaling: ScalingKernels,
    pub(crate) workspaces: KeptWorkspaces,
}

impl LoadedOperations {
    pub(crate) fn new(gpu: &DeviceRuntime) -> Self {
        Self {
            gpu: gpu.clone(),
            table: OperationTable::default(),
            changing: Mutex::default(),
            scaling: ScalingKernels::default(),
            workspaces: KeptWorkspaces::new(gpu),
        }
    }

    pub(crate) fn gpu(&self) -> &DeviceRuntime {
        &self.gpu
    }

    /// An operation that was used before.
    #[inline]
    pub(crate) fn find(&self, operation: &Operation) -> Option<&LoadedOperation> {
        self.table.find(operation)
    }

    /// Loads an operation. If two threads load it at once, the first one is kept.
    #[cold]
    pub(crate) fn load(
        &self,
        operation: &Operation,
        operands: &[OperationOperand],
    ) -> Result<&LoadedOperation> {
        if let Some(loaded) = self.find(operation) {
            return Ok(loaded);
        }
        check_capability(operation, self.gpu.info().capability)?;
        let module = self.gpu.load_module(&Image::Library(&operation.to_string()))?;
        // Whether there is a workspace is known once the operation is loaded.
        let workspace_bytes = module.kernel(operation.name(), None)?.attributes().workspace_bytes;
        let kernel = module.kernel(operation.name(), Some(signature(operands, workspace_bytes > 0)))?;
        let operands = operands.iter().map(OperandFit::of).collect();
        let loaded = LoadedOperation { kernel, workspace_bytes, operands, operation: *operation };
        let _changing = self.changing();
        Ok(self.table.add(operation, &loaded))
    }

    /// Calls of an operation use another one from now on, which has the same arguments.
    pub(crate) fn replace(&self, operation: &Operation, by: &Operation) -> Result<()> {
        if self.find(operation).is_some_and(|loaded| loaded.operation == *by) {
            return Ok(());
        }
        let loaded = self.load(by, &by.checked_operands()?)?;
        let _changing = self.changing();
        self.table.retire(operation);
        self.table.add(operation, loaded);
        Ok(())
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
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
        write!(f, "{} operations on {:?}", self.table.len(), self.gpu)
    }
}
