//! The state of the process: its devices, and the tables of everything that was given out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kiln_driver::layer::{Checking, Layered};
use kiln_driver::{Code, Driver, FunctionId};

use crate::boundary::{Answer, is_inside};
use crate::calls::arrays::{Array, MipmappedArray};
use crate::calls::backend::{self, Backend, OpenedDevice};
use crate::calls::context::{Context, Current};
use crate::calls::events::Event;
use crate::calls::external_memory::ExternalMemory;
use crate::calls::functions::Function;
use crate::calls::graphs::{Graph, GraphExec, Node};
use crate::calls::host_callbacks::{self, HostFunctions};
use crate::calls::interprocess_event;
use crate::calls::libraries::{Kernel, Library};
use crate::calls::link::Link;
use crate::calls::memory_map::MemoryMap;
use crate::calls::modules::Module;
use crate::calls::peer_access::PeerAccess;
use crate::calls::physical_memory::PhysicalMemory;
use crate::calls::pools::Pool;
use crate::calls::streams::Stream;
use crate::calls::texture_objects::BoundObjects;
use crate::calls::user_objects::UserObject;
use crate::calls::value_kernels::ValueKernels;
use crate::calls::{leaks, violations};
use crate::handle_table::{HandleKind, HandleTable, RawHandle};
use crate::image;
use crate::recording;
use crate::records;

/// How long the end of the process waits for a function of the program that runs.
const LAST_FUNCTION: Duration = Duration::from_secs(1);

static STATE: OnceLock<ProcessState> = OnceLock::new();
/// Set by `cuInit`.
static INITIALIZED: AtomicBool = AtomicBool::new(false);
/// Set in the child of a fork; the state belongs to the parent.
static FORKED: AtomicBool = AtomicBool::new(false);

pub(crate) struct ProcessState {
    pub(crate) backend: Backend,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: HandleTable<Context>,
    pub(crate) streams: HandleTable<Stream>,
    pub(crate) events: HandleTable<Event>,
    pub(crate) modules: HandleTable<Module>,
    pub(crate) functions: HandleTable<Function>,
    pub(crate) libraries: HandleTable<Library>,
    pub(crate) kernels: HandleTable<Kernel>,
    pub(crate) links: HandleTable<Link>,
    pub(crate) pools: HandleTable<Pool>,
    pub(crate) graphs: HandleTable<Graph>,
    pub(crate) graph_nodes: HandleTable<Node>,
    pub(crate) executables: HandleTable<GraphExec>,
    pub(crate) physical: HandleTable<PhysicalMemory>,
    pub(crate) user_objects: HandleTable<UserObject>,
    pub(crate) arrays: HandleTable<Array>,
    pub(crate) mipmapped_arrays: HandleTable<MipmappedArray>,
    pub(crate) external: HandleTable<ExternalMemory>,
    /// Texture and surface objects.
    pub(crate) bound: BoundObjects,
    pub(crate) memory: MemoryMap,
    /// Which contexts reach the memory of which.
    pub(crate) peers: PeerAccess,
    /// Bytes that kernels printed and that were not kept.
    left_out_bytes: Mutex<u64>,
    may_print: AtomicBool,
}

pub(crate) struct Device {
    pub(crate) driver: Arc<dyn Driver>,
    /// The layer that checks, if the device does not check by itself.
    checking: Option<Arc<Layered<Checking>>>,
    /// Whether its streams call functions of this process.
    calls_functions: bool,
    pub(crate) primary: Arc<Context>,
    pub(crate) primary_handle: RawHandle,
    /// How often the primary context was retained.
    pub(crate) retained: Mutex<u64>,
    pub(crate) default_pool: RawHandle,
    /// The pool that allocations without a pool use.
    pub(crate) current_pool: Mutex<RawHandle>,
    host_functions: Mutex<Option<HostFunctions>>,
    value_kernels: Mutex<Option<ValueKernels>>,
    /// The most memory of graphs that was used and reserved.
    graph_memory: Mutex<(u64, u64)>,
    /// Whether work was found that never ends.
    is_hung: AtomicBool,
}

/// What `cuInit` does.
pub(crate) fn initialize() -> Answer {
    if is_inside() {
        return Err(Code::NOT_PERMITTED);
    }
    machine()?;
    INITIALIZED.store(true, Ordering::Release);
    Ok(())
}

/// The state, which is made once, for those who need no `cuInit`.
pub(crate) fn machine() -> Answer<&'static ProcessState> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    if STATE.get().is_none() {
        let state = ProcessState::new()?;
        let has_gpu = matches!(state.backend, Backend::Gpus(..));
        if STATE.set(state).is_ok() {
            watch_process(has_gpu);
        }
    }
    STATE.get().ok_or(Code::NOT_INITIALIZED)
}

/// The state, after `cuInit`.
pub(crate) fn state() -> Answer<&'static ProcessState> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    if is_inside() {
        return Err(Code::NOT_PERMITTED);
    }
    STATE.get().filter(|_| INITIALIZED.load(Ordering::Acquire)).ok_or(Code::NOT_INITIALIZED)
}

/// The context that is current to the thread, with the state.
pub(crate) fn current() -> Answer<(&'static ProcessState, Arc<Context>)> {
    let state = state()?;
    let context = Current::get(state)?;
    Ok((state, context))
}

impl ProcessState {
    fn new() -> Answer<Self> {
        let (backend, opened) = Backend::open()?;
        let contexts = HandleTable::new(HandleKind::Context);
        let pools = HandleTable::new(HandleKind::Pool);
        let devices = (0..).zip(opened).map(|(at, opened)| Device::new(opened, at, &contexts, &pools));
        Ok(Self {
            devices: devices.collect::<Answer<_>>()?,
            backend,
            contexts,
            streams: HandleTable::new(HandleKind::Stream),
            events: HandleTable::new(HandleKind::Event),
            modules: HandleTable::new(HandleKind::Module),
            functions: HandleTable::new(HandleKind::Function),
            libraries: HandleTable::new(HandleKind::Library),
            kernels: HandleTable::new(HandleKind::Kernel),
            links: HandleTable::new(HandleKind::Link),
            pools,
            graphs: HandleTable::new(HandleKind::Graph),
            graph_nodes: HandleTable::new(HandleKind::GraphNode),
            executables: HandleTable::new(HandleKind::GraphExec),
            physical: HandleTable::new(HandleKind::PhysicalMemory),
            user_objects: HandleTable::new(HandleKind::UserObject),
            arrays: HandleTable::new(HandleKind::Array),
            mipmapped_arrays: HandleTable::new(HandleKind::MipmappedArray),
            external: HandleTable::new(HandleKind::ExternalMemory),
            bound: BoundObjects::default(),
            memory: MemoryMap::default(),
            peers: PeerAccess::default(),
            left_out_bytes: Mutex::new(0),
            may_print: AtomicBool::new(false),
        })
    }

    /// The device of a number that a program gave.
    pub(crate) fn device(&self, ordinal: i32) -> Answer<&Device> {
        let index = usize::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        self.devices.get(index).ok_or(Code::INVALID_DEVICE)
    }

    /// The architecture of the devices, such as 90 for `sm_90`; all have the same.
    pub(crate) fn architecture(&self) -> u32 {
        self.devices.first().map_or(0, |device| image::architecture(device.driver.info()))
    }

    /// Keeps what was found, and prints what kernels printed. Called whenever work may have run.
    pub(crate) fn collect(&self) {
        self.backend.note_times();
        self.devices.iter().for_each(|device| device.collect(self));
        if self.may_print.load(Ordering::Relaxed) {
            self.print();
        }
    }

    /// Runs what is still queued at the end of the process, so that it is checked, too, and keeps what was found. Functions of the program are
    /// not called any more: what they need may be gone.
    fn finish(&self) {
        if !self.ends_functions() {
            return self.collect();
        }
        interprocess_event::end();
        leaks::report(self);
        self.finish_work();
    }

    /// Before NVIDIA's library takes no calls any more: waits for the work of GPUs.
    fn finish_gpus(&self) {
        if self.ends_functions() {
            self.finish_work();
        }
    }

    /// No function of the program is called any more. False if one still runs, so that work that comes after it does not end.
    fn ends_functions(&self) -> bool {
        if is_inside() {
            // Its own function ends the process.
            return false;
        }
        let has_ended = host_callbacks::end(LAST_FUNCTION);
        if !has_ended {
            records::note_once(
                "functions at the end",
                "the process ended while a function that it gave to cuLaunchHostFunc or cuStreamAddCallback ran; work that waits for it was not \
                 checked",
            );
        }
        has_ended
    }

    /// Waits for all that is queued, and takes what is found.
    fn finish_work(&self) {
        for context in self.contexts.objects().iter().filter(|context| context.is_there()) {
            // A lost device was told before.
            let _ = context.synchronize();
        }
        self.collect();
        if let Backend::Simulated(machine) = &self.backend {
            let dropped = machine.findings_left_out();
            if dropped > 0 {
                records::note_left_out(machine.findings().len() as u64 + dropped);
            }
        }
    }

    /// Says that a kernel may print.
    pub(crate) fn expect_output(&self) {
        self.may_print.store(true, Ordering::Relaxed);
    }

    fn print(&self) {
        let Backend::Simulated(machine) = &self.backend else { return };
        // Held while it writes, so that texts come in the order in which they were taken.
        let mut left_out = self.left_out_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = machine.take_printed();
        if !text.is_empty() {
            use std::io::Write;
            // A program without a standard output wants none.
            let mut out = std::io::stdout();
            let _ = out.write_all(&text).and_then(|()| out.flush());
        }
        let now = machine.printed_left_out_bytes();
        if now > *left_out {
            *left_out = now;
            records::note_once(
                "printed",
                "kernels printed more than is kept until the program waits for them; the rest was left out",
            );
        }
    }
}

impl Device {
    fn new(
        OpenedDevice { driver, checking, calls_functions }: OpenedDevice,
        ordinal: u32,
        contexts: &HandleTable<Context>,
        pools: &HandleTable<Pool>,
    ) -> Answer<Self> {
        let primary = Arc::new(Context::primary(ordinal, driver.clone()));
        let primary_handle = contexts.insert(primary.clone()).ok_or(Code::OUT_OF_MEMORY)?;
        let default_pool = pools.insert(Arc::new(Pool::new(ordinal, 0))).ok_or(Code::OUT_OF_MEMORY)?;
        Ok(Self {
            driver,
            checking,
            calls_functions,
            primary,
            primary_handle,
            retained: Mutex::new(0),
            default_pool,
            current_pool: Mutex::new(default_pool),
            host_functions: Mutex::new(None),
            value_kernels: Mutex::new(None),
            graph_memory: Mutex::default(),
            is_hung: AtomicBool::new(false),
        })
    }

    /// Keeps what was found since the last call.
    fn collect(&self, state: &ProcessState) {
        // A simulated device in a worker found the same.
        if let Some(checking) = self.checking.as_ref().filter(|_| self.follows_launches()) {
            violations::collect(state, checking.layer());
        }
        if records::collect(&*self.driver) {
            self.is_hung.store(true, Ordering::Relaxed);
        }
    }

    /// Whether work was found that never ends, so that the device will be lost by it.
    pub(crate) fn is_hung(&self) -> bool {
        self.is_hung.load(Ordering::Relaxed)
    }

    /// Whether launches should say what their kernels do to memory.
    pub(crate) fn follows_launches(&self) -> bool {
        self.checking.as_ref().is_some_and(|checking| checking.layer().follows_launches())
    }

    /// The kernel that calls functions of the program, if there was one.
    pub(crate) fn host_function(&self) -> Option<FunctionId> {
        let made = self.host_functions.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref().map(|made| made.function)
    }

    /// Takes note of how much memory of graphs is used and reserved, and says the most of both.
    pub(crate) fn note_graph_memory(&self, used: u64, reserved: u64) -> (u64, u64) {
        let mut most = self.graph_memory.lock().unwrap_or_else(PoisonError::into_inner);
        *most = (most.0.max(used), most.1.max(reserved));
        *most
    }

    /// Forgets the most that was used, or reserved.
    pub(crate) fn forget_graph_memory(&self, used: bool) {
        let mut most = self.graph_memory.lock().unwrap_or_else(PoisonError::into_inner);
        *(if used { &mut most.0 } else { &mut most.1 }) = 0;
    }

    /// What writes values and waits for them; made when the first is queued.
    pub(crate) fn value_kernels(&self) -> Answer<ValueKernels> {
        let mut made = self.value_kernels.lock().unwrap_or_else(PoisonError::into_inner);
        match *made {
            Some(made) => Ok(made),
            None if self.checking.is_some() => {
                Err(backend::refuse("a function that writes or waits for values in memory"))
            }
            None => Ok(*made.insert(ValueKernels::load(&*self.driver)?)),
        }
    }

    /// What calls functions of the program; made when the first is queued.
    pub(crate) fn host_functions(&self) -> Answer<HostFunctions> {
        let mut made = self.host_functions.lock().unwrap_or_else(PoisonError::into_inner);
        match *made {
            Some(made) => Ok(made),
            None if !self.calls_functions => {
                Err(backend::refuse_in_worker("a function or a copy of the host in the order of a stream"))
            }
            None => Ok(*made.insert(HostFunctions::load(&*self.driver)?)),
        }
    }
}

/// Runs when the loader ends the library: after the functions of `atexit` and the destructors of the program and of the libraries that use this one, which may
/// still give memory back.
// SAFETY: the loader calls what the section lists, without arguments that it needs; the function does not unwind.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    unless_forked(ProcessState::finish);
    unless_forked(|_| records::keep_statistics());
    unless_forked(|_| {
        if let Some(recording) = recording::recording() {
            recording.end();
        }
    });
}

/// Runs a function at the end of the process that made the state, and not in a child of it.
fn unless_forked(end: fn(&ProcessState)) {
    let is_forked = FORKED.load(Ordering::Relaxed);
    if let Some(state) = STATE.get().filter(|_| !is_forked) {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| end(state)));
    }
}

/// Sees the end of the process and its forks.
fn watch_process(has_gpu: bool) {
    /// NVIDIA's library takes no calls after its own function of `atexit`, which it registered before this one, so that this one runs first.
    extern "C" fn before_the_driver() {
        unless_forked(ProcessState::finish_gpus);
    }
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: both functions do not unwind, and live as long as the library, which is never unloaded while it is in use.
    unsafe {
        if has_gpu {
            libc::atexit(before_the_driver);
        }
        libc::pthread_atfork(None, None, Some(in_child));
    }
}
