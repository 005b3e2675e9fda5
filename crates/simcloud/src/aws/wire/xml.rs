//! Answers in XML.

use std::fmt::{self, Display, Write as _};

use jiff::Timestamp;

/// XML being written.
#[derive(Debug, Default)]
pub(crate) struct Xml(String);

impl Xml {
    /// The text so far.
    pub(crate) fn finish(self) -> String {
        self.0
    }

    /// An element with children.
    pub(crate) fn node(&mut self, name: &str, children: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name}>");
        children(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// An element with a namespace.
    pub(crate) fn root(&mut self, name: &str, namespace: &str, children: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name} xmlns=\"{namespace}\">");
        children(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// An element with text.
    pub(crate) fn text(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, "<{name}>");
        let _ = write!(Escaped(&mut self.0), "{value}");
        let _ = write!(self.0, "</{name}>");
    }

    /// An element with text, if there is any.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A time, as EC2 writes it.
    pub(crate) fn time(&mut self, name: &str, at: Timestamp) {
        self.text(name, at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"));
    }

    /// A list whose entries are `<item>`.
    pub(crate) fn items<T>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Self, T),
    ) {
        self.entries(name, "item", entries, write);
    }

    /// A list whose entries are `<member>`, as outside EC2.
    pub(crate) fn members<T>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Self, T),
    ) {
        self.entries(name, "member", entries, write);
    }

    fn entries<T>(
        &mut self,
        name: &str,
        entry: &str,
        entries: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.node(name, |xml| {
            for value in entries {
                xml.node(entry, |xml| write(xml, value));
            }
        });
    }

    /// XML that is written already.
    pub(crate) fn raw(&mut self, xml: &Self) {
        self.0.push_str(&xml.0);
    }

    /// Text without an element around it.
    pub(crate) fn bare(&mut self, value: impl Display) {
        let _ = write!(Escaped(&mut self.0), "{value}");
    }
}

/// Escapes what is written to it.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\t' | '\n' | '\r' => write!(self.0, "&#x{:x};", u32::from(c))?,
                // XML cannot carry the other control characters at all.
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => self.0.push('?'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lists_and_escapes() {
        let mut xml = Xml::default();
        xml.root("r", "urn:x", |xml| {
            xml.text("a", "<&>\"\n\u{1}é");
            xml.items("set", [1, 2], |xml, n| xml.text("n", n));
            xml.maybe("none", None::<u8>);
            xml.time("at", Timestamp::from_millisecond(1_500).unwrap());
        });
        assert_eq!(
            xml.finish(),
            "<r xmlns=\"urn:x\"><a>&lt;&amp;&gt;&quot;&#xa;?é</a><set><item><n>1</n></item>\
             <item><n>2</n></item></set><at>1970-01-01T00:00:01.500Z</at></r>"
        );
    }
}
