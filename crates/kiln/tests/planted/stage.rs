//! One launch of a kernel on a simulated device with every check on.

use std::sync::Arc;

use kiln::sim::{Machine, MachineConfig, PtxEngine, SimChecks};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_ptx::exec::{Checks, ExecFindingKind};

use crate::pair::{Argument, Pair};

/// A finding: its kind in one word, and the lines of the source it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) kind: &'static str,
    pub(crate) lines: Vec<u32>,
    pub(crate) text: String,
}

/// The buffers that an argument stands for; all live until the launch is over.
enum Held {
    Words(GpuRef<u32>),
    /// An array with one address, and what lies there.
    Address(GpuRef<u64>, #[allow(dead_code, reason = "it is kept alive")] Option<GpuRef<u32>>),
    /// A buffer that the launch does not name.
    Beside(#[allow(dead_code, reason = "it is kept alive")] GpuRef<u32>),
    Value([u8; 4]),
    Null,
}

/// What is found when a kernel of a pair runs with a seed and with these checks of the executor.
pub(crate) fn run(pair: &Pair, kernel: &str, seed: u64, checks: Checks) -> Vec<Found> {
    run_with(pair, kernel, seed, checks, SimChecks::default())
}

/// The same with these checks of the machine.
pub(crate) fn run_with(
    pair: &Pair,
    kernel: &str,
    seed: u64,
    checks: Checks,
    machine_checks: SimChecks,
) -> Vec<Found> {
    let engine = PtxEngine::with_checks(checks).step_limit(1 << 22).stall_limit(1 << 24).sole_writer();
    let mut config = MachineConfig::seeded(seed).engine(Arc::new(engine));
    config.checks = SimChecks { leaks: false, ..machine_checks };
    let machine = Machine::new(config);
    // What was found is asked of the machine.
    let config = RuntimeConfig { findings: kiln::checking::Findings::Ignore, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    launch(&gpu, pair, kernel).unwrap_or_else(|error| panic!("{kernel} was not launched: {error:#}"));
    let _ = gpu.synchronize();
    machine.findings().iter().map(Found::of).collect()
}

fn launch(gpu: &DeviceRuntime, pair: &Pair, name: &str) -> kiln::Result<()> {
    let kernel = gpu.kernel(pair.ptx.as_str(), name)?;
    let mut held: Vec<Held> = Vec::new();
    for argument in &pair.arguments {
        held.push(hold(gpu, argument, &held)?);
    }
    gpu.synchronize()?;
    let shape = pair.shape(name);
    let mut launch = gpu.launch(&kernel);
    let [x, y, z] = shape.block;
    launch.grid(shape.grid).block(kiln::driver::Dim3::new(x, y, z)).shared(shape.shared_bytes);
    if shape.cooperative {
        launch.cooperative();
    }
    for (argument, held) in pair.arguments.iter().zip(&held) {
        match held {
            Held::Words(words) if matches!(argument, Argument::In(_)) => launch.read(words),
            Held::Words(words) => launch.read_write(words),
            Held::Address(address, _) => launch.read(address),
            Held::Value(bytes) => launch.value_bytes(bytes),
            Held::Null => launch.null(),
            Held::Beside(_) => &mut launch,
        };
    }
    // SAFETY: the simulated device checks every access; that it does is what is tested.
    unsafe { launch.submit() }.map(drop)?;
    for (argument, held) in pair.arguments.iter().zip(&held) {
        if let (Argument::Returned(_), Held::Words(words)) = (argument, held) {
            // The launch may have lost the device, which is a finding of it.
            let _ = words.download();
        }
    }
    Ok(())
}

fn hold(gpu: &DeviceRuntime, argument: &Argument, before: &[Held]) -> kiln::Result<Held> {
    let address = |words: &GpuRef<u32>| words.access().map(|memory| memory.address.0).unwrap();
    Ok(match *argument {
        Argument::In(len) => Held::Words(gpu.upload(&(0..len as u32).collect::<Vec<_>>())?),
        Argument::InOut(len) => Held::Words(gpu.zeros(len)?),
        Argument::Out(len) | Argument::Returned(len) => Held::Words(gpu.allocate(len)?),
        Argument::Beside(len) => Held::Beside(gpu.zeros(len)?),
        Argument::Reused(len) => {
            let used = gpu.upload(&vec![7; len])?;
            let place = address(&used);
            drop(used);
            gpu.synchronize()?;
            let again = gpu.allocate(len)?;
            assert_eq!(address(&again), place, "the heap hands the block out again");
            Held::Words(again)
        }
        Argument::Value(bytes) => Held::Value(bytes),
        Argument::Null => Held::Null,
        Argument::Address(len) => {
            let other = gpu.upload(&vec![7; len])?;
            Held::Address(gpu.upload(&[address(&other)])?, Some(other))
        }
        Argument::Freed(len) => {
            let holder = gpu.upload(&[0_u64])?;
            let other = gpu.upload(&vec![7; len])?;
            holder.upload(&[address(&other)])?;
            drop(other);
            Held::Address(holder, None)
        }
        Argument::AddressOf(index) => match before.get(index) {
            Some(Held::Words(words)) => Held::Address(gpu.upload(&[address(words)])?, None),
            _ => panic!("argument {index} is no array"),
        },
    })
}

impl Found {
    fn of(finding: &kiln::sim::Finding) -> Self {
        let text = finding.to_string();
        let Some(code) = finding.code.as_deref() else {
            return Self { kind: machine_word(&finding.kind), lines: Vec::new(), text };
        };
        let mut sites = vec![&code.site];
        if let ExecFindingKind::Race { earlier_site, .. }
        | ExecFindingKind::NonCoherent { earlier_site, .. }
        | ExecFindingKind::NoProxyFence { write_site: earlier_site, .. }
        | ExecFindingKind::PendingCopy { copy_site: earlier_site, .. }
        | ExecFindingKind::Uninitialised { read_site: earlier_site, .. } = &code.kind
        {
            sites.push(earlier_site);
        }
        // Code that the compiler makes itself, such as the loop of a memcpy, has no line.
        let lines = sites.iter().filter_map(|site| Some(site.source.as_ref()?.1)).collect();
        Self { kind: code.kind.word(), lines, text }
    }
}

fn machine_word(kind: &kiln::sim::FindingKind) -> &'static str {
    use kiln::sim::FindingKind as Kind;
    match kind {
        Kind::Undeclared(_) => "undeclared",
        Kind::OutOfBounds => "out-of-bounds",
        Kind::UseAfterFree => "use-after-free",
        Kind::Uninitialised => "uninitialised",
        _ => "device",
    }
}
