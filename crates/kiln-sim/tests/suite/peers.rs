//! Two devices of one machine: copies between them, waits for each other's events, and one of them lost.

use std::time::Duration;

use kiln_driver::{
    Code, Command, Driver, DriverExt, EventId, EventRequest, ForeignHandle, Place, StreamRequest, Timeout,
    WaitTarget,
};
use kiln_sim::{DeviceConfig, DeviceLink, FaultPlan, FindingKind, Links, Machine, PlannedFault};

use crate::rig::{Rig, bytes_of, config};

fn machine(seed: u64, links: Links, faults: FaultPlan) -> Machine {
    let config = config(seed).device(DeviceConfig::default()).device(DeviceConfig::default());
    Machine::new(config.links(links).faults(faults))
}

fn pair(machine: &Machine) -> (Rig, Rig) {
    (Rig::on(machine, 0, 1), Rig::on(machine, 1, 1))
}

/// A name at `there` for an event of `here`.
fn named_there(here: &Rig, event: EventId, there: &Rig) -> EventId {
    let native = here.device.native(event.into()).unwrap();
    // SAFETY: the number was told for an event of the same machine, which lives until the rig is closed.
    let handle = unsafe { ForeignHandle::new(native) };
    there.device.create_event(EventRequest::Foreign(handle)).unwrap()
}

/// Pulls 64 bytes from one device to the other, ordered on both sides if asked.
fn exchange(seed: u64, ordered: bool) -> (Vec<u8>, Machine) {
    let machine = machine(seed, Links::all(), FaultPlan::none());
    let (here, there) = pair(&machine);
    let (x, y) = (here.block(64), there.block(64));
    let (ready, done) = (here.event(), there.event());
    let names = (named_there(&here, ready, &there), named_there(&there, done, &here));
    let submit = |rig: &Rig, command| rig.device.submit(rig.streams[0], &command).unwrap();
    here.write(0, x, 3);
    submit(&here, Command::Signal(ready));
    if ordered {
        submit(&there, Command::Wait(names.0));
    }
    let (from, to) = (Place::Peer(x.id.into()), Place::Device(y.id.into()));
    submit(&there, Command::Copy { from, to, bytes: 64 });
    submit(&there, Command::Signal(done));
    if ordered {
        submit(&here, Command::Wait(names.1));
    }
    here.write(0, x, 9);
    let host = there.host(64);
    there.download(0, y.id, &host);
    there.sync(0);
    here.sync(0);
    let bytes = bytes_of(&host);
    there.device.destroy(names.0.into()).unwrap();
    here.device.destroy(names.1.into()).unwrap();
    there.close();
    here.close();
    (bytes, machine)
}

#[test]
fn a_stream_waits_for_an_event_of_another_device() {
    for seed in 0..50 {
        let (bytes, machine) = exchange(seed, true);
        assert_eq!(bytes, [3; 64], "seed {seed}");
        let report = machine.finish();
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

#[test]
fn without_the_waits_the_copy_races_under_every_seed() {
    for seed in 0..20 {
        let (_, machine) = exchange(seed, false);
        let findings = machine.findings();
        let races = [FindingKind::ReadAfterWrite, FindingKind::WriteAfterRead];
        assert!(findings.iter().any(|finding| races.contains(&finding.kind)), "seed {seed}: {findings:?}");
    }
}

#[test]
fn a_number_that_names_no_event_of_the_machine_is_refused() {
    let (first, second) =
        (machine(1, Links::all(), FaultPlan::none()), machine(1, Links::all(), FaultPlan::none()));
    let (here, there) = (Rig::on(&first, 1, 1), Rig::on(&second, 0, 1));
    let native = here.device.native(here.event().into()).unwrap();
    // SAFETY: a simulated device looks the number up and uses it for nothing else.
    let handle = unsafe { ForeignHandle::new(native) };
    assert!(there.device.create_event(EventRequest::Foreign(handle)).unwrap_err().is_refused());
    // A stream belongs to its device alone.
    let native = here.device.native(here.streams[0].into()).unwrap();
    let other = Rig::on(&first, 0, 1);
    // SAFETY: as above.
    let handle = unsafe { ForeignHandle::new(native) };
    assert!(other.device.create_stream(StreamRequest::Foreign(handle)).unwrap_err().is_refused());
}

#[test]
fn devices_that_are_not_connected_refuse_copies_and_others_do_not() {
    let links = Links::all().without(0, 1);
    let config = config(1);
    let config = (0..3).fold(config, |config, _| config.device(DeviceConfig::default()));
    let machine = Machine::new(config.links(links));
    let rigs: Vec<_> = (0..3).map(|ordinal| Rig::on(&machine, ordinal, 1)).collect();
    let blocks: Vec<_> = rigs.iter().map(|rig| rig.block(64)).collect();
    rigs.iter().zip(&blocks).for_each(|(rig, block)| rig.write(0, *block, 1));
    rigs.iter().for_each(|rig| rig.sync(0));
    let copy = |on: usize, from: usize| {
        let (from, to) = (Place::Peer(blocks[from].id.into()), Place::Device(blocks[on].id.into()));
        rigs[on].device.submit(rigs[on].streams[0], &Command::Copy { from, to, bytes: 64 })
    };
    for (on, from) in [(0, 1), (1, 0)] {
        let error = copy(on, from).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("not connected"), "{error}");
    }
    copy(2, 0).unwrap();
    rigs[2].sync(0);
    copy(1, 2).unwrap();
    rigs[1].sync(0);
}

#[test]
fn a_faster_link_takes_less_time() {
    let time = |link| {
        let machine = machine(1, Links::none().with(1, 0, link), FaultPlan::none());
        let (here, there) = pair(&machine);
        let (x, y) = (here.block(1 << 20), there.block(1 << 20));
        here.write(0, x, 1);
        here.sync(0);
        let (from, to) = (Place::Peer(x.id.into()), Place::Device(y.id.into()));
        there.device.submit(there.streams[0], &Command::Copy { from, to, bytes: 1 << 20 }).unwrap();
        there.sync(0);
        let span = machine.timeline().last().cloned().unwrap();
        (span.end - span.start).as_nanos()
    };
    assert_eq!(time(DeviceLink { bytes_per_us: 1 << 20, latency_ns: 500 }), 1_500);
    assert!(time(DeviceLink::PCIE) > time(DeviceLink::NVLINK));
}

#[test]
fn a_lost_device_does_not_stop_those_that_wait_for_it() {
    for seed in 0..20 {
        let faults = FaultPlan::none().on(0, PlannedFault::Sticky { launch: 1, code: Code::LAUNCH_FAILED });
        let machine = machine(seed, Links::all(), faults);
        let (here, there) = pair(&machine);
        let (x, y) = (here.block(64), there.block(64));
        let ready = here.event();
        let name = named_there(&here, ready, &there);
        there.write(0, y, 5);
        here.write(0, x, 3);
        here.device.submit(here.streams[0], &Command::Signal(ready)).unwrap();
        there.device.submit(there.streams[0], &Command::Wait(name)).unwrap();
        let (from, to) = (Place::Peer(x.id.into()), Place::Device(y.id.into()));
        there.device.submit(there.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
        let host = there.host(64);
        there.download(0, y.id, &host);
        let waited = there
            .device
            .wait(WaitTarget::Stream(there.streams[0]), Timeout::After(Duration::from_secs(1)))
            .unwrap();
        assert!(waited.is_done(), "seed {seed}");
        assert!(
            here.device.wait(WaitTarget::Stream(here.streams[0]), Timeout::Never).unwrap_err().is_sticky()
        );
        // The copy moved nothing, and what reads its destination is told.
        let kinds: Vec<_> = machine.findings().into_iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Uninitialised], "seed {seed}");
    }
}

/// A machine whose device 1 reaches the memory of device 0, with a rig for each.
fn reaching(seed: u64) -> (Rig, Rig, Machine) {
    let machine = machine(seed, Links::all(), FaultPlan::none());
    let (here, there) = pair(&machine);
    machine.enable_peer_access(1, 0).unwrap();
    (here, there, machine)
}

#[test]
fn a_kernel_reaches_memory_of_another_device_once_that_is_enabled() {
    for seed in 0..8 {
        let (here, there, machine) = reaching(seed);
        let x = here.block(64);
        there.write(0, x, 7);
        there.sync(0);
        let host = here.host(64);
        here.download(0, x.id, &host);
        here.sync(0);
        assert_eq!(bytes_of(&host), [7; 64]);
        // The other direction was not enabled, nor is this one any more.
        machine.disable_peer_access(1, 0).unwrap();
        assert_eq!(machine.findings().len(), 0, "seed {seed}: {:?}", machine.findings());
        there.write(0, x, 8);
        let error = there.device.synchronize(there.streams[0]).unwrap_err();
        assert_eq!(error.code(), Some(Code::ILLEGAL_ADDRESS), "{error}");
    }
}

#[test]
fn kernels_of_two_devices_on_one_block_are_a_race_unless_they_are_ordered() {
    let (here, there, machine) = reaching(1);
    let x = here.block(64);
    here.write(0, x, 1);
    there.write(0, x, 2);
    here.sync(0);
    there.sync(0);
    assert!(
        machine.findings().iter().any(|found| found.kind == FindingKind::WriteAfterWrite),
        "{:?}",
        machine.findings()
    );
    there.close();
    here.close();
}

#[test]
fn devices_that_are_not_connected_do_not_reach_each_other() {
    let machine = machine(0, Links::none(), FaultPlan::none());
    assert!(!machine.can_access_peer(0, 1) && machine.enable_peer_access(0, 1).unwrap_err().is_unsupported());
    let machine = self::machine(0, Links::all(), FaultPlan::none());
    assert!(
        machine.can_access_peer(0, 1) && !machine.can_access_peer(0, 0) && !machine.can_access_peer(0, 2)
    );
    assert!(machine.enable_peer_access(0, 0).unwrap_err().is_refused());
    assert!(machine.enable_peer_access(0, 2).unwrap_err().is_refused());
}
