//! The words of JSON: strings, numbers, brackets.

use super::Error;

/// Deepest nesting; a configuration has a few levels.
const DEPTH: u32 = 64;

/// A number as it stands in the text.
pub(super) enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

/// A text as it stands between quotes, or without its escapes.
pub(super) enum Text<'de> {
    Plain(&'de str),
    Unescaped(String),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Unescaped(text) => text,
        }
    }
}

pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u32,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    fn bytes(&self) -> &'de [u8] {
        self.text.as_bytes()
    }

    pub(super) fn error(&self, expected: &str) -> Error {
        Error(format!("expected {expected} at byte {}", self.at))
    }

    /// The next byte that is no space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes().get(self.at) {
            self.at += 1;
        }
        self.bytes().get(self.at).copied()
    }

    pub(super) fn expect(&mut self, byte: u8, name: &str) -> Result<(), Error> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.error(name))
        }
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), Error> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.error("a value"))
        }
    }

    pub(super) fn enter(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Error(format!("nested more than {DEPTH} levels deep")));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, byte: u8, name: &str) -> Result<(), Error> {
        self.depth -= 1;
        self.expect(byte, name)
    }

    /// Whether another element follows in a list or object that ends with `end`.
    pub(super) fn another(&mut self, end: u8, first: &mut bool) -> Result<bool, Error> {
        match self.peek() {
            Some(byte) if byte == end => Ok(false),
            Some(b',') if !*first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if *first => {
                *first = false;
                Ok(true)
            }
            _ => Err(self.error("`,` or the end of the list or object")),
        }
    }

    fn digits(&mut self) -> Result<(), Error> {
        let from = self.at;
        while self.bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == from {
            Err(self.error("a digit"))
        } else {
            Ok(())
        }
    }

    pub(super) fn number(&mut self) -> Result<Number, Error> {
        let (text, from) = (self.text, self.at);
        let negative = self.bytes()[self.at] == b'-';
        self.at += usize::from(negative);
        if self.bytes().get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let mut whole = true;
        if self.bytes().get(self.at) == Some(&b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes().get(self.at) {
            whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.bytes().get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        let digits = &text[from..self.at];
        if whole
            && !negative
            && let Ok(number) = digits.parse()
        {
            return Ok(Number::Unsigned(number));
        }
        if whole
            && digits != "-0"
            && let Ok(number) = digits.parse()
        {
            return Ok(Number::Signed(number));
        }
        match digits.parse() {
            Ok(number) if f64::is_finite(number) => Ok(Number::Float(number)),
            _ => Err(self.error("a number within range before this place,")),
        }
    }

    pub(super) fn string(&mut self) -> Result<Text<'de>, Error> {
        self.expect(b'"', "a string")?;
        let from = self.at;
        let text = self.text;
        let mut unescaped = String::new();
        let mut kept = from;
        loop {
            match self.bytes().get(self.at) {
                Some(b'"') => {
                    let rest = &text[kept..self.at];
                    self.at += 1;
                    return Ok(if kept == from {
                        Text::Plain(rest)
                    } else {
                        Text::Unescaped(unescaped + rest)
                    });
                }
                Some(b'\\') => {
                    unescaped.push_str(&text[kept..self.at]);
                    self.at += 1;
                    unescaped.push(self.escape()?);
                    kept = self.at;
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.error("the end of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let byte = self.bytes().get(self.at).copied();
        self.at += 1;
        Ok(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("a known escape before this place,")),
        })
    }

    fn unicode(&mut self) -> Result<char, Error> {
        let first = self.hex()?;
        let code = match first {
            // The first half of a pair: the second one must follow.
            0xd800..0xdc00 => {
                self.word("\\u")?;
                let second = self.hex()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(self.error("the second half of a pair before this place,"));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.error("a character before this place,"))
    }

    fn hex(&mut self) -> Result<u32, Error> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| self.error("four hexadecimal digits before this place,"))
    }
}
