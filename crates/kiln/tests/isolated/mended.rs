//! Blocks that are filled again, and blocks that are sealed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln::recovery::{BlockOutcome, PostMortem};
use kiln::{
    DeviceRuntime, GpuRef,
    buffer::Stale,
    error::{ErrorKind, Misuse},
};

use crate::{kernels, rig};

fn standing<T: kiln::buffer::Element>(report: &PostMortem, buffer: &GpuRef<T>) -> BlockOutcome {
    report.blocks.iter().find(|record| record.block == buffer.block_id()).unwrap().outcome
}

/// A kernel that never ends writes each of them, and its worker is killed.
fn spoil(gpu: &DeviceRuntime, buffers: &[&GpuRef<u32>]) -> Arc<PostMortem> {
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    for buffer in buffers {
        // SAFETY: it writes one element, for ever.
        unsafe { gpu.launch(&endless).grid(1).block(1).write(buffer).submit() }.unwrap();
    }
    rig::kill(gpu)
}

#[test]
fn what_is_lost_and_can_be_filled_again_is_healed() {
    let gpu = rig::open(40, rig::process());
    let mirrored: Vec<u32> = (0..2_000_000).collect();
    let [mirror, source, panics, wrong, plain] =
        [2_000_000, 10, 10, 10, 10].map(|len| gpu.zeros::<u32>(len).unwrap());
    let untouched = gpu.upload(&[6_u32]).unwrap();
    mirror.upload(&mirrored).unwrap();
    mirror.heal_with(&mirrored).unwrap();
    let calls = Arc::<AtomicUsize>::default();
    let counted = calls.clone();
    source.heal_by(move || vec![counted.fetch_add(1, Ordering::SeqCst) as u32 + 100; 10]).unwrap();
    panics.heal_by(|| panic!("as planned")).unwrap();
    wrong.heal_by(|| vec![1; 11]).unwrap();
    untouched.heal_by(|| panic!("no thread needs it")).unwrap();
    gpu.synchronize().unwrap();
    let old = mirror.clone();
    for round in 0..2 {
        let report = spoil(&gpu, &[&mirror, &source]);
        assert_eq!(
            [&mirror, &source].map(|buffer| standing(&report, buffer)),
            [BlockOutcome::Healed; 2],
            "{report}"
        );
        assert!(old.download().unwrap() == mirrored, "every handle holds it again");
        assert_eq!(source.download().unwrap(), [100 + round; 10]);
        assert!(report.to_string().contains("filled again"));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    let report = spoil(&gpu, &[&panics, &wrong, &plain]);
    for buffer in [&panics, &wrong, &plain] {
        assert_eq!((standing(&report, buffer), buffer.access()), (BlockOutcome::Touched, Err(Stale::Lost)));
    }
    assert_eq!(untouched.download().unwrap(), [6]);
    let part = untouched.heal_with(&[1, 2]).unwrap_err();
    assert!(matches!(part.kind(), ErrorKind::Misuse(Misuse::Length { .. })), "{part}");
    let view = mirror.view(0..4).unwrap().heal_with(&[0; 4]).unwrap_err();
    assert!(matches!(view.kind(), ErrorKind::Misuse(Misuse::PartOfBlock { .. })), "{view}");
}

#[test]
fn what_is_lost_is_usable_again_once_all_of_it_is_overwritten() {
    let gpu = rig::open(43, rig::process());
    let buffers = [0; 4].map(|_| gpu.zeros::<u32>(10).unwrap());
    let source = gpu.upload(&[9_u32; 10]).unwrap();
    gpu.synchronize().unwrap();
    for round in 1..3 {
        let [uploaded, filled, copied, view] = &buffers;
        spoil(&gpu, &[uploaded, filled, copied, view]);
        for buffer in &buffers {
            assert_eq!(buffer.access(), Err(Stale::Lost));
            assert!(buffer.download().unwrap_err().to_string().contains("overwrite all of it"));
        }
        // What is refused changes nothing.
        assert!(uploaded.upload(&[1; 3]).is_err());
        assert!(view.view(0..9).unwrap().fill(1).is_err(), "a part is not all of it");
        assert!(copied.copy_from(view).is_err());
        for buffer in &buffers {
            assert_eq!(buffer.access(), Err(Stale::Lost));
        }
        uploaded.upload(&[round; 10]).unwrap();
        filled.fill(round + 10).unwrap();
        copied.copy_from(&source).unwrap();
        view.fill_bytes(0).unwrap();
        assert_eq!(uploaded.download().unwrap(), [round; 10]);
        assert_eq!(filled.clone().download().unwrap(), [round + 10; 10]);
        assert_eq!((copied.download().unwrap(), view.download().unwrap()), (vec![9; 10], vec![0; 10]));
        assert!(buffers.iter().all(|buffer| buffer.loss().is_none() && buffer.access().is_ok()));
        // Kept by the next takeover: what was lost before has no say.
        rig::kill(&gpu);
        assert_eq!(uploaded.download().unwrap(), [round; 10]);
        assert_eq!(view.download().unwrap(), [0; 10]);
    }
}

#[test]
fn a_wild_write_into_a_sealed_block_is_found() {
    let gpu = rig::open(41, rig::process());
    let large: Vec<u32> = (0..1_500_000).collect();
    let [right, broken, mended] = [0, 1, 2].map(|_| gpu.upload(&large).unwrap());
    let (unsealed, rewritten) = (gpu.upload(&[5_u32]).unwrap(), gpu.upload(&[5_u32]).unwrap());
    for buffer in [&right, &broken, &mended, &rewritten] {
        buffer.seal().unwrap().wait().unwrap();
    }
    mended.heal_with(&large).unwrap();
    // A write that is waited for breaks the seal rightfully.
    rewritten.fill(6).unwrap().wait().unwrap();
    let wild = gpu.kernel(kernels::PTX, "wild").unwrap();
    let victims = [Some(&broken), Some(&mended), None];
    for (generation, victim) in (0..).zip(victims) {
        let declared = gpu.zeros::<u32>(1).unwrap();
        let elsewhere = match victim {
            Some(victim) => victim.access().unwrap().address.0 + 4 * 1_400_000,
            None => declared.access().unwrap().address.0,
        };
        let words = elsewhere as i64 - declared.access().unwrap().address.0 as i64;
        let words = i32::try_from(words / 4).unwrap();
        gpu.synchronize().unwrap();
        // SAFETY: it is not; that is the point.
        unsafe { gpu.launch(&wild).grid(1).block(1).write(&declared).value(words).submit() }.unwrap();
        let report = rig::recovered(&gpu, generation);
        assert_eq!(standing(&report, &right), BlockOutcome::Verified, "{report}");
        assert_eq!(standing(&report, &unsealed), BlockOutcome::Untouched);
        assert_eq!(
            standing(&report, &rewritten),
            BlockOutcome::Untouched,
            "its seal speaks of what it was before"
        );
        assert_eq!(standing(&report, &declared), BlockOutcome::Touched);
        match generation {
            0 => assert_eq!(
                (standing(&report, &broken), broken.access()),
                (BlockOutcome::Broken, Err(Stale::Lost))
            ),
            1 => assert_eq!(standing(&report, &mended), BlockOutcome::Healed, "{report}"),
            _ => {}
        }
        assert!(mended.download().unwrap() == large && right.download().unwrap() == large);
        assert_eq!((unsealed.download().unwrap(), rewritten.download().unwrap()), (vec![5], vec![6]));
    }
}
