//! Buffers that a launch declares beside its arguments are ordered, on the simulated device and on a GPU.

use kiln::probe::TestGate;
use kiln::{DeviceRuntime, GpuRef, Kernel, Stream};

/// `late(data, turns, value)` counts for a while and then writes a value; `follow(list, out)` copies what the pointer in `list` points to, and
/// `push(list, value)` writes there.
const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry late(.param .u64 data, .param .u32 turns, .param .u32 value) {
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [turns]; ld.param.u32 %r2, [value];
    mov.u32 %r3, 0;
NEXT:
    mad.lo.u32 %r2, %r3, 0, %r2;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, %r1;
    @%p bra NEXT;
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry follow(.param .u64 list, .param .u64 out) {
    .reg .b32 %r<2>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [list]; ld.param.u64 %rd2, [out];
    ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;
    ret;
}
.visible .entry push(.param .u64 list, .param .u32 value) {
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [list]; ld.param.u32 %r1, [value];
    ld.global.u64 %rd2, [%rd1];
    st.global.u32 [%rd2], %r1;
    ret;
}
";

struct Scene {
    gpu: DeviceRuntime,
    kernels: [Kernel; 3],
    streams: [Stream; 2],
    hidden: GpuRef<u32>,
    list: GpuRef<u64>,
    out: GpuRef<u32>,
}

impl Scene {
    fn new(gpu: &DeviceRuntime) -> Self {
        let hidden = gpu.zeros::<u32>(1).unwrap();
        let list = gpu.upload(&[hidden.address().0]).unwrap();
        Self {
            gpu: gpu.clone(),
            kernels: ["late", "follow", "push"].map(|name| gpu.kernel(PTX, name).unwrap()),
            streams: [gpu.stream().unwrap(), gpu.stream().unwrap()],
            hidden,
            list,
            out: gpu.zeros(1).unwrap(),
        }
    }

    /// A kernel that takes its time and writes the hidden buffer, on one stream.
    fn write_late(&self, turns: u32, value: u32) {
        let mut launch = self.gpu.launch(&self.kernels[0]);
        launch.grid(1).block(1).on(&self.streams[0]).write(&self.hidden).value(turns).value(value);
        // SAFETY: one thread writes one element.
        unsafe { launch.submit() }.unwrap();
    }

    /// On the other stream, what the pointer points to.
    fn follow(&self) -> u32 {
        let mut launch = self.gpu.launch(&self.kernels[1]);
        launch
            .grid(1)
            .block(1)
            .on(&self.streams[1])
            .read(&self.list)
            .write(&self.out)
            .also_read(&self.hidden);
        // SAFETY: the pointer in the list is that of the hidden buffer, which is declared.
        unsafe { launch.submit() }.unwrap();
        self.out.download().unwrap()[0]
    }

    /// On the other stream, writes through the pointer.
    fn push(&self, value: u32) {
        let mut launch = self.gpu.launch(&self.kernels[2]);
        launch.grid(1).block(1).on(&self.streams[1]).read(&self.list).also_write(&self.hidden).value(value);
        // SAFETY: as above.
        unsafe { launch.submit() }.unwrap();
    }
}

/// Turns that take a GPU some milliseconds.
const LONG: u32 = 4_000_000;

fn judge(gpu: &DeviceRuntime, turns: u32) {
    let scene = Scene::new(gpu);
    for value in 1..6 {
        scene.write_late(turns, value);
        assert_eq!(scene.follow(), value, "the read waits for the write of the other stream");
        scene.write_late(turns, 100 + value);
        scene.push(200 + value);
        assert_eq!(scene.hidden.download().unwrap(), [200 + value], "the later write is the later one");
    }
}

#[test]
fn what_is_declared_beside_the_arguments_is_ordered() {
    for seed in 0..4 {
        let gpu = DeviceRuntime::simulated(seed).unwrap();
        judge(&gpu, 100);
        assert!(gpu.findings().is_empty(), "{:?}", gpu.findings());
    }
    match kiln::probe::gpu_for_test("what_is_declared_beside_the_arguments_is_ordered").unwrap() {
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
        TestGate::Ready(gpu) => judge(gpu, LONG),
    }
}
