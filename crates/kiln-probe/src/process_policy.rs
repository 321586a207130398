//! The policy of a process.
//!
//! Requests may bring a policy along. Those that bring none follow the process's default, which is settled once: by the
//! environment, else by the first who sets it, else by the first request that needs it. A later setting that says something
//! else is an error, because half of the program has already run under the other one.

use std::sync::OnceLock;

use crate::error::{ProbeError, Result};
use crate::gpu_policy::Policy;

/// The environment variable that overrides the process's default.
pub const POLICY_VARIABLE: &str = "KILN_POLICY";

/// The policy of requests that bring none.
pub struct DefaultPolicy {
    /// The text of the environment variable, where it is set.
    environment: Option<String>,
    settled: OnceLock<Policy>,
}

impl DefaultPolicy {
    /// A default that is not settled, with the text of the environment variable.
    pub fn new(environment: Option<String>) -> Self {
        Self { environment, settled: OnceLock::new() }
    }

    /// The policy in force; asking settles it.
    pub fn in_force(&self) -> Result<Policy> {
        let overriding = self.overriding()?;
        Ok(*self.settled.get_or_init(|| overriding.unwrap_or_default()))
    }

    /// Settles the policy and returns the one in force, which is another one only if the environment says so.
    pub fn set(&self, wanted: Policy) -> Result<Policy> {
        let overriding = self.overriding()?;
        let in_force = *self.settled.get_or_init(|| overriding.unwrap_or(wanted));
        match overriding {
            Some(_) if in_force != wanted => {
                tracing::info!("{POLICY_VARIABLE}={in_force} overrides the policy `{wanted}`");
                Ok(in_force)
            }
            None if in_force != wanted => Err(ProbeError::PolicyConflict { in_force, wanted }),
            _ => Ok(in_force),
        }
    }

    fn overriding(&self) -> Result<Option<Policy>> {
        let Some(text) = self.environment.as_deref().filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        let policy = text.parse().map_err(|_| ProbeError::Environment {
            variable: POLICY_VARIABLE,
            text: text.into(),
            wanted: "off, auto, required or simulate",
        })?;
        Ok(Some(policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_setting_holds_and_a_second_one_is_reported() {
        let default = DefaultPolicy::new(None);
        assert_eq!(default.set(Policy::Required).unwrap(), Policy::Required);
        assert_eq!(default.set(Policy::Required).unwrap(), Policy::Required);
        let error = default.set(Policy::Off).unwrap_err();
        assert!(matches!(
            error,
            ProbeError::PolicyConflict { in_force: Policy::Required, wanted: Policy::Off }
        ));
        assert_eq!(default.in_force().unwrap(), Policy::Required);
    }

    #[test]
    fn a_setting_after_the_first_use_is_a_conflict() {
        let default = DefaultPolicy::new(None);
        assert_eq!(default.in_force().unwrap(), Policy::Auto);
        assert!(default.set(Policy::Auto).is_ok());
        assert!(default.set(Policy::Simulate).is_err());
    }

    #[test]
    fn the_environment_overrides_and_says_what_is_in_force() {
        let default = DefaultPolicy::new(Some(" Simulate ".into()));
        assert_eq!(default.set(Policy::Required).unwrap(), Policy::Simulate);
        assert_eq!(default.set(Policy::Off).unwrap(), Policy::Simulate);
        assert_eq!(default.in_force().unwrap(), Policy::Simulate);
        let empty = DefaultPolicy::new(Some(String::new()));
        assert_eq!(empty.set(Policy::Off).unwrap(), Policy::Off);
    }

    #[test]
    fn nonsense_in_the_environment_is_an_error_that_names_the_variable() {
        let default = DefaultPolicy::new(Some("on".into()));
        for error in [default.in_force().unwrap_err(), default.set(Policy::Auto).unwrap_err()] {
            assert!(error.to_string().contains("KILN_POLICY"), "{error}");
            assert!(error.to_string().contains("off, auto, required or simulate"), "{error}");
        }
    }

    #[test]
    fn concurrent_settings_agree_on_one() {
        let default = &DefaultPolicy::new(None);
        let accepted: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                Policy::ALL.map(|policy| scope.spawn(move || default.set(policy).ok())).into();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(accepted, [default.in_force().unwrap()]);
    }
}
