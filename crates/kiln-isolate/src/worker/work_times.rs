//! When work that the client numbered ran, from NVIDIA's profiling interface in this process.
//!
//! The client asks once for it, and is told why where that is not possible. A later worker begins to watch with the first work that has a number,
//! because the client goes on with numbers after a takeover.

use std::collections::HashMap;

#[cfg(feature = "cuda")]
use crate::protocol::wire::{MAX_TOLD, ToldTime};
use crate::protocol::wire::{TimesAsk, ToldTimes};
#[cfg(feature = "cuda")]
use kiln_cuda::cupti::CuptiSession;
use kiln_driver::{DeviceKind, Error, Result};

const CALL: &str = "times";

/// The times of numbered work.
#[derive(Default)]
pub(super) struct WorkTimes {
    /// The numbers of work that is being queued, by stream.
    numbers: HashMap<u64, u64>,
    #[cfg(feature = "cuda")]
    session: Option<CuptiSession>,
    /// Whether it was tried without being asked.
    is_tried: bool,
    #[cfg(feature = "cuda")]
    left: Vec<ToldTime>,
}

impl WorkTimes {
    /// What is queued on a stream has a number from here on, or none.
    pub(super) fn number(&mut self, stream: u64, number: Option<u64>, kind: DeviceKind) {
        match number {
            None => drop(self.numbers.remove(&stream)),
            Some(number) => {
                self.numbers.insert(stream, number);
                if !self.is_tried {
                    // The client of an earlier worker was told why not, if not.
                    let _ = self.start(kind);
                }
            }
        }
    }

    /// Answers a question.
    pub(super) fn answer(&mut self, ask: TimesAsk, kind: DeviceKind) -> Result<Option<ToldTimes>> {
        match ask {
            TimesAsk::Start => self.start(kind).map(|()| None),
            TimesAsk::Stop => {
                self.stop();
                Ok(None)
            }
            TimesAsk::Take | TimesAsk::Flush | TimesAsk::FlushAll => Ok(Some(self.take(ask))),
        }
    }
}

#[cfg(feature = "cuda")]
impl WorkTimes {
    fn start(&mut self, kind: DeviceKind) -> Result<()> {
        self.is_tried = true;
        if kind != DeviceKind::Cuda {
            return Err(Error::unsupported(CALL, "CUPTI", "the device is not a CUDA device"));
        }
        if self.session.is_none() {
            let session = CuptiSession::start()
                .map_err(|absence| Error::unsupported(CALL, "CUPTI", absence.to_string()));
            self.session = Some(session?);
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.session = None;
        self.numbers.clear();
        self.left.clear();
        // A later recording asks again.
        self.is_tried = false;
    }

    /// Queues work, under its number if it has one.
    pub(super) fn around<R>(&self, stream: u64, queue: impl FnOnce() -> R) -> R {
        let Some((session, number)) = self.session.as_ref().zip(self.numbers.get(&stream)) else {
            return queue();
        };
        session.begin(*number);
        let queued = queue();
        session.end();
        queued
    }

    fn take(&mut self, ask: TimesAsk) -> ToldTimes {
        let Some(session) = &self.session else { return ToldTimes::default() };
        match ask {
            TimesAsk::Flush => session.flush(false),
            TimesAsk::FlushAll => session.flush(true),
            _ => {}
        }
        session.take(|time| {
            self.left.push(ToldTime { number: time.number, begin_ns: time.begin_ns, end_ns: time.end_ns });
        });
        let rest = self.left.split_off(self.left.len().min(MAX_TOLD));
        let times = std::mem::replace(&mut self.left, rest);
        let unix = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        let unix_ns = unix.ok().and_then(|unix| u64::try_from(unix.as_nanos()).ok()).unwrap_or_default();
        ToldTimes { unix_ns, now_ns: session.now_ns(), dropped: session.dropped(), times }
    }
}

#[cfg(not(feature = "cuda"))]
impl WorkTimes {
    fn start(&mut self, _: DeviceKind) -> Result<()> {
        self.is_tried = true;
        Err(Error::unsupported(CALL, "CUPTI", "the worker was built without CUDA"))
    }

    fn stop(&mut self) {
        self.numbers.clear();
    }

    pub(super) fn around<R>(&self, _: u64, queue: impl FnOnce() -> R) -> R {
        queue()
    }

    fn take(&mut self, _: TimesAsk) -> ToldTimes {
        ToldTimes::default()
    }
}
