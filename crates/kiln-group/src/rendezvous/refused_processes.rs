//! Processes that rank 0 did not take as a rank. Those who wait for the rank are told, once they have waited in vain: the process itself may have been started by another user, or on another host.

use std::collections::BTreeMap;

use super::message::Refusal;

/// Where the store says what it has refused.
pub(super) const REFUSED_KEY: &str = "kiln/refused";
/// The most ranks that are noted: a process that is refused may say that it is any rank.
const MAX_RANKS: usize = 16;

/// The last refusal for each rank.
#[derive(Debug, Default)]
pub(super) struct RefusedProcesses(BTreeMap<u32, String>);

impl RefusedProcesses {
    /// A process that said it is this rank of so many was refused.
    pub(super) fn note(&mut self, rank: u32, size: u32, refusal: Refusal) {
        if self.0.len() >= MAX_RANKS && !self.0.contains_key(&rank) {
            return;
        }
        let why = match refusal {
            Refusal::Token => {
                format!("a process that came as rank {rank} with another token (KILN_JOB_TOKEN)")
            }
            Refusal::Size { size: expected } => {
                format!(
                    "rank {rank}, which was started as one of {size} ranks and rank 0 as one of {expected}"
                )
            }
            Refusal::Taken => format!("a second process that was started as rank {rank}"),
            Refusal::Range => format!("rank {rank}, which there is not"),
            Refusal::Heartbeat { .. } => {
                format!("rank {rank}, which would say too seldom that it is there (its `heartbeat`)")
            }
        };
        self.0.insert(rank, why);
    }

    /// All of them in words.
    pub(super) fn text(&self) -> String {
        self.0.values().cloned().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_refusal_of_each_rank_is_told_and_not_of_too_many() {
        let mut refused = RefusedProcesses::default();
        refused.note(2, 4, Refusal::Token);
        refused.note(1, 4, Refusal::Size { size: 3 });
        refused.note(2, 3, Refusal::Taken);
        let told = "rank 1, which was started as one of 4 ranks and rank 0 as one of 3, a second process that was started as rank 2";
        assert_eq!(refused.text(), told);
        (0..100).for_each(|rank| refused.note(rank, 3, Refusal::Token));
        assert_eq!(refused.text().matches("another token").count(), 16);
        refused.note(2, 3, Refusal::Range);
        assert!(refused.text().contains("rank 2, which there is not"));
    }
}
