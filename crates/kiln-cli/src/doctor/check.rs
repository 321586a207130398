//! One part of the machine that was examined.

use serde::Serialize;

/// One part of the machine, its state, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Check {
    /// The part.
    pub(crate) name: String,
    /// Its state.
    pub(crate) status: Status,
    /// What was found.
    pub(crate) detail: String,
    /// What a user can do, if something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_step: Option<String>,
    /// Where a missing library was searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) searched: Vec<String>,
}

/// The state of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It is there and works.
    Ok,
    /// It is missing, and the policy does not need it.
    Missing,
    /// It is missing, and the policy needs it.
    Needed,
    /// It is there and does not work.
    Fault,
    /// It was not examined, because of the policy.
    Skipped,
}

impl Check {
    /// A part that works.
    pub(crate) fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status: Status::Ok,
            detail: detail.into(),
            next_step: None,
            searched: Vec::new(),
        }
    }

    /// A part that is missing or does not work, and what to do.
    pub(crate) fn bad(
        status: Status,
        name: impl Into<String>,
        detail: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self { status, next_step: Some(next_step.into()), ..Self::ok(name, detail) }
    }

    /// A part that was not examined.
    pub(crate) fn skipped(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { status: Status::Skipped, ..Self::ok(name, why) }
    }
}
