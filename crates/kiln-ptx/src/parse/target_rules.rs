//! The architectures that `.target` may name, and the version of PTX that each came with.

use crate::module::PtxVersion;
use Suffix::{Family, Nothing, Own};

/// What stands behind the number of an architecture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suffix {
    Nothing,
    /// `a`: what this architecture alone has.
    Own,
    /// `f`: what its family has.
    Family,
}

/// The architectures that PTX has up to [`Opcode::KNOWN_VERSION`](crate::Opcode::KNOWN_VERSION), with the first version of each that
/// the assembler takes.
const ARCHITECTURES: [(u32, Suffix, (u32, u32)); 45] = [
    (10, Nothing, (1, 0)),
    (11, Nothing, (1, 0)),
    (12, Nothing, (1, 2)),
    (13, Nothing, (1, 2)),
    (20, Nothing, (2, 0)),
    (21, Nothing, (2, 0)),
    (30, Nothing, (3, 0)),
    (32, Nothing, (4, 0)),
    (35, Nothing, (3, 1)),
    (37, Nothing, (4, 1)),
    (50, Nothing, (4, 0)),
    (52, Nothing, (4, 1)),
    (53, Nothing, (4, 2)),
    (60, Nothing, (5, 0)),
    (61, Nothing, (5, 0)),
    (62, Nothing, (5, 0)),
    (70, Nothing, (6, 0)),
    (72, Nothing, (6, 1)),
    (75, Nothing, (6, 3)),
    (80, Nothing, (7, 0)),
    (82, Nothing, (6, 2)),
    (86, Nothing, (7, 1)),
    (87, Nothing, (7, 4)),
    (88, Nothing, (7, 3)),
    (89, Nothing, (7, 8)),
    (90, Nothing, (7, 8)),
    (90, Own, (8, 0)),
    (100, Nothing, (8, 6)),
    (100, Own, (8, 6)),
    (100, Family, (8, 8)),
    (101, Nothing, (8, 6)),
    (101, Own, (8, 6)),
    (101, Family, (8, 8)),
    (103, Nothing, (8, 8)),
    (103, Own, (8, 8)),
    (103, Family, (8, 8)),
    (110, Nothing, (9, 0)),
    (110, Own, (9, 0)),
    (110, Family, (9, 0)),
    (120, Nothing, (8, 7)),
    (120, Own, (8, 7)),
    (120, Family, (8, 8)),
    (121, Nothing, (8, 8)),
    (121, Own, (8, 8)),
    (121, Family, (8, 8)),
];

/// What is wrong with the architecture of a module. Names that begin with neither `sm_` nor `compute_` are taken as they are.
pub(super) fn broken_target(architecture: &str, version: PtxVersion) -> Option<String> {
    let name = architecture.strip_prefix("sm_").or_else(|| architecture.strip_prefix("compute_"))?;
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let (digits, suffix) = name.split_at(digits);
    // The assembler reads other endings as none.
    let suffix = match suffix {
        "a" => Own,
        "f" => Family,
        _ => Nothing,
    };
    let number: u32 = digits.parse().unwrap_or(u32::MAX);
    let known = ARCHITECTURES.iter().find(|known| known.0 == number && known.1 == suffix);
    let PtxVersion { major, minor } = version;
    let Some((_, _, since)) = known else {
        return Some(format!(
            "PTX {major}.{minor} has no architecture of this name; name one that it has, such as sm_80 or sm_90a"
        ));
    };
    let since = PtxVersion { major: since.0, minor: since.1 };
    (version < since).then(|| {
        let PtxVersion { major: first, minor: second } = since;
        format!("this architecture came with PTX {first}.{second}, after {major}.{minor}; raise `.version`")
    })
}
