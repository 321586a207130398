//! What one device did, as far as it was looked at.

use super::device_idle::{DeviceIdle, Surroundings};
use super::timeline::Work;
use crate::record::TimeSpan;

/// What one device did.
#[derive(Default)]
pub(super) struct DeviceWork {
    pub(super) submissions: u64,
    pub(super) untimed: u64,
    /// When the first was submitted, and the last one was.
    host: Option<TimeSpan>,
    /// None if nothing on it was measured.
    pub(super) idle: Option<DeviceIdle>,
}

impl DeviceWork {
    pub(super) fn add(&mut self, work: &Work) {
        self.submissions += 1;
        self.untimed += u64::from(work.device.is_none());
        let host = self.host.get_or_insert(work.host);
        host.begin_ns = host.begin_ns.min(work.host.begin_ns);
        host.end_ns = host.end_ns.max(work.host.end_ns);
    }

    /// How long it did something, as far as the host knows.
    pub(super) fn host_ns(&self) -> u64 {
        self.host.map_or(0, TimeSpan::ns)
    }

    /// Looks at work whose time is known.
    pub(super) fn settle<'w>(
        &mut self,
        works: impl Iterator<Item = &'w Work>,
        surroundings: &Surroundings<'_>,
    ) {
        let mut ran: Vec<(TimeSpan, &Work)> = works.filter_map(|work| Some((work.device?, work))).collect();
        ran.sort_by_key(|(span, _)| (span.begin_ns, span.end_ns));
        let Some((first, _)) = ran.first() else { return };
        let begin = self.host.map_or(first.begin_ns, |host| host.begin_ns.min(first.begin_ns));
        self.idle.get_or_insert_with(|| DeviceIdle::new(begin)).settle(&ran, surroundings);
    }
}
