//! JSON, in which native code tells JavaScript of more than a number.

use std::fmt::{self, Write};

pub type Text = String;

/// Returns the text that `write` makes.
pub fn text(write: impl FnOnce(&mut Text) -> fmt::Result) -> String {
    let mut text = Text::new();
    write(&mut text).expect("a string takes all");
    text
}

/// Writes a string by its UTF-16 code units, also lone surrogates.
pub fn string(text: &mut Text, units: impl IntoIterator<Item = u16>) -> fmt::Result {
    text.write_char('"')?;
    for character in char::decode_utf16(units) {
        match character {
            Ok(character @ ('"' | '\\')) => write!(text, "\\{character}")?,
            Ok(hidden) if is_hidden(hidden) => write!(text, "\\u{:04x}", u32::from(hidden))?,
            Ok(character) => text.write_char(character)?,
            Err(surrogate) => write!(text, "\\u{:04x}", surrogate.unpaired_surrogate())?,
        }
    }
    text.write_char('"')
}

/// Replaces what a terminal obeys in a text of several lines.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\n' && is_hidden(character) {
            _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a terminal obeys the character, or shows it nowhere: a control, or one that turns the direction of a text.
const fn is_hidden(character: char) -> bool {
    matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

pub fn array<T>(
    text: &mut Text,
    values: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Text, T) -> fmt::Result,
) -> fmt::Result {
    text.write_char('[')?;
    for (n, value) in values.into_iter().enumerate() {
        if n > 0 {
            text.write_char(',')?;
        }
        write(text, value)?;
    }
    text.write_char(']')
}
