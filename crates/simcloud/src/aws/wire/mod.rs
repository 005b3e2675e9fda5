//! The protocol: forms in, XML out, as EC2, Elastic Load Balancing and STS speak it.

mod ec2;
mod elb;
mod elbv2;
mod filter;
pub(crate) mod form;
mod page;
pub(crate) mod sign;
mod sts;
mod xml;

use jiff::Timestamp;

use self::{
    form::{Form, Scope},
    sign::Keys,
    xml::Xml,
};
use super::model::{ApiError, Outcome, Region};

/// Which of the services a call is for. They share a port, and differ by their version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Api {
    Ec2,
    Elb,
    ElbV2,
    Sts,
}

impl Api {
    /// By the version that every call carries.
    pub(crate) fn of_version(version: &str) -> Option<Self> {
        VERSIONS.iter().find(|(known, _)| *known == version).map(|(_, api)| *api)
    }

    /// Its name in the audit log, as IAM writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Elb | Self::ElbV2 => "elasticloadbalancing",
            Self::Sts => "sts",
        }
    }

    /// Every call that is served.
    fn actions(self) -> &'static [(&'static str, Handler)] {
        match self {
            Self::Ec2 => ec2::ACTIONS,
            Self::Elb => elb::ACTIONS,
            Self::ElbV2 => elbv2::ACTIONS,
            Self::Sts => sts::ACTIONS,
        }
    }

    fn namespace(self) -> &'static str {
        match self {
            Self::Ec2 => "http://ec2.amazonaws.com/doc/2016-11-15/",
            Self::Elb => "http://elasticloadbalancing.amazonaws.com/doc/2012-06-01/",
            Self::ElbV2 => "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/",
            Self::Sts => "https://sts.amazonaws.com/doc/2011-06-15/",
        }
    }
}

/// What carries out a call.
type Handler = fn(&mut Call<'_>) -> Outcome<Xml>;

/// Every call that is served: (version of the protocol, action).
pub(crate) fn served() -> impl Iterator<Item = (&'static str, &'static str)> {
    VERSIONS
        .iter()
        .flat_map(|(version, api)| api.actions().iter().map(|(action, _)| (*version, *action)))
}

/// The versions that callers name.
const VERSIONS: [(&str, Api); 4] = [
    ("2016-11-15", Api::Ec2),
    ("2012-06-01", Api::Elb),
    ("2015-12-01", Api::ElbV2),
    ("2011-06-15", Api::Sts),
];

/// A call in progress.
pub(crate) struct Call<'a> {
    pub(crate) region: &'a mut Region,
    pub(crate) keys: &'a mut Keys,
    pub(crate) now: Timestamp,
    pub(crate) form: &'a Form,
    /// Who calls, if the signature says.
    pub(crate) caller: Option<String>,
}

impl Call<'_> {
    /// The parameters.
    fn scope(&self) -> Scope<'_> {
        self.form.root()
    }

    /// All parameters have been read: fails on unknown ones, and on a dry run.
    fn ready(&self) -> Outcome<()> {
        let dry_run = self.scope().flag("DryRun")?.unwrap_or(false);
        self.form.finish()?;
        if dry_run { Err(ApiError::dry_run()) } else { Ok(()) }
    }
}

/// Carries out a call: the body of its answer.
pub(crate) fn answer(
    api: Api,
    action: &str,
    call: &mut Call<'_>,
    request: &str,
) -> Outcome<String> {
    let scope = call.scope();
    scope.text("Action");
    scope.text("Version");
    let handler = api.actions().iter().find(|(name, _)| *name == action);
    let (_, handler) = handler.ok_or_else(|| unknown_action(action))?;
    let body = handler(call)?;
    let mut xml = Xml::default();
    xml.root(&format!("{action}Response"), api.namespace(), |xml| {
        if api == Api::Ec2 {
            xml.text("requestId", request);
            xml.raw(&body);
        } else {
            xml.node(&format!("{action}Result"), |xml| xml.raw(&body));
            xml.node("ResponseMetadata", |xml| xml.text("RequestId", request));
        }
    });
    Ok(document(xml))
}

/// The body of a refusal.
pub(crate) fn refusal(api: Api, error: &ApiError, request: &str) -> String {
    let mut xml = Xml::default();
    if api == Api::Ec2 {
        xml.node("Response", |xml| {
            xml.node("Errors", |xml| {
                xml.node("Error", |xml| {
                    xml.text("Code", &error.code);
                    xml.text("Message", &error.message);
                });
            });
            xml.text("RequestID", request);
        });
    } else {
        xml.root("ErrorResponse", api.namespace(), |xml| {
            xml.node("Error", |xml| {
                xml.text("Type", if error.status < 500 { "Sender" } else { "Receiver" });
                xml.text("Code", &error.code);
                xml.text("Message", &error.message);
            });
            xml.text("RequestId", request);
        });
    }
    document(xml)
}

fn document(xml: Xml) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", xml.finish())
}

/// There is no such action.
fn unknown_action(action: &str) -> ApiError {
    ApiError::client(
        "InvalidAction",
        format!("The action {action} is not valid for this web service."),
    )
}
