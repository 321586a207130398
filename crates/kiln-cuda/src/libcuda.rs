//! libcuda, loaded and started.

use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use kiln_driver::{Code, Version};

use crate::convert;
use crate::cuda_absence::{DriverAbsence, StartFault, Unavailable};
use crate::device_description::DeviceDescription;
use crate::fork_count::Birth;
use crate::libcuda_search;
use crate::libcuda_symbols::{self, Api, Status};
use crate::libraries::SearchEnvironment;

/// The oldest CUDA version a driver must speak.
pub const OLDEST_DRIVER: Version = Version { major: 12, minor: 4 };

/// libcuda, loaded and started, with no context on any device.
///
/// There is at most one in a process, and it is never unloaded: threads of the driver and handlers it registered
/// for the end of the process live in it. A failure is not remembered; the next call tries again.
///
/// ```
/// use kiln_cuda::Libcuda;
///
/// match Libcuda::load() {
///     Ok(library) => println!("CUDA {}: {} devices", library.version(), library.devices()?.len()),
///     Err(reason) => println!("no CUDA: {reason}"),
/// }
/// # Ok::<(), kiln_cuda::Unavailable>(())
/// ```
pub struct Libcuda {
    api: Api,
    name: String,
    version: Version,
    birth: Birth,
}

impl Libcuda {
    /// Finds libcuda, checks that kiln can use it, and starts it. Threads that call this first at the same time may each load it; all of them get the
    /// same value.
    ///
    /// # Errors
    /// [`Unavailable`] says whether there is nothing to use or something is broken.
    pub fn load() -> Result<&'static Self, Unavailable> {
        static STARTED: OnceLock<Libcuda> = OnceLock::new();
        if STARTED.get().is_none() {
            let library = Self::start()?;
            // If another thread was faster, its value is kept; both refer to the same loaded file.
            let _ = STARTED.set(library);
        }
        match STARTED.get() {
            Some(library) if library.birth.is_here() => Ok(library),
            _ => Err(Unavailable::Forked),
        }
    }

    /// The CUDA version that the driver supports.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The name or path it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file behind it, as the process has it loaded.
    pub fn path(&self) -> Option<PathBuf> {
        SearchEnvironment::of_process().loaded_file("libcuda.so")
    }

    /// How many devices the driver shows to this process.
    ///
    /// # Errors
    /// A fault if the driver does not answer.
    pub fn device_count(&self) -> Result<u32, Unavailable> {
        let mut count: c_int = 0;
        // SAFETY: the out-parameter is a live local, and the driver was started in `start`.
        let status = unsafe { (self.api.device_count)(&mut count) };
        start_check("cuDeviceGetCount", status)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// An attribute of a device, by its number in CUDA.
    ///
    /// # Errors
    /// A fault with the code of the driver: the attribute or the device is not known, or the driver does not answer.
    pub fn attribute(&self, ordinal: u32, number: c_int) -> Result<c_int, StartFault> {
        let (mut device, mut value) = (0, 0);
        // SAFETY: the out-parameter is a live local, and the driver was started in `start`.
        let status = unsafe { (self.api.device)(&mut device, ordinal as c_int) };
        start_check("cuDeviceGet", status)?;
        // SAFETY: as above; a number that is no attribute is refused.
        let status = unsafe { (self.api.device_attribute)(&mut value, number, device) };
        start_check("cuDeviceGetAttribute", status)?;
        Ok(value)
    }

    /// All devices, none of them opened. One that does not answer stands in the list with its fault, so that it does
    /// not hide the others.
    ///
    /// # Errors
    /// Absent if there is none; a fault if the driver cannot even count them.
    pub fn devices(&self) -> Result<Vec<Result<DeviceDescription, StartFault>>, Unavailable> {
        match self.device_count()? {
            0 => Err(DriverAbsence::NoDevice.into()),
            count => Ok((0..count).map(|ordinal| DeviceDescription::read(self, ordinal)).collect()),
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn birth(&self) -> Birth {
        self.birth
    }

    fn start() -> Result<Self, Unavailable> {
        let birth = Birth::here();
        let opened = libcuda_search::open(&SearchEnvironment::of_process())?;
        let incomplete = |symbol| opened.incomplete(symbol);

        let mut number: c_int = 0;
        let driver_version = libcuda_symbols::version_entry(&opened.library).map_err(incomplete)?;
        // SAFETY: the out-parameter is a live local, and this call works before `cuInit`.
        let status = unsafe { driver_version(&mut number) };
        stub_check(&opened.name, "cuDriverGetVersion", status)?;
        let version = Version::from_cuda(u32::try_from(number).unwrap_or(0));
        if version < OLDEST_DRIVER {
            return Err(DriverAbsence::TooOld { found: version, needed: OLDEST_DRIVER }.into());
        }

        let api = Api::resolve(&opened.library).map_err(incomplete)?;
        // SAFETY: 0 is the only value the flags may have.
        let status = unsafe { (api.init)(0) };
        stub_check(&opened.name, "cuInit", status)?;
        Ok(Self { api, name: opened.name, version, birth })
    }
}

impl fmt::Debug for Libcuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (CUDA {})", self.name, self.version)
    }
}

/// A fault unless the call succeeded.
pub(crate) fn start_check(call: &'static str, status: Status) -> Result<(), StartFault> {
    match Code(status) {
        Code::SUCCESS => Ok(()),
        code => Err(StartFault { call, code }),
    }
}

/// What the first calls into a library say about the machine.
fn stub_check(library: &str, call: &'static str, status: Status) -> Result<(), Unavailable> {
    match Code(status) {
        Code::SUCCESS => Ok(()),
        code => Err(convert::start_refusal(library, call, code)),
    }
}
