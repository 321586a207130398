//! What is checked of every access: bounds, order, lifetimes and contents; and the findings.

pub(crate) mod access_origin;
pub(crate) mod acquired_order;
pub(crate) mod byte_shadow;
pub(crate) mod checker;
pub(crate) mod declared_memory;
pub(crate) mod finding;
pub(crate) mod kernel_findings;
pub(crate) mod touched_bytes;
pub(crate) mod undefined_bytes;
pub(crate) mod undefined_memory;
pub(crate) mod undefined_value;
pub(crate) mod vector_clock;
