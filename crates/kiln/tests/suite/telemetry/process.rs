//! The numbers of a whole process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln::telemetry::{Count, Gauge, ProcessSnapshot, Snapshot, process_snapshot};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

use super::parser::parse;

/// A machine with one device of that name, which no other test has.
fn machine(name: &str) -> Machine {
    Machine::new(
        MachineConfig::seeded(1).device(DeviceConfig { name: name.into(), ..DeviceConfig::default() }),
    )
}

fn runtime(machine: &Machine) -> DeviceRuntime {
    DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap()
}

/// Ends the other threads of a test, also when this one panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn device<'a>(seen: &'a ProcessSnapshot, name: &str) -> &'a Snapshot {
    let mut named = seen.devices().iter().filter(|snapshot| snapshot.device().name == name);
    let found = named.next().expect("the device has a runtime");
    assert!(named.next().is_none(), "each device is listed once");
    found
}

#[test]
fn all_runtimes_of_a_device_are_added_up_and_those_that_ended_stay_counted() {
    const NAME: &str = "added up";
    let machine = machine(NAME);
    let (one, other) = (runtime(&machine), runtime(&machine));
    let (a, b) = (one.upload(&[1_u32; 100]).unwrap(), other.upload(&[2_u32; 50]).unwrap());
    let numbers = |seen: &ProcessSnapshot| {
        let seen = device(seen, NAME);
        (seen.count(Count::Uploads), seen.count(Count::UploadedBytes), seen.gauge(Gauge::LiveBytes))
    };
    assert_eq!(numbers(&process_snapshot()), (2, 600, 600));
    one.telemetry().reset();
    assert_eq!(numbers(&process_snapshot()), (2, 600, 600), "a reset is for the one who reads that runtime");
    drop((a, one));
    assert_eq!(numbers(&process_snapshot()), (2, 600, 200));
    let again = runtime(&machine);
    again.upload(&[3_u32; 25]).unwrap();
    drop((b, other, again));
    let seen = process_snapshot();
    assert_eq!(numbers(&seen), (3, 700, 0));
    assert!(seen.count(Count::UploadedBytes) >= 700 && seen.count(Count::Uploads) >= 3);
}

#[test]
fn the_page_of_a_process_has_every_series_once_for_each_device() {
    let (first, second) = (machine("page, first"), machine("page, second"));
    let runtimes = [runtime(&first), runtime(&first), runtime(&second)];
    for gpu in &runtimes {
        gpu.zeros::<u8>(64).unwrap();
    }
    let page = parse(&process_snapshot().prometheus()).unwrap();
    for (name, fills) in [("page, first", 2.0), ("page, second", 1.0)] {
        for (metric, lines) in &page {
            let mut labels: Vec<_> = lines.samples.keys().filter(|labels| labels["name"] == name).collect();
            let found = labels.len();
            labels.sort();
            labels.dedup();
            assert!(found > 0 && labels.len() == found, "{metric} of {name}");
        }
        let filled: Vec<f64> = page["kiln_fills_total"]
            .samples
            .iter()
            .filter(|(labels, _)| labels["name"] == name)
            .map(|(_, value)| *value)
            .collect();
        assert_eq!(filled, [fills]);
    }
}

#[test]
fn counts_never_decrease_while_runtimes_come_and_go() {
    const NAME: &str = "come and go";
    let machine = machine(NAME);
    // One that stays, so that the device is always listed.
    let _stays = runtime(&machine);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _over = Over(&over);
                for _ in 0..50 {
                    let gpu = runtime(&machine);
                    gpu.zeros::<u8>(16).unwrap();
                    gpu.synchronize_within(Duration::from_secs(60)).unwrap();
                }
            });
        }
        let mut last = 0;
        while !over.load(Ordering::SeqCst) {
            let now = device(&process_snapshot(), NAME).count(Count::Fills);
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    });
    assert_eq!(device(&process_snapshot(), NAME).count(Count::Fills), 100);
}

#[test]
fn a_runtime_ends_where_it_is_dropped_also_while_its_numbers_are_read() {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                process_snapshot();
            }
        });
        let _over = Over(&over);
        for _ in 0..200 {
            let machine = machine("dropped");
            drop(runtime(&machine).zeros::<u8>(16).unwrap());
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    });
}
