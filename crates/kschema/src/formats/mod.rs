//! The formats of strings and numbers that schemas can ask for.

mod mail;
mod net;
mod numbers;
mod time;
mod uri;

use std::sync::LazyLock;

use regex::Regex;

use crate::names;
use crate::schema::Types;

pub(crate) use uri::is_absolute_uri;

/// A format that is checked; others are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 32 bit integers.
    Int32,
    /// 64 bit integers.
    Int64,
    /// Single precision numbers.
    Float,
    /// Double precision numbers.
    Double,
    /// Strings that pass a check.
    Text(TextFormat),
}

/// The formats of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are named as the formats are")]
pub enum TextFormat {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    K8sShortName,
    K8sLongName,
}

impl Format {
    /// What is checked for `format` on values of these types.
    pub fn checked(format: &str, types: Types) -> Option<Self> {
        if format.is_empty() {
            return None;
        }
        if types == Types::INTEGER {
            return match format {
                "int32" => Some(Self::Int32),
                "int64" => Some(Self::Int64),
                _ => None,
            };
        }
        if types == Types::NUMBER {
            return match format {
                "float" => Some(Self::Float),
                "double" => Some(Self::Double),
                _ => None,
            };
        }
        let text = [Types::default(), Types::STRING, Types::INTEGER.and(Types::STRING)];
        if text.contains(&types) { TextFormat::named(format).map(Self::Text) } else { None }
    }
}

impl TextFormat {
    /// The format of this name; dashes do not count.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            "k8sshortname" => Self::K8sShortName,
            "k8slongname" => Self::K8sLongName,
            _ => return None,
        })
    }

    /// Whether the text has this format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => uri::is_request_uri(text),
            Self::Email => mail::is_address(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && net::parse_ip_sloppy(text).is_some(),
            Self::Ipv6 => text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
            Self::Cidr => net::is_cidr(text),
            Self::Mac => net::is_mac(text),
            Self::Uuid => UUID.accepts(text),
            Self::Uuid3 => UUID3.accepts(text),
            Self::Uuid4 => UUID4.accepts(text),
            Self::Uuid5 => UUID5.accepts(text),
            Self::Isbn => numbers::is_isbn10(text) || numbers::is_isbn13(text),
            Self::Isbn10 => numbers::is_isbn10(text),
            Self::Isbn13 => numbers::is_isbn13(text),
            Self::CreditCard => numbers::is_credit_card(text),
            Self::Ssn => text.len() == 11 && SSN.accepts(text),
            Self::HexColor => HEX_COLOR.accepts(text),
            Self::RgbColor => RGB_COLOR.accepts(text),
            Self::Byte => BASE64.accepts(text),
            Self::Password => true,
            Self::Date => time::is_date(text),
            Self::Duration => time::is_duration(text),
            Self::DateTime => time::is_date_time(text),
            Self::K8sShortName => names::dns_1123_label(text).is_empty(),
            Self::K8sLongName => names::dns_1123_subdomain(text).is_empty(),
        }
    }
}

/// A constant pattern, compiled when it is first used.
struct Constant(LazyLock<Option<Regex>>);

impl Constant {
    fn accepts(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

macro_rules! constant {
    ($name:ident, $pattern:expr) => {
        static $name: Constant = Constant(LazyLock::new(|| Regex::new($pattern).ok()));
    };
}
use constant;

constant!(UUID, "(?i)^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$");
constant!(UUID3, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
constant!(UUID4, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
constant!(UUID5, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
constant!(SSN, "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$");
constant!(HEX_COLOR, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
constant!(
    RGB_COLOR,
    r"(?x)^rgb\(
        [\t\n\f\r\ ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r\ ]*,
        [\t\n\f\r\ ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r\ ]*,
        [\t\n\f\r\ ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r\ ]*\)$"
);
constant!(
    BASE64,
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
);
constant!(
    HOSTNAME,
    r"(?x)^(
        [a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)
        |
        ([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.))+
        ([a-zA-Z\p{L}]){2,63}
    )$"
);

fn is_hostname(text: &str) -> bool {
    HOSTNAME.accepts(text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_and_refuse() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f", ""]),
            (
                "uri",
                &[
                    "http://a.b/c?d#e",
                    "/abs",
                    "mailto:a@b",
                    "xyz://x",
                    "http://a:80",
                    "http://[::1]:80/",
                ],
                &[
                    "",
                    "foobar.com",
                    "./rel",
                    "http://a b/",
                    "http://a/%zz",
                    ":x",
                    "http://a:b/",
                    "a\u{7}b",
                ],
            ),
            (
                "email",
                &["a@b", "A B <a@b.c>", "\"a b\"@c"],
                &["a", "a@", "@b", "a b@c", "a@b, c@d"],
            ),
            ("hostname", &["a", "a.example.com", "例.com"], &["", "a_b.c", "-a.com", "a."]),
            (
                "ipv4",
                &["1.2.3.4", "01.02.3.4", "::ffff:1.2.3.4"],
                &["1.2.3", "1.2.3.256", "::1", "1.2.3.x"],
            ),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1.2.3.4", "::g", "fe80::1%eth0"]),
            (
                "cidr",
                &["10.0.0.0/8", "::/0", "010.0.0.1/32"],
                &["10.0.0.0", "10.0.0.0/33", "::/129", "1.2.3.4/-1", "1.2.3.4/"],
            ),
            (
                "mac",
                &["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455"],
                &["00:11:22:33:44", "00:11-22:33:44:55", "zz:11:22:33:44:55", "00112233.4455"],
            ),
            (
                "uuid",
                &["e0f9eb7a-9a5a-11ef-8d7b-0242ac120002", "E0F9EB7A9A5A11EF8D7B0242AC120002"],
                &["e0f9eb7a"],
            ),
            (
                "uuid4",
                &["7c9e6679-7425-40de-944b-e07fc1f90ae7"],
                &["e0f9eb7a-9a5a-11ef-8d7b-0242ac120002"],
            ),
            ("isbn", &["0321751043", "978-0321751041"], &["1234567890"]),
            ("creditcard", &["4220-8554-2622-2389"], &["4220855426213389", ""]),
            ("ssn", &["111-11-1111"], &["111111111"]),
            ("hexcolor", &["#f00", "CCccCC"], &["#ff", "fff0"]),
            ("rgbcolor", &["rgb(0,  31, 255)"], &["rgb(1,349,275)", "rgb(01,31,255)"]),
            ("byte", &["aGVsbG8=", "YWJj"], &["", "a", "aGVsbG8"]),
            ("password", &["", "x"], &[]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-1-1", "2024-13-01", "x"]),
            (
                "date-time",
                &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"],
                &["2014-12-15", "2014-12-15T24:00:00Z", "2014-12-15T19:30:20", "abc"],
            ),
            (
                "duration",
                &["1h30m", "-1.5s", "0", "22 ns", "3 days", "1 week", "5sec"],
                &["", "1", "abc", "1 year"],
            ),
            ("k8s-short-name", &["a-1"], &["a.b", "A"]),
            ("k8s-long-name", &["a.b"], &["a..b"]),
        ];
        for (name, good, bad) in cases {
            let format = TextFormat::named(name).unwrap();
            for text in *good {
                assert!(format.accepts(text), "{name} should accept {text:?}");
            }
            for text in *bad {
                assert!(!format.accepts(text), "{name} should refuse {text:?}");
            }
        }
    }

    #[test]
    fn formats_apply_to_their_types() {
        assert_eq!(Format::checked("int32", Types::INTEGER), Some(Format::Int32));
        assert_eq!(Format::checked("int32", Types::STRING), None);
        assert_eq!(Format::checked("float", Types::NUMBER), Some(Format::Float));
        assert_eq!(Format::checked("uuid", Types::OBJECT), None);
        assert_eq!(
            Format::checked("date-time", Types::default()),
            Some(Format::Text(TextFormat::DateTime))
        );
        assert_eq!(Format::checked("made-up", Types::STRING), None);
    }
}
