//! The address of a server; what it leaves out comes from the environment and the password file, as
//! PostgreSQL's own programs take it. So no password has to stand in a command line, where a list
//! of processes shows it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use freehold_postgres::rustls::pki_types::CertificateDer;
use freehold_postgres::rustls::pki_types::pem::PemObject as _;
use freehold_postgres::rustls::{ClientConfig, RootCertStore, crypto};
use freehold_postgres::tokio_postgres::Config;
use freehold_postgres::tokio_postgres::config::{Host, SslMode};

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
}

/// Whether this is meant as an address. A slip in the scheme is no file's name either: the path
/// would be repeated in the words, and with it a password.
pub(super) fn is_meant(text: &str) -> bool {
    let scheme = text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    scheme || text.to_ascii_lowercase().contains("password=")
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
    complete(&mut config, text, environment)?;
    if config.get_password().is_none()
        && let Some(password) = password(&config, environment)?
    {
        config.password(password);
    }
    let tls = match config.get_ssl_mode() {
        SslMode::Disable => None,
        // Whom to trust may be said without demanding that there be TLS.
        _preferred_or_required => trusted(environment)?,
    };
    Ok(Address { config, shown, tls })
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

/// Adds what the address leaves out.
fn complete(config: &mut Config, text: &str, environment: Environment<'_>) -> Result<(), Failure> {
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
    if !text.contains("sslmode=")
        && let Some(mode) = value(environment, "PGSSLMODE")?
    {
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
    }
    Ok(())
}

/// A variable that is set and not empty.
fn value(environment: Environment<'_>, name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = environment(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value
        .into_string()
        .map_err(|_bytes| Failure::Unknown(format!("{name} holds what is no text")))?;
    Ok(Some(value))
}

/// The password of the environment, or of the password file.
fn password(config: &Config, environment: Environment<'_>) -> Result<Option<String>, Failure> {
    if let Some(password) = value(environment, "PGPASSWORD")? {
        return Ok(Some(password));
    }
    let named = value(environment, "PGPASSFILE")?.map(PathBuf::from);
    let home = || environment("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
    let Some(file) = named.clone().or_else(home) else { return Ok(None) };
    let unread = |e: &std::io::Error| {
        Failure::Surroundings(format!("the password file {} cannot be read: {e}", file.display()))
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        // Nobody has to have one; but one that is named is meant.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(None),
        Err(e) => return Err(unread(&e)),
    };
    let Some(password) = text.lines().find_map(|line| entry(line, config, environment)) else {
        return Ok(None);
    };
    let mode = std::fs::metadata(&file).map_err(|e| unread(&e))?.permissions().mode();
    if mode & 0o077 != 0 {
        let name = file.display();
        let failure = format!("others can read the password file {name}; it is not used");
        let next = format!("chmod 600 {}", crate::ground::quoted(&name.to_string()));
        return Err(Failure::Surroundings(failure).then(next));
    }
    Ok(Some(password))
}

/// The password of a line `host:port:database:user:password`, if the line is for this server. A
/// `*` stands for anything; before a `:` or a `\` that is meant stands a `\`.
fn entry(line: &str, config: &Config, environment: Environment<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        // The password is the rest, whatever is in it.
        if c == ':' && fields.len() < 5 {
            fields.push(String::new());
        } else if let Some(field) = fields.last_mut() {
            field.extend(if c == '\\' { chars.next() } else { Some(c) });
        }
    }
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => config.get_hostaddrs().first()?.to_string(),
    };
    let me = || environment("USER").and_then(|user| user.into_string().ok());
    let user = config.get_user().map(str::to_owned).or_else(me).unwrap_or_default();
    let database = config.get_dbname().unwrap_or(&user);
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let meant = [host.as_str(), &port, database, &user];
    let [wanted @ .., password] = fields.as_slice() else { return None };
    let fits = wanted.len() == meant.len()
        && wanted.iter().zip(meant).all(|(wanted, meant)| wanted == "*" || wanted == meant);
    fits.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)], text: &str) -> Result<Address, Failure> {
        let look = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| OsString::from(value))
        };
        read(text, &look)
    }

    fn password_of(address: &Address) -> Option<&str> {
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
        ] {
            assert!(is_meant(text), "{text}");
            let failure = with(&[], text).unwrap_err();
            assert_eq!(failure.exit_code(), 2, "{text}");
            let said = format!("{failure} {failure:?}");
            assert!(!said.contains("geheim") && !said.contains("heim"), "{text}: {said}");
        }
        for file in ["freehold.db", "/var/lib/a b.db", "a:b", "://x", "./http:/x"] {
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
    fn a_password_is_found_in_the_password_file_if_it_is_nobody_elses_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".pgpass");
        let lines = "# h:5432:d:ann:comment\nh:5432:other:ann:wrong\nh:1:d:ann:wrong\n\
                     h:5432:d:a\\:nn:odd\nh:*:d:ann:ge\\:he\\\\im:x\n*:*:*:*:any\n";
        std::fs::write(&file, lines).unwrap();
        let mode = |mode| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(0o600);
        let home = [("HOME", folder.path().to_str().unwrap())];
        let named = [("PGPASSFILE", file.to_str().unwrap())];
        for variables in [&home[..], &named[..]] {
            for (text, password) in [
                ("postgres://ann@h/d", "ge:he\\im:x"),
                ("postgres://a%3Ann@h/d", "odd"),
                ("postgres://bob@h/d", "any"),
                ("postgres://ann:mine@h/d", "mine"),
            ] {
                let address = with(variables, text).unwrap();
                assert_eq!(password_of(&address), Some(password), "{text}");
            }
        }
        mode(0o640);
        let failure = with(&home, "postgres://ann@h/d").unwrap_err();
        assert_eq!((failure.exit_code(), failure.code()), (3, "surroundings"));
        assert_eq!(failure.next().unwrap(), format!("chmod 600 {}", file.display()));
        assert!(!failure.to_string().contains("ge:he"), "{failure}");
        // Nobody has to have one, unless it is named.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(password_of(&with(&home, "postgres://ann@h/d").unwrap()), None);
        assert_eq!(with(&named, "postgres://ann@h/d").unwrap_err().exit_code(), 3);
    }
}
