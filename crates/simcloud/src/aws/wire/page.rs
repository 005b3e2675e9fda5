//! Answers in pages.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::form::Scope;
use crate::aws::model::{ApiError, Outcome};

/// Which page a call wants.
#[derive(Debug)]
pub(crate) struct Page {
    action: &'static str,
    most: usize,
    after: Option<String>,
}

/// How an action pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) action: &'static str,
    pub(crate) fewest: i64,
    pub(crate) most: i64,
    /// The identifiers that exclude pages.
    pub(crate) ids: &'static str,
}

impl Page {
    /// Reads `MaxResults` and `NextToken`. `named` says whether the call names resources, which
    /// excludes pages.
    pub(crate) fn read(scope: &Scope<'_>, rules: Rules, named: bool) -> Outcome<Self> {
        let Rules { action, fewest, most, ids } = rules;
        let wanted = scope.number("MaxResults")?;
        let token = scope.text("NextToken").filter(|token| !token.is_empty());
        if named && wanted.is_some() {
            return Err(ApiError::combination(format!(
                "The parameter {ids} cannot be used with the parameter maxResults"
            )));
        }
        if let Some(wanted) = wanted.filter(|n| *n < fewest) {
            return Err(ApiError::invalid(format!(
                "Value ( {wanted} ) for parameter maxResults is invalid. Expecting a value greater \
                 than {fewest}."
            )));
        }
        if let Some(wanted) = wanted.filter(|n| *n > most) {
            return Err(ApiError::invalid(format!(
                "Value ( {wanted} ) for parameter maxResults is invalid. Expecting a value less \
                 than or equal to {most}."
            )));
        }
        let after = token.map(|token| open(action, &token)).transpose()?;
        let size = wanted.unwrap_or(if named { i64::MAX } else { most });
        Ok(Self { action, most: usize::try_from(size).unwrap_or(usize::MAX), after })
    }

    /// The page, and the token of the next. `key` must rise from one entry to the next.
    pub(crate) fn cut<T>(
        &self,
        entries: impl Iterator<Item = T>,
        key: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let mut rest = entries
            .skip_while(|entry| self.after.as_ref().is_some_and(|after| key(entry) <= *after));
        let page: Vec<T> = rest.by_ref().take(self.most).collect();
        let more = rest.next().is_some();
        let token = page.last().filter(|_| more).map(|last| seal(self.action, &key(last)));
        (page, token)
    }
}

fn seal(action: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{action} {key}"))
}

/// A token is good for the action that gave it.
fn open(action: &str, token: &str) -> Outcome<String> {
    let text = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let key = text.and_then(|t| t.strip_prefix(action)?.strip_prefix(' ').map(str::to_owned));
    key.ok_or_else(|| ApiError::invalid("Unable to parse pagination token"))
}

#[cfg(test)]
mod tests {
    use super::super::form::Form;
    use super::*;

    const RULES: Rules = Rules { action: "DescribeX", fewest: 5, most: 10, ids: "idsSet" };

    fn read(text: &str, named: bool) -> Outcome<Page> {
        Page::read(&Form::parse(text)?.root(), RULES, named)
    }

    #[test]
    fn pages_cover_everything_once() {
        let mut seen = Vec::new();
        let mut token = None;
        loop {
            let after = token.map(|t| format!("&NextToken={t}")).unwrap_or_default();
            let page = read(&format!("MaxResults=5{after}"), false).unwrap();
            let (entries, next) = page.cut(0..13, |n| format!("{n:04}"));
            seen.extend(entries);
            token = next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..13).collect::<Vec<_>>());
    }

    #[test]
    fn rules() {
        assert_eq!(read("MaxResults=4", false).unwrap_err().code, "InvalidParameterValue");
        assert_eq!(read("MaxResults=11", false).unwrap_err().code, "InvalidParameterValue");
        assert_eq!(read("MaxResults=5", true).unwrap_err().code, "InvalidParameterCombination");
        assert_eq!(read("NextToken=x", false).unwrap_err().code, "InvalidParameterValue");
        let other = seal("DescribeY", "1");
        assert!(read(&format!("NextToken={other}"), false).is_err());
        let (all, next) = read("", false).unwrap().cut(0..12, |n| format!("{n:04}"));
        assert_eq!((all.len(), next.is_some()), (10, true));
        let (all, next) = read("", true).unwrap().cut(0..12, |n| format!("{n:04}"));
        assert_eq!((all.len(), next), (12, None));
    }
}
