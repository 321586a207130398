//! The out-of-memory error, with what was tried to reclaim memory.

use std::fmt;

use crate::last_use::Stamp;
use crate::reclaim::ReclaimAttempt;
use crate::resource_totals::Accounting;
use crate::tag::AllocTag;

/// Why memory could not be had, after everything that could be done was done.
///
/// Each layer the error passes fills in what it knows: the heap the pieces, the budget the limit, the statistics the
/// tags.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Exhausted {
    /// The layer that said no.
    pub layer: String,
    /// Bytes that were asked for.
    pub requested_bytes: u64,
    /// Bytes that would have been taken.
    pub rounded_bytes: u64,
    /// The limit that was reached, where it was a limit and not the device.
    pub limit_bytes: Option<u64>,
    /// The least bytes that the layer can take from the device at once, in whole pages, where the limit refused them.
    pub page_bytes: Option<u64>,
    /// The budget that has the limit, where that is not the layer itself.
    pub limited_by: Option<String>,
    /// Bytes in use under that limit, or in blocks.
    pub in_use_bytes: u64,
    /// Bytes taken from the device.
    pub reserved_bytes: u64,
    /// Bytes of it that are free.
    pub free_bytes: u64,
    /// The largest piece of them.
    pub largest_free_bytes: u64,
    /// Bytes that were given back while work could still use them.
    pub pending_bytes: u64,
    /// The submission that releases the first of them.
    pub pending_until: Option<Stamp>,
    /// The tags that hold most, with their bytes.
    pub top_tags: Vec<(AllocTag, u64)>,
    /// What was tried, in order.
    pub attempts: Vec<ReclaimAttempt>,
    /// What the driver said, where it was asked.
    pub driver: Option<String>,
}

impl Exhausted {
    /// A layer cannot give so many bytes.
    pub fn new(layer: impl Into<String>, requested_bytes: u64) -> Self {
        Self { layer: layer.into(), requested_bytes, rounded_bytes: requested_bytes, ..Self::default() }
    }

    /// The same, with what the layer and everything below it hold.
    pub(crate) fn over(layer: impl Into<String>, requested_bytes: u64, counted: &Accounting) -> Self {
        Self {
            in_use_bytes: counted.live_bytes,
            reserved_bytes: counted.reserved_bytes,
            free_bytes: counted.free_bytes(),
            largest_free_bytes: counted.largest_free_bytes,
            pending_bytes: counted.pending_bytes,
            ..Self::new(layer, requested_bytes)
        }
    }

    /// How much of the free memory is outside of the largest piece, in percent.
    pub fn fragmentation_percent(&self) -> u64 {
        let outside = self.free_bytes.saturating_sub(self.largest_free_bytes);
        (u128::from(outside) * 100).checked_div(u128::from(self.free_bytes)).unwrap_or(0) as u64
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: out of memory: {} bytes were asked for", self.layer, self.requested_bytes)?;
        if self.rounded_bytes != self.requested_bytes {
            write!(f, " ({} with rounding)", self.rounded_bytes)?;
        }
        if let Some(limit) = self.limit_bytes {
            write!(f, "; {} of a limit of {limit}", self.in_use_bytes)?;
            self.limited_by.as_ref().map_or(Ok(()), |name| write!(f, " (budget {name})"))?;
            write!(f, " are in use")?;
            if let Some(pages) = self.page_bytes {
                // What is in use counts as well.
                let needed = self.in_use_bytes.saturating_add(pages);
                let advice =
                    if pages > limit { ", so that this limit is too low: " } else { ": free some, or " };
                write!(
                    f,
                    "; the device gives memory in pages, here {pages} bytes{advice}raise it to at least {needed}"
                )?;
            }
        } else {
            write!(f, "; {} are in use", self.in_use_bytes)?;
        }
        if self.reserved_bytes > 0 {
            write!(f, "; of {} taken from the device {} are free", self.reserved_bytes, self.free_bytes)?;
            write!(f, ", the largest piece {}", self.largest_free_bytes)?;
            write!(f, " ({} % fragmented)", self.fragmentation_percent())?;
        }
        if self.pending_bytes > 0 {
            write!(f, "; {} more are pending", self.pending_bytes)?;
        }
        if let Some(stamp) = self.pending_until {
            write!(f, " until {stamp} is done")?;
        }
        for (at, (tag, bytes)) in self.top_tags.iter().enumerate() {
            write!(f, "{}{tag} {bytes}", if at == 0 { "; most is held by " } else { ", " })?;
        }
        for (at, step) in self.attempts.iter().enumerate() {
            write!(f, "{}{step}", if at == 0 { "; tried " } else { ", " })?;
        }
        if let Some(driver) = &self.driver {
            write!(f, "; the driver said: {driver}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_use::StreamKey;
    use crate::reclaim::{ReclaimStep, Reclaimed};

    #[test]
    fn the_text_says_everything_that_is_known() {
        let error = Exhausted {
            rounded_bytes: 4096,
            in_use_bytes: 900,
            reserved_bytes: 2000,
            free_bytes: 1000,
            largest_free_bytes: 250,
            pending_bytes: 100,
            pending_until: Some(Stamp { stream: StreamKey::new(3).unwrap(), number: 17 }),
            top_tags: vec![(AllocTag::new("weights").unwrap(), 700), (AllocTag::default(), 200)],
            attempts: vec![ReclaimAttempt {
                step: ReclaimStep::ThreadCaches,
                reclaimed: Reclaimed::freed(64),
            }],
            driver: Some("no".into()),
            ..Exhausted::new("heap", 4000)
        };
        assert_eq!(
            error.to_string(),
            "heap: out of memory: 4000 bytes were asked for (4096 with rounding); 900 are in use; of 2000 taken \
             from the device 1000 are free, the largest piece 250 (75 % fragmented); 100 more are pending until \
             submission 17 on stream 3 is done; most is held by weights 700, untagged 200; tried thread caches: 64 \
             bytes; the driver said: no"
        );
        let limited = Exhausted { limit_bytes: Some(10), in_use_bytes: 9, ..Exhausted::new("budget", 2) };
        assert_eq!(
            limited.to_string(),
            "budget: out of memory: 2 bytes were asked for; 9 of a limit of 10 are in use"
        );
    }
}
