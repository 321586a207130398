//! What goes wrong on the simulated devices of ranks, as a user plans it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use kiln::probe::{FAULT_LOG_VARIABLE, FAULTS_VARIABLE};
use kiln_sim::{FaultPlan, FaultPlanError};

use crate::console::complain;
use crate::failure::Failure;
use crate::fault_log::{self, NOT_COME};
use crate::plural::counted;

/// Faults of ranks, each as text without its rank: what stands before the colon of a fault is a rank and no device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RankFaults(Vec<(u32, String)>);

impl FromStr for RankFaults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ranks = "here that ordinal is the rank";
        let plan: FaultPlan = text.parse().map_err(|error: FaultPlanError| format!("{error}; {ranks}"))?;
        let words = text.split(|letter: char| letter == ',' || letter.is_whitespace());
        let words = words.filter(|word| !word.is_empty());
        let mut faults = Vec::new();
        for ((rank, fault), word) in plan.faults.iter().zip(words) {
            if fault.is_of_a_link() {
                return Err(format!(
                    "`{word}` is about the link between two devices of one machine, and every rank has a machine with one device; plan links in a program that \
                     builds a machine of several devices (MachineConfig::faults)"
                ));
            }
            let fault = word.split_once(':').map_or(word, |(_, fault)| fault);
            faults.push((*rank, fault.to_owned()));
        }
        Ok(Self(faults))
    }
}

impl RankFaults {
    /// Whether all ranks that are named are among so many.
    ///
    /// # Errors
    /// A rank that the job does not have.
    pub(super) fn check(&self, ranks: u32) -> Result<(), Failure> {
        let Some((rank, fault)) = self.0.iter().find(|(rank, _)| *rank >= ranks) else { return Ok(()) };
        let job = counted(u64::from(ranks), "rank");
        let message = format!("--fault: `{rank}:{fault}` is about rank {rank}, and the job has {job}");
        Err(Failure::usage(message)
            .next(format!("name a rank from 0 to {}, or start more with -n", ranks - 1)))
    }

    /// What a rank is told that was started again so many times: its own faults the first time, and that there are none after that. A plan of the environment does not come to any rank.
    pub(super) fn variable(&self, rank: u32, restarts: u32) -> (&'static str, String) {
        let own = self.0.iter().filter(|(of, _)| *of == rank && restarts == 0);
        let own: Vec<&str> = own.map(|(_, fault)| fault.as_str()).collect();
        (FAULTS_VARIABLE, own.join(","))
    }

    /// Where the first process of a rank writes which of its faults have come.
    pub(super) fn log_variable(rank: u32, folder: &Path) -> (&'static str, String) {
        (FAULT_LOG_VARIABLE, log_file(rank, folder).to_string_lossy().into_owned())
    }

    /// Names the faults that have not come, if there are any.
    pub(super) fn report(&self, folder: &Path) {
        let mut left = Vec::new();
        for (at, (rank, fault)) in self.0.iter().enumerate() {
            // A rank counts its own.
            let place = self.0[..at].iter().filter(|(of, _)| of == rank).count();
            if !fault_log::read(&log_file(*rank, folder)).contains(&place) {
                left.push(format!("{rank}:{fault}"));
            }
        }
        if !left.is_empty() {
            complain(format_args!("kiln launch: {NOT_COME}{}", left.join(",")));
        }
    }
}

fn log_file(rank: u32, folder: &Path) -> PathBuf {
    folder.join(format!("faults-{rank}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_gets_its_faults_without_its_number() {
        let faults: RankFaults = "1:oom@3, lost@40=CUDA_ERROR_LAUNCH_FAILED 1:hang@2".parse().unwrap();
        let of = |rank, restarts| faults.variable(rank, restarts).1;
        assert_eq!(
            (&*of(0, 0), &*of(1, 0), &*of(2, 0)),
            ("lost@40=CUDA_ERROR_LAUNCH_FAILED", "oom@3,hang@2", "")
        );
        assert_eq!(of(1, 1), "", "the first process of a rank alone has its faults");
    }

    #[test]
    fn faults_of_links_and_texts_that_are_no_plan_are_refused_with_what_to_do() {
        for (text, told) in [
            ("oom", "says not when, with an @"),
            ("oom", "that ordinal is the rank"),
            ("1:cut-0@2", "plan links in a program"),
            ("oom@1 0:slow-1@2", "`0:slow-1@2` is about the link"),
            ("x:oom@1", "`x` is no ordinal"),
        ] {
            let error = text.parse::<RankFaults>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
