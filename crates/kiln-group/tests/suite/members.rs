//! Which devices a group has: those of a prober, and a GPU beside a simulated device.

use kiln::group::{DeviceGroup, GroupError, Reduction};
use kiln::probe::{Prober, ProberConfig, SimulatorPlatform, TestGate, gpu_for_test};
use kiln::sim::{DeviceConfig, Machine, MachineConfig};
use kiln::{DeviceRuntime, Policy};
use kiln_driver::Code;

use crate::rig::Rig;

/// A prober over simulated devices alone; one of each list for "CUDA" and for the simulator.
fn prober(policy: Policy, devices: &[DeviceConfig]) -> Prober {
    let platform = || {
        let config =
            devices.iter().fold(MachineConfig::seeded(1), |config, device| config.device(device.clone()));
        Box::new(SimulatorPlatform::new(Machine::new(config)))
    };
    let prober = Prober::new(ProberConfig { cuda: platform(), simulator: platform(), policy_override: None });
    prober.set_policy(policy).unwrap();
    prober
}

#[test]
fn a_group_of_a_prober_has_every_device_that_works() {
    let broken = DeviceConfig::broken(Code::LAUNCH_FAILED);
    let devices = [DeviceConfig::default(), broken, DeviceConfig::with_memory(1 << 30)];
    let group = DeviceGroup::of_prober(&prober(Policy::Simulate, &devices));
    // A device that is listed and cannot be opened is told; without it the group is made of the others.
    let error = group.unwrap_err();
    assert!(error.device_error().is_some(), "{error}");
    let group =
        DeviceGroup::of_prober(&prober(Policy::Simulate, &[devices[0].clone(), devices[2].clone()])).unwrap();
    assert_eq!((group.len(), group.runtime(1).unwrap().ordinal()), (2, 1));
    assert_eq!(group.upload(&[1_u8, 2, 3]).unwrap().download().unwrap(), [1, 2, 3]);
    let error = DeviceGroup::of_prober(&prober(Policy::Off, &devices)).unwrap_err();
    let GroupError::Probe { source } = &error else { panic!("{error}") };
    assert!(source.is_absence(), "{error}");
}

#[test]
fn a_gpu_and_a_simulated_device_are_a_group() {
    let test = "a_gpu_and_a_simulated_device_are_a_group";
    let TestGate::Ready(gpu) = gpu_for_test(test).unwrap() else { return };
    let simulated = DeviceRuntime::simulated(1).unwrap();
    let group = DeviceGroup::new([gpu.clone(), simulated]).unwrap();
    assert!(!group.peer_access(0, 1).unwrap().is_direct() && !group.peer_access(1, 0).unwrap().is_direct());
    let data: Vec<u32> = (0..100_000).collect();
    let shards = group.upload(&data).unwrap();
    let whole = group.runtime(0).unwrap().zeros::<u32>(data.len()).unwrap();
    group.gather(&shards, &whole).unwrap().wait().unwrap();
    assert_eq!(whole.download().unwrap(), data);
    whole.fill(7).unwrap();
    group.scatter(&whole, &shards).unwrap().wait().unwrap();
    assert_eq!(shards.download().unwrap(), vec![7; data.len()]);
    assert!(group.share::<u32>(0, 100).unwrap_err().device().is_some());
    let (_, _, ticket) = group.submit(|gpu| Ok(((), gpu.allocate::<u32>(64)?.fill(1)?))).unwrap();
    ticket.wait().unwrap();
}

#[test]
fn memory_of_a_gpu_alone_is_shared_with_itself() {
    let TestGate::Ready(gpu) = gpu_for_test("memory_of_a_gpu_alone_is_shared_with_itself").unwrap() else {
        return;
    };
    let group = DeviceGroup::new([gpu.clone()]).unwrap();
    let shared = group.share::<u32>(0, 1000).unwrap();
    shared.on(0).unwrap().fill(3).unwrap();
    shared.order(0, 0).unwrap().wait().unwrap();
    assert_eq!(shared.on(0).unwrap().download().unwrap(), [3; 1000]);
}

#[test]
fn a_machine_has_64_default_devices_that_work_together() {
    for count in [12, 32, 64] {
        let rig = Rig::new(count, 1);
        let ranks = rig.group.communicators(&Default::default()).unwrap();
        let buffers: Vec<_> =
            ranks.iter().map(|rank| rank.runtime().upload(&[rank.rank() + 1; 3]).unwrap()).collect();
        for (rank, buffer) in ranks.iter().zip(&buffers) {
            rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
        }
        buffers
            .iter()
            .for_each(|buffer| assert_eq!(buffer.download().unwrap(), [count * (count + 1) / 2; 3]));
        let last = rig.group.runtime(count as usize - 1).unwrap();
        let copied = last.zeros::<u32>(3).unwrap();
        rig.group.copy(&last.upload(&[7_u32; 3]).unwrap(), &copied).unwrap();
        assert_eq!(copied.download().unwrap(), [7; 3]);
        // Most of the memory of the last one can be used.
        last.allocate::<u8>(12 << 30).unwrap();
        drop((ranks, buffers, copied));
        rig.finish();
    }
}

#[test]
fn addresses_that_are_short_are_told_with_what_was_asked_for_and_what_to_change() {
    let large = DeviceConfig::with_memory(20 << 40);
    let machine = Machine::new(MachineConfig::seeded(1).device(large.clone()).device(large));
    let devices = [0, 1].map(|ordinal| machine.device(ordinal).unwrap());
    let error = DeviceGroup::over(devices, &Default::default()).unwrap_err();
    assert_eq!(error.device(), Some(1));
    let text = error.to_string();
    let (device, needed, all) = (20_u64 << 40, 40_u64 << 40, 80_u64 << 40);
    for words in [
        format!("a device of {device} bytes, whose heap needs {needed} bytes of them in a row"),
        format!("share {all} bytes"),
        "`DeviceConfig::memory_bytes`".to_owned(),
    ] {
        assert!(text.contains(&words), "`{words}` in {text}");
    }
}
