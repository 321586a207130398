//! The efficiency of a trace on several numbers of ranks.

use std::time::Duration;

use kiln::group::{CollectiveTrace, Topology, TracedCollective};
use serde::Serialize;

use crate::failure::Failure;
use crate::table::Table;

/// What estimates stop at: as many nanoseconds as can be counted.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// The efficiency on several numbers of ranks.
#[derive(Serialize)]
pub(super) struct Curve {
    /// Of the first number of ranks.
    pub(super) topology: String,
    pub(super) points: Vec<Point>,
}

/// One number of ranks.
#[derive(Serialize)]
pub(super) struct Point {
    pub(super) ranks: u32,
    pub(super) hosts: u32,
    pub(super) compute_ns: u64,
    pub(super) communication_ns: u64,
    /// Of that, while nothing is computed.
    pub(super) exposed_ns: u64,
    /// The share of computing.
    pub(super) efficiency: f64,
    /// What takes the most time of all collectives, and by which algorithm.
    pub(super) largest: String,
    pub(super) algorithm: String,
}

impl Curve {
    /// The estimates of a trace.
    ///
    /// # Errors
    /// A number of ranks that the topology does not have; times that are longer than can be counted.
    pub(super) fn of(trace: &CollectiveTrace, topology: Topology, ranks: &[u32]) -> Result<Self, Failure> {
        let mut points = Vec::new();
        for ranks in ranks {
            let here = topology.with_ranks(*ranks).map_err(|error| Failure::refused(error.to_string()))?;
            let time = trace.time_on(&here);
            if time.total >= LONGEST || time.communication >= LONGEST {
                let message = format!("on {ranks} ranks these collectives take longer than 584 years");
                return Err(Failure::usage(message).next("correct `count`, `bytes` and `compute`"));
            }
            let cost = |step: &&TracedCollective| {
                here.estimate(step.kind, step.bytes).time.as_nanos().saturating_mul(u128::from(step.count))
            };
            let largest = trace.steps().iter().max_by_key(cost);
            points.push(Point {
                ranks: *ranks,
                hosts: here.hosts(),
                compute_ns: nanoseconds(time.compute),
                communication_ns: nanoseconds(time.communication),
                exposed_ns: nanoseconds(time.exposed()),
                efficiency: time.efficiency(),
                largest: largest.map(|step| step.kind.to_string()).unwrap_or_default(),
                algorithm: largest
                    .map(|step| here.estimate(step.kind, step.bytes).algorithm.to_string())
                    .unwrap_or_default(),
            });
        }
        Ok(Self { topology: topology.to_string(), points })
    }

    /// The curve as a table.
    pub(super) fn render(&self, columns: usize) -> String {
        let head = [
            "#ranks",
            "#hosts",
            "#computing",
            "#communication",
            "#exposed",
            "#efficiency",
            "largest",
            "algorithm",
        ];
        let mut table = Table::new(&head);
        for point in &self.points {
            table.row([
                point.ranks.to_string(),
                point.hosts.to_string(),
                duration(point.compute_ns),
                duration(point.communication_ns),
                duration(point.exposed_ns),
                format!("{:.1} %", 100.0 * point.efficiency),
                point.largest.clone(),
                point.algorithm.clone(),
            ]);
        }
        format!("estimates for {}\n{}", self.topology, table.render(columns))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn duration(ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let ns = ns as f64;
    match units.iter().find(|(unit, _)| ns >= *unit) {
        Some((unit, name)) => format!("{:.3} {name}", ns / unit),
        None => format!("{ns} ns"),
    }
}
