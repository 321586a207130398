//! Launches: every way of giving arguments, the limits to the last byte and block, where a launch goes by itself, and what is said when
//! something does not fit.

use std::sync::{Arc, Mutex};

use kiln::{
    DeviceRuntime, Error, GpuRef, Kernel, RuntimeConfig,
    buffer::{LastWrite, Stale},
    error::{ErrorKind, Misuse},
    launch::{ByValue, Given, In, InOut, Mismatch},
};
use kiln_driver::{Access, Dim3, Image};
use kiln_sim::{HostKernel, KernelLibrary, Machine, MachineConfig, SimParameter};

use crate::order::kernels::{Kernels, library, mixed};

const LEN: usize = 8;
const FIXED_BYTES: u32 = 1_000;
const OWN: &str = "launches";

/// What a kernel saw of its launch.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Seen {
    shared_bytes: u32,
    grid: Option<Dim3>,
    block: Option<Dim3>,
    cooperative: bool,
    arguments: Vec<u8>,
}

type Log = Arc<Mutex<Vec<Seen>>>;

/// `shape()` declares shared memory; `wide(half, four floats, byte)` takes values of three sizes; `back(from, to)` writes its
/// second parameter and `peek(from)` none. All of them write down what they saw and do nothing else.
fn own(log: &Log) -> KernelLibrary {
    let noting = |kernel: HostKernel| {
        let log = log.clone();
        kernel.body(move |launch| {
            let (grid, block) = (Some(launch.grid()), Some(launch.block()));
            let (shared_bytes, arguments) = (launch.dynamic_shared_bytes(), launch.arguments().to_vec());
            let cooperative = launch.is_cooperative();
            log.lock().unwrap().push(Seen { shared_bytes, grid, block, cooperative, arguments });
            Ok(())
        })
    };
    let shape = HostKernel::new("shape").needs(|needs| needs.static_shared_bytes = FIXED_BYTES);
    let value = |bytes, alignment| SimParameter::Value { bytes, alignment };
    let wide = HostKernel::new("wide").parameter(value(2, 2)).parameter(value(16, 16)).parameter(value(1, 1));
    let back = HostKernel::new("back").pointer(Access::Read).pointer(Access::Write);
    let peek = HostKernel::new("peek").pointer(Access::Read);
    let library = KernelLibrary::new(OWN).kernel(noting(shape)).kernel(noting(wide));
    library.kernel(noting(back)).kernel(noting(peek))
}

struct Scene {
    machine: Machine,
    gpu: DeviceRuntime,
    kernels: Kernels,
    log: Log,
}

impl Scene {
    fn new() -> Self {
        let log = Log::default();
        let machine = Machine::new(MachineConfig::seeded(1).library(library()).library(own(&log)));
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        Self { machine, kernels: Kernels::load(&gpu), gpu, log }
    }

    fn own(&self, name: &str) -> Kernel {
        self.gpu.load_kernel(&Image::HostKernels(OWN), name, None).unwrap()
    }

    fn buffers(&self) -> (GpuRef<u32>, GpuRef<u32>) {
        (self.gpu.upload(&[3; LEN]).unwrap(), self.gpu.upload(&[5; LEN]).unwrap())
    }

    /// What the launches so far saw.
    fn seen(&self) -> Vec<Seen> {
        self.gpu.synchronize().unwrap();
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn close(self) {
        let Self { machine, gpu, kernels, .. } = self;
        drop((kernels, gpu));
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

fn submit(launch: &mut kiln::Launch<'_>) -> kiln::Result<kiln::Ticket> {
    // SAFETY: the kernels here touch `LEN` elements at the most, which every buffer has, or none.
    unsafe { launch.submit() }
}

fn mismatch(error: &Error) -> &Mismatch {
    let ErrorKind::Mismatch(mismatch) = error.kind() else { panic!("expected a mismatch, got {error}") };
    mismatch
}

/// Gives a launch its arguments.
type Give = for<'a> fn(&mut kiln::Launch<'a>, &'a GpuRef<u32>, &'a GpuRef<u32>);

#[test]
fn tuples_are_the_same_as_one_argument_after_the_other() {
    let scene = Scene::new();
    let result = |give: Give| {
        let (to, from) = scene.buffers();
        let mut launch = scene.gpu.launch(&scene.kernels.mix);
        launch.grid(1).block(1);
        give(&mut launch, &to, &from);
        submit(&mut launch).unwrap();
        drop(launch);
        to.download().unwrap()
    };
    let expected = vec![mixed(3, 5, 7); LEN];
    let ways: [Give; 4] = [
        |launch, to, from| {
            launch.read_write(to).read(from).value(LEN as u32).value(7_u32);
        },
        |launch, to, from| {
            launch.pass((InOut(to), In(from), LEN as u32, 7_u32));
        },
        |launch, to, from| {
            launch.pass(((InOut(to), In(from)), (LEN as u32, (7_u32,))));
        },
        |launch, to, from| {
            launch.pass((InOut(to),)).read(from).pass(LEN as u32).pass((7_u32,));
        },
    ];
    for give in ways {
        assert_eq!(result(give), expected);
    }
    scene.close();
}

#[test]
fn values_of_every_size_lie_where_the_kernel_wants_them() {
    let scene = Scene::new();
    let wide = scene.own("wide");
    let half = half::f16::from_f32(1.5);
    submit(scene.gpu.launch(&wide).grid(1).block(1).value(half).value([1.0_f32, 2.0, 3.0, 4.0]).value(9_u8))
        .unwrap();
    let seen = scene.seen();
    let arguments = &seen[0].arguments;
    assert_eq!(arguments[..2], half.to_bits().to_ne_bytes());
    assert_eq!(arguments[2..16], [0; 14], "what lies between is zero");
    assert_eq!(arguments[16..32], *bytemuck::bytes_of(&[1.0_f32, 2.0, 3.0, 4.0]));
    assert_eq!((arguments[32], arguments.len()), (9, 33));
    let error = submit(scene.gpu.launch(&wide).grid(1).block(1).value(half).value([1.0_f32; 3]).value(9_u8))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `wide`, parameter 1: it has 16 bytes, and 12 were given; give a value of the type the kernel declares, such as `[0u8; 16]`"
    );
    drop(wide);
    scene.close();
}

#[test]
fn shared_memory_is_opted_in_to_up_to_the_last_byte() {
    let scene = Scene::new();
    let shape = scene.own("shape");
    let limits = &scene.gpu.info().limits;
    let most = limits.shared_bytes_per_block_optin - FIXED_BYTES;
    assert!(most > limits.shared_bytes_per_block, "the device has more than is had without asking");
    for bytes in [0, limits.shared_bytes_per_block, limits.shared_bytes_per_block + 1, most] {
        submit(scene.gpu.launch(&shape).grid(1).block(1).shared(bytes)).unwrap();
        assert_eq!(scene.seen()[0].shared_bytes, bytes);
    }
    let error = submit(scene.gpu.launch(&shape).grid(1).block(1).shared(most + 1)).unwrap_err();
    let limit = limits.shared_bytes_per_block_optin;
    let expected = Mismatch::Shared { kernel: "shape".into(), dynamic: most + 1, fixed: FIXED_BYTES, limit };
    assert_eq!(*mismatch(&error), expected);
    assert!(scene.seen().is_empty(), "the refused one did not run");
    drop(shape);
    scene.close();
}

#[test]
fn a_cooperative_launch_has_as_many_blocks_as_can_be_resident_and_no_more() {
    let scene = Scene::new();
    let shape = scene.own("shape");
    let residents = |threads: u32, shared: u32| {
        let error =
            submit(scene.gpu.launch(&shape).cooperative().grid(1 << 30).block(threads).shared(shared))
                .unwrap_err();
        match *mismatch(&error) {
            Mismatch::CooperativeResidencyExceeded { blocks: 0x4000_0000, limit, .. } => limit as u32,
            ref other => panic!("{other}"),
        }
    };
    let limits = [residents(64, 0), residents(1024, 0), residents(64, 100 << 10)];
    assert!(limits[0] > limits[1] && limits[0] > limits[2], "threads and shared memory count: {limits:?}");
    for ((threads, shared), limit) in [(64, 0), (1024, 0), (64, 100 << 10)].into_iter().zip(limits) {
        let launch = |blocks: u32| {
            submit(scene.gpu.launch(&shape).cooperative().grid(blocks).block(threads).shared(shared))
        };
        launch(limit).unwrap();
        let seen = scene.seen();
        assert!(seen[0].cooperative && seen[0].grid == Some(Dim3::from(limit)), "{seen:?}");
        let error = launch(limit + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "kernel `shape`: a cooperative launch of {} blocks exceeds the {limit} that can be resident",
                limit + 1
            )
        );
    }
    // One that does not wait for itself has no such limit.
    submit(scene.gpu.launch(&shape).grid(limits[1] + 1).block(1024)).unwrap();
    drop(shape);
    scene.close();
}

#[test]
fn shapes_are_checked_in_every_direction() {
    let scene = Scene::new();
    let shape = scene.own("shape");
    let max = scene.gpu.info().limits.max_grid;
    let what = |launch: &mut kiln::Launch<'_>| match mismatch(&submit(launch).unwrap_err()) {
        Mismatch::Shape { what, kernel, .. } => {
            assert_eq!(kernel, "shape");
            *what
        }
        other => panic!("{other}"),
    };
    for grid in [(1, 0, 1), (1, 1, 0), (1, max.y + 1, 1), (1, 1, max.z + 1)] {
        assert_eq!(what(scene.gpu.launch(&shape).grid(grid)), "grid", "{grid:?}");
    }
    for block in [(0, 1, 1), (1, 1, 65), (2048, 1, 1), (32, 32, 2)] {
        assert_eq!(what(scene.gpu.launch(&shape).grid(1).block(block)), "block", "{block:?}");
    }
    for cluster in [0, 1 << 20] {
        assert_eq!(what(scene.gpu.launch(&shape).grid(1).block(1).cluster(cluster)), "cluster", "{cluster}");
    }
    drop(shape);
    scene.close();
}

#[test]
fn a_launch_without_a_grid_or_a_block_is_refused_and_says_what_to_call() {
    let scene = Scene::new();
    let shape = scene.own("shape");
    let texts = [
        (submit(&mut scene.gpu.launch(&shape)), "no grid was given; call `.threads(n)`"),
        (submit(scene.gpu.launch(&shape).block(64)), "no grid was given"),
        (submit(scene.gpu.launch(&shape).grid(4)), "no block size was given; call `.block(threads)`"),
        (submit(scene.gpu.launch(&shape).threads(0)), "a grid of 0x1x1"),
        (submit(scene.gpu.launch(&shape).threads(u64::MAX)), "a grid of 4294967295x1x1"),
    ];
    for (refused, text) in texts {
        let error = refused.unwrap_err().to_string();
        assert!(error.starts_with("kernel `shape`") && error.contains(text), "{error}");
    }
    let mut builder = scene.gpu.graph();
    // SAFETY: it is refused.
    let refused = unsafe { builder.launch(&shape).record() }.unwrap_err();
    assert_eq!(*mismatch(&refused), Mismatch::NoGrid { kernel: "shape".into() });
    assert!(builder.is_empty() && scene.seen().is_empty());
    drop((builder, shape));
    scene.close();
}

#[test]
fn a_number_of_threads_becomes_a_grid() {
    let scene = Scene::new();
    let shape = scene.own("shape");
    let seen = |launch: &mut kiln::Launch<'_>| {
        submit(launch).unwrap();
        let seen = scene.seen().remove(0);
        (seen.grid.unwrap(), seen.block.unwrap())
    };
    let linear = |blocks, threads| (Dim3::new(blocks, 1, 1), Dim3::new(threads, 1, 1));
    for (count, expected) in [
        (1, linear(1, 1)),
        (5, linear(1, 5)),
        (256, linear(1, 256)),
        (257, linear(2, 256)),
        (1000, linear(4, 256)),
    ] {
        assert_eq!(seen(scene.gpu.launch(&shape).threads(count)), expected, "{count}");
    }
    // The block may be given before or after, and what is given last holds.
    assert_eq!(seen(scene.gpu.launch(&shape).threads(1000).block(128)), linear(8, 128));
    assert_eq!(seen(scene.gpu.launch(&shape).block(128).threads(1000)), linear(8, 128));
    assert_eq!(seen(scene.gpu.launch(&shape).threads(1000).grid(3)), linear(3, 256));
    assert_eq!(
        seen(scene.gpu.launch(&shape).block([8, 4]).threads(100)),
        (Dim3::new(4, 1, 1), Dim3::new(8, 4, 1))
    );
    drop(shape);
    scene.close();
}

#[test]
fn extents_are_numbers_arrays_or_tuples() {
    let scene = Scene::new();
    let shape = scene.own("shape");
    submit(scene.gpu.launch(&shape).grid([2, 3, 4]).block((5, 6, 7))).unwrap();
    submit(scene.gpu.launch(&shape).grid([2, 3]).block((5, 6))).unwrap();
    submit(scene.gpu.launch(&shape).grid([2]).block(5)).unwrap();
    let seen: Vec<_> =
        scene.seen().into_iter().map(|seen| (seen.grid.unwrap(), seen.block.unwrap())).collect();
    let expected = [((2, 3, 4), (5, 6, 7)), ((2, 3, 1), (5, 6, 1)), ((2, 1, 1), (5, 1, 1))];
    assert_eq!(seen, expected.map(|(grid, block)| (Dim3::from(grid), Dim3::from(block))));
    drop(shape);
    scene.close();
}

#[test]
fn a_struct_goes_by_value() {
    #[derive(Clone, Copy)]
    #[repr(C, align(16))]
    struct Settings {
        scale: f32,
        offset: f32,
        count: u32,
        flags: u32,
    }
    // SAFETY: four words of plain data, sixteen bytes with an alignment of sixteen: no padding, every bit pattern is a value.
    unsafe impl bytemuck::Zeroable for Settings {}
    // SAFETY: as above.
    unsafe impl bytemuck::Pod for Settings {}

    let scene = Scene::new();
    let wide = scene.own("wide");
    let settings = Settings { scale: 1.0, offset: -2.0, count: 3, flags: 4 };
    let half = half::f16::from_f32(1.5);
    submit(scene.gpu.launch(&wide).threads(1).value(half).value(settings).value(9_u8)).unwrap();
    submit(scene.gpu.launch(&wide).threads(1).pass((ByValue(half), ByValue(settings), 9_u8))).unwrap();
    for seen in scene.seen() {
        assert_eq!(seen.arguments[16..32], *bytemuck::bytes_of(&settings));
    }
    drop(wide);
    scene.close();
}

#[test]
fn values_may_be_given_as_bytes_and_pointers_as_null() {
    let scene = Scene::new();
    let (wide, back) = (scene.own("wide"), scene.own("back"));
    let bytes: Vec<u8> = (1..=16).collect();
    submit(scene.gpu.launch(&wide).threads(1).value_bytes(&[1, 2]).value_bytes(&bytes).value(9_u8)).unwrap();
    let to = scene.gpu.upload(&[5_u32; LEN]).unwrap();
    submit(scene.gpu.launch(&back).threads(1).null().write(&to)).unwrap();
    let seen = scene.seen();
    assert_eq!((&seen[0].arguments[..2], &seen[0].arguments[16..32]), (&[1, 2][..], &bytes[..]));
    assert_eq!(seen[1].arguments[..8], [0; 8]);
    let short = submit(scene.gpu.launch(&wide).threads(1).value_bytes(&[1]).value_bytes(&bytes).value(9_u8));
    assert_eq!(
        short.unwrap_err().to_string(),
        "kernel `wide`, parameter 0: it has 2 bytes, and 1 were given; give a value of the type the kernel declares, such as `0u16`"
    );
    let value =
        submit(scene.gpu.launch(&wide).threads(1).null().value_bytes(&bytes).value(9_u8)).unwrap_err();
    assert!(matches!(mismatch(&value), Mismatch::Kind { given: Given::Null, .. }), "{value}");
    drop((wide, back, to));
    scene.close();
}

#[test]
fn a_launch_goes_where_its_buffers_are_unless_it_is_told() {
    let scene = Scene::new();
    let Scene { gpu, kernels, .. } = &scene;
    let [first, second, third] = [(); 3].map(|()| gpu.stream().unwrap());
    let on = |stream| {
        let buffer = gpu.allocate_on::<u32>(stream, LEN).unwrap();
        buffer.upload(&[1; LEN]).unwrap();
        buffer
    };
    let (a, b, c) = (on(&first), on(&second), on(&third));
    let join = |to: &GpuRef<u32>| {
        let mut launch = gpu.launch(&kernels.join);
        launch.grid(1).block(1);
        submit(launch.write(to).read(&b).read(&a).value(LEN as u32)).unwrap().stamp().stream
    };
    assert_eq!(join(&c), third.key(), "to the first that is written");
    let (shape, back, peek) = (scene.own("shape"), scene.own("back"), scene.own("peek"));
    let ticket = submit(gpu.launch(&back).grid(1).block(1).read(&a).write(&b)).unwrap();
    assert_eq!(ticket.stamp().stream, second.key(), "also if it is not the first of all");
    assert_eq!(
        submit(gpu.launch(&peek).grid(1).block(1).read(&a)).unwrap().stamp().stream,
        first.key(),
        "or is read"
    );
    assert_eq!(submit(gpu.launch(&shape).threads(1)).unwrap().stamp().stream, gpu.main_stream().key());
    let mut told = gpu.launch(&kernels.join);
    told.grid(1).block(1);
    let ticket = submit(told.on(&first).write(&c).read(&b).read(&a).value(LEN as u32)).unwrap();
    assert_eq!((ticket.stamp().stream, c.last_write_stream()), (first.key(), LastWrite::Stream(first.key())));
    drop(told);
    drop((a, b, c, shape, back, peek));
    scene.close();
}

#[test]
fn a_launch_that_was_refused_stays_refused() {
    let scene = Scene::new();
    let (to, from) = scene.buffers();
    let other = DeviceRuntime::simulated(2).unwrap();
    let foreign = other.upload(&[1_u32; LEN]).unwrap();
    let n = LEN as u32;
    let mut launches = [(); 3].map(|()| scene.gpu.launch(&scene.kernels.mix));
    for launch in &mut launches {
        launch.threads(1);
    }
    launches[0].read_write(&to).read(&from).value(n).value(1_u64);
    launches[1].read(&to).read(&from).value(n).value(1_u32);
    launches[2].read_write(&to).read(&foreign).value(n).value(1_u32);
    for launch in &mut launches {
        let first = submit(launch).unwrap_err().to_string();
        for _ in 0..3 {
            assert_eq!(submit(launch).unwrap_err().to_string(), first);
        }
    }
    assert_eq!(to.download().unwrap(), [3; LEN]);
    // One that fits can be made as often as one likes.
    let mut launch = scene.gpu.launch(&scene.kernels.mix);
    launch.threads(1).read_write(&to).read(&from).value(n).value(1_u32);
    for _ in 0..3 {
        submit(&mut launch).unwrap();
    }
    assert_eq!(to.download().unwrap(), [3 + 3 * 5; LEN]);
    drop((launches, launch));
    drop((to, from));
    scene.close();
}

#[test]
fn what_is_wrong_with_a_buffer_is_said_with_kernel_and_parameter() {
    let scene = Scene::new();
    let (to, from) = scene.buffers();
    let n = LEN as u32;
    let other = DeviceRuntime::simulated(2).unwrap();
    let foreign = other.upload(&[1_u32; LEN]).unwrap();
    let refused = |second: &GpuRef<u32>| {
        submit(
            scene
                .gpu
                .launch(&scene.kernels.mix)
                .grid(1)
                .block(1)
                .read_write(&to)
                .read(second)
                .value(n)
                .value(1_u32),
        )
        .unwrap_err()
    };
    let error = refused(&foreign);
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::ForeignBlock { .. })), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("kernel `mix`, parameter 1: block "), "{text}");
    assert!(text.ends_with("belongs to another runtime; download it and upload it here"), "{text}");
    drop(other);
    let error = refused(&foreign);
    assert!(matches!(error.kind(), ErrorKind::Stale(Stale::DeviceDropped)), "{error}");
    assert!(error.to_string().starts_with("kernel `mix`, parameter 1: "), "{error}");
    let (low, high) = (to.view(..5).unwrap(), to.view(4..).unwrap());
    let error = submit(
        scene
            .gpu
            .launch(&scene.kernels.mix)
            .grid(1)
            .block(1)
            .read_write(&low)
            .read_write(&high)
            .value(4_u32)
            .value(1_u32),
    )
    .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Overlap { first: 0, second: 1 })), "{error}");
    assert!(error.to_string().starts_with("kernel `mix`: arguments 0 and 1 overlap"), "{error}");
    assert_eq!(format!("{error:#}").matches("mix").count(), 1, "{error:#}");
    let uses = [low.used_as(Access::Write), high.used_as(Access::Write)];
    let plain = scene.gpu.prepare_block_use(scene.gpu.main_stream(), &uses).err().unwrap();
    assert!(plain.to_string().starts_with("arguments 0 and 1 overlap"), "{plain}");
    drop((low, high, to, from));
    scene.close();
}
