//! A machine and a server on a network of their own: real links at real rates.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use holdall_sys::users::effective_uid;
use holdall_testkit::{End, Links, is_there};

use crate::house::{Machine, Outcome, Server, run_by};

/// Links of these rates between two network namespaces; `None` where that cannot be done.
pub(crate) fn links(bits_per_second: &[u64]) -> Option<Links> {
    let has = |program: &str| Path::new(program).exists();
    let can = effective_uid() == 0 && has("/usr/sbin/ip") && has("/usr/sbin/tc");
    is_there("root, ip and tc, for a shaped link", can).then_some(())?;
    let made = Links::of_rates(bits_per_second);
    is_there("network namespaces with tbf", made.is_ok()).then_some(made.ok()?)
}

/// Has a command see a system with one interface, `link0`, which is Wi-Fi. A program that `ip netns exec`
/// runs has mounts of its own, so nobody else sees that.
const OVER_WIFI: &str = "mount -t tmpfs holdall-test /sys/class/net && \
    mkdir -p /sys/class/net/link0/wireless && exec \"$@\"";

/// A machine at one end of links, paired with a server at the other.
pub(crate) struct Linked {
    _server: Server,
    pub(crate) machine: Machine,
    pub(crate) links: Links,
}

impl Linked {
    /// Links of these rates in bits a second; `None` where that cannot be done.
    pub(crate) fn of_rates(bits_per_second: &[u64]) -> Option<Self> {
        let links = links(bits_per_second)?;
        let machine = Machine::new();
        let data = machine.path("server");
        let address = format!("{}:0", Links::address(0, End::Server));
        let command = Server::command_at(&address, &data);
        let server = Server::start_by(&mut run_by(&links.prefix(End::Server), &command), &data);
        let invite = server.invite_with(&["--address", server.address()]);
        let linked = Self { _server: server, machine, links };
        let kit = linked.machine.path("kit.txt");
        linked.run(&["pair", &invite, "--recovery-kit", kit.to_str().expect("UTF-8")]);
        Some(linked)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.machine.path(name)
    }

    /// Runs a command at the machine's end, which must end well.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.run_behind(&[], args)
    }

    /// The same where the system says of link 0 that it is Wi-Fi.
    #[track_caller]
    pub(crate) fn run_over_wifi(&self, args: &[&str]) -> Outcome {
        self.run_behind(&["sh", "-c", OVER_WIFI, "sh"], args)
    }

    /// Runs a command by these words, at the machine's end.
    #[track_caller]
    fn run_behind(&self, words: &[&str], args: &[&str]) -> Outcome {
        let mut prefix = self.links.prefix(End::Client);
        prefix.extend(words.iter().map(OsString::from));
        Outcome::of(&mut run_by(&prefix, &self.machine.command(args))).expect(0)
    }
}
