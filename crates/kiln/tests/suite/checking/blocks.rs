//! Blocks begin and end in every memory stack: what is handed out is uninitialised, and what was freed is freed.

use std::sync::Arc;

use kiln::checking::FindingRule;
use kiln::memory::{AllocTag, MemoryConfig};
use kiln::testing::SeededTest;
use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig};
use kiln_sim::{Finding, FindingKind, KernelChecks, Machine, MachineConfig, PtxEngine};

use super::kernels::KERNELS;

/// Every base, and every layer around one.
const STACKS: [&str; 15] = [
    "heap",
    "chunks",
    "pages",
    "direct",
    "pool",
    "budget(1GiB, heap)",
    "limit(1GiB, heap)",
    "align(4KiB, heap)",
    "stats(heap)",
    "trace(heap)",
    "guard(heap)",
    "leaks(heap)",
    "retry(2, heap)",
    "fail(0, 0, 1GiB, heap)",
    "budget(1GiB, stats(guard(align(1KiB, trace(pages)))))",
];

const WORDS: usize = 64;

struct Scene {
    machine: Machine,
    gpu: DeviceRuntime,
}

impl Scene {
    fn new(seed: u64, stack: &str) -> Self {
        let engine = Arc::new(PtxEngine::with_checks(KernelChecks::ALL));
        let machine = Machine::new(MachineConfig::seeded(seed).engine(engine));
        let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
        let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        Self { machine, gpu }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.gpu.kernel(KERNELS, name).unwrap()
    }

    fn tagged(&self, tag: &str, word: u32) -> GpuRef<u32> {
        let tag = AllocTag::new(tag).unwrap();
        let block = self.gpu.allocate_tagged(self.gpu.main_stream(), WORDS, tag).unwrap();
        block.fill(word).unwrap();
        block
    }

    fn findings(&self) -> Vec<Finding> {
        self.machine.findings()
    }

    #[track_caller]
    fn assert_clean(&self, what: &str) {
        let found = self.findings();
        assert!(found.is_empty(), "{what}: {found:#?}");
    }
}

/// Has a kernel read the first word at an address that it finds in memory. `out` is older than what is freed, so it does not have that memory.
fn follow(gpu: &DeviceRuntime, follow: &Kernel, list: &GpuRef<u64>, out: &GpuRef<u32>) -> kiln::Result<u32> {
    // SAFETY: the simulator checks every access; one to memory that was freed is what this is about.
    unsafe { gpu.launch(follow).threads(1).read(list).write(out).submit()? };
    Ok(out.download()?[0])
}

#[test]
fn a_block_that_is_used_again_is_uninitialised_in_every_stack() {
    for (seed, stack) in (0..).zip(STACKS) {
        let scene = Scene::new(seed, stack);
        let load = scene.kernel("load");
        let read = |block: &GpuRef<u32>| {
            let out = scene.gpu.zeros::<u32>(1)?;
            // SAFETY: inside the block.
            unsafe { scene.gpu.launch(&load).threads(1).read(block).write(&out).value(5).submit()? };
            out.download()
        };
        let used = scene.tagged("before", 7);
        let place = used.address();
        assert_eq!(read(&used).unwrap(), [7]);
        drop(used);
        scene.gpu.synchronize().unwrap();
        let again = scene.gpu.allocate::<u32>(WORDS).unwrap();
        if stack == "heap" {
            assert_eq!(again.address(), place, "the heap hands the block out again");
        }
        scene.assert_clean(stack);
        let error = read(&again).unwrap_err();
        let finding = error.finding().unwrap_or_else(|| panic!("{stack}: {error}"));
        assert_eq!(finding.rule, FindingRule::Uninitialised, "{stack}: {error}");
        assert_eq!(finding.kernel.as_deref(), Some("load"), "{stack}: {error}");
        assert!(finding.line.is_some(), "{stack}: {error}");
        let before = scene.findings().len();
        again.fill(3).unwrap();
        assert_eq!(read(&again).unwrap(), [3], "{stack}");
        assert_eq!(scene.findings().len(), before, "{stack}: {:#?}", scene.findings());
    }
}

#[test]
fn a_download_of_what_was_not_written_is_found_in_every_stack() {
    for (seed, stack) in (0..).zip(STACKS) {
        let scene = Scene::new(seed, stack);
        drop(scene.tagged("before", 7));
        scene.gpu.synchronize().unwrap();
        let again = scene.gpu.allocate::<u32>(WORDS).unwrap();
        again.view(0..WORDS / 2).unwrap().fill(1).unwrap();
        assert_eq!(again.view(0..WORDS / 2).unwrap().download().unwrap(), vec![1; WORDS / 2], "{stack}");
        let error = again.download().unwrap_err();
        assert_eq!(
            error.finding().map(|found| found.rule),
            Some(FindingRule::Uninitialised),
            "{stack}: {error}"
        );
    }
}

#[test]
fn a_use_after_free_names_the_block_and_who_freed_it_in_every_stack() {
    for (seed, stack) in (0..).zip(STACKS) {
        let scene = Scene::new(seed, stack);
        let (kernel, out) = (scene.kernel("follow"), scene.gpu.zeros(1).unwrap());
        let target = scene.tagged("weights", 9);
        let list = scene.gpu.upload(&[target.address().0]).unwrap();
        scene.gpu.synchronize().unwrap();
        drop(target);
        scene.gpu.synchronize().unwrap();
        // Memory of the driver is gone when it is freed, and then the device is lost, as on hardware.
        let error = follow(&scene.gpu, &kernel, &list, &out).unwrap_err();
        assert!(error.finding().is_some() || error.is_lost(), "{stack}: {error}");
        let findings = scene.findings();
        let freed = findings.iter().find(|found| {
            let in_code = found.code.as_ref().is_some_and(|code| code.is_use_after_free());
            in_code || found.kind == FindingKind::UseAfterFree
        });
        let text = freed.unwrap_or_else(|| panic!("{stack}: {findings:#?}")).to_string();
        for part in
            ["weights", "256 bytes", "free of memory", "stream", "submission", "freed at", "launch follow"]
        {
            assert!(text.contains(part), "{stack}: `{part}` is missing: {text}");
        }
    }
}

#[test]
fn a_freed_block_is_freed_although_its_pages_stay_mapped() {
    let scene = Scene::new(1, "heap");
    let (kernel, out) = (scene.kernel("follow"), scene.gpu.zeros(1).unwrap());
    let target = scene.tagged("weights", 9);
    let list = scene.gpu.upload(&[target.address().0 + 8]).unwrap();
    drop(target);
    let error = follow(&scene.gpu, &kernel, &list, &out).unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!((finding.rule, finding.kernel.as_deref()), (FindingRule::UseAfterFree, Some("follow")));
    assert!(finding.line.is_some() && finding.text.contains("byte 8 of "), "{finding}");
    assert!(scene.gpu.state().is_ready(), "the device goes on");
}

#[test]
fn a_live_block_of_another_owner_is_named() {
    let scene = Scene::new(2, "heap");
    let (kernel, out) = (scene.kernel("follow"), scene.gpu.zeros(1).unwrap());
    let target = scene.tagged("biases", 9);
    let list = scene.gpu.upload(&[target.address().0 + 12]).unwrap();
    let error = follow(&scene.gpu, &kernel, &list, &out).unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(finding.rule, FindingRule::Undeclared, "{error}");
    assert!(finding.text.contains("byte 12 of ") && finding.text.contains("256 bytes (biases)"), "{error}");
    drop(target);
    // Another owner has the memory now.
    let next = scene.tagged("gradients", 4);
    let list = scene.gpu.upload(&[next.address().0]).unwrap();
    let error = follow(&scene.gpu, &kernel, &list, &out).unwrap_err();
    assert!(error.to_string().contains("(gradients)"), "{error}");
}

/// Work that was submitted before a block was freed may use it, whatever becomes of its memory meanwhile.
#[test]
fn work_from_before_the_free_is_innocent_with_every_seed() {
    for seed in 0..32 {
        for stack in ["heap", "pages", "pool", "stats(heap)"] {
            let scene = Scene::new(seed, stack);
            let kernel = scene.kernel("follow");
            let target = scene.tagged("old", 9);
            let list = scene.gpu.upload(&[target.address().0]).unwrap();
            let out = scene.gpu.zeros::<u32>(1).unwrap();
            // SAFETY: the target is declared.
            unsafe {
                let mut launch = scene.gpu.launch(&kernel);
                launch.threads(1).read(&list).write(&out).also_read(&target).submit().unwrap();
            }
            drop(target);
            let next = scene.tagged("new", 4);
            assert_eq!(next.download().unwrap(), [4; WORDS], "seed {seed}, {stack}");
            assert_eq!(out.download().unwrap(), [9], "seed {seed}, {stack}");
            scene.gpu.synchronize().unwrap();
            scene.assert_clean(&format!("seed {seed}, {stack}"));
        }
    }
}

/// Blocks pass from stream to stream, and each one is written before it is read.
#[test]
fn blocks_that_streams_hand_over_are_clean_with_every_seed() {
    let stacks = ["heap", "pages", "pool", "direct", "chunks", "budget(1GiB, stats(heap))"];
    for (at, stack) in (0..).zip(stacks) {
        let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
        let test = SeededTest::new(at * 8..at * 8 + 8);
        let test = test.runtime(RuntimeConfig { memory, ..RuntimeConfig::default() });
        let run = |gpu: &DeviceRuntime| {
            let load = gpu.kernel(KERNELS, "load")?;
            let streams = [gpu.stream()?, gpu.stream()?, gpu.stream()?];
            let outs = [gpu.zeros::<u32>(1)?, gpu.zeros(1)?, gpu.zeros(1)?];
            for round in 0..24_u32 {
                let (home, user) = (round as usize % 3, (round as usize / 2) % 3);
                let len = 16 << (round % 3);
                let block = gpu.allocate_on::<u32>(&streams[home], len)?;
                block.fill_on(&streams[(home + 1) % 3], round)?;
                let mut launch = gpu.launch(&load);
                // SAFETY: inside the buffers.
                unsafe {
                    launch.on(&streams[user]).threads(1).read(&block).write(&outs[user]).value(3).submit()?
                };
                if round % 5 == 0 {
                    assert_eq!(block.download()?, vec![round; len]);
                }
            }
            Ok(())
        };
        test.run(run).unwrap_or_else(|failure| panic!("{stack}: {failure}"));
    }
}

#[test]
fn a_graph_that_follows_a_pointer_to_freed_memory_is_found_and_one_that_holds_its_buffers_is_not() {
    let scene = Scene::new(3, "heap");
    let kernel = scene.kernel("follow");
    let (target, held) = (scene.tagged("weights", 9), scene.tagged("held", 5));
    let (list, fine) =
        (scene.gpu.upload(&[target.address().0]).unwrap(), scene.gpu.upload(&[held.address().0]).unwrap());
    let out = scene.gpu.zeros::<u32>(1).unwrap();
    let record = |list: &GpuRef<u64>, held: Option<&GpuRef<u32>>| {
        let (graph, ()) = scene
            .gpu
            .record(|builder| {
                let mut launch = builder.launch(&kernel);
                launch.threads(1).read(list).write(&out);
                if let Some(held) = held {
                    launch.also_read(held);
                }
                // SAFETY: the simulator checks every access.
                unsafe { launch.record()? };
                Ok(())
            })
            .unwrap();
        graph
    };
    let (wild, sound) = (record(&list, None), record(&fine, Some(&held)));
    drop((target, held));
    for _ in 0..2 {
        sound.replay().unwrap().wait().unwrap();
        assert_eq!(out.download().unwrap(), [5]);
    }
    scene.assert_clean("the graph holds the buffer");
    let error = wild.replay().unwrap().wait().unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(finding.rule, FindingRule::UseAfterFree, "{error}");
    assert!(finding.text.contains("(weights)"), "{error}");
}

#[test]
fn a_resource_of_the_caller_is_covered() {
    use kiln::memory::{Heap, HeapConfig};

    let engine = Arc::new(PtxEngine::default());
    let machine = Machine::new(MachineConfig::seeded(5).engine(engine));
    let device = machine.device(0).unwrap();
    let gpu = DeviceRuntime::with_resource(device, RuntimeConfig::default(), |driver, order| {
        Ok(Arc::new(Heap::over_pages(driver.clone(), order, HeapConfig::default())?))
    });
    let gpu = gpu.unwrap();
    let (kernel, out) = (gpu.kernel(KERNELS, "follow").unwrap(), gpu.zeros(1).unwrap());
    let target = gpu.upload(&[1_u32; WORDS]).unwrap();
    let list = gpu.upload(&[target.address().0]).unwrap();
    drop(target);
    let error = follow(&gpu, &kernel, &list, &out).unwrap_err();
    assert_eq!(error.finding().map(|found| found.rule), Some(FindingRule::UseAfterFree), "{error}");
}

#[test]
fn memory_that_a_caller_takes_from_the_stack_begins_and_ends_too() {
    use kiln::memory::{AllocationRequest, MemoryResourceExt};

    let scene = Scene::new(4, "stats(heap)");
    let (kernel, out) = (scene.kernel("follow"), scene.gpu.zeros(1).unwrap());
    let stream = scene.gpu.main_stream();
    let tag = AllocTag::new("taken").unwrap();
    let request = AllocationRequest::new(256, stream.memory_ref()).tag(tag);
    let block = scene.gpu.memory().allocate(&request).unwrap();
    let list = scene.gpu.upload(&[block.address().0]).unwrap();
    scene.gpu.memory().free(block).unwrap();
    let error = follow(&scene.gpu, &kernel, &list, &out).unwrap_err();
    assert!(error.to_string().contains("(taken)"), "{error}");
    assert_eq!(error.finding().map(|found| found.rule), Some(FindingRule::UseAfterFree), "{error}");
}
