//! JSON, in which native code tells JavaScript of more than a number.

use std::fmt::{self, Write};

/// The length of JavaScript's longest string.
const LONGEST: usize = if cfg!(target_pointer_width = "32") { (1 << 28) - 16 } else { (1 << 29) - 24 };

/// A text that a string of JavaScript can hold. An error of its writer says that the text would be longer, or that there is no memory for it.
pub(crate) struct Text(String);

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if more.len() > LONGEST - self.0.len() || self.0.try_reserve(more.len()).is_err() {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

/// What `write` writes. `None` after an error.
pub(crate) fn text(write: impl FnOnce(&mut Text) -> fmt::Result) -> Option<String> {
    let mut text = Text(String::new());
    write(&mut text).ok().map(|()| text.0)
}

/// A string, by its UTF-16 code units, of which surrogates may stand alone.
pub(crate) fn string(text: &mut Text, units: &[u16]) -> fmt::Result {
    text.write_char('"')?;
    for character in char::decode_utf16(units.iter().copied()) {
        match character {
            Ok(character @ ('"' | '\\')) => write!(text, "\\{character}")?,
            Ok(control @ '\0'..='\x1f') => write!(text, "\\u{:04x}", u32::from(control))?,
            Ok(character) => text.write_char(character)?,
            Err(surrogate) => write!(text, "\\u{:04x}", surrogate.unpaired_surrogate())?,
        }
    }
    text.write_char('"')
}

/// An array of what `write` writes of these values.
pub(crate) fn array<T>(
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
