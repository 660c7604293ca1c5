//! Server-sent events by the rules of WHATWG HTML 9.2.6, whatever the cuts between reads.

/// Longest event, in bytes of its data and of an unfinished line, that is accepted.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// An event: its type (empty for `message`) and its data, lines joined by `\n`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty where there is none.
    pub name: Vec<u8>,
    /// The `data` fields.
    pub data: Vec<u8>,
}

/// An event or a line is longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {} MiB", MAX_EVENT_BYTES >> 20)]
pub struct TooLong;

/// Takes the bytes of a stream as they come and gives the events that they complete.
#[derive(Clone, Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    /// Whether the event has a `data` field, if only an empty one.
    has_data: bool,
    /// A carriage return ended the last line: a line feed that follows belongs to it.
    after_cr: bool,
    /// A line has ended already, so that no byte order mark can come.
    begun: bool,
}

impl SseParser {
    /// Takes the next bytes and calls `on` with each event that ends in them.
    ///
    /// # Errors
    /// When an event is too long; the parser can then only be dropped.
    pub fn feed(&mut self, mut bytes: &[u8], mut on: impl FnMut(SseEvent)) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.keep(bytes);
            };
            self.keep(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if let Some(event) = self.end_line() {
                on(event);
            }
        }
        Ok(())
    }

    /// Whether the stream ended inside an event or a line. Such an event is never given.
    pub fn is_inside_event(&self) -> bool {
        !self.line.is_empty() || self.has_data
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + self.event.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let mut line = std::mem::take(&mut self.line);
        let text = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if !self.begun => rest,
            _ => &line,
        };
        self.begun = true;
        if text.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match text.iter().position(|byte| *byte == b':') {
            // A comment.
            Some(0) => (&b""[..], &b""[..]),
            Some(colon) => {
                let value = &text[colon + 1..];
                (&text[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (text, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.event.name = value.to_vec(),
            _ => {}
        }
        line.clear();
        self.line = line;
        None
    }

    /// Ends an event at a blank line. One without a `data` field is none; an empty field makes one with empty data.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(parts: &[&[u8]]) -> (Vec<(String, String)>, bool) {
        let (mut parser, mut found) = (SseParser::default(), Vec::new());
        for part in parts {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
            let mut on = |event: SseEvent| found.push((text(event.name), text(event.data)));
            parser.feed(part, &mut on).expect("short");
        }
        (found, parser.is_inside_event())
    }

    fn data(stream: &str) -> Vec<String> {
        let found = events(&[stream.as_bytes()]).0;
        found.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
        assert_eq!(
            data(": test\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n"),
            ["first", "second", " third"]
        );
        // The first block is an event with no data, the second one of a line feed; the last has no end.
        assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
        assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
    }

    #[test]
    fn line_ends_and_byte_order_mark() {
        assert_eq!(
            data("data: a\r\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n"),
            ["a\nb", "c", "d"]
        );
        assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
        let (found, inside) = events(&[b"event: error\ndata: {}\n\ndata: cut"]);
        assert_eq!((found, inside), (vec![("error".into(), "{}".into())], true));
    }

    #[test]
    fn endless_lines_are_refused() {
        let mut parser = SseParser::default();
        let megabyte = vec![b'x'; 1 << 20];
        let refused = (0..20).any(|_| parser.feed(&megabyte, |_| ()).is_err());
        assert!(refused);
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(stream in "(data|event|:|\\r|\\n|\\r\\n| |ü|x|: ){0,60}", cuts in proptest::collection::vec(0_usize..200, 0..8)) {
            let bytes = stream.as_bytes();
            let whole = events(&[bytes]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events(&parts), whole.clone());
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(events(&single), whole);
        }
    }
}
