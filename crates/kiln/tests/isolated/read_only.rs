//! Blocks that are mapped read-only.

use std::time::{Duration, Instant};

use kiln::recovery::{BlockOutcome, DeviceSpec, Process, SealError};
use kiln::telemetry::Count;
use kiln::{
    DeviceRuntime, GpuRef,
    error::{ErrorKind, Misuse},
};

use crate::wild::{self, WORDS, is_sealed, standing};
use crate::{kernels, rig};

fn open(seed: u64) -> DeviceRuntime {
    wild::open(&DeviceSpec::simulated(seed), rig::process())
}

fn refused(buffer: &GpuRef<u32>) -> SealError {
    match buffer.seal_read_only().unwrap_err().kind() {
        ErrorKind::Seal(error) => error.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_wild_write_into_a_read_only_block_is_a_fault_and_changes_nothing() {
    for standby in [false, true] {
        wild::run(&DeviceSpec::simulated(60), Process { standby, ..rig::process() }).unwrap();
    }
}

#[test]
fn a_write_to_a_sealed_block_is_refused_before_anything_is_queued() {
    let gpu = open(61);
    let contents: Vec<u32> = (0..WORDS as u32).collect();
    let (sealed, other) = (gpu.upload(&contents).unwrap(), gpu.zeros::<u32>(WORDS).unwrap());
    let copy = gpu.kernel(kernels::PTX, "copy").unwrap();
    let (overwrite, _) = gpu.record(|graph| graph.fill(&sealed, 9)).unwrap();
    // Everything that was to write it is waited for.
    let queued = sealed.fill(7).unwrap();
    sealed.seal_read_only().unwrap();
    assert!(queued.is_done().unwrap());
    sealed.seal_read_only().unwrap();
    let stream = gpu.stream().unwrap();
    let done = [Count::Launches, Count::Fills, Count::Uploads, Count::Copies, Count::Replays];
    let before = gpu.telemetry().snapshot();
    assert!(is_sealed(sealed.fill(1)));
    assert!(is_sealed(sealed.upload(&contents)));
    assert!(is_sealed(sealed.upload_on(&stream, &contents)));
    assert!(is_sealed(sealed.copy_from(&other)));
    assert!(is_sealed(sealed.view(5..6).unwrap().fill(1)), "a part of it is, too");
    assert!(is_sealed(sealed.record_write(&stream)));
    assert!(is_sealed(overwrite.replay()));
    // SAFETY: it touches one element of each, and is not queued.
    let refused = unsafe { gpu.launch(&copy).grid(1).block(1).read(&other).write(&sealed).submit() };
    let told = refused.as_ref().unwrap_err().to_string();
    assert!(told.contains("copy") && told.contains("argument 1"), "{told}");
    assert!(is_sealed(refused));
    let after = gpu.telemetry().snapshot();
    assert_eq!(done.map(|count| after.count(count)), done.map(|count| before.count(count)));
    // Reading goes on, on several streams.
    other.copy_from_on(&stream, &sealed).unwrap();
    // SAFETY: it touches one element of each.
    unsafe { gpu.launch(&copy).grid(1).block(1).read(&sealed).write(&other).submit() }.unwrap();
    assert_eq!((other.download().unwrap(), sealed.download().unwrap()), (vec![7; WORDS], vec![7; WORDS]));
    // A checksum of it can be had besides, and says more than that nothing may write it.
    sealed.seal().unwrap().wait().unwrap();
    let report = rig::kill(&gpu);
    assert_eq!(
        [standing(&report, &sealed), standing(&report, &other)],
        [BlockOutcome::Verified, BlockOutcome::Untouched]
    );
    sealed.unseal().unwrap();
    sealed.unseal().unwrap();
    overwrite.replay().unwrap();
    assert_eq!(sealed.download().unwrap(), vec![9; WORDS]);
    let report = rig::kill(&gpu);
    assert_eq!(standing(&report, &sealed), BlockOutcome::Untouched, "the checksum went with the seal");
}

#[test]
fn what_cannot_be_mapped_read_only_says_so_and_names_the_checksum() {
    let gpu = rig::open(62, rig::process());
    let shared = gpu.upload(&[1_u32; 1000]).unwrap();
    let error = refused(&shared);
    assert_eq!(error, SealError::SharedPages { block: shared.block_id(), bytes: 4000 });
    assert!(error.to_string().contains("`pages`") && error.to_string().contains("checksum"), "{error}");
    assert!(!shared.is_read_only());
    shared.fill(2).unwrap();
    assert_eq!(refused(&DeviceRuntime::simulated(1).unwrap().zeros(10).unwrap()), SealError::InProcess);

    // Memory of pages that was made for a larger block may be another's, too.
    let gpu = open(63);
    drop(gpu.zeros::<u32>(16 << 20).unwrap());
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    let small = gpu.upload(&vec![1_u32; WORDS]).unwrap();
    assert!(matches!(refused(&small), SealError::SharedPages { .. }));
    small.fill(2).unwrap();
    assert_eq!(small.download().unwrap(), vec![2; WORDS]);
    let view = small.view(0..10).unwrap().seal_read_only().unwrap_err();
    assert!(matches!(view.kind(), ErrorKind::Misuse(Misuse::PartOfBlock { .. })), "{view}");
    gpu.allocate::<u32>(0).unwrap().seal_read_only().unwrap();
}

#[test]
fn a_heap_block_of_whole_frames_can_be_sealed() {
    let gpu = rig::open(64, rig::process());
    // Which sizes make whole frames is the heap's business; the smallest that do are found here.
    let blocks: Vec<GpuRef<u32>> = (1..=16).map(|pages| gpu.zeros(pages << 19).unwrap()).collect();
    let (sealed, shared): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| block.seal_read_only().is_ok());
    let block = sealed.first().expect("a block of whole frames");
    let report = wild::go_astray(&gpu, block);
    for (blocks, expected) in [(&sealed, BlockOutcome::Sealed), (&shared, BlockOutcome::Untouched)] {
        assert!(blocks.iter().all(|block| standing(&report, block) == expected), "{report}");
    }
    assert!(block.download().unwrap().iter().all(|word| *word == 0));
    // Those that are not sealed can be written, whatever their neighbours are.
    for block in &shared {
        block.fill(3).unwrap();
    }
    gpu.synchronize().unwrap();
    assert_eq!(gpu.generation().0, 1);
}

#[test]
fn the_memory_of_a_sealed_block_can_be_written_by_its_next_owner() {
    let gpu = open(65);
    let address = |buffer: &GpuRef<u32>| buffer.access().unwrap().address;
    for round in 0..4 {
        let sealed = gpu.upload(&vec![round; WORDS]).unwrap();
        let place = address(&sealed);
        sealed.seal_read_only().unwrap();
        match round {
            0 => drop(sealed),
            // In a worker that took over, while none is there, and with readers under way.
            1 => {
                rig::kill(&gpu);
                drop(sealed);
            }
            2 => {
                let generation = gpu.generation().0;
                gpu.isolated_device().unwrap().kill_worker();
                drop(sealed);
                rig::recovered(&gpu, generation);
            }
            _ => {
                let copy = gpu.allocate::<u32>(WORDS).unwrap();
                copy.copy_from(&sealed).unwrap();
                drop(sealed);
                assert_eq!(copy.download().unwrap(), vec![round; WORDS]);
            }
        }
        gpu.synchronize().unwrap();
        // Who takes over holds every block for a moment longer than the device is lost.
        let begun = Instant::now();
        let next = loop {
            gpu.reap_pending().unwrap();
            let next = gpu.allocate::<u32>(WORDS).unwrap();
            if address(&next) == place {
                break next;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "round {round}: no stream gets the memory again"
            );
        };
        assert!(!next.is_read_only());
        next.fill(100 + round).unwrap();
        assert_eq!(next.download().unwrap(), vec![100 + round; WORDS]);
    }
}

#[test]
fn sealing_and_unsealing_from_many_threads_leaves_what_is_said() {
    let gpu = open(66);
    let buffer = gpu.upload(&vec![5_u32; WORDS]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let buffer = buffer.clone();
            scope.spawn(move || {
                for _ in 0..20 {
                    if thread == 0 {
                        buffer.unseal().unwrap();
                    } else {
                        buffer.seal_read_only().unwrap();
                    }
                    // Refused or done, and never a fault.
                    let written = buffer.fill(5);
                    assert!(written.is_ok() || is_sealed(written));
                }
            });
        }
    });
    gpu.synchronize().unwrap();
    assert_eq!(gpu.generation().0, 0, "nothing was lost");
    assert_eq!(buffer.download().unwrap(), vec![5; WORDS]);
    let report = rig::kill(&gpu);
    let expected = if buffer.is_read_only() { BlockOutcome::Sealed } else { BlockOutcome::Untouched };
    assert_eq!(standing(&report, &buffer), expected);
}
