//! The examination of this machine.

use kiln::libraries::{self, DriverLibrary, FoundLibrary, Library, MissingLibrary, SearchedPlace};
use kiln::probe::{DeviceSummary, Devices, prober};
use kiln::{
    DeviceRuntime, Error, Policy,
    probe::{Absence, Availability, CudaAbsence},
};
use kiln_driver::{DeviceKind, Version};
use serde::Serialize;

use super::check::{Check, Status};
use super::isolation;
use super::library_cost::{self, LibraryCost, Sample};
use super::library_loading;
use crate::exit_code::Exit;
use crate::failure::next_step;
use crate::table::bytes;

/// What to do about a fault of which nothing else is known.
const DRIVER_LOG: &str =
    "look for the code in the driver's log (dmesg | grep NVRM), then reload or reinstall the driver";
/// The name of the check of the driver.
const DRIVER: &str = "driver";

/// The state of this machine.
#[derive(Serialize)]
pub(crate) struct Examination {
    /// Whether kernels can be run, and on which device, in one sentence.
    summary: String,
    /// What kernels run on: `cuda`, `simulated` or null.
    runs_on: Option<&'static str>,
    /// What the machine must have.
    policy: &'static str,
    /// Each part that was examined.
    checks: Vec<Check>,
    /// The devices that answered.
    devices: Vec<Device>,
    /// The libraries that were found.
    libraries: Vec<FoundHere>,
    /// The exit code.
    exit: u8,
    #[serde(skip)]
    result: Exit,
}

/// A device.
#[derive(Serialize)]
pub(crate) struct Device {
    pub(crate) kind: String,
    pub(crate) ordinal: u32,
    pub(crate) name: String,
    pub(crate) uuid: String,
    pub(crate) pci: String,
    pub(crate) capability: String,
    pub(crate) driver: String,
    pub(crate) memory_bytes: u64,
    pub(crate) mig: bool,
    pub(crate) multiprocessors: u32,
    pub(crate) shared_bytes_per_block_optin: u32,
}

/// A library.
#[derive(Serialize)]
pub(crate) struct FoundHere {
    pub(crate) name: &'static str,
    pub(crate) path: String,
    pub(crate) version: Option<String>,
    pub(crate) origin: String,
    /// What its use costs, if kiln calls it and there is a device for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<LibraryCost>,
}

impl Examination {
    /// Examines this machine as far as a policy allows.
    pub(crate) fn of_this_machine(policy: Policy) -> Self {
        let mut examination = Self {
            summary: String::new(),
            runs_on: None,
            policy: policy.name(),
            checks: Vec::new(),
            devices: Vec::new(),
            libraries: Vec::new(),
            exit: 0,
            result: Exit::Done,
        };
        if policy.may_touch_cuda() {
            examination.examine_cuda(policy);
            examination.examine_libraries(policy);
        } else {
            let why = format!("the policy `{policy}` does not use CUDA");
            examination.checks.push(Check::skipped("CUDA", why));
        }
        if policy != Policy::Off {
            examination.examine_simulator();
            // A device that does not work in this process is not tried in a worker.
            let cuda = examination.devices.iter().find(|device| device.kind == DeviceKind::Cuda.to_string());
            let cuda = cuda.map(|device| device.ordinal).filter(|_| examination.result == Exit::Done);
            examination.checks.extend(isolation::examine(cuda));
        }
        examination.exit = examination.result.code();
        examination.summarise(policy);
        examination
    }

    /// Whether kernels can be run, and on which device.
    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// What is missing to compile CUDA C.
    pub(crate) fn compiler(&self) -> Option<String> {
        let nvrtc = self
            .checks
            .iter()
            .find(|check| check.name == Library::Nvrtc.name() && check.status != Status::Ok)?;
        let next = nvrtc.next_step.as_deref().unwrap_or_default();
        Some(format!("PTX and programs only: NVRTC, which compiles CUDA C, is missing; {next}."))
    }

    fn summarise(&mut self, policy: Policy) {
        let problem = |wanted: &[Status]| self.checks.iter().find(|check| wanted.contains(&check.status));
        let cuda = self.devices.iter().find(|device| device.kind == DeviceKind::Cuda.to_string());
        let simulated = self.devices.iter().any(|device| device.kind == DeviceKind::Simulated.to_string());
        let why = problem(&[Status::Fault, Status::Needed]).or_else(|| problem(&[Status::Missing]));
        let why = why.map(|check| match check.name == DRIVER {
            true => check.detail.clone(),
            false => format!("{}: {}", check.name, check.detail),
        });
        let why = why.unwrap_or_default();
        (self.runs_on, self.summary) = match (self.result, cuda) {
            (_, _) if policy == Policy::Off => {
                let text = "No: the policy `off` leaves CUDA alone; `DeviceRuntime::auto()`, `kiln run`, `check` and `demo` use the simulated device, and other requests get none.";
                (None, text.to_owned())
            }
            (Exit::Done, Some(device)) => {
                (Some("cuda"), format!("Yes: kernels run on {} (device {}).", device.name, device.ordinal))
            }
            (Exit::Done, None) if simulated && policy == Policy::Simulate => (
                Some("simulated"),
                "Yes: kernels run on the simulated device, as the policy `simulate` asks.".to_owned(),
            ),
            (Exit::Done, None) if simulated => (
                Some("simulated"),
                format!("Yes: kernels run on the simulated device, because there is no GPU ({why})."),
            ),
            (Exit::Absent, _) => {
                (None, format!("No: the policy `{policy}` needs a GPU, and there is none ({why})."))
            }
            _ => (None, format!("No: {why}.")),
        };
    }

    pub(crate) fn policy(&self) -> &'static str {
        self.policy
    }

    pub(crate) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.result
    }

    fn examine_cuda(&mut self, policy: Policy) {
        // The policy of the command line counts, not that of the process.
        match prober().availability_under(policy) {
            Ok(Availability::Available(devices)) => self.examine_devices(&devices, policy),
            Ok(Availability::Absent(absence)) => self.absent(&absence, policy),
            Err(error) => self.fault(DRIVER, &error),
        }
    }

    fn examine_devices(&mut self, devices: &Devices, policy: Policy) {
        match libraries::driver() {
            Ok(DriverLibrary { name, path, version }) => {
                let file = path.map_or(name, |path| path.display().to_string());
                self.checks.push(Check::ok(DRIVER, format!("{file}, CUDA {version}")));
            }
            Err(error) => self.fault(DRIVER, &error.into()),
        }
        for device in devices.working() {
            let name = format!("device {}", device.ordinal);
            self.checks.push(Check::ok(name, describe(device)));
            self.devices.push(Device::from(device));
        }
        for (ordinal, error) in devices.broken() {
            self.fault(format!("device {ordinal}"), &error.clone().into());
        }
        match prober().resolve(policy) {
            Ok(Some(runtime)) => self.examine_runtime(runtime),
            Ok(None) => {}
            Err(error) => return self.fault("context", &error),
        }
        // A better device that could not be opened is hidden by the one that was.
        if let Ok(Availability::Available(devices)) = prober().availability_under(policy) {
            for (ordinal, error) in devices.skipped() {
                self.fault(format!("context on device {ordinal}"), &error.clone().into());
            }
        }
    }

    /// Opens the device a program would get, and copies a few bytes to it and back.
    fn examine_runtime(&mut self, runtime: &DeviceRuntime) {
        let sample: Vec<u32> = (0..1024).collect();
        let copied = runtime.upload(&sample).and_then(|buffer| buffer.download());
        let name = format!("context on device {}", runtime.ordinal());
        match (copied, runtime.memory_info()) {
            (Ok(copied), Ok(memory)) if copied == sample => {
                let free = gibibytes(memory.free_bytes);
                self.checks
                    .push(Check::ok(name, format!("created; data was copied to it and back; {free} free")));
            }
            (Ok(_), Ok(_)) => {
                self.checks.push(Check::bad(
                    Status::Fault,
                    name,
                    "copied data came back changed",
                    "check the hardware with NVIDIA's diagnostics (dcgmi diag -r 3)",
                ));
                self.result = Exit::Fault;
            }
            (Err(error), _) | (_, Err(error)) => self.fault(name, &error),
        }
    }

    fn examine_libraries(&mut self, policy: Policy) {
        // Code of a newer compiler, and libraries of a newer CUDA, do not run on an older driver.
        let driver = libraries::driver().ok().map(|driver| driver.version);
        let has_device = self.devices.iter().any(|device| device.kind == DeviceKind::Cuda.to_string());
        let gpu = if has_device { prober().resolve(policy).ok().flatten() } else { None };
        let mut unused = Vec::new();
        for (library, answer) in Library::ALL.iter().zip(libraries::find_all()) {
            let sample = library_cost::sample_operation(*library);
            // Names may tell no version, and a library may not load: it is asked itself, in another process, which it may end.
            match answer.and_then(|found| library_loading::load(&found, gpu)) {
                Ok((found, sample)) => self.found(*library, found, sample, driver),
                // The simulated device compiles CUDA C, too. A variable that names a wrong place, and a file that cannot be used, is told on any machine.
                Err(missing)
                    if *library == Library::Nvrtc
                        || gpu.is_some() && sample.is_some()
                        || missing.variable.is_some()
                        || missing.unusable().is_some() =>
                {
                    self.checks.push(missing_library(*library, &missing, driver));
                }
                Err(_) if sample.is_some() => unused.push(library.name()),
                // Programs cannot use it through kiln.
                Err(_) => {}
            }
        }
        if !unused.is_empty() {
            let why = format!(
                "{} are used on a GPU only; the simulated device computes the same on the CPU",
                unused.join(", ")
            );
            self.checks.push(Check::skipped("libraries", why));
        }
        self.checks.push(headers_check(driver));
    }

    fn found(
        &mut self,
        library: Library,
        found: FoundLibrary,
        sample: Option<Sample>,
        driver: Option<Version>,
    ) {
        let version = found.version.map_or_else(|| "unknown version".into(), |version| version.to_string());
        let detail = format!("{version} at {} ({})", found.path.display(), found.origin);
        let (cost, costs) = match sample {
            None => (None, String::new()),
            Some(Sample::Cost(cost)) => (Some(cost), format!("; {cost}")),
            Some(Sample::Unknown(why)) => {
                let unknown =
                    "; what its first use takes is not known: another process could not open the device";
                (None, format!("{unknown} ({why})"))
            }
            // The device works, and all that needs no such library.
            Some(Sample::Unusable(why)) => {
                return self.checks.push(unusable_library(library, &why, driver));
            }
            Some(Sample::Died(how)) => {
                let detail = format!("{}: {how}", found.path.display());
                return self.checks.push(unusable_library(library, &detail, driver));
            }
            Some(Sample::Fault(error, next)) => {
                let next = next.unwrap_or_else(|| DRIVER_LOG.to_owned());
                self.checks.push(Check::bad(Status::Fault, library.name(), error, next));
                self.result = self.result.max(Exit::Fault);
                return;
            }
        };
        self.checks.push(Check::ok(library.name(), format!("{detail}{costs}")));
        self.libraries.push(FoundHere { cost, ..FoundHere::from(found) });
    }

    fn examine_simulator(&mut self) {
        match prober().resolve(Policy::Simulate) {
            Ok(Some(runtime)) => {
                let info = runtime.info();
                let detail = format!("{}, capability {}", info.name, info.capability);
                self.checks.push(Check::ok("simulated device", detail));
                self.devices.push(Device::from(&DeviceSummary::from(info)));
            }
            Ok(None) => {}
            Err(error) => self.fault("simulated device", &error),
        }
    }

    fn absent(&mut self, absence: &Absence, policy: Policy) {
        let status = match policy {
            Policy::Required => Status::Needed,
            _ => Status::Missing,
        };
        let (detail, searched) = match absence {
            Absence::Cuda(CudaAbsence::NoDriver { tried }) => {
                let needed = "no NVIDIA driver that supports CUDA 12.4 or newer was found";
                (needed.to_owned(), tried.iter().map(ToString::to_string).collect())
            }
            absence => (absence.to_string(), Vec::new()),
        };
        let check = Check::bad(status, DRIVER, detail, absence.next_step());
        self.checks.push(Check { searched, ..check });
        if policy == Policy::Required {
            self.result = self.result.max(Exit::Absent);
        }
    }

    fn fault(&mut self, name: impl Into<String>, error: &Error) {
        let next_step = next_step(error).unwrap_or(DRIVER_LOG);
        self.checks.push(Check::bad(Status::Fault, name, format!("{error:#}"), next_step));
        self.result = self.result.max(Exit::from(error));
    }
}

fn missing_library(library: Library, missing: &MissingLibrary, driver: Option<Version>) -> Check {
    let searched = missing.tried.iter().map(|tried| format!("{}: {}", tried.path.display(), tried.why));
    let place = |tried: &SearchedPlace| format!("{}: {}", tried.path.display(), tried.why);
    let unusable = missing.unusable();
    let (detail, next_step) = match (missing.variable, unusable.or(missing.tried.first()), unusable) {
        (Some(variable), Some(tried), _) => {
            let detail = format!("{variable} names {}", place(tried));
            (detail, format!("correct or unset {variable}, or {}", library.advice_for(driver)))
        }
        (_, _, Some(tried)) => (place(tried), library.advice_for(driver)),
        _ => ("not found".to_owned(), library.advice_for(driver)),
    };
    let check = Check::bad(Status::Missing, library.name(), detail, next_step);
    Check { searched: searched.collect(), ..check }
}

/// A library that was found and whose operations do not load.
fn unusable_library(library: Library, detail: &str, driver: Option<Version>) -> Check {
    // The next step follows by itself, for the driver of this machine.
    let detail = detail.replace(&format!("; {}", library.advice()), "");
    Check::bad(Status::Missing, library.name(), detail, library.advice_for(driver))
}

/// What CUDA C may include.
fn headers_check(driver: Option<Version>) -> Check {
    const NAME: &str = "CUDA headers";
    match libraries::headers() {
        Ok(headers) => {
            let version = headers.version.map_or_else(|| "of unknown version".into(), |it| it.to_string());
            let folders: Vec<_> = headers.folders.iter().map(|folder| folder.display().to_string()).collect();
            Check::ok(NAME, format!("{version} at {} ({})", folders.join(", "), headers.origin))
        }
        Err(missing) => {
            let searched: Vec<String> = missing
                .tried
                .iter()
                .map(|tried| format!("{}: {}", tried.path.display(), tried.why))
                .collect();
            let check = Check::bad(Status::Missing, NAME, "not found", missing.advice_for(driver));
            Check { searched, ..check }
        }
    }
}

fn describe(device: &DeviceSummary) -> String {
    let mig = if device.mig { ", a MIG slice" } else { "" };
    let memory = gibibytes(device.total_memory_bytes);
    let DeviceSummary { name, capability, uuid, pci, shared_bytes_per_block_optin: shared, .. } = device;
    let shared = bytes(u64::from(*shared));
    format!(
        "{name}, capability {capability}, {memory}{mig}, {shared} of shared memory per block, {uuid}, PCI {pci}"
    )
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

impl From<&DeviceSummary> for Device {
    fn from(device: &DeviceSummary) -> Self {
        Self {
            kind: device.kind.to_string(),
            ordinal: device.ordinal,
            name: device.name.clone(),
            uuid: device.uuid.to_string(),
            pci: device.pci.to_string(),
            capability: device.capability.to_string(),
            driver: device.driver_version.to_string(),
            memory_bytes: device.total_memory_bytes,
            mig: device.mig,
            multiprocessors: device.multiprocessors,
            shared_bytes_per_block_optin: device.shared_bytes_per_block_optin,
        }
    }
}

impl From<FoundLibrary> for FoundHere {
    fn from(found: FoundLibrary) -> Self {
        Self {
            name: found.kind.name(),
            path: found.path.display().to_string(),
            version: found.version.map(|version| version.to_string()),
            origin: found.origin.to_string(),
            cost: None,
        }
    }
}
