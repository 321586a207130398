//! Events between kiln and another library: each edge they make is needed, and is there.

use std::sync::Arc;
use std::time::Duration;

use kiln::{
    DeviceRuntime, GpuRef, RuntimeConfig,
    buffer::LastWrite,
    error::{ErrorKind, Misuse},
};
use kiln_driver::{Access, Driver, ForeignHandle};
use kiln_sim::{FindingKind, Machine, MachineConfig};

use crate::order::library::Library;
use crate::order::reports::{LEN, assert_clean, assert_races, run, runtime};

#[test]
fn a_stream_comes_after_the_event_of_another_library() {
    let program = |waits: bool| {
        move |gpu: &DeviceRuntime, library: &Library, buffer: &GpuRef<u32>| {
            library.fill(buffer, 7);
            library.signal();
            let stream = gpu.stream().unwrap();
            if waits {
                stream.wait_event(&library.lend_event(gpu)).unwrap();
            }
            let mut seen = [0; LEN];
            buffer.download_into_on(&stream, &mut seen).unwrap();
            assert!(!waits || seen == [7; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the wait for the other library's event");
}

#[test]
fn a_use_by_another_library_is_ordered_by_its_event() {
    let program = |recorded: bool| {
        move |gpu: &DeviceRuntime, library: &Library, buffer: &GpuRef<u32>| {
            library.fill(buffer, 3);
            library.signal();
            let stream = gpu.stream().unwrap();
            if recorded {
                let done = library.lend_event(gpu);
                let uses = [buffer.used_as(Access::Write)];
                gpu.record_foreign_use(&stream, &uses, &done).unwrap();
                assert_eq!(buffer.last_write_stream(), LastWrite::Stream(stream.key()));
            }
            // On the main stream, which is not the one that waits for the event.
            let seen = buffer.download().unwrap();
            assert!(!recorded || seen == [3; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the recorded use");
}

#[test]
fn another_library_comes_after_an_event_that_was_handed_on() {
    let program = |handed: bool| {
        move |gpu: &DeviceRuntime, library: &Library, buffer: &GpuRef<u32>| {
            let ticket = buffer.fill(5).unwrap();
            if handed {
                library.wait_for(&ticket.handed_event().unwrap());
            }
            library.fill(buffer, 6);
            library.signal();
            let event = library.lend_event(gpu);
            gpu.record_foreign_use(gpu.main_stream(), &[buffer.used_as(Access::Write)], &event).unwrap();
            let seen = buffer.download().unwrap();
            assert!(!handed || seen == [6; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the event that is handed on");
}

#[test]
fn an_event_of_another_library_can_be_signalled_for_it() {
    let program = |signalled: bool| {
        move |gpu: &DeviceRuntime, library: &Library, buffer: &GpuRef<u32>| {
            let stream = gpu.stream().unwrap();
            let uses = [buffer.used_as(Access::Write)];
            let prepared = gpu.prepare_block_use(&stream, &uses).unwrap();
            library.fill_on(prepared.stream(), buffer, 8);
            prepared.finish().unwrap();
            if signalled {
                stream.signal_event(&library.lend_event(gpu)).unwrap();
            }
            library.wait_for_own_event();
            library.fill(buffer, 9);
            library.signal();
            let event = library.lend_event(gpu);
            gpu.record_foreign_use(&stream, &uses, &event).unwrap();
            let seen = buffer.download().unwrap();
            assert!(!signalled || seen == [9; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the signal");
}

#[test]
fn an_imported_stream_is_left_alone_and_its_work_is_waited_for_after_it_is_gone() {
    let reports = run(|gpu, library, buffer| {
        let imported = library.lend_stream(gpu);
        let prepared = gpu.prepare_block_use(&imported, &[buffer.used_as(Access::Write)]).unwrap();
        library.fill_on(prepared.stream(), buffer, 4);
        prepared.finish().unwrap();
        drop(imported);
        // The name is gone, its owner is busy with other things, and the order is still kept.
        library.signal();
        assert_eq!(buffer.download().unwrap(), [4; LEN]);
        let again = library.lend_stream(gpu);
        buffer.upload_on(&again, &[1; LEN]).unwrap();
        assert_eq!(buffer.download().unwrap(), [1; LEN]);
    });
    assert_clean(&reports);
}

#[test]
fn what_is_not_of_this_device_is_refused() {
    let (machine, other_machine) =
        (Machine::new(MachineConfig::seeded(1)), Machine::new(MachineConfig::seeded(1)));
    {
        let (gpu, other) = (runtime(&machine), runtime(&other_machine));
        let library = Library::new(other.driver());
        let buffer = gpu.upload(&[1_u32; LEN]).unwrap();
        let event = library.lend_event(&other);
        let before = gpu.main_stream().ticket().unwrap().stamp();
        let misuse = |error: kiln::Error| matches!(error.kind(), ErrorKind::Misuse(Misuse::ForeignEvent));
        assert!(misuse(gpu.main_stream().wait_event(&event).unwrap_err()));
        assert!(misuse(gpu.main_stream().signal_event(&event).unwrap_err()));
        let uses = [buffer.used_as(Access::Write)];
        assert!(misuse(gpu.record_foreign_use(gpu.main_stream(), &uses, &event).unwrap_err()));
        // SAFETY: a number that no driver told; the simulated one looks it up and refuses.
        let nothing = unsafe { ForeignHandle::new(0xdead_beef) };
        assert!(gpu.import_event(nothing).is_err() && gpu.streams().import(nothing).is_err());
        assert_eq!(gpu.main_stream().ticket().unwrap().stamp(), before, "nothing was stamped");
        drop(event);
        library.close();
    }
    for report in [machine.finish(), other_machine.finish()] {
        assert!(report.findings.iter().all(|found| found.kind != FindingKind::Leak), "{report}");
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn what_is_taken_in_and_outlives_the_runtime_leaves_no_name_behind() {
    let machine = Machine::new(MachineConfig::seeded(1));
    {
        let driver: Arc<dyn Driver> = machine.device(0).unwrap();
        let library = Library::new(&driver);
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let (event, stream) = (library.lend_event(&gpu), library.lend_stream(&gpu));
        stream.signal_event(&event).unwrap();
        let handed = stream.ticket().unwrap().handed_event().unwrap();
        drop(gpu);
        assert!(handed.native().is_err() && stream.wait_event(&event).is_err());
        assert!(event.wait_within(Duration::ZERO).is_err());
        library.close();
        drop((event, stream, handed));
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
