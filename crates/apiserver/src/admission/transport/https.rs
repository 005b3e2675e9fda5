//! Webhooks over HTTPS.

use std::{io, pin::pin, sync::Arc};

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use http::{Request, Response, Uri, header::HOST};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig, Error as TlsError};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Target, TransportError, WebhookTransport, trust};

/// The largest answer that is read. Answers are a review with a patch of one object.
const MAXIMUM_ANSWER: usize = 16 * 1024 * 1024;

/// Calls webhooks over HTTPS, one connection for each call. Services of the cluster are out of
/// its reach: there is no network here that they are on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Https;

impl WebhookTransport for Https {
    fn call<'a>(
        &'a self,
        target: &'a Target,
        request: Request<Bytes>,
    ) -> BoxFuture<'a, Result<Response<Bytes>, TransportError>> {
        if let Target::Service { name, .. } = target {
            let error = TransportError::NoService(name.clone());
            return Box::pin(async move { Err(error) });
        }
        Box::pin(async move {
            let (host, port) = address(request.uri())?;
            let stream = connect(&host, port, target.ca_bundle()).await?;
            send(stream, request).await
        })
    }
}

fn address(uri: &Uri) -> Result<(String, u16), TransportError> {
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
    let host = host.ok_or_else(|| TransportError::Url(uri.to_string()))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), uri.port_u16().unwrap_or(443)))
}

async fn connect(
    host: &str,
    port: u16,
    ca_bundle: &Arc<[u8]>,
) -> Result<TlsStream<TcpStream>, TransportError> {
    let addresses: Vec<_> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| TransportError::NoHost(host.to_owned()))?
        .collect();
    let mut stream = Err(TransportError::NoHost(host.to_owned()));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(connected) => {
                stream = Ok(connected);
                break;
            }
            Err(error) => {
                let problem = describe_io(&error);
                stream = Err(TransportError::Connect { address: address.to_string(), problem });
            }
        }
    }
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| TransportError::Tls(error.to_string()))?;
    let config: ClientConfig = trust::client_config(ca_bundle)?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream?)
        .await
        .map_err(|error| describe_tls(&error, host))
}

fn describe_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

fn describe_tls(error: &io::Error, host: &str) -> TransportError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    match inner {
        Some(TlsError::InvalidCertificate(certificate)) => {
            TransportError::Certificate(match certificate {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    "x509: certificate signed by unknown authority".to_owned()
                }
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => {
                    "x509: certificate has expired or is not yet valid".to_owned()
                }
                CertificateError::NotValidForNameContext { presented, .. }
                    if !presented.is_empty() =>
                {
                    let names: Vec<&str> = presented.iter().map(|name| bare_name(name)).collect();
                    format!("x509: certificate is valid for {}, not {host}", names.join(", "))
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    format!(
                        "x509: certificate is not valid for any names, but wanted to match {host}"
                    )
                }
                other => format!("x509: {other:?}"),
            })
        }
        Some(other) => TransportError::Tls(other.to_string()),
        None => TransportError::Tls(describe_io(error)),
    }
}

/// `example.com` out of `DnsName("example.com")`.
fn bare_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner).trim_end_matches(')');
    inner.trim_matches('"')
}

async fn send(
    stream: TlsStream<TcpStream>,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, TransportError> {
    let broken = |error: hyper::Error| TransportError::Broken(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let exchange = pin!(async move {
        let response = sender.send_request(origin_form(request)?).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAXIMUM_ANSWER).collect().await.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                TransportError::TooLarge(MAXIMUM_ANSWER)
            } else {
                TransportError::Broken(error.to_string())
            }
        })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    });
    // The connection does the work that the exchange waits for.
    match select(exchange, pin!(connection)).await {
        Either::Left((result, _)) => result,
        Either::Right((_, exchange)) => exchange.await,
    }
}

/// The request as it is sent: with a path only, and the host in a header.
fn origin_form(request: Request<Bytes>) -> Result<Request<Full<Bytes>>, TransportError> {
    let (mut parts, body) = request.into_parts();
    let invalid = || TransportError::Url(parts.uri.to_string());
    let host = parts.uri.authority().and_then(|host| host.as_str().parse().ok());
    let host = host.ok_or_else(invalid)?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.parse().map_err(|_| invalid())?;
    parts.headers.insert(HOST, host);
    parts.uri = path;
    Ok(Request::from_parts(parts, Full::new(body)))
}
