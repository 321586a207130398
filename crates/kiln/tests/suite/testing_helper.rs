//! `kiln::testing`: tests under many seeds, with findings, leaks, errors and panics as failures.

use std::cell::{Cell, RefCell};

use kiln::sim::{DeviceConfig, FindingKind, MachineConfig};
use kiln::testing::{FailureCause, SeededTest, TestFailure, check};

/// `out[i] = in[i]`, read past the end if `over` is not zero; `out` may be memory that was never written.
const COPY: &str = "
    .version 7.0
    .target sm_70
    .address_size 64
    .visible .entry copy(.param .u64 in, .param .u64 out, .param .u32 over) {
        .reg .b32 %r<6>; .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [over];
        mov.u32 %r2, %tid.x;
        add.u32 %r3, %r2, %r1;
        mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd1, %rd3;
        mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd2, %rd4;
        ld.global.u32 %r4, [%rd3];
        st.global.u32 [%rd4], %r4;
        ret;
    }";

fn copy(gpu: &kiln::DeviceRuntime, over: u32) -> kiln::Result<Vec<u32>> {
    let kernel = gpu.kernel(COPY, "copy")?;
    let from = gpu.upload(&(0..32).collect::<Vec<u32>>())?;
    let to = gpu.allocate::<u32>(32)?;
    // SAFETY: 32 threads read and write 32 elements; with an offset the simulated device reports what they read besides.
    unsafe { gpu.launch(&kernel).grid(1).block(32).read(&from).write(&to).value(over).submit()? };
    to.download()
}

#[test]
fn a_right_program_passes_with_every_seed() -> Result<(), TestFailure> {
    let ran = Cell::new(0);
    check(0..5, |gpu| {
        ran.set(ran.get() + 1);
        assert_eq!(copy(gpu, 0)?, (0..32).collect::<Vec<u32>>());
        Ok(())
    })?;
    assert_eq!(ran.get(), 5);
    Ok(())
}

#[test]
fn a_finding_fails_the_test_with_seed_and_command() {
    // One block of memory to each allocation, so that the end of the array is the end of its memory.
    let memory = kiln::memory::MemoryConfig { stack: "direct".parse().unwrap(), ..Default::default() };
    let runtime = kiln::RuntimeConfig { memory, ..Default::default() };
    let failure =
        SeededTest::new(3..6).runtime(runtime).run(|gpu| copy(gpu, 64 << 10).map(drop)).unwrap_err();
    assert_eq!(failure.seed(), Some(3));
    let FailureCause::Findings(report) = failure.cause() else { panic!("{failure}") };
    assert!(
        !report.findings.is_empty() && report.findings.iter().all(|found| found.kind != FindingKind::Leak)
    );
    let text = format!("{failure:?}");
    for part in
        ["seed 3", "out of bounds", "KILN_SEED=3 cargo test -p kiln", "--exact testing_helper::a_finding"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn memory_that_is_not_given_back_fails_the_test() {
    let kept = RefCell::new(Vec::new());
    let failure = check([1], |gpu| {
        let tag = kiln::memory::AllocTag::new("forgotten").unwrap();
        kept.borrow_mut().push(gpu.allocate_tagged::<u32>(gpu.main_stream(), 8, tag)?);
        Ok(())
    });
    let failure = failure.unwrap_err();
    assert!(matches!(failure.cause(), FailureCause::Leak { bytes: 32.., .. }), "{failure}");
    assert!(failure.to_string().contains("not dropped"), "{failure}");
    assert!(failure.to_string().contains("1 block of 32 bytes (forgotten)"), "{failure}");
}

#[test]
fn errors_and_panics_keep_their_message() {
    let failure = check(7..9, |gpu| gpu.kernel("not PTX", "k").map(drop)).unwrap_err();
    assert!(matches!(failure.cause(), FailureCause::Error(_)), "{failure}");
    let failure = check(7..9, |gpu| {
        assert_eq!(gpu.zeros::<u32>(2)?.download()?, [1, 1], "these differ");
        Ok(())
    });
    let failure = failure.unwrap_err();
    let text = failure.to_string();
    assert!(
        text.contains("these differ") && text.contains("seed 7") && text.contains("KILN_SEED=7"),
        "{text}"
    );
}

#[test]
fn a_failed_assertion_shows_what_the_device_found_before() {
    let failure = check([5], |gpu| {
        assert_eq!(copy(gpu, 1)?, (0..32).collect::<Vec<u32>>(), "these differ");
        Ok(())
    });
    let failure = failure.unwrap_err();
    assert!(matches!(failure.cause(), FailureCause::Panic(_)), "{failure}");
    assert!(failure.findings().is_some_and(|report| !report.is_clean()), "{failure}");
    let text = failure.to_string();
    let (panicked, found) = (text.find("these differ").unwrap(), text.find("undeclared access").unwrap());
    assert!(panicked < found && text.contains("KILN_SEED=5"), "{text}");
}

#[test]
fn the_machine_and_the_runtime_can_be_chosen() -> Result<(), TestFailure> {
    let memory = kiln::memory::MemoryConfig { stack: "stats(heap)".parse().unwrap(), ..Default::default() };
    let runtime = kiln::RuntimeConfig { memory, ..Default::default() };
    let machine = MachineConfig::seeded(0).device(DeviceConfig::with_memory(64 << 20));
    SeededTest::new(0..2).machine(machine).runtime(runtime).run(|gpu| {
        assert_eq!(gpu.memory().to_string(), "stats(heap)");
        assert!(gpu.zeros::<u8>(128 << 20).unwrap_err().is_oom());
        copy(gpu, 0).map(drop)
    })
}
