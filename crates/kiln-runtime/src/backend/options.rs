//! `BackendOptions`: the policy and the device that a backend asks for.

use kiln_probe::{Policy, Selection};

/// What a backend asks for; by default the best device under the policy in force.
///
/// ```
/// use kiln::Policy;
/// use kiln::backend::BackendOptions;
/// use kiln::probe::Selection;
///
/// let options = BackendOptions::new().policy(Policy::Simulate).device(Selection::Ordinal(0));
/// let parts = kiln::probe::probe_backend_on("solver", &options)?;
/// assert_eq!(parts.runtime().ordinal(), 0);
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackendOptions {
    /// The policy; none for the one in force. [`Policy::Auto`] and [`Policy::Required`] never lead to a simulated device.
    pub policy: Option<Policy>,
    /// The device.
    pub device: Selection,
}

impl BackendOptions {
    /// The best device under the policy in force.
    pub fn new() -> Self {
        Self::default()
    }

    /// The best CUDA device, whatever the policy in force; never a simulated one.
    pub fn cuda() -> Self {
        Self::new().policy(Policy::Required)
    }

    /// The same under that policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The same on that device.
    #[must_use]
    pub fn device(mut self, device: Selection) -> Self {
        self.device = device;
        self
    }
}
