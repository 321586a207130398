//! A kernel that can be launched.

use std::fmt;
use std::sync::{Arc, Weak};

use kiln_driver::{FunctionAttributes, FunctionId, Image, ModuleId, Occupancy};

use super::signature::Signature;
use crate::error::{Error, Result};
use crate::misuse::Misuse;
use crate::runtime::{DeviceRuntime, Inner};

/// A kernel of a loaded module. Clones are the same kernel; the module is unloaded when the last kernel from it is dropped and
/// its work is done.
#[derive(Clone)]
pub struct Kernel {
    module: Arc<Module>,
    name: Arc<str>,
    id: FunctionId,
    attributes: Arc<FunctionAttributes>,
    signature: Option<Arc<Signature>>,
}

struct Module {
    runtime: Weak<Inner>,
    id: ModuleId,
}

impl DeviceRuntime {
    /// Loads an image and looks a kernel up in it. What is known of its parameters is checked at each launch: the signature given
    /// here, or else what the driver can tell.
    ///
    /// # Errors
    /// What the loader says, with its log; no kernel of that name.
    pub fn load_kernel(&self, image: &Image<'_>, name: &str, signature: Option<Signature>) -> Result<Kernel> {
        let driver = self.driver();
        let id = driver.load(image)?;
        let module = Arc::new(Module { runtime: Arc::downgrade(self.inner()), id });
        let function = driver.function(id, name)?;
        let signature = signature.or_else(|| Signature::from_attributes(&function.attributes));
        Ok(Kernel {
            module,
            name: name.into(),
            id: function.id,
            attributes: Arc::new(function.attributes),
            signature: signature.map(Arc::new),
        })
    }
}

impl Kernel {
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
        let runtime = self.module.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))?;
        Ok(runtime.driver().occupancy(self.id, block_threads, dynamic_shared_bytes)?)
    }

    pub(super) fn id(&self) -> FunctionId {
        self.id
    }

    pub(super) fn belongs_to(&self, runtime: &Inner) -> bool {
        std::ptr::eq(self.module.runtime.as_ptr(), runtime)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.retire_module(self.id);
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.name)
    }
}
