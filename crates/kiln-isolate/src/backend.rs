//! Which device a worker opens.

use std::fmt;

use kiln_driver::Driver;
use std::sync::Arc;

/// A device, named so that another process can open it.
///
/// ```
/// use kiln_isolate::Backend;
///
/// assert_eq!(Backend::cuda(0).name(), "cuda");
/// assert_eq!(Backend::simulated(42).name(), "sim");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backend {
    name: String,
    argument: Vec<u8>,
}

impl Backend {
    /// A CUDA device by its number.
    pub fn cuda(ordinal: u32) -> Self {
        Self::custom("cuda", ordinal.to_le_bytes())
    }

    /// A simulated device that runs PTX, driven by a seed.
    pub fn simulated(seed: u64) -> Self {
        Self::custom("sim", seed.to_le_bytes())
    }

    /// A kind of device the program's own [`Worker`](crate::Worker) knows, with what it needs to open one.
    pub fn custom(name: impl Into<String>, argument: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), argument: argument.into() }
    }

    /// The kind.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which one.
    pub fn argument(&self) -> &[u8] {
        &self.argument
    }
}

/// A device a worker opened.
pub struct Opened {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) findings: Option<Box<dyn FnOnce() -> String>>,
}

impl Opened {
    /// A device.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, findings: None }
    }

    /// Something that says, when the worker is told to end, what was wrong with the way the device was used. The client is
    /// told; an empty text is nothing.
    #[must_use]
    pub fn with_findings(self, findings: impl FnOnce() -> String + 'static) -> Self {
        Self { findings: Some(Box::new(findings)), ..self }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.driver.info().name)
    }
}

/// Why a worker has no device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenFailure {
    pub(crate) absent: bool,
    pub(crate) text: String,
}

impl OpenFailure {
    /// There is no such device.
    pub fn absent(text: impl Into<String>) -> Self {
        Self { absent: true, text: text.into() }
    }

    /// There is one, and it does not work.
    pub fn broken(text: impl Into<String>) -> Self {
        Self { absent: false, text: text.into() }
    }
}

type Opener = fn(&[u8]) -> Result<Opened, OpenFailure>;

/// What this crate was built with.
pub(crate) fn built_in() -> Vec<(&'static str, Opener)> {
    vec![
        #[cfg(feature = "cuda")]
        ("cuda", open_cuda),
        #[cfg(feature = "sim")]
        ("sim", open_simulated),
    ]
}

#[cfg(feature = "cuda")]
fn open_cuda(argument: &[u8]) -> Result<Opened, OpenFailure> {
    let ordinal = argument.try_into().map(u32::from_le_bytes);
    let ordinal = ordinal.map_err(|_| OpenFailure::broken("a CUDA device is named by four bytes"))?;
    match kiln_cuda::CudaDevice::open(ordinal) {
        Ok(device) => Ok(Opened::new(device)),
        Err(error) if error.is_absence() => Err(OpenFailure::absent(error.to_string())),
        Err(error) => Err(OpenFailure::broken(error.to_string())),
    }
}

#[cfg(feature = "sim")]
fn open_simulated(argument: &[u8]) -> Result<Opened, OpenFailure> {
    use kiln_sim::{Machine, MachineConfig, PtxEngine};

    let seed = argument.try_into().map(u64::from_le_bytes);
    let seed = seed.map_err(|_| OpenFailure::broken("a simulated device is named by eight bytes"))?;
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    let device = machine.device(0).map_err(|error| OpenFailure::broken(error.to_string()))?;
    Ok(Opened::new(device).with_findings(move || {
        let report = machine.finish();
        if report.is_clean() { String::new() } else { report.to_string() }
    }))
}
