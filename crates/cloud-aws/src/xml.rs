//! Answers are XML. They are read into a small tree first: an answer is at most a page of a
//! thousand instances, and a tree makes errors nameable.

use quick_xml::{Reader, events::Event};

/// Deeper than any answer.
const DEEPEST: usize = 64;

/// An element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Element {
    /// Its name, without a namespace.
    pub name: String,
    /// Its text, trimmed.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Element>,
}

/// An answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// It is not XML.
    #[error("the answer is not XML: {0}")]
    Malformed(String),
    /// It is not what it should be.
    #[error("the answer has {text:?} as {element}")]
    Unexpected {
        /// The element.
        element: String,
        /// Its text.
        text: String,
    },
}

/// A value that is read from an element.
pub trait FromXml: Sized {
    /// Reads it.
    fn from_xml(element: &Element) -> Result<Self, XmlError>;
}

/// A member of a structure, by the element of its name.
pub trait FromMember: Sized {
    /// Reads it; there may be no such element.
    fn from_member(element: Option<&Element>) -> Result<Self, XmlError>;
}

impl Element {
    /// Reads a document.
    pub fn parse(document: &[u8]) -> Result<Self, XmlError> {
        let malformed = |why: &str| XmlError::Malformed(why.to_owned());
        let document = std::str::from_utf8(document).map_err(|_| malformed("it is not UTF-8"))?;
        let mut reader = Reader::from_str(document);
        let mut open: Vec<Element> = Vec::new();
        loop {
            let event = reader.read_event().map_err(|error| malformed(&error.to_string()))?;
            let closed = match event {
                Event::Start(start) if open.len() < DEEPEST => {
                    open.push(Self::named(start.local_name().as_ref()));
                    None
                }
                Event::Start(_) => return Err(malformed("it is too deep")),
                Event::Empty(empty) => Some(Self::named(empty.local_name().as_ref())),
                Event::End(_) => open.pop(),
                Event::Text(text) => {
                    push(&mut open, &text.xml10_content());
                    None
                }
                Event::CData(text) => {
                    push(&mut open, &text.xml10_content());
                    None
                }
                Event::GeneralRef(reference) => {
                    let character = reference.resolve_char_ref();
                    match character.map_err(|error| malformed(&error.to_string()))? {
                        Some(character) => push(&mut open, character.encode_utf8(&mut [0; 4])),
                        None => push(&mut open, entity(&reference.xml10_content())),
                    }
                    None
                }
                Event::Eof => return Err(malformed("it ends too early")),
                _ => None,
            };
            let Some(mut closed) = closed else { continue };
            if closed.text.starts_with(char::is_whitespace)
                || closed.text.ends_with(char::is_whitespace)
            {
                closed.text = closed.text.trim().into();
            }
            match open.last_mut() {
                Some(parent) => parent.children.push(closed),
                None => return Ok(closed),
            }
        }
    }

    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The first element of this name in it.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first element of this name in it.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str()).filter(|text| !text.is_empty())
    }

    /// A member of a structure.
    pub fn member<T: FromMember>(&self, name: &str) -> Result<T, XmlError> {
        T::from_member(self.child(name))
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.children.is_empty()
    }

    fn unexpected(&self) -> XmlError {
        XmlError::Unexpected { element: self.name.clone(), text: self.text.clone() }
    }
}

fn push(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn entity(name: &str) -> &'static str {
    match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => "\u{fffd}",
    }
}

impl FromXml for () {
    fn from_xml(_: &Element) -> Result<Self, XmlError> {
        Ok(())
    }
}

impl FromXml for String {
    fn from_xml(element: &Element) -> Result<Self, XmlError> {
        Ok(element.text.clone())
    }
}

impl FromXml for i64 {
    fn from_xml(element: &Element) -> Result<Self, XmlError> {
        element.text.parse().map_err(|_| element.unexpected())
    }
}

impl FromXml for bool {
    fn from_xml(element: &Element) -> Result<Self, XmlError> {
        element.text.parse().map_err(|_| element.unexpected())
    }
}

/// An element without content is the same as none: the services write both.
impl<T: FromXml> FromMember for Option<T> {
    fn from_member(element: Option<&Element>) -> Result<Self, XmlError> {
        element.filter(|element| !element.is_empty()).map(T::from_xml).transpose()
    }
}

/// The items of a list are the elements in it, whatever their name.
impl<T: FromXml> FromMember for Vec<T> {
    fn from_member(element: Option<&Element>) -> Result<Self, XmlError> {
        let items = element.into_iter().flat_map(|element| &element.children);
        items.map(T::from_xml).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document() {
        let document = br#"<?xml version="1.0" encoding="UTF-8"?>
            <a:Answer xmlns:a="urn:x"><set><item>1</item><item>2</item></set>
            <text>a &lt;b&gt; &#x26; <![CDATA[<c>]]></text><empty/><none></none></a:Answer>"#;
        let root = Element::parse(document).unwrap();
        assert_eq!(root.name, "Answer");
        assert_eq!(root.member::<Vec<i64>>("set").unwrap(), [1, 2]);
        assert_eq!(root.text_of("text"), Some("a <b> & <c>"));
        assert_eq!(root.member::<Option<i64>>("empty").unwrap(), None);
        assert_eq!(root.member::<Option<String>>("none").unwrap(), None);
        assert_eq!(root.member::<Vec<String>>("empty").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let root = Element::parse(b"<a><count>many</count></a>").unwrap();
        let error = root.member::<Option<i64>>("count").unwrap_err();
        assert_eq!(error.to_string(), "the answer has \"many\" as count");
        for document in ["", "text", "<a>", "<a></b>", "<html><p></html>"] {
            assert!(Element::parse(document.as_bytes()).is_err(), "{document}");
        }
        let deep = "<a>".repeat(100_000);
        assert!(Element::parse(deep.as_bytes()).is_err());
        assert!(Element::parse(b"\xff").is_err());
    }
}
