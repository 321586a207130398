//! What NVML says about the GPUs.

use kiln::telemetry::{GpuFigures, Nvml};
use serde::Serialize;

/// NVML, or why it is not there.
pub(super) struct Gpus(Result<Nvml, String>);

/// One GPU.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Gpu {
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) used_bytes: Option<u64>,
    pub(super) total_bytes: Option<u64>,
    pub(super) busy_percent: Option<u32>,
    pub(super) temperature: Option<u32>,
    pub(super) power_milliwatts: Option<u32>,
}

impl Gpus {
    pub(super) fn load() -> Self {
        Self(Nvml::load().map_err(|absence| absence.to_string()))
    }

    /// The figures of now, or why there are none.
    pub(super) fn figures(&self) -> (Vec<Gpu>, Option<String>) {
        match &self.0 {
            Ok(nvml) => (nvml.gpus().into_iter().map(Gpu::from).collect(), None),
            Err(absence) => (Vec::new(), Some(absence.clone())),
        }
    }
}

impl From<GpuFigures> for Gpu {
    fn from(figures: GpuFigures) -> Self {
        let GpuFigures { name, uuid, used_bytes, total_bytes, busy_percent, temperature, power_milliwatts } =
            figures;
        Self { name, uuid, used_bytes, total_bytes, busy_percent, temperature, power_milliwatts }
    }
}
