//! Words of memory that a stream writes when it starts a submission, to tell started work from queued work.
//!
//! In front of each submission stands a fill of four bytes on the same stream. A stream begins nothing before what stands in front of it
//! is done, so a word that is not there is the proof that the submission had not started. The words lie on a separate page, which
//! outlives the worker and is read by the next one.

use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{
    Command, DevicePlace, Driver, DriverExt, HostBlock, PageRequest, PagesId, Pattern, Protection,
    Reservation, ReserveRequest, Result, StreamId, StreamRequest, Submission,
};
use kiln_order::MAX_STREAMS;

/// The word of the stream on which work is done again.
pub(crate) const REPLAYER: usize = MAX_STREAMS;
/// One for each stream of a runtime, and that one.
const MARKS: usize = MAX_STREAMS + 1;
/// Apart, so that no two share a cache line.
const STRIDE_BYTES: u64 = 128;
const ALL_BYTES: u64 = MARKS as u64 * STRIDE_BYTES;

/// The page.
pub(crate) struct StartMarks {
    range: Reservation,
    pages: PagesId,
    /// What the word of [`REPLAYER`] counted to.
    replayed: AtomicU64,
}

/// What the words said at one time.
pub(crate) struct MarkValues(Vec<u32>);

impl StartMarks {
    /// A page on a device, with every word 0.
    pub(crate) fn make(device: &dyn Driver) -> Result<Self> {
        let bytes = ALL_BYTES.next_multiple_of(device.info().limits.page_granularity_bytes.max(1));
        let pages = device.create_pages(PageRequest { bytes, exportable: true })?;
        let range = device.reserve(ReserveRequest { bytes, at: None })?;
        device.map(range.id, 0, &[pages], Protection::ReadWrite)?;
        let marks = Self { range, pages, replayed: AtomicU64::new(0) };
        marks.write(device, &[])?;
        Ok(marks)
    }

    /// Gives the page back; for the end of a runtime.
    pub(crate) fn end(&self, device: &dyn Driver) {
        // A lost device has released it.
        let _ = device.unmap(self.range.id, 0, self.range.bytes);
        let _ = device.destroy(self.range.id.into());
        let _ = device.destroy(self.pages.into());
    }

    /// Queues a mark.
    pub(super) fn set(
        &self,
        driver: &dyn Driver,
        stream: StreamId,
        word: usize,
        number: u64,
    ) -> Result<Submission> {
        // The low half tells numbers apart that are less than four thousand million submissions from each other.
        let pattern = Pattern::U32(number as u32);
        driver.submit(stream, &Command::Fill { to: self.place(word), pattern, count: 1 })
    }

    /// The next numbers for the word of [`REPLAYER`]: they follow the one that is returned.
    pub(super) fn next_replayed(&self, count: u64) -> u64 {
        self.replayed.fetch_add(count, Ordering::Relaxed)
    }

    /// Reads all words, and waits for that.
    pub(crate) fn read(&self, device: &dyn Driver) -> Result<MarkValues> {
        self.with_host(device, |stream, host| {
            device.download(stream, self.place(0), host, ALL_BYTES)?;
            device.synchronize(stream)?;
            let word = |at: usize| {
                let mut bytes = [0; 4];
                let _ = host.read(at * STRIDE_BYTES as usize, &mut bytes);
                u32::from_le_bytes(bytes)
            };
            Ok(MarkValues((0..MARKS).map(word).collect()))
        })
    }

    /// Writes the first words, and 0 into the others, and waits for that.
    pub(super) fn write(&self, device: &dyn Driver, numbers: &[u64]) -> Result<()> {
        let replayed = self.replayed.load(Ordering::Relaxed);
        self.with_host(device, |stream, host| {
            let all = numbers.iter().copied().chain(std::iter::repeat(0)).take(REPLAYER).chain([replayed]);
            for (at, number) in all.enumerate() {
                let _ = host.write(at * STRIDE_BYTES as usize, &(number as u32).to_le_bytes());
            }
            device.upload(stream, host, self.place(0), ALL_BYTES)?;
            device.synchronize(stream)
        })
    }

    fn with_host<T>(
        &self,
        device: &dyn Driver,
        copy: impl FnOnce(StreamId, &HostBlock) -> Result<T>,
    ) -> Result<T> {
        let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
        let host = device.allocate_host(ALL_BYTES);
        let copied = host.as_ref().map_err(Clone::clone).and_then(|host| copy(stream, host));
        // A lost device has released both.
        if let Ok(host) = host {
            let _ = device.destroy(host.id().into());
        }
        let _ = device.destroy(stream.into());
        copied
    }

    fn place(&self, word: usize) -> DevicePlace {
        DevicePlace::from(self.range.id).plus(word as u64 * STRIDE_BYTES)
    }
}

impl MarkValues {
    /// The number whose low half a word holds, if none beyond `latest` was written.
    pub(super) fn number(&self, word: usize, latest: u64) -> Option<u64> {
        let behind = (latest as u32).wrapping_sub(*self.0.get(word)?);
        latest.checked_sub(u64::from(behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_latest_number_it_can_be() {
        let values = MarkValues(vec![0, 7, u32::MAX]);
        assert_eq!(
            [values.number(0, 0), values.number(0, 7), values.number(1, 9)],
            [Some(0), Some(0), Some(7)]
        );
        assert_eq!(values.number(1, 6), None, "nothing that far was written");
        let past = (1 << 32) + 3;
        assert_eq!([values.number(2, past), values.number(0, past)], [Some((1 << 32) - 1), Some(1 << 32)]);
        assert_eq!(values.number(3, 9), None);
    }
}
