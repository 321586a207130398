//! Everything the doctor looks at, as one value.

use kiln::libraries::{self, DriverLibrary, FoundLibrary, Library, MissingLibrary};
use kiln::probe::{DeviceSummary, Devices, prober};
use kiln::{
    DeviceRuntime, Error, Policy,
    probe::{Absence, Availability},
};
use kiln_driver::DeviceKind;
use serde::Serialize;

use super::check::{Check, Status};
use super::isolation;
use crate::exit::Exit;

/// What is known of this machine.
#[derive(Serialize)]
pub(crate) struct Examination {
    /// What had to be there.
    policy: &'static str,
    /// Each thing that was looked at.
    checks: Vec<Check>,
    /// The devices that answered.
    devices: Vec<Device>,
    /// The libraries that were found.
    libraries: Vec<FoundHere>,
    /// How the command ends.
    exit: u8,
    #[serde(skip)]
    verdict: Exit,
}

/// A device, as it is written out.
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

/// A library, as it is written out.
#[derive(Serialize)]
pub(crate) struct FoundHere {
    pub(crate) name: &'static str,
    pub(crate) path: String,
    pub(crate) version: Option<String>,
    pub(crate) origin: String,
}

impl Examination {
    /// Looks at this machine, as far as a policy allows.
    pub(crate) fn of_this_machine(policy: Policy) -> Self {
        let mut examination = Self {
            policy: policy.name(),
            checks: Vec::new(),
            devices: Vec::new(),
            libraries: Vec::new(),
            exit: 0,
            verdict: Exit::Done,
        };
        if policy.may_touch_cuda() {
            examination.look_at_cuda(policy);
            examination.look_at_libraries();
        } else {
            let why = format!("the policy `{policy}` leaves CUDA alone");
            examination.checks.push(Check::skipped("CUDA", why));
        }
        if policy != Policy::Off {
            examination.look_at_simulator();
            // A device that does not work in this process is not tried in another.
            let cuda = examination.devices.iter().find(|device| device.kind == DeviceKind::Cuda.to_string());
            let cuda = cuda.map(|device| device.ordinal).filter(|_| examination.verdict == Exit::Done);
            examination.checks.extend(isolation::look(cuda));
        }
        examination.exit = examination.verdict.code();
        examination
    }

    pub(crate) fn policy(&self) -> &'static str {
        self.policy
    }

    pub(crate) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        self.verdict
    }

    fn look_at_cuda(&mut self, policy: Policy) {
        // The policy of the command line is asked for, whatever the process's own says.
        match prober().availability_under(policy) {
            Ok(Availability::Available(devices)) => self.look_at_devices(&devices, policy),
            Ok(Availability::Absent(absence)) => self.absent(&absence, policy),
            Err(error) => self.fault("driver", &error),
        }
    }

    fn look_at_devices(&mut self, devices: &Devices, policy: Policy) {
        match libraries::driver() {
            Ok(DriverLibrary { name, path, version }) => {
                let file = path.map_or(name, |path| path.display().to_string());
                self.checks.push(Check::ok("driver", format!("{file}, CUDA {version}")));
            }
            Err(error) => self.fault("driver", &error.into()),
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
            Ok(Some(runtime)) => self.look_at_runtime(runtime),
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

    /// Opens the device a program would get, and moves a few bytes through it.
    fn look_at_runtime(&mut self, runtime: &DeviceRuntime) {
        let sample: Vec<u32> = (0..1024).collect();
        let copied = runtime.upload(&sample).and_then(|buffer| buffer.download());
        let name = format!("context on device {}", runtime.ordinal());
        match (copied, runtime.memory_info()) {
            (Ok(copied), Ok(memory)) if copied == sample => {
                let free = gibibytes(memory.free_bytes);
                self.checks
                    .push(Check::ok(name, format!("created; a copy went there and back; {free} free")));
            }
            (Ok(_), Ok(_)) => {
                self.checks.push(Check::bad(
                    Status::Fault,
                    name,
                    "a copy came back changed",
                    "check the hardware: run the vendor's memory test",
                ));
                self.verdict = Exit::Fault;
            }
            (Err(error), _) | (_, Err(error)) => self.fault(name, &error),
        }
    }

    fn look_at_libraries(&mut self) {
        for (library, answer) in Library::ALL.iter().zip(libraries::find_all()) {
            self.checks.push(library_check(*library, &answer));
            self.libraries.extend(answer.ok().map(FoundHere::from));
        }
        self.checks.push(headers_check());
    }

    fn look_at_simulator(&mut self) {
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
        self.checks.push(Check::bad(status, "driver", absence.to_string(), absence.next_step()));
        if policy == Policy::Required {
            self.verdict = self.verdict.max(Exit::Absent);
        }
    }

    fn fault(&mut self, name: impl Into<String>, error: &Error) {
        let next_step = if error.is_oom() {
            "free memory on the device, or wait for the process that holds it"
        } else if error.is_sticky() {
            "start the process again; if it stays, reset the device (nvidia-smi --gpu-reset)"
        } else {
            "look for the code in the driver's log (dmesg | grep NVRM), then reload or reinstall the driver"
        };
        self.checks.push(Check::bad(Status::Fault, name, format!("{error:#}"), next_step));
        self.verdict = self.verdict.max(Exit::from(error));
    }
}

fn library_check(library: Library, answer: &Result<FoundLibrary, MissingLibrary>) -> Check {
    match answer {
        Ok(found) => {
            let version =
                found.version.map_or_else(|| "of unknown version".into(), |version| version.to_string());
            let detail = format!("{version} at {} ({})", found.path.display(), found.origin);
            Check::ok(library.name(), detail)
        }
        Err(missing) => {
            let detail = format!("not found in {} places", missing.tried.len());
            Check::bad(Status::Missing, library.name(), detail, library.advice())
        }
    }
}

/// What CUDA C may include.
fn headers_check() -> Check {
    const NAME: &str = "CUDA headers";
    match libraries::headers() {
        Ok(headers) => {
            let version = headers.version.map_or_else(|| "of unknown version".into(), |it| it.to_string());
            let folders: Vec<_> = headers.folders.iter().map(|folder| folder.display().to_string()).collect();
            Check::ok(NAME, format!("{version} at {} ({})", folders.join(", "), headers.origin))
        }
        Err(missing) => {
            let detail = format!("not found in {} places", missing.tried.len());
            Check::bad(Status::Missing, NAME, detail, missing.advice())
        }
    }
}

fn describe(device: &DeviceSummary) -> String {
    let mig = if device.mig { ", a MIG slice" } else { "" };
    let memory = gibibytes(device.total_memory_bytes);
    let DeviceSummary { name, capability, uuid, pci, shared_bytes_per_block_optin: shared, .. } = device;
    format!(
        "{name}, capability {capability}, {memory}{mig}, {shared} bytes of shared memory, {uuid}, PCI {pci}"
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
        }
    }
}
