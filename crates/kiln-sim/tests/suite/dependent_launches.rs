//! `griddepcontrol`: a grid that depends on the one before it on its stream sees what that wrote, and nothing else is ordered by it.

use std::sync::Arc;

use kiln_driver::{
    Command, DeviceMemory, Driver, DriverExt, Image, LaunchCommand, MemoryRequest, ModuleId, Pattern,
    StreamId, StreamRequest, Vouched,
};
use kiln_sim::{Machine, MachineConfig, PtxEngine, SimDevice};

/// `first(data)` lets the next grid begin and then writes; `second(data, out)` waits for that grid and reads.
const GRIDS: &str = "
.version 7.8
.target sm_90
.address_size 64
.visible .entry first(.param .u64 data) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    griddepcontrol.launch_dependents;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
.visible .entry second(.param .u64 data, .param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd3, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    add.s64 %rd3, %rd3, %rd2;
    griddepcontrol.wait;
    ld.global.u32 %r2, [%rd1];
    shl.b32 %r2, %r2, 1;
    st.global.u32 [%rd3], %r2;
    ret;
}
";

const THREADS: u32 = 64;
const BYTES: u64 = 4 * THREADS as u64;

struct Scene {
    machine: Machine,
    device: Arc<SimDevice>,
    module: ModuleId,
    streams: [StreamId; 2],
    data: DeviceMemory,
    out: DeviceMemory,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
        let device = machine.device(0).unwrap();
        let streams = [0, 1].map(|_| device.create_stream(StreamRequest::New { priority: 0 }).unwrap());
        let module = device.load(&Image::Ptx(GRIDS)).unwrap();
        let [data, out] = [0, 1].map(|_| {
            let memory = device.allocate(MemoryRequest::Direct { bytes: BYTES }).unwrap();
            let count = u64::from(THREADS);
            let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U32(0), count };
            device.submit(streams[0], &fill).unwrap();
            memory
        });
        device.synchronize(streams[0]).unwrap();
        Self { machine, device, module, streams, data, out }
    }

    fn launch(&self, stream: StreamId, name: &str, memory: &[DeviceMemory]) {
        let arguments: Vec<u8> = memory.iter().flat_map(|it| it.address.0.to_le_bytes()).collect();
        let launch = LaunchCommand {
            function: self.device.function(self.module, name).unwrap().id,
            grid: 1.into(),
            block: THREADS.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &arguments,
            declared: None,
            // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
            vouched: unsafe { Vouched::new() },
        };
        self.device.submit(stream, &Command::Launch(launch)).unwrap();
    }

    fn results(&self) -> Vec<u32> {
        let host = self.device.allocate_host(BYTES).unwrap();
        self.device.download(self.streams[0], self.out.id.into(), &host, BYTES).unwrap();
        self.device.synchronize(self.streams[0]).unwrap();
        let mut bytes = vec![0; BYTES as usize];
        assert!(host.read(0, &mut bytes));
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

#[test]
fn a_grid_that_waits_sees_what_the_grid_before_it_wrote() {
    for seed in 0..16 {
        let scene = Scene::new(seed);
        scene.launch(scene.streams[0], "first", &[scene.data]);
        scene.launch(scene.streams[0], "second", &[scene.data, scene.out]);
        let expected: Vec<u32> = (1..=THREADS).map(|number| 2 * number).collect();
        assert_eq!(scene.results(), expected, "seed {seed}");
        assert!(scene.machine.findings().is_empty(), "seed {seed}: {:#?}", scene.machine.findings());
    }
}

#[test]
fn a_wait_does_not_order_the_work_of_another_stream() {
    for seed in 0..16 {
        let scene = Scene::new(seed);
        scene.launch(scene.streams[0], "first", &[scene.data]);
        scene.launch(scene.streams[1], "second", &[scene.data, scene.out]);
        for stream in scene.streams {
            let _ = scene.device.synchronize(stream);
        }
        let found = scene.machine.findings();
        assert!(!found.is_empty(), "seed {seed}: the read is not ordered behind the write");
    }
}
