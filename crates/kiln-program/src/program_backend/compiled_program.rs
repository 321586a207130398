//! A program, compiled for a device.

use std::sync::Arc;

use kiln_driver::DeviceKind;
use kiln_ir::{Draft, ParameterLayout, Program, PtxTarget};
use kiln_runtime::code_cache::Key;
use kiln_runtime::internal::{count_found, ptx_key};
use kiln_runtime::{Kernel, Result};

use super::Backend;
use crate::dispatch_config::DispatchConfig;
use crate::error::ProgramError;

/// A program, compiled for a device and ready to be dispatched. It keeps its code loaded. Clones share it.
#[derive(Clone)]
pub struct Pipeline {
    backend: Backend,
    program: Program,
    layout: ParameterLayout,
    cooperative: bool,
    kernel: Kernel,
    /// What the code cache knows its code by.
    code: Key,
}

impl Pipeline {
    pub(crate) fn new(backend: Backend, program: Program, target: PtxTarget) -> Result<Self> {
        // A simulated device says where a mistake was made; a GPU has no use for lines.
        let emitted = match backend.runtime().info().kind {
            DeviceKind::Simulated => program.emit_with_lines(target),
            DeviceKind::Cuda => program.emit(target),
        };
        let code = ptx_key(backend.runtime(), &emitted.text);
        let kernel = backend.runtime().kernel(emitted.text.as_str(), &program.name)?;
        Ok(Self { backend, program, layout: emitted.layout, cooperative: emitted.cooperative, kernel, code })
    }

    /// Counts that it was asked for while it was there.
    pub(crate) fn count_found(&self) {
        count_found(self.backend.runtime(), &self.code);
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The device.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The kernel it became.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The parameters of the kernel.
    pub fn layout(&self) -> &ParameterLayout {
        &self.layout
    }

    /// Whether every launch of it must have all its blocks resident at once.
    pub fn is_cooperative(&self) -> bool {
        self.cooperative
    }

    /// The same program with blocks of another size.
    ///
    /// # Errors
    /// As for [`Backend::compile`]; a block the program cannot have.
    pub fn with_block(&self, block: [u32; 3]) -> Result<Arc<Self>> {
        let draft = Draft { block, ..self.program.clone().into_draft() };
        let program = Program::new(draft).map_err(|error| ProgramError::Shape {
            program: self.program.name.clone(),
            what: "block",
            given: format!("{}x{}x{}", block[0], block[1], block[2]),
            limit: error.to_string(),
        })?;
        self.backend.compile(&program)
    }

    /// The program with blocks as a configuration says, if that says other ones.
    pub(crate) fn variant(&self, config: &DispatchConfig) -> Result<Option<Arc<Self>>> {
        let other = config.block.filter(|block| *block != self.program.block);
        other.map(|block| self.with_block(block)).transpose()
    }

    /// Refuses a program that checks its accesses only in part.
    pub(crate) fn check_safe(&self) -> Result<()> {
        match self.program.buffers.iter().find(|buffer| buffer.unchecked) {
            None => Ok(()),
            Some(buffer) => {
                let (program, buffer) = (self.program.name.clone(), buffer.name.clone());
                Err(ProgramError::Unchecked { program, buffer }.into())
            }
        }
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pipeline of program `{}`", self.program.name)
    }
}
