//! The address of a server; what it leaves out comes from the environment and the password file, as
//! PostgreSQL's own programs take it. So no password has to stand in a command line, where a list
//! of processes shows it.

use std::ffi::OsString;
use std::sync::Arc;

use freehold_postgres::rustls::pki_types::CertificateDer;
use freehold_postgres::rustls::pki_types::pem::PemObject as _;
use freehold_postgres::rustls::{ClientConfig, RootCertStore, crypto};
use freehold_postgres::tokio_postgres::Config;
use freehold_postgres::tokio_postgres::config::{Host, SslMode};

use super::password::{Found, password};
use crate::failure::Failure;

/// How an address begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// What an address looks like, for people.
const LIKE: &str = "give one like postgres://user@host:5432/database";

/// Looks a variable of the environment up.
pub(super) type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// An address that was read.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// How the server is reached.
    pub(super) config: Config,
    /// The address as it was given, without the password.
    pub(super) shown: String,
    /// TLS, with whom it trusts; none if nobody said whom.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// Why there is no password although there is a password file; for who is refused without.
    pub(super) note: Option<String>,
}

/// Whether this is meant as an address, if there is no such file. A slip in one is no file's name
/// either: the path would be repeated in the words, and with it a password.
pub(super) fn is_meant(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let scheme = text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let named = ["postgres:", "postgresql:"].iter().any(|scheme| lower.starts_with(scheme));
    let credentials = text.rsplit_once('@').is_some_and(|(before, _)| before.contains(':'));
    let mut settings = lower.split("password").skip(1);
    let setting = settings.any(|behind| behind.trim_start().starts_with('='));
    scheme || named || credentials || setting
}

/// Reads an address.
///
/// # Errors
/// - [`Failure::Unknown`]: it cannot be read, or a variable of the environment cannot. Neither is
///   repeated in the words: a password may stand in it.
/// - [`Failure::Surroundings`]: the password file cannot be read, or others can read it.
pub(super) fn read(text: &str, environment: Environment<'_>) -> Result<Address, Failure> {
    let unread = |why: &str| {
        Failure::Unknown(format!("the address after --store cannot be read ({why}); {LIKE}"))
    };
    let Some(rest) = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)) else {
        return Err(unread("it does not begin with postgres://"));
    };
    // The first one ends the password; what is behind it would be shown as the host.
    if rest.matches('@').count() > 1 {
        return Err(unread("an @ in a name or a password is written %40"));
    }
    let mut config: Config = text.parse().map_err(|e| unread(&format!("{e}")))?;
    let shown = without_password(text);
    let is_free = |shown: &str| shown.parse().is_ok_and(|c: Config| c.get_password().is_none());
    if !is_free(&shown) {
        return Err(unread("its password is not where one stands; give it in PGPASSWORD"));
    }
    let said = says_mode(rest).map_err(unread)?;
    let said = complete(&mut config, said, environment)?;
    let mut note = None;
    if config.get_password().is_none() {
        match password(&config, environment)? {
            Found::Password(password) => {
                config.password(password);
            }
            Found::None(why) => note = why,
        }
    }
    let tls = match config.get_ssl_mode() {
        SslMode::Disable => None,
        _preferred_or_required => trusted(environment)?,
    };
    // Who says whom to trust means that it be looked at: where the mode is only preferred, whoever
    // stands between needs but say that there is no TLS to be told the password. Only a person may
    // want that. A socket has no TLS, and nobody between.
    if tls.is_some() && !said && !only_sockets(&config) {
        config.ssl_mode(SslMode::Require);
    }
    Ok(Address { config, shown, tls, note })
}

/// Whether the settings of an address say the mode of TLS.
fn says_mode(rest: &str) -> Result<bool, &'static str> {
    // A name or a password may hold a question mark.
    let place = rest.split_once('@').map_or(rest, |(_, place)| place);
    let Some((_, settings)) = place.split_once('?') else { return Ok(false) };
    let mut said = false;
    for setting in settings.split('&') {
        let name = setting.split_once('=').map_or(setting, |(name, _)| name);
        if name.contains('%') {
            return Err("the name of a setting is written without %");
        }
        said |= name == "sslmode";
    }
    Ok(said)
}

/// Whether every server is reached by a socket on this machine.
fn only_sockets(config: &Config) -> bool {
    config.get_hostaddrs().is_empty()
        && config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)))
}

/// TLS that trusts the authorities in the file that PGSSLROOTCERT names, and looks at names in any
/// mode.
fn trusted(environment: Environment<'_>) -> Result<Option<Arc<ClientConfig>>, Failure> {
    let Some(file) = value(environment, "PGSSLROOTCERT")? else { return Ok(None) };
    let unread = |why: String| {
        Failure::Surroundings(format!(
            "the certificates in {file:?} cannot be used ({why}); let PGSSLROOTCERT name a file \
             of authorities in PEM"
        ))
    };
    let mut roots = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(&file).map_err(|e| unread(e.to_string()))?;
    for one in all {
        let added = one.map_err(|e| unread(e.to_string())).map(|one| roots.add(one))?;
        added.map_err(|e| unread(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unread("there is none".to_owned()));
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| unread(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(Arc::new(config)))
}

/// The same address without the password.
fn without_password(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("postgres", text));
    let (user, rest) = match rest.split_once('@') {
        Some((credentials, rest)) => {
            let user = credentials.split_once(':').map_or(credentials, |(user, _)| user);
            (format!("{user}@"), rest)
        }
        None => (String::new(), rest),
    };
    let rest = match rest.split_once('?') {
        Some((place, settings)) => {
            let kept: Vec<&str> =
                settings.split('&').filter(|s| !s.starts_with("password=")).collect();
            if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
        }
        None => rest.to_owned(),
    };
    format!("{scheme}://{user}{rest}")
}

/// Adds what the address leaves out. Whether somebody said the mode of TLS, there or here.
fn complete(
    config: &mut Config,
    said: bool,
    environment: Environment<'_>,
) -> Result<bool, Failure> {
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let hosts = value(environment, "PGHOST")?.unwrap_or_else(|| "localhost".to_owned());
        for host in hosts.split(',') {
            // One that begins with a slash is the folder of a socket.
            config.host(host);
        }
        if config.get_ports().is_empty()
            && let Some(ports) = value(environment, "PGPORT")?
        {
            for port in ports.split(',') {
                let port = port.parse().map_err(|_no_port| {
                    Failure::Unknown("PGPORT is no port; give a number like 5432".to_owned())
                })?;
                config.port(port);
            }
        }
    }
    if config.get_user().is_none()
        && let Some(user) = value(environment, "PGUSER")?
    {
        config.user(user);
    }
    if config.get_dbname().is_none()
        && let Some(database) = value(environment, "PGDATABASE")?
    {
        config.dbname(database);
    }
    // What demands TLS is never weakened in silence.
    if !said && let Some(mode) = value(environment, "PGSSLMODE")? {
        config.ssl_mode(match mode.as_str() {
            "disable" => SslMode::Disable,
            "allow" | "prefer" => SslMode::Prefer,
            "require" | "verify-ca" | "verify-full" => SslMode::Require,
            _other => {
                let says = "PGSSLMODE is none of disable, allow, prefer, require, verify-ca and \
                            verify-full";
                return Err(Failure::Unknown(says.to_owned()));
            }
        });
        return Ok(true);
    }
    Ok(said)
}

/// A variable that is set and not empty.
pub(super) fn value(environment: Environment<'_>, name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = environment(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value
        .into_string()
        .map_err(|_bytes| Failure::Unknown(format!("{name} holds what is no text")))?;
    Ok(Some(value))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::place) fn with(
        variables: &[(&str, &str)],
        text: &str,
    ) -> Result<Address, Failure> {
        let look = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| OsString::from(value))
        };
        read(text, &look)
    }

    pub(in crate::place) fn password_of(address: &Address) -> Option<&str> {
        address.config.get_password().map(|p| std::str::from_utf8(p).unwrap())
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (text, shown) in [
            ("postgres://ann:geheim@h:1/d", "postgres://ann@h:1/d"),
            (
                "postgres://ann@h/d?password=geheim&connect_timeout=9",
                "postgres://ann@h/d?connect_timeout=9",
            ),
            ("postgresql://ann:ge:he/im?@h/d?password=geheim", "postgresql://ann@h/d"),
            ("postgres://:geheim@h", "postgres://@h"),
        ] {
            let address = with(&[("PGPASSWORD", "other")], text).unwrap();
            assert_eq!(address.shown, shown);
            assert_ne!(password_of(&address), Some("other"), "{text}");
        }
        // What would be shown with a part of one is not read at all, and not repeated.
        for text in [
            "postgres://ann:ge@heim@h/d",
            "postgres://ann@h/d?user=geheim@h",
            "postgres://ann@h/d?passwor%64=geheim",
            "postgres://ann:geheim",
            "postgres://ann:geheim@h:port/d",
            "postgresq://ann:geheim@h/d",
            "host=h password=geheim",
            "host=h Password = geheim",
            "postgres:/ann:geheim@h/d",
            "postgres:ann:geheim@h",
            "PostgreSQL:geheim",
            "ann:geheim@h/d",
            "//ann:geheim@h/d",
            "postgres+ssl://ann:geheim@h/d",
            "postgres;//ann:ge@geheim@h/d",
        ] {
            assert!(is_meant(text), "{text}");
            let failure = with(&[], text).unwrap_err();
            assert_eq!(failure.exit_code(), 2, "{text}");
            let said = format!("{failure} {failure:?}");
            assert!(!said.contains("geheim") && !said.contains("heim"), "{text}: {said}");
        }
        for file in
            ["freehold.db", "/var/lib/a b.db", "a:b", "://x", "./http:/x", "a@b:c", "password"]
        {
            assert!(!is_meant(file), "{file}");
        }
    }

    #[test]
    fn what_the_address_leaves_out_comes_from_the_environment() {
        let all = [
            ("PGHOST", "far"),
            ("PGPORT", "7"),
            ("PGUSER", "bob"),
            ("PGDATABASE", "board"),
            ("PGPASSWORD", "geheim"),
            ("PGSSLMODE", "verify-full"),
        ];
        let config = with(&all, "postgres://").unwrap().config;
        assert_eq!(config.get_hosts(), [Host::Tcp("far".to_owned())]);
        assert_eq!(config.get_ports(), [7]);
        assert_eq!((config.get_user(), config.get_dbname()), (Some("bob"), Some("board")));
        assert_eq!(config.get_password(), Some(&b"geheim"[..]));
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
        // And only that.
        let config = with(&all, "postgres://ann:p@near/d?sslmode=disable").unwrap().config;
        assert_eq!(config.get_hosts(), [Host::Tcp("near".to_owned())]);
        assert_eq!(config.get_ports(), [5432]);
        assert_eq!((config.get_user(), config.get_dbname()), (Some("ann"), Some("d")));
        assert_eq!(config.get_password(), Some(&b"p"[..]));
        assert_eq!(config.get_ssl_mode(), SslMode::Disable);
        for bad in [("PGPORT", "port"), ("PGSSLMODE", "sometimes")] {
            assert_eq!(with(&[bad], "postgres://").unwrap_err().exit_code(), 2, "{bad:?}");
        }
        assert_eq!(
            with(&[], "postgres://").unwrap().config.get_hosts(),
            [Host::Tcp("localhost".to_owned())]
        );
    }

    #[test]
    fn who_says_whom_to_trust_means_tls_unless_the_mode_is_said() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../postgres/tests/postgres/tls/ca.pem");
        let trust = ("PGSSLROOTCERT", file);
        let mode = |variables: &[(&str, &str)], text: &str| {
            with(variables, text).unwrap().config.get_ssl_mode()
        };
        for text in [
            "postgres://h",
            "postgres://a:sslmode=prefer@h/d?options=x",
            "postgres://a:?sslmode=prefer@h",
            "postgres://h,%2Fs/d",
        ] {
            assert_eq!(mode(&[trust], text), SslMode::Require, "{text}");
            assert_eq!(mode(&[trust, ("PGSSLMODE", "prefer")], text), SslMode::Prefer, "{text}");
            assert_eq!(mode(&[], text), SslMode::Prefer, "{text}");
        }
        for text in ["postgres://h?sslmode=prefer", "postgres://%2Fs/d"] {
            assert_eq!(mode(&[trust], text), SslMode::Prefer, "{text}");
        }
        assert_eq!(with(&[], "postgres://h?sslmod%65=disable").unwrap_err().exit_code(), 2);
    }
}
