//! What an operation found out about its matrix.

use kiln_operation::Operation;
use kiln_runtime::internal::runtime_of;
use kiln_runtime::{GpuRef, Ticket};

use crate::Result;
use crate::error::LibraryError;
use crate::solve_failure::SolveFailure;

/// What an operation found out about its matrix: a word in device memory, 0 if all went well.
#[derive(Clone, Debug)]
pub struct SolveInfo {
    pub(super) word: GpuRef<i32>,
    /// Of LU and of a solution with it: the word, its kind, the word of the library, and of a solution the row of a pivot and the two halves of the pivot.
    pub(super) found: Option<GpuRef<i32>>,
    pub(super) operation: Operation,
    /// The method that was called.
    pub(super) call: &'static str,
}

/// The kind of a zero on the diagonal of factors, as kernels tell it.
pub(super) const ZERO: i32 = 1;

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
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.ticket.wait().map_err(|error| self.info.told(error))?;
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
    /// The word itself, to be read by kernels that decide on the device. Its meaning is that of LAPACK; of [`lu`](super::Solve::lu) it is also minus the place, counted from 1,
    /// that [`SolveFailure::NotFinite`] tells. Of [`lu_solve`](super::Solve::lu_solve) it is the row, counted from 1, of the first pivot that is out of range, or
    /// minus the row of the first NaN or infinity on the diagonal of the factors, or, where there is none, of the first zero.
    pub fn word(&self) -> &GpuRef<i32> {
        &self.word
    }

    /// Reads the word, after the operation or the last replay of its graph.
    ///
    /// # Errors
    /// [`LibraryError::Solve`] says what the device found in the matrix; otherwise it could not be read.
    #[track_caller]
    pub fn check(&self) -> Result<()> {
        // Not in a closure, whose line would be told for that of the program.
        let words = self.found.as_ref().unwrap_or(&self.word).download().map_err(|error| self.told(error))?;
        let failure = match &self.found {
            None => self.told_by_library(words.first().copied().unwrap_or(0)),
            Some(_) => self.told_by_kernels(&words),
        };
        match failure {
            None => Ok(()),
            Some(failure) => Err(LibraryError::Solve { operation: self.call, failure }),
        }
    }

    /// Why the runtime did not do it, said of the call.
    #[cold]
    fn told(&self, error: kiln_runtime::Error) -> LibraryError {
        LibraryError::from(error).told_of_wait(self.call, runtime_of(&self.word).as_ref())
    }

    /// What the library's word says.
    fn told_by_library(&self, word: i32) -> Option<SolveFailure> {
        Some(match (word, &self.operation) {
            (0, _) => return None,
            (..0, _) => SolveFailure::Argument { place: u64::from(word.unsigned_abs()) },
            (_, Operation::Potrf(_)) => SolveFailure::NotPositiveDefinite { order: word as u64 },
            (_, Operation::Getrf(_)) => SolveFailure::Singular { pivot: word as u64 - 1 },
            _ => SolveFailure::NotConverged,
        })
    }

    /// What the words of kernels around the library say.
    fn told_by_kernels(&self, words: &[i32]) -> Option<SolveFailure> {
        let &[word, kind, library, ref pivot @ ..] = words else { return None };
        let place = u64::from(word.unsigned_abs());
        match (word, pivot, &self.operation) {
            _ if library < 0 => self.told_by_library(library),
            (0, ..) => None,
            (..0, ..) if kind == ZERO => Some(SolveFailure::Singular { pivot: place - 1 }),
            (..0, _, Operation::Getrf(it)) => {
                Some(SolveFailure::NotFinite { pivot: place.min(it.m.min(it.n)).saturating_sub(1) })
            }
            (..0, ..) => Some(SolveFailure::NotFinite { pivot: place - 1 }),
            (_, &[_, low, high], Operation::Getrs(it)) => {
                let pivot = bytemuck::cast([low, high]);
                Some(SolveFailure::PivotOutOfRange { row: place - 1, pivot, order: it.n })
            }
            _ => self.told_by_library(word),
        }
    }
}
