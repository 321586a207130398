//! The figures of NVIDIA's management library (NVML): memory, load, temperature and power of each GPU, of all its users.
//!
//! The library belongs to the driver and is loaded at run time. It makes no CUDA context, so that looking costs no device memory.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use crate::dynamic_library::{Library, RTLD_LOCAL, RTLD_NOW, open};

/// The names of the library, in the order they are tried.
const NAMES: &[&str] = if cfg!(windows) { &["nvml.dll"] } else { &["libnvidia-ml.so.1", "libnvidia-ml.so"] };
/// GPUs that are asked at the most.
const MAX_GPUS: c_uint = 256;
/// NVML's own limit for names, with room.
const NAME_BYTES: usize = 128;

type Status = c_int;
type Device = *mut c_void;

/// One GPU. What it does not tell is none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GpuFigures {
    /// Its name.
    pub name: String,
    /// Its UUID, as `GPU-...`.
    pub uuid: String,
    /// Bytes in use by all processes.
    pub used_bytes: Option<u64>,
    /// Bytes altogether.
    pub total_bytes: Option<u64>,
    /// In how many percent of the last sampling period a kernel ran.
    pub busy_percent: Option<u32>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Milliwatts.
    pub power_milliwatts: Option<u32>,
}

/// Why there are no figures.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvmlAbsence {
    /// The library is not there.
    #[error("NVML is not installed: {0}")]
    NotFound(String),
    /// The library lacks a function.
    #[error("NVML has no {0}; install a newer driver")]
    Symbol(&'static str),
    /// The library does not work.
    #[error("NVML answers {0} to `nvmlInit`; run nvidia-smi to see why")]
    Start(i32),
}

/// The library, ready to be asked.
pub struct Nvml {
    functions: Functions,
    /// Unloaded last.
    _library: Library,
}

#[repr(C)]
#[derive(Default)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[repr(C)]
#[derive(Default)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

struct Functions {
    shutdown: unsafe extern "C" fn() -> Status,
    count: unsafe extern "C" fn(*mut c_uint) -> Status,
    handle: unsafe extern "C" fn(c_uint, *mut Device) -> Status,
    name: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status,
    uuid: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status,
    memory: unsafe extern "C" fn(Device, *mut Memory) -> Status,
    utilization: unsafe extern "C" fn(Device, *mut Utilization) -> Status,
    temperature: unsafe extern "C" fn(Device, c_int, *mut c_uint) -> Status,
    power: unsafe extern "C" fn(Device, *mut c_uint) -> Status,
}

impl Nvml {
    /// Loads the library.
    ///
    /// # Errors
    /// It is not there, is too old, or does not work.
    pub fn load() -> Result<Self, NvmlAbsence> {
        let mut last = String::new();
        for name in NAMES {
            // SAFETY: it is the driver's own library, whose initialisers any process may run.
            match unsafe { open(Path::new(name), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => return Self::start(library),
                Err(error) => last = error.to_string(),
            }
        }
        Err(NvmlAbsence::NotFound(last))
    }

    fn start(library: Library) -> Result<Self, NvmlAbsence> {
        type Init = unsafe extern "C" fn() -> Status;
        // SAFETY: these are the types of the functions in nvml.h.
        let (init, functions) = unsafe {
            let init: Init = symbol(&library, c"nvmlInit_v2", "nvmlInit_v2")?;
            let functions = Functions {
                shutdown: symbol(&library, c"nvmlShutdown", "nvmlShutdown")?,
                count: symbol(&library, c"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount_v2")?,
                handle: symbol(&library, c"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex_v2")?,
                name: symbol(&library, c"nvmlDeviceGetName", "nvmlDeviceGetName")?,
                uuid: symbol(&library, c"nvmlDeviceGetUUID", "nvmlDeviceGetUUID")?,
                memory: symbol(&library, c"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo")?,
                utilization: symbol(
                    &library,
                    c"nvmlDeviceGetUtilizationRates",
                    "nvmlDeviceGetUtilizationRates",
                )?,
                temperature: symbol(&library, c"nvmlDeviceGetTemperature", "nvmlDeviceGetTemperature")?,
                power: symbol(&library, c"nvmlDeviceGetPowerUsage", "nvmlDeviceGetPowerUsage")?,
            };
            (init, functions)
        };
        // SAFETY: it takes nothing, and may be called more than once in a process.
        match unsafe { init() } {
            0 => Ok(Self { functions, _library: library }),
            status => Err(NvmlAbsence::Start(status)),
        }
    }

    /// The figures of each GPU, in NVML's order. A GPU that does not answer is left out.
    pub fn gpus(&self) -> Vec<GpuFigures> {
        let mut count = 0;
        // SAFETY: the place is valid for the call.
        if unsafe { (self.functions.count)(&raw mut count) } != 0 {
            return Vec::new();
        }
        (0..count.min(MAX_GPUS)).filter_map(|index| self.gpu(index)).collect()
    }

    fn gpu(&self, index: c_uint) -> Option<GpuFigures> {
        let functions = &self.functions;
        let mut device: Device = std::ptr::null_mut();
        // SAFETY: the place is valid for the call.
        if unsafe { (functions.handle)(index, &raw mut device) } != 0 {
            return None;
        }
        let (mut memory, mut load) = (Memory::default(), Utilization::default());
        let (mut temperature, mut power) = (0, 0);
        // SAFETY: the handle is NVML's, and all places are valid for the calls. 0 is the sensor of the GPU's chip.
        let (memory_status, load_status, temperature_status, power_status) = unsafe {
            (
                (functions.memory)(device, &raw mut memory),
                (functions.utilization)(device, &raw mut load),
                (functions.temperature)(device, 0, &raw mut temperature),
                (functions.power)(device, &raw mut power),
            )
        };
        Some(GpuFigures {
            // SAFETY: both write no more than they are given, and end with a zero.
            name: text(|to, bytes| unsafe { (functions.name)(device, to, bytes) }),
            // SAFETY: as above.
            uuid: text(|to, bytes| unsafe { (functions.uuid)(device, to, bytes) }),
            used_bytes: (memory_status == 0).then_some(memory.used),
            total_bytes: (memory_status == 0).then_some(memory.total),
            busy_percent: (load_status == 0).then_some(load.gpu),
            temperature: (temperature_status == 0).then_some(temperature),
            power_milliwatts: (power_status == 0).then_some(power),
        })
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: it was started, and no handle is used after this.
        let _ = unsafe { (self.functions.shutdown)() };
    }
}

/// A function of the library.
///
/// # Safety
/// It has that type.
unsafe fn symbol<T: Copy>(library: &Library, name: &CStr, word: &'static str) -> Result<T, NvmlAbsence> {
    // SAFETY: the caller vouches for the type.
    let found = unsafe { library.get::<T>(name.to_bytes_with_nul()) };
    found.map(|function| *function).map_err(|_| NvmlAbsence::Symbol(word))
}

/// Text that NVML writes; empty if it does not.
fn text(ask: impl FnOnce(*mut c_char, c_uint) -> Status) -> String {
    let mut bytes = [0_u8; NAME_BYTES];
    // The last byte is left alone, so that there always is an end.
    match ask(bytes.as_mut_ptr().cast(), NAME_BYTES as c_uint - 1) {
        0 => CStr::from_bytes_until_nul(&bytes)
            .map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default(),
        _ => String::new(),
    }
}
