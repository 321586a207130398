//! Which device a worker opens.

/// A device, described so that another process can open it.
///
/// ```
/// use kiln_isolate::DeviceSpec;
///
/// assert_eq!(DeviceSpec::cuda(0).name(), "cuda");
/// assert_eq!(DeviceSpec::simulated(42).name(), "sim");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSpec {
    name: String,
    argument: Vec<u8>,
}

impl DeviceSpec {
    /// A CUDA device by its ordinal.
    pub fn cuda(ordinal: u32) -> Self {
        Self::custom("cuda", ordinal.to_le_bytes())
    }

    /// A simulated device that runs PTX, driven by a seed.
    pub fn simulated(seed: u64) -> Self {
        Self::custom("sim", seed.to_le_bytes())
    }

    /// The same, which stops a launch when one of its warps has executed so many instructions, or all of them together have since a thread last exited.
    ///
    /// ```
    /// use kiln_isolate::DeviceSpec;
    ///
    /// assert_eq!(DeviceSpec::simulated_with_step_limit(42, 1 << 20).name(), "sim");
    /// ```
    pub fn simulated_with_step_limit(seed: u64, steps: u64) -> Self {
        Self::custom("sim", [seed.to_le_bytes(), steps.to_le_bytes()].concat())
    }

    /// A device of a kind that the program registers with [`Worker::backend`](crate::Worker::backend), and the argument its function
    /// gets.
    pub fn custom(name: impl Into<String>, argument: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), argument: argument.into() }
    }

    /// The kind of device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which device of that kind.
    pub fn argument(&self) -> &[u8] {
        &self.argument
    }
}
