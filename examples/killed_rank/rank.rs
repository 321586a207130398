//! One rank: it queues all-reduces until it is killed, or told that another one is; then it looks at what it has, and goes on.

use std::io::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kiln::buffer::Stale;
use kiln::error::ErrorKind;
use kiln::group::{
    CommunicatorRankLost, DeviceCommunicator, RankEnvironment, RebuiltCommunicator, Reduction, Rendezvous,
    RendezvousConfig,
};
use kiln::probe::Policy;
use kiln::recovery::{DeviceSpec, Isolation, Process};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Ticket};

use crate::Failure;
use crate::plan::Plan;

/// Elements of a block on a GPU: an all-reduce takes long enough that the kill comes among others.
const GPU_COUNT: usize = 64 << 10;
/// Elements of a block on a simulated device.
const SIMULATED_COUNT: usize = 16;
/// Blocks that no collective uses.
const OTHERS: u32 = 20;
/// All-reduces that the ranks do after the loss.
const MORE: usize = 50;

/// What a rank has on its device.
struct Blocks {
    /// What each all-reduce reads and writes.
    inputs: Vec<GpuRef<u32>>,
    outputs: Vec<GpuRef<u32>>,
    others: Vec<GpuRef<u32>>,
    count: usize,
}

/// Runs this process as a rank of the job.
pub fn run(ranks: &RankEnvironment, plan: &Plan) -> Result<(), Failure> {
    let job = Arc::new(join(ranks, plan)?);
    let gpu = device(ranks, plan)?;
    if plan.is_replacement {
        let rebuilt = DeviceCommunicator::replace(&gpu, &job, &Default::default())?;
        let blocks = Blocks::new(&gpu, plan, ranks.rank)?;
        go_on(&rebuilt, plan, &blocks)?;
        return Ok(job.barrier("end")?);
    }
    let all = DeviceCommunicator::meet(&gpu, &job, &Default::default())?;
    let blocks = Blocks::new(&gpu, plan, ranks.rank)?;
    gpu.synchronize()?;
    // All are ready before the first begins.
    all.barrier().submit()?.wait()?;
    let (tickets, lost) = queue(&all, plan, &blocks)?;
    let (done, lost) = match lost {
        Some(lost) => (done_before_a_failure(&tickets)?, lost),
        None => wait_for_loss(&tickets)?,
    };
    if lost.lost != plan.victim() {
        return Err(format!("rank {} was killed, and the error blames another: {lost}", plan.victim()).into());
    }
    let rebuilt = match plan.is_replaced() {
        true => all.rebuild_replaced()?,
        false => all.rebuild()?,
    };
    say(&format!("intact {}", blocks.check(plan, (ranks.rank, done, tickets.len()))?));
    go_on(&rebuilt, plan, &blocks)?;
    job.acknowledge_losses();
    Ok(job.barrier("end")?)
}

/// Joins the job; a replacement waits until the others know that its rank is lost.
fn join(ranks: &RankEnvironment, plan: &Plan) -> Result<Rendezvous, Failure> {
    let config = RendezvousConfig::from_environment(ranks)?;
    loop {
        match Rendezvous::join(&config) {
            Err(kiln::group::RendezvousError::RankTaken { .. }) if plan.is_replacement => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            joined => return Ok(joined?),
        }
    }
}

fn device(ranks: &RankEnvironment, plan: &Plan) -> Result<DeviceRuntime, Failure> {
    if let Policy::Simulate = kiln::probe::policy()? {
        return Ok(DeviceRuntime::simulated(u64::from(ranks.rank))?);
    }
    let ordinal = ranks.local_rank.unwrap_or(0);
    if !plan.is_isolated {
        return Ok(DeviceRuntime::cuda(ordinal)?.clone());
    }
    let isolation = Isolation::Process(Process::default());
    let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
    Ok(DeviceRuntime::open(&DeviceSpec::cuda(ordinal), config)?)
}

/// Queues all all-reduces. The victim says when it has done as many as planned. Those that were queued before a loss was told, and that loss.
fn queue(
    rank: &DeviceCommunicator,
    plan: &Plan,
    blocks: &Blocks,
) -> Result<(Vec<Ticket>, Option<CommunicatorRankLost>), Failure> {
    let is_victim = rank.rank() == plan.victim();
    let mut tickets: Vec<Ticket> = Vec::new();
    for (at, (input, output)) in blocks.inputs.iter().zip(&blocks.outputs).enumerate() {
        match rank.all_reduce(input, output, Reduction::Sum).submit() {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => {
                say_told()?;
                let lost = error.lost_rank().cloned();
                return lost.map(|lost| (tickets, Some(lost))).ok_or_else(|| error.into());
            }
        }
        if is_victim && at == plan.done_at_kill() {
            let last = tickets.last().cloned();
            std::thread::spawn(move || {
                if last.is_some_and(|last| last.wait().is_ok()) {
                    say("reached");
                }
            });
        }
    }
    Ok((tickets, None))
}

/// Waits until a collective fails. How many were done before, and which rank was lost.
fn wait_for_loss(tickets: &[Ticket]) -> Result<(usize, CommunicatorRankLost), Failure> {
    for (at, ticket) in tickets.iter().enumerate() {
        if let Err(error) = ticket.wait() {
            say_told()?;
            let lost = error.downcast_ref::<CommunicatorRankLost>().cloned();
            return lost.map(|lost| (at, lost)).ok_or_else(|| error.into());
        }
    }
    Err("all collectives were done before the kill; ask for more of them".into())
}

/// How many were done of those before a refused one.
fn done_before_a_failure(tickets: &[Ticket]) -> Result<usize, Failure> {
    for (at, ticket) in tickets.iter().enumerate() {
        match ticket.wait() {
            Ok(()) => {}
            Err(error) if error.downcast_ref::<CommunicatorRankLost>().is_some() => return Ok(at),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(tickets.len())
}

/// All-reduces of the ranks that are left, or of all with the replacement.
fn go_on(rebuilt: &RebuiltCommunicator, plan: &Plan, blocks: &Blocks) -> Result<(), Failure> {
    let rank = &rebuilt.communicator;
    let size = plan.ranks - u32::from(!plan.is_replaced());
    if rank.size() != size {
        return Err(format!("{} ranks went on instead of {size}", rank.size()).into());
    }
    let ranks = &rebuilt.former_ranks;
    let first = usize::try_from(rebuilt.done)?;
    let again = first..plan.collectives.min(first + MORE);
    for at in again.clone() {
        let (input, output) = (&blocks.inputs[at], &blocks.outputs[at]);
        output.fill(0)?;
        rank.all_reduce(input, output, Reduction::Sum).submit()?;
    }
    for at in again {
        let sum = plan.sum(ranks.iter().copied(), at);
        if blocks.outputs[at].download()? != vec![sum; blocks.count] {
            return Err(format!("all-reduce {at} of the ranks that went on gave a wrong sum").into());
        }
    }
    rank.barrier().submit()?.wait()?;
    say("on");
    Ok(())
}

impl Blocks {
    fn new(gpu: &DeviceRuntime, plan: &Plan, rank: u32) -> Result<Self, Failure> {
        let count = match gpu.info().kind {
            kiln::driver::DeviceKind::Cuda => GPU_COUNT,
            _ => SIMULATED_COUNT,
        };
        let each = |value: &dyn Fn(usize) -> u32, number: usize| -> Result<Vec<GpuRef<u32>>, Failure> {
            (0..number).map(|at| Ok(gpu.upload(&vec![value(at); count])?)).collect()
        };
        let inputs = each(&|at| plan.value(rank, at), plan.collectives)?;
        let outputs = each(&|at| before(at), plan.collectives)?;
        let others = each(&|at| rank * 1_000 + at as u32, OTHERS as usize)?;
        Ok(Self { inputs, outputs, others, count })
    }

    /// Looks at every block. How many hold what they must, of those that no unfinished collective was to write.
    fn check(&self, plan: &Plan, (rank, done, queued): (u32, usize, usize)) -> Result<usize, Failure> {
        let mut intact = 0;
        let mut expect = |name: String, block: &GpuRef<u32>, value: u32| -> Result<(), Failure> {
            match block.download()? == vec![value; self.count] {
                true => intact += 1,
                false => return Err(format!("{name} has changed").into()),
            }
            Ok(())
        };
        for (at, other) in (0..).zip(&self.others) {
            expect(format!("block {at}, which no collective uses,"), other, rank * 1_000 + at)?;
        }
        for (at, (input, output)) in self.inputs.iter().zip(&self.outputs).enumerate() {
            expect(format!("the input of all-reduce {at}"), input, plan.value(rank, at))?;
            match () {
                () if at < done => {
                    let sum = plan.sum(0..plan.ranks, at);
                    expect(format!("the output of all-reduce {at}, which was done,"), output, sum)?;
                }
                () if at >= queued => {
                    expect(
                        format!("the output of all-reduce {at}, which was not queued,"),
                        output,
                        before(at),
                    )?;
                }
                () => match output.download() {
                    Err(error) if matches!(error.kind(), ErrorKind::Stale(Stale::NotWritten)) => {}
                    Err(error) => return Err(error.into()),
                    Ok(_) => {
                        return Err(
                            format!("the output of all-reduce {at}, which was ended, can be read").into()
                        );
                    }
                },
            }
        }
        Ok(intact)
    }
}

/// What an output holds before its all-reduce.
fn before(at: usize) -> u32 {
    0xdead_0000 + at as u32
}

/// Says that this rank was told, and when.
fn say_told() -> Result<(), Failure> {
    say(&format!("told {}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos()));
    Ok(())
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    // Without a reader there is no one to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
