//! A kernel that can be launched.

use std::fmt;
use std::sync::{Arc, OnceLock};

use kiln_driver::{DeviceInfo, Function, FunctionAttributes, FunctionId, Image, Occupancy};
use kiln_trace::{KnownName, interned_name};

use super::module::Module;
use super::shape::Bounds;
use super::variables::{ModuleVariables, Variable};
use crate::error::Result;
use crate::runtime::{DeviceRuntime, Inner};
use crate::signature::{ParameterName, Signature, Slot, SlotList};

/// A kernel of a loaded module. Clones are the same kernel; it keeps its module loaded.
#[derive(Clone)]
pub struct Kernel {
    parts: Arc<Parts>,
}

/// What the clones of a kernel share.
// In this order and place: what every launch looks at stands together, in two cache lines.
#[repr(C, align(64))]
struct Parts {
    /// Where the runtime lies that loaded it; it is compared and never followed.
    home: usize,
    id: FunctionId,
    bounds: Bounds,
    /// The signature as launches compare with it.
    slots: SlotList,
    /// Whether its module has variables, or may have.
    has_variables: bool,
    /// Whether its device checks accesses, so that launches say what they may touch.
    is_checked: bool,
    /// Whether it is an operation of a library.
    is_library: bool,
    signature: Option<Signature>,
    attributes: FunctionAttributes,
    module: Module,
    name: Box<str>,
    /// The name as recordings have it, once it was recorded.
    recorded_name: OnceLock<KnownName>,
    /// The library call that first launched it, and its name as recordings have it there.
    name_in_call: OnceLock<(&'static str, KnownName)>,
}

impl DeviceRuntime {
    /// Loads an image and looks a kernel up in it. What is known of its parameters is checked at each launch: the signature given
    /// here, or else what the driver can tell.
    ///
    /// # Errors
    /// What the loader says, with its log; no kernel of that name; a signature that is not the kernel's.
    pub fn load_kernel(&self, image: &Image<'_>, name: &str, signature: Option<Signature>) -> Result<Kernel> {
        self.load_module(image)?.kernel(name, signature)
    }
}

impl Kernel {
    pub(super) fn new(
        module: Module,
        name: &str,
        function: Function,
        signature: Option<Signature>,
        device: &DeviceInfo,
    ) -> Self {
        let signature = signature.or_else(|| Signature::from_attributes(&function.attributes));
        let parts = Parts {
            home: module.home(),
            id: function.id,
            bounds: Bounds::of(device, &function.attributes),
            slots: SlotList::of(signature.as_ref()),
            has_variables: module.variables().is_some(),
            is_checked: device.features.access_checks,
            is_library: module.is_library(),
            signature,
            attributes: function.attributes,
            module,
            name: name.into(),
            recorded_name: OnceLock::new(),
            name_in_call: OnceLock::new(),
        };
        Self { parts: Arc::new(parts) }
    }

    /// Its name as recordings have it.
    #[inline]
    pub(super) fn recorded_name(&self) -> KnownName {
        *self.parts.recorded_name.get_or_init(|| KnownName::of(interned_name(&self.parts.name)))
    }

    /// Its name as recordings have it where it is a part of a library call.
    #[cold]
    pub(super) fn name_in_call(&self, call: &'static str) -> KnownName {
        let named = || KnownName::of(interned_name(&format!("{call}: {}", self.parts.name)));
        let (first, name) = self.parts.name_in_call.get_or_init(|| (call, named()));
        if *first == call { *name } else { named() }
    }

    /// Whether it is an operation of a library.
    #[inline]
    pub(super) fn is_library(&self) -> bool {
        self.parts.is_library
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// What the driver knows of it.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.parts.attributes
    }

    /// What is known of its parameters.
    pub fn signature(&self) -> Option<&Signature> {
        self.parts.signature.as_ref()
    }

    /// How many of its blocks fit on a multiprocessor, and the block size that fills the device best.
    ///
    /// # Errors
    /// A block no multiprocessor can hold; a runtime that is gone.
    pub fn occupancy(&self, block_threads: u32, dynamic_shared_bytes: u32) -> Result<Occupancy> {
        Ok(self.parts.module.runtime()?.driver().occupancy(
            self.parts.id,
            block_threads,
            dynamic_shared_bytes,
        )?)
    }

    /// The module it is from.
    pub fn module(&self) -> &Module {
        &self.parts.module
    }

    /// Whether launches have to look for variables.
    #[inline(always)]
    pub(super) fn has_variables(&self) -> bool {
        self.parts.has_variables
    }

    /// Whether launches have to say what they may touch.
    #[inline(always)]
    pub(crate) fn is_checked(&self) -> bool {
        self.parts.is_checked
    }

    /// The variables of its module that were asked for.
    pub(super) fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.parts.module.variables().into_iter().flat_map(ModuleVariables::iter)
    }

    /// What it and its device allow.
    #[inline]
    pub(super) fn bounds(&self) -> &Bounds {
        &self.parts.bounds
    }

    /// Its parameters, if they are known.
    #[inline(always)]
    pub(super) fn slots(&self) -> Option<&[Slot]> {
        self.parts.slots.known()
    }

    pub(super) fn id(&self) -> FunctionId {
        self.parts.id
    }

    pub(super) fn belongs_to(&self, runtime: &Inner) -> bool {
        self.parts.home == std::ptr::from_ref(runtime).addr()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.name())
    }
}

/// A parameter of a kernel in words, for what its kind of error does not say.
#[cold]
pub(super) fn place(kernel: &Kernel, index: usize) -> String {
    let known = kernel.signature().and_then(|signature| signature.parameters().get(index));
    let name = known.and_then(|parameter| parameter.name.clone());
    format!("kernel `{}`, {}", kernel.name(), ParameterName { index, name })
}
