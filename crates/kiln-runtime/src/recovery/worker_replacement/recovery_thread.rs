//! The thread that takes over when a worker is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::layer::Layered;
use kiln_isolate::{IsolatedDevice, Takeover, TakeoverError};
use kiln_order::{DependencyTracker, Rules, StreamClock, StreamState};

use crate::device_state::{Keep, Phase, StateCell};
use crate::ids::BlockId;
use crate::recovery::block_repair::{BlockRegistry, BlockRepair, Repaired, Sealer};
use crate::recovery::loss_detection::{LossNotifier, SubmissionMap};
use crate::recovery::lost_blocks::LossAnalysis;
use crate::recovery::manual_recovery::RecoveryControl;
use crate::recovery::report::{BlockOutcome, Reports};
use crate::resubmission::{ReplayPlan, ReplayRefusal, Replayer, SubmissionLog};
use crate::runtime::Block;

/// How often the worker is made to look at its streams while no other call asks: a fault is noticed after this, and what is done is known
/// to be done.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The thread's own part. It holds no runtime, so that a runtime can end.
pub(crate) struct RecoveryThread {
    pub(crate) device: Arc<IsolatedDevice>,
    pub(crate) submissions: Arc<Layered<SubmissionMap>>,
    pub(crate) notifier: Arc<LossNotifier>,
    pub(crate) registry: Arc<BlockRegistry>,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) reports: Arc<Reports>,
    /// Where work may be done again.
    pub(crate) log: Option<Arc<SubmissionLog>>,
    pub(crate) rules: Rules,
    pub(crate) on_loss: Keep,
    pub(crate) state: Arc<StateCell>,
    pub(crate) tracker: Arc<DependencyTracker>,
    pub(crate) control: RecoveryControl,
}

impl RecoveryThread {
    /// Looks after the device until it has ended, one way or the other.
    pub(crate) fn run(self) {
        self.state.rebuild_here();
        loop {
            let quiet = |phase| matches!(phase, Phase::Starting | Phase::Ready);
            let status = self.state.wait_until(|status| !quiet(status.phase()), Some(CHECK_INTERVAL));
            match status.phase() {
                Phase::Starting | Phase::Ready => self.check_worker(),
                Phase::Lost => match self.recover() {
                    Ok(()) => {}
                    Err(error) => return self.control.give_up_because(&error.to_string()),
                },
                Phase::Rebuilding | Phase::Failed | Phase::ShuttingDown | Phase::Stopped => return,
            }
        }
    }

    fn check_worker(&self) {
        if self.log.is_some() {
            self.tracker.each_stream(|lane| {
                if let Some(progress) = self.device.known_progress(lane.stream) {
                    self.submissions.layer().forget_completed(lane, progress.completed);
                }
            });
        }
        if self.device.poll_streams()
            && let Some(cause) = self.device.cause()
        {
            self.notifier.worker_lost(&cause);
        }
    }

    /// Puts another worker in the place of the lost one.
    fn recover(&self) -> Result<(), TakeoverError> {
        let started = Instant::now();
        if self.control.rebuilding().is_err() {
            // It is being shut down, which the next look sees.
            return Ok(());
        }
        self.tracker.hold();
        // How far the streams of the old worker were is known from the first takeover; one that has to follow it only brings another worker.
        let takeover = self.replace_worker()?;
        // Kept alive until everything is over: the last handle of one may be dropped meanwhile, and giving a block back takes a stream.
        let blocks = self.registry.all();
        let replaying = Instant::now();
        let Some(mut plan) = self.replay_not_started(&takeover)? else { return Ok(()) };
        let repairing = Instant::now();
        if self.log.is_some() {
            self.state.note_resubmitted(repairing.duration_since(replaying));
        }
        let repaired = loop {
            match self.repair_blocks(&takeover, &plan, &blocks) {
                Ok(repaired) => break repaired,
                Err(error) => {
                    tracing::warn!(%error, "a worker was lost while it was made ready");
                    self.replace_worker()?;
                }
            }
        };
        self.revise(&mut plan, &blocks, &repaired);
        let found = Found { takeover, plan, repaired };
        self.begin_generation(&found, &blocks, [started, replaying, repairing]);
        drop(blocks);
        // A worker that was gone again before the device was ready was not heard of.
        self.check_worker();
        Ok(())
    }

    fn replace_worker(&self) -> Result<Takeover, TakeoverError> {
        loop {
            match self.device.take_over() {
                Ok(takeover) => return Ok(takeover),
                // The device says that it is lost, and its worker does not.
                Err(TakeoverError::NotLost) => self.device.kill_worker(),
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, "a worker could not take over; another one is tried");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Verifies and heals blocks, as things stand now. What is submitted until the decision is refused, so nothing that is found out here
    /// changes; a block that is stamped anyway is lost.
    fn repair_blocks(
        &self,
        takeover: &Takeover,
        plan: &ReplayPlan,
        blocks: &[Arc<Block>],
    ) -> kiln_driver::Result<Repaired> {
        if self.on_loss == Keep::Nothing {
            return Ok(Repaired::new());
        }
        let loss = self.tracker.frozen(|lanes| {
            let analysis = self.analysis(lanes, takeover, plan);
            self.state.resolve_loss(&analysis.known, &analysis.planned)
        });
        match loss {
            Some(loss) => {
                BlockRepair::run(&self.device, &self.sealer, &self.registry, blocks, &loss, &loss.known)
            }
            None => Ok(Repaired::new()),
        }
    }

    fn analysis(&self, lanes: &[Arc<StreamState>], takeover: &Takeover, plan: &ReplayPlan) -> LossAnalysis {
        LossAnalysis::new(self.submissions.layer(), &self.tracker, lanes, takeover, plan.known())
    }

    /// Decides what was lost, and takes work again. No thread submits meanwhile: one that was about to is refused before or finds the new
    /// generation after.
    fn begin_generation(
        &self,
        found: &Found,
        blocks: &[Arc<Block>],
        [started, replaying, repairing]: [Instant; 3],
    ) {
        let deciding = Instant::now();
        let Found { takeover, plan, repaired } = found;
        self.tracker.frozen(|lanes| {
            let analysis = self.analysis(lanes, takeover, plan);
            let Some(loss) = self.state.resolve_loss(&analysis.known, &analysis.planned) else { return };
            let submissions = self.submissions.layer();
            let mut report = analysis.report(submissions, lanes, takeover, (&loss, plan), blocks);
            analysis.apply(&mut report, &loss, blocks, repaired, self.on_loss);
            for lane in lanes {
                submissions.unfinished(lane, |unfinished| unfinished.clear());
                lane.forget_broken();
            }
            report.replayed = repairing.duration_since(replaying);
            report.repaired = deciding.duration_since(repairing);
            report.decided = deciding.elapsed();
            report.total = started.elapsed();
            let (lost, replayed) = (report.lost().count(), report.replayed_work().count());
            tracing::warn!(cause = %report.cause, lost, replayed, "a worker was replaced");
            // A thread that waits for the device to be ready finds the report. A device that is being shut down meanwhile stays so.
            self.state.note_post_mortem(loss.generation, &report);
            self.reports.push(report);
            let _ = self.control.rebuilt(self.on_loss);
        });
    }
}

/// What a takeover brought to light before it is decided.
struct Found {
    takeover: Takeover,
    plan: ReplayPlan,
    repaired: Repaired,
}

/// Work that is done again.
impl RecoveryThread {
    /// Finds out what had started, and does again what had not. That costs no more than one further worker: what is lost with it fails. None
    /// if the device was shut down meanwhile.
    fn replay_not_started(&self, takeover: &Takeover) -> Result<Option<ReplayPlan>, TakeoverError> {
        let Some(log) = self.log.as_deref().filter(|_| self.on_loss == Keep::Untouched) else {
            return Ok(Some(ReplayPlan::refused(ReplayRefusal::NotAsked)));
        };
        let Some(marks) = self.on_new_worker(|| log.marks().read(&*self.device))? else {
            return Ok(Some(ReplayPlan::refused(ReplayRefusal::Unsuited("the marks could not be read"))));
        };
        let mut plan = self.tracker.frozen(|lanes| {
            let analysis = self.analysis(lanes, takeover, &ReplayPlan::refused(ReplayRefusal::NotAsked));
            let found = ReplayPlan::new(log, &marks, lanes, &analysis.known, self.rules);
            let _ = self.state.resolve_loss(found.known(), &analysis.planned);
            found
        });
        let replayer = Replayer { device: &*self.device, marks: log.marks(), state: &self.state };
        let mut replayed = plan.replay(&replayer);
        if self.state.phase() != Phase::Rebuilding {
            return Ok(None);
        }
        if replayed.interrupted.is_some() && self.device.cause().is_some() {
            self.replace_worker()?;
            if let Some(marks) = self.on_new_worker(|| log.marks().read(&*self.device))? {
                replayed.resume(&marks);
            }
        }
        plan.accept(replayed);
        self.state.set_replayed(plan.replayed());
        self.on_new_worker(|| log.clear(&*self.device))?;
        Ok(Some(plan))
    }

    /// What was done again on a block that turns out to be broken was done in vain.
    fn revise(&self, plan: &mut ReplayPlan, blocks: &[Arc<Block>], repaired: &Repaired) {
        let Some(loss) = self.state.resolve_loss(&StreamClock::default(), &StreamClock::default()) else {
            return;
        };
        let is_broken = |block: &&Arc<Block>| match repaired.get(&block.id()) {
            Some(BlockOutcome::Broken) => true,
            Some(BlockOutcome::Healed) => !block.is_touched(&loss),
            _ => false,
        };
        let broken: HashSet<BlockId> = blocks.iter().filter(is_broken).map(|block| block.id()).collect();
        if !broken.is_empty() && plan.revise(&broken) {
            self.state.set_replayed(plan.replayed());
        }
    }

    /// Does something on the new worker, and on another one if that is lost. None if it is there and refuses: the marks then say nothing that
    /// could be believed, and nothing is done again.
    fn on_new_worker<T>(&self, act: impl Fn() -> kiln_driver::Result<T>) -> Result<Option<T>, TakeoverError> {
        loop {
            match act() {
                Ok(value) => return Ok(Some(value)),
                Err(error) if self.device.cause().is_some() => {
                    tracing::warn!(%error, "a worker was lost while it was made ready");
                    self.replace_worker()?;
                }
                Err(error) => {
                    tracing::warn!(%error, "the marks of streams could not be read or set");
                    return Ok(None);
                }
            }
        }
    }
}
