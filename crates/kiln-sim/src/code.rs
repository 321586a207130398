//! Code that the machine runs: modules, kernels that are host functions, and PTX.

pub(crate) mod code_engine;
pub(crate) mod code_loading;
pub(crate) mod cpu_libraries;
pub(crate) mod host_kernel_library;
pub(crate) mod kernel;
pub(crate) mod launch_readiness;
pub(crate) mod machine_code;
pub(crate) mod occupancy;
pub(crate) mod ptx;
pub(crate) mod tensor_map;
