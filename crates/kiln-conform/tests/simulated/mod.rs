//! The laws' kernels as host functions, and a simulated machine that knows them.

// The tests of other crates include this file, and each uses a part of it.
#![allow(dead_code)]

use std::time::Duration;

use kiln_conform::{Kernels, Opened, Subject};
use kiln_driver::{Access, Code};
use kiln_sim::{DeviceConfig, FindingKind, HostKernel, KernelFault, KernelLibrary, LaunchContext, Machine};
use kiln_sim::{MachineConfig, Mode};

const LIBRARY: &str = "laws";

type Ran = Result<(), KernelFault>;

/// A subject on fresh machines with two devices each; the round picks the way a machine runs.
pub(crate) fn subject(name: &str, mode: impl Fn(u64) -> Mode + Send + Sync + 'static) -> Subject {
    subject_of(name, move |round| open(&Machine::new(config().mode(mode(round)))))
}

/// A subject that opens its machines itself, and perhaps puts something around them.
pub(crate) fn subject_of(
    name: &str,
    open: impl Fn(u64) -> Result<Opened, String> + Send + Sync + 'static,
) -> Subject {
    Subject::new(name, Kernels::host(LIBRARY), open)
}

/// What a machine for the laws is made of.
pub(crate) fn config() -> MachineConfig {
    MachineConfig::seeded(0)
        .device(DeviceConfig::default())
        .device(DeviceConfig::default())
        .library(library())
}

/// The first device of a machine, with the second as its peer and the machine's findings as its verdict.
pub(crate) fn open(machine: &Machine) -> Result<Opened, String> {
    let device = |ordinal| machine.device(ordinal).map_err(|error| error.to_string());
    let (driver, peer, machine) = (device(0)?, device(1)?, machine.clone());
    Ok(Opened::new(driver).with_peer(peer).with_verdict(move || verdict(&machine)))
}

/// Everything a machine found, except what the laws do on purpose: they offer stale handles.
pub(crate) fn verdict(machine: &Machine) -> Result<(), String> {
    let findings = machine.finish().findings.into_iter();
    let on_purpose = |kind: &FindingKind| matches!(kind, FindingKind::StaleHandle | FindingKind::DoubleFree);
    let found: Vec<_> =
        findings.filter(|finding| !on_purpose(&finding.kind)).map(|it| it.to_string()).collect();
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

fn library() -> KernelLibrary {
    let kernel = HostKernel::new;
    KernelLibrary::new(LIBRARY)
        .kernel(kernel("fill_index").pointer(Access::Write).value::<u32>().body(fill_index))
        .kernel(kernel("increment").pointer(Access::ReadWrite).value::<u32>().body(increment))
        .kernel(
            kernel("axpy")
                .value::<f32>()
                .pointer(Access::Read)
                .pointer(Access::ReadWrite)
                .value::<u32>()
                .body(axpy),
        )
        .kernel(
            kernel("copy_words").pointer(Access::Read).pointer(Access::Write).value::<u32>().body(copy_words),
        )
        .kernel(kernel("visit").pointer(Access::ReadWrite).body(visit))
        .kernel(kernel("store_value").pointer(Access::Write).value::<u32>().body(store_value))
        .kernel(
            kernel("through_shared")
                .pointer(Access::Write)
                .value::<u32>()
                .value::<u32>()
                .body(through_shared),
        )
        .kernel(kernel("meet").pointer(Access::ReadWrite).value::<u32>().body(meet))
        .kernel(kernel("spin").value::<u64>().body(spin))
        .kernel(kernel("fault").body(fault))
}

/// The indices of a one-dimensional launch that are below a count.
fn indices(launch: &LaunchContext<'_>, count: u32) -> impl Iterator<Item = u64> {
    0..u64::from(count).min(launch.threads())
}

fn fill_index(launch: &LaunchContext<'_>) -> Ran {
    let mut port = launch.port();
    let out = launch.address(0)?;
    for at in indices(launch, launch.value(1)?) {
        port.store(out + 4 * at, at as u32)?;
    }
    Ok(())
}

fn increment(launch: &LaunchContext<'_>) -> Ran {
    let mut port = launch.port();
    let data = launch.address(0)?;
    for at in indices(launch, launch.value(1)?) {
        let value = port.load::<u32>(data + 4 * at)?;
        port.store(data + 4 * at, value.wrapping_add(1))?;
    }
    Ok(())
}

fn axpy(launch: &LaunchContext<'_>) -> Ran {
    let mut port = launch.port();
    let (factor, x, y) = (launch.value::<f32>(0)?, launch.address(1)?, launch.address(2)?);
    for at in indices(launch, launch.value(3)?) {
        let sum = factor.mul_add(port.load(x + 4 * at)?, port.load(y + 4 * at)?);
        port.store::<f32>(y + 4 * at, sum)?;
    }
    Ok(())
}

fn copy_words(launch: &LaunchContext<'_>) -> Ran {
    let mut port = launch.port();
    let (from, to) = (launch.address(0)?, launch.address(1)?);
    for at in indices(launch, launch.value(2)?) {
        let word = port.load::<u32>(from + 4 * at)?;
        port.store(to + 4 * at, word)?;
    }
    Ok(())
}

fn visit(launch: &LaunchContext<'_>) -> Ran {
    let mut port = launch.port();
    let out = launch.address(0)?;
    for at in 0..launch.threads() {
        let value = port.load::<u32>(out + 4 * at)?;
        port.store(out + 4 * at, value + 1)?;
    }
    Ok(())
}

fn store_value(launch: &LaunchContext<'_>) -> Ran {
    launch.port().store(launch.address(0)?, launch.value::<u32>(1)?)?;
    Ok(())
}

/// A host function has no shared memory; it holds the launch to what it says instead.
fn through_shared(launch: &LaunchContext<'_>) -> Ran {
    if launch.dynamic_shared_bytes() < launch.value(2)? {
        let detail = "less shared memory than the kernel was told".into();
        return Err(KernelFault::Stopped { code: Code::LAUNCH_FAILED, detail });
    }
    store_value(launch)
}

/// All blocks at once, as a cooperative launch promises.
fn meet(launch: &LaunchContext<'_>) -> Ran {
    let mut port = launch.port();
    let (counters, blocks) = (launch.address(0)?, launch.grid().count() as u32);
    if blocks < launch.value(1)? {
        return Err(KernelFault::Hang);
    }
    for counter in [counters, counters + 4] {
        let value = port.load::<u32>(counter)?;
        port.store(counter, value + blocks)?;
    }
    Ok(())
}

fn spin(launch: &LaunchContext<'_>) -> Ran {
    launch.spend(Duration::from_nanos(launch.value(0)?));
    Ok(())
}

fn fault(launch: &LaunchContext<'_>) -> Ran {
    launch.port().store(0, 1u32)?;
    Ok(())
}
