//! Planted bugs: each is found, by the first seed and by exploring, and its correct twin gives no report.

use kiln_driver::{
    Command, Driver, DriverExt, GraphNode, MemoryRequest, Object, PageRequest, Pattern, Place, Protection,
    ReserveRequest,
};
use kiln_sim::{Checks, DeviceConfig, FindingKind, Machine, Mode, Schedule, Touching, Verdict, explore};

use crate::rig::{Kernel, Rig, bytes_of, config, pack};

const SEEDS: u64 = 1_000;
const CORRECT_SEEDS: u64 = 200;
const EXPLORED_RUNS: u64 = 20_000;

/// Runs a program with its bug and without.
fn check(kind: FindingKind, program: impl Fn(Rig, bool)) {
    check_on(kind, config, |machine, broken| program(Rig::new(machine, 3), broken));
}

fn check_on(
    kind: FindingKind,
    config: impl Fn(u64) -> kiln_sim::MachineConfig,
    program: impl Fn(&Machine, bool),
) {
    let run = |config: kiln_sim::MachineConfig, broken: bool| {
        let machine = Machine::new(config);
        program(&machine, broken);
        machine.finish()
    };
    let found = |seed: &u64| run(config(*seed), true).count(&kind) > 0;
    let first = (0..SEEDS).find(found).unwrap_or_else(|| panic!("{kind:?} was not found in {SEEDS} seeds"));
    assert_eq!(first, 0, "the order is arithmetic, so every seed shows it");
    assert!((1..20).all(|seed| found(&seed)));

    for seed in 0..CORRECT_SEEDS {
        let report = run(config(seed), false);
        assert!(report.is_clean(), "{report}");
    }

    let seen = explore(config(0), EXPLORED_RUNS, |machine| program(machine, true));
    assert_eq!(seen.verdict, Verdict::Complete, "{} runs", seen.runs);
    assert_eq!(seen.runs_with_findings, seen.runs);
    let finding = seen.findings.iter().find(|finding| finding.kind == kind).expect("found by exploring");
    let Mode::Scheduled(Schedule(_)) = &finding.repeat else { panic!("{:?}", finding.repeat) };
    let again = run(config(0).mode(finding.repeat.clone()), true);
    assert!(again.count(&kind) > 0, "the schedule of a finding shows it again: {finding}");
    let seen = explore(config(0), EXPLORED_RUNS, |machine| program(machine, false));
    assert_eq!((seen.verdict, seen.runs_with_findings), (Verdict::Complete, 0), "{:?}", seen.findings);
}

#[test]
fn a_read_after_a_write_without_an_edge() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let x = rig.block(64);
        rig.write(0, x, 1);
        if !broken {
            rig.order(0, 1);
        }
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn a_write_after_a_read_without_an_edge() {
    check(FindingKind::WriteAfterRead, |rig, broken| {
        let x = rig.block(64);
        rig.write(0, x, 1);
        rig.sync(0);
        rig.read(0, x);
        if !broken {
            rig.order(0, 1);
        }
        rig.write(1, x, 2);
        rig.close();
    });
}

#[test]
fn a_write_after_a_write_without_an_edge() {
    check(FindingKind::WriteAfterWrite, |rig, broken| {
        let x = rig.block(64);
        rig.device.fill(rig.streams[0], x.id.into(), 1, 64).unwrap();
        if !broken {
            rig.order(0, 1);
        }
        rig.device.fill(rig.streams[1], x.id.into(), 2, 64).unwrap();
        rig.close();
    });
}

#[test]
fn one_byte_of_overlap_is_enough_and_none_is_not() {
    check(FindingKind::WriteAfterWrite, |rig, broken| {
        let x = rig.block(64);
        rig.device.fill(rig.streams[0], x.id.into(), 1, if broken { 33 } else { 32 }).unwrap();
        let rest = kiln_driver::DevicePlace::from(x.id).plus(32);
        rig.device.fill(rig.streams[1], rest, 2, 32).unwrap();
        rig.close();
    });
}

#[test]
fn an_event_signalled_too_early() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, event) = (rig.block(64), rig.event());
        if broken {
            rig.signal(0, event);
            rig.write(0, x, 1);
        } else {
            rig.write(0, x, 1);
            rig.signal(0, event);
        }
        rig.wait(1, event);
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn a_wait_queued_before_the_signal() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, event) = (rig.block(64), rig.event());
        if broken {
            rig.wait(1, event);
        }
        rig.write(0, x, 1);
        rig.signal(0, event);
        if !broken {
            rig.wait(1, event);
        }
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn a_wait_that_sees_an_old_signal() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, event) = (rig.block(64), rig.event());
        rig.signal(0, event);
        rig.write(0, x, 1);
        if broken {
            rig.wait(1, event);
            rig.signal(0, event);
        } else {
            rig.signal(0, event);
            rig.wait(1, event);
        }
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn an_edge_missing_in_the_middle_of_a_chain() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, y) = (rig.block(8), rig.block(8));
        rig.write(0, x, 1);
        if !broken {
            rig.order(0, 1);
        }
        rig.write(1, y, 1);
        rig.order(1, 2);
        rig.read(2, x);
        rig.close();
    });
}

#[test]
fn the_host_reads_before_it_waited() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, host) = (rig.block(64), rig.host(64));
        rig.write(0, x, 7);
        rig.download(0, x.id, &host);
        if !broken {
            rig.sync(0);
        }
        let bytes = bytes_of(&host);
        assert!(broken || bytes == [7; 64]);
        rig.close();
    });
}

#[test]
fn the_host_writes_into_an_upload() {
    check(FindingKind::WriteAfterRead, |rig, broken| {
        let (x, host, event) = (rig.block(64), rig.host(64), rig.event());
        assert!(host.write(0, &[1; 64]));
        rig.upload(0, &host, x.id);
        rig.signal(0, event);
        if !broken {
            // A poll that says done is as good as a wait.
            while !rig.device.is_done(event).unwrap() {}
        }
        assert!(host.write(0, &[2; 64]));
        rig.close();
    });
}

#[test]
fn a_wait_for_the_wrong_stream() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, host) = (rig.block(64), rig.host(64));
        rig.write(0, x, 7);
        rig.download(0, x.id, &host);
        rig.sync(usize::from(broken));
        bytes_of(&host);
        rig.close();
    });
}

/// Lets the device work, without the host learning of it.
fn let_run(rig: &Rig, commands: usize) {
    while rig.machine.timeline().len() < commands {
        rig.device.clock().sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn memory_freed_before_its_use_is_known_to_be_done() {
    check(FindingKind::FreeBeforeDone, |rig, broken| {
        let x = rig.direct(64);
        rig.write(0, x, 1);
        let_run(&rig, 1);
        if !broken {
            rig.sync(0);
        }
        rig.device.free(x.id, None).unwrap();
        rig.close();
    });
}

#[test]
fn memory_used_after_it_was_freed() {
    check(FindingKind::UseAfterFree, |rig, broken| {
        let x = rig.direct(64);
        if broken {
            rig.write(0, x, 1);
            rig.device.free(x.id, None).unwrap();
            assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
            return;
        }
        rig.write(0, x, 1);
        rig.sync(0);
        rig.device.free(x.id, None).unwrap();
        rig.close();
    });
}

#[test]
fn pool_memory_freed_while_another_stream_uses_it() {
    check(FindingKind::FreeBeforeDone, |rig, broken| {
        let x = rig.pool(0, 64);
        rig.order(0, 1);
        rig.write(1, x, 1);
        let_run(&rig, 1);
        if !broken {
            rig.order(1, 0);
        }
        rig.device.free(x.id, Some(rig.streams[0])).unwrap();
        rig.close();
    });
}

#[test]
fn pool_memory_used_after_its_free_in_stream_order() {
    check(FindingKind::UseAfterFree, |rig, broken| {
        let x = rig.pool(0, 64);
        if broken {
            rig.device.free(x.id, Some(rig.streams[0])).unwrap();
            rig.write(0, x, 1);
            assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
            return;
        }
        rig.write(0, x, 1);
        rig.device.free(x.id, Some(rig.streams[0])).unwrap();
        rig.close();
    });
}

#[test]
fn pool_memory_used_by_work_not_ordered_after_its_allocation() {
    check(FindingKind::UseBeforeAllocation, |rig, broken| {
        let x = rig.pool(0, 64);
        if !broken {
            rig.order(0, 1);
        }
        rig.write(1, x, 1);
        rig.order(1, 0);
        rig.device.free(x.id, Some(rig.streams[0])).unwrap();
        rig.close();
    });
}

#[test]
fn memory_freed_twice() {
    check(FindingKind::DoubleFree, |rig, broken| {
        let x = rig.direct(64);
        rig.device.free(x.id, None).unwrap();
        if broken {
            assert!(rig.device.free(x.id, None).unwrap_err().is_refused());
        }
        rig.close();
    });
}

#[test]
fn every_kind_of_leak() {
    for kind in 0..7 {
        check(FindingKind::Leak, |rig, broken| {
            if broken {
                match kind {
                    0 => drop(rig.direct(64)),
                    1 => drop(rig.device.allocate_host(64).unwrap()),
                    2 => drop(rig.device.create_event(kiln_driver::EventRequest::Plain).unwrap()),
                    3 => drop(rig.device.reserve(ReserveRequest { bytes: 2 << 20, at: None }).unwrap()),
                    4 => {
                        rig.device.create_pages(PageRequest { bytes: 2 << 20, exportable: false }).unwrap();
                    }
                    5 => drop(rig.pool(0, 64)),
                    _ => {
                        rig.device.create_stream(kiln_driver::StreamRequest::New { priority: 0 }).unwrap();
                    }
                }
            }
            rig.close();
        });
    }
}

#[test]
fn bytes_read_that_nobody_wrote() {
    for through_copy in [false, true] {
        check(FindingKind::Uninitialised, |rig, broken| {
            let (x, y, host) = (rig.block(64), rig.block(64), rig.host(64));
            rig.device.fill(rig.streams[0], x.id.into(), 1, if broken { 63 } else { 64 }).unwrap();
            if through_copy {
                // Inside the device, copying what nobody wrote is no fault; it stays what nobody wrote.
                let (from, to) = (Place::Device(x.id.into()), Place::Device(y.id.into()));
                rig.device.submit(rig.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
                rig.download(0, y.id, &host);
            } else {
                rig.bump(0, x);
            }
            rig.close();
        });
    }
}

#[test]
fn an_event_destroyed_while_a_stream_waits_for_it() {
    check(FindingKind::DestroyedInUse, |rig, broken| {
        let event = rig.device.create_event(kiln_driver::EventRequest::Plain).unwrap();
        rig.signal(0, event);
        rig.wait(1, event);
        if !broken {
            rig.sync(1);
        }
        rig.device.destroy(event.into()).unwrap();
        rig.close();
    });
}

#[test]
fn a_graph_and_a_module_destroyed_while_work_needs_them() {
    check(FindingKind::DestroyedInUse, |rig, broken| {
        let x = rig.block(64);
        let fill = Command::Fill { to: x.id.into(), pattern: Pattern::U8(1), count: 64 };
        let graph = rig.device.build_graph(&[GraphNode { command: fill, after: &[] }]).unwrap();
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        if !broken {
            rig.sync(0);
        }
        rig.device.destroy(graph.into()).unwrap();
        rig.close();
    });
    check(FindingKind::DestroyedInUse, |rig, broken| {
        let image = kiln_driver::Image::HostKernels("rig");
        let module = rig.device.load(&image).unwrap();
        let function = rig.device.function(module, "spin").unwrap().id;
        let Command::Launch(launch) = rig.command(Kernel::Spin, &[0; 8]) else { unreachable!() };
        let launch = Command::Launch(kiln_driver::Launch { function, ..launch });
        rig.device.submit(rig.streams[0], &launch).unwrap();
        if !broken {
            rig.sync(0);
        }
        rig.device.destroy(Object::Module(module)).unwrap();
        rig.close();
    });
}

#[test]
fn an_edge_missing_inside_a_graph() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let x = rig.block(64);
        let (write, read) =
            (pack(Kernel::Write, &[x.address.0, 64, 1]), pack(Kernel::Read, &[x.address.0, 64]));
        let nodes = [
            GraphNode { command: rig.command(Kernel::Write, &write), after: &[] },
            GraphNode { command: rig.command(Kernel::Read, &read), after: if broken { &[] } else { &[0] } },
        ];
        let graph = rig.device.build_graph(&nodes).unwrap();
        rig.give_back_later(graph);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        rig.close();
    });
}

#[test]
fn an_edge_missing_behind_a_graph() {
    check(FindingKind::WriteAfterWrite, |rig, broken| {
        let x = rig.block(64);
        let fill = |value| Command::Fill { to: x.id.into(), pattern: Pattern::U8(value), count: 64 };
        let graph = rig.device.build_graph(&[GraphNode { command: fill(1), after: &[] }]).unwrap();
        rig.give_back_later(graph);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        if !broken {
            rig.order(0, 1);
        }
        rig.device.submit(rig.streams[1], &fill(2)).unwrap();
        rig.close();
    });
}

#[test]
fn a_kernel_that_runs_past_its_block() {
    check(FindingKind::OutOfBounds, |rig, broken| {
        let x = rig.block(64);
        rig.launch(0, Kernel::Write, &[x.address.0, if broken { 65 } else { 64 }, 1]).unwrap();
        if broken {
            let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
            assert_eq!(error.code(), Some(kiln_driver::Code::ILLEGAL_ADDRESS));
            assert_eq!(error.site().unwrap().command, "launch write");
            return;
        }
        rig.close();
    });
}

#[test]
fn a_kernel_that_reaches_for_address_zero() {
    check(FindingKind::OutOfBounds, |rig, broken| {
        let x = rig.block(8);
        rig.write(0, x, 0);
        rig.launch(0, Kernel::Read, &[if broken { 0 } else { x.address.0 }, 8]).unwrap();
        if broken {
            assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
            return;
        }
        rig.close();
    });
}

#[test]
fn a_misaligned_load() {
    check(FindingKind::Misaligned, |rig, broken| {
        let x = rig.block(8);
        rig.write(0, x, 0);
        rig.launch(0, Kernel::Word, &[x.address.0 + u64::from(broken)]).unwrap();
        if broken {
            let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
            assert_eq!(error.code(), Some(kiln_driver::Code::MISALIGNED_ADDRESS));
            return;
        }
        rig.close();
    });
}

#[test]
fn a_kernel_that_writes_through_what_it_declared_to_read() {
    check(FindingKind::Undeclared(Touching::Writing), |rig, broken| {
        let x = rig.block(8);
        rig.write(0, x, 0);
        let kernel = if broken { Kernel::Liar } else { Kernel::Word };
        rig.launch(0, kernel, &[x.address.0]).unwrap();
        rig.close();
    });
}

#[test]
fn atomics_race_with_plain_accesses_and_not_with_each_other() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let x = rig.block(4);
        rig.write(0, x, 0);
        rig.order(0, 1);
        rig.launch(0, Kernel::Count, &[x.address.0]).unwrap();
        if broken {
            rig.launch(1, Kernel::Word, &[x.address.0]).unwrap();
        } else {
            rig.launch(1, Kernel::Count, &[x.address.0]).unwrap();
        }
        rig.close();
    });
}

#[test]
fn a_write_to_pages_that_may_only_be_read() {
    check(FindingKind::ReadOnly, |rig, broken| {
        let bytes = 2 << 20;
        let reservation = rig.device.reserve(ReserveRequest { bytes, at: None }).unwrap();
        let pages = rig.device.create_pages(PageRequest { bytes, exportable: false }).unwrap();
        rig.device.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
        rig.launch(0, Kernel::Write, &[reservation.address.0, 64, 1]).unwrap();
        rig.sync(0);
        rig.device.protect(reservation.id, 0, bytes, Protection::Read).unwrap();
        rig.launch(0, Kernel::Read, &[reservation.address.0, 64]).unwrap();
        if broken {
            rig.launch(0, Kernel::Write, &[reservation.address.0, 64, 1]).unwrap();
            let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
            assert_eq!(error.code(), Some(kiln_driver::Code::ILLEGAL_ADDRESS));
            return;
        }
        rig.sync(0);
        rig.device.unmap(reservation.id, 0, bytes).unwrap();
        rig.device.destroy(pages.into()).unwrap();
        rig.device.destroy(reservation.id.into()).unwrap();
        rig.close();
    });
}

#[test]
fn pages_unmapped_before_their_use_is_known_to_be_done() {
    check(FindingKind::FreeBeforeDone, |rig, broken| {
        let bytes = 2 << 20;
        let reservation = rig.device.reserve(ReserveRequest { bytes, at: None }).unwrap();
        let pages = rig.device.create_pages(PageRequest { bytes, exportable: false }).unwrap();
        rig.device.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
        rig.device.fill(rig.streams[0], reservation.id.into(), 1, 64).unwrap();
        let_run(&rig, 1);
        if !broken {
            rig.sync(0);
        }
        rig.device.unmap(reservation.id, 0, bytes).unwrap();
        rig.device.destroy(pages.into()).unwrap();
        rig.device.destroy(reservation.id.into()).unwrap();
        rig.close();
    });
}

#[test]
fn a_host_block_given_back_under_a_copy() {
    check(FindingKind::UseAfterFree, |rig, broken| {
        let (x, host) = (rig.block(64), rig.device.allocate_host(64).unwrap());
        rig.upload(0, &host, x.id);
        if !broken {
            rig.sync(0);
        }
        rig.device.destroy(host.id().into()).unwrap();
        rig.close();
    });
}

#[test]
fn a_copy_between_devices_without_an_order() {
    let two = |seed| config(seed).device(DeviceConfig::default()).device(DeviceConfig::default());
    check_on(FindingKind::ReadAfterWrite, two, |machine, broken| {
        let (here, there) = (Rig::on(machine, 0, 1), Rig::on(machine, 1, 1));
        let (x, y) = (here.block(64), there.block(64));
        here.write(0, x, 3);
        if !broken {
            here.sync(0);
        }
        let (from, to) = (Place::Peer(x.id.into()), Place::Device(y.id.into()));
        there.device.submit(there.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
        there.close();
        here.close();
    });
}

#[test]
fn stale_handles_if_asked_for() {
    let strict = |seed| config(seed).checks(Checks { stale_handles: true, ..Checks::default() });
    check_on(FindingKind::StaleHandle, strict, |machine, broken| {
        let rig = Rig::new(machine, 1);
        let x = rig.direct(64);
        rig.device.free(x.id, None).unwrap();
        let allocated = rig.direct(64);
        let id = if broken { x.id } else { allocated.id };
        let filled = rig.device.fill(rig.streams[0], id.into(), 1, 1);
        assert_eq!(filled.is_err(), broken);
        rig.sync(0);
        rig.device.free(allocated.id, None).unwrap();
        rig.close();
    });
}

#[test]
fn a_finding_says_who_what_where_and_how_to_see_it_again() {
    let rig = Rig::seeded(7, 2);
    let x = rig.device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    rig.write(0, x, 1);
    rig.read(1, x);
    let report = { rig.machine.clone() }.finish();
    let race = report.findings.iter().find(|finding| finding.kind.is_race()).unwrap();
    assert_eq!(
        race.to_string(),
        "read after write without an order: launch read (device 0 stream:1.1 submission 1) reads bytes 0..64 of \
         memory:0.1 (at 0x700000000000), and nothing orders it after launch write (device 0 stream:0.1 submission 1), \
         which writes them; let the later stream wait for an event the earlier one signals after this, or wait on the \
         host in between. Repeat with seed 7."
    );
    assert!(report.to_string().contains("found"), "{report}");
}
