//! The server's certificate and key, and whose certificates its clients must show, read from their files.
//!
//! What is wrong with a file is told in words of our own: a reader's error may quote the file.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::{Check, ServeArgs};

/// The one protocol that is spoken inside.
const HTTP_2: &[u8] = b"h2";

/// How the server proves itself to its clients, and they to it.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// The settings as the library takes them.
    #[must_use]
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Check {
    /// What the three flags make together; nothing if none is given.
    pub(super) fn tls(&mut self, args: &ServeArgs) -> Option<Tls> {
        let (cert, key, client_ca) = (args.tls_cert.as_ref(), args.tls_key.as_ref(), args.tls_client_ca.as_ref());
        let certs = cert.and_then(|file| self.certificates("tls-cert", file));
        let roots = client_ca.and_then(|file| self.roots(file));
        let secret = key.and_then(|file| self.private_key(file));
        match (cert, key) {
            (Some(_), Some(_)) => {}
            (Some(_), None) if certs.is_some() => self.problem("tls-cert", "give --tls-key as well"),
            (None, Some(_)) if secret.is_some() => self.problem("tls-key", "give --tls-cert as well"),
            (None, None) if roots.is_some() => self.problem("tls-client-ca", "give --tls-cert and --tls-key as well"),
            (Some(_) | None, Some(_) | None) => {}
        }
        let (certs, secret) = (certs?, secret?);
        if client_ca.is_some() && roots.is_none() {
            return None;
        }
        self.server_config(certs, secret, roots).map(|config| Tls(Arc::new(config)))
    }

    fn server_config(
        &mut self,
        certs: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        roots: Option<RootCertStore>,
    ) -> Option<ServerConfig> {
        let provider = Arc::new(ring::default_provider());
        let verifier = match roots {
            None => None,
            Some(roots) => Some(self.verifier(roots, &provider)?),
        };
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = match builder.with_safe_default_protocol_versions() {
            Ok(builder) => builder,
            Err(error) => {
                self.problem("tls-cert", error);
                return None;
            }
        };
        let builder = match verifier {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(verifier),
        };
        match builder.with_single_cert(certs, key) {
            Ok(mut config) => {
                config.alpn_protocols = vec![HTTP_2.to_vec()];
                Some(config)
            }
            Err(error) => {
                self.problem("tls-key", format_args!("does not serve with the certificate: {error}"));
                None
            }
        }
    }

    /// Lets in whoever shows a certificate of these issuers, and nobody else.
    fn verifier(
        &mut self,
        roots: RootCertStore,
        provider: &Arc<CryptoProvider>,
    ) -> Option<Arc<dyn ClientCertVerifier>> {
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        builder.build().map_err(|error| self.problem("tls-client-ca", error)).ok()
    }

    fn roots(&mut self, file: &Path) -> Option<RootCertStore> {
        let certs = self.certificates("tls-client-ca", file)?;
        let mut roots = RootCertStore::empty();
        for cert in certs {
            if let Err(error) = roots.add(cert) {
                self.problem("tls-client-ca", format_args!("{}: {error}", file.display()));
                return None;
            }
        }
        Some(roots)
    }

    fn certificates(&mut self, flag: &str, file: &Path) -> Option<Vec<CertificateDer<'static>>> {
        let pem = self.read(flag, file)?;
        let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certs = certs.ok().filter(|certs| !certs.is_empty());
        if certs.is_none() {
            self.problem(flag, format_args!("{}: holds no certificate in PEM", file.display()));
        }
        certs
    }

    fn private_key(&mut self, file: &Path) -> Option<PrivateKeyDer<'static>> {
        let pem = self.read("tls-key", file)?;
        let key = PrivateKeyDer::from_pem_slice(&pem).ok();
        if key.is_none() {
            self.problem("tls-key", format_args!("{}: holds no private key in PEM, unencrypted", file.display()));
        }
        key
    }

    fn read(&mut self, flag: &str, file: &Path) -> Option<Vec<u8>> {
        fs::read(file).map_err(|error| self.problem(flag, format_args!("{}: {error}", file.display()))).ok()
    }
}
