//! Copies between devices: what they leave, what they are ordered with, and what is refused.

use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceGroup, GroupError, PeerAccess, Reduction};
use kiln::sim::{DeviceConfig, FaultPlan, Links, Machine, MachineConfig};

use crate::rank_scenes::{await_loss, begun, lose};
use crate::rig::Rig;

const LEN: usize = 64;
/// Enough for two threads to meet between their two devices.
const COPIES: usize = 600;

/// Two devices, connected or not.
fn pair(seed: u64, connected: bool) -> Rig {
    let links = if connected { Links::all() } else { Links::none() };
    Rig::with(2, seed, links, FaultPlan::none())
}

#[test]
fn a_copy_comes_after_the_writer_of_its_source_and_before_the_next_one() {
    for (seed, connected) in (0..60).zip([true, true, false].into_iter().cycle()) {
        let rig = pair(seed, connected);
        let (a, b) = (rig.group.runtime(0).unwrap(), rig.group.runtime(1).unwrap());
        let (from, to) = (a.zeros::<u32>(LEN).unwrap(), b.zeros::<u32>(LEN).unwrap());
        let (writer, reader) = (a.stream().unwrap(), b.stream().unwrap());
        from.fill_on(&writer, 3).unwrap();
        rig.group.copy(&from, &to).unwrap();
        from.fill_on(&writer, 4).unwrap();
        let copy = b.zeros::<u32>(LEN).unwrap();
        copy.copy_from_on(&reader, &to).unwrap();
        to.fill_on(&reader, 5).unwrap();
        rig.group.copy(&to, &from).unwrap();
        assert_eq!(copy.download().unwrap(), [3; LEN], "seed {seed}");
        assert_eq!(from.download().unwrap(), [5; LEN], "seed {seed}");
        drop((from, to, copy, writer, reader));
        rig.finish();
    }
}

#[test]
fn a_direct_copy_does_not_wait() {
    let rig = pair(1, true);
    let (a, b) = (rig.group.runtime(0).unwrap(), rig.group.runtime(1).unwrap());
    assert_eq!(rig.group.peer_access(0, 1).unwrap(), PeerAccess::Direct);
    let (from, to) = (a.zeros::<u8>(LEN).unwrap(), b.zeros::<u8>(LEN).unwrap());
    let before = rig.machine.timeline().len();
    let ticket = rig.group.copy(&from, &to).unwrap();
    assert_eq!(rig.machine.timeline().len(), before, "nothing runs before a wait");
    assert!(ticket.wait_within(Duration::from_secs(1)).unwrap() && ticket.is_done().unwrap());
    assert_eq!(ticket.parts().iter().map(|(device, _)| *device).collect::<Vec<_>>(), [1, 0]);
    drop((from, to));
    rig.finish();
}

#[test]
fn views_and_empty_buffers_are_copied_and_the_same_device_is_no_exception() {
    let rig = pair(2, true);
    let (a, b) = (rig.group.runtime(0).unwrap(), rig.group.runtime(1).unwrap());
    let (from, to) = (a.upload(&[1_u16, 2, 3, 4]).unwrap(), b.upload(&[9_u16; 4]).unwrap());
    rig.group.copy(&from.view(1..3).unwrap(), &to.view(2..4).unwrap()).unwrap().wait().unwrap();
    assert_eq!(to.download().unwrap(), [9, 9, 2, 3]);
    rig.group.copy(&from.view(0..0).unwrap(), &to.view(4..4).unwrap()).unwrap().wait().unwrap();
    rig.group.copy(&from.view(0..1).unwrap(), &from.view(3..4).unwrap()).unwrap().wait().unwrap();
    assert_eq!(from.download().unwrap(), [1, 2, 3, 1]);
    drop((from, to));
    rig.finish();
}

#[test]
fn copies_in_opposite_directions_from_many_threads_all_end() {
    for connected in [true, false] {
        let rig = pair(7, connected);
        let group = &rig.group;
        let x = group.runtime(0).unwrap().upload(&[1_u32; LEN]).unwrap();
        let y = group.runtime(1).unwrap().upload(&[1_u32; LEN]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (x, y) = (x.clone(), y.clone());
                scope.spawn(move || {
                    for _ in 0..COPIES {
                        let (from, to) = if thread % 2 == 0 { (&x, &y) } else { (&y, &x) };
                        group.copy(from, to).unwrap();
                    }
                });
            }
        });
        group.synchronize().unwrap();
        assert_eq!((x.download().unwrap(), y.download().unwrap()), (vec![1; LEN], vec![1; LEN]));
        drop((x, y));
        rig.finish();
    }
}

#[test]
fn the_matrix_says_how_each_copy_goes() {
    let links = Links::all().without(0, 2);
    let rig = Rig::with(3, 1, links, FaultPlan::none());
    let peers = rig.group.peers();
    assert_eq!(
        peers.to_string(),
        "from\\to      0      1      2\n      0      - direct   host\n      1 direct      - direct\n      2   host direct      -"
    );
    assert_eq!((peers.len(), peers.access(0, 0)), (3, Some(&PeerAccess::SameDevice)));
    let Some(PeerAccess::ThroughHost { why }) = peers.access(2, 0) else { panic!("{peers:?}") };
    assert!(why.contains("not connected"), "{why}");
    assert_eq!((peers.access(0, 3), peers.access(3, 0)), (None, None));
    rig.finish();
}

#[test]
fn devices_of_two_machines_copy_through_the_host() {
    let machines = [1, 2].map(|seed| Machine::new(MachineConfig::seeded(seed)));
    let runtimes = machines
        .each_ref()
        .map(|machine| DeviceRuntime::from_driver(machine.device(0).unwrap(), Default::default()).unwrap());
    let group = DeviceGroup::new(runtimes).unwrap();
    assert!(!group.peer_access(0, 1).unwrap().is_direct());
    let (from, to) = (
        group.runtime(0).unwrap().upload(&[7_i64, 8]).unwrap(),
        group.runtime(1).unwrap().zeros::<i64>(2).unwrap(),
    );
    group.copy(&from, &to).unwrap().wait().unwrap();
    assert_eq!(to.download().unwrap(), [7, 8]);
    drop((group, from, to));
    for machine in machines {
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_copied() {
    let rig = pair(3, true);
    let other = pair(4, true);
    let group = &rig.group;
    let (a, b) = (group.runtime(0).unwrap(), group.runtime(1).unwrap());
    let (from, to) = (a.upload(&[1_u32; 8]).unwrap(), b.upload(&[2_u32; 8]).unwrap());
    let foreign = other.group.runtime(0).unwrap().upload(&[3_u32; 8]).unwrap();

    let short = to.view(0..7).unwrap();
    let error = group.copy(&from, &short).unwrap_err();
    assert!(matches!(error, GroupError::Length { source_len: 8, destination_len: 7 }), "{error}");
    let error = group.copy(&foreign, &to).unwrap_err();
    assert!(matches!(error, GroupError::NotInGroup { what: "source" }), "{error}");
    let error = group.copy(&from, &foreign).unwrap_err();
    assert!(matches!(error, GroupError::NotInGroup { what: "destination" }), "{error}");
    let overlapping = group.copy(&from.view(0..4).unwrap(), &from.view(2..6).unwrap()).unwrap_err();
    assert_eq!(overlapping.device(), Some(0));
    let text = format!("{overlapping} {:?}", std::error::Error::source(&overlapping));
    assert!(text.contains("the source and the destination of the copy share bytes"), "{text}");
    for error in [group.runtime(2).unwrap_err(), group.peer_access(0, 2).unwrap_err()] {
        assert!(matches!(error, GroupError::NoSuchDevice { index: 2, len: 2 }), "{error}");
    }
    assert_eq!((from.download().unwrap(), to.download().unwrap()), (vec![1; 8], vec![2; 8]));
    // As an error of kiln it keeps its type.
    let error: kiln::Error = group.copy(&from, &short).unwrap_err().into();
    assert!(matches!(error.downcast_ref(), Some(GroupError::Length { .. })), "{error}");
    drop((from, to, short, foreign));
    rig.finish();
    other.finish();
}

#[test]
fn a_group_has_each_device_once_and_at_least_one() {
    assert!(matches!(DeviceGroup::new([]), Err(GroupError::NoDevices)));
    let machine = Machine::new(MachineConfig::seeded(1).device(DeviceConfig::default()));
    let open = || DeviceRuntime::from_driver(machine.device(0).unwrap(), Default::default()).unwrap();
    let error = DeviceGroup::new([open(), open()]).unwrap_err();
    assert!(matches!(error, GroupError::Twice { first: 0, second: 1 }), "{error}");
    let group = DeviceGroup::new([open()]).unwrap();
    assert_eq!((group.len(), group.is_empty(), group.ready()), (1, false, vec![0]));
    assert_eq!(group.peer_access(0, 0).unwrap(), PeerAccess::SameDevice);
}

#[test]
fn a_device_without_streams_left_says_so() {
    let machine = Machine::new(
        MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default()),
    );
    let config = kiln::RuntimeConfig { max_streams: 1, ..Default::default() };
    let group = DeviceGroup::over([machine.device(0).unwrap(), machine.device(1).unwrap()], &config).unwrap();
    let lease = group.runtime(1).unwrap().stream().unwrap();
    let error = group.peer_access(0, 1).unwrap_err();
    assert!(error.device() == Some(1) && error.to_string().contains("streams are leased"), "{error}");
    drop(lease);
    assert_eq!(group.peer_access(0, 1).unwrap(), PeerAccess::Direct);
}

#[test]
fn groups_of_many_devices_leave_streams_for_the_program() {
    let devices = 40;
    let rig = Rig::new(devices, 1);
    let group = &rig.group;
    let shards = group.upload(&(0..400_u32).collect::<Vec<_>>()).unwrap();
    let whole = group.runtime(0).unwrap().zeros::<u32>(400).unwrap();
    group.gather(&shards, &whole).unwrap();
    assert_eq!(whole.download().unwrap(), (0..400).collect::<Vec<_>>());
    whole.fill(7).unwrap();
    group.scatter(&whole, &shards).unwrap();
    assert_eq!(shards.download().unwrap(), [7; 400]);
    // Between all of some devices, both ways.
    let buffers: Vec<_> =
        (0..20).map(|at| group.runtime(at).unwrap().upload(&[at as u32; 3]).unwrap()).collect();
    for (from, source) in buffers.iter().enumerate() {
        for to in (0..20).filter(|to| *to != from) {
            let target = group.runtime(to).unwrap().zeros::<u32>(3).unwrap();
            group.copy(source, &target).unwrap();
            assert_eq!(target.download().unwrap(), [from as u32; 3]);
        }
    }
    let streams: Vec<_> = (0..8).map(|_| group.runtime(0).unwrap().stream().unwrap()).collect();
    drop((streams, buffers, shards, whole));
    rig.finish();
}

#[test]
fn a_gather_for_which_a_device_has_no_stream_has_written_nothing() {
    let rig = Rig::new(3, 1);
    let shards = rig.group.upload(&[1_u32, 2, 3]).unwrap();
    let whole = rig.group.runtime(0).unwrap().zeros::<u32>(3).unwrap();
    let last = rig.group.runtime(2).unwrap();
    let streams: Vec<_> = std::iter::from_fn(|| last.stream().ok()).collect();
    let error = rig.group.gather(&shards, &whole).unwrap_err();
    assert!(error.device() == Some(2) && error.to_string().contains("streams are leased"), "{error}");
    assert_eq!(whole.download().unwrap(), [0; 3]);
    drop(streams);
    rig.group.gather(&shards, &whole).unwrap();
    assert_eq!(whole.download().unwrap(), [1, 2, 3]);
    drop((shards, whole));
    rig.finish();
}

#[test]
fn a_copy_over_what_an_ended_collective_was_to_write_can_be_read() {
    let (rig, mut ranks, buffers) = begun(3, Duration::from_secs(3600));
    let second = ranks.remove(1);
    ranks[0].all_reduce_in_place(&buffers[0], Reduction::Sum).submit().unwrap();
    lose(second);
    await_loss(&ranks[0]);
    assert!(buffers[0].download().is_err());
    assert!(rig.group.peer_access(2, 0).unwrap().is_direct());
    rig.group.copy(&buffers[2], &buffers[0]).unwrap().wait().unwrap();
    assert_eq!(buffers[0].download().unwrap(), [6; 4]);
}
