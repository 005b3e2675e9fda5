use std::sync::{Arc, Mutex as StdMutex};

use fleetwright_clock::Clock;
use fleetwright_cloud::transport::Transport;
use http::{Request, Response};

use super::*;
use crate::endpoints::Endpoints;

type Asked = Arc<StdMutex<Vec<String>>>;

/// Answers with the first of these whose start matches `METHOD uri body`.
fn wire(answers: &'static [(&'static str, u16, &'static str)]) -> (Wire, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let line = format!("{} {} {body}", request.method(), request.uri());
        let answer = answers.iter().find(|(start, ..)| line.starts_with(start));
        let (_, status, body) = answer.copied().unwrap_or(("", 404, "nothing"));
        seen.lock().unwrap().push(line);
        let answer = Response::builder().status(status).body(Bytes::from_static(body.as_bytes()));
        async move { Ok(answer.unwrap()) }
    });
    let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().unwrap());
    (Wire { transport: Transport::new(service), endpoints: Endpoints::default(), clock }, asked)
}

const STS: &str = "POST https://sts.us-east-1.amazonaws.com/ ";
const ROLE_KEYS: &str = "<AssumeRoleWithWebIdentityResponse>\
    <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId>\
    <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
    <Expiration>2026-11-15T13:00:00Z</Expiration></Credentials>\
    </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";

fn secret(data: &[(&str, &str)]) -> Credentials {
    let data = data.iter();
    Credentials::Secret(
        data.map(|(k, v)| ((*k).to_owned(), Bytes::from((*v).to_owned()))).collect(),
    )
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn a_secret_with_two_keys() {
    let source =
        Source::of(&secret(&[("aws_access_key_id", "AKIA\n"), ("aws_secret_access_key", "s")]));
    let Source::Given(keys) = source.unwrap() else { panic!("given keys") };
    assert_eq!((keys.access_key_id.as_str(), keys.secret_access_key.as_str()), ("AKIA", "s"));
    let error = Source::of(&secret(&[("aws_access_key_id", "AKIA")])).unwrap_err();
    assert_eq!(error.class, ErrorClass::Credentials);
    assert!(error.message.contains("aws_secret_access_key"), "{error}");
}

#[test]
fn a_secret_with_a_profile() {
    let profile = "# made by hand\n[default]\nrole_arn = arn:aws:iam::1:role/x\n\
                   web_identity_token_file = /var/run/token\n";
    let source = Source::of(&secret(&[("credentials", profile)])).unwrap();
    let expected = Source::WebIdentity {
        role: "arn:aws:iam::1:role/x".to_owned(),
        token_file: "/var/run/token".to_owned(),
        session: SESSION.to_owned(),
    };
    assert_eq!(source, expected);
    assert_eq!(source.account(), "arn:aws:iam::1:role/x");
    let profile = "[other]\naws_access_key_id=a\naws_secret_access_key=b\n[default]\n\
                   role_arn=r\nsource_profile=other\nexternal_id=e";
    let source = Source::of(&secret(&[("credentials", profile)])).unwrap();
    assert!(matches!(source, Source::Role { by, .. } if matches!(*by, Source::Given(_))));
    for wrong in ["", "[default]\nregion=x", "[default]\nrole_arn=r\nsource_profile=default"] {
        assert!(Source::of(&secret(&[("credentials", wrong)])).is_err(), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_web_identity_is_exchanged_once_and_renewed_in_time() {
    let (wire, asked) = wire(&[(STS, 200, ROLE_KEYS)]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "the token\n").unwrap();
    let file = file.path().to_string_lossy().into_owned();
    let variables = environment(&[("AWS_ROLE_ARN", "r"), ("AWS_WEB_IDENTITY_TOKEN_FILE", &file)]);
    let ring = KeyRing::new(Source::Ambient, variables);
    let keys = || ring.keys(&wire, "us-east-1");
    assert_eq!(keys().await.unwrap().access_key_id, "ASIA");
    keys().await.unwrap();
    let first = asked.lock().unwrap().clone();
    assert_eq!(first.len(), 1);
    assert!(
        first[0].ends_with("RoleArn=r&RoleSessionName=fleetwright&WebIdentityToken=the%20token")
    );
    tokio::time::advance(Duration::from_mins(56)).await;
    // The service answers with keys that expire soon: they are asked for again, and used.
    assert_eq!(keys().await.unwrap().session_token.as_deref(), Some("t"));
    assert_eq!(asked.lock().unwrap().len(), 2);
    ring.forget().await;
    keys().await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn old_keys_serve_until_they_expire_when_new_ones_cannot_be_had() {
    let (good, _) = wire(&[(STS, 200, ROLE_KEYS)]);
    let (bad, _) = wire(&[(STS, 500, "")]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().to_string_lossy().into_owned();
    let source = Source::WebIdentity { role: "r".into(), token_file: file, session: "s".into() };
    let ring = KeyRing::new(source, Environment::new());
    ring.keys(&good, "us-east-1").await.unwrap();
    tokio::time::advance(Duration::from_mins(57)).await;
    assert!(ring.keys(&bad, "us-east-1").await.is_ok());
    tokio::time::advance(Duration::from_mins(4)).await;
    assert!(ring.keys(&bad, "us-east-1").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_variables_the_container_and_the_instance() {
    const KEYS: &str = r#"{"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t",
        "Expiration": "2026-11-15T18:00:00Z", "Code": "Success"}"#;
    let (wire, asked) = wire(&[
        ("PUT http://169.254.169.254/latest/api/token", 200, "tok"),
        ("GET http://169.254.169.254/latest/meta-data/iam/security-credentials/role", 200, KEYS),
        ("GET http://169.254.169.254/latest/meta-data/iam/security-credentials/", 200, "role\n"),
        ("GET http://169.254.170.2/keys", 200, KEYS),
    ]);
    for (variables, asks) in [
        (vec![("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "s")], 0),
        (vec![("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/keys")], 1),
        (vec![("HOME", "/nowhere")], 3),
    ] {
        asked.lock().unwrap().clear();
        let ring = KeyRing::new(Source::Ambient, environment(&variables));
        assert_eq!(ring.keys(&wire, "us-east-1").await.unwrap().access_key_id, "A");
        assert_eq!(asked.lock().unwrap().len(), asks, "{variables:?}");
    }
    let disabled = environment(&[("AWS_EC2_METADATA_DISABLED", "true")]);
    let ring = KeyRing::new(Source::Ambient, disabled);
    let error = ring.keys(&wire, "us-east-1").await.unwrap_err();
    assert!(error.message.contains("credentialsSecret"), "{error}");
    let absent = environment(&[("AWS_PROFILE", "absent"), ("HOME", "/nowhere")]);
    let error = KeyRing::new(Source::Ambient, absent).keys(&wire, "us-east-1").await.unwrap_err();
    assert!(error.message.contains("absent"), "{error}");
}
