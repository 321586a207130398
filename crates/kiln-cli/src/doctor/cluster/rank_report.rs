//! What one rank is: host, device, versions, and what its launcher has set.

use kiln::group::RankEnvironment;
use kiln::libraries::{self, Library};
use kiln::probe::{Availability, DeviceSummary, prober};
use kiln::{DeviceRuntime, Policy};
use kiln_driver::DeviceKind;
use serde::{Deserialize, Serialize};

/// What one rank says about itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RankReport {
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) process: u32,
    pub(crate) launcher: String,
    pub(crate) local_rank: Option<u32>,
    pub(crate) local_size: Option<u32>,
    /// Names of the variables that the launcher has set; values may be secret.
    pub(crate) variables: Vec<String>,
    pub(crate) kiln: String,
    /// `cuda` or `simulated`; none if no device could be opened.
    pub(crate) device_kind: Option<String>,
    pub(crate) device: String,
    pub(crate) uuid: Option<String>,
    /// The CUDA version that the driver supports.
    pub(crate) driver: Option<String>,
    pub(crate) nccl: Option<String>,
    /// The host that NCCL is told it is on, where that is not left to NCCL.
    pub(crate) nccl_host: Option<String>,
    /// How far the clock is ahead of that of rank 0, and how exact that is.
    pub(crate) clock_ahead_us: Option<i64>,
    pub(crate) clock_error_us: Option<i64>,
}

/// A rank's device, and what the rank says about itself.
pub(super) struct OpenedRank {
    pub(super) runtime: Option<DeviceRuntime>,
    pub(super) report: RankReport,
}

/// Variables that launchers set, besides those that begin with [`PREFIXES`].
const NAMES: [&str; 8] = [
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "JOB_COMPLETION_INDEX",
    "CUDA_VISIBLE_DEVICES",
];
const PREFIXES: [&str; 6] = ["KILN_", "NCCL_", "OMPI_COMM_WORLD_", "PMI_", "SLURM_PROCID", "SLURM_NTASKS"];

impl OpenedRank {
    /// Opens the device that a program of this rank would use: the GPU of the local rank, or a simulated one where there is none.
    pub(super) fn open(policy: Policy, environment: &RankEnvironment) -> Self {
        let opened = device(policy, environment);
        let summary = opened.as_ref().ok().map(|runtime| DeviceSummary::from(runtime.info()));
        let is_cuda = policy.may_touch_cuda();
        let version = |library| libraries::find(library).ok().and_then(|found| found.version);
        let report = RankReport {
            rank: environment.rank,
            host: host(),
            process: std::process::id(),
            launcher: environment.launcher.to_string(),
            local_rank: environment.local_rank,
            local_size: environment.local_size,
            variables: variables(),
            kiln: env!("CARGO_PKG_VERSION").to_owned(),
            device_kind: summary.as_ref().map(|device| kind_name(device.kind).to_owned()),
            device: match (&summary, &opened) {
                (Some(device), _) => device.name.clone(),
                (None, Err(why)) => why.clone(),
                (None, Ok(_)) => String::new(),
            },
            uuid: summary.as_ref().map(|device| device.uuid.to_string()),
            driver: libraries::driver().ok().filter(|_| is_cuda).map(|driver| driver.version.to_string()),
            nccl: version(Library::Nccl).filter(|_| is_cuda).map(|version| version.to_string()),
            nccl_host: std::env::var("NCCL_HOSTID").ok(),
            clock_ahead_us: None,
            clock_error_us: None,
        };
        Self { runtime: opened.ok(), report }
    }
}

fn device(policy: Policy, environment: &RankEnvironment) -> Result<DeviceRuntime, String> {
    let text = |error: kiln::Error| format!("{error:#}");
    match prober().availability_under(policy).map_err(text)? {
        Availability::Available(_) if policy.may_touch_cuda() => {
            DeviceRuntime::cuda(environment.local_rank.unwrap_or(0)).cloned().map_err(text)
        }
        Availability::Absent(absence) if policy == Policy::Required => Err(absence.to_string()),
        _ => DeviceRuntime::simulated(u64::from(environment.rank)).map_err(text),
    }
}

/// The name of a kind of device in the report.
fn kind_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cuda => "cuda",
        DeviceKind::Simulated => "simulated",
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

fn variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let is_known = |name: &String| {
        NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut names: Vec<String> = names.filter(is_known).collect();
    names.sort();
    names
}
