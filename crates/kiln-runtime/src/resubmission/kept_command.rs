//! A command that outlives its submission.

use kiln_driver::{Command, DeclaredSpan, DevicePlace, LaunchCommand, Pattern, Place};

/// A command of a kind that can be submitted again.
#[derive(Clone, Debug)]
pub(crate) enum KeptCommand {
    Copy {
        from: Place,
        to: Place,
        bytes: u64,
    },
    Fill {
        to: DevicePlace,
        pattern: Pattern,
        count: u64,
    },
    /// Without its arguments and what it may touch, which are kept beside it.
    Launch {
        launch: LaunchCommand<'static>,
        arguments: Box<[u8]>,
        declared: Option<Box<[DeclaredSpan]>>,
    },
}

impl KeptCommand {
    /// Keeps a command; says why where that is of no use.
    pub(super) fn of(command: &Command<'_>) -> Result<Self, &'static str> {
        match *command {
            Command::Copy { from, to, bytes } => Ok(Self::Copy { from, to, bytes }),
            Command::Fill { to, pattern, count } => Ok(Self::Fill { to, pattern, count }),
            Command::Launch(launch) => {
                let arguments = launch.arguments.into();
                let declared = launch.declared.map(Into::into);
                let launch = LaunchCommand { arguments: &[], declared: None, ..launch };
                Ok(Self::Launch { launch, arguments, declared })
            }
            // Its nodes may have been changed since.
            Command::Graph(_) => Err("it is a graph"),
            _ => Err("it is a command that is not kept"),
        }
    }

    /// The command as it was. What was vouched for is the same launch on the same memory, which is freed only when it is known to be over.
    pub(super) fn command(&self) -> Command<'_> {
        match self {
            Self::Copy { from, to, bytes } => Command::Copy { from: *from, to: *to, bytes: *bytes },
            Self::Fill { to, pattern, count } => Command::Fill { to: *to, pattern: *pattern, count: *count },
            Self::Launch { launch, arguments, declared } => {
                Command::Launch(LaunchCommand { arguments, declared: declared.as_deref(), ..*launch })
            }
        }
    }

    /// The bytes of the device that it overwrites, all of them whatever they were.
    pub(super) fn overwrites(&self) -> Option<(DevicePlace, u64)> {
        match self {
            Self::Copy { to: Place::Device(to), bytes, .. } => Some((*to, *bytes)),
            Self::Fill { to, pattern, count } => Some((*to, pattern.bytes().saturating_mul(*count))),
            Self::Copy { .. } | Self::Launch { .. } => None,
        }
    }
}
