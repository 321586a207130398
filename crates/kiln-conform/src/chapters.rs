//! The laws, one file for each group of driver calls.

pub(crate) mod code;
pub(crate) mod collectives;
pub(crate) mod device;
pub(crate) mod graphs;
pub(crate) mod handles;
pub(crate) mod host_memory;
pub(crate) mod libraries;
pub(crate) mod loss;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod pages;
pub(crate) mod peers;
pub(crate) mod streams;
pub(crate) mod threads;
pub(crate) mod work;
