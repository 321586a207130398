//! The GPUs that a user gives to the ranks.

use std::str::FromStr;

use kiln::probe::{Availability, prober};
use kiln::{Policy, probe};

use crate::failure::Failure;
use crate::plural::counted;

/// Ordinals of GPUs, such as `0,2` or `4-7`, each once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeviceList(Vec<u32>);

/// No host has so many.
const MAX_ORDINAL: u32 = 1023;

/// The variable that tells the driver which devices to show, in which order.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

impl FromStr for DeviceList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let ordinal = |text: &str| {
                let number = text.trim().parse().ok().filter(|ordinal| *ordinal <= MAX_ORDINAL);
                number.ok_or_else(|| {
                    format!(
                        "`{range}` is no device and no range of devices; give ordinals such as 0,2 or 4-7, at most {MAX_ORDINAL}"
                    )
                })
            };
            let (first, last): (u32, u32) = (ordinal(first)?, ordinal(last)?);
            if last < first {
                return Err(format!("`{range}` ends before it begins; write {last}-{first}"));
            }
            for ordinal in first..=last {
                if list.contains(&ordinal) {
                    return Err(format!("device {ordinal} is given twice; two ranks cannot share a GPU"));
                }
                list.push(ordinal);
            }
        }
        Ok(Self(list))
    }
}

impl DeviceList {
    /// What `CUDA_VISIBLE_DEVICES` is for so many ranks.
    ///
    /// # Errors
    /// Another number of devices than ranks; a device that is not there; a policy that uses no GPU.
    pub(super) fn visible(&self, ranks: u32) -> Result<String, Failure> {
        if self.0.len() as u64 != u64::from(ranks) {
            let (devices, ranks) =
                (counted(self.0.len() as u64, "device"), counted(u64::from(ranks), "rank"));
            let message = format!("--devices has {devices} for {ranks}");
            return Err(Failure::usage(message).next("give one device for each rank"));
        }
        let policy = probe::policy()?;
        if !policy.may_touch_cuda() {
            let message = format!("--devices names GPUs, and the policy `{policy}` does not use them");
            return Err(Failure::refused(message).next("set KILN_POLICY to auto, or leave out --devices"));
        }
        let available = prober().availability_under(Policy::Required)?;
        let devices = match &available {
            Availability::Available(devices) => devices,
            Availability::Absent(absence) => return Err(kiln::Error::from(absence.clone()).into()),
        };
        for ordinal in &self.0 {
            devices.device(*ordinal).map_err(kiln::Error::from)?;
        }
        Ok(self.seen_through(std::env::var(VISIBLE).ok().as_deref()))
    }

    /// The list in terms of what is visible here already: device 1 is the second one of that.
    fn seen_through(&self, visible: Option<&str>) -> String {
        let names: Vec<&str> =
            visible.map(|text| text.split(',').map(str::trim).collect()).unwrap_or_default();
        let name = |ordinal: &u32| {
            let known = names.get(*ordinal as usize).copied().filter(|name| !name.is_empty());
            known.map_or_else(|| ordinal.to_string(), str::to_owned)
        };
        self.0.iter().map(name).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!("0,2".parse(), Ok(DeviceList(vec![0, 2])));
        assert_eq!("4-6, 1".parse(), Ok(DeviceList(vec![4, 5, 6, 1])));
        for wrong in ["", "a", "0,", "3-1", "0,0-1", "-1", "0-99999999", "1-2-3"] {
            assert!(wrong.parse::<DeviceList>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn devices_that_are_hidden_stay_hidden() {
        let list = DeviceList(vec![1, 0]);
        assert_eq!(list.seen_through(None), "1,0");
        assert_eq!(list.seen_through(Some("4,GPU-7a")), "GPU-7a,4");
    }
}
