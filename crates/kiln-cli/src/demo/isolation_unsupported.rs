//! The demo of worker processes on systems that have none.

use std::convert::Infallible;

use serde::{Serialize, Serializer};

use crate::device_choice::Where;
use crate::exit_code::Exit;

/// A report; there is none.
pub(super) struct Report(Infallible);

/// Refuses.
///
/// # Errors
/// Worker processes need Linux.
pub(super) fn run(_: Where, _: u64) -> kiln::Result<Report> {
    let refused = kiln_driver::Error::unsupported("demo --isolate", "worker processes", "use Linux");
    Err(refused.into())
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self.0 {}
    }
}

impl Report {
    pub(super) fn exit(&self) -> Exit {
        match self.0 {}
    }

    pub(super) fn text(&self, _: usize) -> String {
        match self.0 {}
    }
}
