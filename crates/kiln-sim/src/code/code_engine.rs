//! The interface for code as text: an engine that turns PTX into kernels.

use std::sync::Arc;

use kiln_driver::{Code, DeviceInfo};

use crate::code::kernel::SimKernel;

/// Turns PTX into kernels the machine can run.
pub trait CodeEngine: Send + Sync {
    /// Reads and prepares PTX for a device.
    ///
    /// # Errors
    /// What the loader of a real device would say.
    fn compile(&self, ptx: &str, device: &DeviceInfo) -> Result<CompiledModule, CompileError>;
}

/// What the nth variable holds when all variables lie at these addresses.
pub type Relocate = Arc<dyn Fn(usize, &[u64]) -> Vec<u8> + Send + Sync>;

/// What was found in an image.
#[derive(Clone, Default)]
pub struct CompiledModule {
    /// The kernels, by name.
    pub kernels: Vec<(String, Arc<dyn SimKernel>)>,
    /// Kernels that are not accepted while the others are, by name. Looking one up answers why.
    pub refused: Vec<(String, CompileError)>,
    /// The variables; a launch is told their addresses in this order.
    pub variables: Vec<SimVariable>,
    /// What each variable holds once all of them have addresses, where that depends on them.
    pub relocate: Option<Relocate>,
}

/// A variable of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimVariable {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What it holds when the module is loaded; what this does not reach is zero.
    pub contents: Vec<u8>,
    /// Whether kernels may write it.
    pub writable: bool,
}

/// Why an image was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    /// The code of the loader.
    pub code: Code,
    /// Its log.
    pub log: String,
}
