//! Calls that cannot be: refused before anything is queued, with what to do.

use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};
use kiln_libs::{LibraryError, Result};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, operation: &str, reason: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("{operation}: ")) && text.contains(reason), "{text}");
}

/// Kernels of a sort count elements in 30 bits.
#[test]
fn more_keys_than_are_counted_are_refused() {
    let machine = Machine::new(MachineConfig::seeded(1).device(DeviceConfig::with_memory(9 << 30)));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let prims = Primitives::new(&gpu);
    // Memory that is not touched takes none of the host.
    let [keys, sorted] = [(); 2].map(|()| gpu.allocate::<u32>(1 << 30).unwrap());
    let reason = "has 1073741824 elements, more than 1073741823; work on views of it, one after the other";
    refused(prims.sort(&keys, &sorted).submit(), "prims.sort", &format!("`input` {reason}"));
    refused(prims.sort(&keys, &keys).submit(), "prims.sort", &format!("`input` {reason}"));
    refused(prims.top(&keys, &sorted).submit(), "prims.top", &format!("`output` {reason}"));
    let mut graph = gpu.graph();
    refused(prims.sort(&keys, &sorted).record(&mut graph), "prims.sort", reason);
    assert_eq!(graph.len(), 0);
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let prims = Primitives::new(&gpu);
    let (ten, nine, two) =
        (gpu.zeros::<u32>(10).unwrap(), gpu.zeros::<u32>(9).unwrap(), gpu.zeros::<u64>(2).unwrap());
    let nine_wide = gpu.zeros::<u64>(9).unwrap();
    refused(
        prims.reduce(&ten, ReduceOperator::Sum, &nine).submit(),
        "prims.reduce",
        "9 elements and must have 1",
    );
    refused(
        prims.scan_inclusive(&ten, ScanOperator::Sum, &nine).submit(),
        "prims.scan_inclusive",
        "9 elements and must have 10",
    );
    refused(prims.sort(&ten, &nine).submit(), "prims.sort", "9 elements and must have 10");
    refused(prims.sort_by_key(&ten, &nine, &ten, &nine).submit(), "prims.sort_by_key", "`values` has 9");
    refused(
        prims.reduce_segments(&nine, &ten, ReduceOperator::Sum, &ten).submit(),
        "prims.reduce_segments",
        "and must have 11",
    );
    let count = gpu.zeros::<u64>(1).unwrap();
    refused(
        prims.select(&ten, Predicate::Less(3), &nine, &count).submit(),
        "prims.select",
        "10 may be written",
    );
    refused(
        prims.select(&nine, Predicate::Less(3), &ten, &two).submit(),
        "prims.select",
        "2 elements and must have 1",
    );
    refused(prims.unique(&ten, &nine, &count).submit(), "prims.unique", "10 may be written");
    let output = gpu.zeros::<u32>(10).unwrap();
    refused(
        prims.unique(&ten, &output, &count).lengths(&nine_wide).submit(),
        "prims.unique",
        "10 may be written",
    );
    refused(prims.top(&nine, &ten).submit(), "prims.top", "the first 10 of 9 elements");
    assert_eq!(ten.download().unwrap(), [0; 10]);
}

#[test]
fn memory_that_is_shared_wrongly_is_refused() {
    let gpu = DeviceRuntime::simulated(2).unwrap();
    let prims = Primitives::new(&gpu);
    let all = gpu.zeros::<u32>(20).unwrap();
    let (first, second) = (all.view(0..10).unwrap(), all.view(5..15).unwrap());
    refused(
        prims.scan_inclusive(&first, ScanOperator::Sum, &second).submit(),
        "prims.scan_inclusive",
        "share a part",
    );
    refused(prims.sort(&first, &second).submit(), "prims.sort", "share a part");
    refused(
        prims.reduce(&first, ReduceOperator::Sum, &all.view(3..4).unwrap()).submit(),
        "prims.reduce",
        "share memory",
    );
    let count = all.view(0..2).unwrap().cast::<u64>().unwrap();
    let output = gpu.zeros::<u32>(10).unwrap();
    refused(
        prims.select(&first, Predicate::Less(3), &first, &count).submit(),
        "prims.select",
        "share memory",
    );
    refused(
        prims.unique(&first, &output, &count).submit(),
        "prims.unique",
        "`input` and `count` share memory",
    );
    refused(
        prims.sort_by_key(&first, &second, &first, &second).submit(),
        "prims.sort_by_key",
        "share memory",
    );
    refused(prims.top(&first, &all.view(9..10).unwrap()).submit(), "prims.top", "share memory");
}

#[test]
fn arguments_without_a_meaning_are_refused() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let prims = Primitives::new(&gpu);
    let (keys, none) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(0).unwrap());
    refused(prims.sort(&keys, &keys).bits(4..33).submit(), "prims.sort", "bits 4 to 33 of keys that have 32");
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let reversed = 9..4;
    refused(prims.sort(&keys, &keys).bits(reversed).submit(), "prims.sort", "the lower end first");
    let triples = gpu.zeros::<[u32; 3]>(4).unwrap();
    refused(
        prims.sort_by_key(&keys, &triples, &keys, &triples).submit(),
        "prims.sort_by_key",
        "values of 12 bytes",
    );
    let (count, flags) = (gpu.zeros::<u64>(1).unwrap(), gpu.zeros::<u8>(4).unwrap());
    let others = gpu.zeros::<[u32; 3]>(4).unwrap();
    refused(
        prims.select_flagged(&triples, &flags, &others, &count).submit(),
        "prims.select_flagged",
        "12 bytes",
    );
    refused(prims.arg_min(&none, &count).submit(), "prims.arg_min", "no elements");
    let (floats, bins) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<u64>(8).unwrap());
    for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f32::NAN, 1.0), (0.0, f32::INFINITY)] {
        refused(
            prims.histogram(&floats, low..high, &bins).submit(),
            "prims.histogram",
            "the lower one first",
        );
    }
    let none = gpu.zeros::<u64>(0).unwrap();
    refused(prims.histogram(&floats, 0.0..1.0, &none).submit(), "prims.histogram", "no bins");
    let wide = gpu.zeros::<u64>(4).unwrap();
    refused(prims.histogram(&wide, 0..u64::MAX, &bins).submit(), "prims.histogram", "8 bins over");
    gpu.synchronize().unwrap();
}

#[test]
fn another_devices_buffer_is_told() {
    let (gpu, other) = (DeviceRuntime::simulated(4).unwrap(), DeviceRuntime::simulated(5).unwrap());
    let (prims, foreign) = (Primitives::new(&gpu), other.zeros::<u32>(4).unwrap());
    let own = gpu.zeros::<u32>(4).unwrap();
    assert!(prims.sort(&foreign, &own).submit().unwrap_err().runtime().is_some());
    assert!(
        prims.scan_inclusive(&own, ScanOperator::Sum, &foreign).submit().unwrap_err().runtime().is_some()
    );
}
