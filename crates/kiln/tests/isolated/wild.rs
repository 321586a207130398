//! A block that is mapped read-only, and a kernel that goes astray into it; on any device.

use kiln::recovery::{BlockOutcome, DeviceSpec, Isolation, PostMortem, Process, SealError};
use kiln::{
    DeviceRuntime, Error, GpuRef, RuntimeConfig,
    buffer::Stale,
    error::{ErrorKind, Misuse},
    memory::MemoryConfig,
};

use crate::{kernels, rig};

/// Three pages of 2 MiB, the last not full.
pub(crate) const WORDS: usize = 1_500_000;

/// A runtime whose blocks own their pages.
pub(crate) fn open(backend: &DeviceSpec, process: Process) -> DeviceRuntime {
    let memory = MemoryConfig { stack: "pages".parse().unwrap(), ..MemoryConfig::default() };
    let isolation = Isolation::Process(process);
    DeviceRuntime::open(backend, RuntimeConfig { isolation, memory, ..RuntimeConfig::default() }).unwrap()
}

pub(crate) fn standing(report: &PostMortem, buffer: &GpuRef<u32>) -> BlockOutcome {
    report.blocks.iter().find(|record| record.block == buffer.block_id()).unwrap().outcome
}

pub(crate) fn is_sealed<T: std::fmt::Debug>(answer: Result<T, Error>) -> bool {
    matches!(answer.unwrap_err().kind(), ErrorKind::Misuse(Misuse::Sealed { .. }))
}

/// Has a kernel write its own block and then one that it did not declare, and waits for the takeover.
pub(crate) fn go_astray(gpu: &DeviceRuntime, into: &GpuRef<u32>) -> std::sync::Arc<PostMortem> {
    let wild = gpu.kernel(kernels::PTX, "wild").unwrap();
    let declared = gpu.zeros::<u32>(1).unwrap();
    gpu.synchronize().unwrap();
    let address = |buffer: &GpuRef<u32>| buffer.access().unwrap().address.0 as i64;
    let words =
        i32::try_from((address(into) + 4 * (into.len() as i64 - 100) - address(&declared)) / 4).unwrap();
    let generation = gpu.generation().0;
    // SAFETY: it is not; that is the point.
    let ticket =
        unsafe { gpu.launch(&wild).grid(1).block(1).write(&declared).value(words).submit() }.unwrap();
    assert!(ticket.wait().unwrap_err().is_lost());
    let report = rig::recovered(gpu, generation);
    assert_eq!(report.cause.kernel(), Some("wild"), "{report}");
    assert_eq!((standing(&report, &declared), declared.access()), (BlockOutcome::Touched, Err(Stale::Lost)));
    report
}

/// Seals a block read-only and has a kernel stray into it, twice; then opens it and writes it. Says whether the device can.
pub(crate) fn run(backend: &DeviceSpec, process: Process) -> Result<(), SealError> {
    let gpu = open(backend, process);
    let contents: Vec<u32> = (0..WORDS as u32).collect();
    let [sealed, open] = [0, 1].map(|_| gpu.upload(&contents).unwrap());
    match sealed.seal_read_only().map_err(|error| error.kind().clone()) {
        Ok(()) => {}
        Err(ErrorKind::Seal(error @ SealError::Unsupported { .. })) => {
            // Nothing is changed by that.
            assert!(!sealed.is_read_only());
            sealed.fill(3).unwrap();
            assert_eq!(sealed.download().unwrap(), vec![3; WORDS]);
            return Err(error);
        }
        Err(error) => panic!("{error}"),
    }
    for _ in 0..2 {
        let report = go_astray(&gpu, &sealed);
        assert_eq!(
            [standing(&report, &sealed), standing(&report, &open)],
            [BlockOutcome::Sealed, BlockOutcome::Untouched]
        );
        assert!(report.to_string().contains("sealed, read-only"), "{report}");
        assert!(sealed.download().unwrap() == contents && open.download().unwrap() == contents, "{report}");
        assert!(sealed.is_read_only() && is_sealed(sealed.fill(1)));
    }
    sealed.unseal().unwrap();
    sealed.fill(4).unwrap();
    assert_eq!(sealed.download().unwrap(), vec![4; WORDS]);
    // The same kernel writes it now, and nothing tells.
    let report = go_astray(&gpu, &sealed);
    assert_eq!(standing(&report, &sealed), BlockOutcome::Untouched);
    assert_eq!(sealed.download().unwrap()[WORDS - 100], 77);
    Ok(())
}
