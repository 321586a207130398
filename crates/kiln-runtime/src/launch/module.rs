//! A loaded module.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use kiln_driver::{Driver, Image, ModuleId};

use super::kernel::Kernel;
use super::variables::ModuleVariables;
use crate::error::{Error, Misuse, Result, explained};
use crate::runtime::{DeviceRuntime, Inner, Keep};
use crate::signature::Signature;

/// A loaded module. Clones are the same module; it is unloaded when the last clone, the last kernel and the last variable from it are
/// dropped and its work is done.
#[derive(Clone)]
pub struct Module {
    loaded: Arc<Loaded>,
}

struct Loaded {
    runtime: Weak<Inner>,
    id: ModuleId,
    /// None if it has none for sure.
    variables: Option<ModuleVariables>,
    /// Whether it is an operation of a library.
    is_library: bool,
    unload: Arc<Unload>,
}

/// Unloads a module when it is dropped. Buffers over its variables hold it too.
struct Unload {
    runtime: Weak<Inner>,
    id: ModuleId,
    farewell: OnceLock<Farewell>,
}

/// What the driver is told of a module that nothing can use any more, before its work is done.
type Farewell = fn(&dyn Driver, ModuleId);

/// Has the driver told something as soon as the last clone, kernel, variable and graph of a module is dropped: it is unloaded when its work is done, which may be later.
pub fn on_last_drop(module: &Module, farewell: Farewell) {
    // The first one stays.
    let _ = module.loaded.unload.farewell.set(farewell);
}

impl DeviceRuntime {
    /// Loads an image.
    ///
    /// # Errors
    /// What the loader says, with its log. Code for another architecture and PTX newer than the driver are
    /// [`CodeError`](crate::CodeError)s that say what to do.
    pub fn load_module(&self, image: &Image<'_>) -> Result<Module> {
        self.load_image(image, None)
    }

    /// Loads an image that was made of PTX, if the PTX is known.
    pub(crate) fn load_image(&self, image: &Image<'_>, ptx: Option<&str>) -> Result<Module> {
        let id = self.driver().load(image).map_err(|error| explained(self.info(), image, error))?;
        self.inner().lend(id);
        let runtime = Arc::downgrade(self.inner());
        let unload = Arc::new(Unload { runtime: runtime.clone(), id, farewell: OnceLock::new() });
        let variables = ModuleVariables::of(image, ptx);
        let is_library = matches!(image, Image::Library(_));
        Ok(Module { loaded: Arc::new(Loaded { runtime, id, variables, is_library, unload }) })
    }
}

impl Module {
    /// Its name at the driver.
    pub fn id(&self) -> ModuleId {
        self.loaded.id
    }

    /// A kernel of the module. What is known of its parameters is checked at each launch: the signature given here, or
    /// else what the driver can tell.
    ///
    /// # Errors
    /// No kernel of that name; a signature that is not the kernel's; a runtime that is gone.
    pub fn kernel(&self, name: &str, signature: Option<Signature>) -> Result<Kernel> {
        let runtime = self.runtime()?;
        let (function, device) = (runtime.driver().function(self.id(), name)?, runtime.driver().info());
        let signature = match signature {
            Some(signature) => Some(signature.placed(name, &function.attributes, &device.limits)?),
            None => None,
        };
        Ok(Kernel::new(self.clone(), name, function, signature, device))
    }

    pub(crate) fn downgrade(&self) -> WeakModule {
        WeakModule(Arc::downgrade(&self.loaded))
    }

    /// Whether it is an operation of a library.
    pub(super) fn is_library(&self) -> bool {
        self.loaded.is_library
    }

    /// Its variables; none if it has none for sure.
    #[inline]
    pub(super) fn variables(&self) -> Option<&ModuleVariables> {
        self.loaded.variables.as_ref()
    }

    /// What keeps the module loaded, without its list of variables.
    pub(super) fn kept_loaded(&self) -> Keep {
        Box::new(self.loaded.unload.clone())
    }

    pub(super) fn runtime(&self) -> Result<Arc<Inner>> {
        self.loaded.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }

    /// Where the runtime lies that loaded it. The module holds on to the place, so no other runtime gets it meanwhile.
    pub(super) fn home(&self) -> usize {
        self.loaded.runtime.as_ptr().addr()
    }
}

/// A module that is loaded as long as it is used elsewhere.
#[derive(Clone)]
pub(crate) struct WeakModule(Weak<Loaded>);

impl WeakModule {
    /// Whether it is still used.
    pub(crate) fn is_loaded(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(crate) fn upgrade(&self) -> Option<Module> {
        self.0.upgrade().map(|loaded| Module { loaded })
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.loaded.id.fmt(f)
    }
}

impl Drop for Unload {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.upgrade() {
            if let Some(farewell) = self.farewell.get() {
                farewell(&**runtime.driver(), self.id);
            }
            runtime.retire(self.id);
        }
    }
}
