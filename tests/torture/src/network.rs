//! A network of two hosts: this machine and a network namespace, with a virtual cable that can be cut.

use std::process::{Command, id};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names of namespaces begin with this. The number of the process and one of its own follow.
const PREFIX: &str = "helve-torture-";

/// A namespace and its cable, which are gone afterwards.
pub struct Network {
    namespace: String,
    cable: String,
    here: String,
}

impl Network {
    /// Makes one; says why where that is not possible.
    ///
    /// # Errors
    /// Returns an error if this process has no permission, or if the programs for it are missing.
    pub fn new() -> Result<Self, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        sweep();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{PREFIX}{}-{number}", id());
        ip(&["netns", "add", &namespace])?;
        // From here on whatever was made is taken away again. An end of a cable has at most fifteen letters.
        let cable = format!("hv{}-{number}", id());
        // Four addresses each, out of the range that is kept for measurements.
        let place = (id().wrapping_add(number) % (1 << 15)) * 4;
        let address = |host: u32| format!("198.{}.{}.{}", 18 + (place >> 16), (place >> 8) & 255, (place & 255) + host);
        let network = Self { here: address(1), namespace, cable };
        let (there, end) = (address(2), format!("{}b", network.cable));
        ip(&["link", "add", &network.cable, "type", "veth", "peer", "name", &end, "netns", &network.namespace])?;
        ip(&["addr", "add", &format!("{}/30", network.here), "dev", &network.cable])?;
        ip(&["-n", &network.namespace, "addr", "add", &format!("{there}/30"), "dev", &end])?;
        ip(&["-n", &network.namespace, "link", "set", &end, "up"])?;
        ip(&["link", "set", &network.cable, "up"])?;
        Ok(network)
    }

    /// The address of this machine on the cable.
    #[must_use]
    pub fn here(&self) -> &str {
        &self.here
    }

    /// Starts a program at the other end.
    pub(crate) fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command
    }

    /// Cuts the cable. Neither side is notified.
    pub fn cut(&self) {
        ip(&["link", "set", &self.cable, "down"]).expect("no cable");
    }

    /// Puts it back.
    pub fn join(&self) {
        ip(&["link", "set", &self.cable, "up"]).expect("a cable");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove(&self.namespace);
        // The namespace may live on for a while with the sockets in it, and with it the cable; or both are gone by now.
        let _ = ip(&["link", "delete", &self.cable]);
    }
}

fn remove(namespace: &str) {
    if let Err(why) = ip(&["netns", "delete", namespace]) {
        eprintln!("the namespace {namespace} is still there: {why}");
    }
}

/// Removes the namespaces of processes that were killed.
fn sweep() {
    let Ok(all) = ip(&["netns", "list"]) else { return };
    for name in all.lines().filter_map(|line| line.split_whitespace().next()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !std::path::Path::new("/proc").join(process).exists()) {
            remove(name);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if !output.status.success() {
        return Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
