//! What the ranks of a job are told in environment variables.

use std::path::PathBuf;

use kiln::probe::SEED_VARIABLE;

use super::job_folder::JobFolder;
use super::rank_faults::RankFaults;
use super::rank_findings::RankFindings;
use crate::recorded_run::RUN_VARIABLE;

/// What is the same for all ranks of a job.
pub(crate) struct JobVariables {
    pub(crate) ranks: u32,
    pub(crate) port: u16,
    pub(crate) token: String,
    /// What its recordings are known by.
    pub(crate) run: String,
    pub(crate) visible_devices: Option<String>,
    /// Of their simulated devices.
    pub(super) seed: Option<u64>,
    /// What goes wrong on them.
    pub(super) faults: Option<RankFaults>,
    /// Where ranks write what their simulated devices found.
    pub(super) findings: Option<RankFindings>,
    /// Where ranks write which others they saw end; nowhere if there is no such place.
    pub(super) folder: Option<JobFolder>,
}

impl JobVariables {
    /// Where a rank that was started again so many times notes which others it saw end.
    pub(super) fn ends_file(&self, rank: u32, restarts: u32) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join(format!("ends-{rank}-{restarts}")))
    }

    /// The variables of a rank that was started again so many times.
    pub(crate) fn of_rank(&self, rank: u32, restarts: u32) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("KILN_RANK", rank.to_string()),
            ("KILN_WORLD_SIZE", self.ranks.to_string()),
            ("KILN_LOCAL_RANK", rank.to_string()),
            ("KILN_LOCAL_SIZE", self.ranks.to_string()),
            ("KILN_MEETING_POINT", format!("127.0.0.1:{}", self.port)),
            ("KILN_JOB_TOKEN", self.token.clone()),
            ("KILN_RESTARTS", restarts.to_string()),
            (RUN_VARIABLE, self.run.clone()),
        ];
        let ends = self.ends_file(rank, restarts).map(|file| file.to_string_lossy().into_owned());
        variables.extend(ends.map(|file| ("KILN_RANK_ENDS_FILE", file)));
        variables.extend(self.seed.map(|seed| (SEED_VARIABLE, seed.to_string())));
        variables.extend(self.faults.as_ref().map(|faults| faults.variable(rank, restarts)));
        let log = self.faults.as_ref().and(self.folder.as_ref()).filter(|_| restarts == 0);
        variables.extend(log.map(|folder| RankFaults::log_variable(rank, folder.path())));
        variables.extend(self.findings.iter().flat_map(|findings| findings.variables(rank)));
        variables
            .extend(self.visible_devices.iter().map(|devices| ("CUDA_VISIBLE_DEVICES", devices.clone())));
        variables
    }
}

#[cfg(test)]
mod tests {
    use kiln::group::{Launcher, RankEnvironment};

    use super::*;

    #[test]
    fn a_rank_reads_what_it_is_told() {
        let (token, run, visible_devices, findings) = ("secret".into(), "run".into(), None, None);
        let job = JobVariables {
            ranks: 3,
            port: 29_600,
            token,
            run,
            visible_devices,
            seed: Some(7),
            faults: None,
            findings,
            folder: None,
        };
        let variables = job.of_rank(2, 1);
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        };
        let ranks = RankEnvironment::parse(find).unwrap().unwrap();
        assert_eq!((ranks.launcher, ranks.rank, ranks.size), (Launcher::ByHand, 2, 3));
        assert_eq!((ranks.local_rank, ranks.local_size), (Some(2), Some(3)));
        let point = ranks.meeting_point.unwrap();
        assert_eq!((point.host.as_str(), point.port, point.is_taken), ("127.0.0.1", 29_600, false));
    }
}
