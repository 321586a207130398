//! The checking layer finds what it claims, and nothing else.

use std::sync::Arc;

use kiln_driver::layer::{Checking, Layered, Rule, Severity, Violation};
use kiln_driver::{
    Access, Command, DeclaredSpan, DeviceAddress, DeviceMemory, DevicePlace, Driver, DriverExt, EventId,
    EventRequest, GraphNode, Image, LaunchCommand, MemoryRequest, ModuleId, PageRequest, Pattern, Place,
    Protection, Reservation, ReserveRequest, Result, StreamId, StreamRequest, Timeout, Vouched, WaitTarget,
};
use kiln_sim::{HostKernel, KernelLibrary, Machine, MachineConfig, SimChecks};

type Checked = Layered<Checking>;

fn driver(layer: Checking) -> Checked {
    let touch = HostKernel::new("touch").pointer(Access::Write).body(|_| Ok(()));
    let library = KernelLibrary::new("tests").kernel(touch);
    // The layer is what is tested here, not the machine's own checks.
    let machine = Machine::new(MachineConfig::seeded(1).library(library).checks(SimChecks::off()));
    Layered::new(machine.device(0).unwrap(), layer)
}

/// The rules a program broke.
fn broken(program: impl FnOnce(&Checked) -> Result<()>) -> Vec<Rule> {
    let driver = driver(Checking::new());
    program(&driver).unwrap();
    driver.layer().violations().iter().map(|violation| violation.rule).collect()
}

fn stream(driver: &Checked) -> StreamId {
    driver.create_stream(StreamRequest::New { priority: 0 }).unwrap()
}

fn event(driver: &Checked) -> EventId {
    driver.create_event(EventRequest::Plain).unwrap()
}

fn memory(driver: &Checked) -> DeviceMemory {
    driver.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap()
}

fn fill(driver: &Checked, stream: StreamId, to: impl Into<DevicePlace>, count: u64) {
    driver.fill(stream, to.into(), 1, count).unwrap();
}

/// Two granules of addresses with pages behind the first.
fn half_mapped(driver: &Checked) -> (Reservation, u64) {
    let granule = driver.info().limits.page_granularity_bytes;
    let reservation = driver.reserve(ReserveRequest { bytes: 2 * granule, at: None }).unwrap();
    let pages = driver.create_pages(PageRequest { bytes: granule, exportable: false }).unwrap();
    driver.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
    (reservation, granule)
}

fn launch(driver: &Checked, stream: StreamId, module: ModuleId, memory: &DeviceMemory) {
    let launch = LaunchCommand {
        function: driver.function(module, "touch").unwrap().id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &memory.address.0.to_le_bytes(),
        declared: None,
        // SAFETY: the kernel is a host function that touches nothing.
        vouched: unsafe { Vouched::new() },
    };
    driver.submit(stream, &Command::Launch(launch)).unwrap();
}

#[test]
fn memory_freed_under_a_queued_fill() {
    let freed_early = broken(|driver| {
        let (stream, memory) = (stream(driver), memory(driver));
        fill(driver, stream, memory.id, 64);
        driver.free(memory.id, None)
    });
    assert_eq!(freed_early, [Rule::UsedWhenTakenBack]);
    for wait in 0..3 {
        let freed_after = broken(|driver| {
            let (stream, event, memory) = (stream(driver), event(driver), memory(driver));
            fill(driver, stream, memory.id, 64);
            driver.submit(stream, &Command::Signal(event))?;
            match wait {
                0 => driver.synchronize(stream)?,
                1 => drop(driver.wait(WaitTarget::Event(event), Timeout::Never)?),
                _ => {
                    while driver.progress(stream)?.completed.0 < 1 {
                        driver.clock().sleep(std::time::Duration::from_micros(10));
                    }
                }
            }
            driver.free(memory.id, None)
        });
        assert_eq!(freed_after, [], "way {wait} of knowing that it is done");
    }
}

#[test]
fn objects_destroyed_under_work_that_names_them() {
    let host = broken(|driver| {
        let (stream, memory, host) = (stream(driver), memory(driver), driver.allocate_host(64)?);
        driver.download(stream, memory.id.into(), &host, 64)?;
        driver.destroy(host.id().into())
    });
    let module = broken(|driver| {
        let (stream, memory) = (stream(driver), memory(driver));
        let module = driver.load(&Image::HostKernels("tests"))?;
        launch(driver, stream, module, &memory);
        driver.destroy(module.into())
    });
    let graph = broken(|driver| {
        let (stream, memory) = (stream(driver), memory(driver));
        let command = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(1), count: 64 };
        let graph = driver.build_graph(&[GraphNode { command, after: &[] }])?;
        driver.submit(stream, &Command::Graph(graph))?;
        driver.destroy(graph.into())
    });
    let waited_for = broken(|driver| {
        let (first, second, event) = (stream(driver), stream(driver), event(driver));
        driver.order(first, event, second)?;
        driver.destroy(event.into())
    });
    for found in [host, module, graph, waited_for] {
        assert_eq!(found, [Rule::UsedWhenTakenBack]);
    }
    let allowed = broken(|driver| {
        let (first, event, memory) = (stream(driver), event(driver), memory(driver));
        fill(driver, first, memory.id, 64);
        driver.submit(first, &Command::Signal(event))?;
        // The event has no waiters, and a stream's work outlives it.
        driver.destroy(event.into())?;
        driver.destroy(first.into())
    });
    assert_eq!(allowed, []);
}

#[test]
fn two_streams_on_the_same_bytes() {
    let race = |order: fn(&Checked, StreamId, StreamId) -> Result<()>, second_at: u64| {
        broken(|driver| {
            let (first, second, memory) = (stream(driver), stream(driver), memory(driver));
            fill(driver, first, memory.id, 32);
            order(driver, first, second)?;
            fill(driver, second, DevicePlace::from(memory.id).plus(second_at), 32);
            driver.synchronize(first)?;
            driver.synchronize(second)
        })
    };
    assert_eq!(race(|_, _, _| Ok(()), 31), [Rule::Unordered]);
    assert_eq!(race(|_, _, _| Ok(()), 32), [], "other bytes");
    assert_eq!(race(|driver, first, second| driver.order(first, event(driver), second), 0), []);
    assert_eq!(race(|driver, first, _| driver.synchronize(first), 0), []);
    let wrong_way =
        |driver: &Checked, first: StreamId, second: StreamId| driver.order(second, event(driver), first);
    assert_eq!(race(wrong_way, 0), [Rule::Unordered]);
}

#[test]
fn readers_race_with_writers_and_not_with_each_other() {
    let found = |second_writes: bool| {
        broken(|driver| {
            let (first, second, source) = (stream(driver), stream(driver), memory(driver));
            fill(driver, first, source.id, 64);
            driver.synchronize(first)?;
            let (one, two) = (driver.allocate_host(64)?, driver.allocate_host(64)?);
            driver.download(first, source.id.into(), &one, 64)?;
            match second_writes {
                true => driver.upload(second, &two, source.id.into(), 64)?,
                false => driver.download(second, source.id.into(), &two, 64)?,
            };
            Ok(())
        })
    };
    assert_eq!(found(true), [Rule::Unordered]);
    assert_eq!(found(false), []);
}

#[test]
fn pool_memory_out_of_order() {
    let program = |use_ordered: bool, free_ordered: bool| {
        broken(|driver| {
            let (first, second) = (stream(driver), stream(driver));
            let memory = driver.allocate(MemoryRequest::Pool { bytes: 64, stream: first })?;
            if use_ordered {
                driver.order(first, event(driver), second)?;
            }
            fill(driver, second, memory.id, 64);
            if free_ordered {
                driver.order(second, event(driver), first)?;
            }
            driver.free(memory.id, Some(first))
        })
    };
    assert_eq!(program(true, true), []);
    assert_eq!(program(false, true), [Rule::PoolOrder]);
    assert_eq!(program(true, false), [Rule::PoolOrder]);
}

#[test]
fn copies_that_overlap_themselves() {
    let driver = driver(Checking::strict());
    let (stream, memory) = (stream(&driver), memory(&driver));
    let place = |offset| Place::Device(DevicePlace::from(memory.id).plus(offset));
    let copy = |to| driver.submit(stream, &Command::Copy { from: place(0), to: place(to), bytes: 16 });
    assert!(copy(15).is_err() && copy(16).is_ok());
    let rules: Vec<_> = driver.layer().violations().iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::Overlap]);
}

#[test]
fn bytes_without_pages_or_without_leave_to_write() {
    let unmapped = driver(Checking::strict());
    let (reservation, granule) = half_mapped(&unmapped);
    let stream_of = stream(&unmapped);
    let across = DevicePlace::from(reservation.id).plus(granule - 8);
    assert!(unmapped.fill(stream_of, across, 1, 16).unwrap_err().is_refused());
    unmapped.protect(reservation.id, 0, granule, Protection::Read).unwrap();
    assert!(unmapped.fill(stream_of, reservation.id.into(), 1, 16).unwrap_err().is_refused());
    let rules: Vec<_> = unmapped.layer().violations().iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::Unmapped, Rule::ReadOnly]);

    let under_work = broken(|driver| {
        let (stream, (reservation, granule)) = (stream(driver), half_mapped(driver));
        fill(driver, stream, reservation.id, 16);
        driver.unmap(reservation.id, 0, granule)
    });
    assert_eq!(under_work, [Rule::UsedWhenTakenBack]);
}

#[test]
fn nodes_without_an_edge_between_them() {
    let found = |after: &'static [u32]| {
        broken(|driver| {
            let memory = memory(driver);
            let command = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(1), count: 64 };
            let nodes = [GraphNode { command, after: &[] }, GraphNode { command, after }];
            driver.build_graph(&nodes).map(drop)
        })
    };
    assert_eq!(found(&[]), [Rule::UnorderedNodes]);
    assert_eq!(found(&[0]), []);
    let updated = broken(|driver| {
        let (one, two) = (memory(driver), memory(driver));
        let on = |memory: &DeviceMemory| Command::Fill {
            to: memory.id.into(),
            pattern: Pattern::U8(1),
            count: 64,
        };
        let nodes =
            [GraphNode { command: on(&one), after: &[] }, GraphNode { command: on(&two), after: &[] }];
        let graph = driver.build_graph(&nodes)?;
        driver.update_graph(graph, 1, &on(&one))
    });
    assert_eq!(updated, [Rule::UnorderedNodes]);
}

#[test]
fn warnings_are_not_errors_and_are_not_refused() {
    let driver = driver(Checking::strict());
    let (stream, event, memory) = (stream(&driver), event(&driver), memory(&driver));
    driver.submit(stream, &Command::Wait(event)).unwrap();
    driver.free(memory.id, None).unwrap();
    assert!(driver.free(memory.id, None).is_err());
    let violations = driver.layer().violations();
    let seen: Vec<_> = violations.iter().map(|violation| (violation.rule, violation.severity())).collect();
    assert_eq!(seen, [(Rule::NeverSignalled, Severity::Warning), (Rule::Stale, Severity::Warning)]);
}

#[test]
fn a_strict_layer_refuses_and_nothing_happens() {
    let driver = driver(Checking::strict());
    let (first, second, memory) = (stream(&driver), stream(&driver), memory(&driver));
    fill(&driver, first, memory.id, 64);
    let error = driver.fill(second, memory.id.into(), 2, 64).unwrap_err();
    assert!(error.is_refused() && error.call() == "submit", "{error}");
    assert_eq!(driver.inner().progress(second).unwrap().submitted.0, 0);
    assert!(driver.free(memory.id, None).unwrap_err().to_string().contains("not known to be done"));
    driver.synchronize(first).unwrap();
    driver.free(memory.id, None).unwrap();
    let Violation { object, why, .. } = driver.layer().violations().remove(0);
    assert_eq!(object, memory.id.to_string());
    assert!(why.contains("writes bytes 0..64"), "{why}");
}

#[test]
fn what_is_left_is_listed_in_the_order_it_was_made() {
    let driver = driver(Checking::new());
    let (first, second, memory) = (stream(&driver), stream(&driver), memory(&driver));
    driver.destroy(first.into()).unwrap();
    let left: Vec<_> = driver.layer().finish().iter().map(|object| object.object.clone()).collect();
    assert_eq!(left, [second.to_string(), memory.id.to_string()]);
}

#[test]
fn threads_with_separate_streams_trip_nothing() {
    let driver = Arc::new(driver(Checking::strict()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let (stream, event, memory) = (stream(&driver), event(&driver), memory(&driver));
                    fill(&driver, stream, memory.id, 64);
                    driver.submit(stream, &Command::Signal(event)).unwrap();
                    let _ = driver.wait(WaitTarget::Event(event), Timeout::Never).unwrap();
                    driver.free(memory.id, None).unwrap();
                    driver.destroy(event.into()).unwrap();
                    driver.destroy(stream.into()).unwrap();
                }
            });
        }
    });
    assert_eq!(driver.layer().violations(), []);
    assert_eq!(driver.layer().finish(), []);
}

/// A launch that declares what its kernel may do to memory.
fn declared_launch(driver: &Checked, stream: StreamId, module: ModuleId, spans: &[DeclaredSpan]) {
    let launch = LaunchCommand {
        function: driver.function(module, "touch").unwrap().id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &spans[0].address.0.to_le_bytes(),
        declared: Some(spans),
        // SAFETY: the kernel is a host function that touches nothing.
        vouched: unsafe { Vouched::new() },
    };
    driver.submit(stream, &Command::Launch(launch)).unwrap();
}

fn span(memory: &DeviceMemory, from: u64, access: Access) -> DeclaredSpan {
    let address = DeviceAddress(memory.address.0 + from);
    DeclaredSpan { address, bytes: memory.bytes - from, access, parameter: Some(0) }
}

#[test]
fn what_launches_declare_is_followed_if_that_is_asked_for() {
    let program = |layer: Checking, orders: bool, from: u64, access: Access, filled: u64| {
        let driver = driver(layer);
        let (a, b, event, memory) = (stream(&driver), stream(&driver), event(&driver), memory(&driver));
        let module = driver.load(&Image::HostKernels("tests")).unwrap();
        declared_launch(&driver, a, module, &[span(&memory, from, access)]);
        if orders {
            driver.submit(a, &Command::Signal(event)).unwrap();
            driver.submit(b, &Command::Wait(event)).unwrap();
        }
        fill(&driver, b, memory.id, filled);
        let found = driver.layer().take_violations();
        assert!(driver.layer().violations().is_empty(), "they were taken");
        found
    };
    let follows = || Checking::new().following_launches();
    let rules = |found: Vec<Violation>| found.iter().map(|found| found.rule).collect::<Vec<_>>();
    let found = program(follows(), false, 0, Access::Write, 64);
    assert_eq!(rules(found.clone()), [Rule::Unordered]);
    let told = found[0].to_string();
    assert!(
        told.contains("the launch of touch of stream:") && told.contains("may write within bytes 0..64"),
        "{told}"
    );
    // A read and a fill; a fill of a part, which the kernel may leave alone; a kernel that got no part of what is filled.
    assert_eq!(rules(program(follows(), false, 0, Access::Read, 64)), [Rule::Unordered]);
    assert_eq!(rules(program(follows(), false, 0, Access::Write, 32)), [Rule::MayBeUnordered]);
    assert_eq!(rules(program(follows(), false, 32, Access::Write, 32)), []);
    assert_eq!(rules(program(follows(), true, 0, Access::Write, 64)), []);
    assert_eq!(rules(program(Checking::new(), false, 0, Access::Write, 64)), []);
    assert_eq!(Rule::MayBeUnordered.severity(), Severity::Warning);
}

#[test]
fn two_launches_may_touch_different_bytes_of_one_block() {
    let driver = driver(Checking::new().following_launches());
    let (a, b, memory) = (stream(&driver), stream(&driver), memory(&driver));
    let module = driver.load(&Image::HostKernels("tests")).unwrap();
    // Both read; addresses that are no memory are nothing.
    declared_launch(&driver, a, module, &[span(&memory, 0, Access::Read)]);
    declared_launch(&driver, b, module, &[span(&memory, 0, Access::Read)]);
    let nowhere = DeclaredSpan { address: DeviceAddress(8), ..span(&memory, 0, Access::Write) };
    declared_launch(&driver, b, module, &[nowhere]);
    assert_eq!(driver.layer().take_violations(), []);
    declared_launch(&driver, b, module, &[span(&memory, 0, Access::Write)]);
    let found = driver.layer().take_violations();
    assert_eq!(found.iter().map(|found| found.rule).collect::<Vec<_>>(), [Rule::MayBeUnordered]);
    // Memory that is freed is in no launch any more, and its kernels may still run.
    driver.free(memory.id, None).unwrap();
    let found = driver.layer().take_violations();
    assert_eq!(found.iter().map(|found| found.rule).collect::<Vec<_>>(), [Rule::UsedWhenTakenBack]);
    declared_launch(&driver, a, module, &[span(&memory, 0, Access::Write)]);
    assert_eq!(driver.layer().take_violations(), []);
}
