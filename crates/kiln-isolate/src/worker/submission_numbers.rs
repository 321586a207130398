//! Converts the driver's submission numbers of a stream to the client's.
//!
//! The client counts what it sent; the driver counts what it accepted. They differ by the client's number when this worker began, and by what
//! the driver refused.

/// Converts the driver's submission numbers of one stream to the client's.
#[derive(Debug, Default)]
pub(super) struct SubmissionNumbers {
    start: u64,
    /// The driver's number of the last submission it accepted.
    taken: u64,
    /// For each refused submission, in order, how many the driver had accepted before it.
    refused_after: Vec<u64>,
}

impl SubmissionNumbers {
    pub(super) fn new(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// Records a submission that the driver accepted, by the driver's number.
    pub(super) fn take(&mut self, number: u64) {
        self.taken = number;
    }

    /// Records a submission that the driver refused.
    pub(super) fn refuse(&mut self) {
        self.refused_after.push(self.taken);
    }

    /// The client's number of a submission.
    pub(super) fn of(&self, number: u64) -> u64 {
        let before = self.refused_after.partition_point(|taken| *taken < number);
        self.start.saturating_add(number).saturating_add(before as u64)
    }

    /// The client's number up to which the stream is done when the driver has completed `number`. Submissions that were refused right
    /// after it are included.
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
        let mut numbers = SubmissionNumbers::new(100);
        assert_eq!((numbers.of(3), numbers.up_to(3)), (103, 103));
        // Sent: 101 taken, 102 refused, 103 refused, 104 taken, 105 taken.
        numbers.take(1);
        numbers.refuse();
        numbers.refuse();
        numbers.take(3);
        assert_eq!([1, 2, 3].map(|number| numbers.of(number)), [101, 104, 105]);
        assert_eq!([0, 1, 2, 3].map(|number| numbers.up_to(number)), [100, 103, 104, 105]);
    }
}
