//! JSON, in which native code tells JavaScript of more than a number.

use std::fmt::Write;

/// A string, by its UTF-16 code units, of which surrogates may stand alone.
pub(super) fn string(text: &[u16]) -> String {
    let mut json = String::from('"');
    for character in char::decode_utf16(text.iter().copied()) {
        match character {
            Ok(character @ ('"' | '\\')) => json.extend(['\\', character]),
            Ok(control @ '\0'..='\x1f') => drop(write!(json, "\\u{:04x}", u32::from(control))),
            Ok(character) => json.push(character),
            Err(surrogate) => drop(write!(json, "\\u{:04x}", surrogate.unpaired_surrogate())),
        }
    }
    json.push('"');
    json
}

/// An array of these values.
pub(super) fn array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

/// A value that may be missing.
pub(super) fn or_null(value: Option<String>) -> String {
    value.unwrap_or_else(|| "null".to_owned())
}
