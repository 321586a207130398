//! The seam for those who can bring a device back. The simulated device below is not lost at all: the errors are handed to the supervisor by
//! a layer, so that what follows a rebuild can be seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln::recovery::{Keep, Phase, RecoveryControl};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, buffer::Stale, error::ErrorKind, recovery::DeviceState};
use kiln_driver::call::Call;
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Code, Driver, Error, Fault, Result};
use kiln_sim::{FaultPlan, Machine, Mode};

use super::executor::block_on;
use super::scenario::machine;

/// Answers every call with a fault while it is on.
#[derive(Default)]
struct Broken(AtomicBool);

impl Layer for Broken {
    fn before(&self, _: &dyn Driver, _: &Call<'_>) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(fault()) } else { Ok(()) }
    }
}

fn fault() -> Error {
    Error::lost("wait", Fault { code: Code::ILLEGAL_ADDRESS, detail: "as planned".into() })
}

struct Rig {
    _machine: Machine,
    layer: Arc<Layered<Broken>>,
    gpu: DeviceRuntime,
    supervisor: RecoveryControl,
}

impl Rig {
    fn new() -> Self {
        let machine = machine(Mode::Seeded(1), FaultPlan::none());
        let layer = Arc::new(Layered::new(machine.device(0).unwrap(), Broken::default()));
        let gpu = DeviceRuntime::from_driver(layer.clone(), RuntimeConfig::default()).unwrap();
        let supervisor = gpu.control_recovery().unwrap();
        Self { _machine: machine, layer, gpu, supervisor }
    }

    /// The device is lost: the next call meets the fault.
    fn lose(&self) {
        self.layer.layer().0.store(true, Ordering::SeqCst);
        assert!(self.gpu.memory_info().unwrap_err().is_lost());
        assert_eq!(self.gpu.status().phase(), Phase::Lost, "a caller may bring it back");
    }

    fn rebuild(&self, keep: Keep) -> u64 {
        self.supervisor.rebuilding().unwrap();
        self.layer.layer().0.store(false, Ordering::SeqCst);
        self.supervisor.rebuilt(keep).unwrap().0
    }
}

/// One buffer whose last write is known to be done, and one that work in flight writes.
fn buffers(gpu: &DeviceRuntime) -> (GpuRef<u32>, GpuRef<u32>) {
    let (kept, lost) = (gpu.upload(&[1_u32; 16]).unwrap(), gpu.upload(&[2_u32; 16]).unwrap());
    gpu.synchronize().unwrap();
    (kept, lost)
}

#[test]
fn what_was_known_to_be_done_is_kept_and_the_rest_is_lost_with_the_cause() {
    let rig = Rig::new();
    let (kept, lost) = buffers(&rig.gpu);
    let before = kept.copy_from(&gpu_ones(&rig.gpu)).unwrap();
    before.wait().unwrap();
    let caught = lost.fill(3).unwrap();
    rig.lose();
    let error = rig.gpu.zeros::<u32>(1).unwrap_err();
    assert!(error.is_retryable() && !error.is_sticky(), "{error}");
    assert_eq!(error.code(), Some(Code::ILLEGAL_ADDRESS));
    assert_eq!((kept.access(), lost.access()), (Err(Stale::Rebuilding), Err(Stale::Rebuilding)));
    assert_eq!(rig.rebuild(Keep::Untouched), 1);

    assert!(rig.gpu.state().is_ready());
    assert_eq!((rig.gpu.generation().0, kept.generation().0, lost.generation().0), (1, 1, 0));
    assert_eq!(lost.access(), Err(Stale::Lost));
    let part = lost.view(..15).unwrap();
    for error in [part.fill(1).unwrap_err(), kept.copy_from(&lost).unwrap_err(), lost.download().unwrap_err()]
    {
        assert!(matches!(error.kind(), ErrorKind::Stale(Stale::Lost)), "{error}");
    }
    assert!(before.is_done().unwrap(), "done before the loss");
    assert_eq!(caught.wait().unwrap_err().code(), Some(Code::ILLEGAL_ADDRESS));
    assert_eq!(block_on(caught.into_future()).unwrap_err().code(), Some(Code::ILLEGAL_ADDRESS));
    // The kept one goes on, through a second loss too.
    assert_eq!(kept.download().unwrap(), [1; 16]);
    kept.fill(9).unwrap().wait().unwrap();
    rig.lose();
    assert_eq!(rig.rebuild(Keep::Untouched), 2);
    assert_eq!((kept.download().unwrap(), kept.generation().0), (vec![9; 16], 2));
    assert_eq!((lost.generation().0, lost.access()), (0, Err(Stale::Lost)));
    let last = kept.fill(1).unwrap();
    assert!(
        rig.gpu.shutdown(Duration::from_secs(10)).unwrap(),
        "old faults are no concern of the new context"
    );
    assert!(last.is_done().unwrap());
}

fn gpu_ones(gpu: &DeviceRuntime) -> GpuRef<u32> {
    gpu.upload(&[1_u32; 16]).unwrap()
}

#[test]
fn a_policy_may_keep_nothing() {
    let rig = Rig::new();
    let (kept, _) = buffers(&rig.gpu);
    rig.lose();
    rig.rebuild(Keep::Nothing);
    assert_eq!(kept.access(), Err(Stale::Lost));
    let new = gpu_ones(&rig.gpu);
    assert_eq!((new.generation().0, new.download().unwrap()), (1, vec![1; 16]));
}

#[test]
fn a_late_watcher_sees_that_the_device_was_rebuilt() {
    let rig = Rig::new();
    let mut watch = rig.gpu.watch();
    let first = block_on(watch.changed()).unwrap();
    rig.lose();
    rig.rebuild(Keep::Untouched);
    let second = block_on(watch.changed()).unwrap();
    assert!(first.state.is_ready() && second.state.is_ready());
    assert_eq!((first.generation.0, second.generation.0, second.changes - first.changes), (0, 1, 3));
}

#[test]
fn futures_that_wait_when_the_device_is_lost_fail_although_it_comes_back() {
    let rig = Rig::new();
    let (_, lost) = buffers(&rig.gpu);
    let (sender, answers) = std::sync::mpsc::channel();
    let mut waiting = 0;
    for value in 0..100 {
        let ticket = lost.fill(value).unwrap();
        if !ticket.is_done().unwrap() {
            let sender = sender.clone();
            ticket.on_done(move |outcome| sender.send(outcome).unwrap());
            waiting += 1;
        }
    }
    rig.lose();
    drop(sender);
    let answered: Vec<_> = answers.iter().collect();
    assert_eq!(answered.len(), waiting);
    assert!(answered.iter().flat_map(|outcome| outcome.as_ref().err()).all(|error| error.is_lost()));
}

#[test]
fn there_is_one_supervisor_and_without_it_no_call_waits() {
    let rig = Rig::new();
    assert!(rig.gpu.control_recovery().is_err());
    assert!(rig.supervisor.rebuilding().is_err(), "it is not lost");
    assert!(rig.supervisor.rebuilt(Keep::Untouched).is_err());
    rig.lose();
    rig.supervisor.rebuilding().unwrap();
    rig.supervisor.lost_again(fault()).unwrap();
    assert_eq!(rig.gpu.status().phase(), Phase::Lost);
    let Rig { gpu, supervisor, .. } = rig;
    supervisor.give_up();
    let DeviceState::Failed(cause) = gpu.state() else { panic!("{}", gpu.state()) };
    assert_eq!(cause.code(), Some(Code::ILLEGAL_ADDRESS));
}

#[test]
fn what_was_lost_may_be_asked_again_while_the_device_can_come_back_and_not_after() {
    let rig = Rig::new();
    let (_, lost) = buffers(&rig.gpu);
    let caught = lost.fill(3).unwrap();
    rig.lose();
    let rebuilding = kiln::Error::from(lost.access().unwrap_err());
    let refused = [rig.gpu.upload(&[1_u8]).unwrap_err(), rebuilding, caught.wait().unwrap_err()];
    assert!(refused.iter().all(|error| error.is_retryable() && !error.is_sticky()), "{refused:?}");
    rig.rebuild(Keep::Untouched);
    assert_eq!(rig.gpu.upload(&[1_u8]).unwrap().download().unwrap(), [1]);
    let error = caught.wait().unwrap_err();
    assert!(error.is_retryable() && !error.is_sticky(), "{error}");
    let error = lost.download().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Stale(Stale::Lost)) && !error.is_retryable(), "{error}");

    let caught = rig.gpu.zeros::<u8>(16).unwrap().fill(3).unwrap();
    rig.lose();
    rig.supervisor.give_up();
    for error in [rig.gpu.upload(&[1_u8]).unwrap_err(), caught.wait().unwrap_err()] {
        assert!(error.is_sticky() && !error.is_retryable(), "{error}");
    }
}
