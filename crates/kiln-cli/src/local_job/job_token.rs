//! The secret of a job.

use crate::failure::Failure;

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 32;

/// A new random token, as hexadecimal digits.
///
/// # Errors
/// The system gives no random bytes.
pub(super) fn fresh() -> Result<String, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    random(&mut bytes).map_err(|error| {
        let message = format!("no random bytes for the token of the job: {error}");
        Failure::fault(message).next("make /dev/urandom readable")
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(unix)]
fn random(bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

#[cfg(not(unix))]
fn random(_: &mut [u8]) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
