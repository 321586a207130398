//! The thread that takes over when a worker is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::layer::Layered;
use kiln_isolate::{IsolatedDevice, Takeover, TakeoverError};

use super::alarm::Alarm;
use super::census::Census;
use super::keeper::Reports;
use super::ledger::Ledger;
use super::mender::{Mended, Mender};
use super::seal::Sealer;
use super::verdict::Verdict;
use crate::order::Tracker;
use crate::runtime::Block;
use crate::state::{Keep, Phase, StateCell, Supervisor};

/// How often the worker is made to look at its streams while nobody else asks: a fault is noticed after this, and what is done is known
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
    pub(super) on_loss: Keep,
    pub(super) state: Arc<StateCell>,
    pub(super) tracker: Arc<Tracker>,
    pub(super) supervisor: Supervisor,
}

impl Guardian {
    /// Looks after the device until it has ended, one way or the other.
    pub(super) fn run(self) {
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
        if self.device.look()
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
        // How far the streams of the old worker were is known from the first takeover; one that has to follow it only brings another worker.
        let takeover = self.replace_worker()?;
        // Kept alive until everything is over: the last handle of one may be dropped meanwhile, and giving a block back takes a stream.
        let blocks = self.census.all();
        let mending = Instant::now();
        let mended = loop {
            match self.mend(&takeover, &blocks) {
                Ok(mended) => break mended,
                Err(error) => {
                    tracing::warn!(%error, "a worker was lost while it was made ready");
                    self.replace_worker()?;
                }
            }
        };
        self.begin_generation(&takeover, &blocks, &mended, [begun, mending]);
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
    /// changes; a block that somebody stamps all the same is lost.
    fn mend(&self, takeover: &Takeover, blocks: &[Arc<Block>]) -> kiln_driver::Result<Mended> {
        if self.on_loss == Keep::Nothing {
            return Ok(Mended::new());
        }
        let loss = self.tracker.frozen(|lanes| {
            let verdict = Verdict::reach(self.ledger.layer(), &self.tracker, lanes, takeover);
            self.state.settle(&verdict.known, &verdict.planned)
        });
        match loss {
            Some(loss) => Mender::mend(&self.device, &self.sealer, &self.census, blocks, &loss, &loss.known),
            None => Ok(Mended::new()),
        }
    }

    /// Decides what was lost, and takes work again. Nobody submits meanwhile: whoever was about to is refused before or finds the new
    /// generation after.
    fn begin_generation(
        &self,
        takeover: &Takeover,
        blocks: &[Arc<Block>],
        mended: &Mended,
        [begun, mending]: [Instant; 2],
    ) {
        let judging = Instant::now();
        self.tracker.frozen(|lanes| {
            let verdict = Verdict::reach(self.ledger.layer(), &self.tracker, lanes, takeover);
            let Some(loss) = self.state.settle(&verdict.known, &verdict.planned) else { return };
            let mut report = verdict.report(self.ledger.layer(), lanes, takeover, &loss, blocks);
            verdict.sentence(&mut report, &loss, blocks, mended, self.on_loss);
            for lane in lanes {
                self.ledger.layer().account(lane, |account| account.clear());
                lane.forget_broken();
            }
            report.mended = judging.duration_since(mending);
            report.judged = judging.elapsed();
            report.total = begun.elapsed();
            tracing::warn!(cause = %report.cause, lost = report.lost().count(), "a worker was replaced");
            // Whoever waits for the device to be ready finds the report. A device that is being shut down meanwhile stays so.
            self.reports.push(report);
            let _ = self.supervisor.rebuilt(self.on_loss);
        });
    }
}
