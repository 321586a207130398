//! A group of devices in worker processes: what it does, and what it refuses with another way.

#![cfg(target_os = "linux")]

use kiln::group::{DeviceGroup, GroupError};
use kiln::recovery::{DeviceSpec, Isolation, Process, WorkerEntry};
use kiln::{DeviceRuntime, RuntimeConfig};

/// The worker process.
#[test]
#[ignore = "helper process"]
fn worker() {
    kiln::worker_entry();
}

fn isolated(seed: u64) -> DeviceRuntime {
    let entry = WorkerEntry::Test("isolated_devices::worker".into());
    let isolation = Isolation::Process(Process { entry, ..Process::default() });
    let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
    DeviceRuntime::open(&DeviceSpec::simulated(seed), config).unwrap()
}

#[test]
fn memory_of_a_device_in_a_worker_is_not_shared_and_the_error_says_what_to_do_instead() {
    let group = DeviceGroup::new([isolated(1), isolated(2)]).unwrap();
    for (owner, index) in [(0, 1), (1, 0)] {
        let error = group.share::<u32>(owner, 1000).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, GroupError::NotReached { index: told, owner: of, .. } if (told, of) == (index, owner)),
            "{text}"
        );
        let what = format!(
            "device {index} of the group does not reach memory of device {owner}: device {owner} is in a worker process; share between devices with peer access, or copy between two buffers"
        );
        assert_eq!(text, what);
    }
    // As the error says.
    let from = group.runtime(0).unwrap().upload(&[3_u32; 1000]).unwrap();
    let to = group.runtime(1).unwrap().zeros::<u32>(1000).unwrap();
    group.copy(&from, &to).unwrap().wait().unwrap();
    assert_eq!(to.download().unwrap(), [3; 1000]);
}

#[test]
fn devices_in_workers_that_are_to_be_ranks_are_told_what_to_do_instead() {
    let group = DeviceGroup::new([isolated(1), isolated(2)]).unwrap();
    let told = group.communicators(&Default::default()).unwrap_err().to_string();
    assert!(told.starts_with("rank 1: ") && told.contains("simulated ranks are devices of one machine: take all devices of the communicator from one `Machine`, none of them in a worker process"), "{told}");
}

#[test]
fn memory_of_a_device_in_a_worker_is_not_shared_with_one_of_this_process() {
    let group = DeviceGroup::new([isolated(1), DeviceRuntime::simulated(2).unwrap()]).unwrap();
    for (owner, index) in [(0, 1), (1, 0)] {
        let error = group.share::<u32>(owner, 1000).unwrap_err();
        assert!(matches!(error, GroupError::NotReached { index: told, .. } if told == index), "{error}");
        assert!(error.to_string().contains("device 0 is in a worker process"), "{error}");
    }
}
