//! What a row did in a part of the time.

/// What a row did in a part of the time. Two neighbours can be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bucket {
    /// How long work ran.
    pub(crate) busy_ns: u64,
    /// How long work waited for that of other streams.
    pub(crate) wait_ns: u64,
    /// The longest work that touches it.
    pub(crate) longest_ns: u64,
    /// Its name.
    pub(crate) longest_name: u32,
    /// How much work began here.
    pub(crate) starts: u32,
}

impl Bucket {
    /// Adds another one. Of two equally long works the one with the smaller name counts, so that the order does not matter.
    pub(crate) fn add(&mut self, other: &Self) {
        let was_empty = self.is_empty();
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.starts = self.starts.saturating_add(other.starts);
        if !other.is_empty() {
            self.longest(other.longest_ns, other.longest_name, was_empty);
        }
    }

    /// Takes work into account that touches it, and that is `ns` long.
    pub(crate) fn touch(&mut self, ns: u64, name: u32, inside_ns: u64, begins: bool) {
        let is_first = self.is_empty();
        self.busy_ns = self.busy_ns.saturating_add(inside_ns);
        self.starts = self.starts.saturating_add(u32::from(begins));
        self.longest(ns, name, is_first);
    }

    /// Whether no work touches it.
    pub(crate) fn is_empty(&self) -> bool {
        self.busy_ns == 0 && self.starts == 0
    }

    fn longest(&mut self, ns: u64, name: u32, is_first: bool) {
        if is_first || (ns, std::cmp::Reverse(name)) > (self.longest_ns, std::cmp::Reverse(self.longest_name))
        {
            (self.longest_ns, self.longest_name) = (ns, name);
        }
    }
}
