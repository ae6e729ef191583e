//! TLS connections to a server. A CA that this machine trusts, or one in the file that the URL names, must have issued the certificate.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use helve_core::StoreError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// The library's error text for a server without TLS. The library has no error type for this case.
const NO_TLS: &str = "server does not support TLS";

/// The TLS configuration of a connection. Clones share it.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// Creates a configuration without encryption.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Creates a configuration that trusts the certificate authorities of this machine, or only those in the file `root`.
    pub(super) fn new(root: Option<&Path>) -> Result<Self, StoreError> {
        let mut config = trusting(root).map_err(|error| StoreError::Unavailable(format!("TLS setup failed: {error}")))?;
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Some(Arc::new(config))))
    }
}

fn trusting(root: Option<&Path>) -> Result<ClientConfig, Box<dyn Error>> {
    // Pass the provider here instead of installing it for the process: the process belongs to the program that embeds Helve.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let Some(file) = root else {
        return Ok(match builder()?.with_platform_verifier() {
            Ok(verified) => verified.with_no_client_auth(),
            Err(error) => {
                tracing::warn!(%error, "no certificate authorities found on this machine; name one with sslrootcert");
                builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
            }
        });
    };
    let unread = |error: &dyn fmt::Display| format!("sslrootcert {}: {error}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unread(&error))? {
        roots.add(certificate.map_err(|error| unread(&error))?).map_err(|error| unread(&error))?;
    }
    if roots.is_empty() {
        return Err(unread(&"the file contains no certificate").into());
    }
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = EncryptedStream;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake { config: self.0.clone(), host: host.to_owned() })
    }
}

/// The TLS handshake of a connection.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = EncryptedStream;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<EncryptedStream, TlsError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { config, host } = self;
            let config = config.ok_or_else(|| TlsError("TLS is disabled for this URL".to_owned()))?;
            let name = ServerName::try_from(host.clone()).map_err(|error| TlsError(format!("{host}: {error}")))?;
            TlsConnector::from(config).connect(name, socket).await.map(EncryptedStream).map_err(|error| TlsError::new(&host, &error))
        })
    }
}

/// The reason why a TLS handshake failed.
#[derive(Debug)]
pub(super) struct TlsError(String);

impl TlsError {
    fn new(host: &str, error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        Self(match cause {
            Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                let hint = "name its certificate authority with sslrootcert=FILE in the URL";
                format!("TLS certificate verification failed for {host}: unknown issuer; {hint} ({error})")
            }
            Some(rustls::Error::InvalidCertificate(_)) => format!("TLS certificate verification failed for {host}: {error}"),
            _ => error.to_string(),
        })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TlsError {}

/// Returns a hint if the server does not support TLS.
pub(super) fn hint(error: &dyn Error) -> Option<&'static str> {
    (error.to_string() == NO_TLS).then_some("enable TLS on the server, or add sslmode=disable to the URL if you trust the network")
}

/// A TLS connection.
pub(super) struct EncryptedStream(tokio_rustls::client::TlsStream<Socket>);

impl AsyncRead for EncryptedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl TlsStream for EncryptedStream {
    // Channel binding ties the password proof to this connection, so that a man in the middle cannot use the proof elsewhere.
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        certificate.and_then(|certificate| fingerprint(certificate)).map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Hashes a certificate with the hash function of its signature, as RFC 5929 requires. Returns `None` if the function is not supported.
fn fingerprint(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    // A certificate is a sequence of the signed part, the signature algorithm and the signature.
    let (whole, _) = field(certificate)?;
    let (_, rest) = field(whole)?;
    let (identifier, _) = field(rest)?;
    let (algorithm, _) = field(identifier)?;
    match algorithm.strip_prefix(RSA).or_else(|| algorithm.strip_prefix(ECDSA))? {
        // RFC 5929 replaces the weak MD5 and SHA-1 with SHA-256.
        [4 | 5 | 11 | 1] | [3, 2] => Some(Sha256::digest(certificate).to_vec()),
        [12] | [3, 3] => Some(Sha384::digest(certificate).to_vec()),
        [13] | [3, 4] => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Returns the content of the first DER field, and the bytes after the field.
fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with only a signature algorithm.
    fn signed_by(algorithm: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: Vec<u8>| [vec![tag, 0x81, u8::try_from(content.len()).expect("short")], content].concat();
        wrap(0x30, [wrap(0x30, vec![0; 130]), wrap(0x30, wrap(0x06, algorithm.to_vec()))].concat())
    }

    #[test]
    fn a_certificate_is_hashed_as_its_signature_was() {
        let rsa = |last| signed_by(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last]);
        let ecdsa = |last| signed_by(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, last]);
        let length = |certificate: Vec<u8>| fingerprint(&certificate).map(|hash| hash.len());
        assert_eq!([rsa(5), rsa(11), rsa(12), rsa(13)].map(length), [32, 32, 48, 64].map(Some));
        assert_eq!([ecdsa(2), ecdsa(3), ecdsa(4)].map(length), [32, 48, 64].map(Some));
        assert_eq!(
            [rsa(10), signed_by(&[0x2b, 0x65, 0x70])].map(length),
            [None, None],
            "the hash function is in the parameters, or there is none"
        );
        let whole = rsa(11);
        assert!((0..whole.len()).all(|length| fingerprint(&whole[..length]).is_none()), "one that is cut off");
    }
}
