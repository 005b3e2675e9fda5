//! Faults, throttling, signatures, the audit log and the control surface.

use serde_json::{Value, json};

use super::*;
use crate::aws::{Effect, Fault};

impl Cloud {
    async fn control(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(format!("http://localhost/_fleetwright/{path}"))
            .body(Bytes::from(body))
            .unwrap();
        let answer = self.aws.clone().oneshot(request).await.unwrap();
        (answer.status().as_u16(), serde_json::from_slice(answer.body()).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_has_its_effect_and_a_lost_request_has_none() {
    let cloud = Cloud::new();
    cloud.aws.fault(Fault::next("RunInstances", Effect::Lost { after: false }));
    cloud.aws.fault(Fault::next("RunInstances", Effect::Lost { after: true }));
    let launch = cloud.launch(1, "&ClientToken=t");
    assert_eq!(cloud.send("2016-11-15", &launch).await, Err(NoAnswer::NotSent));
    assert!(cloud.states().await.is_empty());
    assert_eq!(cloud.send("2016-11-15", &launch).await, Err(NoAnswer::Lost));
    assert_eq!(cloud.states().await.len(), 1);
    cloud.run(1, "&ClientToken=t").await;
    assert_eq!(cloud.states().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn errors_delays_and_throttling_are_scripted() {
    let cloud = Cloud::new();
    let error = Effect::error("InsufficientInstanceCapacity", 500, "none left");
    cloud.aws.fault(Fault::next("RunInstances", error).times(2));
    cloud.aws.fault(Fault::next("DescribeInstances", Effect::Delay(7.0)));
    cloud.aws.fault(Fault::next("CreateTags", Effect::Throttle));
    for _ in 0..2 {
        let refused = cloud.call(&cloud.launch(1, "")).await;
        assert_eq!(refused, Err((500, "InsufficientInstanceCapacity".into())));
    }
    let made = cloud.run(1, "").await;
    let before = tokio::time::Instant::now();
    cloud.describe("").await;
    assert_eq!(before.elapsed(), Duration::from_secs(7));
    let tag = format!("Action=CreateTags&ResourceId.1={}&Tag.1.Key=a", made[0]);
    assert_eq!(cloud.call(&tag).await, Err((503, "RequestLimitExceeded".into())));
    let after = Effect::Error {
        code: "InternalError".into(),
        status: 500,
        message: String::new(),
        after: true,
    };
    cloud.aws.fault(Fault::next("RunInstances", after));
    assert!(cloud.call(&cloud.launch(1, "")).await.is_err());
    assert_eq!(cloud.states().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_are_throttled_and_counted() {
    let cloud = Cloud::with(|settings| settings.throttling = Throttling::default());
    let mut throttled = 0;
    for _ in 0..7 {
        throttled += u32::from(cloud.call(&cloud.launch(1, "")).await.is_err());
    }
    assert_eq!(throttled, 2);
    assert_eq!(cloud.aws.count("ec2:RunInstances"), 7);
    assert_eq!(cloud.aws.errors()["ec2:RunInstances RequestLimitExceeded"], 2);
    cloud.pass(1).await;
    cloud.run(1, "&UserData=c2VjcmV0").await;
    let calls = cloud.aws.calls();
    let last = calls.last().unwrap();
    assert_eq!((last.status, last.parameters["MinCount"].as_str()), (Some(200), "1"));
    assert_eq!(last.parameters["UserData"], "-", "it may hold secrets");
}

#[tokio::test(start_paused = true)]
async fn unsigned_calls_are_refused() {
    let cloud = Cloud::with(|settings| settings.signatures = true);
    assert_eq!(cloud.call(&cloud.launch(1, "")).await, Err((401, "AuthFailure".into())));
    let who = cloud.call_version("2011-06-15", "Action=GetCallerIdentity").await;
    assert_eq!(who, Err((403, "MissingAuthenticationToken".into())));
    let role = "Action=AssumeRoleWithWebIdentity&RoleArn=arn:aws:iam::123456789012:role/r\
                &RoleSessionName=s&WebIdentityToken=a.b.c";
    let body = cloud.call_version("2011-06-15", role).await.unwrap();
    assert!(text(&body, "AccessKeyId").starts_with("ASIA"));
    assert_eq!(text(&body, "Expiration"), "1970-01-01T01:00:00.000Z");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_call() {
    let cloud = Cloud::new();
    for (version, parameters, expected) in [
        ("2016-11-15", "", (400, "MissingAction")),
        ("2016-11-15", "Action=Dance", (400, "InvalidAction")),
        ("2015-12-01", "Action=RunInstances", (400, "InvalidAction")),
        ("1999-01-01", "Action=DescribeInstances", (400, "NoSuchVersion")),
        ("2016-11-15", "Action=DescribeInstances&Colour=red", (400, "UnknownParameter")),
        ("2016-11-15", "Action=DescribeInstances&X=%zz", (400, "MalformedQueryString")),
    ] {
        let answer = cloud.call_version(version, parameters).await;
        assert_eq!(answer, Err((expected.0, expected.1.to_owned())), "{parameters}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_control_surface() {
    let cloud = Cloud::new();
    let made = cloud.run(1, "&InstanceMarketOptions.MarketType=spot").await;
    let (status, instances) = cloud.control("GET", "instances", Value::Null).await;
    assert_eq!((status, instances[0]["state"].as_str()), (200, Some("pending")));
    let path = format!("instances/{}", made[0]);
    let (_, struck) = cloud.control("POST", &path, json!({"strike": "terminate"})).await;
    assert_eq!(struck["current"], "shutting-down");
    let (status, _) = cloud.control("POST", "instances/i-x", json!({"strike": "stop"})).await;
    assert_eq!(status, 404);
    let limit = json!({"zone": ZONE, "spot": false, "limit": 0});
    cloud.control("POST", "capacity", limit).await;
    let (_, limits) = cloud.control("GET", "capacity", Value::Null).await;
    assert_eq!(limits[0]["inUse"], 0);
    assert!(cloud.call(&cloud.launch(1, "")).await.is_err());
    cloud.control("DELETE", "capacity", Value::Null).await;
    let fault = json!({"action": "RunInstances", "effect": {"error": {"code": "Oops"}}});
    assert_eq!(cloud.control("POST", "faults", fault).await.0, 200);
    assert_eq!(code(cloud.call(&cloud.launch(1, "")).await), "Oops");
    let price = json!({"zone": ZONE, "instanceType": "m5.large", "price": "9.9"});
    assert_eq!(cloud.control("POST", "spot-price", price).await.0, 200);
    let patch = json!({"delays": {"boot": 60}});
    let (status, settings) = cloud.control("PATCH", "settings", patch).await;
    assert_eq!((status, settings["delays"]["boot"].as_f64()), (200, Some(60.0)));
    assert_eq!(cloud.control("PATCH", "settings", json!({"delays": 3})).await.0, 400);
    let (_, counts) = cloud.control("GET", "counts", Value::Null).await;
    assert_eq!(counts["calls"]["ec2:RunInstances"], 3);
    let (_, groups) = cloud.control("GET", "groups", Value::Null).await;
    assert_eq!(groups, json!([]));
    assert_eq!(cloud.control("GET", "moon", Value::Null).await.0, 404);
    assert_eq!(cloud.control("POST", "faults", json!({"effect": 1})).await.0, 400);
}
