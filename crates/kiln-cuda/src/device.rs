//! An opened device.

use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use kiln_driver::{DeviceInfo, DeviceKey, Error, Health, Object, Priorities, Result, Slots, WallClock, kind};

use crate::context::Context;
use crate::cuda_absence::StartFault;
use crate::device_description::DeviceDescription;
use crate::event::Event;
use crate::function::Kernel;
use crate::graph::Graph;
use crate::host_functions::HostFunctions;
use crate::host_memory::Host;
use crate::libcuda::{Libcuda, start_check};
use crate::memory::Block;
use crate::memory_pool::Pool;
use crate::module::Module;
use crate::open_error::OpenError;
use crate::operation::{CaptureStream, CublasHandle, DnnHandle, LtHandle, SolverHandle, SparseHandle};
use crate::pages::Pages;
use crate::reservation::Range;
use crate::stream::Stream;

/// A CUDA device, opened: its primary context is held while this lives.
///
/// It is a [`Driver`](kiln_driver::Driver), which is how it is used.
///
/// ```
/// use kiln_cuda::CudaDevice;
/// use kiln_driver::Driver;
///
/// match CudaDevice::open(0) {
///     Ok(device) => println!("{} has {:?}", device.info().name, device.memory_info()),
///     Err(reason) => println!("no device: {reason}"),
/// }
/// ```
pub struct CudaDevice {
    // In the order in which they are freed; every object holds the context, so it is released last.
    pub(crate) graphs: Slots<kind::Graph, Graph>,
    pub(crate) functions: Slots<kind::Function, Kernel>,
    pub(crate) modules: Slots<kind::Module, Module>,
    pub(crate) events: Slots<kind::Event, Event>,
    pub(crate) streams: Slots<kind::Stream, Arc<Stream>>,
    pub(crate) memory: Slots<kind::Memory, Block>,
    pub(crate) reservations: Slots<kind::Reservation, Range>,
    pub(crate) pages: Slots<kind::Pages, Pages>,
    pub(crate) hosts: Slots<kind::Host, Host>,
    pub(crate) pool: OnceLock<Pool>,
    /// What library operations share, made at the first use.
    pub(crate) cublas: Mutex<Option<Arc<CublasHandle>>>,
    pub(crate) cublaslt: Mutex<Option<Arc<LtHandle>>>,
    pub(crate) cudnn: Mutex<Option<Arc<DnnHandle>>>,
    pub(crate) cusolver: Mutex<Option<Arc<SolverHandle>>>,
    pub(crate) cusparse: Mutex<Option<Arc<SparseHandle>>>,
    pub(crate) capture: Mutex<Option<CaptureStream>>,
    /// What [`Image::HostKernels`](kiln_driver::Image::HostKernels) names.
    pub(crate) host_functions: Mutex<Vec<Arc<HostFunctions>>>,
    pub(crate) info: DeviceInfo,
    pub(crate) clock: WallClock,
    pub(crate) context: Arc<Context>,
}

/// The opened devices of this process, so that one can copy from another by handle.
static OPENED: RwLock<Vec<(DeviceKey, Weak<CudaDevice>)>> = RwLock::new(Vec::new());

impl CudaDevice {
    /// Opens a device by its number and creates its context, unless another part of the process has.
    ///
    /// # Errors
    /// [`OpenError`] says whether there is no CUDA, no such device, or no context could be created.
    pub fn open(ordinal: u32) -> std::result::Result<Arc<Self>, OpenError> {
        let library = Libcuda::load()?;
        let count = library.device_count()?;
        if ordinal >= count {
            return Err(OpenError::UnknownOrdinal { ordinal, count });
        }
        let opened = Self::open_known(library, ordinal);
        opened.map_err(|fault| OpenError::Device { ordinal, fault })
    }

    fn open_known(library: &'static Libcuda, ordinal: u32) -> std::result::Result<Arc<Self>, StartFault> {
        let description = DeviceDescription::read(library, ordinal)?;
        let mut number = 0;
        // SAFETY: the out-parameter is a live local.
        let status = unsafe { (library.api().device)(&mut number, ordinal as c_int) };
        start_check("cuDeviceGet", status)?;
        let context = Context::open(library, number)?;
        let (mut lowest, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the out-parameters are live locals, and the context was made current.
        let status = unsafe { (library.api().priority_range)(&mut lowest, &mut highest) };
        start_check("cuCtxGetStreamPriorityRange", status)?;

        let key = DeviceKey::fresh();
        let device = Arc::new(Self {
            graphs: Slots::new(key),
            functions: Slots::new(key),
            modules: Slots::new(key),
            events: Slots::new(key),
            streams: Slots::new(key),
            memory: Slots::new(key),
            reservations: Slots::new(key),
            pages: Slots::new(key),
            hosts: Slots::new(key),
            pool: OnceLock::new(),
            cublas: Mutex::default(),
            cublaslt: Mutex::default(),
            cudnn: Mutex::default(),
            cusolver: Mutex::default(),
            cusparse: Mutex::default(),
            capture: Mutex::default(),
            host_functions: Mutex::default(),
            info: description.into_info(key, Priorities { lowest, highest }),
            clock: WallClock::new(),
            context,
        });
        let mut opened = OPENED.write().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|(_, device)| device.strong_count() > 0);
        opened.push((key, Arc::downgrade(&device)));
        Ok(device)
    }

    /// The opened device with this key, if it is a CUDA device that is still open.
    pub(crate) fn find(key: DeviceKey) -> Option<Arc<Self>> {
        let opened = OPENED.read().unwrap_or_else(PoisonError::into_inner);
        opened.iter().find(|(known, _)| *known == key).and_then(|(_, device)| device.upgrade())
    }

    /// Queries every stream, because a fault shows on the stream of its work; without streams, any call will do.
    pub(crate) fn health(&self) -> Health {
        const CALL: &str = "health";
        match self.ask_health(CALL) {
            Err(error) if error.is_sticky() || error.is_unsupported() => Health::Lost(error),
            _ => Health::Healthy,
        }
    }

    pub(crate) fn destroy(&self, object: Object) -> Result<()> {
        const CALL: &str = "destroy";
        // The objects of a lost device are freed with its context. Their handles still become stale, so that clean-up code works.
        self.context.check_process(CALL)?;
        let seen = |error: Error| error.seen_by(CALL);
        match object {
            Object::Reservation(id) => self.destroy_reservation(CALL, id),
            Object::Module(id) => self.destroy_module(CALL, id),
            Object::Pages(id) => self.pages.remove(id).map(drop).map_err(seen),
            Object::Host(id) => self.hosts.remove(id).map(drop).map_err(seen),
            Object::Stream(id) => self.streams.remove(id).map(drop).map_err(seen),
            Object::Event(id) => self.events.remove(id).map(drop).map_err(seen),
            Object::Graph(id) => self.graphs.remove(id).map(drop).map_err(seen),
        }
    }

    pub(crate) fn native(&self, object: Object) -> Result<u64> {
        const CALL: &str = "native";
        self.context.enter(CALL)?;
        let seen = |error: Error| error.seen_by(CALL);
        Ok(match object {
            Object::Reservation(id) => self.reservations.pin(id).map_err(seen)?.address(),
            Object::Pages(id) => self.pages.pin(id).map_err(seen)?.raw(),
            Object::Host(id) => self.hosts.pin(id).map_err(seen)?.bytes().as_ptr() as u64,
            Object::Stream(id) => self.streams.pin(id).map_err(seen)?.number(),
            Object::Event(id) => self.events.pin(id).map_err(seen)?.number(),
            Object::Module(id) => self.modules.pin(id).map_err(seen)?.number(),
            Object::Graph(id) => self.graphs.pin(id).map_err(seen)?.number(),
        })
    }

    fn ask_health(&self, call: &'static str) -> Result<()> {
        let api = self.context.enter(call)?;
        for id in self.streams.handles() {
            // A query could disturb another library's stream, such as one that is being captured.
            let Some(stream) = self.streams.pin(id).ok().filter(|stream| stream.is_owned()) else { continue };
            if let Err(error) = stream.query(call, api)
                && error.is_sticky()
            {
                return Err(error);
            }
        }
        let (mut lowest, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the out-parameters are live locals and the context is current.
        let status = unsafe { (api.priority_range)(&mut lowest, &mut highest) };
        self.context.check(call, status)
    }
}

impl fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA device {} ({})", self.info.ordinal, self.info.name)
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // In a forked child the lock may be held by a thread that does not exist.
        if self.context.check_process("drop").is_err() {
            return;
        }
        let mut opened = OPENED.write().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|(key, _)| *key != self.info.key);
    }
}
