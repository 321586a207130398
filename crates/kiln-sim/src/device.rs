//! A device of the machine as a `Driver`: its limits, its handles, and what it has given out.

pub(crate) mod device_config;
pub(crate) mod handle_table;
pub(crate) mod native_handle;
pub(crate) mod object_lifecycle;
pub(crate) mod objects;
pub(crate) mod sim_device;
