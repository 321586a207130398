//! The report of a cluster as text.

use super::ClusterReport;
use crate::line_wrap::wrap_behind;
use crate::plural::counted;
use crate::table::Table;

/// First whether the ranks fit together, then a table of them.
pub(super) fn render(report: &ClusterReport, columns: usize) -> String {
    let ranks = counted(report.ranks.len() as u64, "rank");
    let mut hosts: Vec<&str> = report.ranks.iter().map(|rank| rank.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts = counted(hosts.len() as u64, "host");
    let verdict = match report.disagreements.len() as u64 {
        0 => "Yes: they fit together.".to_owned(),
        1 => "No: 1 thing does not fit.".to_owned(),
        count => format!("No: {count} things do not fit."),
    };
    let mut text = vec![format!("{ranks} on {hosts}, all there after {} ms. {verdict}", report.joined_ms)];
    for disagreement in &report.disagreements {
        text.push(wrap_behind("  - ", &disagreement.what, columns));
        text.push(wrap_behind("    next: ", &disagreement.next_step, columns));
    }
    let mut table =
        Table::new(&["#rank", "host", "#local", "device", "driver", "NCCL", "kiln", "#clock", "launcher"]);
    for rank in &report.ranks {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        let clock = match (rank.rank, rank.clock_ahead_us, rank.clock_error_us) {
            (0, ..) => "0".to_owned(),
            (_, Some(ahead), Some(error)) => format!("{} ± {} ms", milliseconds(ahead), milliseconds(error)),
            _ => "-".to_owned(),
        };
        table.row([
            rank.rank.to_string(),
            rank.host.clone(),
            rank.local_rank.map_or_else(|| "-".into(), |local| local.to_string()),
            rank.device.clone(),
            or_dash(&rank.driver),
            or_dash(&rank.nccl),
            rank.kiln.clone(),
            clock,
            rank.launcher.clone(),
        ]);
    }
    text.push(table.render(columns));
    let sum = &report.sum;
    if let (Some(by), Some(time_us)) = (sum.by, sum.time_us) {
        let how = match by {
            "nccl" => "an all-reduce over NCCL",
            _ => "exchanged over the rendezvous, because the devices are simulated",
        };
        text.push(format!(
            "The sum over all ranks is right, in {} ms: {how}.",
            milliseconds(time_us.cast_signed())
        ));
    }
    if let Some(rank) = report.ranks.first() {
        text.push(wrap_behind("Set for rank 0: ", &rank.variables.join(", "), columns));
    }
    text.join("\n")
}

fn milliseconds(us: i64) -> String {
    format!("{:.2}", us as f64 / 1e3)
}
