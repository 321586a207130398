//! Fault plans as text, for commands and variables.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kiln_driver::Code;

use crate::fault_plan::{FaultPlan, PlannedFault};

/// The forms that a fault has.
const FORMS: &str = "oom@N, fault@N=CODE, hang@N, lost@N=CODE, lost@5ms=CODE, slow-copies@FACTOR, load@N=CODE, cut-DEVICE@N or slow-DEVICE@FACTOR, \
                     each with the ordinal of a device and a colon before it if that is not 0; =CODE may be left out";
/// What the loader's log says of an image that is not accepted.
const LOG: &str = "the fault plan lets this image fail";
/// Numbers of result codes that have names are below.
const CODES: i32 = 1000;
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// A text that is no fault plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultPlanError {
    /// The fault that is wrong.
    pub fault: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for FaultPlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, why } = self;
        write!(f, "`{fault}` is no fault: {why}; write faults as {FORMS}, with commas or blanks between them")
    }
}

impl std::error::Error for FaultPlanError {}

/// Faults with commas or blanks between them, each `NAME@WHEN`, with `DEVICE:` before it and `=CODE` behind it where that is needed. Counts begin at 1; a code is a number or
/// its name in `cuda.h`.
///
/// ```
/// use kiln_driver::Code;
/// use kiln_sim::{FaultPlan, PlannedFault};
///
/// let plan: FaultPlan = "oom@3,1:fault@10=CUDA_ERROR_LAUNCH_FAILED".parse()?;
/// let fault = PlannedFault::Sticky { launch: 10, code: Code::LAUNCH_FAILED };
/// assert_eq!(plan, FaultPlan::none().on(0, PlannedFault::OutOfMemory { allocation: 3 }).on(1, fault));
/// assert!("oom".parse::<FaultPlan>().is_err());
/// # Ok::<(), kiln_sim::FaultPlanError>(())
/// ```
impl FromStr for FaultPlan {
    type Err = FaultPlanError;

    fn from_str(text: &str) -> Result<Self, FaultPlanError> {
        let words = text.split(',').flat_map(|part| {
            // What has no word between two commas is told, as an empty fault.
            let empty = part.trim().is_empty().then_some("");
            part.split_whitespace().chain(empty)
        });
        let faults =
            words.map(|fault| read(fault).map_err(|why| FaultPlanError { fault: fault.to_owned(), why }));
        Ok(Self { faults: faults.collect::<Result<_, _>>()? })
    }
}

/// As it is [read](str::parse), with commas between the faults. What the loader's log says of an image is not in it.
impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (device, fault)) in self.faults.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{device}:{fault}")?;
        }
        Ok(())
    }
}

/// As in the text of a plan, without the device.
impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { allocation } => write!(f, "oom@{allocation}"),
            Self::Sticky { launch, code } => write!(f, "fault@{launch}={}", code.0),
            Self::Hang { launch } => write!(f, "hang@{launch}"),
            Self::LostAtCall { call, code } => write!(f, "lost@{call}={}", code.0),
            Self::LostAt { time, code } => write!(f, "lost@{}ns={}", time.as_nanos(), code.0),
            Self::SlowCopies { factor } => write!(f, "slow-copies@{factor}"),
            Self::LinkCut { to, transfer } => write!(f, "cut-{to}@{transfer}"),
            Self::SlowLink { to, factor } => write!(f, "slow-{to}@{factor}"),
            Self::LoadFails { load, code, .. } => write!(f, "load@{load}={}", code.0),
        }
    }
}

fn read(fault: &str) -> Result<(u32, PlannedFault), String> {
    let (device, rest) = match fault.split_once(':') {
        None => (0, fault),
        Some((device, rest)) => {
            (device.parse().map_err(|_| format!("`{device}` is no ordinal of a device"))?, rest)
        }
    };
    let (name, rest) = rest.split_once('@').ok_or("it says not when, with an @")?;
    let (when, code) = match rest.split_once('=') {
        None => (rest, None),
        Some((when, code)) => (when, Some(read_code(code)?)),
    };
    let takes_code = matches!(name, "fault" | "lost" | "load");
    if code.is_some() && !takes_code {
        return Err(format!("{name} has no code"));
    }
    let planned = match name {
        "oom" => PlannedFault::OutOfMemory { allocation: count(when)? },
        "fault" => PlannedFault::Sticky { launch: count(when)?, code: losing(code)? },
        "hang" => PlannedFault::Hang { launch: count(when)? },
        "lost" => match duration(when) {
            Some(time) => PlannedFault::LostAt { time: time?, code: losing(code)? },
            None => PlannedFault::LostAtCall { call: count(when)?, code: losing(code)? },
        },
        "slow-copies" => PlannedFault::SlowCopies { factor: count(when)? },
        "load" => PlannedFault::LoadFails {
            load: count(when)?,
            code: code.unwrap_or(Code::INVALID_IMAGE),
            log: LOG.to_owned(),
        },
        other => over_a_link(device, other, count(when)?)?,
    };
    Ok((device, planned))
}

/// A fault of the link to another device, whose ordinal ends the name.
fn over_a_link(device: u32, name: &str, number: u64) -> Result<PlannedFault, String> {
    let unknown = || format!("there is no `{name}`");
    let (what, to) = name.split_once('-').ok_or_else(unknown)?;
    let planned: fn(u32, u64) -> PlannedFault = match what {
        "cut" => |to, transfer| PlannedFault::LinkCut { to, transfer },
        "slow" => |to, factor| PlannedFault::SlowLink { to, factor },
        _ => return Err(unknown()),
    };
    match to.parse() {
        Ok(to) if to == device => Err(format!("device {device} has no link to itself")),
        Ok(to) => Ok(planned(to, number)),
        Err(_) => Err(format!("`{to}` is no ordinal of a device")),
    }
}

/// A number from 1.
fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("counts begin at 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is no number from 1")),
    }
}

/// A time with its unit; nothing for a number without one.
fn duration(text: &str) -> Option<Result<Duration, String>> {
    let (number, scale) = UNITS.iter().find_map(|(unit, scale)| {
        let number = text.strip_suffix(unit)?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some((number, scale))
    })?;
    let whole = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*scale));
    Some(whole.map(Duration::from_nanos).ok_or_else(|| format!("`{text}` is no time")))
}

fn read_code(text: &str) -> Result<Code, String> {
    if let Ok(number) = text.parse::<i32>() {
        return if number > 0 { Ok(Code(number)) } else { Err(format!("{number} is no code of an error")) };
    }
    let named = (1..CODES).map(Code).find(|code| code.name() == Some(text));
    named.ok_or_else(|| format!("there is no code `{text}`"))
}

/// The code of a fault that loses the device.
fn losing(code: Option<Code>) -> Result<Code, String> {
    match code.unwrap_or(Code::ILLEGAL_ADDRESS) {
        code if code.is_sticky() => Ok(code),
        code => Err(format!("{code} does not lose a device")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let code = Code::ILLEGAL_ADDRESS;
        let log = LOG.to_owned();
        let forms = [
            ("oom@3", (0, PlannedFault::OutOfMemory { allocation: 3 })),
            ("2:hang@1", (2, PlannedFault::Hang { launch: 1 })),
            (" fault@4 ", (0, PlannedFault::Sticky { launch: 4, code })),
            ("fault@4=719", (0, PlannedFault::Sticky { launch: 4, code: Code::LAUNCH_FAILED })),
            ("lost@9", (0, PlannedFault::LostAtCall { call: 9, code })),
            ("lost@9ms", (0, PlannedFault::LostAt { time: Duration::from_millis(9), code })),
            ("lost@1s=700", (0, PlannedFault::LostAt { time: Duration::from_secs(1), code })),
            ("slow-copies@8", (0, PlannedFault::SlowCopies { factor: 8 })),
            ("load@1", (0, PlannedFault::LoadFails { load: 1, code: Code::INVALID_IMAGE, log })),
            ("1:cut-0@5", (1, PlannedFault::LinkCut { to: 0, transfer: 5 })),
            ("slow-2@8", (0, PlannedFault::SlowLink { to: 2, factor: 8 })),
        ];
        for (text, fault) in &forms {
            let plan = FaultPlan { faults: vec![fault.clone()] };
            assert_eq!(text.parse(), Ok(plan.clone()), "{text}");
            assert_eq!(plan.to_string().parse(), Ok(plan), "{text}");
        }
        let all: Vec<&str> = forms.iter().map(|(text, _)| *text).collect();
        for between in [",", " ", ", "] {
            assert_eq!(all.join(between).parse::<FaultPlan>().unwrap().faults.len(), forms.len());
        }
    }

    #[test]
    fn what_is_no_fault_is_told_with_the_forms() {
        let wrong = [
            ("", "says not when"),
            ("oom", "says not when"),
            ("oom@0", "counts begin at 1"),
            ("oom@-1", "no number from 1"),
            ("oom@3=2", "oom has no code"),
            ("flood@1", "there is no `flood`"),
            ("x:oom@1", "no ordinal"),
            ("fault@1=1", "does not lose a device"),
            ("fault@1=CUDA_ERROR_NONE", "there is no code"),
            ("lost@99999999999s", "no time"),
            ("oom@1,,hang@1", "says not when"),
            ("cut@1", "there is no `cut`"),
            ("1:cut-1@2", "no link to itself"),
            ("slow-x@2", "no ordinal"),
            ("slow-1@0", "counts begin at 1"),
        ];
        for (text, why) in wrong {
            let error = text.parse::<FaultPlan>().unwrap_err();
            let told = error.to_string();
            assert!(error.why.contains(why) && told.contains("oom@N"), "{text}: {told}");
        }
    }
}
