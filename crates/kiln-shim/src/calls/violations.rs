//! What the layer around a device that does not check by itself finds.

use kiln_driver::FindingRule;
use kiln_driver::layer::{Checking, Rule, Severity, Violation};

use crate::calls::process_state::ProcessState;
use crate::{records, run_settings};

/// Keeps what the layer found since the last call.
pub(crate) fn collect(state: &ProcessState, layer: &Checking) {
    for violation in layer.take_violations() {
        let text = told(state, &violation);
        if violation.severity() == Severity::Error || is_found(violation.rule) {
            records::find(rule(violation.rule), false, &text);
        } else if violation.rule == Rule::MayBeUnordered {
            records::note_once(&text, &text);
        }
        // Other warnings are about handles below, which the program does not have.
    }
}

/// Whether a warning counts in this run.
fn is_found(rule: Rule) -> bool {
    rule == Rule::MayBeUnordered && run_settings::is_strict()
}

fn rule(rule: Rule) -> FindingRule {
    match rule {
        Rule::UsedWhenTakenBack => FindingRule::FreeBeforeDone,
        Rule::PoolOrder => FindingRule::UseBeforeAllocation,
        Rule::Unmapped => FindingRule::OutOfBounds,
        Rule::ReadOnly => FindingRule::ReadOnly,
        Rule::Stale | Rule::NeverSignalled => FindingRule::Lifetime,
        _ => FindingRule::Race,
    }
}

/// The violation, with the address of its memory.
fn told(state: &ProcessState, violation: &Violation) -> String {
    let Violation { rule, object, why, .. } = violation;
    let memory = state.memory.first(|allocation| allocation.name_below() == *object);
    let object = memory.map_or_else(
        || object.clone(),
        |memory| format!("{object} ({} bytes at {:#x})", memory.bytes, memory.address),
    );
    format!("{object}: {why}; {}", rule.next())
}
