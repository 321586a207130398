//! Library calls through kiln and the library called directly, taking turns in one process on the same memory.

use std::time::Duration;

use kiln::graph::GraphBuilder;
use kiln::{DeviceRuntime, Graph};

use crate::Failure;
use crate::raw_graph::RawGraph;
use crate::result_table::Table;
use crate::timing::{Percentiles, Subject};

/// A graph takes about so long on the device.
const GRAPH_TIME: Duration = Duration::from_millis(10);
/// Calls in a graph at most.
const MAX_CALLS: usize = 100;
/// Turns of each subject.
pub(crate) const TURNS: usize = 15;

/// Something that is measured beside others, with its name.
pub(crate) type NamedSubject<'a> = (&'a str, Subject<'a>);

/// How many calls go into a graph, so that neither its launch nor the steps of the clock matter.
pub(crate) fn calls_for(one_ns: f64) -> usize {
    ((GRAPH_TIME.as_nanos() as f64 / one_ns.max(1.0)) as usize).clamp(1, MAX_CALLS)
}

/// A graph of kiln's with so many calls.
pub(crate) fn recorded(
    gpu: &DeviceRuntime,
    calls: usize,
    mut record: impl FnMut(&mut GraphBuilder) -> Result<(), Failure>,
) -> Result<Graph, Failure> {
    let mut graph = gpu.graph();
    for _ in 0..calls {
        record(&mut graph)?;
    }
    Ok(graph.build()?)
}

/// The device's time for one of the calls in a graph of kiln's.
pub(crate) fn replayed<'a>(graph: &'a Graph, calls: usize) -> Subject<'a> {
    Box::new(move || Ok(graph.replay_timed()?.wait()?.device.as_nanos() as f64 / calls as f64))
}

/// The device's time for one of the calls in a captured graph.
pub(crate) fn captured<'a>(graph: &'a RawGraph, calls: usize) -> Subject<'a> {
    Box::new(move || Ok(graph.run_timed()? / calls as f64))
}

/// Measures the subjects in turn, after one turn that does not count, and adds a row for each. The first one is what the others are compared with.
pub(crate) fn compare(
    table: &mut Table,
    workload: &str,
    turns: usize,
    mut subjects: Vec<NamedSubject<'_>>,
) -> Result<(), Failure> {
    let mut values: Vec<Vec<f64>> = subjects.iter().map(|_| Vec::with_capacity(turns)).collect();
    for turn in 0..=turns {
        for ((_, measure), values) in subjects.iter_mut().zip(&mut values) {
            let value = measure()?;
            if turn > 0 {
                values.push(value);
            }
        }
    }
    for ((name, _), values) in subjects.iter().zip(values) {
        table.add(workload, *name, Percentiles::of(values));
    }
    Ok(())
}

/// Refuses results that differ by more than a part of the largest: then both did not compute the same.
pub(crate) fn check_equal(workload: &str, tolerance: f32, kiln: &[f32], raw: &[f32]) -> Result<(), Failure> {
    let largest = kiln.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let agrees = |one: f32, other: f32| (one - other).abs() <= largest * tolerance;
    match kiln.iter().zip(raw).position(|(one, other)| !agrees(*one, *other)) {
        None => Ok(()),
        Some(at) => {
            Err(format!("{workload}: element {at} is {} by kiln and {} by the library", kiln[at], raw[at])
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{calls_for, check_equal};

    #[test]
    fn results_that_differ_are_refused() {
        assert!(check_equal("t", 0.01, &[1.0, 2.0], &[1.0, 2.0]).is_ok());
        assert!(check_equal("t", 0.01, &[1.0, 2000.0], &[1.1, 2000.0]).is_ok(), "small beside the largest");
        let refused = check_equal("t", 0.01, &[1.0, 2.0], &[1.0, 2.1]).unwrap_err();
        assert_eq!(refused.to_string(), "t: element 1 is 2 by kiln and 2.1 by the library");
        assert!(check_equal("t", 0.01, &[1.0], &[f32::NAN]).is_err());
    }

    #[test]
    fn long_calls_are_measured_alone_and_short_ones_by_the_hundred() {
        assert_eq!([5e9, 2e6, 1e3, 0.0].map(calls_for), [1, 5, 100, 100]);
    }
}
