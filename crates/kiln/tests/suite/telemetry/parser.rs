//! A reader of Prometheus's text format that shares nothing with the writer.

use std::collections::BTreeMap;

/// One metric of a page.
#[derive(Debug, Default)]
pub(crate) struct Metric {
    pub(crate) help: String,
    pub(crate) kind: String,
    /// By labels.
    pub(crate) samples: BTreeMap<BTreeMap<String, String>, f64>,
}

/// Reads a page, or says which line cannot be right.
pub(crate) fn parse(page: &str) -> Result<BTreeMap<String, Metric>, String> {
    if !page.ends_with('\n') {
        return Err("the page does not end with a line".into());
    }
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or(line)?;
            if metrics.contains_key(name) {
                return Err(format!("{name} comes twice"));
            }
            current = name.to_owned();
            metrics.insert(current.clone(), Metric { help: help.to_owned(), ..Metric::default() });
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or(line)?;
            let metric = metrics.get_mut(name).filter(|_| name == current).ok_or(line)?;
            if !metric.kind.is_empty() || !metric.samples.is_empty() {
                return Err(format!("the type of {name} comes late"));
            }
            metric.kind = kind.to_owned();
        } else {
            let (name, rest) = line.split_once('{').ok_or(line)?;
            let metric = metrics.get_mut(name).filter(|_| name == current).ok_or(line)?;
            let (labels, value) = labels(rest).ok_or(line)?;
            let value = value.strip_prefix(' ').and_then(|text| text.parse().ok()).ok_or(line)?;
            if metric.samples.insert(labels, value).is_some() {
                return Err(format!("two samples are the same: {line}"));
            }
        }
    }
    Ok(metrics)
}

/// Labels up to the closing brace, and what follows it.
fn labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        let (name, value) = rest.split_once("=\"")?;
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') || name.is_empty() {
            return None;
        }
        let mut unescaped = String::new();
        let mut chars = value.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => unescaped.push(match chars.next()?.1 {
                    'n' => '\n',
                    other @ ('\\' | '"') => other,
                    _ => return None,
                }),
                (_, plain) => unescaped.push(plain),
            }
        };
        labels.insert(name.to_owned(), unescaped);
        match value[end + 1..].split_at_checked(1)? {
            (",", after) => rest = after,
            ("}", after) => return Some((labels, after)),
            _ => return None,
        }
    }
}
