//! What a rank calls, in words that are the same on all ranks that call the same.

use kiln_operation::{Collective, CollectiveKind};

use crate::collective_part::Part;

/// A collective as all ranks must call it: whether it is in place is each rank's choice, and a send meets a receive.
pub(crate) fn called_alone(collective: &Collective, count: u64) -> String {
    if let Some(step) = collective.step() {
        return step.to_string();
    }
    let (kind, element) = (collective.kind(), collective.element());
    match kind {
        CollectiveKind::Send | CollectiveKind::Recv => format!("a transfer of {element} of {count}"),
        CollectiveKind::Barrier => kind.to_string(),
        _ => {
            let reduction = collective.reduction_kind().map_or_else(String::new, |one| format!(" {one}"));
            let root = collective.root_rank().map_or_else(String::new, |root| format!(" root {root}"));
            format!("{kind} of {element}{reduction}{root} of {count}")
        }
    }
}

/// What a rank calls as one group. Ranks that call the same collectives in other groups wait for each other in other orders.
pub(crate) fn called_as_group(parts: &[Part]) -> Vec<String> {
    let all = parts.iter().filter(|part| !part.is_pairwise()).count();
    let mut place = 0;
    let one = |part: &Part| {
        let alone = called_alone(&part.collective, part.count);
        if part.is_pairwise() || all == 1 {
            return alone;
        }
        place += 1;
        format!("{alone}, collective {place} of {all} in its group")
    };
    parts.iter().map(one).collect()
}
