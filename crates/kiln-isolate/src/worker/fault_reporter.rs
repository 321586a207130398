//! Reports failures to the client that no answer carries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kiln_driver::{Error, StreamId};

use super::object_table::StreamEntry;
use crate::protocol::ring::RingWriter;
use crate::protocol::segment::{Condition, NOTICES, Segment};
use crate::protocol::wire::{Put, Writer, put_error};

/// Reports failures to the client.
pub(super) struct FaultReporter {
    segment: Segment,
    notices: Mutex<RingWriter>,
    streams: Mutex<HashMap<StreamId, Weak<StreamEntry>>>,
}

impl FaultReporter {
    pub(super) fn new(segment: Segment) -> Self {
        let notices = Mutex::new(RingWriter::new(segment.bytes(), NOTICES));
        Self { segment, notices, streams: Mutex::default() }
    }

    /// Adds a stream, so that errors can name it.
    pub(super) fn add(&self, stream: &Arc<StreamEntry>) {
        self.streams().insert(stream.id, Arc::downgrade(stream));
    }

    pub(super) fn remove(&self, stream: StreamId) {
        self.streams().remove(&stream);
    }

    /// Publishes an error that means that the device is lost, and wakes the client's threads.
    pub(super) fn report_if_lost(&self, error: &Error) {
        if error.is_sticky() {
            self.segment.report_fault(&self.encode(error));
        }
    }

    /// Reports a submission that the driver refused, or that failed later.
    pub(super) fn late(&self, stream: u64, number: u64, error: &Error) {
        let mut writer = Writer::new();
        writer.u64(stream);
        writer.u64(number);
        put_error(error, &mut writer);
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        // If the ring is full, the client has not read earlier failures, and this one is dropped.
        let _ = notices.push(writer.bytes());
        drop(notices);
        self.segment.event_count(Condition::Progress).notify();
    }

    /// An error with its site, in the client's ids and numbers.
    pub(super) fn encode(&self, error: &Error) -> Vec<u8> {
        let mut writer = Writer::new();
        put_error(error, &mut writer);
        let known = error.site().and_then(|site| {
            let stream = self.streams().get(&site.stream)?.upgrade()?;
            let number = stream.numbers().of(site.submission.0);
            Some((stream.wire, number, site.command.as_str()))
        });
        known.is_some().put(&mut writer);
        if let Some((stream, number, command)) = known {
            writer.u64(stream);
            writer.u64(number);
            writer.text(command, 1024);
        }
        writer.into_bytes()
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<StreamId, Weak<StreamEntry>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
