//! What every request says to a device that is lost or was shut down: which device, why, and what to do next.

use std::time::Duration;

use kiln::{DeviceRuntime, GpuRef, Graph, Result, RuntimeConfig, Stream};
use kiln_driver::Code;
use kiln_sim::{FaultPlan, Mode, PlannedFault};

use super::scenario::{LEN, machine};
use crate::order::kernels::Kernels;

/// What requests use that are made before the device is lost.
struct Scene {
    gpu: DeviceRuntime,
    buffer: GpuRef<u32>,
    other: GpuRef<u32>,
    stream: Stream,
    graph: Graph,
    kernels: Kernels,
}

impl Scene {
    fn new(gpu: DeviceRuntime) -> Self {
        let [buffer, other] = [(); 2].map(|()| gpu.upload(&[1_u32; LEN]).unwrap());
        let (graph, _) = gpu.record(|graph| graph.fill(&buffer, 17)).unwrap();
        let (stream, kernels) = (gpu.stream().unwrap(), Kernels::load(&gpu));
        Self { gpu, buffer, other, stream, graph, kernels }
    }

    fn launch(&self) -> Result<()> {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(&self.buffer).read(&self.other).value(LEN as u32).value(1_u32);
        // SAFETY: the kernel touches `LEN` elements, which both buffers have.
        unsafe { launch.submit() }.map(drop)
    }

    fn shut_down(self) -> Self {
        assert!(self.gpu.shutdown(Duration::from_secs(60)).unwrap());
        self
    }

    /// The device that fails at its first kernel failed.
    fn lost(self) -> Self {
        self.launch().unwrap();
        assert!(self.gpu.synchronize().unwrap_err().is_lost());
        self
    }
}

type Request = fn(&Scene) -> Result<()>;

/// Requests with the name that their messages begin with.
const NAMED: [(&str, Request); 7] = [
    ("allocate", |it| it.gpu.allocate::<u32>(4).map(drop)),
    ("allocate", |it| it.gpu.allocate::<u32>(0).map(drop)),
    ("allocate", |it| it.gpu.allocate_on::<u32>(&it.stream, 4).map(drop)),
    ("zeros", |it| it.gpu.zeros::<u32>(4).map(drop)),
    ("zeros", |it| it.gpu.zeros::<u32>(0).map(drop)),
    ("upload", |it| it.gpu.upload(&[1_u32; 4]).map(drop)),
    ("upload", |it| it.gpu.upload::<u32>(&[]).map(drop)),
];

/// Memory of the host that a lost device does not pin any more.
const PINNED: Request = |it| it.gpu.pinned::<u32>(1 << 20).map(drop);

const OTHERS: [(&str, Request); 9] = [
    ("launch", Scene::launch),
    ("replay", |it| it.graph.replay().map(drop)),
    ("stream", |it| it.gpu.stream().map(drop)),
    ("GpuRef::fill", |it| it.buffer.fill(2).map(drop)),
    ("GpuRef::upload", |it| it.buffer.upload(&[2; LEN]).map(drop)),
    ("GpuRef::upload of nothing", |it| it.buffer.view(..0)?.upload(&[]).map(drop)),
    ("GpuRef::copy_from", |it| it.buffer.copy_from(&it.other).map(drop)),
    ("GpuRef::download", |it| it.buffer.download().map(drop)),
    ("GpuRef::download_async", |it| it.buffer.download_async().map(drop)),
];

fn on(ordinal: u32, faults: FaultPlan, test: impl FnOnce(DeviceRuntime)) {
    let machine = machine(Mode::Seeded(3), faults);
    test(DeviceRuntime::from_driver(machine.device(ordinal).unwrap(), RuntimeConfig::default()).unwrap());
}

/// Every request is refused with a text about the device, which says what to do.
fn all_are_told(scene: &Scene, of: &str, about: &str) {
    for (name, request) in NAMED {
        let text = request(scene).unwrap_err().to_string();
        let wanted = format!("{name}: {of}: {about}");
        assert!(text.starts_with(&wanted), "{text}, and not {wanted}");
    }
    for (name, request) in OTHERS {
        let text = request(scene).unwrap_err().to_string();
        assert!(text.contains(&format!("{of}: {about}")), "{name}: {text}");
    }
}

#[test]
fn requests_to_a_device_that_was_shut_down_name_it_and_say_what_to_do() {
    on(1, FaultPlan::none(), |gpu| {
        let about = "the device is shutting down and takes no new work; open another runtime for it";
        all_are_told(&Scene::new(gpu).shut_down(), "simulated device 1", about);
    });
}

#[test]
fn requests_to_a_lost_device_name_it_and_say_what_to_do() {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    on(1, FaultPlan::none().on(1, fault), |gpu| {
        let about =
            "the device takes no more work; open another runtime and upload the data to it; the fault was: ";
        let scene = Scene::new(gpu).lost();
        all_are_told(&scene, "simulated device 1", about);
        for (name, request) in NAMED.into_iter().chain(OTHERS) {
            let error = request(&scene).unwrap_err();
            assert!(error.is_lost() && error.is_sticky(), "{name}: {error}");
            let text = error.to_string();
            assert_eq!(text.matches("the device takes no more work").count(), 1, "{name}: {text}");
        }
        let text = PINNED(&scene).unwrap_err().to_string();
        assert!(text.starts_with(&format!("pinned: simulated device 1: {about}")), "{text}");
        let text = scene.buffer.access().unwrap_err().to_string();
        assert!(text.contains("; open another runtime and upload the data to it"), "{text}");
    });
}

/// Another runtime of the same device works.
#[test]
fn the_next_step_of_a_device_that_was_shut_down_works() {
    let machine = machine(Mode::Seeded(3), FaultPlan::none());
    let open = || DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let first = Scene::new(open()).shut_down();
    assert!(first.gpu.zeros::<u32>(1).is_err());
    assert_eq!(open().upload(&[5_u32]).unwrap().download().unwrap(), [5]);
}

/// Who holds the control of a lost device can bring it back, so that the request may be made again.
#[test]
fn requests_to_a_device_that_may_come_back_name_it_and_say_to_wait() {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    on(0, FaultPlan::none().on(0, fault), |gpu| {
        let control = gpu.control_recovery().unwrap();
        let scene = Scene::new(gpu);
        scene.launch().unwrap();
        assert!(scene.gpu.synchronize().is_err());
        for (name, request) in NAMED {
            let error = request(&scene).unwrap_err();
            let wanted =
                format!("{name}: simulated device 0: the device is lost; try again when it is ready");
            assert_eq!(error.to_string(), wanted);
            assert!(error.is_retryable());
        }
        drop(control);
    });
}
