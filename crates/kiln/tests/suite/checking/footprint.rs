//! What a launch declares is what its kernel may touch, in every memory stack.

use std::sync::Arc;

use kiln::error::{ErrorKind, Misuse};
use kiln::memory::Stack;
use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig};
use kiln_sim::{FindingKind, Machine, MachineConfig, PtxEngine, Touching};

use super::kernels::KERNELS;

struct Scene {
    machine: Machine,
    gpu: DeviceRuntime,
}

/// Stacks that a program can ask for.
const STACKS: [&str; 6] =
    ["heap", "pages", "direct", "pool", "stats(trace(heap))", "budget(1GiB, guard(heap))"];

impl Scene {
    fn new(seed: u64, stack: &str) -> Self {
        let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
        let mut config = RuntimeConfig::default();
        config.memory.stack = stack.parse::<Stack>().unwrap();
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        Self { machine, gpu }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.gpu.kernel(KERNELS, name).unwrap()
    }

    /// Everything that was found, in words.
    fn texts(&self) -> Vec<String> {
        self.machine.findings().iter().map(ToString::to_string).collect()
    }

    fn kinds(&self) -> Vec<FindingKind> {
        self.machine.findings().into_iter().map(|finding| finding.kind).collect()
    }
}

/// Lets all work run; what was found is looked at in the machine.
fn wait(gpu: &DeviceRuntime) {
    let _ = gpu.synchronize();
}

#[test]
fn writing_past_the_end_into_the_neighbour_is_found_in_every_stack() {
    for stack in STACKS {
        let scene = Scene::new(1, stack);
        let store = scene.kernel("store");
        let first = scene.gpu.zeros::<u32>(256).unwrap();
        let neighbour = scene.gpu.zeros::<u32>(256).unwrap();
        // SAFETY: the simulator checks every access; a write past the end is what this is about.
        unsafe { scene.gpu.launch(&store).threads(260).write(&first).value(260_u32).submit().unwrap() };
        wait(&scene.gpu);
        let texts = scene.texts();
        let is_named = |text: &String| {
            text.contains("launch store")
                && text.contains("argument 0 (`data`)")
                && text.contains("past the end")
        };
        assert!(texts.iter().any(is_named), "{stack}: {texts:#?}");
        drop(neighbour);
    }
}

#[test]
fn the_finding_says_where_and_how_far() {
    let scene = Scene::new(2, "heap");
    let store = scene.kernel("store");
    let first = scene.gpu.zeros::<u32>(256).unwrap();
    let _neighbour = scene.gpu.zeros::<u32>(256).unwrap();
    // SAFETY: as above.
    unsafe { scene.gpu.launch(&store).grid(2).block(256).write(&first).value(512_u32).submit().unwrap() };
    wait(&scene.gpu);
    let findings = scene.machine.findings();
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(finding.kind, FindingKind::Undeclared(Touching::Writing));
    let code = finding.code.as_ref().unwrap();
    assert_eq!(
        (code.times > 1, code.site.block, code.site.thread),
        (true, [1, 0, 0], [0, 0, 0]),
        "{finding}"
    );
    let text = finding.to_string();
    for part in
        ["write of 4 bytes", "just past the end of argument 0 (`data`), which has 1024 bytes", "store"]
    {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
}

#[test]
fn a_view_is_exactly_its_bytes_and_reads_before_it_are_found() {
    let scene = Scene::new(3, "heap");
    let load = scene.kernel("load");
    let data = scene.gpu.upload(&[5_u32; 64]).unwrap();
    let out = scene.gpu.zeros::<u32>(1).unwrap();
    let view = data.view(16..32).unwrap();
    for at in [0, 15] {
        // SAFETY: inside the view.
        unsafe { scene.gpu.launch(&load).threads(1).read(&view).write(&out).value(at).submit().unwrap() };
        wait(&scene.gpu);
    }
    assert_eq!(scene.texts(), [] as [String; 0]);
    for (at, part) in
        [(-1, "4 bytes before the start of argument 0 (`data`)"), (18, "8 bytes past the end of argument 0")]
    {
        // SAFETY: inside the block, not the view.
        unsafe { scene.gpu.launch(&load).threads(1).read(&view).write(&out).value(at).submit().unwrap() };
        wait(&scene.gpu);
        let texts = scene.texts();
        assert!(
            texts.last().is_some_and(|text| text.contains(part) && text.contains("read of 4 bytes")),
            "{texts:#?}"
        );
    }
    assert_eq!(out.download().ok(), Some(vec![5]), "the access itself is made, as hardware would");
}

#[test]
fn an_access_across_the_end_is_found_and_across_two_views_is_not() {
    let scene = Scene::new(4, "heap");
    let wide = scene.kernel("wide");
    let data = scene.gpu.upload(&[1_u32, 2, 3, 4]).unwrap();
    let out = scene.gpu.zeros::<u64>(1).unwrap();
    let (one, two) = (data.view(0..1).unwrap(), data.view(1..2).unwrap());
    // SAFETY: eight bytes of the two views.
    unsafe { scene.gpu.launch(&wide).threads(1).read(&one).write(&out).also_read(&two).submit().unwrap() };
    wait(&scene.gpu);
    assert_eq!(scene.texts(), [] as [String; 0]);
    // SAFETY: inside the block.
    unsafe { scene.gpu.launch(&wide).threads(1).read(&one).write(&out).submit().unwrap() };
    wait(&scene.gpu);
    let texts = scene.texts();
    assert!(texts.iter().any(|text| text.contains("4 bytes across the end of argument 0")), "{texts:#?}");
}

#[test]
fn a_pointer_to_a_block_that_was_not_declared_is_found_and_can_be_declared() {
    for stack in STACKS {
        let scene = Scene::new(5, stack);
        let (follow, push) = (scene.kernel("follow"), scene.kernel("push"));
        let target = scene.gpu.upload(&[3_u32; 8]).unwrap();
        let list = scene.gpu.upload(&[target.address().0]).unwrap();
        let out = scene.gpu.zeros::<u32>(1).unwrap();
        // SAFETY: everything is mapped.
        unsafe {
            let mut launch = scene.gpu.launch(&follow);
            launch.threads(1).read(&list).write(&out).also_read(&target).submit().unwrap();
            scene.gpu.launch(&push).threads(1).read(&list).also_write(&target).submit().unwrap();
        }
        wait(&scene.gpu);
        assert_eq!(scene.texts(), [] as [String; 0], "{stack}");
        // SAFETY: as above.
        unsafe { scene.gpu.launch(&push).threads(1).read(&list).also_read(&target).submit().unwrap() };
        wait(&scene.gpu);
        assert_eq!(scene.kinds(), [FindingKind::Undeclared(Touching::Writing)], "{stack}");
        assert!(scene.texts()[0].contains("which the launch declared as read only"), "{:?}", scene.texts());
        // SAFETY: as above.
        unsafe { scene.gpu.launch(&follow).threads(1).read(&list).write(&out).submit().unwrap() };
        wait(&scene.gpu);
        assert_eq!(scene.kinds().last(), Some(&FindingKind::Undeclared(Touching::Reading)), "{stack}");
    }
}

#[test]
fn what_is_declared_beside_the_arguments_is_ordered() {
    for seed in 0..16 {
        let scene = Scene::new(seed, "heap");
        let (follow, push) = (scene.kernel("follow"), scene.kernel("push"));
        let target = scene.gpu.zeros::<u32>(1).unwrap();
        let list = scene.gpu.upload(&[target.address().0]).unwrap();
        let out = scene.gpu.zeros::<u32>(1).unwrap();
        let (one, two) = (scene.gpu.stream().unwrap(), scene.gpu.stream().unwrap());
        // SAFETY: everything is mapped and declared.
        unsafe {
            scene.gpu.launch(&push).on(&one).threads(1).read(&list).also_write(&target).submit().unwrap();
            let mut launch = scene.gpu.launch(&follow);
            launch.on(&two).threads(1).read(&list).write(&out).also_read(&target).submit().unwrap();
        }
        assert_eq!(out.download().unwrap(), [7], "seed {seed}");
        assert_eq!(scene.texts(), [] as [String; 0], "seed {seed}");
    }
}

#[test]
fn a_graph_carries_what_its_nodes_declare_also_after_an_update() {
    let scene = Scene::new(7, "heap");
    let (store, push) = (scene.kernel("store"), scene.kernel("push"));
    let (small, large) = (scene.gpu.zeros::<u32>(8).unwrap(), scene.gpu.zeros::<u32>(64).unwrap());
    let list = scene.gpu.upload(&[large.address().0]).unwrap();
    let (mut graph, node) = scene
        .gpu
        .record(|builder| {
            // SAFETY: inside the buffers.
            unsafe {
                builder.launch(&push).threads(1).read(&list).also_write(&large).record()?;
                builder.launch(&store).threads(32).write(&large).value(32_u32).record()
            }
        })
        .unwrap();
    graph.replay().unwrap();
    wait(&scene.gpu);
    assert_eq!(scene.texts(), [] as [String; 0]);
    // SAFETY: the simulator checks it; the smaller buffer is too small.
    unsafe { graph.update(node).unwrap().write(0, &small).apply().unwrap() };
    graph.replay().unwrap();
    wait(&scene.gpu);
    assert_eq!(scene.kinds(), [FindingKind::Undeclared(Touching::Writing)]);
    assert!(scene.texts()[0].contains("just past the end of argument 0 (`data`), which has 32 bytes"));
}

#[test]
fn contradictory_declarations_are_refused_or_joined() {
    let scene = Scene::new(8, "heap");
    let store = scene.kernel("store");
    let data = scene.gpu.zeros::<u32>(64).unwrap();
    let view = data.view(0..8).unwrap();
    // SAFETY: nothing is launched.
    let refused =
        unsafe { scene.gpu.launch(&store).threads(1).write(&data).also_write(&view).value(1_u32).submit() };
    let error = refused.unwrap_err();
    let both = ErrorKind::Misuse(Misuse::Overlap { first: 0, second: Misuse::BESIDE });
    assert!(format!("{:?}", error.kind()) == format!("{both:?}"), "{error}");
    assert!(error.to_string().contains("beside the arguments"), "{error}");
    // Reading and writing the same bytes is one declaration of both.
    // SAFETY: inside the buffers.
    unsafe {
        scene.gpu.launch(&store).threads(8).write(&view).also_read(&data).value(8_u32).submit().unwrap()
    };
    scene.gpu.synchronize().unwrap();
    assert_eq!(scene.texts(), [] as [String; 0]);
}

#[test]
fn a_hundred_thousand_buffers_on_one_launch_are_in_order_and_found() {
    let scene = Scene::new(9, "heap");
    let store = scene.kernel("store");
    let all = scene.gpu.zeros::<u32>(100_000).unwrap();
    let views: Vec<GpuRef<u32>> = (1..100_000).map(|at| all.view(at..at + 1).unwrap()).collect();
    let first = all.view(0..1).unwrap();
    for (n, clean) in [(100_000_u32, true), (100_001, false)] {
        let mut launch = scene.gpu.launch(&store);
        launch.threads(u64::from(n)).write(&first).value(n);
        views.iter().for_each(|view| {
            launch.also_write(view);
        });
        // SAFETY: the simulator checks it.
        unsafe { launch.submit().unwrap() };
        wait(&scene.gpu);
        assert_eq!(scene.texts().is_empty(), clean, "{:?}", scene.texts());
    }
}

#[test]
fn a_buffer_of_another_runtime_is_refused_beside_the_arguments() {
    let (scene, other) = (Scene::new(10, "heap"), Scene::new(11, "heap"));
    let store = scene.kernel("store");
    let (data, foreign) = (scene.gpu.zeros::<u32>(4).unwrap(), other.gpu.zeros::<u32>(4).unwrap());
    // SAFETY: nothing is launched.
    let refused =
        unsafe { scene.gpu.launch(&store).threads(1).write(&data).value(1_u32).also_read(&foreign).submit() };
    let error = refused.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::ForeignBlock { .. })), "{error}");
}

#[test]
fn a_far_access_names_the_argument_that_its_address_was_computed_from() {
    let scene = Scene::new(4, "heap");
    let load = scene.kernel("load");
    let data = scene.gpu.upload(&[5_u32; 64]).unwrap();
    let out = scene.gpu.zeros::<u32>(1).unwrap();
    // SAFETY: the simulator checks every access.
    unsafe { scene.gpu.launch(&load).threads(1).read(&data).write(&out).value(1 << 20).submit().unwrap() };
    wait(&scene.gpu);
    let texts = scene.texts();
    // The other buffer lies nearer.
    let expected = format!("{} bytes past the end of argument 0 (`data`)", (1 << 22) - 256);
    assert!(texts.iter().any(|text| text.contains(&expected)), "{texts:#?}");
}
