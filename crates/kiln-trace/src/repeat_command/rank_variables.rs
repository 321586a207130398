//! The variables by which launchers tell a process which rank it is.

/// A launcher.
struct Launcher {
    /// One of them set shows that it started the process.
    markers: &'static [&'static str],
    /// The number of ranks; the first that is set counts.
    size: &'static [&'static str],
    /// All that say something of the rank.
    variables: &'static [&'static str],
}

/// The launchers, those that run inside others first.
const LAUNCHERS: [Launcher; 6] = [
    Launcher {
        markers: &["KILN_RANK", "KILN_WORLD_SIZE"],
        size: &["KILN_WORLD_SIZE"],
        variables: &["KILN_RANK", "KILN_WORLD_SIZE", "KILN_LOCAL_RANK", "KILN_LOCAL_SIZE"],
    },
    Launcher {
        markers: &["RANK", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"],
        size: &["WORLD_SIZE"],
        variables: &["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"],
    },
    Launcher {
        markers: &["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        size: &["OMPI_COMM_WORLD_SIZE"],
        variables: &[
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
        ],
    },
    Launcher {
        markers: &["PMI_RANK", "PMI_SIZE"],
        size: &["PMI_SIZE"],
        variables: &[
            "PMI_RANK",
            "PMI_SIZE",
            "MPI_LOCALRANKID",
            "PMI_LOCAL_RANK",
            "MPI_LOCALNRANKS",
            "PMI_LOCAL_SIZE",
        ],
    },
    Launcher {
        markers: &["SLURM_PROCID"],
        size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        variables: &[
            "SLURM_PROCID",
            "SLURM_STEP_NUM_TASKS",
            "SLURM_NTASKS",
            "SLURM_NPROCS",
            "SLURM_LOCALID",
            "SLURM_NTASKS_PER_NODE",
            "SLURM_STEP_TASKS_PER_NODE",
            "SLURM_STEP_NODELIST",
            "SLURM_JOB_NODELIST",
            "SLURM_NODELIST",
            "SLURM_JOB_ID",
        ],
    },
    Launcher {
        markers: &["JOB_COMPLETION_INDEX"],
        size: &["WORLD_SIZE"],
        variables: &["JOB_COMPLETION_INDEX", "WORLD_SIZE"],
    },
];

/// Where ranks of any launcher meet.
const MEETING: [&str; 4] =
    ["KILN_MEETING_POINT", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"];
/// The secret of a job.
const TOKEN: &str = "KILN_JOB_TOKEN";

/// What is known of a process that a launcher started.
#[derive(Default)]
pub(super) struct RankVariables {
    /// The variables that it needs.
    pub(super) names: Vec<&'static str>,
    /// Whether there are other ranks.
    pub(super) is_one_of_several: bool,
    /// Whether the ranks know each other by a token.
    pub(super) has_token: bool,
}

impl RankVariables {
    /// Looks at an environment; of a program that no launcher started, nothing is kept.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_seen = |launcher: &&Launcher| launcher.markers.iter().any(|name| value(name).is_some());
        let Some(launcher) = LAUNCHERS.iter().find(is_seen) else { return Self::default() };
        let size = launcher.size.iter().find_map(|name| value(name));
        Self {
            names: launcher.variables.iter().chain(&MEETING).copied().collect(),
            // A number that cannot be read says nothing.
            is_one_of_several: size.is_none_or(|size| size.trim().parse() != Ok(1_u32)),
            has_token: value(TOKEN).is_some(),
        }
    }
}
