//! One thing that was looked at.

use serde::Serialize;

/// One thing that was looked at, how it stands, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Check {
    /// What was looked at.
    pub(crate) name: String,
    /// How it stands.
    pub(crate) status: Status,
    /// What was found.
    pub(crate) detail: String,
    /// What a person can do, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_step: Option<String>,
}

/// How a thing stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It is there and works.
    Ok,
    /// It is not there, and the policy does not need it.
    Missing,
    /// It is not there, and the policy needs it.
    Needed,
    /// It is there and does not work.
    Fault,
    /// It was not looked at, because the policy says so.
    Skipped,
}

impl Check {
    /// A thing that is there.
    pub(crate) fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Ok, detail: detail.into(), next_step: None }
    }

    /// A thing that is not well, and what to do.
    pub(crate) fn bad(
        status: Status,
        name: impl Into<String>,
        detail: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), status, detail: detail.into(), next_step: Some(next_step.into()) }
    }

    /// A thing nobody looked at.
    pub(crate) fn skipped(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Skipped, detail: why.into(), next_step: None }
    }
}
