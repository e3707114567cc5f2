//! The password for an address that has none: from the environment or from the password file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use freehold_postgres::tokio_postgres::Config;
use freehold_postgres::tokio_postgres::config::Host;

use super::address::{Environment, value};
use crate::failure::Failure;

/// What was found of a password.
pub(super) enum Found {
    Password(String),
    /// None; and why the password file had none, where that is not plain.
    None(Option<String>),
}

/// The password of the environment, or of the password file.
///
/// # Errors
/// [`Failure::Surroundings`]: the file is named and cannot be read, or others can read it.
pub(super) fn password(config: &Config, environment: Environment<'_>) -> Result<Found, Failure> {
    use std::io::ErrorKind;
    if let Some(password) = value(environment, "PGPASSWORD")? {
        return Ok(Found::Password(password));
    }
    let named = value(environment, "PGPASSFILE")?.map(PathBuf::from);
    let home = || environment("HOME").filter(|home| !home.is_empty());
    let own = || home().map(|home| PathBuf::from(home).join(".pgpass"));
    let Some(file) = named.clone().or_else(own) else { return Ok(Found::None(None)) };
    let name = file.display();
    let unread = |e: &std::io::Error| format!("the password file {name} cannot be read: {e}");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if named.is_some() => return Err(Failure::Surroundings(unread(&e))),
        // Nobody has to have one, and many servers ask for none; but one that is named is meant.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::None(None));
        }
        Err(e) => return Ok(Found::None(Some(unread(&e)))),
    };
    let mut entries = servers(config)
        .map(|(host, port)| text.lines().find_map(|l| entry(l, &host, port, config, environment)));
    let first = entries.next().flatten();
    // One password is for all servers that are named: what is meant for one is not told another.
    if entries.any(|entry| entry != first) {
        let why = format!("the password file {name} has not the same password for all servers");
        return Ok(Found::None(Some(why)));
    }
    let Some(password) = first else { return Ok(Found::None(None)) };
    let meta = std::fs::metadata(&file).map_err(|e| Failure::Surroundings(unread(&e)))?;
    if meta.permissions().mode() & 0o077 != 0 {
        let failure = format!("others can read the password file {name}; it is not used");
        let next = format!("chmod 600 {}", crate::ground::quoted(&name.to_string()));
        return Err(Failure::Surroundings(failure).then(next));
    }
    Ok(Found::Password(password))
}

/// Every server that may be connected to, as the password file names it.
fn servers(config: &Config) -> impl Iterator<Item = (String, u16)> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    (0..hosts.len().max(addresses.len())).map(move |at| {
        let host = match hosts.get(at) {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(folder)) => folder.display().to_string(),
            None => addresses.get(at).map(ToString::to_string).unwrap_or_default(),
        };
        let ports = config.get_ports();
        (host, ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432))
    })
}

/// The password of a line `host:port:database:user:password`, if the line is for this server. A
/// `*` stands for anything; before a `:` or a `\` that is meant stands a `\`.
fn entry(
    line: &str,
    host: &str,
    port: u16,
    config: &Config,
    environment: Environment<'_>,
) -> Option<String> {
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
    let me = || environment("USER").and_then(|user| user.into_string().ok());
    let user = config.get_user().map(str::to_owned).or_else(me).unwrap_or_default();
    let database = config.get_dbname().unwrap_or(&user);
    let meant = [host, &port.to_string(), database, &user];
    let [wanted @ .., password] = fields.as_slice() else { return None };
    let fits = wanted.len() == meant.len()
        && wanted.iter().zip(meant).all(|(wanted, meant)| wanted == "*" || wanted == meant);
    fits.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::super::address::tests::{password_of, with};
    use super::*;

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
        for home in ["", "/dev/null"] {
            let address = with(&[("HOME", home)], "postgres://ann@h/d").unwrap();
            assert_eq!((password_of(&address), address.note.as_ref()), (None, None), "{home}");
        }
        // One that cannot be read is said once the server asks for a password.
        std::fs::create_dir(&file).unwrap();
        let address = with(&home, "postgres://ann@h/d").unwrap();
        assert_eq!(password_of(&address), None);
        assert!(address.note.unwrap().contains("cannot be read"));
        assert_eq!(with(&named, "postgres://ann@h/d").unwrap_err().exit_code(), 3);
    }

    #[test]
    fn a_password_of_the_file_is_told_no_server_that_it_is_not_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".pgpass");
        std::fs::write(&file, "a:1:*:*:one\nb:2:*:*:one\nc:*:*:*:other\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let home = [("HOME", folder.path().to_str().unwrap())];
        for (hosts, password) in [
            ("a:1", Some("one")),
            ("a:1,b:2", Some("one")),
            ("c,c:2", Some("other")),
            ("a:1,c", None),
            ("a:1,b:1", None),
            ("d,a:1", None),
        ] {
            let address = with(&home, &format!("postgres://ann@{hosts}/d")).unwrap();
            assert_eq!(password_of(&address), password, "{hosts}");
            assert_eq!(address.note.is_none(), password.is_some(), "{hosts}");
        }
    }
}
