//! Links that are cut or slow, as planned.

use kiln_driver::{Code, Command, Driver, DriverExt, Place};
use kiln_sim::{DeviceConfig, FaultPlan, Links, Machine, PlannedFault};

use crate::rig::{Rig, config};

fn machine(faults: FaultPlan) -> Machine {
    let config = (0..3).fold(config(1), |config, _| config.device(DeviceConfig::default()));
    Machine::new(config.links(Links::all()).faults(faults))
}

/// Copies of 1 KiB from device 0 to another one, each waited for: how long the last one took, and the error of the first that failed, with its number.
fn copies(machine: &Machine, to: u32, count: usize) -> (u128, Option<(usize, kiln_driver::Error)>) {
    let (here, there) = (Rig::on(machine, 0, 1), Rig::on(machine, to, 1));
    let (x, y) = (here.block(1 << 10), there.block(1 << 10));
    here.write(0, x, 1);
    here.sync(0);
    let (from, to) = (Place::Peer(x.id.into()), Place::Device(y.id.into()));
    for copy in 1..=count {
        let submitted = there.device.submit(there.streams[0], &Command::Copy { from, to, bytes: 1 << 10 });
        let done = submitted.and_then(|_| there.device.synchronize(there.streams[0]));
        if let Err(error) = done {
            return (0, Some((copy, error)));
        }
    }
    let span = machine.timeline().last().cloned().unwrap();
    ((span.end - span.start).as_nanos(), None)
}

#[test]
fn the_device_of_a_link_that_is_cut_is_lost_with_that_transfer() {
    let machine = machine("1:cut-0@3".parse().unwrap());
    let (_, failed) = copies(&machine, 1, 5);
    let (copy, error) = failed.unwrap();
    assert_eq!((copy, error.code()), (3, Some(Code::NVLINK_UNCORRECTABLE)), "{error}");
    assert!(
        error.to_string().contains("the link to device 0 is cut, as planned for transfer 3 over it"),
        "{error}"
    );
    // The others go on.
    assert!(copies(&machine, 2, 5).1.is_none());
    assert!(machine.finish().faults_to_come.faults.is_empty());
}

#[test]
fn the_other_end_of_a_cut_link_goes_on() {
    let machine = machine(FaultPlan::none().on(0, PlannedFault::LinkCut { to: 1, transfer: 1 }));
    let there = Rig::on(&machine, 1, 1);
    assert!(copies(&machine, 1, 1).1.is_none(), "the copy moves nothing");
    let block = there.block(64);
    there.write(0, block, 1);
    there.sync(0);
    let lost = Rig::on(&machine, 2, 1);
    lost.sync(0);
    assert!(machine.device(0).unwrap().memory_info().unwrap_err().is_sticky());
}

#[test]
fn what_passes_a_slow_link_takes_longer_and_that_is_told() {
    let usual = copies(&machine(FaultPlan::none()), 1, 2).0;
    let machine = machine("1:slow-0@8".parse().unwrap());
    assert_eq!(copies(&machine, 1, 2).0, 8 * usual);
    assert_eq!(copies(&machine, 2, 2).0, usual);
    let text = machine.trace();
    let told = "what passes the link of devices 0 and 1 takes 8 times as long, as planned";
    assert_eq!(text.matches(told).count(), 1, "{text}");
}

#[test]
fn a_link_that_is_cut_follows_from_the_seed() {
    let plans: Vec<_> = (0..40).map(|seed| FaultPlan::with_cut_link(seed, 4, 9)).collect();
    for plan in &plans {
        let [(device, PlannedFault::LinkCut { to, transfer })] = plan.faults[..] else { panic!("{plan:?}") };
        assert!(device < 4 && to < 4 && to != device && (1..=9).contains(&transfer), "{plan:?}");
    }
    assert!(plans.windows(2).any(|pair| pair[0] != pair[1]));
}
