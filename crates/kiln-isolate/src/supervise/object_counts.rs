//! How many of the client's objects a worker has.

use std::fmt;

/// Counts of objects in a worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct ObjectCounts {
    /// Allocations of physical memory.
    pub pages: usize,
    /// Reserved address ranges.
    pub ranges: usize,
    /// Mappings of pages in them.
    pub mappings: usize,
    /// Host blocks.
    pub hosts: usize,
    /// Modules.
    pub modules: usize,
    /// Kernels that were looked up in them.
    pub kernels: usize,
    /// Streams.
    pub streams: usize,
    /// Events.
    pub events: usize,
    /// Graphs.
    pub graphs: usize,
}

impl ObjectCounts {
    fn counts(&self) -> [(usize, &'static str); 9] {
        [
            (self.pages, "pages"),
            (self.ranges, "ranges"),
            (self.mappings, "mappings"),
            (self.hosts, "host blocks"),
            (self.modules, "modules"),
            (self.kernels, "kernels"),
            (self.streams, "streams"),
            (self.events, "events"),
            (self.graphs, "graphs"),
        ]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many more there are of each kind than in `other`.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        Self {
            pages: self.pages.saturating_sub(other.pages),
            ranges: self.ranges.saturating_sub(other.ranges),
            mappings: self.mappings.saturating_sub(other.mappings),
            hosts: self.hosts.saturating_sub(other.hosts),
            modules: self.modules.saturating_sub(other.modules),
            kernels: self.kernels.saturating_sub(other.kernels),
            streams: self.streams.saturating_sub(other.streams),
            events: self.events.saturating_sub(other.events),
            graphs: self.graphs.saturating_sub(other.graphs),
        }
    }
}

impl fmt::Display for ObjectCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let counts = self.counts().into_iter().filter(|(count, _)| *count > 0);
        let texts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        f.write_str(&texts.join(", "))
    }
}
