//! Blocks begin and end in a worker process, too, and a takeover keeps those that are live.

use kiln::checking::FindingRule;
use kiln::memory::{AllocTag, MemoryConfig};
use kiln::recovery::{DeviceSpec, Isolation};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};

use crate::rig;

/// `load(data, out, at)` copies element `at`; `follow(list, out)` copies what the first pointer of the list points to.
const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry load(.param .u64 data, .param .u64 out, .param .s32 at) {
    .reg .b32 %r<3>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [out]; ld.param.s32 %r1, [at];
    mul.wide.s32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r2, [%rd4];
    st.global.u32 [%rd2], %r2;
    ret;
}
.visible .entry follow(.param .u64 list, .param .u64 out) {
    .reg .b32 %r<2>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [list]; ld.param.u64 %rd2, [out];
    ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;
    ret;
}
";

const WORDS: usize = 64;

fn open(seed: u64, stack: &str) -> DeviceRuntime {
    let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
    let isolation = Isolation::Process(rig::process());
    let config = RuntimeConfig { isolation, memory, ..RuntimeConfig::default() };
    DeviceRuntime::open(&DeviceSpec::simulated(seed), config).unwrap()
}

fn tagged(gpu: &DeviceRuntime, tag: &str, word: u32) -> GpuRef<u32> {
    let tag = AllocTag::new(tag).unwrap();
    let block = gpu.allocate_tagged(gpu.main_stream(), WORDS, tag).unwrap();
    block.fill(word).unwrap();
    block
}

fn load(gpu: &DeviceRuntime, block: &GpuRef<u32>) -> kiln::Result<u32> {
    let kernel = gpu.kernel(KERNELS, "load")?;
    let out = gpu.zeros::<u32>(1)?;
    // SAFETY: inside the block.
    unsafe { gpu.launch(&kernel).threads(1).read(block).write(&out).value(5).submit()? };
    Ok(out.download()?[0])
}

/// `out` is older than what is freed, so it does not have that memory.
fn follow(gpu: &DeviceRuntime, list: &GpuRef<u64>, out: &GpuRef<u32>) -> kiln::Result<u32> {
    let kernel = gpu.kernel(KERNELS, "follow")?;
    // SAFETY: the simulator checks every access.
    unsafe { gpu.launch(&kernel).threads(1).read(list).write(out).submit()? };
    Ok(out.download()?[0])
}

#[track_caller]
fn check<T: std::fmt::Debug>(answer: kiln::Result<T>, rule: FindingRule, words: &[&str]) {
    let error = answer.unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(finding.rule, rule, "{error}");
    for word in words {
        assert!(finding.text.contains(word), "`{word}` is missing: {error}");
    }
}

#[test]
fn blocks_begin_and_end_in_a_worker() {
    for (seed, stack) in (0..).zip(["heap", "pages", "stats(guard(heap))"]) {
        let gpu = open(seed, stack);
        let out = gpu.zeros::<u32>(1).unwrap();
        let target = tagged(&gpu, "weights", 9);
        let list = gpu.upload(&[target.address().0]).unwrap();
        assert_eq!(load(&gpu, &target).unwrap(), 9, "{stack}");
        drop(target);
        check(follow(&gpu, &list, &out), FindingRule::UseAfterFree, &["(weights)", "256 bytes", "freed at"]);
        let again = gpu.allocate::<u32>(WORDS).unwrap();
        check(load(&gpu, &again), FindingRule::Uninitialised, &["load"]);
        again.fill(4).unwrap();
        assert_eq!(load(&gpu, &again).unwrap(), 4, "{stack}");
        gpu.synchronize().unwrap();
    }
}

#[test]
fn a_takeover_keeps_live_blocks_live_and_their_contents_initialised() {
    let gpu = open(7, "heap");
    let out = gpu.zeros::<u32>(1).unwrap();
    let (kept, freed) = (tagged(&gpu, "kept", 5), tagged(&gpu, "freed", 6));
    let (list, other) = (gpu.upload(&[kept.address().0]).unwrap(), gpu.upload(&[freed.address().0]).unwrap());
    gpu.synchronize().unwrap();
    for round in 0..3 {
        rig::kill(&gpu);
        assert_eq!(load(&gpu, &kept).unwrap(), 5, "round {round}");
        assert_eq!(kept.download().unwrap(), [5; WORDS], "round {round}");
        check(follow(&gpu, &list, &out), FindingRule::Undeclared, &["256 bytes (kept)"]);
        gpu.synchronize().unwrap();
    }
    drop(freed);
    check(follow(&gpu, &other, &out), FindingRule::UseAfterFree, &["256 bytes (freed)"]);
    // The memory is another block's from here on, also in the next worker.
    let next = tagged(&gpu, "next", 8);
    gpu.synchronize().unwrap();
    rig::kill(&gpu);
    assert_eq!(load(&gpu, &next).unwrap(), 8);
    drop(kept);
    check(follow(&gpu, &list, &out), FindingRule::UseAfterFree, &["(kept)"]);
    let fresh = gpu.allocate::<u32>(WORDS).unwrap();
    check(load(&gpu, &fresh), FindingRule::Uninitialised, &["load"]);
}
