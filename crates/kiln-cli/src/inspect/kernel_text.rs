//! The kernels of a file as text.

use std::fmt::Write;

use super::kernel_summary::{EntrySheet, ParameterSheet, Sheet};
use crate::demangled_name::{parameter_name, readable};
use crate::table::{Table, bytes};

/// The sheet, without a line end behind it.
pub(crate) fn render(sheet: &Sheet, columns: usize) -> String {
    let Sheet { file, ptx_version, target, entries, templates } = sheet;
    let count = match entries.len() {
        1 => "1 kernel".to_owned(),
        count => format!("{count} kernels"),
    };
    let mut text = format!("{file}: {count}, PTX {ptx_version} for {target}");
    for entry in entries {
        text.push_str("\n\n");
        render_entry(&mut text, entry, columns);
    }
    for template in templates {
        let _ =
            write!(text, "\n\ntemplate {}\n  give arguments: --kernel '{}'", template.name, template.example);
    }
    text
}

fn render_entry(text: &mut String, entry: &EntrySheet, columns: usize) {
    match &entry.function {
        Some(function) => _ = write!(text, "{function}, in PTX {}", entry.name),
        None => text.push_str(&entry.name),
    }
    let mut table = Table::new(&["##", "name", "kind", "type", "#bytes", "#offset", "access"]);
    for parameter in &entry.parameters {
        table.row(row(&entry.name, parameter));
        for field in &parameter.pointers {
            let offset = parameter.offset + u64::from(field.offset);
            let words = ["", "", "  pointer", "", "8", &offset.to_string(), field.access].map(str::to_owned);
            table.row(words);
        }
    }
    match entry.parameters.is_empty() {
        true => text.push_str("\n  no parameters"),
        false => _ = write!(text, "\n{}", table.render(columns)),
    }
    let shared = &entry.shared;
    let dynamic = if shared.dynamic { " and dynamic (--shared)" } else { "" };
    if shared.static_bytes > 0 || shared.dynamic {
        let _ = write!(text, "\n  shared memory  {}{dynamic}", bytes(shared.static_bytes));
    }
    if !entry.barriers.is_empty() {
        let _ = write!(text, "\n  synchronises   {}", barriers(&entry.barriers));
    }
    match (entry.required_block, entry.max_threads_per_block) {
        (Some([x, y, z]), _) => _ = write!(text, "\n  block          exactly {x} x {y} x {z} threads"),
        (None, Some(threads)) => _ = write!(text, "\n  block          at most {threads} threads"),
        (None, None) => {}
    }
    if !entry.needs.is_empty() {
        let _ = write!(text, "\n  needs          {}", entry.needs.join(", "));
    }
    if let Some(why) = &entry.refused {
        let _ = write!(text, "\n  refused        {why}; a GPU loads no kernel of this file");
    }
    for doubt in &entry.doubts {
        let (line, function) = (doubt.ptx_line, readable(&doubt.function));
        let _ = write!(text, "\n  cannot tell    {} at PTX line {line} in {function}", doubt.reason);
    }
    for found in &entry.unsupported {
        let family = found.family.as_ref().map(|family| format!(" ({family})")).unwrap_or_default();
        let place = found.source.as_ref().map(|source| format!("{source}, ")).unwrap_or_default();
        let (instruction, line) = (&found.instruction, found.ptx_line);
        let _ = write!(text, "\n  only on a GPU  {instruction}{family} at {place}PTX line {line}");
    }
}

fn row(kernel: &str, parameter: &ParameterSheet) -> [String; 7] {
    let ty = match &parameter.cpp_type {
        Some(ty) => ty.clone(),
        None if parameter.kind == "structure" => String::new(),
        None => parameter.ty.clone(),
    };
    [
        parameter.index.to_string(),
        parameter_name(kernel, &parameter.name).to_owned(),
        parameter.kind.to_owned(),
        ty,
        parameter.bytes.to_string(),
        parameter.offset.to_string(),
        parameter.access.unwrap_or("").to_owned(),
    ]
}

/// How the threads of a block wait for each other: barrier 0 is `__syncthreads()`.
fn barriers(list: &[u32]) -> String {
    if list.len() == 16 {
        return "at any of the 16 barriers of a block".to_owned();
    }
    let named: Vec<String> = list.iter().filter(|number| **number != 0).map(u32::to_string).collect();
    let word = if named.len() == 1 { "barrier" } else { "barriers" };
    match (list.contains(&0), named.is_empty()) {
        (true, true) => "the block, with __syncthreads()".to_owned(),
        (true, false) => format!("the block, with __syncthreads() and named {word} {}", named.join(", ")),
        (false, _) => format!("at named {word} {}", named.join(", ")),
    }
}
