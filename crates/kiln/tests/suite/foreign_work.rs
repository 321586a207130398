//! Work that a program queues itself: every way of telling kiln about it makes the edges that are needed, and each is found out when it
//! is left out.

use std::sync::Arc;

use kiln::{
    DeviceRuntime, GpuRef, RuntimeConfig,
    buffer::LastWrite,
    error::{ErrorKind, Misuse},
};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_driver::{Access, Command, Pattern, Place, StreamId};
use kiln_sim::{Machine, MachineConfig};

use crate::order::library::Library;
use crate::order::reports::{LEN, assert_clean, assert_races, run};

/// Queues a copy past the runtime.
fn copy(gpu: &DeviceRuntime, stream: StreamId, from: &GpuRef<u32>, to: &GpuRef<u32>) {
    let place = |buffer: &GpuRef<u32>| Place::Device(buffer.place().unwrap());
    let copy = Command::Copy { from: place(from), to: place(to), bytes: from.bytes() };
    gpu.driver().submit(stream, &copy).unwrap();
}

#[test]
fn a_first_use_comes_after_the_last_user_of_the_memory() {
    let program = |prepared: bool| {
        move |gpu: &DeviceRuntime, library: &Library, _: &GpuRef<u32>| {
            let (home, elsewhere) = (gpu.stream().unwrap(), gpu.stream().unwrap());
            let old = gpu.allocate_on::<u32>(&home, LEN).unwrap();
            let address = old.access().unwrap().address;
            let used = gpu.prepare_first_use(&home, &old, Access::Write).unwrap();
            library.fill_on(used.stream(), &old, 1);
            gpu.finish_first_use(used).unwrap();
            drop(old);
            let new = gpu.allocate_on::<u32>(&home, LEN).unwrap();
            assert_eq!(new.access().unwrap().address, address, "the memory went round");
            if prepared {
                let used = gpu.prepare_first_use(&elsewhere, &new, Access::Write).unwrap();
                library.fill_on(used.stream(), &new, 2);
                gpu.finish_first_use(used).unwrap();
            } else {
                // Stamped, so that only the wait for the allocation is missing.
                library.fill_on(elsewhere.id(), &new, 2);
                gpu.record_block_use(&elsewhere, &[new.used_as(Access::Write)]).unwrap();
            }
            assert_eq!(new.last_write_stream(), LastWrite::Stream(elsewhere.key()));
            let seen = new.download().unwrap();
            assert!(!prepared || seen == [2; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the wait for the allocation");
}

#[test]
fn work_that_is_recorded_afterwards_is_waited_for() {
    let program = |recorded: bool| {
        move |gpu: &DeviceRuntime, library: &Library, buffer: &GpuRef<u32>| {
            let stream = gpu.stream().unwrap();
            // The caller orders its own work.
            stream.wait_for(&buffer.fill(1).unwrap()).unwrap();
            library.fill_on(stream.id(), buffer, 2);
            if recorded {
                let ticket = gpu.record_block_use(&stream, &[buffer.used_as(Access::Write)]).unwrap();
                assert_eq!(ticket.stamp().stream, stream.key());
            }
            let seen = buffer.download().unwrap();
            assert!(!recorded || seen == [2; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the recorded use");
}

#[test]
fn a_read_that_is_recorded_holds_back_the_next_write() {
    let program = |recorded: bool| {
        move |gpu: &DeviceRuntime, _: &Library, buffer: &GpuRef<u32>| {
            let stream = gpu.stream().unwrap();
            let result = gpu.allocate_on::<u32>(&stream, LEN).unwrap();
            copy(gpu, stream.id(), buffer, &result);
            result.record_write(&stream).unwrap();
            if recorded {
                gpu.record_block_use(&stream, &[buffer.used_as(Access::Read)]).unwrap();
            }
            buffer.fill(9).unwrap();
            let seen = result.download().unwrap();
            assert!(!recorded || seen == [0; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the recorded read");
}

#[test]
fn every_block_of_a_recorder_is_ordered() {
    let program = |names_the_source: bool| {
        move |gpu: &DeviceRuntime, _: &Library, buffer: &GpuRef<u32>| {
            let stream = gpu.stream().unwrap();
            let result = gpu.zeros::<u32>(LEN).unwrap();
            buffer.fill(3).unwrap();
            let mut recorder = gpu.recorder(&stream);
            recorder.write(&result);
            if names_the_source {
                recorder.read(buffer);
            }
            assert_eq!(recorder.len(), 1 + usize::from(names_the_source));
            let ready = recorder.preflight().unwrap();
            copy(gpu, ready.stream(), buffer, &result);
            ready.commit().unwrap();
            buffer.fill(9).unwrap();
            let seen = result.download().unwrap();
            assert!(!names_the_source || seen == [3; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the source");
}

#[test]
fn a_block_that_is_named_twice_is_used_in_the_stronger_way() {
    assert_clean(&run(|gpu, library, buffer| {
        for write_first in [true, false] {
            let stream = gpu.stream().unwrap();
            let mut recorder = gpu.recorder(&stream);
            match write_first {
                true => recorder.write(buffer).read(buffer),
                false => recorder.read(buffer).write(buffer),
            };
            assert_eq!(recorder.len(), 1);
            let ready = recorder.preflight().unwrap();
            library.fill_on(ready.stream(), buffer, 5);
            ready.commit().unwrap();
            assert_eq!(
                buffer.last_write_stream(),
                LastWrite::Stream(stream.key()),
                "write first: {write_first}"
            );
            assert_eq!(buffer.download().unwrap(), [5; LEN]);
        }
        // Bytes that overlap without being the same stay two uses, and both count.
        let stream = gpu.stream().unwrap();
        let (low, high) = (buffer.view(..10).unwrap(), buffer.view(6..).unwrap());
        let mut recorder = gpu.recorder(&stream);
        recorder.read(&low).write(&high);
        assert_eq!(recorder.len(), 2);
        let ready = recorder.preflight().unwrap();
        library.fill_on(ready.stream(), &high, 6);
        ready.commit().unwrap();
        buffer.view(..6).unwrap().fill(7).unwrap();
        assert_eq!(buffer.download().unwrap()[5..7], [7, 6]);
    }));
}

#[test]
fn a_use_that_is_dropped_unfinished_loses_no_order() {
    assert_clean(&run(|gpu, library, buffer| {
        let stream = gpu.stream().unwrap();
        buffer.fill(1).unwrap();
        let used = gpu.prepare_block_use(&stream, &[buffer.used_as(Access::Write)]).unwrap();
        library.fill_on(used.stream(), buffer, 2);
        drop(used);
        assert_eq!(gpu.unfinished_uses(), 1);
        assert_eq!(buffer.download().unwrap(), [2; LEN]);
        // And the stream is free for the next.
        buffer.upload_on(&stream, &[3; LEN]).unwrap();
        assert_eq!(buffer.download().unwrap(), [3; LEN]);
    }));
}

#[test]
fn an_address_is_ordered_while_its_guard_lives() {
    let program = |guarded: bool| {
        move |gpu: &DeviceRuntime, library: &Library, buffer: &GpuRef<u32>| {
            let stream = gpu.stream().unwrap();
            buffer.fill(1).unwrap();
            let part = buffer.view(4..).unwrap();
            if guarded {
                let pointer = gpu.raw_device_ptr(&stream, &part, Access::Write).unwrap();
                let start = buffer.access().unwrap().address;
                assert_eq!(pointer.address().0, start.0 + 16, "the first byte of the view");
                library.fill_on(pointer.stream(), &part, 2);
                drop(pointer);
            } else {
                library.fill_on(stream.id(), &part, 2);
            }
            assert_eq!(gpu.unfinished_uses(), 0);
            let seen = buffer.download().unwrap();
            assert!(!guarded || (seen[..4] == [1; 4] && seen[4..] == [2; LEN - 4]));
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the guard");
}

#[test]
fn telling_costs_no_driver_call() {
    let machine = Machine::new(MachineConfig::seeded(1));
    {
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let (one, two) = (gpu.zeros::<u32>(LEN).unwrap(), gpu.zeros::<u32>(LEN).unwrap());
        let (main, other) = (gpu.main_stream(), gpu.stream().unwrap());
        let before = driver.layer().counts();
        gpu.prepare_first_use(main, &one, Access::Write).unwrap().finish().unwrap();
        let mut recorder = gpu.recorder(main);
        recorder.read(&one).read_write(&two);
        recorder.preflight().unwrap().commit().unwrap();
        // What is told afterwards waits for nothing, whatever stream it was on.
        gpu.record_block_use(&other, &[one.used_as(Access::Write), two.used_as(Access::Read)]).unwrap();
        assert_eq!(driver.layer().counts().since(&before).total(), 0);
        assert!(gpu.supports_block_use_tracking());
        drop((one, two, other));
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_first_use_that_reads_is_no_write_and_readers_do_not_wait_for_each_other() {
    let machine = Machine::new(MachineConfig::seeded(2));
    {
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let buffer = gpu.upload(&[1_u32; LEN]).unwrap();
        let [one, two] = [(); 2].map(|()| gpu.stream().unwrap());
        let results = [&one, &two].map(|stream| gpu.allocate_on::<u32>(stream, LEN).unwrap());
        gpu.synchronize().unwrap();
        let writer = LastWrite::Stream(gpu.main_stream().key());
        let waits = || driver.layer().counts().submitted(CommandKind::Wait);
        let before = waits();
        for (stream, result) in [&one, &two].into_iter().zip(&results) {
            let used = gpu.prepare_first_use(stream, &buffer, Access::Read).unwrap();
            copy(&gpu, used.stream(), &buffer, result);
            used.finish().unwrap();
            assert_eq!(buffer.last_write_stream(), writer);
            result.record_write(stream).unwrap();
        }
        assert_eq!(waits(), before, "two reads");
        let used = gpu.prepare_first_use(&two, &buffer, Access::Write).unwrap();
        let fill = Command::Fill { to: buffer.place().unwrap(), pattern: Pattern::U32(2), count: LEN as u64 };
        gpu.driver().submit(used.stream(), &fill).unwrap();
        used.finish().unwrap();
        assert_eq!(waits(), before + 1, "a write after the read on the other stream");
        assert_eq!(buffer.last_write_stream(), LastWrite::Stream(two.key()));
        assert_eq!(results.map(|result| result.download().unwrap()), [[1; LEN]; 2]);
        assert_eq!(buffer.download().unwrap(), [2; LEN]);
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

/// Two blocks known by their names, on two streams: without the names' help the device finds a race.
#[test]
fn uses_by_name_are_ordered_with_one_guard_for_all() {
    let program = |prepared: bool| {
        move |gpu: &DeviceRuntime, _: &Library, from: &GpuRef<u32>| {
            let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
            let to = gpu.allocate::<u32>(LEN).unwrap();
            from.fill_on(&one, 7).unwrap();
            let uses = [(from.block_id(), Access::Read), (to.block_id(), Access::Write)];
            if prepared {
                let guard = gpu.prepare_block_use_by_id(&two, &uses).unwrap();
                copy(gpu, guard.stream(), from, &to);
                guard.finish().unwrap();
            } else {
                copy(gpu, two.id(), from, &to);
                gpu.record_block_use_by_id(&two, &uses).unwrap();
            }
            assert_eq!(to.last_write_stream(), LastWrite::Stream(two.key()));
            let seen = to.download().unwrap();
            assert!(!prepared || seen == [7; LEN]);
        }
    };
    assert_clean(&run(program(true)));
    assert_races(&run(program(false)), "the wait for the fill");
}

#[test]
fn names_of_freed_and_of_foreign_blocks_are_refused_and_nothing_is_changed() {
    let machine = Machine::new(MachineConfig::seeded(3));
    {
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let other = DeviceRuntime::simulated(3).unwrap();
        let (kept, freed) = (gpu.zeros::<u32>(LEN).unwrap(), gpu.zeros::<u32>(LEN).unwrap());
        let theirs = other.zeros::<u32>(LEN).unwrap();
        let names = [kept.block_id(), freed.block_id(), theirs.block_id()];
        assert_eq!(kept.view(..2).unwrap().block_id(), names[0], "a view has the name of its block");
        assert!(names[0] != names[2], "the first block of each runtime");
        let stream = gpu.stream().unwrap();
        kept.fill_on(&stream, 1).unwrap();
        drop(freed);
        let state = || {
            let submitted = [&stream, gpu.main_stream()].map(|stream| stream.ticket().unwrap().stamp());
            (submitted, kept.last_write_stream(), driver.layer().counts().of(CallKind::Submit))
        };
        let before = state();
        for (bad, is_foreign) in [(names[1], false), (names[2], true)] {
            let uses = [(names[0], Access::Write), (bad, Access::Read)];
            let main = gpu.main_stream();
            let errors = [
                gpu.prepare_block_use_by_id(main, &uses).map(drop).unwrap_err(),
                gpu.record_block_use_by_id(main, &uses).map(drop).unwrap_err(),
            ];
            for error in errors {
                match error.kind() {
                    ErrorKind::Misuse(Misuse::UseAfterFree { block }) => {
                        assert_eq!((*block, is_foreign), (bad, false))
                    }
                    ErrorKind::Misuse(Misuse::ForeignBlock { block }) => {
                        assert_eq!((*block, is_foreign), (bad, true))
                    }
                    _ => panic!("{error}"),
                }
            }
        }
        assert_eq!((state(), gpu.unfinished_uses()), (before, 0));
        gpu.prepare_block_use_by_id(gpu.main_stream(), &[(names[0], Access::Read)])
            .unwrap()
            .finish()
            .unwrap();
        drop((kept, stream));
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
