//! Which kernels may depend on more than their arguments.
//!
//! Variables of modules start over with each worker, and no launch declares to use them. A kernel of a module that has any would be done again on
//! other values than it was queued for, so it is not.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use kiln_driver::{FunctionId, Image, ModuleId};
use kiln_ptx::declares_variables;

/// Modules that have variables or may have, and their kernels.
#[derive(Default)]
pub(super) struct Variables {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    modules: HashSet<ModuleId>,
    functions: HashSet<FunctionId>,
}

impl Variables {
    /// A module was loaded from an image.
    pub(super) fn loaded(&self, module: ModuleId, image: &Image<'_>) {
        if may_have_variables(image) {
            self.known.write().unwrap_or_else(PoisonError::into_inner).modules.insert(module);
        }
    }

    /// A kernel was looked up.
    pub(super) fn found(&self, module: ModuleId, function: FunctionId) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.modules.contains(&module) {
            known.functions.insert(function);
        }
    }

    /// Why a launch of a kernel must not be repeated.
    pub(super) fn hindrance(&self, function: FunctionId) -> Option<&'static str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.functions.contains(&function).then_some("its kernel's module has variables")
    }
}

/// Whether an image may declare variables that a kernel or the host can write. What cannot be looked into may.
fn may_have_variables(image: &Image<'_>) -> bool {
    match image {
        Image::Ptx(text) | Image::PtxToKeep { text, .. } => declares_variables(text),
        Image::Cubin(bytes) if bytes.starts_with(b"\x7fELF") => {
            let has = |section: &[u8]| bytes.windows(section.len()).any(|window| window == section);
            has(b".nv.global") || has(b".nv.constant3")
        }
        // The machine code of a simulated device is PTX behind one line.
        Image::Cubin(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(".version") => declares_variables(text),
            _ => true,
        },
        // An operation of a library works on its operands and on the workspace that its launch declares, and on nothing else.
        Image::Library(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_text_and_in_machine_code() {
        assert!(!may_have_variables(&Image::Ptx("ld.global.u32 %r1, [%rd1];")));
        assert!(may_have_variables(&Image::Ptx(".visible .global .align 4 .u32 counter;")));
        let cubin = |bytes: &[u8]| may_have_variables(&Image::Cubin(bytes));
        assert!(!cubin(b"\x7fELF .text.axpy .nv.constant0.axpy .nv.info"));
        assert!(cubin(b"\x7fELF .text.axpy .nv.global.init"));
        assert!(cubin(b"\x7fELF .text.axpy .nv.constant3"));
        assert!(cubin(b"several bound together, perhaps compressed"));
        assert!(!cubin(b"code for 9.0\n.version 8.0\n ld.global.u32 %r1, [%rd1];"));
        assert!(cubin(b"code for 9.0\n.version 8.0\n .global .u32 counter;"));
        assert!(!may_have_variables(&Image::Library("blas.scal element=f32 n=4 x_step=1")));
        assert!(may_have_variables(&Image::HostKernels("scripts")));
    }
}
