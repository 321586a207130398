//! Libraries: code that is loaded into each context when it is first used there.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out, Text};
use crate::calls::functions::parameter;
use crate::calls::modules::{self, JitOptions, module, ptx_of_file};
use crate::calls::process_state::{ProcessState, current, state};
use crate::handle_table::RawHandle;
use crate::image;

/// Code that belongs to no context.
pub(crate) struct Library {
    ptx: String,
    /// Its module in each context, by the context's number.
    modules: Mutex<HashMap<u64, RawHandle>>,
    kernels: Mutex<HashMap<String, RawHandle>>,
}

impl Library {
    /// Its modules that are there now.
    pub(crate) fn loaded_modules(&self, state: &ProcessState) -> usize {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.values().filter(|module| state.modules.get(**module).is_some()).count()
    }
}

/// A kernel of a library.
pub(crate) struct Kernel {
    library: RawHandle,
    name: CString,
}

fn library(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Library>> {
    state.libraries.get(handle).ok_or(Code::INVALID_HANDLE)
}

fn kernel(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Kernel>> {
    state.kernels.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// The module of a library in the current context.
fn module_here(handle: RawHandle) -> Answer<RawHandle> {
    let (state, context) = current()?;
    let library = library(state, handle)?;
    let mut modules = library.modules.lock().unwrap_or_else(PoisonError::into_inner);
    // A context that ended and began again has lost its modules.
    if let Some(known) = modules.get(&context.number).filter(|known| state.modules.get(**known).is_some()) {
        return Ok(*known);
    }
    let new = modules::load(state, &context, &library.ptx, None)?;
    modules.insert(context.number, new);
    Ok(new)
}

/// The function of a kernel in the current context.
pub(crate) fn function_of_kernel(state: &ProcessState, handle: RawHandle) -> Answer<RawHandle> {
    let kernel = kernel(state, handle)?;
    let module = module_here(kernel.library)?;
    modules::function(state, module, &kernel.name.to_string_lossy())
}

fn load(out: Out<RawHandle>, ptx: String, options: JitOptions) -> Answer {
    let state = state()?;
    out.check()?;
    let new = Library { ptx, modules: Mutex::default(), kernels: Mutex::default() };
    let handle = state.libraries.insert(Arc::new(new)).ok_or(Code::OUT_OF_MEMORY)?;
    // Code that is not accepted is told here, if there is a context to try it in.
    if let Ok((_, context)) = current() {
        let library = library(state, handle)?;
        match modules::load(state, &context, &library.ptx, Some(options)) {
            Ok(module) => {
                library.modules.lock().unwrap_or_else(PoisonError::into_inner).insert(context.number, module);
            }
            Err(code) => {
                state.libraries.remove(handle);
                return Err(code);
            }
        }
    }
    out.set(handle)
}

fn kernel_handle(state: &ProcessState, handle: RawHandle, name: &str) -> Answer<RawHandle> {
    let library = library(state, handle)?;
    let mut kernels = library.kernels.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kernels.get(name) {
        return Ok(*known);
    }
    if !library.ptx.contains(name) {
        return Err(Code::NOT_FOUND);
    }
    if current().is_ok() {
        let module = module_here(handle)?;
        modules::function(state, module, name)?;
    }
    let text = CString::new(name).map_err(|_| Code::NOT_FOUND)?;
    let new = Kernel { library: handle, name: text };
    let new = state.kernels.insert(Arc::new(new)).ok_or(Code::OUT_OF_MEMORY)?;
    kernels.insert(name.to_owned(), new);
    Ok(new)
}

driver_api! {
    fn cuLibraryLoadData(
        out: Out<RawHandle>,
        code: *const c_void,
        keys: In<c_uint>,
        values: In<*mut c_void>,
        count: c_uint,
        _library_keys: *const c_void,
        _library_values: *const c_void,
        _library_count: c_uint
    ) {
        load(out, image::ptx(code, state()?.architecture())?, JitOptions { count, keys, values })
    }

    fn cuLibraryLoadFromFile(
        out: Out<RawHandle>,
        path: Text,
        keys: In<c_uint>,
        values: In<*mut c_void>,
        count: c_uint,
        _library_keys: *const c_void,
        _library_values: *const c_void,
        _library_count: c_uint
    ) {
        state()?;
        load(out, ptx_of_file(path)?, JitOptions { count, keys, values })
    }

    fn cuLibraryUnload(handle: RawHandle) {
        let state = state()?;
        let gone = state.libraries.remove(handle).ok_or(Code::INVALID_HANDLE)?;
        state.kernels.remove_where(|kernel| kernel.library == handle);
        let modules = std::mem::take(&mut *gone.modules.lock().unwrap_or_else(PoisonError::into_inner));
        for module in modules.into_values().filter(|module| state.modules.get(*module).is_some()) {
            modules::unload(state, module)?;
        }
        Ok(())
    }

    fn cuLibraryGetKernel(out: Out<RawHandle>, handle: RawHandle, name: Text) {
        let state = state()?;
        out.check()?;
        out.set(kernel_handle(state, handle, &name.get()?)?)
    }

    fn cuLibraryGetModule(out: Out<RawHandle>, handle: RawHandle) {
        out.check()?;
        out.set(module_here(handle)?)
    }

    fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, handle: RawHandle, name: Text) {
        let state = state()?;
        let (start, length) = modules::global(state, module_here(handle)?, &name.get()?)?;
        address.set_if_wanted(start);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }

    fn cuLibraryGetKernelCount(out: Out<c_uint>, handle: RawHandle) {
        let state = state()?;
        out.set(module(state, module_here(handle)?)?.kernels.len() as c_uint)
    }

    fn cuLibraryEnumerateKernels(out: Out<RawHandle>, count: c_uint, handle: RawHandle) {
        let state = state()?;
        let module = module(state, module_here(handle)?)?;
        for (index, name) in module.kernels.iter().take(count as usize).enumerate() {
            out.set_at(index, kernel_handle(state, handle, name)?)?;
        }
        Ok(())
    }

    fn cuKernelGetFunction(out: Out<RawHandle>, handle: RawHandle) {
        out.check()?;
        out.set(function_of_kernel(state()?, handle)?)
    }

    fn cuKernelGetLibrary(out: Out<RawHandle>, handle: RawHandle) {
        out.set(kernel(state()?, handle)?.library)
    }

    fn cuKernelGetName(out: Out<*const c_char>, handle: RawHandle) {
        let state = state()?;
        // The text lives as long as the kernel is in the table.
        out.set(kernel(state, handle)?.name.as_ptr())
    }

    fn cuKernelGetAttribute(out: Out<c_int>, number: c_uint, handle: RawHandle, device: c_int) {
        let state = state()?;
        state.device(device)?;
        kernel(state, handle)?;
        out.set(crate::calls::functions::function(state, handle)?.attribute(state, number)?)
    }

    fn cuKernelSetAttribute(number: c_uint, value: c_int, handle: RawHandle, device: c_int) {
        let state = state()?;
        state.device(device)?;
        kernel(state, handle)?;
        crate::calls::functions::function(state, handle)?.set_attribute(state, number, value)
    }

    fn cuKernelGetParamInfo(handle: RawHandle, index: usize, offset: Out<usize>, size: Out<usize>) {
        let state = state()?;
        kernel(state, handle)?;
        parameter(&*crate::calls::functions::function(state, handle)?, index, offset, size)
    }

    fn cuKernelSetCacheConfig(handle: RawHandle, configuration: c_uint, device: c_int) {
        let state = state()?;
        state.device(device)?;
        kernel(state, handle)?;
        if configuration > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }
}
