//! One device is lost: what uses it fails and names it, the others go on.

use kiln::driver::Code;
use kiln::group::{GroupError, PeerAccess};
use kiln::sim::{FaultPlan, Links, PlannedFault};

use crate::rig::{Rig, failed_device, machine};

/// Three devices, of which one is lost at its nth call.
fn losing(seed: u64, device: u32, call: u64, links: Links) -> Result<Rig, GroupError> {
    let fault = PlannedFault::LostAtCall { call, code: Code::LAUNCH_FAILED };
    Rig::try_over(machine(3, seed, links, FaultPlan::none().on(device, fault)))
}

#[test]
fn the_others_go_on() {
    for links in [Links::all(), Links::none()] {
        let rig = losing(1, 1, 400, links).unwrap();
        let group = &rig.group;
        let buffers: Vec<_> = (0..3)
            .map(|device| group.runtime(device).unwrap().upload(&[device as u32; 16]).unwrap())
            .collect();
        let shards = group.upload(&[1_u32; 30]).unwrap();
        // Copies between all of them until the fault comes.
        let mut lost = None;
        for _ in 0..200 {
            let copied = group.copy(&buffers[0], &buffers[1]).and_then(|ticket| ticket.wait());
            if let Err(error) = copied {
                lost = Some(error);
                break;
            }
        }
        let error = lost.expect("the device is lost at call 400");
        assert!(error.is_lost() && error.device() == Some(1), "{error}");
        assert_eq!(group.ready(), [0, 2]);
        assert_eq!(failed_device(group.copy(&buffers[1], &buffers[2]).and_then(|ticket| ticket.wait())), 1);
        assert_eq!(failed_device(shards.download()), 1);
        assert_eq!(failed_device(group.synchronize()), 1);
        let whole = group.runtime(0).unwrap().zeros::<u32>(30).unwrap();
        assert_eq!(failed_device(group.gather(&shards, &whole).and_then(|ticket| ticket.wait())), 1);
        // Parts of the others are there.
        assert_eq!(shards.part(2).unwrap().download().unwrap(), [1; 10]);
        group.copy(&buffers[0], &buffers[2]).unwrap().wait().unwrap();
        assert_eq!(buffers[2].download().unwrap(), [0; 16]);
        let (place, _, ticket) = group.submit(|gpu| Ok(((), gpu.zeros::<u8>(4)?.fill(1)?))).unwrap();
        ticket.wait().unwrap();
        assert_ne!(place, 1);
    }
}

#[test]
fn a_device_lost_at_any_call_leaves_no_copy_waiting_for_ever() {
    // Each call of a short exchange once is the last of the source, and once of the destination.
    let mut ended_well = 0;
    for device in 0..2 {
        for call in 1..260 {
            let is_told = |error: &GroupError| error.is_lost() && error.device() == Some(device as usize);
            let rig = match losing(call, device, call, Links::all()) {
                Ok(rig) => rig,
                Err(error) => {
                    assert!(is_told(&error), "call {call}: {error}");
                    continue;
                }
            };
            match exchange(&rig) {
                Ok(()) => ended_well += 1,
                Err(error) => assert!(is_told(&error), "call {call}: {error}"),
            }
            // The third device never takes part and is as good as new.
            let third = rig.group.runtime(2).unwrap();
            assert_eq!(third.upload(&[1_u8; 4]).unwrap().download().unwrap(), [1; 4], "call {call}");
            let other = rig.group.runtime(1 - device as usize).unwrap();
            assert_eq!(other.upload(&[2_u8; 4]).unwrap().download().unwrap(), [2; 4], "call {call}");
        }
    }
    assert!(ended_well < 260, "the plans reach into the exchange");
}

fn exchange(rig: &Rig) -> Result<(), GroupError> {
    let group = &rig.group;
    let at = |index| move |source| GroupError::Device { index, source };
    let from = group.runtime(0)?.upload(&[3_u32; 16]).map_err(at(0))?;
    let to = group.runtime(1)?.zeros::<u32>(16).map_err(at(1))?;
    for _ in 0..10 {
        group.copy(&from, &to)?;
        group.copy(&to, &from)?.wait()?;
    }
    let back = to.download().map_err(at(1))?;
    assert_eq!(back, [3; 16]);
    Ok(())
}

#[test]
fn a_device_lost_at_any_call_is_no_mistake_of_the_program() {
    for device in 0..2 {
        for call in 1..160 {
            let Ok(rig) = losing(1, device, call, Links::all()) else { continue };
            // It ends at the first error, with copies that nothing has waited for.
            let _ = hurried_exchange(&rig);
            drop(rig.group);
            let report = rig.machine.finish();
            assert!(report.findings.is_empty(), "device {device}, call {call}: {report}");
        }
    }
}

fn hurried_exchange(rig: &Rig) -> Result<(), Box<dyn std::error::Error>> {
    let group = &rig.group;
    let (from, to) = (group.runtime(0)?.upload(&[3_u32; 16])?, group.runtime(1)?.zeros::<u32>(16)?);
    for _ in 0..4 {
        group.copy(&from, &to)?;
        group.copy(&to, &from)?;
    }
    Ok(group.copy(&from, &to)?.wait()?)
}

#[test]
fn a_lost_device_is_not_reached_directly_whether_it_was_asked_before_or_not() {
    for is_asked in [false, true] {
        let rig = losing(1, 1, 400, Links::all()).unwrap();
        let group = &rig.group;
        if is_asked {
            assert!(group.peer_access(0, 1).unwrap().is_direct());
            assert!(group.peers().access(1, 2).unwrap().is_direct());
        }
        let buffer = group.runtime(1).unwrap().zeros::<u32>(16).unwrap();
        while buffer.fill(1).and_then(|ticket| ticket.wait()).is_ok() {}
        for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            assert_eq!(failed_device(group.peer_access(from, to)), 1);
            let peers = group.peers();
            let Some(PeerAccess::ThroughHost { why }) = peers.access(from, to) else { panic!("{peers}") };
            assert!(why.contains("lost"), "{why}");
        }
        assert!(group.peer_access(0, 2).unwrap().is_direct());
    }
}
