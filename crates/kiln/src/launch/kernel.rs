//! A kernel that can be launched.

use std::fmt;
use std::sync::Arc;

use kiln_driver::{Function, FunctionAttributes, FunctionId, Image, Occupancy};

use super::module::Module;
use super::signature::Signature;
use crate::error::Result;
use crate::runtime::{DeviceRuntime, Inner};

/// A kernel of a loaded module. Clones are the same kernel; it keeps its module loaded.
#[derive(Clone)]
pub struct Kernel {
    module: Module,
    name: Arc<str>,
    id: FunctionId,
    attributes: Arc<FunctionAttributes>,
    signature: Option<Arc<Signature>>,
}

impl DeviceRuntime {
    /// Loads an image and looks a kernel up in it. What is known of its parameters is checked at each launch: the signature given
    /// here, or else what the driver can tell.
    ///
    /// # Errors
    /// What the loader says, with its log; no kernel of that name.
    pub fn load_kernel(&self, image: &Image<'_>, name: &str, signature: Option<Signature>) -> Result<Kernel> {
        self.load_module(image)?.kernel(name, signature)
    }
}

impl Kernel {
    pub(super) fn new(module: Module, name: &str, function: Function, signature: Option<Signature>) -> Self {
        let signature = signature.or_else(|| Signature::from_attributes(&function.attributes));
        Self {
            module,
            name: name.into(),
            id: function.id,
            attributes: Arc::new(function.attributes),
            signature: signature.map(Arc::new),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the driver knows of it.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.attributes
    }

    /// What is known of its parameters.
    pub fn signature(&self) -> Option<&Signature> {
        self.signature.as_deref()
    }

    /// How many of its blocks fit on a multiprocessor, and the block size that fills the device best.
    ///
    /// # Errors
    /// A block no multiprocessor can hold; a runtime that is gone.
    pub fn occupancy(&self, block_threads: u32, dynamic_shared_bytes: u32) -> Result<Occupancy> {
        Ok(self.module.runtime()?.driver().occupancy(self.id, block_threads, dynamic_shared_bytes)?)
    }

    pub(super) fn id(&self) -> FunctionId {
        self.id
    }

    pub(super) fn belongs_to(&self, runtime: &Inner) -> bool {
        self.module.belongs_to(runtime)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.name)
    }
}
