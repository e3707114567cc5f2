//! TLS by rustls.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::Arc;
use std::time::Duration;

use freehold_pg_server::Server;
use freehold_postgres::rustls::pki_types::CertificateDer;
use freehold_postgres::rustls::pki_types::pem::PemObject;
use freehold_postgres::rustls::{ClientConfig, RootCertStore, crypto};
use freehold_postgres::{Options, PostgresStore};
use freehold_store::StoreError;

use crate::host::{Place, connect, create_workspace, done};

/// A server with a certificate.
fn server() -> Server {
    let server = Server::start(&[]).unwrap();
    let folder = server.folder().join("data");
    let owner = std::fs::metadata(&folder).unwrap();
    for (name, bytes) in [
        ("server.pem", &include_bytes!("tls/server.pem")[..]),
        ("server.key", &include_bytes!("tls/server.key")[..]),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    for setting in ["ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.key'", "ssl = on"] {
        server.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    server.stop();
    server.start_again();
    server
}

/// A client that trusts this authority.
fn trusting(authority: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn open(server: &Server, tls: Option<Arc<ClientConfig>>) -> Result<PostgresStore, StoreError> {
    let url = format!("{}?sslmode=require", server.url("postgres"));
    connect(url.parse().unwrap(), Options { tls, ..Place::new().options() })
}

#[test]
fn a_store_over_tls_and_what_is_not_trusted() {
    let server = server();
    let ours = trusting(include_bytes!("tls/ca.pem"));
    let store = open(&server, Some(Arc::clone(&ours))).unwrap();
    done(&store, &create_workspace("w"));
    let mut listener = pollster::block_on(store.listen()).unwrap();
    done(&store, &create_workspace("w2"));
    assert!(pollster::block_on(listener.wait(Duration::from_secs(600))));
    let encrypted = server.sql(
        "postgres",
        "SELECT bool_and(s.ssl), count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
         WHERE a.application_name = 'freehold'",
    );
    assert_eq!(encrypted, "t|2");

    // Waiting helps with none of these.
    for tls in [Some(trusting(include_bytes!("tls/other.pem"))), None] {
        let error = open(&server, tls).unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }) && !error.may_pass_later(), "{error}");
    }
    let error = open(crate::host::server(), Some(ours)).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }) && !error.may_pass_later(), "{error}");
}
