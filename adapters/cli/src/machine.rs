//! The machine's name, which roots and instances record (D-15, D-18).

/// The name of this machine.
pub fn machine_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    // Ids may be neither empty nor hold control characters.
    let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
