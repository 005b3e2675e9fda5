//! Query parameters: `Filter.1.Value.2=x`, read by name, and what nobody read is unknown.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::aws::model::{ApiError, Outcome};

/// A decoded form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    values: BTreeMap<String, String>,
    read: RefCell<BTreeSet<String>>,
}

/// Most bytes of a request. EC2 refuses bodies far smaller than this with errors of its own.
pub(crate) const LARGEST: usize = 4 << 20;

impl Form {
    /// From a body or a query string.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let mut values = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (decode(key), decode(value)) else {
                return Err(ApiError::client(
                    "MalformedQueryString",
                    "The query string is malformed.",
                ));
            };
            if values.contains_key(&key) {
                let message = format!("The parameter {key} may only be specified once.");
                return Err(ApiError::client("InvalidQueryParameter", message));
            }
            values.insert(key, value);
        }
        Ok(Self { values, read: RefCell::default() })
    }

    /// The parameters at the top.
    pub(crate) fn root(&self) -> Scope<'_> {
        Scope { form: self, prefix: String::new() }
    }

    /// Every parameter.
    pub(crate) fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Fails if a parameter was sent that nobody read.
    pub(crate) fn finish(&self) -> Outcome<()> {
        let read = self.read.borrow();
        match self.values.keys().find(|key| !read.contains(*key)) {
            None => Ok(()),
            Some(key) => Err(ApiError::client(
                "UnknownParameter",
                format!("The parameter {key} is not recognized"),
            )),
        }
    }
}

/// The parameters below a name.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'a> {
    form: &'a Form,
    prefix: String,
}

impl<'a> Scope<'a> {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The parameters below `name`.
    pub(crate) fn sub(&self, name: &str) -> Scope<'a> {
        Scope { form: self.form, prefix: format!("{}{name}.", self.prefix) }
    }

    /// Whether anything was sent below this name.
    pub(crate) fn is_empty(&self) -> bool {
        let below = self.form.values.range(self.prefix.clone()..).next();
        below.is_none_or(|(key, _)| !key.starts_with(&self.prefix))
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let key = self.key(name);
        let value = self.form.values.get(&key).cloned();
        if value.is_some() {
            self.form.read.borrow_mut().insert(key);
        }
        value
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Outcome<String> {
        let found = self.text(name).filter(|value| !value.is_empty());
        found.ok_or_else(|| ApiError::missing(&self.key(name)))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Outcome<Option<i64>> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|_| {
            let key = self.key(name);
            ApiError::invalid(format!("Invalid value '{value}' for {key}. Must be a number."))
        })
    }

    /// A truth value.
    pub(crate) fn flag(&self, name: &str) -> Outcome<Option<bool>> {
        match self.text(name).as_deref() {
            None => Ok(None),
            Some("true" | "True") => Ok(Some(true)),
            Some("false" | "False") => Ok(Some(false)),
            Some(value) => Err(ApiError::invalid(format!(
                "Invalid value '{value}' for {}. Must be true or false.",
                self.key(name)
            ))),
        }
    }

    /// The numbers N of the parameters `name.N…`, in order.
    fn numbers(&self, name: &str) -> BTreeSet<u32> {
        let prefix = self.key(&format!("{name}."));
        let below = self.form.values.range(prefix.clone()..);
        below
            .take_while(|(key, _)| key.starts_with(&prefix))
            .filter_map(|(key, _)| key[prefix.len()..].split('.').next()?.parse().ok())
            .collect()
    }

    /// `name.1`, `name.2`, ….
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let numbers = self.numbers(name).into_iter();
        numbers.filter_map(|n| self.text(&format!("{name}.{n}"))).collect()
    }

    /// `name.1.…`, `name.2.…`, ….
    pub(crate) fn entries(&self, name: &str) -> Vec<Scope<'a>> {
        let numbers = self.numbers(name).into_iter();
        numbers.map(|n| self.sub(&format!("{name}.{n}"))).collect()
    }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Percent-encodes as RFC 3986 and AWS signatures want it.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_name_and_number() {
        let form = Form::parse(
            "Action=A&Filter.1.Name=n&Filter.1.Value.1=a+b&Filter.1.Value.10=z&Filter.1.Value.2=%C3%A9\
             &Max=5&On=true&InstanceId.2=y&InstanceId.1=x",
        )
        .unwrap();
        let root = form.root();
        assert_eq!(root.list("InstanceId"), ["x", "y"]);
        let filters = root.entries("Filter");
        assert_eq!(filters.len(), 1);
        assert_eq!(filters[0].list("Value"), ["a b", "é", "z"]);
        assert_eq!((root.number("Max").unwrap(), root.flag("On").unwrap()), (Some(5), Some(true)));
        assert_eq!(form.finish().unwrap_err().message, "The parameter Action is not recognized");
        root.text("Action");
        assert_eq!(
            form.finish().unwrap_err().message,
            "The parameter Filter.1.Name is not recognized"
        );
        filters[0].text("Name");
        assert!(form.finish().is_ok());
        assert!(root.sub("Placement").is_empty() && !root.sub("Filter").is_empty());
    }

    #[test]
    fn what_cannot_be_read() {
        for (text, code) in [
            ("a=%zz", "MalformedQueryString"),
            ("a=%C3", "MalformedQueryString"),
            ("a=%4", "MalformedQueryString"),
            ("a=1&a=2", "InvalidQueryParameter"),
        ] {
            assert_eq!(Form::parse(text).unwrap_err().code, code, "{text}");
        }
        let form = Form::parse("n=x&b=y&e=").unwrap();
        let root = form.root();
        assert_eq!(root.number("n").unwrap_err().code, "InvalidParameterValue");
        assert_eq!(root.flag("b").unwrap_err().code, "InvalidParameterValue");
        assert_eq!(root.required("e").unwrap_err().code, "MissingParameter");
    }

    proptest::proptest! {
        #[test]
        fn decoding_undoes_encoding(text in ".*") {
            proptest::prop_assert_eq!(decode(&encode(&text)), Some(text));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            if let Ok(form) = Form::parse(&text) {
                let root = form.root();
                let _ = (root.list("a"), root.entries("a"), root.number("a"), form.finish());
            }
        }
    }
}
