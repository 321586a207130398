//! An unknown value for the setting of findings.

/// The variable that overrides [`RuntimeConfig::findings`](crate::RuntimeConfig::findings): `fail`, `report` or `ignore`.
pub const FINDINGS_VARIABLE: &str = "KILN_FINDINGS";

/// A value of the variable that is none of the words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{FINDINGS_VARIABLE}` is `{value}`; set it to `fail`, `report` or `ignore`, or not at all")]
pub struct UnknownFindings {
    /// What it is.
    pub value: String,
}
