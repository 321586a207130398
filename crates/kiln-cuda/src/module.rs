//! Modules: code that is loaded, and the names looked up in it.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, DeviceMemory, Error, Function, Image, ModuleId, Pinned, Refusal, Result, kind};
use kiln_operation::{ABORT, FAILURE};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::function::Kernel;
use crate::host_functions::{HostCallee, LoadedHostFunctions};
use crate::image_check::Checked;
use crate::libcuda_symbols::Api;
use crate::native_handle::Native;
use crate::operation::{LoadedOperation, NcclRank, make_id};
use crate::ptx_linker;

/// Bytes for each of the loader's two logs; what does not fit is cut off by the driver.
const LOG_BYTES: usize = 16 * 1024;

/// A module as a handle finds it.
pub(crate) struct Module {
    code: Arc<LoadedCode>,
    names: Mutex<Names>,
}

/// Loaded code. Kernels and graphs hold it, so it is unloaded after the last of them.
pub(crate) struct LoadedCode {
    /// Null for what is no code of the device.
    raw: Native<sys::CUmod_st>,
    operation: Option<LoadedOperation>,
    /// The rank of a communicator. Its functions are operations that hold it.
    communicator: Option<Arc<NcclRank>>,
    /// Functions of the host.
    host: Option<Arc<LoadedHostFunctions>>,
    context: Arc<Context>,
}

/// What was looked up so far, dropped with the module.
#[derive(Default)]
struct Names {
    kernels: HashMap<String, Function>,
    variables: HashMap<String, DeviceMemory>,
    closed: bool,
}

type PinnedModule<'a> = Pinned<'a, kind::Module, Module>;

impl CudaDevice {
    pub(crate) fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        const CALL: &str = "load";
        let api = self.context.enter(CALL)?;
        if let Image::Library(text) = image {
            let operation = Some(LoadedOperation::load(CALL, self, text)?);
            return self.insert_code(operation, None, None);
        }
        if let Image::Communicator(text) = image {
            return self.insert_code(None, Some(NcclRank::load(CALL, self, text)?), None);
        }
        if let Image::CommunicatorId { id } = image {
            make_id(CALL, id)?;
            return self.insert_code(None, None, None);
        }
        if let Image::HostKernels(name) = image
            && let Some(functions) = self.host_functions_named(name)
        {
            return self.insert_code(None, None, Some(Arc::new(LoadedHostFunctions::new(functions))));
        }
        let checked = Checked::new(CALL, image)?;
        if let Image::PtxToKeep { machine_code, .. } = image
            && let Some(code) = ptx_linker::machine_code(api, &checked)
            && let Ok(cubin) = Checked::new(CALL, &Image::Cubin(&code))
            && let Ok(module) = self.load_checked(api, &cubin)
        {
            // A cell that is full already stays as it is.
            let _ = machine_code.set(code);
            return Ok(module);
        }
        self.load_checked(api, &checked)
    }

    /// A module without code of the device.
    fn insert_code(
        &self,
        operation: Option<LoadedOperation>,
        communicator: Option<Arc<NcclRank>>,
        host: Option<Arc<LoadedHostFunctions>>,
    ) -> Result<ModuleId> {
        let context = self.context.clone();
        let code = Arc::new(LoadedCode { raw: Native::NULL, operation, communicator, host, context });
        self.modules.insert(Module { code, names: Mutex::default() })
    }

    fn load_checked(&self, api: &Api, image: &Checked) -> Result<ModuleId> {
        const CALL: &str = "load";
        let mut logs = Logs::new();
        let mut raw = Native::NULL;
        let (mut options, mut values) = logs.options();
        // SAFETY: the image was checked to end inside its buffer; the options name two buffers that live until
        // the call returns, each with its size.
        let status = unsafe {
            (api.module_load)(
                raw.slot(),
                image.start().cast::<c_void>(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match Code(status) {
            Code::SUCCESS => {}
            Code::OUT_OF_MEMORY => return Err(self.context.memory_failure(CALL, status, 0)),
            code if code.is_sticky() => return Err(self.context.failure(CALL, status, None)),
            code => return Err(Error::refused(CALL, Refusal::Image { code: Some(code), log: logs.text() })),
        }
        let context = self.context.clone();
        let code = Arc::new(LoadedCode { raw, operation: None, communicator: None, host: None, context });
        self.modules.insert(Module { code, names: Mutex::default() })
    }

    pub(crate) fn function(&self, module_id: ModuleId, name: &str) -> Result<Function> {
        const CALL: &str = "function";
        let api = self.context.enter(CALL)?;
        let module = self.modules.pin(module_id).map_err(|error| error.seen_by(CALL))?;
        if let Some(known) = module.names().kernels.get(name) {
            return Ok(known.clone());
        }
        if let Some(operation) = module.code.operation() {
            if name != operation.name() {
                return Err(not_found(CALL, module_id, "kernel", name, vec![operation.name().to_owned()]));
            }
            let kernel = Kernel::of_operation(&module.code, operation);
            return self.name_kernel(CALL, module_id, &module, name, kernel);
        }
        if let Some(rank) = &module.code.communicator {
            let operation = Some(LoadedOperation::collective(CALL, rank, name)?);
            let context = self.context.clone();
            let code = Arc::new(LoadedCode {
                raw: Native::NULL,
                operation,
                communicator: None,
                host: None,
                context,
            });
            let Some(operation) = code.operation() else {
                return Err(not_found(CALL, module_id, "kernel", name, Vec::new()));
            };
            let kernel = Kernel::of_operation(&code, operation);
            return self.name_kernel(CALL, module_id, &module, name, kernel);
        }
        if let Some(host) = &module.code.host {
            let callee = HostCallee::find(host, name);
            let callee = callee.ok_or_else(|| not_found(CALL, module_id, "kernel", name, host.names()))?;
            return self.name_kernel(CALL, module_id, &module, name, Kernel::of_host(&module.code, callee));
        }
        if module.code.raw == Native::NULL {
            return Err(not_found(CALL, module_id, "kernel", name, Vec::new()));
        }
        let mut raw = Native::NULL;
        let text = c_name(CALL, module_id, "kernel", name)?;
        // SAFETY: the out-parameter is a live local, the name ends in a zero, and the module is pinned.
        let status = unsafe { (api.module_function)(raw.slot(), module.code.raw.raw(), text.as_ptr()) };
        if Code(status) == Code::NOT_FOUND {
            return Err(not_found(CALL, module_id, "kernel", name, module.code.kernel_names(api)));
        }
        self.context.check(CALL, status)?;
        let kernel = Kernel::read(CALL, api, raw, &module.code, &self.context, &self.info.limits)?;
        self.name_kernel(CALL, module_id, &module, name, kernel)
    }

    pub(crate) fn global(&self, module_id: ModuleId, name: &str) -> Result<DeviceMemory> {
        const CALL: &str = "global";
        let api = self.context.enter(CALL)?;
        let module = self.modules.pin(module_id).map_err(|error| error.seen_by(CALL))?;
        if let Some(known) = module.names().variables.get(name) {
            return Ok(*known);
        }
        if module.code.raw == Native::NULL {
            match (&module.code.communicator, name) {
                (Some(rank), FAILURE) => rank.state(CALL)?,
                (Some(rank), ABORT) => rank.abort_state(CALL)?,
                _ => {}
            }
            return Err(not_found(CALL, module_id, "variable", name, Vec::new()));
        }
        let (mut address, mut bytes) = (0, 0);
        let text = c_name(CALL, module_id, "variable", name)?;
        // SAFETY: the out-parameters are live locals, the name ends in a zero, and the module is pinned.
        let status =
            unsafe { (api.module_global)(&mut address, &mut bytes, module.code.raw.raw(), text.as_ptr()) };
        if Code(status) == Code::NOT_FOUND {
            return Err(not_found(CALL, module_id, "variable", name, Vec::new()));
        }
        self.context.check(CALL, status)?;
        let mut names = module.open_names(CALL, module_id)?;
        if let Some(known) = names.variables.get(name) {
            return Ok(*known);
        }
        let memory = self.insert_variable(module_id, address, bytes as u64)?;
        names.variables.insert(name.into(), memory);
        Ok(memory)
    }

    pub(crate) fn destroy_module(&self, call: &'static str, id: ModuleId) -> Result<()> {
        let module = self.modules.pin(id).map_err(|error| error.seen_by(call))?;
        let names = module.close_names();
        drop(module);
        // A second call at the same time finds the names removed and is refused here.
        let _removed = self.modules.remove(id).map_err(|error| error.seen_by(call))?;
        for function in names.kernels.into_values() {
            let _ = self.functions.remove(function.id);
            self.context.faults().forget(function.id);
        }
        for variable in names.variables.into_values() {
            let _ = self.memory.remove(variable.id);
        }
        Ok(())
    }

    /// Gives a kernel its handle, unless another thread was faster.
    fn name_kernel(
        &self,
        call: &'static str,
        id: ModuleId,
        module: &PinnedModule<'_>,
        name: &str,
        kernel: Kernel,
    ) -> Result<Function> {
        let mut names = module.open_names(call, id)?;
        if let Some(known) = names.kernels.get(name) {
            return Ok(known.clone());
        }
        let attributes = kernel.attributes().clone();
        let function = Function { id: self.functions.insert(kernel)?, attributes };
        self.context.faults().learn(function.id, name.into());
        names.kernels.insert(name.into(), function.clone());
        Ok(function)
    }
}

impl Module {
    /// The module as a number.
    pub(crate) fn number(&self) -> u64 {
        self.code.raw.number()
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names, unless the module is being destroyed.
    fn open_names(&self, call: &'static str, id: ModuleId) -> Result<MutexGuard<'_, Names>> {
        let names = self.names();
        match names.closed {
            false => Ok(names),
            true => Err(Error::refused(call, Refusal::Stale { handle: id.to_string() })),
        }
    }

    fn close_names(&self) -> Names {
        std::mem::replace(&mut *self.names(), Names { closed: true, ..Names::default() })
    }
}

impl LoadedCode {
    /// The library operation it is, if it is one.
    pub(crate) fn operation(&self) -> Option<&LoadedOperation> {
        self.operation.as_ref()
    }

    /// The names of all kernels, or none where the driver cannot tell.
    fn kernel_names(&self, api: &Api) -> Vec<String> {
        let (Some(count_of), Some(functions_of), Some(name_of)) =
            (api.module_function_count, api.module_functions, api.function_name)
        else {
            return Vec::new();
        };
        let mut count: c_uint = 0;
        // SAFETY: the out-parameter is a live local and the module is loaded while `self` lives.
        if unsafe { count_of(&mut count, self.raw.raw()) } != 0 {
            return Vec::new();
        }
        let mut functions: Vec<sys::CUfunction> = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: the driver writes at most `count` handles, which is how many there is room for.
        if unsafe { functions_of(functions.as_mut_ptr(), count, self.raw.raw()) } != 0 {
            return Vec::new();
        }
        let name = |function: sys::CUfunction| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: the driver gave the handle out above, and the out-parameter is a live local.
            let status = unsafe { name_of(&mut text, function) };
            // SAFETY: on success the name ends in a zero and lives as long as the module, which `self` keeps.
            (status == 0 && !text.is_null())
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let mut names: Vec<String> =
            functions.into_iter().filter(|function| !function.is_null()).filter_map(name).collect();
        names.sort();
        names
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        let raw = self.raw;
        if raw == Native::NULL {
            return;
        }
        // SAFETY: no kernel, graph or handle holds the code any more.
        self.context.free_when_idle(move |api| unsafe { (api.module_unload)(raw.raw()) });
    }
}

/// The buffers for the log of the driver's compiler.
struct Logs {
    errors: Vec<u8>,
    notes: Vec<u8>,
}

impl Logs {
    fn new() -> Self {
        Self { errors: vec![0; LOG_BYTES], notes: vec![0; LOG_BYTES] }
    }

    /// The options that name the buffers. A size stands where a pointer would.
    fn options(&mut self) -> ([c_uint; 4], [*mut c_void; 4]) {
        use sys::CUjit_option as Option;
        let options = [
            Option::CU_JIT_ERROR_LOG_BUFFER,
            Option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            Option::CU_JIT_INFO_LOG_BUFFER,
            Option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        let size = std::ptr::without_provenance_mut(LOG_BYTES);
        let values = [self.errors.as_mut_ptr().cast(), size, self.notes.as_mut_ptr().cast(), size];
        (options.map(|option| option as c_uint), values)
    }

    fn text(&self) -> String {
        let (errors, notes) = (convert::text(&self.errors), convert::text(&self.notes));
        [errors.trim_end(), notes.trim_end()]
            .into_iter()
            .filter(|log| !log.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The name as a C string. An empty name, or one with a zero byte, cannot exist in a module.
fn c_name(call: &'static str, module: ModuleId, what: &'static str, name: &str) -> Result<CString> {
    let text = CString::new(name).ok().filter(|text| !text.is_empty());
    text.ok_or_else(|| not_found(call, module, what, name, Vec::new()))
}

fn not_found(
    call: &'static str,
    module: ModuleId,
    what: &'static str,
    name: &str,
    known: Vec<String>,
) -> Error {
    Error::refused(call, Refusal::NotFound { what, name: name.into(), module: module.to_string(), known })
}
