//! The metadata service, as an instance sees it.

use bytes::Bytes;
use http::{Method, Request};
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::Cloud;
use crate::{
    NoAnswer,
    aws::{
        Effect, Fault, METADATA,
        model::{lifecycle::Strike, maintenance::Code, types},
    },
};

const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";
const TOKEN: &str = "x-aws-ec2-metadata-token";
const SPOT: &str = "&InstanceMarketOptions.MarketType=spot";

type Seen = Result<(u16, String), NoAnswer>;

async fn ask(
    cloud: &Cloud,
    id: &str,
    method: Method,
    path: &str,
    header: Option<(&str, &str)>,
) -> Seen {
    let mut request = Request::builder().method(method).uri(format!("http://x{path}"));
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let answer = cloud.aws.metadata(id).oneshot(request.body(Bytes::new()).unwrap()).await?;
    let status = answer.status().as_u16();
    Ok((status, String::from_utf8_lossy(answer.body()).into_owned()))
}

async fn token(cloud: &Cloud, id: &str) -> String {
    let ttl = Some((TTL, "60"));
    ask(cloud, id, Method::PUT, "/latest/api/token", ttl).await.unwrap().1
}

async fn get(cloud: &Cloud, id: &str, item: &str) -> Seen {
    let token = token(cloud, id).await;
    let path = format!("/latest/meta-data/{item}");
    ask(cloud, id, Method::GET, &path, Some((TOKEN, &token))).await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_without_a_token() {
    let cloud = Cloud::new();
    let made = cloud.run(2, "").await;
    let item = "/latest/meta-data/instance-id";
    let status = |seen: Seen| seen.unwrap().0;
    assert_eq!(status(ask(&cloud, &made[0], Method::GET, item, None).await), 401);
    let path = "/latest/api/token";
    for (ttl, expected) in
        [(None, 400), (Some("0"), 400), (Some("21601"), 400), (Some("x"), 400), (Some("1"), 200)]
    {
        let header = ttl.map(|ttl| (TTL, ttl));
        assert_eq!(status(ask(&cloud, &made[0], Method::PUT, path, header).await), expected);
    }
    assert_eq!(status(ask(&cloud, &made[0], Method::GET, path, None).await), 405);
    let token = token(&cloud, &made[0]).await;
    let with = Some((TOKEN, token.as_str()));
    let told = ask(&cloud, &made[0], Method::GET, item, with).await.unwrap();
    assert_eq!(told, (200, made[0].clone()));
    // The token of another instance, and one that has ended.
    assert_eq!(status(ask(&cloud, &made[1], Method::GET, item, with).await), 401);
    cloud.pass(60).await;
    assert_eq!(status(ask(&cloud, &made[0], Method::GET, item, with).await), 401);
}

#[tokio::test(start_paused = true)]
async fn an_interruption_shows_with_its_exact_time() {
    let cloud = Cloud::new();
    let made = cloud.run(1, SPOT).await;
    cloud.pass(10).await;
    let items =
        ["spot/instance-action", "spot/termination-time", "events/recommendations/rebalance"];
    for item in items {
        assert_eq!(get(&cloud, &made[0], item).await.unwrap().0, 404, "{item}");
    }
    assert_eq!(get(&cloud, &made[0], "events/maintenance/scheduled").await.unwrap().1, "[]");
    let strike = |how| cloud.aws.with(|region, now| region.strike(now, &made[0], how)).unwrap();
    strike(Strike::Rebalance);
    strike(Strike::Interrupt);
    let (_, body) = get(&cloud, &made[0], items[0]).await.unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body, json!({"action": "terminate", "time": "1970-01-01T00:02:10Z"}));
    assert_eq!(get(&cloud, &made[0], items[1]).await.unwrap().1, "1970-01-01T00:02:10Z");
    assert!(get(&cloud, &made[0], items[2]).await.unwrap().1.contains("1970-01-01T00:00:10Z"));
    cloud.pass(120).await;
    let ended = ask(&cloud, &made[0], Method::GET, "/", None).await;
    assert_eq!(ended, Err(NoAnswer::NotSent), "an instance that shuts down asks nothing");
}

#[tokio::test(start_paused = true)]
async fn scheduled_events_come_and_go() {
    let cloud = Cloud::new();
    let made = cloud.run(1, "").await;
    let at = Timestamp::from_second(86_400).unwrap();
    let code = Code::InstanceRetirement;
    cloud.aws.with(|region, _| region.schedule_event(&made[0], code, at, at)).unwrap();
    let (_, body) = get(&cloud, &made[0], "events/maintenance/scheduled").await.unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body[0]["NotBefore"], "2 Jan 1970 00:00:00 GMT");
    assert_eq!(
        (&body[0]["Code"], &body[0]["State"]),
        (&json!("instance-retirement"), &json!("active"))
    );
    assert!(cloud.aws.with(|region, _| region.cancel_events(&made[0])));
    assert_eq!(get(&cloud, &made[0], "events/maintenance/scheduled").await.unwrap().1, "[]");
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_metadata_service() {
    let cloud = Cloud::new();
    let made = cloud.run(1, "").await;
    let item = "instance-id";
    let on_item = |effect| Fault::next(METADATA, effect).with_parameter(item);
    cloud.aws.fault(on_item(Effect::error("", 503, "busy")));
    assert_eq!(get(&cloud, &made[0], item).await, Ok((503, "busy".to_owned())));
    cloud.aws.fault(on_item(Effect::Throttle));
    assert_eq!(get(&cloud, &made[0], item).await.unwrap().0, 429);
    cloud.aws.fault(on_item(Effect::Garbage));
    assert!(get(&cloud, &made[0], item).await.unwrap().1.starts_with("<html>"));
    cloud.aws.fault(on_item(Effect::Endless));
    assert!(get(&cloud, &made[0], item).await.unwrap().1.len() > 1 << 20);
    cloud.aws.fault(on_item(Effect::Delay(30.0)));
    let before = tokio::time::Instant::now();
    assert_eq!(get(&cloud, &made[0], item).await.unwrap().0, 200);
    assert_eq!(before.elapsed().as_secs(), 30);
    cloud.aws.fault(on_item(Effect::Hang));
    let hour = std::time::Duration::from_hours(1);
    assert!(tokio::time::timeout(hour, get(&cloud, &made[0], item)).await.is_err());
    // A fault of the API does not hit the metadata service, nor the other way round.
    cloud.aws.fault(Fault { action: None, ..Fault::next("", Effect::Throttle) });
    assert_eq!(get(&cloud, &made[0], item).await.unwrap().0, 200);
    cloud.aws.fault(on_item(Effect::Throttle));
    assert!(cloud.call("Action=DescribeInstances").await.is_err());
    assert_eq!(cloud.aws.faults().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_price_that_rises_interrupts_who_pays_less() {
    let cloud = Cloud::new();
    let at_most = |price| format!("{SPOT}&InstanceMarketOptions.SpotOptions.MaxPrice={price}");
    let little = cloud.run(1, &at_most("0.05")).await;
    let much = cloud.run(1, &at_most("0.09")).await;
    let any = cloud.run(1, SPOT).await;
    cloud.pass(10).await;
    let price = types::micros("0.07").unwrap();
    cloud.aws.with(|region, now| region.set_spot_price(now, super::ZONE, "m5.large", price));
    for (made, status) in [(&little, 200), (&much, 404), (&any, 404)] {
        let seen = get(&cloud, &made[0], "spot/instance-action").await.unwrap();
        assert_eq!(seen.0, status, "{seen:?}");
    }
    let refused = cloud.call(&cloud.launch(1, &at_most("0.05"))).await;
    assert_eq!(super::code(refused), "SpotMaxPriceTooLow");
    cloud.run(1, &at_most("0.07")).await;
}
