//! Choosing the algorithm of a matrix product by measuring.

use std::time::{Duration, Instant};

use kiln_driver::DeviceKind;
use kiln_operation::{Matmul, Operation};
use kiln_runtime::code_cache::{CacheEntry, EntryKind, Key, KeyBuilder};
use kiln_runtime::internal::cublaslt_identity;
use kiln_runtime::{DeviceRuntime, Graph, GraphBuilder};

use crate::Result;
use crate::error::LibraryError;
use crate::loaded_operations::LoadedOperations;

/// A measurement that chooses the finalists lasts about so long, so that the clock's steps do not matter.
const SHORT: Duration = Duration::from_millis(2);
/// A measurement of a finalist lasts about so long: a device that computes for longer runs at another clock, and the order of algorithms changes with it.
const LONG: Duration = Duration::from_millis(10);
/// Products in one measurement at most.
const MAX_PRODUCTS: u128 = 100;
/// Measurements that choose the finalists, of which the shortest counts.
const MEASUREMENTS: u32 = 3;
/// Finalists at most, beside the library's choice.
const FINALISTS: usize = 4;
/// Measurements of each finalist, in turns.
const ROUNDS: usize = 7;
/// An algorithm must be so much faster than the library's choice to replace it, in thousandths.
const MARGIN: u128 = 3;

/// The algorithm that [`MatmulCall::tune`](super::MatmulCall::tune) chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MatmulTuning {
    /// Its place among those that the library proposes; 0 is the one that the library expects to be the fastest.
    pub algorithm: u64,
    /// How long one product takes with it.
    pub time: Duration,
    /// How long one product takes with the library's choice.
    pub default_time: Duration,
    /// How many algorithms were measured now; 0 if the choice was on disk.
    pub measured: u64,
}

impl MatmulTuning {
    /// Of a product without elements: the library's choice, and no time.
    pub(super) const NOTHING: Self =
        Self { algorithm: 0, time: Duration::ZERO, default_time: Duration::ZERO, measured: 0 };

    /// The choice on disk, which is used from now on. None if there is none, or the library does not propose that algorithm any more.
    pub(super) fn kept(loaded: &LoadedOperations, operation: &Matmul) -> Result<Option<Self>> {
        let gpu = loaded.gpu();
        let entry = gpu.disk_cache().get(&key(gpu, operation));
        let Some(kept) = entry
            .filter(|entry| entry.kind == EntryKind::Algorithm)
            .and_then(|entry| Self::decode(&entry.payload))
        else {
            return Ok(None);
        };
        match kept.apply(loaded, operation) {
            Ok(()) => Ok(Some(kept)),
            Err(error) if error.library().is_some() && kept.algorithm > 0 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Measures the algorithms that the library proposes. `record` records one product with an algorithm.
    pub(super) fn measure(
        loaded: &LoadedOperations,
        operation: &Matmul,
        record: impl Fn(u64, &mut GraphBuilder) -> Result<()>,
    ) -> Result<Self> {
        let (gpu, began) = (loaded.gpu(), Instant::now());
        let mut times = Vec::new();
        for algorithm in 0..Matmul::ALGORITHMS {
            match time(gpu, |graph| record(algorithm, graph)) {
                Ok(time) => times.push(time),
                // It proposes no more.
                Err(error) if algorithm > 0 && error.library().is_some() => break,
                Err(error) => return Err(error),
            }
        }
        let finalists = finalists(&times);
        let medians = in_turns(gpu, &finalists, &times, &record)?;
        let tuning = Self { measured: times.len() as u64, ..Self::fastest(&medians) };
        tuning.apply(loaded, operation)?;
        let entry = CacheEntry {
            kind: EntryKind::Algorithm,
            compile_time: began.elapsed(),
            kernels: vec![operation.to_string()],
            payload: tuning.encode(),
        };
        gpu.disk_cache().put(&key(gpu, operation), &entry);
        Ok(tuning)
    }

    /// The fastest of all, if it is faster than the library's choice by more than the margin.
    fn fastest(times: &[(u64, Duration)]) -> Self {
        let default_time =
            times.iter().find(|(algorithm, _)| *algorithm == 0).map_or(Duration::ZERO, |(_, time)| *time);
        let is_faster = |time: Duration| time.as_nanos() * (1000 + MARGIN) < default_time.as_nanos() * 1000;
        let best = times.iter().copied().min_by_key(|(_, time)| *time).filter(|(_, time)| is_faster(*time));
        let (algorithm, time) = best.unwrap_or((0, default_time));
        Self { algorithm, time, default_time, measured: times.len() as u64 }
    }

    /// Uses the algorithm for all equal calls from now on.
    fn apply(&self, loaded: &LoadedOperations, operation: &Matmul) -> Result<()> {
        let chosen = Operation::from(Matmul { algorithm: self.algorithm, ..*operation });
        loaded.replace(&Operation::from(*operation), &chosen)
    }

    /// Three numbers of eight bytes, the lowest byte first: the algorithm, and both times in nanoseconds.
    fn encode(&self) -> Vec<u8> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let words = [self.algorithm, nanoseconds(self.time), nanoseconds(self.default_time)];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; 24] = payload.try_into().ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let [algorithm, time, default_time] =
            [0, 1, 2].map(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)));
        let (time, default_time) = (Duration::from_nanos(time), Duration::from_nanos(default_time));
        (algorithm < Matmul::ALGORITHMS).then_some(Self { algorithm, time, default_time, measured: 0 })
    }
}

/// What went wrong, with the call and what to do.
#[cold]
pub(super) fn told(gpu: &DeviceRuntime, error: LibraryError) -> LibraryError {
    match error {
        LibraryError::Runtime(error) if error.is_oom() => {
            let place = format!(
                "{}: `tune` found no memory for a second result or for workspace; free some, or tune before other memory is allocated",
                Matmul::NAME
            );
            LibraryError::Runtime(error.within(place))
        }
        error => error.told_of_wait(Matmul::NAME, Some(gpu)),
    }
}

/// What a choice on a device depends on.
fn key(gpu: &DeviceRuntime, operation: &Matmul) -> Key {
    let info = gpu.info();
    let library = match info.kind {
        DeviceKind::Cuda => cublaslt_identity(),
        DeviceKind::Simulated => None,
    };
    let driver = info.driver_version.to_string();
    key_of(&operation.to_string(), [&info.name, &driver, library.as_deref().unwrap_or_default()])
}

/// Another library proposes other algorithms, or the same in another order.
fn key_of(operation: &str, [device, driver, library]: [&str; 3]) -> Key {
    KeyBuilder::new()
        .part("algorithm of", operation.as_bytes())
        .part("device", device.as_bytes())
        .part("driver", driver.as_bytes())
        .part("library", library.as_bytes())
        .finish()
}

/// The algorithms that are measured again: the library's choice, and the fastest of the others.
fn finalists(times: &[Duration]) -> Vec<u64> {
    let mut others: Vec<(u64, Duration)> = (0..).zip(times.iter().copied()).skip(1).collect();
    others.sort_by_key(|(_, time)| *time);
    others.truncate(FINALISTS);
    let others = others.into_iter().map(|(algorithm, _)| algorithm);
    std::iter::once(0).chain(others).collect()
}

/// How long one product takes with each algorithm: the median of measurements that take turns, so that a clock that moves moves for all of them.
fn in_turns(
    gpu: &DeviceRuntime,
    algorithms: &[u64],
    times: &[Duration],
    record: impl Fn(u64, &mut GraphBuilder) -> Result<()>,
) -> Result<Vec<(u64, Duration)>> {
    let mut measured = Vec::with_capacity(algorithms.len());
    for &algorithm in algorithms {
        let alone = times.get(algorithm as usize).copied().unwrap_or_default();
        let graph = Repeated::new(gpu, products_in(LONG, alone), |graph| record(algorithm, graph))?;
        measured.push((algorithm, graph, Vec::with_capacity(ROUNDS)));
    }
    for _ in 0..ROUNDS {
        for (_, graph, times) in &mut measured {
            times.push(graph.time()?);
        }
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    Ok(measured.into_iter().map(|(algorithm, _, times)| (algorithm, median(times))).collect())
}

/// How long one product takes, as nodes of a graph that runs them one after the other.
fn time(gpu: &DeviceRuntime, record: impl Fn(&mut GraphBuilder) -> Result<()>) -> Result<Duration> {
    let alone = Repeated::new(gpu, 1, &record)?.time()?;
    let many = Repeated::new(gpu, products_in(SHORT, alone), &record)?;
    let mut shortest = Duration::MAX;
    for _ in 0..MEASUREMENTS {
        shortest = shortest.min(many.time()?);
    }
    Ok(shortest)
}

/// How many products take about so long, if one takes `alone`.
fn products_in(time: Duration, alone: Duration) -> u32 {
    (time.as_nanos() / alone.as_nanos().max(1)).clamp(1, MAX_PRODUCTS) as u32
}

/// A graph of equal products that ran once.
struct Repeated {
    graph: Graph,
    products: u32,
}

impl Repeated {
    fn new(
        gpu: &DeviceRuntime,
        products: u32,
        record: impl Fn(&mut GraphBuilder) -> Result<()>,
    ) -> Result<Self> {
        let mut graph = gpu.graph();
        for _ in 0..products {
            record(&mut graph)?;
        }
        let graph = graph.build()?;
        graph.replay()?.wait()?;
        Ok(Self { graph, products })
    }

    /// How long one product takes.
    fn time(&self) -> Result<Duration> {
        Ok(self.graph.replay_timed()?.wait()?.device / self.products)
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, MatmulTuning, finalists, key_of};

    fn fastest(times: &[u64]) -> (u64, u64, u64) {
        let times: Vec<_> = (0..).zip(times.iter().copied().map(Duration::from_nanos)).collect();
        let MatmulTuning { algorithm, time, default_time, .. } = MatmulTuning::fastest(&times);
        (algorithm, time.as_nanos() as u64, default_time.as_nanos() as u64)
    }

    #[test]
    fn an_algorithm_that_is_clearly_faster_replaces_the_first() {
        assert_eq!(fastest(&[1000, 900, 700, 800]), (2, 700, 1000));
        assert_eq!(fastest(&[1000, 998, 1200]), (0, 1000, 1000), "within the margin");
        assert_eq!(fastest(&[1000]), (0, 1000, 1000));
        assert_eq!(fastest(&[0, 0]), (0, 0, 0));
    }

    #[test]
    fn the_choice_of_the_library_and_the_fastest_others_are_measured_again() {
        let of =
            |times: &[u64]| finalists(&times.iter().copied().map(Duration::from_nanos).collect::<Vec<_>>());
        assert_eq!(of(&[5, 9, 3, 8, 2, 7, 1]), [0, 6, 4, 2, 5]);
        assert_eq!(of(&[5]), [0]);
    }

    #[test]
    fn another_library_driver_or_device_does_not_find_a_choice() {
        let key = |parts| key_of("blas.matmul m=1", parts).to_string();
        let known = key(["H200", "13.0", "libcublasLt.so.13.0.0.19, 1 bytes, 2"]);
        assert_eq!(known, key(["H200", "13.0", "libcublasLt.so.13.0.0.19, 1 bytes, 2"]));
        for other in [
            ["H200", "13.0", "libcublasLt.so.13.1.0.3, 1 bytes, 2"],
            ["H200", "13.0", "libcublasLt.so.13.0.0.19, 1 bytes, 3"],
            ["H200", "13.0", ""],
            ["H200", "13.1", "libcublasLt.so.13.0.0.19, 1 bytes, 2"],
            ["H100", "13.0", "libcublasLt.so.13.0.0.19, 1 bytes, 2"],
        ] {
            assert_ne!(known, key(other), "{other:?}");
        }
    }

    #[test]
    fn what_is_kept_is_read_again_and_what_is_damaged_is_not() {
        let time = Duration::from_nanos;
        let tuning = MatmulTuning { algorithm: 3, time: time(7), default_time: time(9), measured: 0 };
        assert_eq!(MatmulTuning::decode(&tuning.encode()), Some(tuning));
        assert_eq!(MatmulTuning::decode(&tuning.encode()[1..]), None);
        assert_eq!(MatmulTuning::decode(&[0xff; 24]), None);
    }
}
