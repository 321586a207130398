//! `RankEnvironment`: which rank a process is, as its launcher says in environment variables.
//!
//! [`RankEnvironment::parse`] is a function of the variables alone. Each launcher is a row of a table: which variables show that it started the
//! process, and which ones hold the numbers. A launcher inside another comes first: `torchrun` and `mpirun` are started in Slurm jobs.

use crate::launcher::Launcher;
use crate::rank_environment_error::RankEnvironmentError;
use crate::slurm_nodes::first_node;
use crate::slurm_tasks::tasks_of_each;

/// Which rank of how many this process is, and where the ranks meet.
///
/// ```
/// use kiln::group::{Launcher, RankEnvironment};
///
/// let variables = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_LOCAL_RANK", "1")];
/// let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
/// let ranks = RankEnvironment::parse(find)?.expect("started by mpirun");
/// assert_eq!((ranks.launcher, ranks.rank, ranks.size, ranks.local_rank), (Launcher::OpenMpi, 3, 8, Some(1)));
///
/// let half = RankEnvironment::parse(|name| (name == "SLURM_PROCID").then(|| "0".into())).unwrap_err();
/// assert!(half.to_string().contains("SLURM_NTASKS"));
/// assert_eq!(RankEnvironment::parse(|_| None)?, None); // no launcher
/// # Ok::<(), kiln::group::RankEnvironmentError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RankEnvironment {
    /// What started the process.
    pub launcher: Launcher,
    /// The rank of this process, counted from 0.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
    /// The rank among the processes of this host, which usually is the ordinal of the device to use; none if the launcher does not say it.
    pub local_rank: Option<u32>,
    /// The number of ranks of this host; none if the launcher does not say it.
    pub local_size: Option<u32>,
    /// Where the ranks meet; none if the launcher does not say it.
    pub meeting_point: Option<MeetingPoint>,
}

/// Where the ranks of a job meet: a host and port that rank 0 listens on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeetingPoint {
    /// Name or address of the host of rank 0.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the launcher itself listens on the port, as the agent of `torchrun` does; then another one must be used.
    pub is_taken: bool,
}

/// The variables of one launcher. Of several names the first that is set counts.
struct LauncherVariables {
    launcher: Launcher,
    /// One of them set shows that the launcher started the process.
    markers: &'static [&'static str],
    rank: &'static [&'static str],
    size: &'static [&'static str],
    local_rank: &'static [&'static str],
    local_size: &'static [&'static str],
}

/// The launchers, those that run inside others first.
const LAUNCHERS: [LauncherVariables; 6] = [
    LauncherVariables {
        launcher: Launcher::ByHand,
        markers: &["KILN_RANK", "KILN_WORLD_SIZE"],
        rank: &["KILN_RANK"],
        size: &["KILN_WORLD_SIZE"],
        local_rank: &["KILN_LOCAL_RANK"],
        local_size: &["KILN_LOCAL_SIZE"],
    },
    LauncherVariables {
        launcher: Launcher::Torchrun,
        markers: &["RANK", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"],
        rank: &["RANK"],
        size: &["WORLD_SIZE"],
        local_rank: &["LOCAL_RANK"],
        local_size: &["LOCAL_WORLD_SIZE"],
    },
    LauncherVariables {
        launcher: Launcher::OpenMpi,
        markers: &["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        rank: &["OMPI_COMM_WORLD_RANK"],
        size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
    },
    LauncherVariables {
        launcher: Launcher::Mpich,
        markers: &["PMI_RANK", "PMI_SIZE"],
        rank: &["PMI_RANK"],
        size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
    },
    LauncherVariables {
        launcher: Launcher::Slurm,
        markers: &["SLURM_PROCID"],
        rank: &["SLURM_PROCID"],
        size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        local_rank: &["SLURM_LOCALID"],
        local_size: &["SLURM_NTASKS_PER_NODE"],
    },
    LauncherVariables {
        launcher: Launcher::Kubernetes,
        markers: &["JOB_COMPLETION_INDEX"],
        rank: &["JOB_COMPLETION_INDEX"],
        size: &["WORLD_SIZE"],
        local_rank: &[],
        local_size: &[],
    },
];

/// How many ranks of a Slurm step each of its nodes has.
const STEP_TASKS: &str = "SLURM_STEP_TASKS_PER_NODE";
/// Where ranks of any launcher meet.
const POINT: &str = "KILN_MEETING_POINT";
/// The port there, beside `MASTER_ADDR`.
const PORT: &str = "MASTER_PORT";
/// The first port of Slurm jobs that name none; the number of the job is added.
const SLURM_PORT_BASE: u64 = 20_000;
/// So many ports are used for them.
const SLURM_PORTS: u64 = 10_000;

impl RankEnvironment {
    /// Reads the variables of this process; none if no launcher has started it.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn from_process() -> Result<Option<Self>, RankEnvironmentError> {
        Self::parse(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Reads variables, which `find` gets by their names; none if no launcher is seen in them. A variable that is empty counts as not set.
    ///
    /// # Errors
    /// A launcher of which only a part is set, with the variable that is missing, the number of a Slurm job among them; something that is no number; a rank that is not below the
    /// number of ranks.
    pub fn parse(find: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, RankEnvironmentError> {
        let find =
            |name: &str| find(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is_set = |names: &[&'static str]| names.iter().copied().find(|name| find(name).is_some());
        let seen = LAUNCHERS.iter().find_map(|row| Some((row, is_set(row.markers)?)));
        let Some((row, marker)) = seen else {
            // Numbers of this host alone are a half. A job of Slurm has that of its tasks without ranks.
            let of_host = |row: &LauncherVariables| {
                let size = is_set(row.local_size).filter(|_| row.launcher != Launcher::Slurm);
                is_set(row.local_rank).or(size)
            };
            if let Some((row, marker)) = LAUNCHERS.iter().find_map(|row| Some((row, of_host(row)?))) {
                return Err(RankEnvironmentError::Missing {
                    launcher: row.launcher,
                    names: row.rank,
                    marker,
                });
            }
            // Several ranks that meet somewhere, of which this process is none: its rank was forgotten.
            let is_several = find("WORLD_SIZE").is_some_and(|size| size != "1");
            if is_several && let Some(marker) = is_set(&["MASTER_ADDR", PORT]) {
                let names = LAUNCHERS[1].rank;
                return Err(RankEnvironmentError::Missing { launcher: Launcher::Torchrun, names, marker });
            }
            // It may stand beside every launcher, and shows none by itself.
            let Some(point) = is_set(&[POINT]) else { return Ok(None) };
            let others = LAUNCHERS.iter().find_map(|row| {
                let marker = is_set(row.size).or(is_set(row.local_rank)).or(is_set(row.local_size))?;
                Some((row, marker))
            });
            let (row, marker) = others.unwrap_or((&LAUNCHERS[0], point));
            return Err(RankEnvironmentError::Missing { launcher: row.launcher, names: row.rank, marker });
        };
        let number = |names: &[&'static str]| match is_set(names) {
            Some(name) => {
                whole_number(name, &find(name).unwrap_or_default()).map(|value| Some((name, value)))
            }
            None => Ok(None),
        };
        let needed = |names: &'static [&'static str]| {
            let missing = RankEnvironmentError::Missing { launcher: row.launcher, names, marker };
            number(names)?.ok_or(missing)
        };
        let ((rank_name, rank), (size_name, size)) = (needed(row.rank)?, needed(row.size)?);
        check_rank((rank_name, rank), (size_name, size))?;
        let local_rank = number(row.local_rank)?;
        let local_size = match row.launcher {
            Launcher::Slurm => slurm_local_size(local_rank, number(row.local_size)?, &find),
            _ => number(row.local_size)?,
        };
        if let (Some(local_rank), Some(local_size)) = (local_rank, local_size) {
            check_rank(local_rank, local_size)?;
        }
        Ok(Some(Self {
            launcher: row.launcher,
            rank,
            size,
            local_rank: local_rank.map(|(_, value)| value),
            local_size: local_size.map(|(_, value)| value),
            meeting_point: meeting_point((row.launcher, rank, size), &find)?,
        }))
    }
}

/// How many ranks of a step are on this node. What a batch script asked for per node may be another number, of which `srun` takes no notice.
fn slurm_local_size(
    local_rank: Option<(&'static str, u32)>,
    asked: Option<(&'static str, u32)>,
    find: &dyn Fn(&str) -> Option<String>,
) -> Option<(&'static str, u32)> {
    let of_step = find(STEP_TASKS).map(|tasks| Some((STEP_TASKS, tasks_of_each(&tasks)?)));
    let is_over = |size: u32| local_rank.is_some_and(|(_, rank)| rank >= size);
    of_step.unwrap_or(asked).filter(|(_, size)| !is_over(*size))
}

fn whole_number(name: &'static str, text: &str) -> Result<u32, RankEnvironmentError> {
    text.parse().map_err(|_| RankEnvironmentError::NoNumber { name, text: text.into() })
}

fn check_rank(
    (rank_name, rank): (&'static str, u32),
    (size_name, size): (&'static str, u32),
) -> Result<(), RankEnvironmentError> {
    match rank < size {
        true => Ok(()),
        false => Err(RankEnvironmentError::Rank { rank_name, rank, size_name, size }),
    }
}

/// `KILN_MEETING_POINT`, or `MASTER_ADDR` and `MASTER_PORT`, or the first node of a Slurm job, in which the ranks were started by Slurm or by an MPI launcher.
fn meeting_point(
    (launcher, rank, size): (Launcher, u32, u32),
    find: &impl Fn(&str) -> Option<String>,
) -> Result<Option<MeetingPoint>, RankEnvironmentError> {
    if let Some(text) = find(POINT) {
        let Some((host, port)) = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()) else {
            return Err(RankEnvironmentError::NoHostAndPort { name: POINT, text });
        };
        let (host, port) = (host.trim_matches(['[', ']']).to_owned(), port_number(POINT, port)?);
        return Ok(Some(MeetingPoint { host, port, is_taken: false }));
    }
    // Of an MPI launcher outside of Slurm a port alone is a half.
    let names = slurm_node_lists((launcher, rank, size), find);
    let nodes = names.iter().find_map(|name| Some((*name, find(name)?)));
    let port = find(PORT).map(|text| port_number(PORT, &text)).transpose()?;
    let is_taken = find("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    match (find("MASTER_ADDR"), port) {
        (Some(host), Some(port)) => return Ok(Some(MeetingPoint { host, port, is_taken })),
        (Some(_), None) => {
            return Err(RankEnvironmentError::HalfAMeetingPoint { set: "MASTER_ADDR", missing: PORT });
        }
        (None, Some(_)) if launcher != Launcher::Slurm && nodes.is_none() => {
            return Err(RankEnvironmentError::HalfAMeetingPoint { set: PORT, missing: "MASTER_ADDR" });
        }
        (None, _) => {}
    }
    let Some((name, nodes)) = nodes else { return Ok(None) };
    let Some(host) = first_node(&nodes) else {
        return Err(RankEnvironmentError::NodeList { name, text: nodes });
    };
    let port = match port {
        Some(port) => port,
        None => port_of_slurm_job(name, find("SLURM_JOB_ID"))?,
    };
    Ok(Some(MeetingPoint { host, port, is_taken: false }))
}

/// The port of a Slurm job that names none, of which the nodes are known.
fn port_of_slurm_job(nodes: &'static str, job: Option<String>) -> Result<u16, RankEnvironmentError> {
    match job.as_deref().map(str::parse::<u64>) {
        Some(Ok(number)) => Ok(u16::try_from(SLURM_PORT_BASE + number % SLURM_PORTS).unwrap_or(u16::MAX)),
        _ => Err(RankEnvironmentError::NoJobNumber { nodes, text: job }),
    }
}

/// The variables with the nodes of a Slurm job whose first one has rank 0.
///
/// `srun` names those of its step. An MPI launcher starts its daemons as a step of the job, on the other nodes than the first, and ranks see the nodes of that step: they meet on the first node of the job. Ranks that `srun`
/// itself starts with the variables of PMI have the same numbers in those of Slurm.
fn slurm_node_lists(
    (launcher, rank, size): (Launcher, u32, u32),
    find: &impl Fn(&str) -> Option<String>,
) -> &'static [&'static str] {
    const OF_STEP: [&str; 3] = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
    let is = |name: &str, value: u32| find(name).and_then(|text| text.parse().ok()) == Some(value);
    match launcher {
        Launcher::Slurm => &OF_STEP,
        Launcher::Mpich if is("SLURM_PROCID", rank) && is("SLURM_STEP_NUM_TASKS", size) => &OF_STEP,
        Launcher::Mpich | Launcher::OpenMpi => &["SLURM_JOB_NODELIST", "SLURM_NODELIST"],
        _ => &[],
    }
}

fn port_number(name: &'static str, text: &str) -> Result<u16, RankEnvironmentError> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| RankEnvironmentError::NoPort { name, text: text.into() })
}
