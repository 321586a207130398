//! Memory that is mapped on every device.

use kiln::DeviceRuntime;
use kiln::group::{DeviceGroup, GroupError};
use kiln::sim::{DeviceConfig, FaultPlan, Links, Machine, MachineConfig};

use crate::rig::Rig;

#[test]
fn every_device_sees_what_one_wrote_and_was_ordered_before() {
    for seed in 0..40 {
        let rig = Rig::new(3, seed);
        let shared = rig.group.share::<u32>(1, 1000).unwrap();
        assert_eq!((shared.owner(), shared.len(), shared.is_empty()), (1, 1000, false));
        shared.on(0).unwrap().fill(7).unwrap();
        for reader in 1..3 {
            shared.order(0, reader).unwrap();
            assert_eq!(shared.on(reader).unwrap().download().unwrap(), [7; 1000], "seed {seed}");
        }
        shared.on(2).unwrap().view(500..).unwrap().fill(8).unwrap();
        shared.order(2, 0).unwrap();
        shared.order(1, 0).unwrap();
        let stream = rig.group.runtime(0).unwrap().stream().unwrap();
        shared.on(0).unwrap().view(..10).unwrap().fill_on(&stream, 9).unwrap();
        let all = shared.on(0).unwrap().download().unwrap();
        assert!(all[..10] == [9; 10] && all[10..500] == [7; 490] && all[500..] == [8; 500], "seed {seed}");
        drop((shared, stream));
        rig.finish();
    }
}

#[test]
fn devices_that_do_not_reach_the_memory_are_refused() {
    // Device 2 has no link to device 1.
    let rig = Rig::with(3, 1, Links::all().without(1, 2), FaultPlan::none());
    let error = rig.group.share::<u32>(1, 1000).unwrap_err();
    assert!(matches!(error, GroupError::NotReached { index: 2, owner: 1, .. }), "{error}");
    assert!(error.to_string().contains("copy between two buffers"), "{error}");
    drop(rig.group.share::<u32>(0, 1000).unwrap());
    rig.finish();
    // Two machines have no memory in common.
    let gpus = [1, 2].map(|seed| DeviceRuntime::simulated(seed).unwrap());
    let error = DeviceGroup::new(gpus).unwrap().share::<u32>(0, 4).unwrap_err();
    assert!(matches!(error, GroupError::NotReached { index: 1, owner: 0, .. }), "{error}");
}

#[test]
fn uses_that_nothing_orders_are_found() {
    for seed in 0..10 {
        let rig = Rig::new(2, seed);
        let shared = rig.group.share::<u32>(0, 64).unwrap();
        shared.on(0).unwrap().fill(7).unwrap();
        let told = shared.on(1).unwrap().download();
        rig.group.synchronize().ok();
        let findings = rig.machine.findings();
        assert!(told.is_err() || !findings.is_empty(), "seed {seed}");
        assert!(!findings.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_device_without_pages_is_named() {
    let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::small());
    let rig = Rig::over(Machine::new(config));
    let error = rig.group.share::<u32>(0, 64).unwrap_err();
    assert!(matches!(error, GroupError::NoSharedPages { index: 1 }), "{error}");
    // It is in the group for everything else.
    let from = rig.group.runtime(0).unwrap().upload(&[1_u8; 5]).unwrap();
    let to = rig.group.runtime(1).unwrap().zeros::<u8>(5).unwrap();
    rig.group.copy(&from, &to).unwrap();
    assert_eq!(to.download().unwrap(), [1; 5]);
    drop((from, to));
    rig.finish();
}

#[test]
fn sizes_and_devices_that_cannot_be_are_refused() {
    let rig = Rig::new(2, 1);
    for len in [0, usize::MAX] {
        let error = rig.group.share::<u64>(0, len).unwrap_err();
        assert!(matches!(error, GroupError::SharedSize { element_bytes: 8, .. }), "{error}");
    }
    let error = rig.group.share::<u64>(2, 1).unwrap_err();
    assert!(matches!(error, GroupError::NoSuchDevice { index: 2, len: 2 }), "{error}");
    let error = rig.group.share::<u8>(1, 1 << 40).unwrap_err();
    assert!(error.is_oom() && error.device() == Some(1), "{error}");
    let shared = rig.group.share::<u8>(0, 1).unwrap();
    assert!(matches!(shared.on(2), Err(GroupError::NoSuchDevice { index: 2, len: 2 })));
    assert!(matches!(shared.order(0, 2), Err(GroupError::NoSuchDevice { .. })));
    shared.order(1, 1).unwrap().wait().unwrap();
    drop(shared);
    rig.finish();
}

#[test]
fn memory_that_is_dropped_while_a_device_writes_it_goes_when_that_is_done() {
    for seed in 0..8 {
        let rig = Rig::new(3, seed);
        let shared = rig.group.share::<u32>(0, 1 << 16).unwrap();
        let streams = [1, 2].map(|at| rig.group.runtime(at).unwrap().stream().unwrap());
        shared.on(1).unwrap().fill_on(&streams[0], 7).unwrap();
        shared.order(1, 2).unwrap();
        shared.on(2).unwrap().fill_on(&streams[1], 8).unwrap();
        drop((shared, streams));
        rig.finish();
    }
}
