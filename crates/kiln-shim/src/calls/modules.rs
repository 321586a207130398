//! Modules: loaded code, and what it defines.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, Driver, Error, Image, ModuleId, Refusal};
use kiln_ptx::PtxModule;

use crate::boundary::{Answer, OrCode, code_of};
use crate::caller_memory::{In, Out, Text, store_text};
use crate::calls::context::Context;
use crate::calls::functions::Function;
use crate::calls::kernel_memory;
use crate::calls::link::with_functions_of_the_driver;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::{ProcessState, current, state};
use crate::handle_table::RawHandle;
use crate::image;
use crate::records;

/// A module of a context.
pub(crate) struct Module {
    pub(crate) context: u64,
    device: u32,
    driver: Arc<dyn Driver>,
    pub(crate) id: ModuleId,
    /// The names of its kernels, as they stand in the PTX.
    pub(crate) kernels: Vec<String>,
    /// Its code, where launches are followed.
    code: Option<PtxModule>,
    functions: Mutex<HashMap<String, RawHandle>>,
    variables: Mutex<Vec<u64>>,
}

/// The options of a load, as far as they are used.
#[derive(Clone, Copy)]
pub(crate) struct JitOptions {
    pub(crate) count: c_uint,
    pub(crate) keys: In<c_uint>,
    pub(crate) values: In<*mut c_void>,
}

impl JitOptions {
    /// The value of an option.
    fn value(self, key: sys::CUjit_option) -> Option<*mut c_void> {
        let index = (0..self.count as usize).find(|index| self.keys.at(*index) == Ok(key as c_uint))?;
        self.values.at(index).ok()
    }

    /// Writes why code was not accepted into the buffer of the caller, if there is one.
    pub(crate) fn explain(self, text: &str) {
        use sys::CUjit_option as O;
        let buffer = self.value(O::CU_JIT_ERROR_LOG_BUFFER);
        let room = self.value(O::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES).map_or(0, |room| room.addr());
        if let Some(buffer) = buffer.filter(|_| room > 0) {
            // The buffer was found not to be null, and cutting cannot fail.
            let _ = store_text(Out::<c_char>::at(buffer), room, text);
        }
    }
}

/// Loads PTX into a context.
pub(crate) fn load(
    state: &ProcessState,
    context: &Context,
    ptx: &str,
    options: Option<JitOptions>,
) -> Answer<RawHandle> {
    image::check_header(ptx, context.driver.info())?;
    let ptx = &*with_functions_of_the_driver(ptx);
    let id = context.driver.load(&Image::Ptx(ptx)).map_err(|error| refused(&error, options))?;
    if ptx.contains("vprintf") {
        state.expect_output();
    }
    let follows = state.device(context.device as c_int)?.follows_launches();
    let module = Module {
        context: context.number,
        device: context.device,
        driver: context.driver.clone(),
        id,
        kernels: kernel_names(ptx),
        code: follows.then(|| kernel_memory::parse(ptx)).flatten(),
        functions: Mutex::default(),
        variables: Mutex::default(),
    };
    state.modules.insert(Arc::new(module)).ok_or(Code::OUT_OF_MEMORY)
}

fn refused(error: &Error, options: Option<JitOptions>) -> Code {
    let log = match error.refusal() {
        Some(Refusal::Image { log, .. }) => log.clone(),
        _ => error.to_string(),
    };
    if let Some(options) = options {
        options.explain(&log);
    }
    let first = log.lines().next().unwrap_or_default().to_owned();
    records::note_once(&first, &format!("code was not accepted: {log}"));
    code_of(error)
}

/// The names after `.entry`, in order.
fn kernel_names(ptx: &str) -> Vec<String> {
    let after = ptx.split(".entry").skip(1);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '%');
    let names =
        after.map(|rest| rest.trim_start().split(|c| !is_name(c)).next().unwrap_or_default().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

pub(crate) fn module(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Module>> {
    state.modules.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// The handle of a kernel of a module.
pub(crate) fn function(state: &ProcessState, handle: RawHandle, name: &str) -> Answer<RawHandle> {
    let module = module(state, handle)?;
    let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = functions.get(name) {
        return Ok(*known);
    }
    let found = module.driver.function(module.id, name).map_err(|error| {
        let code = code_of(&error);
        if code != Code::NOT_FOUND {
            records::note_once(&error.to_string(), &error.to_string());
        }
        code
    })?;
    let text = CString::new(name).map_err(|_| Code::NOT_FOUND)?;
    let pointers = module.code.as_ref().map(|code| kernel_memory::pointers(code, name)).unwrap_or_default();
    let function = Function::new(module.context, module.device, handle, found, (text, pointers));
    let new = state.functions.insert(Arc::new(function)).ok_or(Code::OUT_OF_MEMORY)?;
    functions.insert(name.to_owned(), new);
    Ok(new)
}

/// Address and length of a variable of a module.
pub(crate) fn global(state: &ProcessState, handle: RawHandle, name: &str) -> Answer<(u64, u64)> {
    let module = module(state, handle)?;
    let memory = module.driver.global(module.id, name).or_code()?;
    let mut variables = module.variables.lock().unwrap_or_else(PoisonError::into_inner);
    if !variables.contains(&memory.address.0) {
        variables.push(memory.address.0);
        let backing = Backing::Variable(memory.id);
        let (device, context, driver) = (module.device, module.context, module.driver.clone());
        state.memory.insert(Allocation::new(
            memory.address.0,
            memory.bytes,
            device,
            context,
            driver,
            backing,
        ));
    }
    Ok((memory.address.0, memory.bytes))
}

/// Unloads a module once no work of its context uses it.
pub(crate) fn unload(state: &ProcessState, handle: RawHandle) -> Answer {
    let module = module(state, handle)?;
    let owner = state.contexts.find_object(|context| context.number == module.context);
    if let Some(owner) = owner.filter(|owner| owner.is_there()) {
        owner.synchronize()?;
    }
    state.modules.remove(handle).ok_or(Code::INVALID_HANDLE)?;
    state.functions.remove_where(|function| function.module == handle);
    state.memory.forget_variables(&module.variables.lock().unwrap_or_else(PoisonError::into_inner));
    module.driver.destroy(module.id.into()).or_code()
}

/// The PTX of a file.
pub(crate) fn ptx_of_file(path: Text) -> Answer<String> {
    let bytes = std::fs::read(path.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
    image::ptx_of_bytes(&bytes, state()?.architecture())
}

fn load_data(out: Out<RawHandle>, code: *const c_void, options: Option<JitOptions>) -> Answer {
    let (state, context) = current()?;
    out.check()?;
    out.set(load(state, &context, &image::ptx(code, state.architecture())?, options)?)
}

driver_api! {
    fn cuModuleLoad(out: Out<RawHandle>, path: Text) {
        let (state, context) = current()?;
        out.check()?;
        out.set(load(state, &context, &ptx_of_file(path)?, None)?)
    }

    fn cuModuleLoadData(out: Out<RawHandle>, code: *const c_void) {
        load_data(out, code, None)
    }

    fn cuModuleLoadDataEx(
        out: Out<RawHandle>, code: *const c_void, count: c_uint, keys: In<c_uint>, values: In<*mut c_void>
    ) {
        load_data(out, code, Some(JitOptions { count, keys, values }))
    }

    fn cuModuleLoadFatBinary(out: Out<RawHandle>, code: *const c_void) {
        load_data(out, code, None)
    }

    fn cuModuleUnload(handle: RawHandle) {
        unload(state()?, handle)
    }

    fn cuModuleGetFunction(out: Out<RawHandle>, handle: RawHandle, name: Text) {
        let state = state()?;
        out.check()?;
        let name = name.get()?;
        if name.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        let found = function(state, handle, &name);
        // One that is not there leaves no handle of another one, as for the driver.
        out.set(found.unwrap_or(0))?;
        found.map(|_| ())
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, handle: RawHandle, name: Text) {
        let (state, name) = (state()?, name.get()?);
        let is_kernel = module(state, handle)?.kernels.contains(&name);
        if is_kernel || address.check().is_err() && bytes.check().is_err() {
            return Err(Code::INVALID_VALUE);
        }
        let (start, length) = global(state, handle, &name)?;
        address.set_if_wanted(start);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }

    fn cuModuleGetLoadingMode(out: Out<c_uint>) {
        state()?;
        out.set(sys::CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING as c_uint)
    }

    fn cuModuleGetFunctionCount(out: Out<c_uint>, handle: RawHandle) {
        out.set(module(state()?, handle)?.kernels.len() as c_uint)
    }

    fn cuModuleEnumerateFunctions(out: Out<RawHandle>, count: c_uint, handle: RawHandle) {
        let state = state()?;
        let module = module(state, handle)?;
        for (index, name) in module.kernels.iter().take(count as usize).enumerate() {
            out.set_at(index, function(state, handle, name)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_named_in_order() {
        let ptx = ".visible .entry first(.param .u64 a) {}\n.entry _Z3addPf\n()\n{}";
        assert_eq!(kernel_names(ptx), ["first", "_Z3addPf"]);
        assert_eq!(kernel_names(""), [] as [&str; 0]);
    }
}
