//! The plain client on real sockets: what a network can do to it.

use std::time::Duration;

use fleetwright_clock::Clock;
use fleetwright_node::{
    aws::{AwsSettings, AwsSource},
    metadata::Metadata,
    source::{Looked, Source as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

async fn look_at(endpoint: &str) -> Looked {
    let clock = Clock::system();
    let mut source = AwsSource::new(Metadata::at(endpoint), AwsSettings::default(), clock.clone());
    let look = source.look(clock.now());
    tokio::time::timeout(Duration::from_mins(1), look).await.expect("a look ends")
}

/// Has `behave` take every connection.
async fn look_with<F>(behave: impl Fn(TcpStream, String) -> F) -> (Looked, Vec<String>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let mut requests = Vec::new();
    let mut connections = tokio::task::JoinSet::new();
    let serve = async {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = socket.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            requests.push(head.clone());
            connections.spawn(behave(socket, head));
        }
    };
    let looked = tokio::select! {
        looked = look_at(&endpoint) => looked,
        () = serve => unreachable!(),
    };
    (looked, requests)
}

fn trouble(looked: &Looked) -> String {
    assert!(looked.notices.is_empty(), "{looked:?}");
    looked.troubles.first().map(ToString::to_string).unwrap_or_default()
}

async fn reply(mut socket: TcpStream, text: &str) {
    let _ = socket.write_all(text.as_bytes()).await;
    let _ = socket.shutdown().await;
}

const TOKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";

#[tokio::test]
async fn a_notice_over_a_socket() {
    let (looked, requests) = look_with(|socket, head| async move {
        let body = r#"{"action":"terminate","time":"2026-01-01T00:02:00Z"}"#;
        let text = if head.starts_with("PUT") {
            TOKEN.to_owned()
        } else {
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        };
        reply(socket, &text).await;
    })
    .await;
    assert_eq!(looked.notices[0].deadline, Some("2026-01-01T00:02:00Z".parse().unwrap()));
    assert!(requests[0].starts_with("PUT /latest/api/token HTTP/1.1\r\n"), "{requests:?}");
    assert!(requests[0].contains("x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"));
    assert!(requests[0].to_lowercase().contains("host: 127.0.0.1:"));
    assert!(requests[1].contains("x-aws-ec2-metadata-token: abc\r\n"), "{requests:?}");
}

#[tokio::test]
async fn an_endpoint_on_ipv6() {
    // Some machines have none.
    let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let read = socket.read(&mut head).await.unwrap();
        reply(socket, "HTTP/1.1 418 no\r\ncontent-length: 0\r\n\r\n").await;
        String::from_utf8_lossy(&head[..read]).to_lowercase()
    };
    let (looked, head) = tokio::join!(look_at(&endpoint), serve);
    assert!(trouble(&looked).contains("status 418"), "{looked:?}");
    assert!(head.contains("host: [::1]:"), "{head}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (looked, requests) = look_with(|socket, _| async move {
        let text =
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        reply(socket, text).await;
    })
    .await;
    assert!(trouble(&looked).contains("status 302"), "{looked:?}");
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn silence_slowness_and_floods_are_cut_off() {
    let (looked, _) = look_with(|socket, _| async move {
        tokio::time::sleep(Duration::from_mins(2)).await;
        drop(socket);
    })
    .await;
    assert!(trouble(&looked).contains("did not answer within 2s"), "{looked:?}");
    // A byte at a time.
    let (looked, _) = look_with(|mut socket, _| async move {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        while socket.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    assert!(trouble(&looked).contains("did not answer within 2s"), "{looked:?}");
    // More and more.
    let (looked, _) = look_with(|mut socket, _| async move {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        while socket.write_all(chunk.as_bytes()).await.is_ok() {}
    })
    .await;
    assert!(trouble(&looked).contains("cannot be reached"), "{looked:?}");
    let (looked, _) =
        look_with(|socket, _| async move { reply(socket, "HTTP/9 what\r\n\r\n").await }).await;
    assert!(trouble(&looked).contains("cannot be reached"), "{looked:?}");
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert!(trouble(&look_at(&endpoint).await).contains("cannot connect"));
    for endpoint in ["", "nonsense", "http://", "http://[::1", "ftp://x y"] {
        assert!(!look_at(endpoint).await.troubles.is_empty(), "{endpoint}");
    }
}
