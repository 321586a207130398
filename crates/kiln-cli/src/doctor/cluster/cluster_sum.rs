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
}

impl SumResult {
    pub(super) fn disagreement(&self) -> Option<Disagreement> {
        let what = self.problem.clone()?;
        Some(Disagreement {
            what: format!("the sum over all ranks: {what}"),
            next_step: "look at the other lines first; NCCL_DEBUG=INFO shows what NCCL does".into(),
        })
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
    let (by, summed) = match runtime {
        Some(gpu) if kinds("cuda") == ranks.len() && !share_a_gpu(ranks) => {
            ("nccl", over_nccl(job, gpu, time_limit))
        }
        Some(gpu) if kinds("simulated") == ranks.len() => ("rendezvous", over_rendezvous(job, gpu)),
        Some(_) if kinds("cuda") == ranks.len() => {
            let why = "not tried, because NCCL refuses ranks of one host that share a GPU (NCCL_HOSTID names another host for a rank)";
            return SumResult { by: None, time_us: None, problem: Some(why.into()) };
        }
        _ => {
            let problem = Some("not tried, because not every rank has a device for it".into());
            return SumResult { by: None, time_us: None, problem };
        }
    };
    let (time_us, problem) = match summed {
        Ok(time) => (Some(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)), None),
        Err(problem) => (None, Some(problem)),
    };
    SumResult { by: Some(by), time_us, problem }
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
    use super::checked;

    #[test]
    fn a_wrong_sum_is_named() {
        assert_eq!(checked(4, &[10, 10]), Ok(()));
        assert_eq!(checked(4, &[10, 9]), Err("element 1 is 9 and should be 10".into()));
    }
}
