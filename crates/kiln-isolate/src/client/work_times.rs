//! When work ran, as the worker in use tells it.

use std::time::SystemTime;

use kiln_driver::{Error, Result, StreamId};

use super::proxy::DeviceProxy;
use crate::protocol::wire::{Ask, MAX_TOLD, Request, Take, TimesAsk, ToldTimes};

const CALL: &str = "times";

/// When work with a number ran, or a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerTime {
    /// The number that the caller gave it.
    pub number: u64,
    /// How long ago it began, in nanoseconds.
    pub began_ago_ns: u64,
    /// How long ago it ended.
    pub ended_ago_ns: u64,
}

/// Whether a worker is to ask its device's tool for what it knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum TimesFlush {
    /// It tells what came by itself.
    #[default]
    None,
    /// Of buffers whose work is over.
    Complete,
    /// Of all work that is over.
    All,
}

impl DeviceProxy {
    pub(crate) fn start_times(&self) -> Result<()> {
        let link = self.shared.link();
        link.check(CALL)?;
        link.ask(CALL, &Ask::Times(TimesAsk::Start), None, |_| Ok(())).map(drop)
    }

    pub(crate) fn stop_times(&self) -> Result<()> {
        let link = self.shared.link();
        link.check(CALL)?;
        link.ask(CALL, &Ask::Times(TimesAsk::Stop), None, |_| Ok(())).map(drop)
    }

    pub(crate) fn number_work(&self, stream: StreamId, number: Option<u64>) -> Result<()> {
        let link = self.shared.link();
        link.check(CALL)?;
        let stream = self.objects.streams.pin(stream).map_err(|error: Error| error.seen_by(CALL))?;
        link.send(CALL, &Request::NumberWork { stream: stream.count.wire, number })
    }

    pub(crate) fn take_times(&self, flush: TimesFlush, mut each: impl FnMut(WorkerTime)) -> Result<u64> {
        let link = self.shared.link();
        link.check(CALL)?;
        let mut ask = match flush {
            TimesFlush::None => TimesAsk::Take,
            TimesFlush::Complete => TimesAsk::Flush,
            TimesFlush::All => TimesAsk::FlushAll,
        };
        loop {
            let (told, _) = link.ask(CALL, &Ask::Times(ask), None, ToldTimes::take)?;
            let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let since_ns = u64::try_from(unix.as_nanos()).unwrap_or_default().saturating_sub(told.unix_ns);
            let ago = |at: u64| told.now_ns.saturating_sub(at).saturating_add(since_ns);
            for time in &told.times {
                each(WorkerTime {
                    number: time.number,
                    began_ago_ns: ago(time.begin_ns),
                    ended_ago_ns: ago(time.end_ns),
                });
            }
            if told.times.len() < MAX_TOLD {
                return Ok(told.dropped);
            }
            ask = TimesAsk::Take;
        }
    }
}
