//! Two ways to count the submissions of one stream.
//!
//! The client counts what it sent; the driver counts what it took. They differ by where the client was when this worker
//! began, and by what the driver refused. Both directions are plain arithmetic.

/// How the driver's numbers of one stream become the client's.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    start: u64,
    /// What the driver took.
    taken: u64,
    /// For each refused submission, in order, how many the driver had taken before it.
    refused_after: Vec<u64>,
}

impl Numbering {
    pub(super) fn new(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// Notes a submission the driver took, by its number there.
    pub(super) fn take(&mut self, number: u64) {
        self.taken = number;
    }

    /// Notes a submission the driver did not take.
    pub(super) fn refuse(&mut self) {
        self.refused_after.push(self.taken);
    }

    /// The client's number of a submission, by the driver's.
    pub(super) fn of(&self, number: u64) -> u64 {
        let before = self.refused_after.partition_point(|taken| *taken < number);
        self.start.saturating_add(number).saturating_add(before as u64)
    }

    /// How far the client may count when the driver is that far. What was refused right after is over, too.
    pub(super) fn up_to(&self, number: u64) -> u64 {
        let before = self.refused_after.partition_point(|taken| *taken <= number);
        self.start.saturating_add(number).saturating_add(before as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_submissions_are_counted_where_they_were() {
        let mut numbering = Numbering::new(100);
        assert_eq!((numbering.of(3), numbering.up_to(3)), (103, 103));
        // Sent: 101 taken, 102 refused, 103 refused, 104 taken, 105 taken.
        numbering.take(1);
        numbering.refuse();
        numbering.refuse();
        numbering.take(3);
        assert_eq!([1, 2, 3].map(|number| numbering.of(number)), [101, 104, 105]);
        assert_eq!([0, 1, 2, 3].map(|number| numbering.up_to(number)), [100, 103, 104, 105]);
    }
}
