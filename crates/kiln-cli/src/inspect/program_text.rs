//! A program as text.

use std::fmt::Write;

use super::program_summary::{BufferSheet, ProgramSheet, SharedSheet};
use crate::table::Table;

/// The sheet, without a line end behind it.
pub(crate) fn render(sheet: &ProgramSheet, columns: usize) -> String {
    let mut text = format!("{}: program {}", sheet.file, sheet.program);
    let mut table = Table::new(&["##", "name", "kind", "type", "elements", "access"]);
    for buffer in &sheet.buffers {
        table.row([
            buffer.index.to_string(),
            buffer.name.clone(),
            if buffer.checked { buffer.role.clone() } else { format!("{} unchecked", buffer.role) },
            buffer.element.clone(),
            elements(buffer),
            buffer.access.to_owned(),
        ]);
    }
    for scalar in &sheet.scalars {
        let (index, name, ty) = (scalar.index.to_string(), scalar.name.clone(), scalar.ty.clone());
        table.row([index, name, "scalar".to_owned(), ty, String::new(), String::new()]);
    }
    match sheet.buffers.is_empty() && sheet.scalars.is_empty() {
        true => text.push_str("\n  no parameters"),
        false => _ = write!(text, "\n{}", table.render(columns)),
    }
    let [x, y, z] = sheet.block;
    let _ = write!(text, "\n  block          {x} x {y} x {z} threads");
    match &sheet.over {
        Some(over) => _ = write!(text, "\n  grid           a thread for each element of {over}"),
        None => text.push_str("\n  grid           must be given (--grid)"),
    }
    for shared in &sheet.shared {
        let _ = write!(text, "\n  shared memory  {}", in_words(shared));
    }
    if sheet.grid_barrier {
        text.push_str("\n  needs          a cooperative launch: its blocks wait for each other");
    }
    if !sheet.traps.is_empty() {
        let lines: Vec<String> = sheet.traps.iter().map(u32::to_string).collect();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        let _ = write!(text, "\n  traps          in {word} {}", lines.join(", "));
    }
    if sheet.flush {
        text.push_str("\n  flush          subnormal f32 numbers are zero");
    }
    if !sheet.checked {
        text.push_str("\n  unchecked      an index out of range is undefined behaviour");
    }
    text
}

fn elements(buffer: &BufferSheet) -> String {
    match (buffer.count, &buffer.like) {
        (Some(count), _) => count.to_string(),
        (None, Some(other)) => format!("like {other}"),
        (None, None) => "any".to_owned(),
    }
}

fn in_words(shared: &SharedSheet) -> String {
    let zeroed = if shared.zeroed { "" } else { ", not zeroed" };
    let SharedSheet { name, element, .. } = shared;
    match shared.count {
        Some(count) => format!("{name}: {count} x {element}{zeroed}"),
        None => format!("{name}: {element}, size given by the launch (--shared){zeroed}"),
    }
}
