//! What does not fit together between ranks.

use std::collections::BTreeMap;

use serde::Serialize;

use super::rank_report::RankReport;

/// Clocks that differ by more make logs hard to read.
const MAX_CLOCK_US: i64 = 1_000_000;
/// The most ranks that are listed.
const SHOWN: usize = 16;

/// Something that ranks disagree about, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Disagreement {
    pub(crate) what: String,
    pub(crate) next_step: String,
}

/// Everything that ranks disagree about.
pub(super) fn find(ranks: &[RankReport]) -> Vec<Disagreement> {
    let mut found = Vec::new();
    type Property = fn(&RankReport) -> Option<String>;
    let properties: [(&str, Property, &str); 6] = [
        ("versions of kiln", |rank| Some(rank.kiln.clone()), "install one version on all hosts"),
        ("launchers", |rank| Some(rank.launcher.clone()), "start all ranks by one launcher"),
        ("kinds of device", |rank| rank.device_kind.clone(), "run `kiln doctor` on the hosts without a GPU"),
        (
            "devices",
            |rank| rank.device_kind.as_ref().map(|_| rank.device.clone()),
            "use equal ones: the slowest sets the pace of all",
        ),
        ("drivers", |rank| rank.driver.clone(), "install one driver version on all hosts"),
        (
            "versions of NCCL",
            |rank| rank.nccl.clone(),
            "set KILN_NCCL to the same version on all hosts: NCCL does not connect different ones",
        ),
    ];
    for (name, property, next_step) in properties {
        let groups = grouped(ranks, property);
        if groups.len() > 1 {
            let each = groups.iter().map(|(value, ranks)| format!("{value} ({})", listed(ranks)));
            let what = format!("different {name}: {}", each.collect::<Vec<_>>().join(", "));
            found.push(Disagreement { what, next_step: next_step.into() });
        }
    }
    for rank in ranks.iter().filter(|rank| rank.device_kind.is_none()) {
        let what = format!("rank {} has no device: {}", rank.rank, rank.device);
        found.push(Disagreement { what, next_step: format!("run `kiln doctor` on {}", rank.host) });
    }
    let gpu = |rank: &RankReport| {
        let uuid = rank.uuid.clone().filter(|_| rank.device_kind.as_deref() == Some("cuda"))?;
        Some(format!("{uuid} of {}", rank.host))
    };
    for (gpu, ranks) in grouped(ranks, gpu).into_iter().filter(|(_, ranks)| ranks.len() > 1) {
        let what = format!("{} use one GPU, {gpu}", listed(&ranks));
        let next_step = "start one rank for each GPU, with different local ranks".to_owned();
        found.push(Disagreement { what, next_step });
    }
    let place = |rank: &RankReport| Some(format!("local rank {} of {}", rank.local_rank?, rank.host));
    for (place, ranks) in grouped(ranks, place).into_iter().filter(|(_, ranks)| ranks.len() > 1) {
        let what = format!("{} are both {place}", listed(&ranks));
        found.push(Disagreement { what, next_step: "let the launcher set the local ranks".into() });
    }
    for rank in ranks {
        let (ahead, error) = (rank.clock_ahead_us.unwrap_or(0), rank.clock_error_us.unwrap_or(0));
        if ahead.saturating_abs().saturating_sub(error) > MAX_CLOCK_US {
            let seconds = ahead as f64 / 1e6;
            let what = format!(
                "the clock of rank {} on {} is {seconds:+.1} s from that of rank 0",
                rank.rank, rank.host
            );
            found.push(Disagreement {
                what,
                next_step: "synchronise the clocks of the hosts (chrony, NTP)".into(),
            });
        }
    }
    found
}

/// Ranks by a property; those without it are left out.
fn grouped(
    ranks: &[RankReport],
    property: impl Fn(&RankReport) -> Option<String>,
) -> BTreeMap<String, Vec<u32>> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for rank in ranks {
        if let Some(value) = property(rank) {
            groups.entry(value).or_default().push(rank.rank);
        }
    }
    groups
}

/// `rank 3`, `ranks 0, 2`; a long list is cut.
fn listed(ranks: &[u32]) -> String {
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    let more = match ranks.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("rank{} {}{more}", if ranks.len() == 1 { "" } else { "s" }, shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32) -> RankReport {
        RankReport {
            rank,
            host: "node0".into(),
            process: 1,
            launcher: "Slurm".into(),
            local_rank: Some(rank),
            local_size: Some(4),
            variables: Vec::new(),
            kiln: "0.1.0".into(),
            device_kind: Some("cuda".into()),
            device: "NVIDIA H200".into(),
            uuid: Some(format!("GPU-{rank}")),
            driver: Some("13.0".into()),
            nccl: Some("2.28.9".into()),
            nccl_host: None,
            clock_ahead_us: Some(10),
            clock_error_us: Some(50),
        }
    }

    fn found(ranks: &[RankReport]) -> Vec<String> {
        find(ranks).into_iter().map(|disagreement| disagreement.what).collect()
    }

    #[test]
    fn equal_ranks_agree() {
        assert_eq!(found(&[rank(0), rank(1), rank(2)]), [""; 0]);
    }

    #[test]
    fn every_disagreement_names_its_ranks() {
        let with = |change: &dyn Fn(&mut RankReport)| {
            let mut changed = rank(2);
            change(&mut changed);
            found(&[rank(0), rank(1), changed])
        };
        assert_eq!(
            with(&|rank| rank.nccl = Some("2.18.1".into())),
            ["different versions of NCCL: 2.18.1 (rank 2), 2.28.9 (ranks 0, 1)"]
        );
        assert_eq!(
            with(&|rank| rank.kiln = "0.2.0".into()),
            ["different versions of kiln: 0.1.0 (ranks 0, 1), 0.2.0 (rank 2)"]
        );
        assert_eq!(
            with(&|rank| rank.driver = Some("12.8".into())),
            ["different drivers: 12.8 (rank 2), 13.0 (ranks 0, 1)"]
        );
        assert_eq!(
            with(&|rank| rank.uuid = Some("GPU-1".into())),
            ["ranks 1, 2 use one GPU, GPU-1 of node0"]
        );
        assert_eq!(with(&|rank| rank.local_rank = Some(0)), ["ranks 0, 2 are both local rank 0 of node0"]);
        assert_eq!(
            with(&|rank| rank.clock_ahead_us = Some(-2_500_000)),
            ["the clock of rank 2 on node0 is -2.5 s from that of rank 0"]
        );
        let none = with(&|rank| {
            rank.device_kind = None;
            rank.uuid = None;
            rank.device = "no such device".into();
        });
        assert_eq!(none, ["rank 2 has no device: no such device"]);
        let elsewhere = with(&|rank| {
            rank.host = "node1".into();
            rank.uuid = Some("GPU-0".into());
            rank.local_rank = Some(0);
        });
        assert_eq!(elsewhere, [""; 0]);
    }

    #[test]
    fn every_disagreement_ends_with_what_to_do() {
        type Change = fn(&mut RankReport);
        let changes: [(Change, &str); 9] = [
            (|rank| rank.kiln = "0.2.0".into(), "install one version on all hosts"),
            (|rank| rank.launcher = "torchrun".into(), "start all ranks by one launcher"),
            (
                |rank| (rank.device_kind, rank.uuid) = (Some("simulated".into()), None),
                "run `kiln doctor` on the hosts without a GPU",
            ),
            (|rank| rank.device = "NVIDIA H100".into(), "use equal ones: the slowest sets the pace of all"),
            (|rank| rank.driver = Some("12.8".into()), "install one driver version on all hosts"),
            (
                |rank| rank.nccl = Some("2.18.1".into()),
                "set KILN_NCCL to the same version on all hosts: NCCL does not connect different ones",
            ),
            (|rank| (rank.device_kind, rank.uuid) = (None, None), "run `kiln doctor` on node0"),
            (
                |rank| rank.uuid = Some("GPU-1".into()),
                "start one rank for each GPU, with different local ranks",
            ),
            (|rank| rank.local_rank = Some(0), "let the launcher set the local ranks"),
        ];
        for (change, next_step) in changes {
            let mut changed = rank(2);
            change(&mut changed);
            let found = find(&[rank(0), rank(1), changed]);
            assert!(found.len() == 1 && found[0].next_step == next_step, "{found:?}");
        }
        let mut late = rank(1);
        late.clock_ahead_us = Some(3_000_000);
        assert_eq!(find(&[rank(0), late])[0].next_step, "synchronise the clocks of the hosts (chrony, NTP)");
    }

    #[test]
    fn a_clock_that_was_not_measured_exactly_is_not_blamed() {
        let mut slow = rank(1);
        (slow.clock_ahead_us, slow.clock_error_us) = (Some(1_400_000), Some(600_000));
        assert_eq!(found(&[rank(0), slow]), [""; 0]);
    }
}
