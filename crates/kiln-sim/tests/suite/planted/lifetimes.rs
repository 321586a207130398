//! Memory and objects used outside of their life.

use kiln_driver::{
    Command, Driver, DriverExt, EventRequest, GraphNode, Image, LaunchCommand, Object, PageRequest, Pattern,
    Protection, ReserveRequest, StreamRequest,
};
use kiln_sim::{FindingKind, SimChecks};

use super::{check, check_on, let_run};
use crate::rig::{Kernel, Rig, config};

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
                    2 => drop(rig.device.create_event(EventRequest::Plain).unwrap()),
                    3 => drop(rig.device.reserve(ReserveRequest { bytes: 2 << 20, at: None }).unwrap()),
                    4 => {
                        rig.device.create_pages(PageRequest { bytes: 2 << 20, exportable: false }).unwrap();
                    }
                    5 => drop(rig.pool(0, 64)),
                    _ => {
                        rig.device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
                    }
                }
            }
            rig.close();
        });
    }
}

#[test]
fn an_event_destroyed_while_a_stream_waits_for_it() {
    check(FindingKind::DestroyedInUse, |rig, broken| {
        let event = rig.device.create_event(EventRequest::Plain).unwrap();
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
        let image = Image::HostKernels("rig");
        let module = rig.device.load(&image).unwrap();
        let function = rig.device.function(module, "spin").unwrap().id;
        let Command::Launch(launch) = rig.command(Kernel::Spin, &[0; 8]) else { unreachable!() };
        let launch = Command::Launch(LaunchCommand { function, ..launch });
        rig.device.submit(rig.streams[0], &launch).unwrap();
        if !broken {
            rig.sync(0);
        }
        rig.device.destroy(Object::Module(module)).unwrap();
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
fn stale_handles_if_asked_for() {
    let strict = |seed| config(seed).checks(SimChecks { stale_handles: true, ..SimChecks::default() });
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
