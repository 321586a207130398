//! Notices work that does not get on.
//!
//! A stream with work is given until the limit to complete one more submission, counted from when it last did. A question
//! is given as long, and several that are asked together as much longer. The worker is asked to look at streams with work,
//! so that they are seen to move although nobody waits for them.
//!
//! The limit is in time this process was there to [see](Awake): work is not late because the machine stood still.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kiln_driver::{StreamId, Submission};

use crate::awake::Awake;
use crate::cause::Cause;
use crate::link::Link;
use crate::streams::StreamTable;
use crate::wire::Request;

/// What was seen, and when it last changed.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    awake: Awake,
    seen: HashMap<StreamId, (Submission, Duration)>,
    /// The number of the open question, and when it was first seen.
    question: Option<(u64, Duration)>,
}

impl Watchdog {
    /// How often to look.
    pub(crate) fn tick(limit: Duration) -> Duration {
        (limit / 8).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    /// Looks once; the cause if something did not get on for too long.
    pub(crate) fn look(&mut self, limit: Duration, link: &Link, streams: &StreamTable) -> Option<Cause> {
        let now = self.awake.look(Instant::now(), 2 * Self::tick(limit));
        if let Some(after) = self.look_at_question(now, limit, link) {
            return Some(Cause::Hung { what: "a question to the worker".into(), after });
        }
        let streams = streams.all();
        self.seen.retain(|id, _| streams.iter().any(|(known, _)| known == id));
        for (id, count) in streams {
            let progress = count.progress(&link.area);
            if progress.completed >= progress.submitted {
                self.seen.remove(&id);
                continue;
            }
            let (completed, since) = self.seen.entry(id).or_insert((progress.completed, now));
            if *completed != progress.completed {
                (*completed, *since) = (progress.completed, now);
            }
            let after = now.saturating_sub(*since);
            if after > limit {
                let next = Submission(progress.completed.0 + 1);
                return Some(Cause::Hung { what: format!("{id} at {next}"), after });
            }
            // Sent only where the ring has room: a full one is the worker not getting on, and is seen above.
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
