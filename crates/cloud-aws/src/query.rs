//! Requests are forms: nested members are joined by dots, lists are counted from one.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::model::Operation;

/// All that RFC 3986 does not call unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parameters of a request, sorted by what their members are called.
pub fn parameters<O: Operation>(request: &O) -> Result<Vec<(String, String)>, serde_json::Error> {
    let mut parameters = vec![
        ("Action".to_owned(), O::ACTION.to_owned()),
        ("Version".to_owned(), O::SERVICE.version.to_owned()),
    ];
    flatten(String::new(), &serde_json::to_value(request)?, &mut parameters);
    Ok(parameters)
}

fn flatten(name: String, value: &Value, parameters: &mut Vec<(String, String)>) {
    let inner = |part: &str| {
        if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
    };
    match value {
        Value::Null => {}
        Value::Bool(truth) => parameters.push((name, truth.to_string())),
        Value::Number(number) => parameters.push((name, number.to_string())),
        Value::String(text) => parameters.push((name, text.clone())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(inner(&(index + 1).to_string()), item, parameters);
            }
        }
        Value::Object(members) => {
            for (member, value) in members {
                flatten(inner(member), value, parameters);
            }
        }
    }
}

/// The body of a form.
pub fn form(parameters: &[(String, String)]) -> String {
    let mut body = String::new();
    for (name, value) in parameters {
        let separator = if body.is_empty() { "" } else { "&" };
        let _ = write!(
            body,
            "{separator}{}={}",
            utf8_percent_encode(name, ENCODED),
            utf8_percent_encode(value, ENCODED)
        );
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ec2::requests as ec2, elbv2::requests as elbv2};

    #[test]
    fn members_lists_and_structures_of_ec2() {
        let request = ec2::RunInstancesRequest {
            min_count: Some(1),
            max_count: Some(2),
            placement: Some(ec2::Placement {
                group_name: Some("a group".to_owned()),
                ..Default::default()
            }),
            network_interfaces: vec![ec2::InstanceNetworkInterfaceSpecification {
                device_index: Some(0),
                associate_public_ip_address: Some(false),
                groups: vec!["sg-1".to_owned(), "sg-2".to_owned()],
                ..Default::default()
            }],
            tag_specifications: vec![ec2::TagSpecification {
                resource_type: Some("instance".to_owned()),
                tags: vec![ec2::Tag { key: Some("a/ä".to_owned()), value: Some(String::new()) }],
            }],
            ..Default::default()
        };
        let parameters = parameters(&request).unwrap();
        assert_eq!(
            form(&parameters),
            "Action=RunInstances&Version=2016-11-15&MaxCount=2&MinCount=1\
             &NetworkInterface.1.AssociatePublicIpAddress=false&NetworkInterface.1.DeviceIndex=0\
             &NetworkInterface.1.SecurityGroupId.1=sg-1&NetworkInterface.1.SecurityGroupId.2=sg-2\
             &Placement.GroupName=a%20group&TagSpecification.1.ResourceType=instance\
             &TagSpecification.1.Tag.1.Key=a%2F%C3%A4&TagSpecification.1.Tag.1.Value="
        );
    }

    #[test]
    fn lists_of_the_other_services() {
        let request = elbv2::RegisterTargetsInput {
            target_group_arn: Some("arn".to_owned()),
            targets: vec![elbv2::TargetDescription { id: Some("i-1".to_owned()) }],
        };
        assert_eq!(
            form(&parameters(&request).unwrap()),
            "Action=RegisterTargets&Version=2015-12-01&TargetGroupArn=arn\
             &Targets.member.1.Id=i-1"
        );
    }
}
