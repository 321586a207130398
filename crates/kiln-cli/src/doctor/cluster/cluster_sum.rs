//! A small sum over all ranks, whose result is known: by NCCL if every rank has a GPU, else of values that ranks exchange.

use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{CommunicatorId, DeviceCommunicator, DeviceCommunicatorConfig, Reduction, Rendezvous};
use serde::Serialize;

use super::disagreement::Disagreement;
use super::rank_report::RankReport;

/// Elements of the sum.
const COUNT: usize = 1024;

/// What became of the sum.
#[derive(Serialize)]
pub(super) struct SumResult {
    /// `nccl`, or `rendezvous` for simulated devices, whose communicators do not span processes; none if it was not tried.
    pub(super) by: Option<&'static str>,
    /// The time of the second one, in microseconds.
    pub(super) time_us: Option<u64>,
    /// Why there is no result, or a wrong one.
    pub(super) problem: Option<String>,
    /// What to do about that.
    #[serde(skip)]
    next_step: &'static str,
}

/// What to do about ranks that NCCL takes for two of one GPU.
const GIVE_GPUS: &str =
    "start one rank for each GPU, or set NCCL_HOSTID to another name for each rank that shares one";
/// What to do about ranks without a device.
const GIVE_DEVICES: &str =
    "see to the ranks without a device or with another kind of device first, which are named above";
/// What to do about a sum of NCCL.
const LOOK_AT_NCCL: &str =
    "look at the other lines first, and start the ranks with NCCL_DEBUG=INFO, which shows what NCCL does";
/// What to do about a sum of values that ranks exchange.
const LOOK_AT_RANKS: &str = "look at the other lines and at what the ranks print, and start all ranks again";

impl SumResult {
    pub(super) fn disagreement(&self) -> Option<Disagreement> {
        let what = format!("the sum over all ranks: {}", self.problem.clone()?);
        Some(Disagreement { what, next_step: self.next_step.into() })
    }

    fn not_tried(why: &str, next_step: &'static str) -> Self {
        Self { by: None, time_us: None, problem: Some(format!("not tried, because {why}")), next_step }
    }
}

/// Sums on all ranks; every rank must call it with the same reports.
pub(super) fn try_sum(
    job: &Rendezvous,
    ranks: &[RankReport],
    runtime: Option<&DeviceRuntime>,
    time_limit: Duration,
) -> SumResult {
    let kinds = |kind: &str| ranks.iter().filter(|rank| rank.device_kind.as_deref() == Some(kind)).count();
    let (by, summed, next_step) = match runtime {
        Some(gpu) if kinds("cuda") == ranks.len() && !share_a_gpu(ranks) => {
            ("nccl", over_nccl(job, gpu, time_limit), LOOK_AT_NCCL)
        }
        Some(gpu) if kinds("simulated") == ranks.len() => {
            ("rendezvous", over_rendezvous(job, gpu), LOOK_AT_RANKS)
        }
        Some(_) if kinds("cuda") == ranks.len() => {
            let why =
                "NCCL refuses ranks of one host that share a GPU (NCCL_HOSTID names another host for a rank)";
            return SumResult::not_tried(why, GIVE_GPUS);
        }
        _ => return SumResult::not_tried("not every rank has a device for it", GIVE_DEVICES),
    };
    let (time_us, problem) = match summed {
        Ok(time) => (Some(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)), None),
        Err(problem) => (None, Some(problem)),
    };
    SumResult { by: Some(by), time_us, problem, next_step }
}

/// Whether NCCL would take ranks for two of one GPU.
fn share_a_gpu(ranks: &[RankReport]) -> bool {
    let all = |rank: &RankReport| (rank.host.clone(), rank.nccl_host.clone(), rank.uuid.clone());
    (0..ranks.len())
        .any(|at| ranks.iter().skip(at + 1).any(|other| ranks.get(at).map(all) == Some(all(other))))
}

fn over_nccl(job: &Rendezvous, gpu: &DeviceRuntime, deadline: Duration) -> Result<Duration, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    if job.rank() == 0 {
        let made = DeviceCommunicator::new_id(gpu);
        // The others are told that there is none, so that they do not wait for it.
        let bytes = made.as_ref().map_or(&[][..], |id| &id.bytes()[..]);
        job.put("doctor communicator", bytes).map_err(|error| text(&error))?;
        made.map_err(|error| text(&error))?;
    }
    let id = job.get("doctor communicator").map_err(|error| text(&error))?;
    let id = CommunicatorId::try_from(&id[..]).map_err(|_| "rank 0 made no communicator".to_owned())?;
    let config = DeviceCommunicatorConfig { deadline };
    let rank = DeviceCommunicator::join(gpu, id, job.rank(), job.size(), &config);
    let rank = rank.map_err(|error| text(&error))?;
    let run = || -> Result<Duration, Box<dyn std::error::Error>> {
        let values = gpu.upload(&vec![job.rank() + 1; COUNT])?;
        let result = gpu.zeros::<u32>(COUNT)?;
        rank.all_reduce(&values, &result, Reduction::Sum).submit()?.wait()?;
        checked(job.size(), &result.download()?)?;
        let started = Instant::now();
        rank.all_reduce(&values, &result, Reduction::Sum).submit()?.wait()?;
        Ok(started.elapsed())
    };
    run().map_err(|error| error.to_string())
}

/// Values of the ranks' devices, exchanged as bytes and summed on each rank's device.
fn over_rendezvous(job: &Rendezvous, gpu: &DeviceRuntime) -> Result<Duration, String> {
    let run = |name: &str| -> Result<Duration, Box<dyn std::error::Error>> {
        let started = Instant::now();
        let own = gpu.upload(&vec![job.rank() + 1; COUNT])?.download()?;
        let bytes: Vec<u8> = own.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut sum = vec![0_u32; COUNT];
        for values in job.exchange(name, &bytes)?.iter().flatten() {
            for (sum, value) in sum.iter_mut().zip(values.chunks_exact(4)) {
                *sum = sum.wrapping_add(u32::from_le_bytes(value.try_into()?));
            }
        }
        checked(job.size(), &gpu.upload(&sum)?.download()?)?;
        Ok(started.elapsed())
    };
    run("doctor first sum").and_then(|_| run("doctor second sum")).map_err(|error| error.to_string())
}

fn checked(size: u32, sums: &[u32]) -> Result<(), String> {
    let expected = size.wrapping_mul(size.wrapping_add(1)) / 2;
    match sums.iter().enumerate().find(|(_, sum)| **sum != expected) {
        Some((at, sum)) => Err(format!("element {at} is {sum} and should be {expected}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_named() {
        assert_eq!(checked(4, &[10, 10]), Ok(()));
        assert_eq!(checked(4, &[10, 9]), Err("element 1 is 9 and should be 10".into()));
    }

    #[test]
    fn every_problem_has_a_next_step_that_fits_it() {
        let problem =
            |by, next_step| SumResult { by: Some(by), time_us: None, problem: Some("no".into()), next_step };
        for (sum, words) in [
            (SumResult::not_tried("they share a GPU", GIVE_GPUS), "start one rank for each GPU"),
            (SumResult::not_tried("there is no device", GIVE_DEVICES), "see to the ranks without a device"),
            (problem("nccl", LOOK_AT_NCCL), "NCCL_DEBUG=INFO"),
            (problem("rendezvous", LOOK_AT_RANKS), "start all ranks again"),
        ] {
            let told = sum.disagreement().unwrap();
            assert!(told.what.starts_with("the sum over all ranks: "), "{}", told.what);
            assert!(told.next_step.contains(words), "{}", told.next_step);
        }
        let none = SumResult { by: Some("nccl"), time_us: Some(1), problem: None, next_step: LOOK_AT_NCCL };
        assert_eq!(none.disagreement(), None);
    }
}
