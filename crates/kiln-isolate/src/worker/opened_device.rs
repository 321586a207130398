//! The device that a worker opened, or why there is none.

use std::fmt;
use std::sync::Arc;

use kiln_driver::Driver;

/// A device that a worker opened.
pub struct OpenedDevice {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) findings: Option<Box<dyn FnOnce() -> String>>,
}

impl OpenedDevice {
    /// A device.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, findings: None }
    }

    /// Adds a function that is called when the client closes the device. It returns what was wrong with the way the device was
    /// used; the client receives it as [`WorkerEvent::Closed`](crate::WorkerEvent). An empty text means that nothing was.
    #[must_use]
    pub fn with_findings(self, findings: impl FnOnce() -> String + 'static) -> Self {
        Self { findings: Some(Box::new(findings)), ..self }
    }
}

#[cfg(all(test, feature = "sim"))]
impl OpenedDevice {
    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }
}

impl fmt::Debug for OpenedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.driver.info().name)
    }
}

/// Why a worker has no device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenFailure {
    pub(super) absent: bool,
    pub(super) text: String,
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

/// Opens a device of one kind.
pub(super) type Opener = fn(&[u8]) -> Result<OpenedDevice, OpenFailure>;

/// The kinds of devices this crate was built with.
pub(super) fn built_in() -> Vec<(&'static str, Opener)> {
    vec![
        #[cfg(feature = "cuda")]
        ("cuda", open_cuda),
        #[cfg(feature = "sim")]
        ("sim", open_simulated),
    ]
}

#[cfg(feature = "cuda")]
fn open_cuda(argument: &[u8]) -> Result<OpenedDevice, OpenFailure> {
    let ordinal = argument.try_into().map(u32::from_le_bytes);
    let ordinal = ordinal.map_err(|_| OpenFailure::broken("the ordinal of a CUDA device has four bytes"))?;
    match kiln_cuda::CudaDevice::open(ordinal) {
        Ok(device) => Ok(OpenedDevice::new(device)),
        Err(error) if error.is_absence() => Err(OpenFailure::absent(error.to_string())),
        Err(error) => Err(OpenFailure::broken(error.to_string())),
    }
}

/// Opens a simulated device, as the worker does; also for tests that play a worker.
#[cfg(feature = "sim")]
pub(crate) fn open_simulated(argument: &[u8]) -> Result<OpenedDevice, OpenFailure> {
    use kiln_sim::{Machine, MachineConfig, PtxEngine};

    let mut engine = PtxEngine::default();
    let (numbers, rest) = argument.as_chunks::<8>();
    let seed = match (numbers, rest) {
        ([seed], []) => u64::from_le_bytes(*seed),
        ([seed, steps], []) => {
            let steps = u64::from_le_bytes(*steps);
            engine = engine.step_limit(steps).stall_limit(steps);
            u64::from_le_bytes(*seed)
        }
        _ => {
            let text = "a simulated device has a seed of eight bytes, and perhaps a limit of instructions of eight more";
            return Err(OpenFailure::broken(text));
        }
    };
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(engine)));
    let device = machine.device(0).map_err(|error| OpenFailure::broken(error.to_string()))?;
    Ok(OpenedDevice::new(device).with_findings(move || {
        let report = machine.finish();
        if report.is_clean() { String::new() } else { report.to_string() }
    }))
}
