//! The log format of RMM, which its replay tool and ours read.

use std::io::{self, Write};

use super::record::TraceRecord;

/// Writes records as RMM logs them, one line each, with the tag in a separate column at the end, which readers that
/// do not know it leave out.
///
/// # Errors
/// Whatever the writer says.
pub fn write_rmm_csv(records: &[TraceRecord], to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "Thread,Time,Action,Pointer,Size,Stream,Tag")?;
    for record in records {
        let TraceRecord { address, bytes, stream, thread, tag, action, .. } = record;
        let micros = record.nanoseconds / 1000;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes, seconds) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let time = format_args!("{hours:02}:{minutes:02}:{seconds:02}.{micros:06}");
        // A field that begins with a quote is one that ends with it.
        let tag = tag.name().replace(['\n', '\r', ','], " ");
        let tag = tag.trim_start_matches(['"', ' ']);
        writeln!(to, "{thread},{time},{action},{address},{bytes},{:#x},{tag}", stream.index())?;
    }
    Ok(())
}
