//! Finds workers that hang.
//!
//! A stream with work must complete one more submission within the limit, counted from when it last did. A question must be answered
//! within the limit as well, and a batch of questions within as many limits as it has questions. The worker is asked to query streams with
//! work, so that their progress is seen although no call waits for them.
//!
//! The limit is in time in which this process [was running](RunningTime).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kiln_driver::{StreamId, Submission};

use super::stop_aware_clock::RunningTime;
use crate::client::connection::Link;
use crate::client::loss_cause::LossCause;
use crate::client::stream_table::StreamTable;
use crate::protocol::wire::Request;

/// The progress that was last seen, and when it changed.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    clock: RunningTime,
    streams: HashMap<StreamId, (Submission, Duration)>,
    /// The number of the open question, and when it was first seen.
    question: Option<(u64, Duration)>,
}

impl Watchdog {
    /// How often to look.
    pub(crate) fn tick(limit: Duration) -> Duration {
        (limit / 8).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    /// Looks once; returns the cause if something made no progress for longer than the limit.
    pub(crate) fn look(&mut self, limit: Duration, link: &Link, streams: &StreamTable) -> Option<LossCause> {
        let now = self.clock.read(Instant::now(), 2 * Self::tick(limit));
        if let Some(after) = self.look_at_question(now, limit, link) {
            return Some(LossCause::Hung { what: "a question to the worker".into(), after });
        }
        let streams = streams.all();
        self.streams.retain(|id, _| streams.iter().any(|(known, _)| known == id));
        for (id, count) in streams {
            let progress = count.progress(&link.segment);
            if progress.completed >= progress.submitted {
                self.streams.remove(&id);
                continue;
            }
            let (completed, since) = self.streams.entry(id).or_insert((progress.completed, now));
            if *completed != progress.completed {
                (*completed, *since) = (progress.completed, now);
            }
            let after = now.saturating_sub(*since);
            if after > limit {
                let next = Submission(progress.completed.0 + 1);
                return Some(LossCause::Hung { what: format!("{id} at {next}"), after });
            }
            // Sent only into an empty ring. A ring that stays full means that the worker does not read it, which shows above.
            if link.is_drained() && count.needs_watch(progress.submitted.0) {
                let (stream, number) = (count.wire, progress.submitted.0);
                let _ = link.send("watchdog", &Request::WatchStream { stream, number });
            }
        }
        None
    }

    /// How long the worker has not answered, if that is too long.
    fn look_at_question(&mut self, now: Duration, limit: Duration, link: &Link) -> Option<Duration> {
        let Some(open) = link.open_question() else {
            self.question = None;
            return None;
        };
        let seen = self.question.filter(|(number, _)| *number == open.number);
        let (_, since) = *self.question.insert(seen.unwrap_or((open.number, now)));
        let after = now.saturating_sub(since);
        (after > limit.saturating_mul(open.count)).then_some(after)
    }
}
