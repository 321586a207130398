//! Plain memory: accounting, the pool, host blocks, and what is refused.

use std::sync::Arc;

use kiln_driver::{
    Command, DeviceAddress, DevicePlace, Driver, DriverExt, ForeignMemory, MemoryRequest, Object, Pattern,
    Place, Refusal, SharedBytes, StreamRequest,
};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

use crate::rig::{Kernel, Rig, bytes_of, config};

const MIB: u64 = 1 << 20;

fn small_memory(bytes: u64) -> MachineConfig {
    config(0).device(DeviceConfig::with_memory(bytes))
}

#[test]
fn what_is_allocated_is_gone_until_it_is_freed() {
    let rig = Rig::new(&Machine::new(small_memory(64 * MIB)), 1);
    let free = || rig.device.memory_info().unwrap().free_bytes;
    let before = free();
    let x = rig.direct(48 * MIB);
    assert_eq!(free(), before - 48 * MIB);
    let error = rig.device.allocate(MemoryRequest::Direct { bytes: 17 * MIB }).unwrap_err();
    assert!(error.is_oom(), "{error}");
    rig.device.free(x.id, None).unwrap();
    assert_eq!(free(), before);
    for bytes in [1 << 63, u64::MAX, 64 * MIB + 1] {
        assert!(rig.device.allocate(MemoryRequest::Direct { bytes }).unwrap_err().is_oom());
        let stream = rig.streams[0];
        assert!(rig.device.allocate(MemoryRequest::Pool { bytes, stream }).unwrap_err().is_oom());
    }
    assert!(rig.device.allocate_host(1 << 63).unwrap_err().is_oom());
    assert_eq!(free(), before);
    rig.close();
}

#[test]
fn a_device_larger_than_the_host_costs_what_is_used_of_it() {
    let rig = Rig::new(&Machine::new(small_memory(1 << 40)), 1);
    let x = rig.direct(512 << 30);
    let far = DevicePlace::from(x.id).plus((512 << 30) - 64);
    rig.device.fill(rig.streams[0], far, 5, 64).unwrap();
    let host = rig.host(64);
    rig.download(0, far, &host);
    rig.sync(0);
    assert_eq!(bytes_of(&host), [5; 64]);
    rig.device.free(x.id, None).unwrap();
    rig.close();
}

#[test]
fn the_pool_keeps_what_is_freed_until_it_is_trimmed() {
    let rig = Rig::new(&Machine::new(small_memory(64 * MIB)), 1);
    let free = || rig.device.memory_info().unwrap().free_bytes;
    let before = free();
    let x = rig.pool(0, 40 * MIB);
    rig.device.free(x.id, Some(rig.streams[0])).unwrap();
    rig.sync(0);
    assert_eq!(free(), before - 40 * MIB, "the pool holds it");
    assert!(rig.device.allocate(MemoryRequest::Direct { bytes: 30 * MIB }).unwrap_err().is_oom());
    let again = rig.pool(0, 40 * MIB);
    assert_eq!(free(), before - 40 * MIB, "and gives it out again");
    rig.device.trim_pool(0).unwrap();
    assert_eq!(free(), before - 40 * MIB, "what is used stays");
    rig.device.free(again.id, Some(rig.streams[0])).unwrap();
    rig.sync(0);
    rig.device.trim_pool(8 * MIB).unwrap();
    assert_eq!(free(), before - 8 * MIB);
    rig.device.trim_pool(0).unwrap();
    assert_eq!(free(), before);
    rig.close();
}

#[test]
fn under_pressure_queued_work_runs_until_its_frees_make_room() {
    for seed in 0..50 {
        let config = config(seed).device(DeviceConfig::with_memory(64 * MIB));
        let rig = Rig::new(&Machine::new(config), 2);
        for round in 0..10 {
            let stream = round % 2;
            let x = rig.pool(stream, 40 * MIB);
            rig.device.fill(rig.streams[stream], x.id.into(), 1, 64).unwrap();
            rig.device.free(x.id, Some(rig.streams[stream])).unwrap();
        }
        let machine = rig.machine.clone();
        rig.close();
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn frees_want_a_stream_for_pool_memory_and_none_for_the_rest() {
    let rig = Rig::seeded(0, 1);
    let (direct, pool) = (rig.direct(64), rig.pool(0, 64));
    let stream = Some(rig.streams[0]);
    assert!(rig.device.free(direct.id, stream).unwrap_err().is_refused());
    assert!(rig.device.free(pool.id, None).unwrap_err().is_refused());
    rig.device.free(direct.id, None).unwrap();
    rig.device.free(pool.id, stream).unwrap();
    rig.close();
}

#[test]
fn memory_of_others_gets_a_name_if_it_is_there() {
    let rig = Rig::seeded(0, 1);
    let x = rig.block(64);
    // SAFETY: the machine checks addresses against its own map.
    let foreign = |address, bytes| unsafe { ForeignMemory::new(DeviceAddress(address), bytes) };
    let adopt = |address, bytes| rig.device.allocate(MemoryRequest::Foreign(foreign(address, bytes)));
    assert!(adopt(x.address.0 + 32, 64).unwrap_err().is_refused());
    assert!(adopt(16, 64).unwrap_err().is_refused());
    assert!(adopt(u64::MAX - 3, 64).unwrap_err().is_refused());
    let part = adopt(x.address.0 + 32, 32).unwrap();
    rig.device.fill(rig.streams[0], x.id.into(), 1, 64).unwrap();
    rig.device.fill(rig.streams[0], part.id.into(), 2, 32).unwrap();
    let host = rig.host(64);
    rig.download(0, x.id, &host);
    rig.sync(0);
    assert_eq!(bytes_of(&host), [[1; 32], [2; 32]].concat());
    rig.device.free(part.id, None).unwrap();
    rig.close();
}

#[test]
fn host_memory_is_registered_once_at_a_time() {
    let rig = Rig::seeded(0, 1);
    let bytes = Arc::new(SharedBytes::zeroed(64));
    let host = rig.device.register_host(bytes.clone()).unwrap();
    let error = rig.device.register_host(bytes.clone()).unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Busy { .. })), "{error}");
    assert!(rig.device.register_host(Arc::new(SharedBytes::zeroed(0))).unwrap_err().is_refused());
    let x = rig.block(64);
    assert!(bytes.write(0, &[3; 64]));
    rig.upload(0, &host, x.id);
    rig.sync(0);
    rig.device.destroy(Object::Host(host.id())).unwrap();
    let again = rig.device.register_host(bytes).unwrap();
    rig.download(0, x.id, &again);
    rig.sync(0);
    assert_eq!(bytes_of(&again), [3; 64]);
    rig.device.destroy(again.id().into()).unwrap();
    rig.close();
}

#[test]
fn a_host_block_outlives_its_device() {
    let host = {
        let rig = Rig::seeded(0, 1);
        let host = rig.device.allocate_host(16).unwrap();
        assert!(host.write(0, &[8; 16]));
        host
    };
    assert_eq!(bytes_of(&host), [8; 16]);
}

#[test]
fn ranges_and_handles_that_do_not_fit_are_refused_and_nothing_happens() {
    let machine = Machine::new(config(0).device(DeviceConfig::default()).device(DeviceConfig::default()));
    let (rig, other) = (Rig::on(&machine, 0, 1), Rig::on(&machine, 1, 1));
    let (x, y, foreign, host) = (rig.block(64), rig.block(64), other.block(64), rig.host(64));
    let stream = rig.streams[0];
    let copy = |from, to, bytes| rig.device.submit(stream, &Command::Copy { from, to, bytes });
    let device =
        |memory: kiln_driver::DeviceMemory, offset| Place::Device(DevicePlace::from(memory.id).plus(offset));
    let in_host = |offset| Place::Host { block: host.id(), offset };

    let out_of_range = [
        copy(device(x, 1), device(y, 0), 64),
        copy(device(x, u64::MAX), device(y, 0), 1),
        copy(device(x, 0), device(y, 0), 1 << 63),
        copy(in_host(1), device(y, 0), 64),
        copy(device(x, 0), in_host(65), 0),
        rig.device.fill(stream, x.id.into(), 1, 65),
    ];
    for answer in out_of_range {
        let error = answer.unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::OutOfRange { .. })), "{error}");
    }
    let foreign_handles = [
        copy(device(foreign, 0), device(y, 0), 1),
        copy(Place::Peer(x.id.into()), device(y, 0), 1),
        rig.device.submit(other.streams[0], &Command::Signal(rig.event())),
        rig.device.submit(stream, &Command::Wait(other.event())),
    ];
    for answer in foreign_handles {
        let error = answer.unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Foreign { .. })), "{error}");
    }
    assert!(copy(device(x, 0), device(x, 32), 33).unwrap_err().is_refused(), "the ranges overlap");
    let unaligned = Command::Fill { to: DevicePlace::from(x.id).plus(2), pattern: Pattern::U32(1), count: 1 };
    assert!(rig.device.submit(stream, &unaligned).unwrap_err().is_refused());
    let overflowing = Command::Fill { to: x.id.into(), pattern: Pattern::U32(1), count: u64::MAX };
    assert!(rig.device.submit(stream, &overflowing).unwrap_err().is_refused());
    assert!(rig.device.allocate(MemoryRequest::Direct { bytes: 0 }).unwrap_err().is_refused());
    assert!(rig.device.allocate_host(0).unwrap_err().is_refused());
    let too_urgent = StreamRequest::New { priority: -6 };
    assert!(rig.device.create_stream(too_urgent).unwrap_err().is_refused());

    copy(device(x, 0), device(y, 64), 0).unwrap();
    rig.device.fill(stream, DevicePlace::from(x.id).plus(64), 1, 0).unwrap();
    rig.sync(0);
    assert_eq!(machine.timeline().len(), 2, "only the two empty ones ran");
    other.close();
    rig.close();
    assert!(machine.finish().is_clean());
}

#[test]
fn bytes_go_from_device_to_device() {
    for seed in 0..20 {
        let config = config(seed).device(DeviceConfig::default()).device(DeviceConfig::small());
        let machine = Machine::new(config);
        let (here, there) = (Rig::on(&machine, 0, 1), Rig::on(&machine, 1, 1));
        let (x, y) = (here.block(64), there.block(64));
        here.write(0, x, 3);
        let (from, to) = (Place::Device(x.id.into()), Place::Peer(y.id.into()));
        here.device.submit(here.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
        here.sync(0);
        there.bump(0, y);
        let host = there.host(64);
        there.download(0, y.id, &host);
        there.sync(0);
        assert_eq!(bytes_of(&host), [4; 64]);
        there.close();
        here.close();
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn work_queued_on_a_destroyed_stream_still_runs() {
    for seed in 0..50 {
        let rig = Rig::seeded(seed, 1);
        let x = rig.block(64);
        let event = rig.event();
        let stream = rig.device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        rig.device.fill(stream, x.id.into(), 6, 64).unwrap();
        rig.device.submit(stream, &Command::Signal(event)).unwrap();
        rig.device.destroy(stream.into()).unwrap();
        assert!(rig.device.fill(stream, x.id.into(), 7, 64).unwrap_err().is_refused());
        rig.wait(0, event);
        let host = rig.host(64);
        rig.download(0, x.id, &host);
        rig.sync(0);
        assert_eq!(bytes_of(&host), [6; 64]);
        let machine = rig.machine.clone();
        rig.close();
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn kernels_of_all_devices_reach_registered_memory_that_is_mapped() {
    let config = config(1).device(DeviceConfig::default()).device(DeviceConfig::default());
    let machine = Machine::new(config);
    let (first, second) = (Rig::on(&machine, 0, 1), Rig::on(&machine, 1, 1));
    let bytes = Arc::new(SharedBytes::zeroed(64));
    assert!(bytes.write(0, &[5; 64]));
    let block = first.device.register_host(bytes.clone()).unwrap();
    let start = machine.map_host(0, block.id()).unwrap().0;
    assert_eq!(start, bytes.as_ptr().addr() as u64);
    assert!(machine.map_host(0, block.id()).unwrap_err().is_refused(), "it is mapped");
    // Nothing counts as never written, and what the host writes is what a kernel reads.
    first.launch(0, Kernel::Bump, &[start, 32]).unwrap();
    first.sync(0);
    second.launch(0, Kernel::Bump, &[start + 16, 32]).unwrap();
    second.sync(0);
    let mut back = [0; 64];
    assert!(bytes.read(0, &mut back));
    assert_eq!(back, std::array::from_fn(|at| [6, 7, 6, 5][at / 16]));
    assert_eq!(machine.findings().len(), 0, "{:?}", machine.findings());
    assert!(machine.map_host(1, block.id()).unwrap_err().is_refused(), "it is a block of device 0");
    assert!(machine.map_host(2, block.id()).unwrap_err().is_refused());

    first.device.destroy(block.id().into()).unwrap();
    first.launch(0, Kernel::Bump, &[start, 1]).unwrap();
    assert!(first.device.synchronize(first.streams[0]).unwrap_err().is_sticky());
    // The same memory can be registered again, and its addresses come with it.
    let again = second.device.register_host(bytes).unwrap();
    assert_eq!(machine.map_host(1, again.id()).unwrap().0, start);
}

#[test]
fn a_kernel_and_a_copy_on_mapped_host_memory_are_a_race_unless_they_are_ordered() {
    let rig = Rig::seeded(1, 2);
    let bytes = Arc::new(SharedBytes::zeroed(64));
    let block = rig.device.register_host(bytes).unwrap();
    let start = rig.machine.map_host(0, block.id()).unwrap().0;
    let memory = rig.block(64);
    rig.write(0, memory, 1);
    rig.sync(0);
    rig.download(0, memory.id, &block);
    rig.launch(1, Kernel::Bump, &[start, 64]).unwrap();
    rig.sync(0);
    rig.sync(1);
    assert!(!rig.machine.findings().is_empty());
}
