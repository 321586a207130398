//! What the documentation of the operations says, sentence by sentence, as it stands in the sources.

/// The sources in which operations and statements are documented.
const SOURCES: [&str; 7] = [
    include_str!("../../../src/operation.rs"),
    include_str!("../../../src/operation/arithmetic.rs"),
    include_str!("../../../src/operation/thread_index.rs"),
    include_str!("../../../src/operation/memory.rs"),
    include_str!("../../../src/operation/warp_and_block.rs"),
    include_str!("../../../src/operation/tile.rs"),
    include_str!("../../../src/statement.rs"),
];

/// Something that is documented: an enum, or one of its variants as `Enum::Variant`.
pub(crate) struct Documented {
    pub(crate) name: String,
    /// Of an enum without the first one, which says what the enum is.
    pub(crate) sentences: Vec<String>,
}

/// Everything that is documented.
pub(crate) fn documented() -> Vec<Documented> {
    SOURCES.iter().flat_map(|source| enums(source)).collect()
}

/// The enums of a source with their variants.
fn enums(source: &str) -> Vec<Documented> {
    let mut found = Vec::new();
    let mut documentation = String::new();
    // The enum that is being read, and how many of its braces are open.
    let mut inside: Option<(&str, i32)> = None;
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            documentation.push(' ');
            documentation.push_str(text.trim().trim_start_matches("- "));
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        let text = std::mem::take(&mut documentation);
        match &mut inside {
            None => {
                if let Some(name) = line.strip_prefix("pub enum ").and_then(|rest| rest.strip_suffix(" {")) {
                    let sentences = sentences(&text).into_iter().skip(1).collect();
                    found.push(Documented { name: name.to_owned(), sentences });
                    inside = Some((name, 1));
                }
            }
            Some((name, open)) => {
                let variant = line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
                if *open == 1 && !variant.is_empty() {
                    found
                        .push(Documented { name: format!("{name}::{variant}"), sentences: sentences(&text) });
                }
                *open += line.matches('{').count() as i32 - line.matches('}').count() as i32;
                inside = inside.filter(|(_, open)| *open > 0);
            }
        }
    }
    found
}

/// The sentences of a text; a bullet is one, too.
fn sentences(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut sentences = vec![String::new()];
    for word in words {
        if let Some(last) = sentences.last_mut() {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
        if word.ends_with('.') {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}
