//! The thread that takes over when a worker is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::layer::Layered;
use kiln_isolate::{IsolatedDevice, Takeover, TakeoverError};
use kiln_order::{Clock, DependencyTracker, Rules, StreamState};

use super::alarm::Alarm;
use super::census::Census;
use super::keeper::Reports;
use super::ledger::Ledger;
use super::mender::{Mended, Mender};
use super::post_mortem::Standing;
use super::seal::Sealer;
use super::supervisor::Supervisor;
use super::verdict::Verdict;
use crate::ids::BlockId;
use crate::replay::{Log, Player, Resumption, Why};
use crate::runtime::Block;
use crate::state::{Keep, Phase, StateCell};

/// How often the worker is made to look at its streams while no other call asks: a fault is noticed after this, and what is done is known
/// to be done.
const LOOK: Duration = Duration::from_millis(50);

/// The thread's own part. It holds no runtime, so that a runtime can end.
pub(super) struct Guardian {
    pub(super) device: Arc<IsolatedDevice>,
    pub(super) ledger: Arc<Layered<Ledger>>,
    pub(super) alarm: Arc<Alarm>,
    pub(super) census: Arc<Census>,
    pub(super) sealer: Arc<Sealer>,
    pub(super) reports: Arc<Reports>,
    /// Where work may be done again.
    pub(super) log: Option<Arc<Log>>,
    pub(super) rules: Rules,
    pub(super) on_loss: Keep,
    pub(super) state: Arc<StateCell>,
    pub(super) tracker: Arc<DependencyTracker>,
    pub(super) supervisor: Supervisor,
}

impl Guardian {
    /// Looks after the device until it has ended, one way or the other.
    pub(super) fn run(self) {
        self.state.rebuild_here();
        loop {
            let quiet = |phase| matches!(phase, Phase::Starting | Phase::Ready);
            let status = self.state.wait_until(|status| !quiet(status.phase()), Some(LOOK));
            match status.phase() {
                Phase::Starting | Phase::Ready => self.look(),
                Phase::Lost => match self.survive() {
                    Ok(()) => {}
                    Err(error) => return self.supervisor.give_up_because(&error.to_string()),
                },
                Phase::Rebuilding | Phase::Failed | Phase::ShuttingDown | Phase::Stopped => return,
            }
        }
    }

    fn look(&self) {
        if self.log.is_some() {
            self.tracker.each_stream(|lane| {
                if let Some(progress) = self.device.known_progress(lane.stream) {
                    self.ledger.layer().forget_completed(lane, progress.completed);
                }
            });
        }
        if self.device.poll_streams()
            && let Some(cause) = self.device.cause()
        {
            self.alarm.raise(&cause);
        }
    }

    /// Puts another worker in the place of the lost one.
    fn survive(&self) -> Result<(), TakeoverError> {
        let begun = Instant::now();
        if self.supervisor.rebuilding().is_err() {
            // It is being shut down, which the next look sees.
            return Ok(());
        }
        self.tracker.hold();
        // How far the streams of the old worker were is known from the first takeover; one that has to follow it only brings another worker.
        let takeover = self.replace_worker()?;
        // Kept alive until everything is over: the last handle of one may be dropped meanwhile, and giving a block back takes a stream.
        let blocks = self.census.all();
        let replaying = Instant::now();
        let Some(mut resumption) = self.resume(&takeover)? else { return Ok(()) };
        let mending = Instant::now();
        let mended = loop {
            match self.mend(&takeover, &resumption, &blocks) {
                Ok(mended) => break mended,
                Err(error) => {
                    tracing::warn!(%error, "a worker was lost while it was made ready");
                    self.replace_worker()?;
                }
            }
        };
        self.revise(&mut resumption, &blocks, &mended);
        let found = Found { takeover, resumption, mended };
        self.begin_generation(&found, &blocks, [begun, replaying, mending]);
        drop(blocks);
        // A worker that was gone again before the device was ready was not heard of.
        self.look();
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
    fn mend(
        &self,
        takeover: &Takeover,
        resumption: &Resumption,
        blocks: &[Arc<Block>],
    ) -> kiln_driver::Result<Mended> {
        if self.on_loss == Keep::Nothing {
            return Ok(Mended::new());
        }
        let loss = self.tracker.frozen(|lanes| {
            let verdict = self.verdict(lanes, takeover, resumption);
            self.state.settle(&verdict.known, &verdict.planned)
        });
        match loss {
            Some(loss) => Mender::mend(&self.device, &self.sealer, &self.census, blocks, &loss, &loss.known),
            None => Ok(Mended::new()),
        }
    }

    fn verdict(&self, lanes: &[Arc<StreamState>], takeover: &Takeover, resumption: &Resumption) -> Verdict {
        Verdict::reach(self.ledger.layer(), &self.tracker, lanes, takeover, resumption.known())
    }

    /// Decides what was lost, and takes work again. No thread submits meanwhile: one that was about to is refused before or finds the new
    /// generation after.
    fn begin_generation(
        &self,
        found: &Found,
        blocks: &[Arc<Block>],
        [begun, replaying, mending]: [Instant; 3],
    ) {
        let judging = Instant::now();
        let Found { takeover, resumption, mended } = found;
        self.tracker.frozen(|lanes| {
            let verdict = self.verdict(lanes, takeover, resumption);
            let Some(loss) = self.state.settle(&verdict.known, &verdict.planned) else { return };
            let ledger = self.ledger.layer();
            let mut report = verdict.report(ledger, lanes, takeover, (&loss, resumption), blocks);
            verdict.sentence(&mut report, &loss, blocks, mended, self.on_loss);
            for lane in lanes {
                ledger.account(lane, |account| account.clear());
                lane.forget_broken();
            }
            report.replayed = mending.duration_since(replaying);
            report.mended = judging.duration_since(mending);
            report.judged = judging.elapsed();
            report.total = begun.elapsed();
            let (lost, replayed) = (report.lost().count(), report.replayed_work().count());
            tracing::warn!(cause = %report.cause, lost, replayed, "a worker was replaced");
            // A thread that waits for the device to be ready finds the report. A device that is being shut down meanwhile stays so.
            self.reports.push(report);
            let _ = self.supervisor.rebuilt(self.on_loss);
        });
    }
}

/// What a takeover brought to light before it is decided.
struct Found {
    takeover: Takeover,
    resumption: Resumption,
    mended: Mended,
}

/// Work that is done again.
impl Guardian {
    /// Finds out what had started, and does again what had not. That costs no more than one further worker: what is lost with it fails. None
    /// if the device was shut down meanwhile.
    fn resume(&self, takeover: &Takeover) -> Result<Option<Resumption>, TakeoverError> {
        let Some(log) = self.log.as_deref().filter(|_| self.on_loss == Keep::Untouched) else {
            return Ok(Some(Resumption::refused(Why::NotAsked)));
        };
        let Some(words) = self.persist(|| log.marks().read(&*self.device))? else {
            return Ok(Some(Resumption::refused(Why::Unsuited("the marks could not be read"))));
        };
        let mut resumption = self.tracker.frozen(|lanes| {
            let verdict = self.verdict(lanes, takeover, &Resumption::refused(Why::NotAsked));
            let found = Resumption::find(log, &words, lanes, &verdict.known, self.rules);
            let _ = self.state.settle(found.known(), &verdict.planned);
            found
        });
        let player = Player { device: &*self.device, marks: log.marks(), state: &self.state };
        let mut played = resumption.play(&player);
        if self.state.phase() != Phase::Rebuilding {
            return Ok(None);
        }
        if played.interrupted.is_some() && self.device.cause().is_some() {
            self.replace_worker()?;
            if let Some(words) = self.persist(|| log.marks().read(&*self.device))? {
                played.resume(&words);
            }
        }
        resumption.accept(played);
        self.state.settle_replayed(resumption.runs());
        self.persist(|| log.clear(&*self.device))?;
        Ok(Some(resumption))
    }

    /// What was done again on a block that turns out to be broken was done in vain.
    fn revise(&self, resumption: &mut Resumption, blocks: &[Arc<Block>], mended: &Mended) {
        let Some(loss) = self.state.settle(&Clock::default(), &Clock::default()) else { return };
        let is_broken = |block: &&Arc<Block>| match mended.get(&block.id()) {
            Some(Standing::Broken) => true,
            Some(Standing::Healed) => !block.is_touched(&loss),
            _ => false,
        };
        let broken: HashSet<BlockId> = blocks.iter().filter(is_broken).map(|block| block.id()).collect();
        if !broken.is_empty() && resumption.revise(&broken) {
            self.state.settle_replayed(resumption.runs());
        }
    }

    /// Does something on the new worker, and on another one if that is lost. None if it is there and refuses: the marks then say nothing that
    /// could be believed, and nothing is done again.
    fn persist<T>(&self, act: impl Fn() -> kiln_driver::Result<T>) -> Result<Option<T>, TakeoverError> {
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
