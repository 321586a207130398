//! Functions of the process that streams call, each in the order of its stream.
//!
//! The driver calls them on a separate thread: a function when all work before it is done, and not at all if that failed; a callback in both cases, and it is
//! told which. Neither may call the driver. What a queued call needs is freed by the call; what nodes of graphs need lives as long as the module.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{
    Code, Error, FunctionAttributes, LaunchCommand, ParameterSpan, Pinned, Result, Submission, kind,
};

use crate::device::CudaDevice;
use crate::function::Kernel;
use crate::libcuda_symbols::{Api, Status};
use crate::stream::Stream;
use crate::stream_progress::SubmissionKind;

/// Each argument is a word.
const WORD_BYTES: usize = 8;

/// A library of functions of the process.
///
/// A device to which it [is given](CudaDevice::add_host_functions) loads it by its name, as [`Image::HostKernels`](kiln_driver::Image::HostKernels). A launch of a
/// function has a grid and a block of 1 and one argument of eight bytes for each word. A function must not call the driver, and must not panic.
///
/// ```
/// use kiln_cuda::{CudaDevice, HostFunctions};
/// use kiln_driver::{Driver, Image};
///
/// if let Ok(device) = CudaDevice::open(0) {
///     device.add_host_functions(HostFunctions::new("notes").function("say", 1, |words| println!("reached {words:?}")));
///     let module = device.load(&Image::HostKernels("notes")).expect("it was given to the device");
///     assert!(device.function(module, "say").is_ok());
/// }
/// ```
#[derive(Debug)]
pub struct HostFunctions {
    name: &'static str,
    functions: Vec<HostFunction>,
}

#[derive(Debug)]
struct HostFunction {
    name: &'static str,
    words: usize,
    body: Body,
}

/// What is called.
#[derive(Clone, Copy, Debug)]
enum Body {
    Function(fn(&[u64])),
    Callback(fn(&[u64], Code)),
}

impl HostFunctions {
    /// A library of this name, still empty.
    pub fn new(name: &'static str) -> Self {
        Self { name, functions: Vec::new() }
    }

    /// The same with a function that gets so many words. It is not called if work before it failed.
    #[must_use]
    pub fn function(mut self, name: &'static str, words: usize, body: fn(&[u64])) -> Self {
        self.functions.push(HostFunction { name, words, body: Body::Function(body) });
        self
    }

    /// The same with a function that is called in any case, and told how the work before it ended. A graph cannot have it.
    #[must_use]
    pub fn callback(mut self, name: &'static str, words: usize, body: fn(&[u64], Code)) -> Self {
        self.functions.push(HostFunction { name, words, body: Body::Callback(body) });
        self
    }
}

/// A library that was loaded as a module.
pub(crate) struct LoadedHostFunctions {
    library: Arc<HostFunctions>,
    /// The calls of nodes of graphs. A graph may be in a queue when a node of it is changed, so that they stay.
    kept: Mutex<HashMap<KeptCall, Arc<HostCall>>>,
}

/// The index of a function, and its arguments.
type KeptCall = (usize, Vec<u64>);

/// A function of a loaded library.
pub(crate) struct HostCallee {
    of: Arc<LoadedHostFunctions>,
    index: usize,
}

/// A call that the driver makes later.
struct HostCall {
    body: Body,
    words: Vec<u64>,
}

impl LoadedHostFunctions {
    pub(crate) fn new(library: Arc<HostFunctions>) -> Self {
        Self { library, kept: Mutex::default() }
    }

    /// The names of the functions.
    pub(crate) fn names(&self) -> Vec<String> {
        self.library.functions.iter().map(|function| function.name.to_owned()).collect()
    }
}

impl HostCallee {
    /// The function of this name.
    pub(crate) fn find(of: &Arc<LoadedHostFunctions>, name: &str) -> Option<Self> {
        let index = of.library.functions.iter().position(|function| function.name == name)?;
        Some(Self { of: of.clone(), index })
    }

    /// What callers may know of it.
    pub(crate) fn attributes(&self) -> FunctionAttributes {
        let words = self.function().map_or(0, |function| function.words as u32);
        let span = |at: u32| ParameterSpan { offset: at * WORD_BYTES as u32, bytes: WORD_BYTES as u32 };
        FunctionAttributes {
            max_threads_per_block: 1,
            parameters: Some((0..words).map(span).collect()),
            ..FunctionAttributes::default()
        }
    }

    /// The arguments of a launch, checked.
    pub(crate) fn arguments(&self, call: &'static str, packed: &[u8]) -> Result<Vec<u64>> {
        let (name, wanted) = self.function().map_or(("", 0), |function| (function.name, function.words));
        let (words, rest) = packed.as_chunks::<WORD_BYTES>();
        if words.len() != wanted || !rest.is_empty() {
            let what = format!(
                "{} bytes of arguments for {name}, which takes {}",
                packed.len(),
                wanted * WORD_BYTES
            );
            return Err(Error::invalid(call, what, "give eight bytes for each word"));
        }
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// The parameters of a node that calls it; what they point to lives as long as the module.
    pub(crate) fn node_parameters(
        &self,
        call: &'static str,
        packed: &[u8],
    ) -> Result<sys::CUDA_HOST_NODE_PARAMS> {
        let words = self.arguments(call, packed)?;
        let Some(HostFunction { body: body @ Body::Function(_), .. }) = self.function() else {
            return Err(Error::invalid(call, "a callback as a node", "submit it, or take a function"));
        };
        let mut kept = self.of.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(HostCall { body: *body, words: words.clone() });
        let data = Arc::as_ptr(kept.entry((self.index, words.clone())).or_insert_with(made));
        Ok(sys::CUDA_HOST_NODE_PARAMS { fn_: Some(call_kept), userData: data.cast_mut().cast() })
    }

    fn function(&self) -> Option<&HostFunction> {
        self.of.library.functions.get(self.index)
    }
}

impl CudaDevice {
    /// Gives the device functions of this process, which it loads by the name of their library.
    pub fn add_host_functions(&self, functions: HostFunctions) {
        self.host_functions.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(functions));
    }

    /// The newest library of this name.
    pub(crate) fn host_functions_named(&self, name: &str) -> Option<Arc<HostFunctions>> {
        let known = self.host_functions.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().rev().find(|functions| functions.name == name).cloned()
    }

    /// Queues the call of a function of the host as the next submission of a stream.
    #[cold]
    #[inline(never)]
    pub(crate) fn submit_host(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        (kernel, callee): (&Pinned<'_, kind::Function, Kernel>, &HostCallee),
        launch: &LaunchCommand<'_>,
    ) -> Result<Submission> {
        self.check_launch(call, api, kernel, launch)?;
        let words = callee.arguments(call, launch.arguments)?;
        let (give_function, give_callback) =
            (offered(call, api.host_function)?, offered(call, api.stream_callback)?);
        let Some(function) = callee.function() else {
            return Err(Error::invalid(call, "a function that is not there", "look it up again"));
        };
        let later = Box::into_raw(Box::new(HostCall { body: function.body, words }));
        let submitted =
            stream.queue(call, SubmissionKind::Launch(launch.function), |_| match function.body {
                // SAFETY: the stream is pinned by the caller; the call is freed when the driver makes it, which happens once.
                Body::Function(_) => unsafe { give_function(stream.raw(), call_once, later.cast()) },
                // SAFETY: as above; there are no flags.
                Body::Callback(_) => unsafe { give_callback(stream.raw(), call_back, later.cast(), 0) },
            });
        if submitted.is_err() {
            // SAFETY: the driver did not take it, so that it is still ours alone.
            drop(unsafe { Box::from_raw(later) });
        }
        submitted
    }
}

/// An entry point that drivers may lack.
pub(crate) fn offered<F>(call: &'static str, entry: Option<F>) -> Result<F> {
    entry.ok_or_else(|| {
        Error::unsupported(
            call,
            "a function of the host in the order of a stream",
            "the driver has no cuLaunchHostFunc",
        )
    })
}

impl HostCall {
    fn run(&self, status: Code) {
        match self.body {
            Body::Function(body) => body(&self.words),
            Body::Callback(body) => body(&self.words, status),
        }
    }
}

/// Runs a call that was queued.
unsafe extern "C" fn call_once(data: *mut c_void) {
    // SAFETY: `submit_host` made it of such a box, and the driver calls once.
    unsafe { Box::from_raw(data.cast::<HostCall>()) }.run(Code::SUCCESS);
}

/// The same for a callback, which is told how the work before it ended.
unsafe extern "C" fn call_back(_: sys::CUstream, status: Status, data: *mut c_void) {
    // SAFETY: as for `call_once`.
    unsafe { Box::from_raw(data.cast::<HostCall>()) }.run(Code(status));
}

/// Runs the call of a node.
unsafe extern "C" fn call_kept(data: *mut c_void) {
    // SAFETY: it lives as long as its module, which lives until the last command that uses it is done.
    unsafe { &*data.cast::<HostCall>() }.run(Code::SUCCESS);
}
