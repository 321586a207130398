//! What a simulated device checks, what it found, and what a finding fails.
//!
//! The book's page "What is checked" (`docs/checking.md`) has the table of what is checked on which device.

pub use kiln_driver::{DeviceFinding, FindingLine, FindingRule};
pub use kiln_runtime::{FINDINGS_VARIABLE, FindingList, Findings, UnknownFindings};
