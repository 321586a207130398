//! What ends badly leaves vectors of the host as they were, and buffers of the device either as they were or marked as not to be trusted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kiln::program::{Backend, Bindings, DispatchConfig, Pipeline, Program, ProgramError};
use kiln::{DeviceRuntime, Error, GpuRef, RuntimeConfig};
use kiln_driver::call::Call;
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Command, Driver};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use crate::rig::Rig;

/// Traps where it meets a seven; what it wrote until then may be anything.
const GUARD: &str = "
    kernel guard(in x: u32[], inout y: u32[like x], out z: u32[like x]) block(32) over(x) {
        let i = global.x;
        y[i] = y[i] + x[i];
        z[i] = 1;
        if x[i] == 7 { trap(3); }
    }";
const LEN: usize = 100;

/// How a dispatch ends that does not end well.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ending {
    Trap,
    TimeOut,
}

impl Ending {
    fn x(self) -> Vec<u32> {
        let seven = |at: usize| if self == Self::Trap && at == 60 { 7 } else { 1 };
        (0..LEN).map(seven).collect()
    }

    fn limit(self) -> Option<Duration> {
        (self == Self::TimeOut).then(|| Duration::from_nanos(1))
    }

    fn config(self) -> DispatchConfig {
        DispatchConfig { timeout: self.limit(), ..DispatchConfig::default() }
    }

    fn check(self, error: &Error) {
        match (self, error.downcast_ref()) {
            (Self::Trap, Some(ProgramError::Trap { code: 3, .. })) => {}
            (Self::TimeOut, Some(ProgramError::TimedOut { .. })) => {}
            _ => panic!("{self:?}, but {error}"),
        }
    }
}

/// The buffers on the device, and one that is not used.
struct Buffers {
    x: GpuRef<u32>,
    y: GpuRef<u32>,
    z: GpuRef<u32>,
    bystander: GpuRef<u32>,
}

impl Buffers {
    fn new(rig: &Rig, ending: Ending) -> Self {
        let upload = |data: &[u32]| rig.gpu().upload(data).unwrap();
        Self {
            x: upload(&ending.x()),
            y: upload(&[5; LEN]),
            z: upload(&[6; LEN]),
            bystander: upload(&[8; LEN]),
        }
    }

    /// Which of them are trusted, and that they are again once they are overwritten.
    fn check(&self, trusted: [bool; 3]) {
        assert_eq!([&self.x, &self.y, &self.z].map(GpuRef::is_trusted), trusted);
        assert!(self.bystander.is_trusted(), "no thread wrote it");
        assert_eq!(self.bystander.download().unwrap(), [8; LEN]);
        for buffer in [&self.x, &self.y, &self.z] {
            buffer.fill(4).unwrap();
            assert!(buffer.is_trusted());
            assert_eq!(buffer.download().unwrap(), [4; LEN]);
        }
    }
}

/// From slices: nothing comes back, and what was lent cannot have changed.
fn host(pipeline: &Pipeline, ending: Ending) {
    let (x, y) = (ending.x(), [5_u32; LEN]);
    let done = pipeline.dispatch_with(Bindings::new().input("x", &x).input("y", &y), &ending.config());
    ending.check(&done.unwrap_err());
}

fn into(pipeline: &Pipeline, ending: Ending) {
    let (x, mut y, mut z) = (ending.x(), vec![5_u32; LEN], vec![6_u32; 3]);
    let given = Bindings::new().input("x", &x).in_out("y", &mut y).output("z", &mut z);
    ending.check(&pipeline.dispatch_with(given, &ending.config()).unwrap_err());
    assert_eq!((y, z), (vec![5; LEN], vec![6; 3]));
}

fn resident(rig: &Rig, pipeline: &Pipeline, ending: Ending) {
    let buffers = Buffers::new(rig, ending);
    let given = Bindings::new().resident("x", &buffers.x).resident("y", &buffers.y).resident("z", &buffers.z);
    ending.check(&pipeline.dispatch_with(given, &ending.config()).unwrap_err());
    buffers.check([true, false, false]);
}

fn mixed(rig: &Rig, pipeline: &Pipeline, ending: Ending) {
    let (buffers, mut y) = (Buffers::new(rig, ending), vec![5_u32; LEN]);
    let given = Bindings::new().resident("x", &buffers.x).in_out("y", &mut y).resident("z", &buffers.z);
    ending.check(&pipeline.dispatch_with(given, &ending.config()).unwrap_err());
    assert_eq!(y, [5; LEN]);
    buffers.check([true, true, false]);
}

/// What the sequence copies onward is as doubtful as what it came from.
fn sequence(rig: &Rig, pipeline: &Pipeline, ending: Ending) {
    let (buffers, mut read, mut y) = (Buffers::new(rig, ending), vec![9_u32], vec![5_u32; LEN]);
    let copy = rig.gpu().upload(&[2_u32; LEN]).unwrap();
    let mut sequence = rig.backend.sequence();
    if let Some(limit) = ending.limit() {
        sequence.timeout(limit);
    }
    let given = Bindings::new().resident("x", &buffers.x).in_out("y", &mut y).resident("z", &buffers.z);
    sequence.step(pipeline, given).unwrap().copy(&buffers.z, &copy).unwrap();
    sequence.read(&buffers.z, &mut read).unwrap();
    ending.check(&sequence.run().unwrap_err());
    assert_eq!((read, y), (vec![9], vec![5; LEN]));
    assert!(!copy.is_trusted());
    buffers.check([true, true, false]);
}

/// A graph that could end like this is not built, and nothing has happened.
fn graph(rig: &Rig, pipeline: &Pipeline, ending: Ending) {
    let buffers = Buffers::new(rig, ending);
    let mut sequence = rig.backend.sequence();
    if let Some(limit) = ending.limit() {
        sequence.timeout(limit);
    }
    let given = Bindings::new().resident("x", &buffers.x).resident("y", &buffers.y).resident("z", &buffers.z);
    sequence.step(pipeline, given).unwrap();
    let error = sequence.build().unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ProgramError::Unsupported { .. })), "{error}");
    assert_eq!((buffers.y.download().unwrap(), buffers.z.download().unwrap()), (vec![5; LEN], vec![6; LEN]));
    buffers.check([true, true, true]);
}

fn every_route(rig: &Rig, ending: Ending) {
    let pipeline = rig.backend.compile(&Program::parse(GUARD).unwrap()).unwrap();
    host(&pipeline, ending);
    into(&pipeline, ending);
    resident(rig, &pipeline, ending);
    mixed(rig, &pipeline, ending);
    sequence(rig, &pipeline, ending);
    graph(rig, &pipeline, ending);
}

#[test]
fn a_trap_leaves_nothing_that_is_wrong_and_trusted_by_any_route() {
    let rig = Rig::simulated();
    every_route(&rig, Ending::Trap);
    rig.finish();
    if let Some(rig) = Rig::cuda("a_trap_leaves_nothing_that_is_wrong_and_trusted_by_any_route") {
        every_route(&rig, Ending::Trap);
        rig.finish();
    }
}

#[test]
fn a_time_out_leaves_nothing_that_is_wrong_and_trusted_by_any_route() {
    let rig = Rig::simulated();
    every_route(&rig, Ending::TimeOut);
    rig.finish();
}

/// Refuses one launch, counted from the one that is armed; or has no memory for graphs, so often.
#[derive(Default)]
struct Refusing {
    launch: AtomicU64,
    graphs: AtomicU64,
}

impl Refusing {
    /// Counts down to one, and says whether it is there.
    fn is_due(count: &AtomicU64) -> bool {
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1)
    }
}

impl Layer for Refusing {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        match call {
            Call::Submit { command: Command::Launch(_), .. } if Self::is_due(&self.launch) => {
                Err(kiln_driver::Error::invalid("submit", "a launch", "this is a test"))
            }
            Call::BuildGraph { .. } if self.graphs.load(Ordering::SeqCst) > 0 => {
                self.graphs.fetch_sub(1, Ordering::SeqCst);
                Err(kiln_driver::Error::out_of_memory("build_graph", 0, None))
            }
            _ => Ok(()),
        }
    }
}

/// A simulated device that refuses on demand.
fn refusing() -> (Arc<Layered<Refusing>>, Backend) {
    let machine = Machine::new(MachineConfig::seeded(4).engine(Arc::new(PtxEngine::default())));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Refusing::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    (driver, Backend::over(gpu))
}

const ADD: &str = "kernel add(inout x: u32[]) block(32) over(x) { x[global.x] = x[global.x] + 1; }";

#[test]
fn a_sequence_that_is_refused_half_way_leaves_what_it_wrote_in_doubt() {
    let (driver, backend) = refusing();
    let add = backend.compile(&Program::parse(ADD).unwrap()).unwrap();
    let upload = || backend.runtime().upload(&[1_u32; 50]).unwrap();
    let run = |first: &GpuRef<u32>, second: &GpuRef<u32>| {
        let mut sequence = backend.sequence();
        sequence.step(&add, Bindings::new().resident("x", first)).unwrap();
        sequence.step(&add, Bindings::new().resident("x", second)).unwrap();
        sequence.run().map(drop)
    };
    // Nothing was queued, so nothing has changed.
    let (first, second) = (upload(), upload());
    driver.layer().launch.store(1, Ordering::SeqCst);
    run(&first, &second).unwrap_err();
    assert_eq!((first.is_trusted(), second.is_trusted()), (true, true));
    assert_eq!((first.download().unwrap(), second.download().unwrap()), (vec![1; 50], vec![1; 50]));
    // The first step runs anyway.
    driver.layer().launch.store(2, Ordering::SeqCst);
    run(&first, &second).unwrap_err();
    assert_eq!((first.is_trusted(), first.download().unwrap()), (false, vec![2; 50]));
    assert_eq!(second.download().unwrap(), [1; 50]);
    // The next one goes as it should, and says nothing about what was there before.
    let third = upload();
    run(&third, &second).unwrap();
    assert_eq!((third.is_trusted(), third.download().unwrap()), (true, vec![2; 50]));
    first.fill(0).unwrap();
    assert!(first.is_trusted());
}

#[test]
fn a_graph_gets_the_memory_that_the_runtime_keeps_unused() {
    let (driver, backend) = refusing();
    let add = backend.compile(&Program::parse(ADD).unwrap()).unwrap();
    let x = backend.runtime().upload(&[1_u32; 50]).unwrap();
    drop(backend.runtime().zeros::<u8>(64 << 20).unwrap());
    backend.runtime().synchronize().unwrap();
    let build = || {
        let mut sequence = backend.sequence();
        sequence.step(&add, Bindings::new().resident("x", &x)).unwrap();
        sequence.build()
    };
    let before = backend.runtime().driver().memory_info().unwrap().free_bytes;
    driver.layer().graphs.store(1, Ordering::SeqCst);
    build().unwrap().replay().unwrap();
    assert_eq!(x.download().unwrap(), [2; 50]);
    let after = backend.runtime().driver().memory_info().unwrap().free_bytes;
    assert!(after >= before + (64 << 20), "{before} bytes were free, then {after}");
    // Where there is none anyway, that is the error.
    driver.layer().graphs.store(2, Ordering::SeqCst);
    let error = build().unwrap_err();
    assert!(error.is_oom(), "{error}");
    assert_eq!((x.is_trusted(), x.download().unwrap()), (true, vec![2; 50]));
}
