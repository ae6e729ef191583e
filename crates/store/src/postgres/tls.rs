//! TLS with a server, which proves its name by a certificate: one that this machine trusts, or that of an authority which the
//! address names.

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

/// What is said of a server without TLS, in the words of the library, which has no type for it.
const NO_TLS: &str = "server does not support TLS";

/// Makes connections secret. Clones share.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// For connections that are not.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Trusts whom this machine trusts, or only the authorities in a file.
    pub(super) fn new(root: Option<&Path>) -> Result<Self, StoreError> {
        let mut config = trusting(root).map_err(|error| StoreError::Unavailable(format!("no TLS for the record: {error}")))?;
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Some(Arc::new(config))))
    }
}

fn trusting(root: Option<&Path>) -> Result<ClientConfig, Box<dyn Error>> {
    // Given here and not installed for the whole process, which belongs to the program that uses Helve.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let Some(file) = root else {
        return Ok(match builder()?.with_platform_verifier() {
            Ok(verified) => verified.with_no_client_auth(),
            Err(error) => {
                tracing::warn!(%error, "no certificate authorities are known on this machine; sslrootcert can name one");
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
        return Err(unread(&"there is no certificate in it").into());
    }
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Secret;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake { config: self.0.clone(), host: host.to_owned() })
    }
}

/// The beginning of a secret connection.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Secret;
    type Error = Refusal;
    type Future = Pin<Box<dyn Future<Output = Result<Secret, Refusal>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { config, host } = self;
            let config = config.ok_or_else(|| Refusal("nobody asked for TLS".to_owned()))?;
            let name = ServerName::try_from(host.clone()).map_err(|error| Refusal(format!("{host}: {error}")))?;
            TlsConnector::from(config).connect(name, socket).await.map(Secret).map_err(|error| Refusal::new(&host, &error))
        })
    }
}

/// Why a server is not spoken to.
#[derive(Debug)]
pub(super) struct Refusal(String);

impl Refusal {
    fn new(host: &str, error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        Self(match cause {
            Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                let hint = "name its authority with sslrootcert=FILE in the address";
                format!("the certificate of {host} comes from nobody who is trusted here; {hint} ({error})")
            }
            Some(rustls::Error::InvalidCertificate(_)) => format!("the certificate of {host} does not prove who it is: {error}"),
            _ => error.to_string(),
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refusal {}

/// What can be done about an error, if it is that the server has no TLS.
pub(super) fn hint(error: &dyn Error) -> Option<&'static str> {
    (error.to_string() == NO_TLS).then_some("write sslmode=disable into the address if all of the network between is yours")
}

/// A connection that nobody else reads.
pub(super) struct Secret(tokio_rustls::client::TlsStream<Socket>);

impl AsyncRead for Secret {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secret {
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

impl TlsStream for Secret {
    /// Ties a password to this connection, so that nobody in between can use the proof of it elsewhere.
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        certificate.and_then(|certificate| fingerprint(certificate)).map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// The hash of a certificate by the function that its signature uses, as RFC 5929 wants it; nothing where it is another one.
fn fingerprint(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    // A sequence of what is signed, how, and the signature.
    let (whole, _) = field(certificate)?;
    let (_, behind) = field(whole)?;
    let (how, _) = field(behind)?;
    let (algorithm, _) = field(how)?;
    match algorithm.strip_prefix(RSA).or_else(|| algorithm.strip_prefix(ECDSA))? {
        // The weak ones, MD5 and SHA-1, are replaced by this one.
        [4 | 5 | 11 | 1] | [3, 2] => Some(Sha256::digest(certificate).to_vec()),
        [12] | [3, 3] => Some(Sha384::digest(certificate).to_vec()),
        [13] | [3, 4] => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The content of a field in DER, and what is behind it.
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

    /// A certificate of which only the algorithm of its signature is there.
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
            "what it is hashed by stands elsewhere, or nowhere"
        );
        let whole = rsa(11);
        assert!((0..whole.len()).all(|length| fingerprint(&whole[..length]).is_none()), "one that is cut off");
    }
}
