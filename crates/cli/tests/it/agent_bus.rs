//! What the agent learns and tells over D-Bus, from the services that python-dbusmock plays on a bus of the test's own.

use std::process::{Command, Stdio};

use holdall_testkit::{Process, is_there};
use serde_json::Value;

use crate::agent::{is_done, machine, settings, sleeps, stop, wait_until, write_settings};
use crate::bus::Bus;
use crate::house::Machine;

const UPOWER: &str = "org.freedesktop.UPower";
const UPOWER_PATH: &str = "/org/freedesktop/UPower";
const BATTERY_PATH: &str = "/org/freedesktop/UPower/devices/DisplayDevice";
const DEVICE: &str = "org.freedesktop.UPower.Device";
const NETWORK: &str = "org.freedesktop.NetworkManager";
const NETWORK_PATH: &str = "/org/freedesktop/NetworkManager";
const ACTIVE: &str = "org.freedesktop.NetworkManager.Connection.Active";
const MOCK: &str = "org.freedesktop.DBus.Mock";

/// A bus on which dbusmock plays services.
fn mocked_bus() -> Option<Bus> {
    let can_mock = ["-c", "import dbusmock"];
    let mocked = Command::new("/usr/bin/python3").args(can_mock).output();
    let has_mock = mocked.is_ok_and(|output| output.status.success());
    is_there("python3-dbusmock", has_mock).then(Bus::start)?
}

impl Bus {
    /// Starts a service that has a template of dbusmock.
    fn mock(&self, template: &str, parameters: &str) -> Process {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mock_service.py");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-u", script, template, parameters]);
        let mut service =
            Process::spawn(command.env("DBUS_SESSION_BUS_ADDRESS", self.address())).unwrap();
        service.wait_for_line("ready").expect("it is there");
        service
    }

    fn call(&self, service: &str, path: &str, method: &str, signature: &str, args: &[&str]) {
        let mut command = Command::new("busctl");
        command.arg(format!("--address={}", self.address())).args(["call", service, path, MOCK]);
        let output = command.args([method, signature]).args(args).output().unwrap();
        assert!(output.status.success(), "{method}: {output:?}");
    }

    /// Sets a property of a mocked object, which tells of it.
    fn set(&self, (service, path): (&str, &str), interface: &str, name: &str, value: [&str; 2]) {
        let mut command = Command::new("busctl");
        command.arg(format!("--address={}", self.address())).args(["set-property", service, path]);
        let output = command.args([interface, name]).args(value).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
    }

    fn agent(&self, machine: &Machine) -> Process {
        let mut command = machine.command(["agent", "--json"]);
        command.env("DBUS_SYSTEM_BUS_ADDRESS", self.address());
        command.env("DBUS_SESSION_BUS_ADDRESS", self.address());
        Process::spawn(command.stderr(Stdio::null())).unwrap()
    }
}

fn held_by(outlook: &Value, reason: &str) -> bool {
    outlook["sets"][0]["hold"]["reason"] == reason
}

#[test]
fn a_low_battery_holds_a_backup_until_it_is_charged() {
    let Some(bus) = mocked_bus() else { return };
    let machine = machine("");
    // The first backup would begin before the services have answered.
    machine.ok(["agent", "pause"]);
    let mut agent = bus.agent(&machine);
    let _upower = bus.mock("upower", r#"{"OnBattery": true}"#);
    wait_until(&mut agent, |outlook| outlook["conditions"]["on_battery"] == true);
    let battery = |name, value| bus.set((UPOWER, BATTERY_PATH), DEVICE, name, value);
    battery("Percentage", ["d", "12.4"]);
    battery("IsPresent", ["b", "true"]);
    wait_until(&mut agent, |outlook| outlook["conditions"]["battery_percent"] == 12);
    machine.ok(["agent", "resume"]);
    wait_until(&mut agent, |outlook| held_by(outlook, "low_battery"));
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("but the battery is low (12 %)"), "{status}");
    battery("Percentage", ["d", "80"]);
    wait_until(&mut agent, is_done);
    bus.set((UPOWER, UPOWER_PATH), UPOWER, "OnBattery", ["b", "false"]);
    wait_until(&mut agent, |outlook| outlook["conditions"]["on_battery"] == false);
    stop(agent);
}

#[test]
fn an_agent_without_a_bus_or_whose_bus_ended_sleeps() {
    let Some(bus) = mocked_bus() else { return };
    let machine = machine("");
    machine.ok(["agent", "pause"]);
    let mut agent = bus.agent(&machine);
    let _upower = bus.mock("upower", r#"{"OnBattery": true}"#);
    wait_until(&mut agent, |outlook| outlook["conditions"]["on_battery"] == true);
    drop(bus);
    wait_until(&mut agent, |outlook| outlook["conditions"]["on_battery"].is_null());
    sleeps(&agent);
    stop(agent);
}

#[test]
fn a_metered_or_unwanted_network_holds_what_goes_to_a_server() {
    let Some(bus) = mocked_bus() else { return };
    let machine = machine("repository = \"https://127.0.0.1:1/none\"\nretry_for = \"0s\"\n");
    machine.ok(["agent", "pause"]);
    let mut agent = bus.agent(&machine);
    let _network = bus.mock("networkmanager", "{}");
    // The template has neither.
    for (name, value) in [("Metered", ["u", "0"]), ("PrimaryConnection", ["o", "/"])] {
        let added = [NETWORK, name, value[0], value[1]];
        bus.call(NETWORK, NETWORK_PATH, "AddProperty", "ssv", &added);
    }
    let network = |name, value| bus.set((NETWORK, NETWORK_PATH), NETWORK, name, value);
    for (path, name) in [("/phone", "Phone"), ("/home", "Home")] {
        let object = [path, ACTIVE, "1", "Id", "s", name, "0"];
        bus.call(NETWORK, NETWORK_PATH, "AddObject", "ssa{sv}a(ssss)", &object);
    }
    network("PrimaryConnection", ["o", "/"]);
    wait_until(&mut agent, |outlook| outlook["conditions"]["connection"] == "");
    network("Metered", ["u", "3"]);
    network("PrimaryConnection", ["o", "/phone"]);
    wait_until(&mut agent, |outlook| {
        outlook["conditions"]["connection"] == "Phone" && outlook["conditions"]["metered"] == true
    });
    machine.ok(["agent", "resume"]);
    wait_until(&mut agent, |outlook| held_by(outlook, "metered"));
    let chosen = settings(&machine).replace("[agent]", "[agent]\nnetworks = [\"Home\"]");
    write_settings(&machine, &chosen);
    network("Metered", ["u", "2"]);
    wait_until(&mut agent, |outlook| held_by(outlook, "other_network"));
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("the network `Phone` is not among the chosen ones"), "{status}");
    network("PrimaryConnection", ["o", "/home"]);
    wait_until(&mut agent, |outlook| {
        outlook["sets"][0]["is_running"] == true || held_by(outlook, "settling")
    });
    stop(agent);
}

#[test]
fn a_failure_that_a_person_must_mend_is_shown_on_the_desktop() {
    let Some(bus) = mocked_bus() else { return };
    let machine = machine("hooks.before = \"exit 7\"\n");
    machine.ok(["agent", "pause"]);
    let agent = bus.agent(&machine);
    let mut desktop = bus.mock("notification_daemon", "{}");
    machine.ok(["agent", "resume"]);
    let shown = loop {
        let line = desktop.wait_for_line("").expect("it is shown");
        if line.contains(" Notify ") {
            break line;
        }
    };
    assert!(shown.contains("The backup of `home` failed"), "{shown}");
    assert!(shown.contains("the hook `before` of the set home"), "{shown}");
    stop(agent);
}
