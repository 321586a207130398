//! What an operation found out about its matrix.

use kiln_operation::Operation;
use kiln_runtime::{GpuRef, Ticket};

use crate::Result;
use crate::error::LibraryError;
use crate::solve_failure::SolveFailure;

/// What an operation found out about its matrix: a word in device memory, 0 if all went well.
#[derive(Clone, Debug)]
pub struct SolveInfo {
    pub(super) word: GpuRef<i32>,
    /// Of a solution with pivots: the word, that of the library, and the two halves of a pivot.
    pub(super) pivot_words: Option<GpuRef<i32>>,
    pub(super) operation: Operation,
    /// The method that was called.
    pub(super) call: &'static str,
}

/// A solver operation that was queued.
#[derive(Clone, Debug)]
#[must_use = "whether the matrix could be factored is known after `wait`"]
pub struct SolveTicket {
    pub(super) ticket: Ticket,
    pub(super) info: SolveInfo,
}

impl SolveTicket {
    /// Waits until the operation is done.
    ///
    /// # Errors
    /// [`LibraryError::Solve`] says what the device found in the matrix; otherwise the operation failed.
    pub fn wait(&self) -> Result<()> {
        self.ticket.wait()?;
        self.info.check()
    }

    /// The ticket of the launch, which knows nothing of the matrix.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// What the operation finds out.
    pub fn info(&self) -> &SolveInfo {
        &self.info
    }
}

impl SolveInfo {
    /// The word itself, to be read by kernels that decide on the device. Its meaning is that of LAPACK; of [`lu_solve`](super::Solve::lu_solve) it is the row,
    /// counted from 1, of the first pivot that is out of range.
    pub fn word(&self) -> &GpuRef<i32> {
        &self.word
    }

    /// Reads the word, after the operation or the last replay of its graph.
    ///
    /// # Errors
    /// [`LibraryError::Solve`] says what the device found in the matrix; otherwise it could not be read.
    pub fn check(&self) -> Result<()> {
        let word = match &self.pivot_words {
            None => self.word.download()?.first().copied().unwrap_or(0),
            Some(words) => self.check_pivots(words)?,
        };
        let failure = match (word, &self.operation) {
            (0, _) => return Ok(()),
            (..0, _) => SolveFailure::Argument { place: u64::from(word.unsigned_abs()) },
            (_, Operation::Potrf(_)) => SolveFailure::NotPositiveDefinite { order: word as u64 },
            (_, Operation::Getrf(_)) => SolveFailure::Singular { pivot: word as u64 - 1 },
            _ => SolveFailure::NotConverged,
        };
        Err(LibraryError::Solve { operation: self.call, failure })
    }

    /// Whether all pivots were rows. Returns the library's word.
    fn check_pivots(&self, words: &GpuRef<i32>) -> Result<i32> {
        let words = words.download()?;
        let &[row, word, low, high] = &words[..] else { return Ok(0) };
        let (Ok(place), Operation::Getrs(operation)) = (u64::try_from(row), &self.operation) else {
            return Ok(word);
        };
        if place == 0 {
            return Ok(word);
        }
        let pivot = bytemuck::cast([low, high]);
        let failure = SolveFailure::PivotOutOfRange { row: place - 1, pivot, order: operation.n };
        Err(LibraryError::Solve { operation: self.call, failure })
    }
}
