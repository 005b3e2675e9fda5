//! Which functions there are, what they take and what they give.

use super::types::Type;

/// What is known about a call.
pub(super) enum Signature<'a> {
    Result(Type<'a>),
    /// There is no function of this name.
    Unknown,
    /// The function does not take these types.
    Mismatch,
}

/// Functions that are called by their name alone.
const GLOBAL: [&str; 21] = [
    "size",
    "type",
    "dyn",
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "duration",
    "timestamp",
    "matches",
    "url",
    "isURL",
    "ip",
    "isIP",
    "cidr",
    "isCIDR",
    "quantity",
    "isQuantity",
    "semver",
];

/// Functions that are called on a value.
const MEMBER: [&str; 87] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "upperAscii",
    "replace",
    "split",
    "substring",
    "trim",
    "join",
    "reverse",
    "format",
    "find",
    "findAll",
    "isSorted",
    "sum",
    "min",
    "max",
    "flatten",
    "distinct",
    "sort",
    "sortBy",
    "slice",
    "first",
    "last",
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "containsIP",
    "containsCIDR",
    "ip",
    "masked",
    "prefixLength",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "asApproximateFloat",
    "asInteger",
    "isInteger",
    "sign",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "validate",
    "value",
    "hasValue",
    "or",
    "orValue",
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "quote",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
    "unwrapOpt",
    "optMap",
    "optFlatMap",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// Functions of libraries with a name of their own.
pub(super) fn is_namespaced(name: &str) -> bool {
    let Some((namespace, function)) = name.split_once('.') else { return false };
    match namespace {
        "sets" => matches!(function, "contains" | "equivalent" | "intersects"),
        "optional" => matches!(function, "of" | "none" | "ofNonZeroValue" | "unwrap"),
        "jsonpatch" => function == "escapeKey",
        "strings" => function == "quote",
        "lists" => function == "range",
        "ip" => function == "isCanonical",
        "format" => true,
        _ => false,
    }
}

/// The type of a call of such a function.
pub(super) fn namespaced_result<'a>(name: &str, args: &[Type<'a>]) -> Type<'a> {
    let first = || Box::new(args.first().cloned().unwrap_or(Type::Dyn));
    match name {
        "sets.contains" | "sets.equivalent" | "sets.intersects" | "ip.isCanonical" => Type::Bool,
        "jsonpatch.escapeKey" | "strings.quote" => Type::Text,
        "optional.of" | "optional.ofNonZeroValue" => Type::Optional(first()),
        "optional.none" => Type::Optional(Box::new(Type::Dyn)),
        "lists.range" => Type::List(Box::new(Type::Int)),
        _ => Type::Dyn,
    }
}

/// What a call gives.
#[expect(clippy::match_same_arms, reason = "a table, grouped by what is called on what")]
pub(super) fn result<'a>(
    name: &str,
    target: Option<&Type<'a>>,
    args: &[Type<'a>],
) -> Signature<'a> {
    if target.is_none()
        && let Some(result) = operator(name, args)
    {
        return result;
    }
    let known = if target.is_some() { MEMBER.contains(&name) } else { is_global(name) };
    if !known {
        return Signature::Unknown;
    }
    let dynamic = |t: &Type<'_>| t.is_dyn();
    let on_text = |result: Type<'a>| {
        let fits = |t: &Type<'_>| t.is_dyn() || matches!(t, Type::Text);
        if target.is_none_or(fits) && args.iter().all(fits) {
            Signature::Result(result)
        } else {
            Signature::Mismatch
        }
    };
    match (name, target, args) {
        ("startsWith" | "endsWith", Some(_), [_]) => on_text(Type::Bool),
        ("matches", _, _) if args.len() + usize::from(target.is_some()) == 2 => on_text(Type::Bool),
        ("size", Some(value), []) | ("size", None, [value]) => {
            let sized = matches!(value, Type::Text | Type::Bytes | Type::List(_) | Type::Map(..));
            if sized || dynamic(value) { Signature::Result(Type::Int) } else { Signature::Mismatch }
        }
        ("size" | "startsWith" | "endsWith" | "matches", _, _) => Signature::Mismatch,
        ("reverse" | "sort" | "distinct" | "isSorted" | "sum", Some(value), [])
            if !is_list(value) =>
        {
            Signature::Mismatch
        }
        ("type", None, [_]) => Signature::Result(Type::Meta),
        ("bool" | "isURL" | "isIP" | "isCIDR" | "isQuantity" | "isSemver", None, _) => {
            Signature::Result(Type::Bool)
        }
        ("int", None, _) => Signature::Result(Type::Int),
        ("string", None, _) => Signature::Result(Type::Text),
        ("uint", None, _) => Signature::Result(Type::Uint),
        ("double", None, _) => Signature::Result(Type::Double),
        ("bytes", None, _) => Signature::Result(Type::Bytes),
        ("duration", None, _) => Signature::Result(Type::Duration),
        ("timestamp", None, _) => Signature::Result(Type::Timestamp),
        ("url", None, _) => Signature::Result(Type::Opaque("kubernetes.URL")),
        ("ip", _, _) => Signature::Result(Type::Opaque("net.IP")),
        ("cidr", None, _) => Signature::Result(Type::Opaque("net.CIDR")),
        ("quantity", None, _) => Signature::Result(Type::Opaque("kubernetes.Quantity")),
        ("semver", None, _) => Signature::Result(Type::Opaque("kubernetes.Semver")),
        (
            "contains"
            | "isSorted"
            | "hasValue"
            | "isGreaterThan"
            | "isLessThan"
            | "isInteger"
            | "isUnspecified"
            | "isLoopback"
            | "isGlobalUnicast"
            | "isLinkLocalUnicast"
            | "isLinkLocalMulticast"
            | "containsIP"
            | "containsCIDR",
            Some(_),
            _,
        ) => Signature::Result(Type::Bool),
        (
            "charAt" | "lowerAscii" | "upperAscii" | "replace" | "substring" | "trim" | "join"
            | "format" | "find" | "getScheme" | "getHost" | "getHostname" | "getPort"
            | "getEscapedPath" | "quote",
            Some(_),
            _,
        ) => Signature::Result(Type::Text),
        ("split" | "findAll", Some(_), _) => Signature::Result(Type::List(Box::new(Type::Text))),
        (
            "family" | "prefixLength" | "compareTo" | "asInteger" | "sign" | "major" | "minor"
            | "patch" | "lastIndexOf" | "indexOf" | "getFullYear" | "getMonth" | "getDate"
            | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" | "getHours" | "getMinutes"
            | "getSeconds" | "getMilliseconds",
            Some(_),
            _,
        ) => Signature::Result(Type::Int),
        ("value", Some(Type::Optional(inner)), []) => Signature::Result(inner.as_ref().clone()),
        ("orValue", Some(Type::Optional(inner)), [other]) => {
            Signature::Result(inner.as_ref().clone().joined(other))
        }
        ("min" | "max" | "sum", Some(Type::List(items)), []) => {
            Signature::Result(items.as_ref().clone())
        }
        ("distinct" | "sort" | "slice" | "reverse", Some(list @ Type::List(_)), _) => {
            Signature::Result(list.clone())
        }
        _ => Signature::Result(Type::Dyn),
    }
}

fn is_list(value: &Type<'_>) -> bool {
    value.is_dyn() || matches!(value, Type::List(_))
}

fn is_global(name: &str) -> bool {
    GLOBAL.contains(&name) || matches!(name, "isSemver")
}

fn operator<'a>(name: &str, args: &[Type<'a>]) -> Option<Signature<'a>> {
    let passed = |fits: bool, result: Type<'a>| {
        Some(if fits { Signature::Result(result) } else { Signature::Mismatch })
    };
    let is_flag = |t: &Type<'_>| t.is_dyn() || t.is_bool();
    match (name, args) {
        ("_&&_" | "_||_", [a, b]) => passed(is_flag(a) && is_flag(b), Type::Bool),
        ("!_", [a]) => passed(is_flag(a), Type::Bool),
        ("-_", [a]) => {
            let fits = a.is_dyn() || matches!(a, Type::Int | Type::Double);
            passed(fits, a.clone())
        }
        ("_?_:_", [condition, yes, no]) => {
            passed(is_flag(condition) && yes.agrees(no), yes.clone().joined(no))
        }
        ("_==_" | "_!=_", [a, b]) => passed(a.agrees(b), Type::Bool),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => {
            let ordered = |t: &Type<'_>| {
                t.is_numeric()
                    || matches!(
                        t,
                        Type::Bool | Type::Text | Type::Bytes | Type::Duration | Type::Timestamp
                    )
            };
            let both = (a.is_dyn() || ordered(a)) && (b.is_dyn() || ordered(b));
            passed(both && (a.agrees(b) || (a.is_numeric() && b.is_numeric())), Type::Bool)
        }
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [a, b]) => Some(arithmetic(name, a, b)),
        ("@in", [a, b]) => passed(
            match b {
                Type::List(items) => a.agrees(items),
                Type::Map(keys, _) => a.agrees(keys),
                _ => b.is_dyn(),
            },
            Type::Bool,
        ),
        ("_[_]", [a, b]) => match a {
            Type::List(items) => passed(b.is_dyn() || b.is_numeric(), items.as_ref().clone()),
            Type::Map(keys, values) => passed(b.agrees(keys), values.as_ref().clone()),
            Type::Optional(_) | Type::Dyn => passed(true, Type::Dyn),
            _ => passed(false, Type::Dyn),
        },
        ("_[?_]", [a, _]) => Some(Signature::Result(Type::Optional(Box::new(match a {
            Type::List(items) => items.as_ref().clone(),
            Type::Map(_, values) => values.as_ref().clone(),
            _ => Type::Dyn,
        })))),
        ("_?._", [..]) => Some(Signature::Result(Type::Optional(Box::new(Type::Dyn)))),
        _ => None,
    }
}

fn arithmetic<'a>(name: &str, a: &Type<'a>, b: &Type<'a>) -> Signature<'a> {
    if a.is_dyn() || b.is_dyn() {
        return Signature::Result(Type::Dyn);
    }
    let result = match (name, a, b) {
        (_, Type::Int, Type::Int)
        | (_, Type::Uint, Type::Uint)
        | ("_+_" | "_-_" | "_*_" | "_/_", Type::Double, Type::Double)
        | ("_+_", Type::Text, Type::Text)
        | ("_+_", Type::Bytes, Type::Bytes)
        | ("_+_" | "_-_", Type::Duration | Type::Timestamp, Type::Duration) => a.clone(),
        ("_+_", Type::Duration, Type::Timestamp) => Type::Timestamp,
        ("_-_", Type::Timestamp, Type::Timestamp) => Type::Duration,
        ("_+_", Type::List(x), Type::List(y)) if x.agrees(y) => a.clone().joined(b),
        _ => return Signature::Mismatch,
    };
    Signature::Result(result)
}
