//! Tells the client what went wrong after the call that caused it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kiln_driver::{Error, StreamId};

use super::mirror::StreamEntry;
use crate::area::{Area, NOTICES, Sleep};
use crate::ring::RingWriter;
use crate::wire::{Put, Writer, put_error};

/// Where failures go.
pub(super) struct Reporter {
    area: Area,
    notices: Mutex<RingWriter>,
    streams: Mutex<HashMap<StreamId, Weak<StreamEntry>>>,
}

impl Reporter {
    pub(super) fn new(area: Area) -> Self {
        let notices = Mutex::new(RingWriter::new(area.bytes(), NOTICES));
        Self { area, notices, streams: Mutex::default() }
    }

    /// Learns which of the client's streams one of the driver's is.
    pub(super) fn introduce(&self, stream: &Arc<StreamEntry>) {
        self.streams().insert(stream.id, Arc::downgrade(stream));
    }

    pub(super) fn forget(&self, stream: StreamId) {
        self.streams().remove(&stream);
    }

    /// Looks at an error; one that means that the device is lost is told to everybody who waits.
    pub(super) fn examine(&self, error: &Error) {
        if error.is_sticky() {
            self.area.report_fault(&self.encode(error));
        }
    }

    /// A submission that the driver did not take, or whose failure it told of later.
    pub(super) fn late(&self, stream: u64, number: u64, error: &Error) {
        let mut writer = Writer::new();
        writer.u64(stream);
        writer.u64(number);
        put_error(error, &mut writer);
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that reads none of its failures has enough of them.
        let _ = notices.push(writer.bytes());
        drop(notices);
        self.area.bell(Sleep::Progress).ring();
    }

    /// An error with its site, in the client's numbers.
    pub(super) fn encode(&self, error: &Error) -> Vec<u8> {
        let mut writer = Writer::new();
        put_error(error, &mut writer);
        let known = error.site().and_then(|site| {
            let stream = self.streams().get(&site.stream)?.upgrade()?;
            let number = stream.numbering().of(site.submission.0);
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
